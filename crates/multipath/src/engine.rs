//! Carries out what the machines of the paths crate decide.

use super::pending::Pending;
use super::places::Flights;
use super::planned::Planned;
use super::route::Route;
use super::wait::Bell;
use super::{Config, PathStatus, Session};
use env::CoreHandle;
use paths::health::{Seen, Wanted};
use paths::policy::{Policy, Selector};
use paths::stale::{CommandId, Nexus, PendingTable};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::Now;
use volume::Shape;

/// What changes.
pub(super) struct Inside {
    pub(super) selector: Selector,
    pub(super) pending_table: PendingTable,
    pub(super) routes: Vec<Route>,
    /// Operations on the straight path.
    pub(super) flights: Flights,
    /// Operations on the slow one.
    pub(super) pending: BTreeMap<CommandId, Pending>,
    /// Wait for a path.
    pub(super) ready: VecDeque<CommandId>,
    /// Sessions that are over and still have open operations: how many.
    pub(super) ending: BTreeMap<Nexus, u32>,
    pub(super) closed: bool,
}

/// The layer's inside.
pub(super) struct Engine {
    pub(super) core: CoreHandle,
    pub(super) shape: Shape,
    pub(super) config: Config,
    /// Operations of no more blocks are never cut.
    pub(super) whole_blocks: u64,
    pub(super) state: RefCell<Inside>,
    pub(super) planned: RefCell<Option<Planned>>,
    pub(super) bell: Rc<Bell>,
    /// Until when the driver sleeps, unless the bell rings: nobody rings for what is due later.
    pub(super) armed: Cell<Option<Now>>,
}

impl Engine {
    pub(super) fn set_policy(&self, policy: Policy) {
        self.state.borrow_mut().selector.set_policy(policy);
    }

    pub(super) fn want(self: &Rc<Self>, path: usize, wanted: Wanted) {
        self.see(path, Seen::Want(wanted));
    }

    pub(super) fn link(self: &Rc<Self>, path: usize, up: bool) {
        self.see(path, if up { Seen::LinkUp } else { Seen::LinkDown });
    }

    pub(super) fn status(&self) -> Vec<PathStatus> {
        let state = self.state.borrow();
        let routes = state.routes.iter().enumerate();
        let status = routes.map(|(path, route)| PathStatus {
            state: route.health.state(),
            wanted: route.health.wanted(),
            usage: route.settings.usage,
            marginal: route.health.marginal(),
            in_flight: state.selector.in_flight(path),
            bytes_in_flight: state.selector.bytes_in_flight(path),
            ended: state.selector.ended(path),
        });
        status.collect()
    }

    /// Ends everything; nobody is answered any more.
    pub(super) fn close(&self) {
        let (flying, pending, sessions) = {
            let mut state = self.state.borrow_mut();
            state.closed = true;
            let pending = std::mem::take(&mut state.pending);
            state.ready.clear();
            let routes = state.routes.iter_mut();
            let sessions: Vec<Rc<dyn Session>> =
                routes.filter_map(|route| route.session.take()).collect();
            (state.flights.close(), pending, sessions)
        };
        drop(flying);
        // Who hands out pieces looks up, and ends.
        pending.values().for_each(Pending::wake);
        for session in sessions {
            session.leave();
        }
        self.bell.ring();
    }
}
