//! When a run begins, counts and ends, and how far it is.

use crate::options::Options;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::Now;

/// The moments of a run, the same for all its threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The first operation begins.
    pub(crate) start: Now,
    /// What ends from here on counts,
    pub(crate) from: Now,
    /// and before this.
    pub(crate) to: Now,
    /// No operation begins any more.
    pub(crate) end: Now,
    /// What has not come back is given up.
    pub(crate) deadline: Now,
}

impl Window {
    pub(crate) fn new(start: Now, options: &Options) -> Self {
        let from = start.after(options.warm_up);
        let to = from.after(options.duration);
        let end = to.after(options.cool_down);
        Self {
            start,
            from,
            to,
            end,
            deadline: end.after(options.deadline),
        }
    }
}

/// What all threads add up while they run; read by whoever shows progress.
#[derive(Debug)]
pub struct Shared {
    pub(super) stop_at: AtomicU64,
    ios: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            stop_at: AtomicU64::new(u64::MAX),
            ios: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }
}

impl Shared {
    /// It shall stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop_at.load(Ordering::Relaxed) != u64::MAX
    }

    pub(super) fn ended_at(&self) -> Option<Now> {
        let at = self.stop_at.load(Ordering::Acquire);
        (at != u64::MAX).then_some(Now(at))
    }

    pub(super) fn add(&self, ios: u64, bytes: u64) {
        self.ios.fetch_add(ios, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sample(&self, at: Now) -> Sample {
        Sample {
            at,
            ios: self.ios.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}

/// Counters at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    at: Now,
    ios: u64,
    bytes: u64,
    errors: u64,
}

/// Which part of a run it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing counts yet.
    WarmUp,
    /// It counts.
    Measuring,
    /// Nothing counts any more.
    CoolDown,
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Which part.
    pub phase: Phase,
    /// Time since the start.
    pub elapsed: Duration,
    /// From start to end.
    pub whole: Duration,
    /// Operations a second since the last time.
    pub iops: f64,
    /// Bytes a second since the last time.
    pub bytes_per_second: f64,
    /// Failures since the start.
    pub errors: u64,
}

impl Progress {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub(super) fn between(last: &Sample, now: &Sample, window: &Window) -> Self {
        let seconds = now.at.since(last.at).as_secs_f64().max(1e-3);
        // Most of the interval says what it belongs to: its ends are never quite where a phase
        // ends.
        let middle = last.at.after(now.at.since(last.at) / 2);
        let phase = if middle < window.from {
            Phase::WarmUp
        } else if middle < window.to {
            Phase::Measuring
        } else {
            Phase::CoolDown
        };
        Self {
            phase,
            elapsed: now.at.since(window.start),
            whole: window.end.since(window.start),
            iops: (now.ios - last.ios) as f64 / seconds,
            bytes_per_second: (now.bytes - last.bytes) as f64 / seconds,
            errors: now.errors,
        }
    }
}
