//! The volumes that this process has open, as any of its threads may ask for them.
//!
//! ```text
//!   whoever asks --channel--> the volume's home core, which answers at once whatever its paths do
//! ```
//!
//! Who asks brings the end of its patience, `until`: a volume whose core has not answered by then
//! is left out. No clock is read here.

use crate::attached::{Attached, Located};
use crate::error::HostError;
use crate::status::Status;
use crate::view::PlannedVolume;
use env::CoreHandle;
use paths::Policy;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

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
        policy: Policy,
        done: oneshot::Sender<Result<bool, HostError>>,
    },
}

static VOLUMES: Mutex<Vec<mpsc::UnboundedSender<Ask>>> = Mutex::new(Vec::new());

/// Lets a volume be asked for as long as it is open.
pub fn show(core: &CoreHandle, attached: &Attached) {
    let (ask, asked) = mpsc::unbounded_channel();
    core.spawn(Box::pin(answer(Rc::clone(core), attached.located(), asked)));
    let mut volumes = VOLUMES.lock().unwrap_or_else(PoisonError::into_inner);
    volumes.push(ask);
}

/// Nobody asks any more: the process ends.
pub fn end() {
    let mut volumes = VOLUMES.lock().unwrap_or_else(PoisonError::into_inner);
    volumes.clear();
}

/// How each of them is.
pub async fn statuses(until: impl Future<Output = ()>) -> Vec<Status> {
    all(Ask::Status, until).await
}

/// Each of them with the plan in force.
pub async fn plans(until: impl Future<Output = ()>) -> Vec<PlannedVolume> {
    all(Ask::Plan, until).await
}

/// Lets a path out of quarantine, in volumes of this unit or in all; answers in how many.
pub async fn release(path: &str, unit: Option<&str>, until: impl Future<Output = ()>) -> u64 {
    let ask = |done| Ask::Release {
        path: path.to_owned(),
        unit: unit.map(str::to_owned),
        done,
    };
    let released = all(ask, until).await;
    released.into_iter().filter(|it| *it).count() as u64
}

/// Another policy from the next operation on, in the volumes of this unit; answers in how many.
///
/// # Errors
/// It is in force, but could not be kept.
pub async fn set_policy(
    unit: &str,
    policy: Policy,
    until: impl Future<Output = ()>,
) -> Result<u64, HostError> {
    let ask = |done| Ask::Policy {
        unit: unit.to_owned(),
        policy,
        done,
    };
    let mut volumes = 0;
    for ours in all(ask, until).await {
        volumes += u64::from(ours?);
    }
    Ok(volumes)
}

/// Answers for one volume, on its home core.
async fn answer(core: CoreHandle, located: Located, mut asked: mpsc::UnboundedReceiver<Ask>) {
    while let Some(ask) = asked.recv().await {
        // A volume that is closed is not reported any more; nobody may be waiting for an answer
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

/// Asks every volume at the same time, and leaves out those that do not answer.
async fn all<T>(
    make: impl Fn(oneshot::Sender<T>) -> Ask,
    until: impl Future<Output = ()>,
) -> Vec<T> {
    let volumes = VOLUMES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let mut waiting = Vec::new();
    for volume in volumes {
        let (to, answered) = oneshot::channel();
        if volume.send(make(to)).is_ok() {
            waiting.push(answered);
        }
    }
    let mut found = Vec::new();
    tokio::pin!(until);
    for answered in waiting {
        tokio::select! {
            biased;
            answer = answered => found.extend(answer.ok()),
            () = &mut until => break,
        }
    }
    found
}
