//! How what the layers of a LUN count is reported.

use super::{LayerFacts, Storage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What `lun show` passes to a storage field of the LUN that it shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The LUN's name.
    pub name: &'a str,
    /// How large it is, in its logical blocks.
    pub block_count: u64,
    /// Its blocks are gone when the daemon ends.
    pub is_memory: bool,
    /// What its layers did.
    pub layers: &'a LayerFacts,
}

/// What a limit, or the shares of others, made wait since the LUN came into service.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct WaitFacts {
    /// Operations that had to wait.
    pub deferred: u64,
    /// How long those of them that went on had waited, together, in microseconds.
    pub waited_us: u64,
    /// Operations that wait now.
    pub waiting: u64,
}

impl fmt::Display for WaitFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = self.waited_us.checked_div(self.deferred).unwrap_or(0);
        write!(
            f,
            "{} operations had to wait, {mean} us on average, {} wait now",
            self.deferred, self.waiting
        )
    }
}

/// A figure of a metric, in the unit in which it was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// A number of things or bytes.
    Number(u64),
    /// Microseconds, which a metric gives as seconds.
    Micros(u64),
}

/// A metric with a series for each LUN that has the layer. Those of one name follow each other, and
/// differ in their labels.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in full.
    pub name: &'static str,
    /// `counter` or `gauge`.
    pub kind: &'static str,
    /// What it counts, without a full stop; words of code between backticks, for the reference.
    pub help: &'static str,
    /// Labels beside the LUN's name.
    pub labels: &'static [(&'static str, &'static str)],
    /// Its figure; `None`: the LUN has no such series.
    pub figure: fn(&Storage, &LayerFacts) -> Option<Figure>,
}

impl Metric {
    /// One that only grows.
    pub(super) const fn counter(
        name: &'static str,
        help: &'static str,
        figure: fn(&Storage, &LayerFacts) -> Option<Figure>,
    ) -> Self {
        Self {
            name,
            kind: "counter",
            help,
            labels: &[],
            figure,
        }
    }

    /// One that goes up and down.
    pub(super) const fn gauge(
        name: &'static str,
        help: &'static str,
        figure: fn(&Storage, &LayerFacts) -> Option<Figure>,
    ) -> Self {
        Self {
            kind: "gauge",
            ..Self::counter(name, help, figure)
        }
    }

    /// Names of its labels, the LUN's first.
    pub fn label_names(&self) -> impl Iterator<Item = &'static str> {
        let others = self.labels.iter().map(|(name, _)| *name);
        std::iter::once("lun").chain(others)
    }

    /// The series with these labels of a family: those with other labels stand beside it.
    pub(super) const fn with(self, labels: &'static [(&'static str, &'static str)]) -> Self {
        Self { labels, ..self }
    }
}
