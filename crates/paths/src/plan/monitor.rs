//! Keeps a plan in force while facts change: fails over from the table at once, moves back late and
//! slowly.
//!
//! **Contract.** The caller carries out every [`Change`] in order, calls [`PlanMonitor::tick`] at
//! [`PlanMonitor::deadline`], and reports when a draining path has nothing in flight
//! ([`PlanMonitor::drained`]). A path that drains gets no new I/O and is not failed: no fence is
//! needed for one that ended by itself.
//!
//! What was lost is acted on at once, by lookup. What came back has passed its hold-down: if the
//! best plan only adds it to what carries I/O, that is done `window` later, all of it at a time.
//! Where healthy paths have to move for it, it waits until it has been quiet for `settle`, and they
//! move one at a time, `step` apart. A healthy path moves for diversity alone at most once in
//! `rebalance`.

use super::choose::{Solver, choose};
use super::make::{plan, plan_mesh};
use super::model::{Plan, Role};
use super::options::Options;
use crate::facts::{Element, Facts, PathName};
use crate::mesh::Mesh;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Now;

/// How long the monitor waits before it moves paths, and between two moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MonitorTiming {
    /// Paths that fail, or recover, within this time of each other are handled together.
    pub window: Duration,
    /// How long facts must be quiet before paths are moved for the better.
    pub settle: Duration,
    /// Between two such moves.
    pub step: Duration,
    /// Between two rounds of moves for diversity alone.
    pub rebalance: Duration,
}

impl Default for MonitorTiming {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(500),
            settle: Duration::from_secs(5),
            step: Duration::from_secs(10),
            rebalance: Duration::from_secs(60),
        }
    }
}

/// What went wrong, or right again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// An element is known to be lost: the carrier of a host's port went, an administrator said so.
    Lost(Element),
    /// A path that was logged in failed, and nobody knows more.
    Failed(PathName),
    /// A path has recovered and passed its hold-down; so has every element that it stands on.
    /// Whoever keeps sessions goes on trying paths of lost elements: only a path that comes back
    /// clears an element.
    Recovered(PathName),
}

/// A change of the plan, for whoever keeps sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Send I/O on this path; log it in first if it is cold.
    Promote(PathName),
    /// Send no new I/O on this path, and say when nothing is in flight on it.
    Drain(PathName),
    /// Nothing is in flight on this path any more: it may be logged out.
    Demote(PathName),
    /// This path is to be treated as failed although it has not been noticed there yet: what it
    /// stands on is lost.
    Fail(PathName),
}

/// The plan in force.
#[derive(Debug)]
pub struct PlanMonitor {
    facts: Facts,
    options: Options,
    timing: MonitorTiming,
    plan: Plan,
    active: Vec<PathName>,
    draining: Vec<PathName>,
    failed: BTreeMap<PathName, Now>,
    lost: Vec<Element>,
    goal: Vec<PathName>,
    /// The table was made for another active set.
    stale: bool,
    /// When to check whether what came back can simply be added.
    gain_at: Option<Now>,
    replan_at: Option<Now>,
    step_at: Option<Now>,
    rebalanced: Option<Now>,
}

impl PlanMonitor {
    /// Plans; everything active is to be logged in by the caller.
    #[must_use]
    pub fn new(facts: Facts, options: Options, timing: MonitorTiming) -> Self {
        let plan = plan(&facts, &options, &[]);
        let active = plan.active();
        Self {
            facts,
            options,
            timing,
            goal: active.clone(),
            active,
            plan,
            draining: Vec::new(),
            failed: BTreeMap::new(),
            lost: Vec::new(),
            stale: false,
            gain_at: None,
            replan_at: None,
            step_at: None,
            rebalanced: None,
        }
    }

    /// The plan by the facts that came last.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What carries I/O now.
    #[must_use]
    pub fn active(&self) -> &[PathName] {
        &self.active
    }

    /// What gets no new I/O and has some in flight.
    #[must_use]
    pub fn draining(&self) -> &[PathName] {
        &self.draining
    }

