//! What a run gave.

use crate::meter::{Interval, Side};
use crate::verify::Tally;
use std::time::Duration;

/// Processor time of one processor over the measured time, of a hundred.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Processor {
    /// As the kernel counts logical processors, from 0.
    pub number: u32,
    /// In programs.
    pub user: f64,
    /// In the kernel, interrupts included.
    pub kernel: f64,
    /// Without work.
    pub idle: f64,
}

/// What one path of a multipath volume did.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PathFigures {
    /// The host's port.
    pub from: String,
    /// The target's.
    pub portal: String,
    /// How it is now.
    pub state: String,
    /// Operations.
    pub ios: u64,
    /// Bytes that its operations moved, reads and writes together.
    pub bytes: u64,
    /// Segments that TCP sent again.
    pub retransmits: u64,
}

/// What TCP said of one path at one moment of the measured time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TcpSample {
    /// Since the measured time began.
    pub at: Duration,
    /// Host port and target port.
    pub path: String,
    /// Round-trip time in microseconds; `None` without a connection.
    pub round_trip_us: Option<u32>,
    /// Segments sent again since the measured time began.
    pub retransmits: u64,
    /// Bytes that were asked for or sent and not answered.
    pub bytes_in_flight: u64,
}

/// What one thread did on one target.
#[derive(Clone, Debug)]
pub struct Share {
    /// Counted from 0 over all threads of the run.
    pub thread: u32,
    /// Its place in `RunResult::targets`.
    pub target: usize,
    /// The reads of this thread alone.
    pub read: Side,
    /// The writes of this thread alone.
    pub write: Side,
    /// One entry for each interval of the measured time, in order.
    pub series: Vec<Interval>,
    /// The longest time in which something was in flight and nothing ended.
    pub stall: Duration,
    /// Latencies together, in nanoseconds.
    pub(crate) time_in_flight: u64,
    /// Operations that failed.
    pub errors: u64,
    /// The first failure.
    pub first_error: Option<String>,
    /// Operations that had not come back when the run was given up.
    pub missing: u64,
}

/// A target as the report names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetFacts {
    /// As it was written.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// First byte that was used.
    pub base: u64,
    /// Bytes that were used.
    pub length: u64,
}

/// What a run gave.
#[derive(Clone, Default, Debug)]
pub struct RunResult {
    /// The measured time.
    pub seconds: f64,
    /// By thread and target.
    pub shares: Vec<Share>,
    /// What was measured, in the order of the command line.
    pub targets: Vec<TargetFacts>,
    /// Threads that submitted operations, all together.
    pub threads: u32,
    /// Length of an interval of the series.
    pub interval: Duration,
    /// Verification, where it was asked for.
    pub verify: Option<Tally>,
    /// One entry for each logical processor of this machine.
    pub processors: Vec<Processor>,
    /// Paths, where the targets have some.
    pub paths: Vec<PathFigures>,
    /// What TCP said of them each second, where that was asked for.
    pub tcp: Vec<TcpSample>,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// Why the last pass of a verification could not read all.
    pub unread: Option<String>,
    /// It was stopped before its time.
    pub stopped: bool,
}

impl RunResult {
    /// All reads.
    #[must_use]
    pub fn read(&self) -> Side {
        self.sum(|share| &share.read)
    }

    /// All writes.
    #[must_use]
    pub fn write(&self) -> Side {
        self.sum(|share| &share.write)
    }

    /// Both.
    #[must_use]
    pub fn total(&self) -> Side {
        let mut all = self.read();
        all.add(&self.write());
        all
    }

    fn sum(&self, side: impl Fn(&Share) -> &Side) -> Side {
        let mut all = Side::default();
        self.shares.iter().for_each(|share| all.add(side(share)));
        all
    }

    /// The series of all threads and targets.
    #[must_use]
    pub fn series(&self) -> Vec<Interval> {
        let count = self
            .shares
            .iter()
            .map(|share| share.series.len())
            .max()
            .unwrap_or(0);
        let mut all = vec![Interval::default(); count];
        for share in &self.shares {
            all.iter_mut()
                .zip(&share.series)
                .for_each(|(sum, one)| sum.add(one));
        }
        all
    }

    /// Operations that failed or never came back.
    #[must_use]
    pub fn errors(&self) -> u64 {
        let of_shares = self.shares.iter().map(|share| share.errors + share.missing);
        of_shares.sum::<u64>() + u64::from(self.unread.is_some())
    }

    /// Operations that never came back.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.shares.iter().map(|share| share.missing).sum()
    }

    /// The first failure of any thread.
    #[must_use]
    pub fn first_error(&self) -> Option<&str> {
        let of_shares = self
            .shares
            .iter()
            .find_map(|share| share.first_error.as_deref());
        of_shares.or(self.unread.as_deref())
    }

    /// The longest time in which a thread had something in flight on a target and nothing ended.
    #[must_use]
    pub fn stall(&self) -> Duration {
        self.shares
            .iter()
            .map(|share| share.stall)
            .max()
            .unwrap_or_default()
    }

    /// Operations in flight, on average over the measured time (Little's law).
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn mean_queue_depth(&self) -> f64 {
        let nanos: f64 = self
            .shares
            .iter()
            .map(|share| share.time_in_flight as f64)
            .sum();
        if self.seconds > 0.0 {
            nanos / 1e9 / self.seconds
        } else {
            0.0
        }
    }

    /// All went well: no error, nothing missing, nothing wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.errors() == 0 && self.verify.as_ref().is_none_or(|tally| tally.bad == 0)
    }
}
