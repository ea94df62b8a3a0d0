//! The model must catch what it is for.

use super::*;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{Durability, IoError};

fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

fn contents(tag: Tag, range: LbaRange) -> Buf {
    let mut bytes = vec![0; usize::try_from(range.len().0).unwrap() * 512];
    for (n, block) in bytes.chunks_exact_mut(512).enumerate() {
        fill(tag, Lba(range.start().0 + n as u64), block);
    }
    Buf::copy_of(&bytes)
}

fn model() -> Model {
    Model::new(BlockSize::B512, BlockCount(8))
}

fn reads(model: &mut Model, at: LbaRange, tag: Tag) -> Result<(), Wrong> {
    let token = model.begin(Begun::Read(at));
    model.end_read(token, &contents(tag, at))
}

#[test]
fn an_old_block_after_a_completed_write_is_wrong() {
    let mut model = model();
    let at = range(2, 2);
    let write = model.begin(Begun::Write(at, 9, Durability::Cached));
    assert_eq!(reads(&mut model.clone(), at, TAG_ZERO), Ok(()));
    assert_eq!(reads(&mut model.clone(), at, 9), Ok(()));
    model.end(write, Ok(()));
    assert_eq!(reads(&mut model, at, TAG_ZERO).unwrap_err().lba, Lba(2));
    assert_eq!(reads(&mut model, at, 9), Ok(()));
}

#[test]
fn writes_in_flight_together_may_land_in_any_order_but_stay_once_read() {
    let mut model = model();
    let at = range(0, 1);
    let first = model.begin(Begun::Write(at, 5, Durability::Cached));
    let second = model.begin(Begun::Write(at, 6, Durability::Cached));
    model.end(second, Ok(()));
    model.end(first, Ok(()));
    assert_eq!(reads(&mut model.clone(), at, 6), Ok(()));
    assert_eq!(reads(&mut model, at, 5), Ok(()));
    assert!(
        reads(&mut model, at, 6).is_err(),
        "it was the first one before"
    );
}

#[test]
fn a_torn_block_and_a_misplaced_block_are_wrong() {
    let mut model = model();
    let at = range(1, 1);
    let write = model.begin(Begun::Write(at, 7, Durability::Cached));
    model.end(write, Ok(()));
    let mut torn = contents(7, at).to_vec();
    torn[256..].fill(0);
    let token = model.begin(Begun::Read(at));
    let wrong = model.end_read(token, &Buf::copy_of(&torn)).unwrap_err();
    assert_eq!(wrong.found, None);
    let token = model.begin(Begun::Read(at));
    let elsewhere = contents(7, range(2, 1));
    assert_eq!(model.end_read(token, &elsewhere).unwrap_err().found, None);
}

#[test]
fn a_failed_write_may_be_there_and_a_fenced_one_may_not() {
    let at = range(0, 1);
    for (error, allowed) in [
        (IoError::MediumError { lba: Lba(0) }, true),
        (IoError::Fenced, false),
    ] {
        let mut model = model();
        let write = model.begin(Begun::Write(at, 5, Durability::Cached));
        model.end(write, Err(error));
        assert_eq!(reads(&mut model, at, 5).is_ok(), allowed, "{error:?}");
    }
}

#[test]
fn a_power_cut_keeps_what_was_stable_and_may_keep_more() {
    let (at, other) = (range(0, 1), range(1, 1));
    let mut model = model();
    for (place, tag, durability) in [
        (at, 5, Durability::Stable),
        (at, 6, Durability::Cached),
        (other, 7, Durability::Cached),
    ] {
        let write = model.begin(Begun::Write(place, tag, durability));
        model.end(write, Ok(()));
    }
    let mut cut = model.clone();
    cut.cut();
    assert!(reads(&mut cut.clone(), at, TAG_ZERO).is_err());
    assert_eq!(reads(&mut cut.clone(), at, 5), Ok(()));
    assert_eq!(reads(&mut cut.clone(), at, 6), Ok(()));
    assert_eq!(reads(&mut cut, other, TAG_ZERO), Ok(()));
    let flush = model.begin(Begun::Flush);
    let late = model.begin(Begun::Write(other, 8, Durability::Cached));
    model.end(flush, Ok(()));
    model.end(late, Ok(()));
    model.cut();
    assert!(reads(&mut model.clone(), at, 5).is_err());
    assert!(reads(&mut model.clone(), other, TAG_ZERO).is_err());
    assert_eq!(reads(&mut model.clone(), other, 7), Ok(()));
    assert_eq!(reads(&mut model, other, 8), Ok(()));
}
