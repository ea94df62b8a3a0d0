//! What the forms of a report have in common: the machine, rates, dates.

use crate::meter::Side;
use crate::result::RunResult;
use units::rfc3339::civil;

/// What the machine is called and made of, where that is known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Machine {
    /// The host's name; empty where the system does not say.
    pub name: String,
    /// Where each logical processor sits: socket, core, NUMA node.
    pub processors: Vec<ProcessorTopology>,
    /// How it saves power; the governor of its processors' frequency.
    pub power: Option<String>,
}

/// Where in the machine's topology a processor is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProcessorTopology {
    /// The processor.
    pub number: u32,
    /// The socket that it sits in.
    pub socket: u32,
    /// Its NUMA node.
    pub node: u32,
    /// Its core, which it may share with another one.
    pub core: u32,
}

impl Machine {
    /// How many different ones there are of what `of` names.
    pub(super) fn count<T: Ord>(&self, of: impl Fn(&ProcessorTopology) -> T) -> usize {
        let all: std::collections::BTreeSet<T> = self.processors.iter().map(of).collect();
        all.len()
    }

    pub(super) fn place(&self, number: u32) -> ProcessorTopology {
        let known = self.processors.iter().find(|at| at.number == number);
        known.copied().unwrap_or(ProcessorTopology {
            number,
            ..ProcessorTopology::default()
        })
    }
}

/// The rows of diskspd's percentile table.
pub(crate) const PERCENTILES: [(&str, f64); 15] = [
    ("min", 0.0),
    ("25th", 25.0),
    ("50th", 50.0),
    ("75th", 75.0),
    ("90th", 90.0),
    ("95th", 95.0),
    ("99th", 99.0),
    ("3-nines", 99.9),
    ("4-nines", 99.99),
    ("5-nines", 99.999),
    ("6-nines", 99.9999),
    ("7-nines", 99.999_99),
    ("8-nines", 99.999_999),
    ("9-nines", 99.999_999_9),
    ("max", 100.0),
];

/// Counts as figures for people.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

pub(crate) fn mebibytes_per_second(side: &Side, seconds: f64) -> f64 {
    per_second(side.bytes, seconds) / f64::from(1 << 20)
}

/// Nanoseconds since 1970 as `2026/11/21 10:00:00 UTC`.
#[must_use]
pub(crate) fn date(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (days, rest) = (seconds / 86400, seconds % 86400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}/{month:02}/{day:02} {:02}:{:02}:{:02} UTC",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// The deviation of operations a second from interval to interval.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn iops_deviation(counts: impl Iterator<Item = u64>, interval: f64) -> f64 {
    let rates: Vec<f64> = counts
        .map(|count| count as f64 / interval.max(1e-9))
        .collect();
    if rates.is_empty() {
        return 0.0;
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (squares / rates.len() as f64).sqrt()
}

/// Intervals that are whole: the last one may be cut by the end.
pub(crate) fn whole_intervals(result: &RunResult) -> usize {
    let interval = result.interval.as_secs_f64();
    let whole = (result.seconds / interval.max(1e-9) + 1e-6).floor();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small number that is not negative"
    )]
    let whole = whole as usize;
    whole.min(result.series().len())
}
