//! Where `causeway path` inspects the volumes of running programs: a unix socket
//! for each process.
//!
//! ```text
//!   causeway path ls --GET /v1/volumes--> initiator-PID.sock --host::process--> the home core
//! ```
//!
//! The server has a thread of its own, and a home core answers at once whatever its paths do.

use api::{Asked, Documents, Server, bind};
use env::CoreHandle;
use host::view::{PolicyAnswer, PolicyRequest, ProcessView, ReleaseAnswer, ReleaseRequest};
use host::{Attached, process};
use manifest::code::Code;
use manifest::config::ApiAddress;
use manifest::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A core that does not answer by then is not reported.
const ANSWER_MAX: Duration = Duration::from_millis(80);

static SERVER: Mutex<Option<Server>> = Mutex::new(None);

/// Where the sockets are.
pub fn directory() -> PathBuf {
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
pub fn show(core: &CoreHandle, attached: &Attached) -> Result<(), Problem> {
    process::show(core, attached);
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if server.is_none() {
        let name = format!("initiator-{}.sock", std::process::id());
        let bound = bind(&[ApiAddress::Unix(directory().join(name))])?;
        *server = Some(Server::start_documents(bound, documents())?);
    }
    Ok(())
}

/// Takes the socket away: the process ends.
pub fn end() {
    let server = SERVER.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(server);
    process::end();
}

fn documents() -> Documents {
    Arc::new(|asked: Asked| Box::pin(reply(asked)))
}

fn value(document: &impl Serialize) -> Result<Value, Problem> {
    let value = serde_json::to_value(document);
    value.map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

fn of_process<V: Serialize>(volumes: Vec<V>) -> Result<Value, Problem> {
    let pid = std::process::id();
    value(&ProcessView { pid, volumes })
}

async fn reply(asked: Asked) -> Result<Value, Problem> {
    let until = tokio::time::sleep(ANSWER_MAX);
    match (asked.path.as_str(), asked.document) {
        ("/v1/volumes", None) => of_process(process::statuses(until).await),
        ("/v1/plans", None) => of_process(process::plans(until).await),
        ("/v1/policy", Some(document)) => value(&policy(&document, until).await?),
        ("/v1/release", Some(document)) => value(&release(&document, until).await?),
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

async fn release(
    document: &Value,
    until: impl Future<Output = ()>,
) -> Result<ReleaseAnswer, Problem> {
    let wanted: ReleaseRequest = sent(document, "\"path\", and may have \"unit\"")?;
    let released = process::release(&wanted.path, wanted.unit.as_deref(), until).await;
    Ok(ReleaseAnswer { released })
}

async fn policy(
    document: &Value,
    until: impl Future<Output = ()>,
) -> Result<PolicyAnswer, Problem> {
    let wanted: PolicyRequest = sent(document, "\"unit\" and \"policy\"")?;
    let policy = wanted.policy.parse::<paths::Policy>();
    let policy = policy.map_err(|error| Problem::new(Code::BadRequest, error.to_string()))?;
    let set = process::set_policy(&wanted.unit, policy, until).await;
    let volumes = set.map_err(|why| Problem::new(Code::Internal, why.cause).hint(why.next_step))?;
    Ok(PolicyAnswer { volumes })
}
