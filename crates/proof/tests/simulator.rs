//! The simulator over many seeds: what is right passes, what is planted is caught.

use env::sim::Hits;
use proof::sim::copy::ExtendedCopy;
use proof::sim::disk::Disk;
use proof::sim::multipath::Paths;
use proof::sim::node::WholeNode;
use proof::sim::order::Order;
use proof::sim::raw::{Bug, Raw};
use proof::sim::reservations::Reservations;
use proof::sim::resets::Resets;
use proof::sim::target::Target;
use proof::sim::{Counts, FILE_FAULTS, Failure, Marks, NET_FAULTS, Scene, Story, play, run};

/// Runs seeds until one fails.
fn seeds(
    scene: &dyn Scene,
    seeds: impl Iterator<Item = u64>,
) -> Result<(Hits, Counts), Box<Failure>> {
    let (mut hits, mut counts) = (Hits::default(), Counts::default());
    for seed in seeds {
        let report = run(scene, seed, 0)?;
        hits.add(&report.hits);
        counts += report.counts;
    }
    Ok((hits, counts))
}

/// Seeds that once failed, always run again.
const ONCE_FAILED: &[(&str, u64)] = &[
    ("target", 395),
    ("target", 8446),
    ("reservations", 30),
    ("reservations", 742),
    ("reservations", 786),
    ("reservations", 2230),
    ("copy", 322),
    ("node", 180),
    ("node", 198),
    ("node", 406),
    ("node", 1265),
    ("node", 5_003_545),
    ("order", 5116),
    ("order", 5_005_469),
    ("paths", 130),
    ("reservations", 7675),
];

fn once_failed(name: &str) -> impl Iterator<Item = u64> {
    let of_it = ONCE_FAILED.iter().filter(move |(scene, _)| *scene == name);
    of_it.map(|(_, seed)| *seed)
}

/// Plays a story from many seeds; every fault and every class of events that it names must be met.
fn reported(story: &dyn Story, seeds: std::ops::Range<u64>) {
    let (mut hits, mut counts, mut marks) = (Hits::default(), Counts::default(), Marks::default());
    let count = seeds.end - seeds.start;
    for seed in seeds.chain(once_failed(story.name())) {
        let report = match play(story, seed, 0) {
            Ok(report) => report,
            Err(failure) => panic!("{failure}"),
        };
        hits.add(&report.hits);
        counts += report.counts;
        marks.add(&report.marks);
    }
    println!(
        "{}: {count} seeds, {counts:?}, {marks:?}, {hits:?}",
        story.name()
    );
    assert_eq!(hits.missing(&story.faults()), [], "{hits:?}");
    let none: [&str; 0] = [];
    assert_eq!(marks.missing(story.classes()), none, "{marks:?}");
    assert!(counts.undecided * 50 <= counts.histories, "{counts:?}");
}

#[test]
fn ordered_tasks_of_many_hosts_keep_their_places() {
    reported(&Order, 0..1000);
}

#[test]
fn no_answer_is_lost_between_a_reset_and_the_end_of_a_command() {
    reported(&Resets, 0..500);
}

#[test]
fn no_write_of_a_lost_path_ever_comes_back_over_a_newer_one() {
    reported(&Paths::default(), 0..500);
}

#[test]
fn a_layer_that_waits_for_no_fence_is_caught() {
    let found = (0..2000).find_map(|seed| play(&Paths::without_fences(), seed, 0).err());
    println!("{}", found.expect("no ghost was seen in 2000 seeds"));
}

#[test]
fn no_host_that_is_shut_out_by_a_reservation_writes() {
    reported(&Reservations, 0..1000);
}

#[test]
fn two_units_copy_to_each_other_and_do_not_wait_for_each_others_disks() {
    reported(&ExtendedCopy, 0..300);
}

#[test]
fn a_node_comes_back_with_what_was_acknowledged() {
    reported(&WholeNode, 0..500);
}

#[test]
fn a_plain_file_passes_and_every_class_of_faults_is_met() {
    let (hits, counts) = match seeds(&Raw::with(Bug::None), 0..300) {
        Ok(done) => done,
        Err(failure) => panic!("{failure}"),
    };
    assert_eq!(hits.missing(FILE_FAULTS), [], "{hits:?}");
    assert!(counts.swaps > 100 && counts.miscompares > 100, "{counts:?}");
    assert!(counts.undecided * 50 < counts.histories, "{counts:?}");
}

#[test]
fn files_and_devices_with_their_layers_pass_a_thousand_seeds() {
    let (hits, counts) = match seeds(&Disk::default(), 0..1000) {
        Ok(done) => done,
        Err(failure) => panic!("{failure}"),
    };
    assert_eq!(hits.missing(FILE_FAULTS), [], "{hits:?}");
    assert!(counts.undecided * 50 < counts.histories, "{counts:?}");
}

#[test]
fn simulator_seeds() {
    let all = (0..1000).chain(once_failed("target"));
    let (hits, counts) = match seeds(&Target::default(), all) {
        Ok(done) => done,
        Err(failure) => panic!("{failure}"),
    };
    let wanted: Vec<_> = FILE_FAULTS.iter().chain(NET_FAULTS).copied().collect();
    assert_eq!(hits.missing(&wanted), [], "{hits:?}");
    assert!(counts.swaps > 100 && counts.miscompares > 100, "{counts:?}");
    assert!(counts.undecided * 50 < counts.histories, "{counts:?}");
}

#[test]
fn a_target_on_a_disk_that_lies_about_its_cache_is_caught() {
    let Err(failure) = seeds(&Target::on_a_lying_disk(), 0..50) else {
        panic!("nothing was lost in 50 seeds although nothing was synced");
    };
    assert!(failure.what[0].contains("none of"), "{failure}");
}

#[test]
fn a_run_of_a_whole_target_can_be_repeated() {
    for seed in 0..3 {
        let once = run(&Target::default(), seed, 0).map(|report| report.hash);
        let again = run(&Target::default(), seed, 0).map(|report| report.hash);
        assert_eq!(once.ok(), again.ok(), "seed {seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..5 {
        let once = run(&Raw::with(Bug::None), seed, 0).map(|report| (report.hash, report.steps));
        let again = run(&Raw::with(Bug::None), seed, 0).map(|report| (report.hash, report.steps));
        assert_eq!(once.ok(), again.ok(), "seed {seed}");
    }
}

#[test]
fn every_planted_bug_is_caught() {
    for bug in [
        Bug::FlushDoesNothing,
        Bug::StableIsCached,
        Bug::NameNotSynced,
        Bug::BlocksInHalves,
        Bug::ErrorsReadAsZeroes,
        Bug::SwapHoldsNothing,
        Bug::ErrorsWriteAsDone,
    ] {
        let found = seeds(&Raw::with(bug), 0..200);
        let Err(failure) = found else {
            panic!("{bug:?} was not caught in 200 seeds");
        };
        println!("{bug:?}: {failure}");
    }
}
