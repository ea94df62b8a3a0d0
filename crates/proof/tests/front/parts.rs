//! Operations that take several commands, of which one fails: whoever asked gets no error that says
//! nothing was done.

use crate::bench::{BLOCK, BLOCKS, Setup, run};
use crate::unanswered::paths;
use multipath::Multipath;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, Lane, Op, OpKind, Origin, Zeroing};
use volume_test::{Action, FaultRule};

/// MAXIMUM WRITE SAME LENGTH of our target's units, in blocks.
const COMMAND_BLOCKS: u64 = 1 << 15;

fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).expect("within the unit")
}

fn setup() -> Setup {
    Setup {
        units: 1,
        ..Setup::default()
    }
}

async fn write(lane: &Multipath, at: u64, byte: u8) {
    let op = Op::Write {
        range: range(at, 1),
        data: Buf::copy_of(&[byte; BLOCK]),
        durability: Durability::Cached,
    };
    let done = lane.submit(Io::new(op, Origin::default())).await;
    done.expect("a path lives");
}

async fn read(lane: &Multipath, at: u64) -> Vec<u8> {
    let op = Op::Read {
        range: range(at, 1),
        into: None,
    };
    match lane.submit(Io::new(op, Origin::default())).await {
        Ok(Done::Data(data)) => data.to_vec(),
        other => panic!("{other:?}"),
    }
}

async fn zero(lane: &Multipath, range: LbaRange) -> Result<(), IoError> {
    let op = Op::WriteZeroes {
        range,
        zeroing: Zeroing::MayUnmap,
        durability: Durability::Cached,
    };
    lane.submit(Io::new(op, Origin::default()))
        .await
        .map(|_| ())
}

/// "Write protected" promises that nothing was done. It is true of a command by itself, and of the
/// first of several, and no longer of the second.
#[test]
fn a_refusal_of_a_later_part_does_not_promise_that_nothing_was_done() {
    for (first, refused_at, expected) in [
        (COMMAND_BLOCKS, BLOCKS - 1, IoError::WriteProtected),
        (0, 0, IoError::WriteProtected),
        (0, BLOCKS - 1, IoError::Unavailable),
    ] {
        run(setup(), move |bench| async move {
            let (lane, _unit) = paths(&bench, &[bench.portal, bench.portal], None).await;
            write(&lane, first, 7).await;
            bench.faults[0].add(FaultRule {
                kinds: vec![OpKind::WriteZeroes, OpKind::Discard, OpKind::Write],
                range: Some(range(refused_at, 1)),
                skip: 0,
                times: u64::MAX,
                action: Action::Fail(IoError::WriteProtected),
            });
            let reported = zero(&lane, range(first, BLOCKS - first)).await;
            assert_eq!(
                reported,
                Err(expected),
                "from {first}, refused at {refused_at}"
            );
            // What is reported is what is there.
            let byte = if expected == IoError::WriteProtected {
                7
            } else {
                0
            };
            assert_eq!(read(&lane, first).await, [byte; BLOCK]);
        });
    }
}
