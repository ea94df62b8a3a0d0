//! Commits that people can read: a title that fits a line of any tool, and one thing in each.

use super::{Complaint, Finding};
use std::path::Path;
use std::process::Command;

/// Commits up to this one were made before the law. It does not move again: a law whose start
/// follows the commits that break it holds for none.
const BASE: &str = "58fbb700effe8e4146aee09b9bf82d06faa0009d";

/// Columns that no title may pass.
const TITLE_MAX: usize = 72;

/// Lines that a commit may change without saying why, added and removed ones together. Of a file
/// that git sees to have another name, or to be a copy, only what differs counts; code that went
/// from one file to another counts at both.
const LINES_MAX: usize = 1000;

/// What begins the line of a body that says that the rest moved as well, or changed its name.
const REASONS: [&str; 2] = ["Moves:", "Renames:"];

/// Lines that such a commit may add to those it removes, as a part of them: what moved leaves its
/// place, and a new name stands where the old one stood.
const ADDED_PART: usize = 10;

/// Between two commits, and between the fields of one.
const COMMIT: char = '\u{1}';
const FIELD: char = '\u{2}';

/// Checks the commits since [`BASE`]. Where git or its history is not there, as in an archive of
/// the sources or a shallow clone, it says so and complains of nothing: a tree that is well is not
/// refused for how it was brought here.
pub(super) fn check(root: &Path) -> Vec<Finding> {
    let complaints = match log(root) {
        Some(log) => judge(&log),
        None => without_history(),
    };
    let findings = complaints.into_iter().map(|complaint| Finding {
        subject: "history".to_owned(),
        count: 1,
        complaint,
    });
    findings.collect()
}

fn log(root: &Path) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["log", "--no-merges", "--numstat", "-M", "-C"])
        .arg(format!("--format={COMMIT}%h{FIELD}%s{FIELD}%b{FIELD}"))
        .arg(format!("{BASE}..HEAD"))
        .output();
    let output = output.ok().filter(|it| it.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn without_history() -> Vec<Complaint> {
    eprintln!(
        "tidy: the history since commit {} is not here: its commits are not checked (`git fetch \
         --unshallow` brings it)",
        &BASE[..12]
    );
    Vec::new()
}

fn judge(log: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for commit in log.split(COMMIT).skip(1) {
        let mut fields = commit.split(FIELD);
        let mut next = || fields.next().unwrap_or_default();
        let (name, title, body, changes) = (next(), next(), next(), next());
        let columns = title.chars().count();
        if columns > TITLE_MAX {
            complaints.push(format!(
                "commit {name}: the title has {columns} columns, {TITLE_MAX} at most: shorten it"
            ));
        }
        complaints.extend(judge_size(name, body, changes));
    }
    complaints
}

fn judge_size(name: &str, body: &str, changes: &str) -> Option<Complaint> {
    let (added, removed) = changes.lines().map(changed).fold((0, 0), |sum, it| {
        let (added, removed) = it;
        (sum.0 + added, sum.1 + removed)
    });
    let lines: usize = added + removed;
    let is_explained = body
        .lines()
        .any(|line| REASONS.iter().any(|it| line.starts_with(it)));
    if lines <= LINES_MAX {
        None
    } else if !is_explained {
        Some(format!(
            "commit {name}: it changes {lines} lines, {LINES_MAX} at most: make several of it, or say why \
             in a line of its body that begins with `Moves:` or `Renames:`"
        ))
    } else if added > removed + removed / ADDED_PART {
        Some(format!(
            "commit {name}: it says that it moves or renames, but adds {added} lines and removes {removed}: \
             make a commit of its own of what is new"
        ))
    } else {
        None
    }
}

/// Lines added and removed by a line of `--numstat`; `Cargo.lock` is written by cargo, and binary
/// files have none.
fn changed(line: &str) -> (usize, usize) {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let (added, removed, file) = (next(), next(), next());
    if file.ends_with("Cargo.lock") {
        return (0, 0);
    }
    let count = |it: &str| it.parse::<usize>().unwrap_or_default();
    (count(added), count(removed))
}

#[cfg(test)]
mod test {
    use super::*;

    fn log(title: &str, body: &str, changes: &str) -> String {
        format!("{COMMIT}abc{FIELD}{title}{FIELD}{body}{FIELD}\n\n{changes}\n")
    }

    #[test]
    fn a_title_may_have_72_columns() {
        let fits = "é".repeat(TITLE_MAX);
        let long = format!("{fits}x");
        let both = log(&fits, "", "1\t2\ta.rs") + &log(&long, "", "");
        let complaints = judge(&both);
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].contains("has 73 columns"), "{complaints:?}");
    }

    #[test]
    fn a_large_commit_says_why() {
        let most = "600\t400\ta.rs\n9999\t9999\tCargo.lock\n-\t-\ta.png";
        assert_eq!(judge(&log("a", "", most)), Vec::<Complaint>::new());
        let more = format!("{most}\n1\t0\tb.rs");
        assert_eq!(judge(&log("a", "", &more)).len(), 1);
        let moved = "600\t600\ta.rs";
        assert_eq!(judge(&log("a", "It moves: things", moved)).len(), 1);
        for reason in REASONS {
            let body = format!("Why.\n\n{reason} the module as it is");
            assert_eq!(judge(&log("a", &body, moved)), Vec::<Complaint>::new());
        }
    }

    #[test]
    fn what_is_new_is_no_move_whatever_the_body_says() {
        let of = |changes: &str| judge(&log("a", "Moves: the module", changes));
        assert_eq!(of("800\t600\ta.rs\n80\t200\tb.rs"), Vec::<Complaint>::new());
        assert_eq!(of("0\t5000\ta.rs"), Vec::<Complaint>::new());
        let found = of("900\t0\ta.rs\n81\t800\tb.rs");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].contains("adds 981 lines and removes 800"),
            "{found:?}"
        );
    }

    // The second copy of the name is meant: whoever moves the start has to contradict this, and
    // what CONTRIBUTING.md says.
    #[test]
    fn the_law_begins_where_contributing_says_and_nowhere_later() {
        assert_eq!(BASE, "58fbb700effe8e4146aee09b9bf82d06faa0009d");
        let contributing = include_str!("../../../../CONTRIBUTING.md");
        let said = format!("Checked are the commits after {}.", &BASE[..8]);
        assert!(contributing.contains(&said), "CONTRIBUTING.md: {said}");
    }

    #[test]
    fn a_missing_history_is_no_complaint() {
        assert_eq!(super::log(Path::new("/proc/self/no-such-folder")), None);
        assert_eq!(without_history(), Vec::<Complaint>::new());
    }
}
