//! How a run is, from what its child says.

use crate::line::{BenchLine, Outcome, Phase, Second};
use crate::second::PATHS_MAX;
use crate::spec::{Limits, LoadView, Spec};
use manifest::code::Code;
use manifest::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a run is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Its child works.
    Running,
    /// It has a result, and all was well.
    Finished,
    /// It has none, or operations failed, or data was wrong.
    Failed,
    /// Somebody ended it; what was measured until then is its result.
    Cancelled,
    /// The daemon ended before it did.
    Interrupted,
}

/// The figures of a result that lists show.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Summary {
    /// Operations a second.
    pub iops: f64,
    /// Reads a second.
    pub read_iops: f64,
    /// Writes a second.
    pub write_iops: f64,
    /// Reads and writes together.
    pub bytes_per_second: f64,
    /// Mean of latencies, in microseconds.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99 of 100 were not longer.
    pub p99_us: f64,
    /// 999 of 1000.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Operations that failed.
    pub errors: u64,
}

impl Summary {
    fn of(result: &Value) -> Self {
        let total = &result["total"];
        let figure = |of: &Value| of.as_f64().unwrap_or(0.0);
        let latency = |name: &str| figure(&total["latency_us"][name]);
        Self {
            iops: figure(&total["iops"]),
            read_iops: figure(&result["read"]["iops"]),
            write_iops: figure(&result["write"]["iops"]),
            bytes_per_second: figure(&total["bytes_per_second"]),
            mean_us: latency("mean"),
            p50_us: latency("p50"),
            p99_us: latency("p99"),
            p999_us: latency("p999"),
            max_us: latency("max"),
            errors: result["errors"].as_u64().unwrap_or(0),
        }
    }
}

/// What is shown before a run begins.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct PlanView {
    /// What a shell would run.
    pub command_line: String,
    /// What the load goes to.
    pub target: String,
    /// `lun`, `memory` or `url`.
    pub kind: String,
    /// What is on the target changes.
    pub writes: bool,
    /// What it touches, a line each.
    pub touches: Vec<String>,
    /// Why it would not be started as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// What somebody types to have it started all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// What would be lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
    /// Who would be disturbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<String>,
}

/// A run, as lists show it.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct RunView {
    /// Its number: it rises, and none is used twice.
    pub id: u64,
    /// What people call it; may be empty.
    pub name: String,
    /// Whether it goes on, and how it ended.
    pub state: RunState,
    /// What it is at, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What the load goes to.
    pub target: String,
    /// `lun`, `memory` or `url`.
    pub kind: String,
    /// What is on the target changes.
    pub writes: bool,
    /// Who started it.
    pub by: String,
    /// When it began.
    pub started: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What a shell would run.
    pub command_line: String,
    /// What was asked for, with what was left out filled in.
    pub load: LoadView,
    /// Since the load began.
    pub elapsed_seconds: f64,
    /// From its start to its end.
    pub whole_seconds: f64,
    /// How far it is, of a hundred.
    pub percent: u8,
    /// Until its end, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// The result in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// A run with its figures.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct RunDetail {
    /// As lists have it.
    #[serde(flatten)]
    pub run: RunView,
    /// What was done in each second, or in those that were asked for.
    pub seconds: Vec<Second>,
    /// As `causeway bench -Rjson` writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// What was started, or would be.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct StartedView {
    /// What it touches.
    pub plan: PlanView,
    /// The run; absent where it was only asked what would be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunView>,
}

/// What may be asked, and what goes on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BenchView {
    /// The run that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u64>,
    /// Runs that are kept.
    pub kept: u64,
    /// The most that are.
    pub kept_max: u64,
    /// What they take, in bytes.
    pub kept_bytes: u64,
    /// The most that they take.
    pub kept_bytes_max: u64,
    /// Bounds of a run.
    pub limits: Limits,
}

