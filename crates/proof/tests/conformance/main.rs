//! Debian's `iscsi-test-cu` as the judge: all 230 tests, each in its own process with `--dataloss`
//! and two paths, on thin LUNs of 512, 512e and 4096 in files of a pool.
//!
//! **Rules.** None fails. A test that fails is a failure of the target unless [`tables::EXCUSES`]
//! names it with the clause and a corrected test, which runs here too and passes. An excused test
//! that passes fails the run, so that excuses go away. A skip must stand in [`tables::SKIPS`] with
//! its reason.
//!
//! A suite has a target and a LUN of its own per kind of LUN: what a test leaves behind (a
//! reservation, a pattern) reaches no other suite, and suites run side by side.
//! `docs/conformance/iscsi-test-cu.md` has the results, and is compared with them; `UPDATE=1`
//! writes them into it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

#[path = "../common/mod.rs"]
mod common;
mod corrected;
mod judge;
mod published;
mod tables;

use common::daemon::Daemon;
use common::tools::need;
use judge::Judged;
use std::fmt::Write;
use std::sync::Mutex;

/// Tests that the package in Debian 12 has.
const TESTS: usize = 230;

/// Suites that run at once.
const WORKERS: usize = 4;

/// What a LUN looks like to a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// 512-byte blocks all through.
    B512,
    /// 512-byte logical blocks on 4096-byte physical ones.
    B512e,
    /// 4096-byte blocks all through.
    B4096,
}

const KINDS: [Kind; 3] = [Kind::B512, Kind::B512e, Kind::B4096];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::B512 => "512",
            Self::B512e => "512e",
            Self::B4096 => "4096",
        }
    }

    fn fields(self) -> &'static str {
        match self {
            Self::B512 => "block_size = 512\nphysical_block_size = 512",
            Self::B512e => "block_size = 512\nphysical_block_size = 4096",
            Self::B4096 => "block_size = 4096\nphysical_block_size = 4096",
        }
    }

    /// Target and LUN of a suite.
    fn target(self, suite: &str) -> String {
        format!("k{}-{}", self.name(), suite.to_lowercase())
    }
}

/// Objects: for every kind and suite a LUN, a target and a grant.
fn objects(suites: &[&str]) -> String {
    let mut text = String::from("[[host]]\nname = \"all\"\niqn = [\"*\"]\n");
    for kind in KINDS {
        for suite in suites {
            let (name, fields) = (kind.target(suite), kind.fields());
            let read_only = tables::READ_ONLY_SUITES.contains(suite);
            write!(
                text,
                "[[lun]]\nname = \"{name}\"\nsize = \"1GiB\"\nthin = true\npool = \"default\"\n{fields}\n\
                 [[target]]\nname = \"{name}\"\niqn = \"{}:{name}\"\nportal_group = \"default\"\n\
                 [[grant]]\nhost = \"all\"\nlun = \"{name}\"\ntarget = \"{name}\"\nlun_id = 0\nread_only = {read_only}\n",
                common::daemon::IQN
            )
            .unwrap();
        }
    }
    text
}

/// Runs the suites on several threads; the tests of one suite run one after the other.
fn run_all(daemon: &Daemon, jobs: Vec<(Kind, Vec<String>)>) -> Vec<(Kind, Judged)> {
    let queue = Mutex::new(jobs.into_iter());
    let results = Mutex::new(Vec::new());
    let work = || {
        loop {
            let job = queue.lock().unwrap().next();
            let Some((kind, tests)) = job else { return };
            for test in tests {
                let target = kind.target(judge::suite(&test));
                let judged = judge::run(&test, [0, 1].map(|p| daemon.url(p, &target, 0)));
                results.lock().unwrap().push((kind, judged));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by(|a, b| (&a.1.test, a.0).cmp(&(&b.1.test, b.0)));
    results
}

// spec: SBC-3 5.8 "PRE-FETCH (10) command", SPC-2 7.21 "RESERVE (6) command", 7.17 "RELEASE (6)
// command", SBC-3 5.2 "COMPARE AND WRITE command", 5.6 "ORWRITE (16) command".
#[test]
fn every_test_of_iscsi_test_cu_passes_or_is_excused_with_a_corrected_test_that_does() {
    need(&["iscsi-test-cu", "timeout"]);
    let tests = judge::list();
    assert_eq!(
        tests.len(),
        TESTS,
        "another version of iscsi-test-cu: read its new tests"
    );
    let mut suites: Vec<&str> = tests.iter().map(|test| judge::suite(test)).collect();
    suites.dedup();
    let daemon = Daemon::start("conformance");
    let mut names = suites.clone();
    names.push(corrected::SUITE);
    daemon.apply(&objects(&names));
    let of_suite = |suite: &str| -> Vec<String> {
        let own = tests.iter().filter(|test| judge::suite(test) == suite);
        own.cloned().collect()
    };
    let jobs = KINDS
        .iter()
        .flat_map(|kind| suites.iter().map(|suite| (*kind, of_suite(suite))));
    let results = run_all(&daemon, jobs.collect());
    let complaints: Vec<String> = results
        .iter()
        .filter_map(|(kind, judged)| tables::complaint(*kind, judged))
        .chain(tables::leftovers(&tests))
        .collect();
    for kind in KINDS {
        println!("{}: {}", kind.name(), count(&results, kind));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    published::compare(&results);
    for kind in KINDS {
        for excuse in tables::EXCUSES
            .iter()
            .filter(|excuse| excuse.kinds.contains(&kind))
        {
            println!("corrected: {} on {}", excuse.test, kind.name());
            (excuse.corrected)(&daemon.portals[0], &kind.target(corrected::SUITE));
        }
    }
    daemon.stop();
}

fn count(results: &[(Kind, Judged)], kind: Kind) -> String {
    let counts = published::counts(results, kind);
    format!(
        "{} passed, {} failed, {} skipped",
        counts.passed, counts.excused, counts.skipped
    )
}
