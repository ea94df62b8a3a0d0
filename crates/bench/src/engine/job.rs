//! The order for a run: what to do, on what, who is notified.

use super::gather::Ended;
use super::window::{Progress, Shared};
use crate::options::Options;
use crate::payload::Payload;
use crate::result::TargetFacts;
use crate::verify::Checker;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use units::Buf;
use volume::Volume;

/// One thing to run against.
#[derive(Clone)]
pub struct Target {
    /// As the report names it.
    pub name: String,
    /// Shared by all threads; each opens lanes of its own on it.
    pub volume: Arc<dyn Volume>,
    /// The first mebibyte is left alone, because the bench mark is there or belongs there.
    pub marked: bool,
}

/// Who is notified of a run while it goes on.
pub trait Watcher {
    /// How far it is; each second.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// What ended in each second is asked of all threads, with its latencies.
    fn wants_seconds(&self) -> bool {
        false
    }

    /// What ended since the last time, where that is wanted; after `progress`. Before the measured
    /// time begins and after its end it is nothing.
    fn second(&mut self, progress: &Progress, ended: &Ended) {
        let _ = (progress, ended);
    }

    /// The measured time begins now.
    fn begins(&mut self) {}

    /// It ends now.
    fn ends(&mut self) {}
}

/// Nobody.
impl Watcher for () {}

/// A run that is ordered: its options and its targets.
#[derive(Clone)]
pub struct Job {
    /// The load, in diskspd's options.
    pub options: Options,
    /// Volumes that the load goes to.
    pub targets: Vec<Target>,
    /// The bytes of `-Z<size>,<file>`.
    pub source: Option<Buf>,
    /// Set to stop before the time.
    pub shared: Arc<Shared>,
}

/// What all threads of a run know.
pub(super) struct Plan {
    pub(super) options: Options,
    pub(super) targets: Vec<(Target, TargetFacts, Option<Arc<Checker>>)>,
    /// The stream that all threads share, for each target.
    pub(super) interlocked: Vec<Arc<AtomicU64>>,
    pub(super) payload: Payload,
    pub(super) shared: Arc<Shared>,
    pub(super) seed: u64,
}

/// Bytes of one write that fills a target.
pub(super) const FILL: u64 = 1 << 20;
