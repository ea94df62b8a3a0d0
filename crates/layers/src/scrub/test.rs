//! Scrubs find what is bad, exactly, and give way.

use super::*;
use crate::test::simulate;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Lba, LbaRange, Now};
use volume::{IoError, OpKind, Volume, over};
use volume_test::plain::Plain;
use volume_test::{Action, FaultRule, Faults};

fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

/// Walks a machine over a disk with bad blocks, and gives what it found.
fn walk(machine: &mut Machine, bad: &[(u64, BadKind)], stop_at: u64) {
    while let Some(piece) = machine.next(BlockCount(100)) {
        if piece.start().0 >= stop_at {
            return;
        }
        let first = bad.iter().find(|(lba, _)| piece.contains(range(*lba, 1)));
        let outcome = match first {
            None => Ok(()),
            // The kernel names the beginning of what it was asked for.
            Some((_, BadKind::Unreadable)) => Err(IoError::MediumError { lba: piece.start() }),
            Some((lba, BadKind::Mismatch)) => Err(IoError::Integrity { lba: Lba(*lba) }),
        };
        machine
            .answered(piece, outcome, Duration::from_millis(1))
            .unwrap();
    }
}

#[test]
fn every_bad_block_is_found_at_its_place_also_when_the_scrub_goes_on_later() {
    let bad = [
        (5, BadKind::Mismatch),
        (6, BadKind::Mismatch),
        (7, BadKind::Unreadable),
        (990, BadKind::Unreadable),
    ];
    let sizes = [[4096; 2], [512; 2]];
    let stops = [0, 1, 6, 7, 64, 500, 998];
    for (stop, bytes) in stops.into_iter().flat_map(|it| sizes.map(|of| (it, of))) {
        let mut machine = Machine::new(BlockCount(999), bytes, Lba(0), ScrubReport::default());
        walk(&mut machine, &bad, stop);
        let (position, report) = (machine.progress().position, machine.report().clone());
        let mut machine = Machine::new(BlockCount(999), bytes, position, report);
        walk(&mut machine, &bad, u64::MAX);
        let report = machine.report();
        assert_eq!(machine.progress().position, Lba(999));
        assert_eq!(
            (report.mismatched, report.unreadable),
            (2, 2),
            "stopped at {stop}"
        );
        let places: Vec<LbaRange> = report.places.iter().map(|bad| bad.range).collect();
        assert_eq!(places, [range(5, 2), range(7, 1), range(990, 1)]);
        assert!(!report.is_good());
    }
}

#[test]
fn it_rests_while_hosts_work_and_runs_when_they_do_not() {
    let mut machine = Machine::new(
        BlockCount(1 << 20),
        [4096; 2],
        Lba(0),
        ScrubReport::default(),
    );
    let second = |n: u64| Now(n * 1_000_000_000);
    machine.sample(second(1), 0);
    machine.sample(second(2), 1000);
    assert!(machine.progress().yields);
    let piece = machine.next(BlockCount(4096)).unwrap();
    assert_eq!(piece.len(), BlockCount(32));
    let rest = machine
        .answered(piece, Ok(()), Duration::from_millis(2))
        .unwrap();
    assert_eq!(rest, Duration::from_millis(38));
    machine.sample(second(3), 1010);
    assert!(
        !machine.progress().yields,
        "10 operations a second are no load"
    );
    let piece = machine.next(BlockCount(4096)).unwrap();
    assert_eq!(
        piece.end(),
        Lba(256),
        "pieces begin at multiples of themselves"
    );
    assert_eq!(
        machine.answered(piece, Ok(()), Duration::from_millis(2)),
        Ok(Duration::ZERO)
    );
    machine.sample(second(4), 1010);
    let progress = machine.progress();
    assert!(progress.bytes_per_second > 0);
    let left = progress.left.unwrap().as_secs_f64() * progress.bytes_per_second as f64;
    let bytes = (progress.blocks.0 - progress.position.0) as f64 * 4096.0;
    assert!((left / bytes - 1.0).abs() < 0.01, "time left fits the rate");
}

#[test]
fn a_volume_that_never_answers_ends_it_with_a_reason() {
    let mut machine = Machine::new(BlockCount(8), [4096; 2], Lba(0), ScrubReport::default());
    let piece = machine.next(BlockCount(8)).unwrap();
    let tries = (0..).find(|_| {
        machine
            .answered(piece, Err(IoError::Unavailable), Duration::ZERO)
            .is_err()
    });
    assert_eq!(tries, Some(59));
    assert_eq!(
        machine.progress().position,
        Lba(0),
        "nothing counts as checked"
    );
}

#[test]
fn a_job_reads_everything_once_finds_the_fault_and_keeps_its_progress() {
    simulate(1, |core| {
        Box::pin(async move {
            let faults = Faults::new();
            let error = IoError::MediumError { lba: Lba(300) };
            faults.add(FaultRule {
                kinds: vec![OpKind::Read],
                range: Some(range(300, 1)),
                skip: 0,
                times: u64::MAX,
                action: Action::Fail(error),
            });
            let volume: Arc<dyn Volume> =
                over(faults, Plain::make(BlockSize::B4096, BlockCount(1000)));
            let lane = volume.open(&core).await.unwrap();
            let kept = Rc::new(RefCell::new(Vec::new()));
            let (into, asked) = (Rc::clone(&kept), Rc::new(Cell::new(0)));
            let job = Job::new(
                Machine::new(BlockCount(1000), [4096; 2], Lba(0), ScrubReport::default()),
                (lane, BlockCount(256)),
                None,
                Box::new(move || {
                    asked.set(asked.get() + 1000);
                    let operations = asked.get();
                    Box::pin(async move { operations })
                }),
                Box::new(move |progress, report| {
                    into.borrow_mut().push((progress.position, report));
                    Box::pin(async {})
                }),
            );
            assert_eq!(Rc::clone(&job).run(Rc::clone(&core)).await, End::Finished);
            let report = job.report();
            assert_eq!((report.unreadable, report.mismatched), (1, 0));
            assert_eq!(report.places[0].range, range(300, 1));
            assert_eq!(kept.borrow().last(), Some(&(Lba(1000), report)));
            job.stop();
            assert_eq!(Rc::clone(&job).run(core).await, End::Stopped);
        })
    });
}
