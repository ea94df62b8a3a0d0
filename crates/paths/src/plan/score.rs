//! The lexicographic objective, as numbers of which larger is better.

use super::model::Term;
use super::options::Priority;
use crate::mesh::Mesh;

/// Which term comes when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    pub(crate) priority: Priority,
    /// Stability right after bandwidth: what runs well stays.
    pub(crate) sticky: bool,
}

/// All terms: `first`, then what is left in the usual order.
const fn ordered(first: &[Term]) -> [Term; 13] {
    let mut all = [
        Term::Bandwidth,
        Term::HostCards,
        Term::HostCardBalance,
        Term::Controllers,
        Term::ControllerBalance,
        Term::TargetCards,
        Term::TargetCardBalance,
        Term::Fabrics,
        Term::FabricBalance,
        Term::Sessions,
        Term::Stability,
        Term::HeadRoom,
        Term::Spread,
    ];
    let mut done = 0;
    while done < first.len() {
        // Moves it up to its place, and what was before it one place down each.
        let mut at = done;
        while all[at] as usize != first[done] as usize {
            at += 1;
        }
        while at > done {
            all[at] = all[at - 1];
            at -= 1;
        }
        all[done] = first[done];
        done += 1;
    }
    all
}

impl Order {
    pub(crate) fn terms(self) -> [Term; 13] {
        use Term::{Bandwidth, Controllers, HostCards, Stability};
        match (self.priority, self.sticky) {
            (Priority::Bandwidth, false) => const { ordered(&[Bandwidth]) },
            (Priority::Bandwidth, true) => const { ordered(&[Bandwidth, Stability]) },
            (Priority::Diversity, false) => const { ordered(&[HostCards, Controllers, Bandwidth]) },
            (Priority::Diversity, true) => {
                const { ordered(&[HostCards, Controllers, Bandwidth, Stability]) }
            }
        }
    }
}

/// One choice, judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Score([i64; 13]);

impl Score {
    fn slot(term: Term) -> usize {
        term as usize
    }

    pub(crate) fn get(self, term: Term) -> i64 {
        self.0[Self::slot(term)]
    }

    fn add(&mut self, term: Term, value: i64) {
        self.0[Self::slot(term)] += value;
    }

    /// The numbers in the order of importance.
    pub(crate) fn key(self, order: Order) -> [i64; 13] {
        order.terms().map(|term| self.get(term))
    }

    /// One more of a kind of which there were `before`.
    fn count(&mut self, distinct: Term, balance: Term, before: u8) {
        self.add(distinct, i64::from(before == 0));
        self.add(balance, -(2 * i64::from(before) + 1));
    }

    /// The score with one more path, given how many active paths stand on each of its elements
    /// already.
    pub(crate) fn with(mut self, path: &Weights, before: &Counts) -> Self {
        self.add(Term::Bandwidth, path.speed);
        self.count(Term::HostCards, Term::HostCardBalance, before.host_card);
        self.count(
            Term::Controllers,
            Term::ControllerBalance,
            before.controller,
        );
        self.count(
            Term::TargetCards,
            Term::TargetCardBalance,
            before.target_card,
        );
        self.count(Term::Fabrics, Term::FabricBalance, before.fabric);
        self.add(Term::Sessions, -1);
        self.add(Term::Stability, i64::from(path.current));
        self.add(Term::HeadRoom, -i64::from(path.busy));
        self.add(Term::Spread, -i64::from(path.spread));
        self
    }
}

/// What a path by itself adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    pub(crate) speed: i64,
    pub(crate) current: bool,
    /// How much of the target's port was in use, in quarters of its speed.
    pub(crate) busy: u8,
    pub(crate) spread: u32,
}

/// How many chosen paths stand on each element of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) host_card: u8,
    pub(crate) controller: u8,
    pub(crate) target_card: u8,
    pub(crate) fabric: u8,
}

/// A question for the solvers: choose from `paths` of `mesh`.
#[derive(Clone, Debug)]
pub(crate) struct Problem<'a> {
    pub(crate) mesh: &'a Mesh,
    /// Indices of the paths that may be chosen.
    pub(crate) paths: Vec<usize>,
    /// At most so many.
    pub(crate) limit: usize,
    pub(crate) order: Order,
    /// By index of the path: it is active now.
    pub(crate) current: &'a [bool],
}

impl Problem<'_> {
    pub(crate) fn weights(&self, path: usize) -> Weights {
        let candidate = &self.mesh.paths[path];
        Weights {
            speed: i64::try_from(candidate.speed).unwrap_or(i64::MAX / 1024),
            current: self.current[path],
            busy: self.mesh.targets[candidate.target].busy,
            spread: candidate.spread,
        }
    }

    /// The score of a choice.
    pub(crate) fn score(&self, chosen: &[usize]) -> Score {
        let mut score = Score::default();
        for (at, path) in chosen.iter().enumerate() {
            let it = &self.mesh.paths[*path];
            let mut before = Counts {
                host_card: 0,
                controller: 0,
                target_card: 0,
                fabric: 0,
            };
            for earlier in &chosen[..at] {
                let other = &self.mesh.paths[*earlier];
                before.host_card += u8::from(other.host_card == it.host_card);
                before.controller += u8::from(other.controller == it.controller);
                before.target_card += u8::from(other.target_card == it.target_card);
                before.fabric += u8::from(other.fabric == it.fabric);
            }
            score = score.with(&self.weights(*path), &before);
        }
        score
    }

    /// Whether no port is over its speed or its sessions, and the limit holds.
    pub(crate) fn feasible(&self, chosen: &[usize]) -> bool {
        chosen.len() <= self.limit && chosen.iter().all(|path| self.ports_hold(chosen, *path))
    }

    /// Whether the two ports of `path` carry what `chosen` puts on them.
    pub(crate) fn ports_hold(&self, chosen: &[usize], path: usize) -> bool {
        let it = &self.mesh.paths[path];
        let (mut host, mut target, mut sessions) = (0_u64, 0_u64, 0_u32);
        for other in chosen {
            let other = &self.mesh.paths[*other];
            if other.host == it.host {
                host = host.saturating_add(other.speed);
            }
            if other.target == it.target {
                target = target.saturating_add(other.speed);
                sessions = sessions.saturating_add(1);
            }
        }
        let end = &self.mesh.targets[it.target];
        host <= self.mesh.hosts[it.host].capacity
            && target <= end.capacity
            && sessions <= end.sessions
    }
}
