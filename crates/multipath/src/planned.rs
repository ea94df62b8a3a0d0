//! The plan behind the layer: what it wants of each path.

use paths::PathName;
use paths::health::Wanted;
use paths::plan::{Barred, PlanMonitor, Reason, Role};

/// A planner and the names of the layer's paths, by number.
pub(super) struct Planned {
    pub(super) planner: PlanMonitor,
    pub(super) names: Vec<PathName>,
}

impl Planned {
    /// What is wanted of a path now. Paths of lost elements are tried on and on: only one that
    /// comes back clears the element.
    pub(super) fn wanted(&self, path: usize) -> Wanted {
        let Some(name) = self.names.get(path) else {
            return Wanted::Cold;
        };
        if self.planner.active().contains(name) {
            return Wanted::Active;
        }
        if self.planner.draining().contains(name) {
            return Wanted::Hot;
        }
        let planned = self.planner.plan().path(name);
        planned.map_or(Wanted::Cold, |it| match (it.role, &it.reason) {
            (Role::Active | Role::Hot, _)
            | (Role::Unusable, Reason::Barred(Barred::Lost { .. })) => Wanted::Hot,
            (Role::Cold | Role::Unusable, _) => Wanted::Cold,
        })
    }

    pub(super) fn number(&self, name: &PathName) -> Option<usize> {
        self.names.iter().position(|it| it == name)
    }
}
