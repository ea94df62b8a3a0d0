//! Sessions that are over, and the fences against what they had sent.

use super::Session;
use super::engine::{Engine, Inside};
use super::line::Line;
use paths::stale::{Decide, Evidence, Nexus};
use std::rc::Rc;
use units::Now;

impl Engine {
    /// Asks every other path to fence `nexus`, the one that was heard last first; logging in again
    /// on its own path does it too.
    pub(super) fn fence(self: &Rc<Self>, nexus: Nexus) {
        let mut sessions: Vec<Rc<dyn Session>> = {
            let state = self.state.borrow();
            let others = state
                .lines
                .iter()
                .filter(|line| line.nexus.path != nexus.path);
            others.filter_map(|line| line.session.clone()).collect()
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
                    .book
                    .fenced(nexus, Evidence::NexusFence);
                engine.act(decisions);
            }
        }));
    }
}

/// A session is over with everything on it. If its path has logged in again meanwhile, that was the
/// fence.
pub(super) fn lost(state: &mut Inside, nexus: Nexus, now: Now) -> Vec<Decide> {
    let mut decisions = state.book.lost(nexus, now);
    let newer =
        |line: &Line| line.nexus.path == nexus.path && line.nexus > nexus && line.session.is_some();
    if state.lines.iter().any(newer) {
        decisions.retain(|it| *it != Decide::Fence(nexus));
        decisions.extend(state.book.fenced(nexus, Evidence::Reinstated));
    }
    decisions
}
