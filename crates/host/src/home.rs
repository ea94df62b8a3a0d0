//! A volume's home core: the one core where its paths live, and what other cores hold of it.

use crate::error::HostError;
use crate::isids::Isids;
use crate::options::WriteFailover;
use crate::status::{Ends, Status, path_status};
use crate::store::Store;
use crate::url::Url;
use env::{CoreHandle, CoreId};
use iscsi_initiator::unit::{Unit, UnitPort};
use multipath::Multipath;
use paths::health::{Cause, State};
use paths::plan::Reason;
use paths::{PathName, Plan, Policy};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use volume::{Io, IoError, IoFuture, Lane};

/// How long a stop waits for what is in flight, and then for logouts.
const STOP_WAIT: Duration = Duration::from_secs(5);
const LOGOUT_WAIT: Duration = Duration::from_millis(500);
/// Between checks while a stop waits.
const STOP_CHECK: Duration = Duration::from_millis(5);

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

    pub(crate) fn remove(&self, volume: u64) {
        let last = self.0.borrow_mut().remove(&volume);
        drop(last);
    }

    pub(crate) fn all(&self) -> Vec<Rc<Home>> {
        self.0.borrow().values().cloned().collect()
    }
}

/// One path as the home keeps it.
pub(crate) struct HomePath {
    pub(crate) name: PathName,
    pub(crate) port: UnitPort,
    pub(crate) ends: Ends,
}

/// Everything of a volume that lives on one core.
pub(crate) struct Home {
    pub(crate) url: Url,
    pub(crate) multipath: RefCell<Option<Rc<Multipath>>>,
    /// In the order of the layer's paths.
    pub(crate) paths: RefCell<Vec<HomePath>>,
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
        let own = self.paths.borrow();
        let paths = own.iter().zip(&of_layer).map(|(own, path)| {
            let reason = reason(&own.name);
            path_status(core, &own.ends, path, &own.port.status(), reason.as_deref())
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

    pub(crate) fn release(&self, path: &str) -> bool {
        let number = self
            .paths
            .borrow()
            .iter()
            .position(|own| own.ends.path == path);
        let layer = self.layer();
        number.is_some_and(|at| layer.is_some_and(|layer| layer.release(at)))
    }

    pub(crate) async fn set_policy(
        &self,
        core: &CoreHandle,
        policy: Policy,
    ) -> Result<(), HostError> {
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
            core.sleep_until(core.now().after(STOP_CHECK)).await;
        }
        let rests = layer.status().iter().all(rests);
        self.multipath.replace(None);
        drop(layer);
        // The layer's last handle is gone: its sessions log out, those that can.
        let until = core.now().after(LOGOUT_WAIT);
        let connected = || {
            let paths = self.paths.borrow();
            paths.iter().any(|path| path.port.is_connected())
        };
        while connected() && core.now() < until {
            core.sleep_until(core.now().after(STOP_CHECK)).await;
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
