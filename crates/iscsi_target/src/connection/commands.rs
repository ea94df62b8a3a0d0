//! The commands that a connection has begun, and those that wait for data or memory.

use super::awaited::Granted;
use env::LocalFuture;
use futures_util::stream::FuturesUnordered;
use iscsi::Itt;
use logical_unit::{Outcome, Task, TaskWatch};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Commands ended without an answer that are remembered.
const TAKEN_AWAY_MAX: usize = 1024;

/// A command that has not begun.
pub(super) struct Waiting {
    pub(super) task: Task,
    /// The bytes that it would have of the host's data, for the residual.
    pub(super) wanted: u64,
    /// Its memory, which the host is to fill.
    pub(super) granted: Option<Granted>,
}

/// A command that runs.
pub(super) struct Running {
    pub(super) run: u64,
    /// Whether it was aborted.
    pub(super) watch: TaskWatch,
    pub(super) wanted: u64,
}

/// What a connection works on.
#[derive(Default)]
pub(super) struct Commands {
    /// Those that have not begun: their data is still to come, or memory for it.
    pub(super) waiting: BTreeMap<Itt, Waiting>,
    pub(super) running: FuturesUnordered<LocalFuture<(Itt, u64, Outcome)>>,
    /// Of those: the run that an ITT stands for now. An initiator may use the ITT of an aborted
    /// task again.
    pub(super) watched: BTreeMap<Itt, Running>,
    pub(super) runs: u64,
    /// Commands that other hosts' functions ended without an answer: an ABORT TASK of one finds it
    /// done.
    pub(super) taken_away: BTreeSet<Itt>,
}

impl Commands {
    /// One runs, and is waited for.
    pub(super) fn run(
        &mut self,
        itt: Itt,
        watch: TaskWatch,
        wanted: u64,
        rest: LocalFuture<Outcome>,
    ) {
        self.runs += 1;
        let run = self.runs;
        self.watched.insert(itt, Running { run, watch, wanted });
        self.running
            .push(Box::pin(async move { (itt, run, rest.await) }));
    }

    /// Takes out what was known of a run; `None`: the ITT stands for another one by now.
    pub(super) fn ended(&mut self, itt: Itt, run: u64) -> Option<Running> {
        match self.watched.entry(itt) {
            Entry::Occupied(now) if now.get().run == run => Some(now.remove()),
            Entry::Occupied(_) | Entry::Vacant(_) => None,
        }
    }

    /// It has not ended yet.
    pub(super) fn has(&self, itt: Itt) -> bool {
        self.watched.contains_key(&itt) || self.waiting.contains_key(&itt)
    }

    /// Nothing of it would be left behind.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Those that a task management function of this session has aborted.
    pub(super) fn aborted_by_its_own(&self) -> Vec<Itt> {
        let running = self.watched.iter();
        let running = running
            .filter(|(_, running)| running.watch.is_aborted_by_its_own())
            .map(|(itt, _)| *itt);
        let waiting = self.waiting.iter();
        let waiting = waiting
            .filter(|(_, waiting)| waiting.task.watch().is_aborted_by_its_own())
            .map(|(itt, _)| *itt);
        running.chain(waiting).collect()
    }

    /// Those that other hosts have aborted, and the units have let go of.
    pub(super) fn take_released(&self) -> Vec<(Itt, Outcome)> {
        let running = self.watched.iter();
        let running = running.map(|(itt, running)| (*itt, running.watch.take_released()));
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|(itt, waiting)| (*itt, waiting.task.watch().take_released()));
        running
            .chain(waiting)
            .filter_map(|(itt, outcome)| Some((itt, outcome?)))
            .collect()
    }

    /// Ended without an answer.
    pub(super) fn remember_taken_away(&mut self, itt: Itt) {
        if self.taken_away.len() >= TAKEN_AWAY_MAX {
            self.taken_away.pop_first();
        }
        self.taken_away.insert(itt);
    }
}
