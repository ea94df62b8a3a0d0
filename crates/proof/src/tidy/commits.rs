//! Commits that people can read: a title that fits a line of any tool, and one thing in each.

use super::{Complaint, Finding};
use std::path::Path;
use std::process::Command;

/// Commits up to this one were made before the law.
const BASE: &str = "43b8b8025bc12dd6258d43b0a930496fd133916d";

/// Columns that no title may pass.
const TITLE_MAX: usize = 72;

/// Lines that a commit may change without saying why; what only moved to another file is not
/// counted.
const LINES_MAX: usize = 1000;

/// What begins the line of a body that says why there are more.
const REASONS: [&str; 2] = ["Moves:", "Renames:"];

/// Between two commits, and between the fields of one.
const COMMIT: char = '\u{1}';
const FIELD: char = '\u{2}';

/// Checks the commits since [`BASE`]; none where git or its history is not there.
pub(super) fn check(root: &Path) -> Vec<Finding> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["log", "--no-merges", "--numstat", "-M"])
        .arg(format!("--format={COMMIT}%h{FIELD}%s{FIELD}%b{FIELD}"))
        .arg(format!("{BASE}..HEAD"))
        .output();
    let Some(output) = output.ok().filter(|it| it.status.success()) else {
        return Vec::new();
    };
    let complaints = judge(&String::from_utf8_lossy(&output.stdout));
    let findings = complaints.into_iter().map(|complaint| Finding {
        subject: "history".to_owned(),
        count: 1,
        complaint,
    });
    findings.collect()
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
        let lines: usize = changes.lines().map(changed).sum();
        let is_explained = body
            .lines()
            .any(|line| REASONS.iter().any(|it| line.starts_with(it)));
        if lines > LINES_MAX && !is_explained {
            complaints.push(format!(
                "commit {name}: it changes {lines} lines, {LINES_MAX} at most: make several of it, or say why \
                 in a line of its body that begins with `Moves:` or `Renames:`"
            ));
        }
    }
    complaints
}

/// The lines that a line of `--numstat` tells; `Cargo.lock` is written by cargo, and binary files
/// have none.
fn changed(line: &str) -> usize {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let (added, removed, file) = (next(), next(), next());
    if file.ends_with("Cargo.lock") {
        return 0;
    }
    let count = |it: &str| it.parse::<usize>().unwrap_or_default();
    count(added) + count(removed)
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
        assert_eq!(judge(&log("a", "It moves: things", &more)).len(), 1);
        for reason in REASONS {
            let body = format!("Why.\n\n{reason} the module as it is");
            assert_eq!(judge(&log("a", &body, &more)), Vec::<Complaint>::new());
        }
    }

    #[test]
    fn where_there_is_no_history_there_is_nothing_to_say() {
        assert_eq!(check(Path::new("/proc/self/no-such-folder")), []);
    }
}
