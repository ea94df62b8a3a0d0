//! The planner is notified of every path that fails or recovers, and says what is wanted of each.

use super::engine::Engine;
use super::planned::Planned;
use paths::health::{Cause, Seen, Wanted};
use paths::plan::{Change, Trouble};
use paths::{Element, Facts, PathName};
use std::rc::Rc;
use units::Now;

impl Engine {
    pub(super) fn plan_deadline(&self) -> Option<Now> {
        self.planned.borrow().as_ref()?.planner.deadline()
    }

    /// A path failed, for this reason.
    pub(super) fn plan_failed(self: &Rc<Self>, path: usize, cause: Cause) {
        let now = self.core.now();
        self.keep(|planned| {
            let name = planned.names.get(path)?.clone();
            let trouble = match cause {
                // The planner knows already.
                Cause::Domain | Cause::NotWanted => return None,
                Cause::LinkDown => Trouble::Lost(Element::HostPort(name.host)),
                Cause::New | Cause::Closed | Cause::NoAnswer | Cause::Digests | Cause::UnitGone => {
                    Trouble::Failed(name)
                }
            };
            Some(planned.planner.trouble(trouble, now))
        });
    }

    pub(super) fn plan_facts(self: &Rc<Self>, facts: Facts) {
        let now = self.core.now();
        self.keep(|planned| Some(planned.planner.facts(facts, now)));
        self.bell.ring();
    }

    pub(super) fn plan_recovered(self: &Rc<Self>, path: usize) {
        let now = self.core.now();
        self.keep(|planned| {
            let name = planned.names.get(path)?.clone();
            Some(planned.planner.trouble(Trouble::Recovered(name), now))
        });
    }

    pub(super) fn plan_tick(self: &Rc<Self>, now: Now) {
        self.keep(|planned| {
            let due = planned.planner.deadline().is_some_and(|at| at <= now);
            due.then(|| planned.planner.tick(now))
        });
    }

    /// Paths drain.
    pub(super) fn plan_drains(&self) -> bool {
        let planned = self.planned.borrow();
        planned
            .as_ref()
            .is_some_and(|it| !it.planner.draining().is_empty())
    }

    /// Draining paths with nothing in flight are done.
    pub(super) fn plan_drained(self: &Rc<Self>) {
        self.keep(|planned| {
            let state = self.state.borrow();
            let empty = |name: &&PathName| {
                planned
                    .number(name)
                    .is_none_or(|path| state.selector.in_flight(path) == 0)
            };
            let empty: Vec<PathName> = planned
                .planner
                .draining()
                .iter()
                .filter(empty)
                .cloned()
                .collect();
            let changes = empty.iter().flat_map(|name| planned.planner.drained(name));
            let changes: Vec<Change> = changes.collect();
            (!changes.is_empty()).then_some(changes)
        });
    }

    /// Asks the planner, and makes every path what is wanted of it then.
    fn keep(self: &Rc<Self>, ask: impl FnOnce(&mut Planned) -> Option<Vec<Change>>) {
        let (failed, wanted) = {
            let mut planned = self.planned.borrow_mut();
            let Some(planned) = planned.as_mut() else {
                return;
            };
            let Some(changes) = ask(planned) else { return };
            let failed = changes.iter().filter_map(|change| match change {
                Change::Fail(name) => planned.number(name),
                Change::Promote(_) | Change::Drain(_) | Change::Demote(_) => None,
            });
            let failed: Vec<usize> = failed.collect();
            let wanted: Vec<Wanted> = (0..planned.names.len())
                .map(|path| planned.wanted(path))
                .collect();
            (failed, wanted)
        };
        for path in failed {
            self.see(path, Seen::DomainLost);
        }
        for (path, wanted) in wanted.into_iter().enumerate() {
            let differs = self.state.borrow().routes[path].health.wanted() != wanted;
            if differs {
                self.see(path, Seen::Want(wanted));
            }
        }
    }
}
