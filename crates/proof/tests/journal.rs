//! Volumes behind a journal in the simulator, over as many seeds as a test run has time for.
//!
//! `CAUSEWAY_JOURNAL_SEEDS` says how many of each story (the default below),
//! `CAUSEWAY_JOURNAL_FROM` from which on.

use env::sim::Hits;
use proof::sim::journal::{Journal, Lies, Rot};
use proof::sim::{Counts, Marks, Story, play};
use std::io::{self, Write};
use std::ops::Range;

fn setting(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |it| it.parse().expect("a number"))
}

/// The part of a story's seeds that one test plays.
fn part(seeds: u64, number: u64, of: u64) -> Range<u64> {
    let seeds = setting("CAUSEWAY_JOURNAL_SEEDS", seeds);
    let from = setting("CAUSEWAY_JOURNAL_FROM", 0);
    from + seeds * number / of..from + seeds * (number + 1) / of
}

/// Plays a story from many seeds; every fault and every class of events that it names must be met.
/// Standard error itself gets the count: it is seen also where all is well.
fn reported(story: &dyn Story, seeds: Range<u64>, once_failed: &[u64]) {
    let (mut hits, mut counts, mut marks) = (Hits::default(), Counts::default(), Marks::default());
    let schedules = seeds.end - seeds.start + once_failed.len() as u64;
    for seed in seeds.chain(once_failed.iter().copied()) {
        let report = match play(story, seed, 0) {
            Ok(report) => report,
            Err(failure) => panic!("{failure}"),
        };
        hits.add(&report.hits);
        counts += report.counts;
        marks.add(&report.marks);
    }
    println!("{counts:?}, {marks:?}, {hits:?}");
    let said = writeln!(
        io::stderr(),
        "simulator, {}: {schedules} schedules",
        story.name()
    );
    said.expect("whoever runs tests can read it");
    if schedules < 1000 {
        return;
    }
    assert_eq!(hits.missing(&story.faults()), [], "{hits:?}");
    let none: [&str; 0] = [];
    assert_eq!(marks.missing(story.classes()), none, "{marks:?}");
    assert!(counts.undecided * 50 <= counts.histories, "{counts:?}");
    // Of what changed since a cut little more is reported than what did.
    assert!(marks.of("wider") * 5 <= marks.of("exact"), "{marks:?}");
}

/// Schedules in `make test`: what two cores do in about four minutes.
const SCHEDULES: u64 = 36_000;

#[test]
fn nothing_acknowledged_is_lost_behind_a_journal() {
    reported(
        &Journal,
        part(SCHEDULES, 0, 2),
        &[
            154, 1720, 7531, 34_731, 67_714, 74_482, 212_632, 223_892, 385_900, 489_404, 516_765,
            547_477, 578_885, 732_118, 781_217, 940_534, 994_353,
        ],
    );
}

/// The same for disks that are hurt.
const HURT: u64 = 2_000;

#[test]
fn what_a_flipped_byte_costs_is_named() {
    reported(&Rot, part(HURT, 0, 1), &[]);
}

#[test]
fn a_disk_that_lies_costs_age_and_never_truth() {
    reported(&Lies, part(HURT, 0, 1), &[]);
}

#[test]
fn nothing_acknowledged_is_lost_behind_a_journal_on_the_other_half_of_the_seeds() {
    reported(&Journal, part(SCHEDULES, 1, 2), &[]);
}
