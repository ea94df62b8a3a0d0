//! Two results beside each other.

use crate::report::view::{Document, RunView, SideView, WorkloadView};
use std::fmt::Write as _;

/// One figure of both.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The figure's name and unit, for people.
    pub name: String,
    /// In the first result.
    pub before: f64,
    /// In the second one.
    pub after: f64,
    /// A larger figure is the better one, as with IOPS and unlike latency.
    pub more_is_better: bool,
}

impl Row {
    /// By how much of a hundred the second is larger; none where the first is 0.
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        (self.before != 0.0).then(|| (self.after / self.before - 1.0) * 100.0)
    }

    /// Whether that is `better`, `worse` or the `same`; nothing where the first is 0.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match self.change() {
            None => "",
            Some(change) if change.abs() < 0.5 => "same",
            Some(change) if (change > 0.0) == self.more_is_better => "better",
            Some(_) => "worse",
        }
    }
}

/// One figure of a side: its name, where it is, more is better.
type Figure = (&'static str, fn(&SideView) -> Option<f64>, bool);

/// What is compared of each side of a run.
const FIGURES: [Figure; 5] = [
    ("IOPS", |side| side.iops, true),
    ("mean us", |side| side.latency_us.mean, false),
    ("99% us", |side| side.latency_us.p99, false),
    ("99.9% us", |side| side.latency_us.p999, false),
    ("longest us", |side| side.latency_us.max, false),
];

/// What both results have in common.
///
/// # Errors
/// Where one of them is no result, they have nothing in common, or they are of different workloads.
pub fn compare(before: &Document, after: &Document) -> Result<Vec<Row>, String> {
    let rows = match (before, after) {
        (Document::Profile(before), Document::Profile(after)) => {
            let mut rows = Vec::new();
            for one in before.steps.iter().filter(|step| !step.name.is_empty()) {
                let Some(other) = after.step(&one.name) else {
                    continue;
                };
                let prefix = format!("{}: ", one.name);
                same_workload(&one.run, &other.run, &prefix)?;
                rows.extend(figures(&one.run, &other.run, &prefix));
            }
            rows
        }
        (Document::Run(before), Document::Run(after)) => {
            same_workload(before, after, "")?;
            figures(before, after, "")
        }
        (Document::Profile(_), Document::Run(_)) | (Document::Run(_), Document::Profile(_)) => {
            return Err("one is the result of a profile, the other of a single run".to_owned());
        }
    };
    if rows.is_empty() {
        return Err("they have no figures in common: are both results of -Rjson?".to_owned());
    }
    Ok(rows)
}

/// What was asked of the target, as far as the result says: one of before there was `workload`
/// says less.
fn workload(run: &RunView) -> WorkloadView {
    run.workload.clone().unwrap_or_else(|| WorkloadView {
        block_bytes: run.block_bytes,
        threads: run.threads,
        outstanding: run.outstanding,
        write_percent: run.write_percent,
        ..WorkloadView::default()
    })
}

/// Refuses what was asked for in different ways: the figures of such runs say nothing about each
/// other.
fn same_workload(before: &RunView, after: &RunView, prefix: &str) -> Result<(), String> {
    let differing = workload(before).differences(&workload(after)).into_iter();
    let all: Vec<String> = differing
        .map(|(entry, one, other)| format!("{entry} is {one} in A and {other} in B"))
        .collect();
    if all.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{prefix}these are different workloads: {}",
        all.join("; ")
    ))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn figures(before: &RunView, after: &RunView, prefix: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: String, figure: &dyn Fn(&RunView) -> Option<f64>, more_is_better| {
        if let (Some(before), Some(after)) = (figure(before), figure(after))
            && (before != 0.0 || after != 0.0)
        {
            rows.push(Row {
                name: format!("{prefix}{name}"),
                before,
                after,
                more_is_better,
            });
        }
    };
    let read: fn(&RunView) -> &SideView = |run| &run.read;
    let write: fn(&RunView) -> &SideView = |run| &run.write;
    for (side, of) in [("read", read), ("write", write)] {
        for (name, figure, more) in FIGURES {
            add(format!("{side} {name}"), &|run| figure(of(run)), more);
        }
    }
    let count = |number: Option<u64>| number.map(|it| it as f64);
    add(
        "longest stall ms".to_owned(),
        &|run| run.stall_ms_max,
        false,
    );
    add(
        "mean queue depth".to_owned(),
        &|run| run.queue_depth_mean,
        true,
    );
    add("errors".to_owned(), &|run| count(run.errors), false);
    add("bad blocks".to_owned(), &|run| count(run.verify.bad), false);
    rows
}

