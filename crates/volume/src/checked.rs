//! The waist's contract as assertions between two layers.
//!
//! **Contract.** A request that breaks the contract panics here, at its sender's door, before
//! anything happens; so does an answer that does not fit its request.

use crate::{
    Done, Durability, ExtentList, Io, IoError, IoFuture, IoResult, Lane, Op, Provision, Shape,
    Support, Wrap,
};
use env::{Answer, CoreHandle};
use std::rc::Rc;
use units::{BlockCount, LbaRange};

/// Asserts what the waist promises, on both sides.
#[derive(Clone, Copy, Default, Debug)]
pub struct Checked;

struct CheckedLane {
    below: Rc<dyn Lane>,
    shape: Shape,
}

impl Wrap for Checked {
    fn lane(&self, _core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        assert_shape(&shape);
        Rc::new(CheckedLane { below, shape })
    }
}

impl Lane for CheckedLane {
    fn submit(&self, io: Io) -> IoFuture {
        assert_request(&self.shape, io.op());
        let expected = Expected::of(&self.shape, io.op());
        match self.below.submit(io).now() {
            Ok(result) => {
                expected.assert_fits(&result);
                Answer::ready(result)
            }
            Err(waiting) => Answer::wait(async move {
                let result = waiting.await;
                expected.assert_fits(&result);
                result
            }),
        }
    }
}

/// Facts that contradict themselves are a bug of whoever made them.
///
/// # Panics
/// If they do.
pub fn assert_shape(shape: &Shape) {
    let (limits, caps) = (&shape.limits, &shape.caps);
    assert!(shape.block_count > BlockCount(0), "a volume has blocks");
    assert!(
        shape.block_count.bytes(shape.block_size).is_some(),
        "a volume's size in bytes fits into 64 bits"
    );
    assert!(limits.transfer_blocks_max > BlockCount(0));
    assert!(limits.discard_granularity > BlockCount(0));
    assert!(limits.in_flight_max > 0);
    assert!(limits.memory_alignment.is_power_of_two());
    assert_limit(caps.discard, limits.discard_blocks_max);
    assert_limit(caps.write_zeroes, limits.write_zeroes_blocks_max);
    assert_limit(caps.compare_and_write, limits.compare_and_write_blocks_max);
    if caps.discard == Support::Absent {
        assert_eq!(caps.anchor, Support::Absent, "anchoring is a discard");
    }
}

fn assert_limit(support: Support, max: BlockCount) {
    assert_eq!(
        support == Support::Absent,
        max == BlockCount(0),
        "a limit of 0 blocks says the same as an absent capability"
    );
}

fn assert_request(shape: &Shape, op: &Op) {
    let (limits, caps) = (&shape.limits, &shape.caps);
    if let Some(range) = op.range() {
        assert!(!range.is_empty(), "an operation touches blocks");
        assert!(
            shape.whole().contains(range),
            "{range:?} is not inside {:?}",
            shape.whole()
        );
    }
    if op.mutates() {
        assert!(caps.writable, "the volume may not be written");
    }
    if let Some((range, most)) = op.range().zip(limits.most_at_once(op)) {
        assert!(
            range.len() <= most,
            "{} blocks are more than the {} that the volume takes at once: {op:?}",
            range.len().0,
            most.0
        );
    }
    match op {
        Op::Read { range, into } => {
            if let Some(into) = into {
                assert_eq!(into.len(), shape.bytes_in(*range), "destination");
            }
        }
        Op::Write {
            range,
            data,
            durability,
        } => {
            assert_eq!(data.len(), shape.bytes_in(*range), "payload");
            assert_stable(shape, *durability);
        }
        Op::WriteZeroes { durability, .. } => {
            assert!(caps.write_zeroes != Support::Absent);
            assert_stable(shape, *durability);
        }
        Op::Discard { to, durability, .. } => {
            assert!(caps.discard != Support::Absent);
            assert!(*to != Provision::Anchored || caps.anchor != Support::Absent);
            assert_stable(shape, *durability);
        }
        Op::CompareAndWrite {
            range,
            expected,
            data,
            durability,
        } => {
            assert!(caps.compare_and_write != Support::Absent);
            assert_eq!(expected.len(), shape.bytes_in(*range), "expected payload");
            assert_eq!(data.len(), shape.bytes_in(*range), "payload");
            assert_stable(shape, *durability);
        }
        Op::Extents { since, .. } => match since {
            None => assert!(caps.extents != Support::Absent),
            Some(_) => assert!(caps.changed_blocks != Support::Absent),
        },
        Op::Flush => {}
    }
}

fn assert_stable(shape: &Shape, durability: Durability) {
    if durability == Durability::Stable {
        assert!(shape.caps.stable_write != Support::Absent);
    }
}

/// What an answer may be.
enum Expected {
    Nothing { may_miscompare: bool },
    Bytes(usize),
    Extents(LbaRange),
}

impl Expected {
    fn of(shape: &Shape, op: &Op) -> Self {
        match op {
            Op::Read { range, .. } => Self::Bytes(shape.bytes_in(*range)),
            Op::Extents { range, .. } => Self::Extents(*range),
            Op::CompareAndWrite { .. } => Self::Nothing {
                may_miscompare: true,
            },
            Op::Write { .. } | Op::WriteZeroes { .. } | Op::Discard { .. } | Op::Flush => {
                Self::Nothing {
                    may_miscompare: false,
                }
            }
        }
    }

    fn assert_fits(&self, result: &IoResult) {
        match (self, result) {
            (Self::Bytes(bytes), Ok(Done::Data(data))) => {
                assert_eq!(data.len(), *bytes, "a read gives all of its range");
            }
            (Self::Nothing { .. }, Ok(Done::Nothing | Done::Logged)) => {}
            (Self::Extents(range), Ok(Done::Extents(extents))) => assert_extents(*range, extents),
            (Self::Nothing { may_miscompare }, Err(IoError::Miscompare { .. })) => {
                assert!(*may_miscompare, "only a comparison can miscompare");
            }
            (Self::Bytes(_) | Self::Extents(_), Err(IoError::Miscompare { .. })) => {
                panic!("only a comparison can miscompare")
            }
            (_, Err(_)) => {}
            (Self::Nothing { .. } | Self::Bytes(_) | Self::Extents(_), Ok(other)) => {
                panic!("{other:?} does not answer this request")
            }
        }
    }
}

fn assert_extents(range: LbaRange, extents: &ExtentList) {
    assert!(!extents.is_empty(), "extents cover at least one block");
    let mut at = range.start();
    for extent in extents {
        assert_eq!(extent.range.start(), at, "extents are adjacent");
        assert!(!extent.range.is_empty(), "no extent is empty");
        at = extent.range.end();
    }
    assert!(at <= range.end(), "extents stay inside the range");
}
