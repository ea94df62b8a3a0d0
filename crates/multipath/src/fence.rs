//! Sessions that are over, and the fences against what they had sent.

use super::Session;
use super::engine::{Engine, Inside};
use super::route::Route;
use paths::stale::{Decide, Evidence, Nexus};
use std::rc::Rc;
use units::Now;

impl Engine {
    /// Asks every other path to fence `nexus`, the one that received something last first; logging
    /// in again on its own path does it too.
    pub(super) fn fence(self: &Rc<Self>, nexus: Nexus) {
        let mut sessions: Vec<Rc<dyn Session>> = {
            let state = self.state.borrow();
            let others = state
                .routes
                .iter()
                .filter(|route| route.nexus.path != nexus.path);
            others.filter_map(|route| route.session.clone()).collect()
        };
        sessions.sort_by_key(|session| std::cmp::Reverse(session.received_at()));
        for session in sessions {
            self.ask_for_fence(session, nexus);
        }
    }

    pub(super) fn ask_for_fence(self: &Rc<Self>, session: Rc<dyn Session>, nexus: Nexus) {
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            if session.fence(nexus).await {
                let decisions = engine
                    .state
                    .borrow_mut()
                    .pending_table
                    .fenced(nexus, Evidence::NexusFence);
                engine.act(decisions);
            }
        }));
    }
}

/// A session is over with everything on it. If its path has logged in again meanwhile, that was the
/// fence.
pub(super) fn lost(state: &mut Inside, nexus: Nexus, now: Now) -> Vec<Decide> {
    let mut decisions = state.pending_table.lost(nexus, now);
    let newer = |route: &Route| {
        route.nexus.path == nexus.path && route.nexus > nexus && route.session.is_some()
    };
    if state.routes.iter().any(newer) {
        decisions.retain(|it| *it != Decide::Fence(nexus));
        decisions.extend(state.pending_table.fenced(nexus, Evidence::Reinstated));
    }
    decisions
}