    /// What is held to be lost.
    #[must_use]
    pub fn lost(&self) -> &[Element] {
        &self.lost
    }

    /// When to call [`PlanMonitor::tick`] next.
    #[must_use]
    pub fn deadline(&self) -> Option<Now> {
        let soon = self.stale.then_some(Now::ZERO);
        [soon, self.gain_at, self.replan_at, self.step_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Something went wrong or right.
    pub fn trouble(&mut self, trouble: Trouble, now: Now) -> Vec<Change> {
        match trouble {
            Trouble::Lost(element) => self.lose(&element, now),
            Trouble::Failed(path) => {
                self.failed.insert(path.clone(), now);
                self.draining.retain(|it| *it != path);
                match self.common_cause(now) {
                    Some(element) => self.lose(&element, now),
                    None => self.fail_over(&Element::Path(path.to_string()), now),
                }
            }
            Trouble::Recovered(path) => {
                self.failed.remove(&path);
                let mesh = Mesh::new(&self.facts, &self.options);
                if let Some(index) = mesh.find(&path) {
                    self.lost
                        .retain(|element| !mesh.stands_on(&mesh.paths[index], element));
                }
                self.gain_at.get_or_insert(now.after(self.timing.window));
                self.replan_at = Some(now.after(self.timing.settle));
                self.step_at = None;
                Vec::new()
            }
        }
    }

    /// New facts. What they make impossible ends at once, what they make possible waits.
    pub fn facts(&mut self, facts: Facts, now: Now) -> Vec<Change> {
        self.facts = facts;
        let mesh = self.mesh();
        let usable = |path: &PathName| {
            mesh.find(path)
                .is_some_and(|at| mesh.paths[at].tier < crate::mesh::TIERS_WITH_IO)
        };
        let gone: Vec<PathName> = self
            .active
            .iter()
            .filter(|path| !usable(path))
            .cloned()
            .collect();
        self.replan_at = Some(now.after(self.timing.settle));
        self.step_at = None;
        self.stale = true;
        if gone.is_empty() {
            return Vec::new();
        }
        let mut changes: Vec<Change> = gone.iter().cloned().map(Change::Fail).collect();
        self.active.retain(|path| !gone.contains(path));
        changes.extend(self.think(now));
        changes
    }

    /// A draining path has nothing in flight any more.
    pub fn drained(&mut self, path: &PathName) -> Vec<Change> {
        let before = self.draining.len();
        self.draining.retain(|it| it != path);
        let was_draining = self.draining.len() < before;
        was_draining
            .then(|| Change::Demote(path.clone()))
            .into_iter()
            .collect()
    }

    /// Time has come.
    pub fn tick(&mut self, now: Now) -> Vec<Change> {
        if std::mem::take(&mut self.stale) {
            self.refresh();
        }
        if self.gain_at.is_some_and(|at| at <= now) {
            self.gain_at = None;
            return self.gain(now);
        }
        if self.replan_at.is_some_and(|at| at <= now) {
            self.replan_at = None;
            self.set_goal(now);
            self.step_at = (self.goal != self.active).then_some(now);
        }
        if self.step_at.is_some_and(|at| at <= now) {
            return self.step(now);
        }
        Vec::new()
    }

    fn mesh(&self) -> Mesh {
        let mut without = self.lost.clone();
        without.extend(
            self.failed
                .keys()
                .map(|path| Element::Path(path.to_string())),
        );
        Mesh::new(&self.facts, &self.options).without(&without)
    }

    fn refresh(&mut self) {
        self.plan = plan_mesh(&self.mesh(), &self.options, &self.active, true);
    }

    /// The smallest element all of whose paths that carried I/O or were kept warm failed just now,
    /// if there are at least two of them and others still live.
    fn common_cause(&self, now: Now) -> Option<Element> {
        let mesh = Mesh::new(&self.facts, &self.options);
        let watched = |path: &PathName| {
            let planned = self.plan.path(path).map(|it| it.role);
            self.failed.contains_key(path) || matches!(planned, Some(Role::Active | Role::Hot))
        };
        let recent = |path: &PathName| {
            let failed = self.failed.get(path);
            failed.is_some_and(|at| now.since(*at) <= self.timing.window)
        };
        let watched: Vec<usize> = (0..mesh.paths.len())
            .filter(|at| watched(&mesh.paths[*at].name))
            .collect();
        let failing = watched
            .iter()
            .filter(|at| recent(&mesh.paths[**at].name))
            .count();
        let explains = |element: &Element| {
            let mut on_it = watched
                .iter()
                .map(|at| &mesh.paths[*at])
                .filter(|path| mesh.stands_on(path, element));
            let (count, all) = on_it.by_ref().fold((0, true), |(count, all), path| {
                (count + 1, all && recent(&path.name))
            });
            all && count >= 2 && count == failing && count < watched.len()
        };
        let elements = mesh.all_elements().into_iter();
        // They stand in order of size: port before card before controller before fabric.
        elements
            .filter(|element| !self.lost.contains(element))
            .find(explains)
    }

    fn lose(&mut self, element: &Element, now: Now) -> Vec<Change> {
        let mesh = Mesh::new(&self.facts, &self.options);
        let on_it = mesh
            .paths
            .iter()
            .filter(|path| mesh.stands_on(path, element));
        let on_it: Vec<PathName> = on_it.map(|path| path.name.clone()).collect();
        let unnoticed = on_it.iter().filter(|path| !self.failed.contains_key(path));
        let watched = unnoticed.filter(|path| {
            let role = self.plan.path(path).map(|it| it.role);
            self.active.contains(path) || matches!(role, Some(Role::Active | Role::Hot))
        });
        let mut changes: Vec<Change> = watched.cloned().map(Change::Fail).collect();
        self.draining.retain(|path| !on_it.contains(path));
        if !self.lost.contains(element) {
            self.lost.push(element.clone());
        }
        changes.extend(self.fail_over(element, now));
        changes
    }

    /// By the table where it still fits, by thinking where it does not.
    fn fail_over(&mut self, element: &Element, now: Now) -> Vec<Change> {
        self.replan_at = Some(now.after(self.timing.settle));
        self.step_at = None;
        let fits = !self.stale && self.plan.active() == self.active;
        self.stale = true;
        let mesh = Mesh::new(&self.facts, &self.options);
        let stands = |path: &PathName| {
            mesh.find(path)
                .is_some_and(|at| mesh.stands_on(&mesh.paths[at], element))
        };
        if !self.active.iter().any(stands) {
            return Vec::new();
        }
        let row = self
            .plan
            .contingencies
            .iter()
            .find(|row| row.lost == *element);
        let Some(row) = row.filter(|_| fits).cloned() else {
            self.active.retain(|path| !stands(path));
            return self.think(now);
        };
        self.active.retain(|path| !row.dies.contains(path));
        self.apply(&row.promote, &row.drain)
    }

    fn think(&mut self, now: Now) -> Vec<Change> {
        self.replan_at = Some(now.after(self.timing.settle));
        let mesh = self.mesh();
        let choice = choose(&mesh, &self.options, &self.active, true, Solver::Best);
        let wanted: Vec<PathName> = choice
            .active
            .iter()
            .map(|at| mesh.paths[*at].name.clone())
            .collect();
        let promote: Vec<PathName> = wanted
            .iter()
            .filter(|path| !self.active.contains(path))
            .cloned()
            .collect();
        let drain: Vec<PathName> = self
            .active
            .iter()
            .filter(|path| !wanted.contains(path))
            .cloned()
            .collect();
        self.apply(&promote, &drain)
    }

    fn apply(&mut self, promote: &[PathName], drain: &[PathName]) -> Vec<Change> {
        let mut changes = Vec::new();
        for path in promote {
            self.draining.retain(|it| it != path);
            self.active.push(path.clone());
            changes.push(Change::Promote(path.clone()));
        }
        for path in drain {
            self.active.retain(|it| it != path);
            self.draining.push(path.clone());
            changes.push(Change::Drain(path.clone()));
        }
        self.stale = true;
        self.active.sort();
        changes
    }

    /// The best set of all, and the best one that leaves what is well where it is.
    fn wishes(&self) -> (Vec<PathName>, Vec<PathName>) {
        let mesh = self.mesh();
        let sticky = plan_mesh(&mesh, &self.options, &self.active, true);
        let fresh = choose(&mesh, &self.options, &self.active, false, Solver::Best);
        let names = fresh.active.iter().map(|at| mesh.paths[*at].name.clone());
        let (mut goal, mut kept) = (names.collect::<Vec<_>>(), sticky.active());
        goal.sort();
        kept.sort();
        (goal, kept)
    }

    /// When moves for diversity alone are allowed next, if not now.
    fn rebalances_at(&self, now: Now) -> Option<Now> {
        let next = self.rebalanced.map(|at| at.after(self.timing.rebalance));
        next.filter(|at| *at > now)
    }

    /// What the facts ask for: moves for bandwidth always, moves for diversity alone once in a
    /// while.
    fn set_goal(&mut self, now: Now) {
        let (goal, kept) = self.wishes();
        self.goal = if goal == kept {
            kept
        } else if let Some(next) = self.rebalances_at(now) {
            self.replan_at = Some(next);
            kept
        } else {
            self.rebalanced = Some(now);
            goal
        };
    }

    /// What came back joins what carries I/O, if that is the best plan and nothing that is well has
    /// to move for it.
    fn gain(&mut self, now: Now) -> Vec<Change> {
        let (goal, kept) = self.wishes();
        let wanted = match self.rebalances_at(now) {
            Some(_) => kept,
            None => goal,
        };
        if !self.active.iter().all(|path| wanted.contains(path)) {
            return Vec::new();
        }
        let new = |path: &&PathName| !self.active.contains(path);
        let promote: Vec<PathName> = wanted.iter().filter(new).cloned().collect();
        self.apply(&promote, &[])
    }

    /// One move towards the goal.
    fn step(&mut self, now: Now) -> Vec<Change> {
        self.step_at = None;
        let mesh = self.mesh();
        let missing: Vec<PathName> = self
            .goal
            .iter()
            .filter(|path| !self.active.contains(path))
            .cloned()
            .collect();
        let surplus: Vec<PathName> = self
            .active
            .iter()
            .filter(|path| !self.goal.contains(path))
            .cloned()
            .collect();
        // With nothing to be moved there is nothing to be careful about.
        let batch = if surplus.is_empty() { missing.len() } else { 1 };
        let promote: Vec<PathName> = missing.iter().take(batch).cloned().collect();
        let drain: Vec<PathName> = if missing.len() <= batch {
            surplus
        } else {
            let in_the_way =
                |old: &&PathName| promote.iter().any(|new| share_port(&mesh, old, new));
            let mut drain: Vec<PathName> = surplus.iter().filter(in_the_way).cloned().collect();
            let limit = usize::from(self.options.max_active);
            if drain.is_empty() && self.active.len() + promote.len() > limit {
                drain.extend(surplus.first().cloned());
            }
            drain
        };
        let changes = self.apply(&promote, &drain);
        let mut goal = self.goal.clone();
        goal.sort();
        if goal != self.active {
            self.step_at = Some(now.after(self.timing.step));
        }
        changes
    }
}

fn share_port(mesh: &Mesh, a: &PathName, b: &PathName) -> bool {
    match (mesh.find(a), mesh.find(b)) {
        (Some(a), Some(b)) => {
            mesh.paths[a].host == mesh.paths[b].host || mesh.paths[a].target == mesh.paths[b].target
        }
        (Some(_), None) | (None, Some(_) | None) => false,
    }
}
