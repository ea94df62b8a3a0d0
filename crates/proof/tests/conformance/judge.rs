//! One test of `iscsi-test-cu`: run it, and read CUnit's summary.
//!
//! The program's exit code is 0 even with failures, and a passing test may write `[FAILED]` into
//! its log, so the summary's columns are what counts.

use crate::common::tools::{self, must};

/// Longest time of one test, in seconds; the slowest takes about five on an idle machine.
const SECONDS_MAX: u32 = 90;

/// How a test ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All assertions held.
    Passed,
    /// With what it says.
    Failed(String),
    /// It did not apply; with what it says.
    Skipped(String),
}

/// A test and its end.
pub(crate) struct Judged {
    pub(crate) test: String,
    pub(crate) verdict: Verdict,
}

/// All tests: names of family `ALL` with suite and test.
pub(crate) fn list() -> Vec<String> {
    let text = must("iscsi-test-cu", &["--list"]);
    let names = text.lines().map(str::trim);
    names
        .filter(|name| name.starts_with("ALL.") && name.matches('.').count() == 2)
        .map(str::to_owned)
        .collect()
}

/// The suite of a test.
pub(crate) fn suite(test: &str) -> &str {
    test.split('.').nth(1).unwrap_or_default()
}

/// Runs a test over two paths and judges it.
pub(crate) fn run(test: &str, urls: [String; 2]) -> Judged {
    let [one, two] = urls;
    let arguments = ["--dataloss", "-t", test, &one, &two];
    let said = tools::run(SECONDS_MAX, "iscsi-test-cu", &arguments);
    Judged {
        test: test.to_owned(),
        verdict: verdict(said.code, &said.text),
    }
}

fn verdict(code: Option<i32>, text: &str) -> Verdict {
    let row = |name: &str| -> Option<Vec<u32>> {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name))?;
        Some(
            line.split_whitespace()
                .skip(1)
                .map_while(|word| word.parse().ok())
                .collect(),
        )
    };
    // Total, Ran, Passed, Failed; "asserts" has n/a for what is inactive.
    let (tests, asserts) = (row("tests "), row("asserts "));
    let ran = tests.as_ref().is_some_and(|row| row.starts_with(&[1, 1]));
    let failed = |row: &Option<Vec<u32>>| {
        row.as_ref()
            .and_then(|row| row.get(3))
            .is_none_or(|n| *n > 0)
    };
    if code != Some(0) || !ran || failed(&tests) || failed(&asserts) {
        let why = if code == Some(124) {
            "it took too long\n"
        } else {
            ""
        };
        let reported = text.lines().skip_while(|line| !line.contains("Test:"));
        let reported: Vec<&str> = reported
            .filter(|line| !line.trim().is_empty())
            .take(30)
            .collect();
        return Verdict::Failed(format!("{why}exit code {code:?}\n{}", reported.join("\n")));
    }
    match text.split_once("[SKIPPED]") {
        Some((_, rest)) => {
            Verdict::Skipped(rest.lines().next().unwrap_or_default().trim().to_owned())
        }
        None => Verdict::Passed,
    }
}

#[test]
fn the_summary_is_what_counts() {
    let summary = |tests: &str, asserts: &str| {
        format!("  Test: X ...  [FAILED] log\n tests {tests} 0\n asserts {asserts} n/a\n")
    };
    assert_eq!(
        verdict(Some(0), &summary("1 1 1 0", "9 9 9 0")),
        Verdict::Passed
    );
    let failing = [
        (Some(0), summary("1 1 0 1", "9 9 8 1")),
        (Some(0), summary("1 0 0 0", "0 0 0 0")),
        (Some(124), summary("1 1 1 0", "9 9 9 0")),
        (Some(0), "Failed to connect".to_owned()),
        (None, String::new()),
    ];
    for (code, text) in failing {
        assert!(
            matches!(verdict(code, &text), Verdict::Failed(_)),
            "{code:?} {text}"
        );
    }
    let skipped = summary("1 1 1 0", "1 1 1 0") + "[SKIPPED] no disk\n";
    assert_eq!(
        verdict(Some(0), &skipped),
        Verdict::Skipped("no disk".into())
    );
}
