//! Every composition of layers over the simulated disk: see [`proof::sim::layers`].
//!
//! `CAUSEWAY_LAYERS_ROUNDS` says how many seeds each composition gets; `sim --scene layers --seed
//! N` runs one of them again.

use env::sim::Hits;
use proof::sim::layers::{Composition, Layers};
use proof::sim::limits::{self, Backing, LimitTally};
use proof::sim::{Counts, FILE_FAULTS, Marks, run};

/// Seeds of each composition in `make test`.
const ROUNDS: u64 = 2;

/// Seeds that once failed, always run again.
const ONCE_FAILED: [u64; 1] = [2349];

/// The same of full disks.
const ONCE_FAILED_FULL: [u64; 1] = [5_001_616];

#[test]
fn every_composition_of_layers_keeps_what_it_acknowledged() {
    let rounds = std::env::var("CAUSEWAY_LAYERS_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |it| it.parse().expect("a number"));
    let scene = Layers::default();
    let all = Composition::all().len() as u64;
    let (mut hits, mut counts) = (Hits::default(), Counts::default());
    for seed in (0..all * rounds).chain(ONCE_FAILED) {
        match run(&scene, seed, 0) {
            Ok(report) => {
                hits.add(&report.hits);
                counts += report.counts;
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    let closed = scene.closed();
    println!(
        "{all} compositions, seeds 0 to {}: {counts:?}, {hits:?}",
        all * rounds - 1
    );
    assert_eq!(hits.missing(FILE_FAULTS), [], "{hits:?}");
    assert!(closed * 20 > all * rounds, "{closed} lives were closed");
    assert!(counts.swaps > 100 && counts.miscompares > 100, "{counts:?}");
    assert!(counts.undecided * 50 < counts.histories, "{counts:?}");
}

#[test]
fn a_disk_that_is_full_costs_no_data_and_ends_by_itself_over_every_composition() {
    let scene = Layers::on_full_disks();
    let all = Composition::all().len() as u64;
    let (mut counts, mut marks) = (Counts::default(), Marks::default());
    for seed in (0..all * ROUNDS).chain(ONCE_FAILED_FULL) {
        match run(&scene, seed, 0) {
            Ok(report) => {
                marks.add(&report.marks);
                counts += report.counts;
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    println!(
        "full disks, seeds 0 to {}: {counts:?}, {marks:?}",
        all * ROUNDS - 1
    );
    for when in ["room_while_open", "room_after_a_start_without"] {
        assert!(marks.of(when) > 100, "{marks:?}");
    }
    assert!(counts.no_space > 1000, "{counts:?}");
    assert!(counts.undecided * 50 < counts.histories, "{counts:?}");
}

/// Tries the limits over every composition with such blocks, or over those whose names contain what
/// `CAUSEWAY_LIMITS_ONLY` says. Each stands on sparse files, and by turns on allocated ones or
/// devices; with `CAUSEWAY_LIMITS_ALL` on all of them.
fn try_limits(blocks: &str) {
    let only = std::env::var("CAUSEWAY_LIMITS_ONLY").ok();
    let every = only.is_some() || std::env::var_os("CAUSEWAY_LIMITS_ALL").is_some();
    let (mut all, mut runs) = (LimitTally::default(), 0);
    for (number, chosen) in Composition::of_units().into_iter().enumerate() {
        let skipped = [Backing::Thick, Backing::Device][number % 2];
        for backing in Backing::ALL {
            if backing == skipped && !every {
                continue;
            }
            let name = format!("{chosen:?} on {backing:?}");
            let is_asked = only.as_ref().is_none_or(|it| name.contains(it));
            if !name.starts_with(blocks) || !limits::has(chosen, backing) || !is_asked {
                continue;
            }
            match limits::run(chosen, backing) {
                Ok(report) => all += report,
                Err(failure) => panic!("{failure}"),
            }
            runs += 1;
        }
    }
    println!("{runs} compositions on their backings, {blocks}: {all:?}");
    if only.is_none() {
        let wanted = if every { 3 * 42 + 2 } else { 2 * 42 + 2 };
        assert_eq!(
            runs, wanted,
            "42 compositions on files and devices, and memory"
        );
        assert!(all.unmapped > 100 << 20, "{all:?}");
        assert!(all.between_turns_most > 0, "{all:?}");
    }
}

// spec: SBC-3 5.43 "WRITE AND VERIFY (10) command", 5.6 "ORWRITE (16) command", 5.28 "UNMAP
// command".
#[test]
fn every_command_at_every_limit_does_what_it_says_over_every_composition_of_512() {
    try_limits("512, ");
}

#[test]
fn every_command_at_every_limit_does_what_it_says_over_every_composition_of_512_in_4096() {
    try_limits("512 in 4096, ");
}

#[test]
fn every_command_at_every_limit_does_what_it_says_over_every_composition_of_4096() {
    try_limits("4096, ");
}
