//! The commands that a connection has begun, and those that wait for data or memory.

use super::awaited::Granted;
use env::LocalFuture;
use futures_util::stream::FuturesUnordered;
use iscsi::Itt;
use logical_unit::{Outcome, Task, TaskWatch};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Commands that other hosts' functions ended without an answer: an ABORT TASK of one finds its
    /// wish done.
    pub(super) taken_away: BTreeSet<Itt>,
}
