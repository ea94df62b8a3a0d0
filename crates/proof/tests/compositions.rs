//! Every composition of layers over the simulated disk: see [`proof::sim::layers`].
//!
//! `CAUSEWAY_LAYERS_ROUNDS` says how many seeds each composition gets; `sim --scene layers --seed N` runs one of them again.

use env::sim::Hits;
use proof::sim::layers::{Composition, Layers};
use proof::sim::{Counts, FILE_FAULTS, run};

/// Seeds of each composition in `make test`.
const ROUNDS: u64 = 2;

/// Seeds that once failed, always run again.
const ONCE_FAILED: [u64; 1] = [2349];

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
