//! What a drill has measured.

use super::order::Step;
use crate::figures::{Figures, Interval};
use crate::rate::Rate;
use serde::Serialize;

/// How it is measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClusterOptions {
    /// Rate of every link.
    pub rate: Rate,
    /// Buffer of a port of the switches, in KiB.
    pub buffer_kib: u32,
    /// Seconds before the first step, and after everything is as before.
    pub before: u32,
    /// How often each drill is made.
    pub rounds: u32,
    /// Of the drills, only these; empty: all.
    pub drills: Vec<String>,
    /// These steps in place of the drills.
    pub list: Vec<Step>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            rate: Rate::megabits(250),
            buffer_kib: 64,
            before: 2,
            rounds: 1,
            drills: Vec::new(),
            list: Vec::new(),
        }
    }
}

/// A report of drills.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClusterReport {
    /// Its name.
    pub lab: &'static str,
    /// How it was measured.
    pub options: ClusterOptions,
    /// The drills.
    pub rows: Vec<ClusterRow>,
}

/// A drill, and what the load saw.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClusterRow {
    /// Its name.
    pub drill: String,
    /// Which time, from 1.
    pub round: u32,
    /// One line about it, for people.
    pub title: String,
    /// What was done, and what an operation took at most then.
    pub steps: Vec<StepRow>,
    /// The longest time in which nothing came back, in milliseconds.
    pub stall_ms: f64,
    /// The longest that any operation took, in milliseconds.
    pub longest_ms: f64,
    /// From the last step until both nodes had all of it, in seconds; `None`: not as long as was
    /// waited for it, or something was left broken.
    pub whole_seconds: Option<f64>,
    /// Operations that failed.
    pub errors: u64,
    /// Blocks that were verified.
    pub checked: u64,
    /// Blocks that were wrong.
    pub bad: u64,
    /// All of it is well: every bar, errors, data, and both copies at the end.
    pub met: bool,
    /// Seconds, and MB/s of every NIC of the host.
    pub nics: Vec<(f64, Vec<f64>)>,
    /// Seconds, and the state of the copy on each node from then on.
    pub states: Vec<(f64, [String; 2])>,
    /// What the bench said.
    pub figures: Figures,
}

/// A step that was done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StepRow {
    /// When, in seconds from the first bytes of the load.
    pub seconds: f64,
    /// In the words of a list.
    pub order: String,
    /// The longest of the operations that were under way then, or began after it and before the
    /// next one, in milliseconds.
    pub longest_ms: f64,
    /// What is well for that.
    pub bar_ms: Option<f64>,
}

impl StepRow {
    pub(super) fn new(seconds: f64, step: &Step) -> Self {
        Self {
            seconds,
            order: step.order.clone(),
            longest_ms: 0.0,
            bar_ms: step.bar_ms,
        }
    }

    /// It is within its bar.
    #[must_use]
    pub fn met(&self) -> bool {
        self.bar_ms.is_none_or(|bar| self.longest_ms <= bar)
    }
}

/// How exact the time of an interval is, in seconds: its length, and the time until the load is
/// seen to begin.
const BLUR: f64 = 0.3;

/// Gives each step the longest operation that it may have held up.
pub(super) fn attribute(steps: &mut [StepRow], series: &[Interval]) {
    for interval in series {
        let (end, took) = (interval.ms / 1e3, interval.max_us / 1e6);
        let begin = end - took - BLUR;
        // The first step that came while it was under way, or else the last one before it.
        let during = steps
            .iter()
            .position(|it| it.seconds >= begin && it.seconds <= end + BLUR);
        let before = steps.iter().rposition(|it| it.seconds < begin);
        if let Some(at) = during.or(before) {
            // Steps at one moment are one.
            let moment = steps[at].seconds;
            for step in steps.iter_mut() {
                if (step.seconds - moment).abs() < BLUR {
                    step.longest_ms = step.longest_ms.max(took * 1e3);
                }
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn step(seconds: f64) -> StepRow {
        StepRow {
            seconds,
            order: String::new(),
            longest_ms: 0.0,
            bar_ms: Some(100.0),
        }
    }

    #[test]
    fn an_operation_counts_for_the_step_that_held_it_up_not_for_the_one_that_let_it_go() {
        let mut steps = [step(2.0), step(2.1), step(6.0)];
        let at = |seconds: f64, took: f64| Interval {
            ms: seconds * 1e3,
            bytes: 1,
            max_us: took * 1e6,
        };
        // Before all of them, held up by the first two, and after the last.
        attribute(
            &mut steps,
            &[at(1.0, 0.5), at(6.4, 4.3), at(9.0, 0.05), at(5.0, 0.02)],
        );
        let longest = steps.map(|it| (it.longest_ms.round(), it.met()));
        assert_eq!(longest, [(4300.0, false), (4300.0, false), (50.0, true)]);
    }
}
