//! An open volume, as the rest of the process has it.

use crate::error::HostError;
use crate::growth::Facts;
use crate::home::{Home, Homes};
use crate::lane::AwayLane;
use crate::status::Status;
use env::{CoreHandle, CoreId, LocalFuture, call};
use paths::plan::Reason;
use paths::{PathName, Plan, Policy};
use std::rc::Rc;
use std::sync::Arc;
use volume::{Lane, OpenError, OpenErrorKind, Shape, Volume, VolumeEvents};

/// Finds a volume's home from anywhere in the process, for whoever only posts jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Located {
    /// The home core.
    pub core: CoreId,
    volume: u64,
}

impl Located {
    /// The volume as it is now; call it on the home core. `None` where it has been stopped.
    #[must_use]
    pub fn status(self, core: &CoreHandle) -> Option<Status> {
        let home = core.locals().get::<Homes>().find(self.volume)?;
        Some(home.status(core.id()))
    }

    /// The plan in force; call it on the home core.
    #[must_use]
    pub fn plan(self, core: &CoreHandle) -> Option<Plan> {
        core.locals().get::<Homes>().find(self.volume)?.plan()
    }

    /// Why a path has its role; call it on the home core.
    #[must_use]
    pub fn reason(self, core: &CoreHandle, path: &PathName) -> Option<Reason> {
        core.locals().get::<Homes>().find(self.volume)?.reason(path)
    }

    /// Lets this path out of quarantine, if it is in it; call it on the home core.
    #[must_use]
    pub fn release(self, core: &CoreHandle, path: &str) -> bool {
        let home = core.locals().get::<Homes>().find(self.volume);
        home.is_some_and(|home| home.release(path))
    }

    /// Another policy from the next operation on, kept over restarts; on any core.
    ///
    /// # Errors
    /// It is in force, but could not be kept.
    pub async fn set_policy(self, core: &CoreHandle, policy: Policy) -> Result<(), HostError> {
        let volume = self.volume;
        let set = call(core, self.core, move |there| {
            let core = Rc::clone(there);
            let set: LocalFuture<Result<(), HostError>> = Box::pin(async move {
                match core.locals().get::<Homes>().find(volume) {
                    Some(home) => home.set_policy(&core, policy).await,
                    None => Ok(()),
                }
            });
            set
        });
        set.await.unwrap_or(Ok(()))
    }
}

/// Status of every volume whose home this core is.
#[must_use]
pub fn all_status(core: &CoreHandle) -> Vec<Status> {
    let homes = core.locals().get::<Homes>().all();
    homes.iter().map(|home| home.status(core.id())).collect()
}

/// An open multipath volume. [`Volume::open`] gives a lane on any core.
#[derive(Debug)]
pub struct Attached {
    pub(crate) located: Located,
    pub(crate) facts: Arc<Facts>,
}

impl Attached {
    pub(crate) fn new(core: &CoreHandle, volume: u64, home: Rc<Home>) -> Arc<Self> {
        let facts = Facts::new(home.unit.facts().shape());
        let grown = Arc::clone(&facts);
        home.unit
            .on_growth(move |now| grown.grow(now.shape().block_count));
        core.locals().get::<Homes>().add(volume, home);
        Arc::new(Self {
            located: Located {
                core: core.id(),
                volume,
            },
            facts,
        })
    }

    /// Where it lives.
    #[must_use]
    pub fn located(&self) -> Located {
        self.located
    }

    /// As it is now, asked from any core; `None` where its home has stopped.
    pub async fn status(&self, core: &CoreHandle) -> Option<Status> {
        let located = self.located;
        let asked = call(core, located.core, move |there| {
            let status = located.status(there);
            Box::pin(async move { status })
        });
        asked.await.flatten()
    }

    /// Ends it: waits a few seconds for what is in flight, then logs out. Never hangs, with every
    /// path hung too.
    pub async fn stop(&self, core: &CoreHandle) {
        let located = self.located;
        let stopped = call(core, located.core, move |there| {
            let core = Rc::clone(there);
            let work: LocalFuture<()> = Box::pin(async move {
                let homes = core.locals().get::<Homes>();
                if let Some(home) = homes.find(located.volume) {
                    home.stop(&core).await;
                }
                homes.remove(located.volume);
            });
            work
        });
        // A core that is stopping has nothing to stop any more.
        let _gone = stopped.await;
    }
}

impl Volume for Attached {
    fn shape(&self) -> Shape {
        self.facts.shape()
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            if core.id() != self.located.core {
                let lane = AwayLane::new(&core, self.located.core, self.located.volume);
                let lane: Rc<dyn Lane> = Rc::new(lane);
                return Ok(lane);
            }
            let home = core.locals().get::<Homes>().find(self.located.volume);
            let home = home.ok_or_else(|| OpenError {
                kind: OpenErrorKind::Missing,
                cause: "the volume has been stopped".to_owned(),
                next_step: "open it again".to_owned(),
            })?;
            let lane: Rc<dyn Lane> = Rc::new(home.lane());
            Ok(lane)
        })
    }

    fn events(self: Arc<Self>, _core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        self.facts.watch()
    }
}
