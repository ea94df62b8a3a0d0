//! A flush that fails: what it should have covered is old or new on the disk, and neither is
//! damage.

use super::disk::{
    DATA, Findings, KINDS, Kind, ask, flush, make, on_file, open, range, raw_read, raw_write, read,
    write,
};
use crate::integrity::{Blank, Finding, IntegrityLane};
use crate::test::simulate;
use env::CoreHandle;
use futures_util::future::join;
use std::rc::Rc;
use std::sync::Arc;
use units::Lba;
use volume::{IoError, Op, OpKind, Volume, over};
use volume_test::fault::{Action, FaultRule, Faults};

const SPACE: u64 = 2050;

/// The next flush of the disk fails, with this error.
fn next_flush_fails(faults: &Faults) -> IoError {
    let error = IoError::MediumError { lba: Lba(0) };
    faults.add(FaultRule {
        kinds: vec![OpKind::Flush],
        range: None,
        skip: 0,
        times: 1,
        action: Action::Fail(error),
    });
    error
}

/// A volume with a map of its own, over a disk that can be made to fail.
async fn opened(
    core: &CoreHandle,
    kind: Kind,
    blank: Blank,
) -> (Faults, Rc<IntegrityLane>, Findings) {
    let faults = Faults::new();
    let below: Arc<dyn Volume> = over(faults.clone(), on_file(kind, SPACE * kind.unit()));
    make(core, &below, blank).await;
    let (volume, findings) = open(core, &below).await;
    (faults, volume.lane(core).await.unwrap(), findings)
}

async fn a_flush_fails(core: CoreHandle, kind: Kind) {
    let (unit, bytes) = (kind.unit(), kind.bytes());
    let whole = usize::try_from(bytes).unwrap();
    let contents = |version: u8| vec![version; whole];
    let (faults, lane, findings) = opened(&core, kind, Blank::Zeroes).await;
    let at = |block: u64| range(block * unit, unit);
    // Of 1 and 1500 the device loses what was not flushed, of 2 it does not; 3 was flushed and is
    // damaged.
    for block in [1, 2, 3, 1500] {
        write(&lane, at(block), &contents(1)).await.unwrap();
    }
    flush(&lane).await;
    for block in [1, 2, 1500] {
        write(&lane, at(block), &contents(2)).await.unwrap();
    }
    let error = next_flush_fails(&faults);
    assert_eq!(ask(&lane, Op::Flush).await.err(), Some(error));
    for block in [1, 1500] {
        raw_write(&core, DATA, block * bytes, &contents(1)).await;
    }
    let mut damaged = raw_read(&core, DATA, 3 * bytes, whole).await;
    damaged[77] ^= 4;
    raw_write(&core, DATA, 3 * bytes, &damaged).await;
    for (block, version) in [(1, 1), (2, 2), (1500, 1)] {
        assert_eq!(read(&lane, at(block)).await, Ok(contents(version)));
    }
    // A part of one is written without a word of the rest.
    let part = vec![3; usize::try_from(kind.block_size.bytes()).unwrap()];
    let first = range(1500 * unit, 1);
    write(&lane, first, &part).await.unwrap();
    assert_eq!(findings.lock().unwrap().as_slice(), []);
    let lba = at(3).start();
    assert_eq!(read(&lane, at(3)).await, Err(IoError::Integrity { lba }));
    // From now on they are what they were found to be.
    flush(&lane).await;
    raw_write(&core, DATA, 2 * bytes, &contents(1)).await;
    let lba = at(2).start();
    assert_eq!(read(&lane, at(2)).await, Err(IoError::Integrity { lba }));
}

#[test]
fn what_a_failed_flush_may_have_lost_is_not_taken_for_damage() {
    for kind in KINDS {
        simulate(3, |core| Box::pin(a_flush_fails(core, kind)));
    }
}

/// The disk takes back what was not flushed, and a read finds that before anybody was notified;
/// `under_way`: while the flush that fails is.
async fn is_read_before_it_is_reported(
    core: CoreHandle,
    kind: Kind,
    [fails, under_way]: [bool; 2],
) {
    let (unit, bytes) = (kind.unit(), kind.bytes());
    let contents = |version: u8| vec![version; usize::try_from(bytes).unwrap()];
    let (faults, lane, findings) = opened(&core, kind, Blank::Zeroes).await;
    let at = range(unit, unit);
    write(&lane, at, &contents(1)).await.unwrap();
    flush(&lane).await;
    write(&lane, at, &contents(2)).await.unwrap();
    if fails {
        next_flush_fails(&faults);
    }
    raw_write(&core, DATA, bytes, &contents(1)).await;
    let found = if under_way {
        let (flushed, found) = join(ask(&lane, Op::Flush), read(&lane, at)).await;
        assert_eq!(flushed.is_err(), fails);
        found
    } else {
        read(&lane, at).await
    };
    let lba = at.start();
    let reported = if fails {
        assert_eq!(found, Ok(contents(1)));
        vec![]
    } else {
        assert_eq!(found, Err(IoError::Integrity { lba }));
        vec![Finding::Mismatch(at)]
    };
    assert_eq!(findings.lock().unwrap().as_slice(), reported);
}

#[test]
fn what_is_not_flushed_and_differs_is_damage_only_where_it_can_be_flushed() {
    for kind in KINDS {
        for how in [[true, true], [true, false], [false, true], [false, false]] {
            simulate(3, |core| {
                Box::pin(is_read_before_it_is_reported(core, kind, how))
            });
        }
    }
}

/// Nobody knew what a block held, as after a crash; it was read, and then a flush failed and lost
/// what had been read.
async fn what_was_adopted_is_lost(core: CoreHandle, kind: Kind, adopted: bool) {
    let (unit, bytes) = (kind.unit(), kind.bytes());
    let contents = |version: u8| vec![version; usize::try_from(bytes).unwrap()];
    let (faults, lane, findings) = opened(&core, kind, Blank::Anything).await;
    let at = range(unit, unit);
    raw_write(&core, DATA, bytes, &contents(2)).await;
    if adopted {
        lane.adopt(at).await.unwrap();
    }
    assert_eq!(read(&lane, at).await, Ok(contents(2)));
    let error = next_flush_fails(&faults);
    assert_eq!(ask(&lane, Op::Flush).await.err(), Some(error));
    raw_write(&core, DATA, bytes, &contents(1)).await;
    assert_eq!(read(&lane, at).await, Ok(contents(1)));
    assert_eq!(findings.lock().unwrap().as_slice(), []);
    // What a flush has covered is another matter.
    flush(&lane).await;
    raw_write(&core, DATA, bytes, &contents(2)).await;
    let lba = at.start();
    assert_eq!(read(&lane, at).await, Err(IoError::Integrity { lba }));
}

#[test]
fn what_was_adopted_from_what_was_there_is_not_stable_before_a_flush() {
    for kind in KINDS {
        for adopted in [false, true] {
            simulate(3, |core| {
                Box::pin(what_was_adopted_is_lost(core, kind, adopted))
            });
        }
    }
}
