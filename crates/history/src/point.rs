//! What is known of a metric over some time.

use crate::code::{code, value};
use crate::metric::{Behaviour, Metric};

/// What is known of a metric over some seconds; with none it is a gap.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Point {
    /// Seconds of which something is known.
    pub seconds: u64,
    /// Of a counter by how much it grew, of a gauge its figures of all these seconds together.
    pub sum: u64,
    /// The least of a gauge.
    pub min: u64,
    /// The most of a gauge.
    pub max: u64,
}

impl Point {
    /// One reading of a metric, with the seconds that it stands for.
    pub(crate) fn of(metric: Metric, figure: u64) -> Self {
        let seconds = metric.every();
        let sum = match metric.behaviour() {
            Behaviour::Counter | Behaviour::Tally => figure,
            Behaviour::Gauge | Behaviour::Level => figure.saturating_mul(seconds),
        };
        Self {
            seconds,
            sum,
            min: figure,
            max: figure,
        }
    }

    /// One second.
    #[cfg(test)]
    pub(crate) const fn one(figure: u64) -> Self {
        Self {
            seconds: 1,
            sum: figure,
            min: figure,
            max: figure,
        }
    }

    /// Nothing is known.
    #[must_use]
    pub const fn is_gap(&self) -> bool {
        self.seconds == 0
    }

    /// The mean of a gauge in its unit, or the growth of a counter by the second.
    #[must_use]
    pub fn mean_of(&self, metric: Metric) -> f64 {
        in_units(self.sum, metric) / float(self.seconds.max(1))
    }

    /// The least of a gauge, in its unit.
    #[must_use]
    pub fn min_of(&self, metric: Metric) -> f64 {
        in_units(self.min, metric)
    }

    /// The most of a gauge, in its unit.
    #[must_use]
    pub fn max_of(&self, metric: Metric) -> f64 {
        in_units(self.max, metric)
    }

    /// Both together.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.is_gap() {
            *self = *other;
        } else if !other.is_gap() {
            self.seconds += other.seconds;
            self.sum = self.sum.saturating_add(other.sum);
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
    }

    /// By the second.
    pub(crate) fn mean(&self) -> u64 {
        (self.sum + self.seconds / 2)
            .checked_div(self.seconds)
            .unwrap_or(0)
    }
}

/// Figures have eight binary digits, and sums of them fewer than fit.
fn float(figure: u64) -> f64 {
    let high = u32::try_from(figure >> 32).unwrap_or(0);
    let low = u32::try_from(figure & u64::from(u32::MAX)).unwrap_or(0);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

fn in_units(figure: u64, metric: Metric) -> f64 {
    float(figure) / float(metric.scale())
}

/// A point as it lies in memory and, field by field, in a file: the seconds, and codes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Packed {
    pub(crate) seconds: u16,
    /// Of a counter the sum, of a gauge the mean.
    pub(crate) middle: u16,
    pub(crate) min: u16,
    pub(crate) max: u16,
}

impl Packed {
    /// One second.
    pub(crate) const fn one(code: u16) -> Self {
        Self {
            seconds: 1,
            middle: code,
            min: code,
            max: code,
        }
    }

    pub(crate) fn of(metric: Metric, point: &Point) -> Self {
        if point.is_gap() {
            return Self::default();
        }
        let middle = match metric.behaviour() {
            Behaviour::Counter | Behaviour::Tally => point.sum,
            Behaviour::Gauge | Behaviour::Level => point.mean(),
        };
        Self {
            seconds: u16::try_from(point.seconds).unwrap_or(u16::MAX),
            middle: code(middle),
            min: code(point.min),
            max: code(point.max),
        }
    }

    pub(crate) fn point(self, metric: Metric) -> Point {
        let (seconds, middle) = (u64::from(self.seconds), value(self.middle));
        let sum = match metric.behaviour() {
            Behaviour::Counter | Behaviour::Tally => middle,
            Behaviour::Gauge | Behaviour::Level => middle.saturating_mul(seconds),
        };
        Point {
            seconds,
            sum,
            min: value(self.min),
            max: value(self.max),
        }
    }
}
