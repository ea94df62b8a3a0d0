//! The page that shows people the results: it says what was measured, or the run fails.

use crate::judge::{Judged, Verdict};
use crate::{KINDS, Kind, tables};
use std::fmt::Write;
use std::path::Path;

/// Where the table of every test begins; it goes on to the end of the page.
const ALL_RESULTS: &str = "| Test | 512 | 512e | 4096 |\n";

/// A line of the page's first table begins so.
const OURS: &str = "| **Causeway** |";

/// Verdicts of a kind of LUN, once there is nothing to complain of: then every failure is excused.
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) excused: usize,
    pub(crate) skipped: usize,
}

pub(crate) fn counts(results: &[(Kind, Judged)], kind: Kind) -> Counts {
    let of = |wanted: fn(&Verdict) -> bool| {
        let own = results.iter().filter(|(of, _)| *of == kind);
        own.filter(|(_, judged)| wanted(&judged.verdict)).count()
    };
    Counts {
        passed: of(|verdict| matches!(verdict, Verdict::Passed)),
        excused: of(|verdict| matches!(verdict, Verdict::Failed(_))),
        skipped: of(|verdict| matches!(verdict, Verdict::Skipped(_))),
    }
}

/// Compares the page with the results; `UPDATE=1` writes them into it.
pub(crate) fn compare(results: &[(Kind, Judged)]) {
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance/iscsi-test-cu.md");
    let is = std::fs::read_to_string(&page).unwrap();
    let should_be = with_results(&is, results);
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        std::fs::write(&page, should_be).unwrap();
        return;
    }
    let differs = is
        .lines()
        .zip(should_be.lines())
        .find(|(is, should)| is != should);
    assert!(
        is == should_be,
        "docs/conformance/iscsi-test-cu.md does not say what was measured (UPDATE=1 mends it): {differs:?}"
    );
}

/// The page with these results in it.
fn with_results(page: &str, results: &[(Kind, Judged)]) -> String {
    let (text, _) = page
        .split_once(ALL_RESULTS)
        .expect("the page has a table of results");
    let mut kinds = KINDS.iter();
    let mut out = String::new();
    for line in text.lines() {
        let own = if line.starts_with(OURS) {
            kinds.next()
        } else {
            None
        };
        match own {
            Some(kind) => writeln!(out, "{}", ours(results, *kind)).unwrap(),
            None => writeln!(out, "{line}").unwrap(),
        }
    }
    assert_eq!(
        kinds.next(),
        None,
        "the page has a line for every kind of LUN"
    );
    out + &all(results)
}

fn ours(results: &[(Kind, Judged)], kind: Kind) -> String {
    let counts = counts(results, kind);
    format!(
        "{OURS} {} | {} | {} | 0 | {} |",
        kind.name(),
        counts.passed,
        counts.excused,
        counts.skipped
    )
}

/// A line for each test, a column for each kind.
fn all(results: &[(Kind, Judged)]) -> String {
    let mut text = format!("{ALL_RESULTS}|---|---|---|---|\n");
    for line in results.chunks(KINDS.len()) {
        let name = line[0].1.test.trim_start_matches("ALL.");
        write!(text, "| {name} |").unwrap();
        for (kind, judged) in line {
            let word = match &judged.verdict {
                Verdict::Passed => "passed",
                Verdict::Skipped(_) => "skipped",
                Verdict::Failed(_) if tables::excuse(*kind, &judged.test).is_some() => "excused",
                Verdict::Failed(_) => "FAILED",
            };
            write!(text, " {word} |").unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn a_page_that_says_something_else_is_noticed_and_mended() {
    let results: Vec<_> = KINDS
        .map(|kind| {
            let verdict = match kind {
                Kind::B512 => Verdict::Passed,
                Kind::B512e => Verdict::Skipped(String::new()),
                Kind::B4096 => Verdict::Failed(String::new()),
            };
            let test = String::from("ALL.WriteSame10.UnmapUntilEnd");
            (kind, Judged { test, verdict })
        })
        .into();
    let page =
        format!("# Title\n\n{OURS} a |\n{OURS} b |\n{OURS} c |\n\n{ALL_RESULTS}| Old | x |\n");
    let mended = with_results(&page, &results);
    let expected = "# Title\n\n| **Causeway** | 512 | 1 | 0 | 0 | 0 |\n| **Causeway** | 512e | 0 | 0 | 0 | 1 |\n\
                    | **Causeway** | 4096 | 0 | 1 | 0 | 0 |\n\n| Test | 512 | 512e | 4096 |\n|---|---|---|---|\n\
                    | WriteSame10.UnmapUntilEnd | passed | skipped | excused |\n";
    assert_eq!(mended, expected);
    assert_eq!(with_results(&mended, &results), mended);
}
