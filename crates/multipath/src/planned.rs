//! The planner's monitor behind the layer: it hears of every path that fails or recovers, and says
//! what is wanted of each.

use super::engine::Engine;
use paths::health::{Cause, Seen, Wanted};
use paths::plan::{Barred, Change, PlanMonitor, Reason, Role, Trouble};
use paths::{Element, Facts, PathName};
use std::rc::Rc;
use units::Now;

/// A monitor and the names of the layer's paths, by number.
pub(super) struct Planned {
    pub(super) monitor: PlanMonitor,
    pub(super) names: Vec<PathName>,
}

impl Planned {
    /// What is wanted of a path now. Paths of lost elements are tried on and on: only one that
    /// comes back clears the element.
    pub(super) fn wanted(&self, path: usize) -> Wanted {
        let Some(name) = self.names.get(path) else {
            return Wanted::Cold;
        };
        if self.monitor.active().contains(name) {
            return Wanted::Active;
        }
        if self.monitor.draining().contains(name) {
            return Wanted::Hot;
        }
        let planned = self.monitor.plan().path(name);
        planned.map_or(Wanted::Cold, |it| match (it.role, &it.reason) {
            (Role::Active | Role::Hot, _)
            | (Role::Unusable, Reason::Barred(Barred::Lost { .. })) => Wanted::Hot,
            (Role::Cold | Role::Unusable, _) => Wanted::Cold,
        })
    }

    fn number(&self, name: &PathName) -> Option<usize> {
        self.names.iter().position(|it| it == name)
    }
}

impl Engine {
    pub(super) fn keeper_deadline(&self) -> Option<Now> {
        self.planned.borrow().as_ref()?.monitor.deadline()
    }

    /// A path failed, for this reason.
    pub(super) fn keeper_failed(self: &Rc<Self>, path: usize, cause: Cause) {
        let now = self.core.now();
        self.keep(|planned| {
            let name = planned.names.get(path)?.clone();
            let trouble = match cause {
                // The monitor knows already.
                Cause::Domain | Cause::NotWanted => return None,
                Cause::LinkDown => Trouble::Lost(Element::HostPort(name.host)),
                Cause::New | Cause::Closed | Cause::NoAnswer | Cause::Digests | Cause::UnitGone => {
                    Trouble::Failed(name)
                }
            };
            Some(planned.monitor.trouble(trouble, now))
        });
    }

    pub(super) fn keeper_facts(self: &Rc<Self>, facts: Facts) {
        let now = self.core.now();
        self.keep(|planned| Some(planned.monitor.facts(facts, now)));
        self.bell.ring();
    }

    pub(super) fn keeper_recovered(self: &Rc<Self>, path: usize) {
        let now = self.core.now();
        self.keep(|planned| {
            let name = planned.names.get(path)?.clone();
            Some(planned.monitor.trouble(Trouble::Recovered(name), now))
        });
    }

    pub(super) fn keeper_tick(self: &Rc<Self>, now: Now) {
        self.keep(|planned| {
            let due = planned.monitor.deadline().is_some_and(|at| at <= now);
            due.then(|| planned.monitor.tick(now))
        });
    }

    /// Paths drain.
    pub(super) fn keeper_drains(&self) -> bool {
        let planned = self.planned.borrow();
        planned
            .as_ref()
            .is_some_and(|it| !it.monitor.draining().is_empty())
    }

    /// Draining paths with nothing in flight are done.
    pub(super) fn keeper_drained(self: &Rc<Self>) {
        self.keep(|planned| {
            let state = self.state.borrow();
            let empty = |name: &&PathName| {
                planned
                    .number(name)
                    .is_none_or(|path| state.selector.in_flight(path) == 0)
            };
            let empty: Vec<PathName> = planned
                .monitor
                .draining()
                .iter()
                .filter(empty)
                .cloned()
                .collect();
            let changes = empty.iter().flat_map(|name| planned.monitor.drained(name));
            let changes: Vec<Change> = changes.collect();
            (!changes.is_empty()).then_some(changes)
        });
    }

    /// Asks the monitor, and makes every path what is wanted of it then.
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
            let differs = self.state.borrow().lines[path].health.wanted() != wanted;
            if differs {
                self.see(path, Seen::Want(wanted));
            }
        }
    }
}