/// One figure of two results.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct FigureView {
    /// Its name and unit.
    pub figure: String,
    /// In the first result.
    pub a: f64,
    /// In the second one.
    pub b: f64,
    /// By how much of a hundred the second is larger; `null` where the first is 0.
    pub change_pct: Option<f64>,
    /// `better`, `worse`, `same`, or nothing.
    pub verdict: String,
}

/// Two results beside each other.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct CompareView {
    /// The first.
    pub a: RunView,
    /// The second.
    pub b: RunView,
    /// Their figures.
    pub rows: Vec<FigureView>,
}

/// Who started a run, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Started {
    /// Its number.
    pub id: u64,
    /// User or token.
    pub by: String,
    /// RFC 3339.
    pub at: String,
    /// What a shell would run.
    pub command_line: String,
}

/// A run and all that its child has said.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct RunRecord {
    /// As far as its child has said.
    pub view: RunView,
    /// As they came; 3,660 at most.
    pub seconds: Vec<Second>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl RunRecord {
    /// A run that begins.
    #[must_use]
    pub fn new(spec: &Spec, started: Started) -> Self {
        let whole = spec.load.seconds + spec.load.warm_up_seconds;
        let view = RunView {
            id: started.id,
            name: spec.name.clone(),
            state: RunState::Running,
            phase: Some(Phase::Starting),
            target: spec.kind.target(),
            kind: spec.kind.word().to_owned(),
            writes: spec.writes(),
            by: started.by,
            started: started.at,
            ended: None,
            command_line: started.command_line,
            load: spec.load.clone(),
            elapsed_seconds: 0.0,
            whole_seconds: whole.into(),
            percent: 0,
            seconds_left: Some(whole.into()),
            problem: None,
            summary: None,
        };
        Self {
            view,
            seconds: Vec::new(),
            outcome: None,
        }
    }

    /// Takes a line of its child; `true`: it was the last one.
    pub fn take(&mut self, line: BenchLine) -> bool {
        match line {
            BenchLine::Second(second) => {
                self.second(second);
                false
            }
            BenchLine::Done(outcome) => {
                self.view.summary = Some(Summary::of(&outcome.result));
                self.view.problem.clone_from(&outcome.problem);
                self.outcome = Some(*outcome);
                true
            }
            BenchLine::Failed(problem) => {
                self.view.problem = Some(problem);
                true
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to 100, and seconds of an hour"
    )]
    fn second(&mut self, mut second: Second) {
        let view = &mut self.view;
        let is_new = self
            .seconds
            .last()
            .is_none_or(|last| last.second < second.second);
        // A minute more than the longest run has, for what comes late.
        let most = Limits::ALL.seconds_max as usize + 60;
        if !is_new || self.seconds.len() >= most || !second.whole.is_finite() {
            return;
        }
        second.paths.truncate(PATHS_MAX);
        view.elapsed_seconds = second.elapsed;
        view.whole_seconds = second.whole;
        let part = (second.elapsed / second.whole.max(0.001)).clamp(0.0, 1.0);
        view.percent = (part * 100.0) as u8;
        view.seconds_left = Some((second.whole - second.elapsed).max(0.0).ceil() as u64);
        view.phase = Some(if part >= 1.0 {
            Phase::Ending
        } else {
            second.phase
        });
        self.seconds.push(second);
    }

    /// Its child is gone; `cancelled`: somebody wanted it to end; `said`: the last of what it wrote
    /// to standard error.
    pub fn end(&mut self, at: String, cancelled: bool, said: &str) {
        let view = &mut self.view;
        view.ended = Some(at);
        view.phase = None;
        view.seconds_left = None;
        view.state = if cancelled {
            RunState::Cancelled
        } else if view.problem.is_some() || self.outcome.is_none() {
            RunState::Failed
        } else {
            view.percent = 100;
            RunState::Finished
        };
        if cancelled && self.outcome.is_some() {
            // What it says of a run that was cut off is no news.
            return;
        }
        if view.state == RunState::Failed && view.problem.is_none() {
            let last: String = said.trim().chars().take(500).collect();
            let detail = format!("the bench ended without a result: {last}");
            view.problem = Some(Problem::new(Code::BenchFailed, detail));
        }
    }

    /// The daemon ended before it did.
    pub fn interrupt(&mut self) {
        if self.view.state != RunState::Running {
            return;
        }
        let view = &mut self.view;
        view.state = RunState::Interrupted;
        view.phase = None;
        view.seconds_left = None;
        let detail = "the daemon ended before the run did";
        view.problem = Some(Problem::new(Code::BenchFailed, detail).hint("start it again"));
    }

    /// What somebody sees who knows the seconds up to `since`.
    #[must_use]
    pub fn detail(&self, since: u64) -> RunDetail {
        let new = self.seconds.iter().filter(|it| it.second > since);
        RunDetail {
            run: self.view.clone(),
            seconds: new.cloned().collect(),
            result: self.outcome.as_ref().map(|it| it.result.clone()),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::spec::WantedRun;
    use serde_json::json;

    fn record() -> RunRecord {
        let wanted: WantedRun = serde_json::from_value(json!({ "lun": "a" })).unwrap();
        let started = Started {
            id: 7,
            by: "admin".to_owned(),
            at: "t".to_owned(),
            command_line: String::new(),
        };
        RunRecord::new(&wanted.check().unwrap(), started)
    }

    fn second(number: u64, elapsed: f64) -> BenchLine {
        BenchLine::Second(Second {
            second: number,
            phase: Phase::Measuring,
            elapsed,
            whole: 12.0,
            iops: 1.0,
            read_iops: None,
            write_iops: None,
            bytes_per_second: 0.0,
            errors: 0,
            p50_us: None,
            p99_us: None,
            max_us: None,
            paths: Vec::new(),
        })
    }

    fn done() -> BenchLine {
        BenchLine::Done(Box::new(Outcome {
            result: json!({ "total": { "iops": 5.0, "latency_us": { "p99": 7.0 } }, "errors": 0 }),
            csv: String::new(),
            svg: String::new(),
            text: String::new(),
            problem: None,
        }))
    }

    #[test]
    fn a_run_goes_on_and_is_finished_with_its_result() {
        let mut record = record();
        assert!(!record.take(second(1, 3.0)));
        assert_eq!(
            (record.view.percent, record.view.seconds_left),
            (25, Some(9))
        );
        // What comes twice, or from the past, is none.
        record.take(second(1, 9.0));
        assert_eq!(record.seconds.len(), 1);
        assert!(record.take(done()));
        record.end("u".to_owned(), false, "");
        assert_eq!(record.view.state, RunState::Finished);
        let summary = record.view.summary.clone().unwrap();
        assert!((summary.p99_us - 7.0).abs() < 1e-9);
        assert_eq!(record.detail(1).seconds.len(), 0);
        assert_eq!(record.detail(0).seconds.len(), 1);
    }

    #[test]
    fn a_child_that_dies_leaves_its_last_words_as_the_reason() {
        let mut record = record();
        record.end("u".to_owned(), false, "out of memory\n");
        assert_eq!(record.view.state, RunState::Failed);
        let problem = record.view.problem.unwrap();
        assert!(problem.detail.ends_with("out of memory"), "{problem}");
    }

    #[test]
    fn what_was_cancelled_keeps_what_it_measured() {
        let mut record = record();
        record.take(done());
        record.end("u".to_owned(), true, "");
        assert_eq!(record.view.state, RunState::Cancelled);
        assert!(record.outcome.is_some());
        record.interrupt();
        assert_eq!(record.view.state, RunState::Cancelled, "it had ended");
    }

    #[test]
    fn a_child_that_says_too_much_is_not_kept() {
        let mut record = record();
        for number in 1..=10_000 {
            record.take(second(number, 1.0));
        }
        assert_eq!(record.seconds.len(), 3660);
    }
}