/// The rows under a heading, aligned for a terminal, with the change of each in percent.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let width = rows
        .iter()
        .map(|row| row.name.len())
        .max()
        .unwrap_or(0)
        .max(6);
    let mut out = format!(
        "{:<width$}  {:>14}  {:>14}  {:>9}\n",
        "figure", "A", "B", "change"
    );
    for row in rows {
        let change = row
            .change()
            .map_or_else(|| "-".to_owned(), |change| format!("{change:+.1}%"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{:<width$}  {:>14.3}  {:>14.3}  {change:>9}  {}",
            row.name,
            row.before,
            row.after,
            row.verdict()
        );
    }
    out.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    fn compare(before: &Value, after: &Value) -> Result<Vec<Row>, String> {
        let read = |value: &Value| Document::deserialize(value).map_err(|error| error.to_string());
        super::compare(&read(before)?, &read(after)?)
    }

    fn run(iops: f64, p99: f64) -> Value {
        json!({ "read": { "iops": iops, "latency_us": { "mean": 1.0, "p99": p99 } }, "errors": 0, "stall_ms_max": 5 })
    }

    #[test]
    fn more_operations_are_better_and_longer_latencies_are_worse() {
        let rows = compare(&run(100.0, 10.0), &run(150.0, 20.0)).unwrap();
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
        assert_eq!(
            (row("read IOPS").change(), row("read IOPS").verdict()),
            (Some(50.0), "better")
        );
        assert_eq!(
            (row("read 99% us").change(), row("read 99% us").verdict()),
            (Some(100.0), "worse")
        );
        assert_eq!(row("read mean us").verdict(), "same");
        assert!(
            rows.iter().all(|row| row.name != "errors"),
            "nothing in both is no row"
        );
        let line = "read IOPS                100.000         150.000     +50.0%  better\n";
        assert!(table(&rows).contains(line), "{}", table(&rows));
    }

    #[test]
    fn different_workloads_are_refused_by_what_differs() {
        let of = |block: u64, access: &str, write_percent: u64| {
            let mut run = run(1.0, 1.0);
            run["workload"] =
                json!({ "block_bytes": block, "access": access, "write_percent": write_percent });
            run
        };
        assert!(compare(&of(4096, "random", 0), &of(4096, "random", 0)).is_ok());
        let why = compare(&of(4096, "random", 30), &of(65536, "sequential", 30)).unwrap_err();
        assert!(
            why.contains("block_bytes is 4096 in A and 65536 in B"),
            "{why}"
        );
        assert!(why.contains("access is \"random\" in A"), "{why}");
        assert!(!why.contains("write_percent"), "{why}");
        // Nothing is a value, unlike an entry that is not there.
        let region = |region: &Value| {
            let mut run = of(4096, "random", 0);
            run["workload"]["region_bytes"] = region.clone();
            run
        };
        let (all, part) = (region(&Value::Null), region(&json!(1 << 20)));
        assert!(compare(&all, &all).is_ok());
        let why = compare(&all, &part).unwrap_err();
        assert!(
            why.contains("region_bytes is null in A and 1048576 in B"),
            "{why}"
        );
        assert!(compare(&part, &of(4096, "random", 0)).is_ok());
        // What a later version says besides counts between two of it.
        let later = |word: &str| {
            let mut run = of(4096, "random", 0);
            run["workload"]["zeal"] = word.into();
            run
        };
        assert!(compare(&later("a"), &later("a")).is_ok());
        let why = compare(&later("a"), &later("b")).unwrap_err();
        assert!(why.contains("zeal is \"a\" in A"), "{why}");
        assert!(compare(&later("a"), &of(4096, "random", 0)).is_ok());
        // A result of an older version says less, and what it says counts.
        let mut old = run(1.0, 1.0);
        old["block_bytes"] = 4096.into();
        assert!(compare(&old, &of(4096, "random", 0)).is_ok());
        assert!(compare(&old, &of(8192, "random", 0)).is_err());
        // The same of each step of a profile.
        let steps = |block| {
            let mut step = of(block, "random", 0);
            step["name"] = "read".into();
            json!({ "steps": [step] })
        };
        assert!(compare(&steps(4096), &steps(4096)).is_ok());
        let why = compare(&steps(4096), &steps(512)).unwrap_err();
        assert!(why.starts_with("read: "), "{why}");
    }

    #[test]
    fn profiles_are_compared_step_by_step_and_other_things_not_at_all() {
        let step = |name: &str, iops| {
            let mut step = run(iops, 1.0);
            step["name"] = name.into();
            step
        };
        let before = json!({ "steps": [step("read 4K", 10.0), step("gone", 1.0)] });
        let after = json!({ "steps": [step("read 4K", 20.0)] });
        let rows = compare(&before, &after).unwrap();
        assert_eq!(rows[0].name, "read 4K: read IOPS");
        assert!(compare(&before, &run(1.0, 1.0)).is_err());
        assert!(compare(&json!({}), &json!([])).is_err());
    }
}
