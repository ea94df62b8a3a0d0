//! A volume's home: the one core where its paths live, and what other cores hold of it.

use crate::error::HostError;
use crate::growth::Facts;
use crate::isids::Isids;
use crate::lane::AwayLane;
use crate::options::WriteFailover;
use crate::status::{Ends, Status, path_status};
use crate::store::Store;
use crate::url::Url;
use env::{CoreHandle, CoreId, LocalFuture, call};
use iscsi_initiator::unit::{Unit, UnitPort};
use multipath::Multipath;

use paths::health::{Cause, State};
use paths::plan::Reason;
use paths::{PathName, Plan, Policy};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volume::{Io, IoError, IoFuture, Lane, OpenError, Shape, Volume, VolumeEvents};

/// How long a stop waits for what is in flight, and then for logouts.
const STOP_WAIT: Duration = Duration::from_secs(5);
const LOGOUT_WAIT: Duration = Duration::from_millis(500);
/// Between looks while a stop waits.
const STOP_LOOK: Duration = Duration::from_millis(5);

/// The volumes whose home this core is.
#[derive(Default)]
pub(crate) struct Homes(RefCell<BTreeMap<u64, Rc<Home>>>);

impl Homes {
    pub(crate) fn find(&self, volume: u64) -> Option<Rc<Home>> {
        self.0.borrow().get(&volume).cloned()
    }

    pub(crate) fn add(&self, volume: u64, home: Rc<Home>) {
        self.0.borrow_mut().insert(volume, home);
    }

    fn all(&self) -> Vec<Rc<Home>> {
        self.0.borrow().values().cloned().collect()
    }
}

/// One path as the home keeps it.
pub(crate) struct Way {
    pub(crate) name: PathName,
    pub(crate) port: UnitPort,
    pub(crate) ends: Ends,
}

/// Everything of a volume that lives on one core.
pub(crate) struct Home {
    pub(crate) url: Url,
    pub(crate) multipath: RefCell<Option<Rc<Multipath>>>,
    /// In the order of the layer's paths.
    pub(crate) ways: RefCell<Vec<Way>>,
    pub(crate) unit: Rc<Unit>,
    pub(crate) notices: RefCell<Vec<String>>,
    pub(crate) planned: bool,
    pub(crate) write_failover: WriteFailover,
    pub(crate) store: Store,
    /// Held for as long as the ISIDs are in use.
    pub(crate) isids: RefCell<Option<Rc<Isids>>>,
    pub(crate) stopped: Cell<bool>,
}

/// The lane of the home core.
struct HomeLane(Rc<Home>);

impl Lane for HomeLane {
    fn submit(&self, io: Io) -> IoFuture {
        match &*self.0.multipath.borrow() {
            Some(multipath) => multipath.submit(io),
            None => IoFuture::ready(Err(IoError::Unavailable)),
        }
    }
}

impl Home {
    pub(crate) fn lane(self: &Rc<Self>) -> impl Lane + use<> {
        HomeLane(Rc::clone(self))
    }

    pub(crate) fn layer(&self) -> Option<Rc<Multipath>> {
        self.multipath.borrow().clone()
    }

    pub(crate) fn status(&self, core: CoreId) -> Status {
        let facts = self.unit.facts();
        let shape = facts.shape();
        let layer = self.layer();
        let of_layer: Vec<multipath::PathStatus> =
            layer.as_ref().map_or_else(Vec::new, |it| it.status());
        let plan = layer.as_ref().and_then(|it| it.plan());
        let reason = |name: &PathName| Some(plan.as_ref()?.path(name)?.reason.to_string());
        let ways = self.ways.borrow();
        let paths = ways.iter().zip(&of_layer).map(|(way, path)| {
            let reason = reason(&way.name);
            path_status(core, &way.ends, path, &way.port.status(), reason.as_deref())
        });
        Status {
            url: self.url.to_string(),
            unit_path: self.url.unit(),
            unit: facts.identity.name(),
            description: facts.description.clone(),
            bytes: shape.byte_count().0,
            block_size: shape.block_size.bytes(),
            policy: layer
                .as_ref()
                .map_or_else(String::new, |it| it.policy().to_string()),
            planned: self.planned,
            write_failover: match self.write_failover {
                WriteFailover::Strict => "strict",
                WriteFailover::Timed => "timed",
                WriteFailover::Fast => "fast (UNSAFE)",
            }
            .to_owned(),
            notices: self.notices(),
            paths: paths.collect(),
        }
    }

    fn notices(&self) -> Vec<String> {
        let mut notices = self.notices.borrow().clone();
        if self.unit.is_preempted() {
            notices.push(
                "another host has removed the reservation key of this one: nothing is written; open the volume anew to register again"
                    .to_owned(),
            );
        }
        notices
    }

    /// Why the path has its role, by the plan in force.
    #[must_use]
    pub(crate) fn reason(&self, path: &PathName) -> Option<Reason> {
        Some(self.plan()?.path(path)?.reason.clone())
    }

    pub(crate) fn plan(&self) -> Option<Plan> {
        self.layer()?.plan()
    }

    fn release(&self, path: &str) -> bool {
        let number = self
            .ways
            .borrow()
            .iter()
            .position(|way| way.ends.path == path);
        let layer = self.layer();
        number.is_some_and(|at| layer.is_some_and(|layer| layer.release(at)))
    }

    async fn set_policy(&self, core: &CoreHandle, policy: Policy) -> Result<(), HostError> {
        if let Some(layer) = self.layer() {
            layer.set_policy(policy);
        }
        self.store.set_policy(core, &self.url, policy).await
    }

    /// Ends the volume: waits for what is in flight for a while, then logs out everywhere.
    pub(crate) async fn stop(&self, core: &CoreHandle) {
        if self.stopped.replace(true) {
            return;
        }
        let Some(layer) = self.layer() else { return };
        let until = core.now().after(STOP_WAIT);
        let busy = || layer.status().iter().any(|path| path.in_flight > 0);
        while busy() && core.now() < until {
            core.sleep_until(core.now().after(STOP_LOOK)).await;
        }
        let rests = layer.status().iter().all(rests);
        self.multipath.replace(None);
        drop(layer);
        // The layer's last handle is gone: its sessions log out, those that can.
        let until = core.now().after(LOGOUT_WAIT);
        let connected = || {
            let ways = self.ways.borrow();
            ways.iter().any(|way| way.port.is_connected())
        };
        while connected() && core.now() < until {
            core.sleep_until(core.now().after(STOP_LOOK)).await;
        }
        let isids = self.isids.replace(None);
        if let Some(isids) = isids.filter(|_| rests) {
            isids.ended_well().await;
        }
    }
}

/// Nothing of this path can still be carried out at the target.
fn rests(path: &multipath::PathStatus) -> bool {
    let at_rest = match path.state {
        State::Up | State::Proving | State::Down(Cause::New | Cause::NotWanted) => true,
        State::Down(_) | State::Connecting | State::Quarantined | State::Disabled => false,
    };
    at_rest && path.in_flight == 0
}

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
        let told = Arc::clone(&facts);
        home.unit
            .on_growth(move |now| told.grow(now.shape().block_count));
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
                let _last = homes.0.borrow_mut().remove(&located.volume);
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
