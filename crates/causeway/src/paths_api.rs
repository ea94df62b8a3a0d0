//! The door through which `causeway path` looks at the volumes of running programs: a unix socket
//! for each process.
//!
//! ```text
//!   causeway path ls --GET /v1/volumes--> initiator-PID.sock --channel--> the volume's home core
//! ```
//!
//! The server has a thread of its own, and a home core answers at once whatever its paths do.

use api::{Asked, Documents, Server, bind};
use env::CoreHandle;
use host::view::{
    PlannedVolume, PolicyAnswer, PolicyRequest, ProcessView, ReleaseAnswer, ReleaseRequest,
};
use host::{Attached, HostError, Located, Status};
use manifest::code::Code;
use manifest::config::ApiAddress;
use manifest::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A core that does not answer by then is not told of.
const ANSWER_MAX: Duration = Duration::from_millis(80);

/// What is asked of a volume.
enum Ask {
    Status(oneshot::Sender<Status>),
    Plan(oneshot::Sender<PlannedVolume>),
    Release {
        path: String,
        unit: Option<String>,
        done: oneshot::Sender<bool>,
    },
    Policy {
        unit: String,
        policy: paths::Policy,
        done: oneshot::Sender<Result<bool, HostError>>,
    },
}

#[derive(Default)]
struct Process {
    volumes: Vec<mpsc::UnboundedSender<Ask>>,
    server: Option<Server>,
}

static PROCESS: Mutex<Option<Process>> = Mutex::new(None);

/// Where the sockets are.
pub(crate) fn directory() -> PathBuf {
    let named = std::env::var_os("CAUSEWAY_INITIATOR_RUN").map(PathBuf::from);
    let absolute = |it: &PathBuf| it.is_absolute();
    if let Some(dir) = named.filter(absolute) {
        return dir;
    }
    let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match user.filter(absolute) {
        Some(dir) => dir.join("causeway/initiator"),
        None if rustix::process::geteuid().is_root() => "/run/causeway/initiator".into(),
        None => {
            let user = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("causeway-initiator-{user}"))
        }
    }
}

/// Shows a volume to `causeway path` for as long as it is open. A process whose socket cannot be
/// had works all the same; the reason is answered.
pub(crate) fn show(core: &CoreHandle, attached: &Arc<Attached>) -> Result<(), Problem> {
    let (ask, asked) = mpsc::unbounded_channel();
    let located = attached.located();
    core.spawn(Box::pin(answer(Rc::clone(core), located, asked)));
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process.get_or_insert_default();
    process.volumes.push(ask);
    if process.server.is_none() {
        let name = format!("initiator-{}.sock", std::process::id());
        let bound = bind(&[ApiAddress::Unix(directory().join(name))])?;
        process.server = Some(Server::start_documents(bound, documents())?);
    }
    Ok(())
}

/// Takes the socket away: the process ends.
pub(crate) fn end() {
    let process = PROCESS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    drop(process);
}

/// Answers for one volume, on its home core.
async fn answer(core: CoreHandle, located: Located, mut asked: mpsc::UnboundedReceiver<Ask>) {
    while let Some(ask) = asked.recv().await {
        // A volume that is closed is not told of any more; nobody may be waiting for an answer
        // either.
        let Some(status) = located.status(&core) else {
            return;
        };
        match ask {
            Ask::Status(to) => drop(to.send(status)),
            Ask::Plan(to) => {
                let plan = located.plan(&core);
                let volume = status;
                drop(to.send(PlannedVolume { volume, plan }));
            }
            Ask::Release { path, unit, done } => {
                let ours = unit.is_none_or(|unit| status.unit_path == unit);
                // Nobody may be waiting any more.
                let _nobody = done.send(ours && located.release(&core, &path));
            }
            Ask::Policy { unit, policy, done } => {
                let ours = status.unit_path == unit;
                let set = match ours {
                    true => located.set_policy(&core, policy).await,
                    false => Ok(()),
                };
                drop(done.send(set.map(|()| ours)));
            }
        }
    }
}

fn volumes() -> Vec<mpsc::UnboundedSender<Ask>> {
    let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    process
        .as_ref()
        .map_or_else(Vec::new, |process| process.volumes.clone())
}

/// Asks every volume at the same time, and leaves out those that do not answer.
async fn all<T>(make: impl Fn(oneshot::Sender<T>) -> Ask) -> Vec<T> {
    let mut waiting = Vec::new();
    for volume in volumes() {
        let (to, answered) = oneshot::channel();
        if volume.send(make(to)).is_ok() {
            waiting.push(answered);
        }
    }
    let mut found = Vec::new();
    let deadline = tokio::time::sleep(ANSWER_MAX);
    tokio::pin!(deadline);
    for answered in waiting {
        tokio::select! {
            biased;
            answer = answered => found.extend(answer.ok()),
            () = &mut deadline => break,
        }
    }
    found
}

fn documents() -> Documents {
    Arc::new(|asked: Asked| Box::pin(reply(asked)))
}

fn value(document: &impl Serialize) -> Result<Value, Problem> {
    let value = serde_json::to_value(document);
    value.map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

fn process<V: Serialize>(volumes: Vec<V>) -> Result<Value, Problem> {
    let pid = std::process::id();
    value(&ProcessView { pid, volumes })
}

async fn reply(asked: Asked) -> Result<Value, Problem> {
    match (asked.path.as_str(), asked.document) {
        ("/v1/volumes", None) => process(all(Ask::Status).await),
        ("/v1/plans", None) => process(all(Ask::Plan).await),
        ("/v1/policy", Some(document)) => value(&policy(&document).await?),
        ("/v1/release", Some(document)) => value(&release(&document).await?),
        (path, _) => {
            let detail = format!("nothing is served at {path}");
            Err(Problem::new(Code::NoSuchPath, detail))
        }
    }
}

/// What was sent along; `has` says what that is.
fn sent<'a, T: Deserialize<'a>>(document: &'a Value, has: &str) -> Result<T, Problem> {
    let bad = |_| Problem::new(Code::BadRequest, format!("the document has {has}"));
    T::deserialize(document).map_err(bad)
}

async fn release(document: &Value) -> Result<ReleaseAnswer, Problem> {
    let wanted: ReleaseRequest = sent(document, "\"path\", and may have \"unit\"")?;
    let released = all(|done| Ask::Release {
        path: wanted.path.clone(),
        unit: wanted.unit.clone(),
        done,
    });
    let count = released.await.into_iter().filter(|it| *it).count();
    Ok(ReleaseAnswer {
        released: count as u64,
    })
}

async fn policy(document: &Value) -> Result<PolicyAnswer, Problem> {
    let wanted: PolicyRequest = sent(document, "\"unit\" and \"policy\"")?;
    let policy = wanted.policy.parse::<paths::Policy>();
    let policy = policy.map_err(|error| Problem::new(Code::BadRequest, error.to_string()))?;
    let set = all(|done| Ask::Policy {
        unit: wanted.unit.clone(),
        policy,
        done,
    })
    .await;
    let mut volumes = 0;
    for it in set {
        let ours = it.map_err(|why| Problem::new(Code::Internal, why.cause).hint(why.next_step))?;
        volumes += u64::from(ours);
    }
    Ok(PolicyAnswer { volumes })
}
