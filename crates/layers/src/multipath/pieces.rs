//! Large reads and writes go in pieces, each by the policy's choice: so one stream uses every path.
//!
//! Pieces end at multiples of their size, so that sequential streams are cut in the same places. What a volume promises to
//! keep whole over a power cut is not cut.

use env::Answer;
use units::{BlockCount, Buf, BufMut, ByteCount, Lba, LbaRange};
use volume::{Done, Io, IoError, IoFuture, Op, Shape};

/// An operation as it is sent.
pub(super) enum Cut {
    /// As it came.
    Whole(Io),
    /// In order of address; a read's own memory is filled at the end.
    Pieces {
        /// Each of them.
        parts: Vec<Io>,
        /// Where a read is to go.
        into: Option<BufMut>,
    },
}

/// What has no more blocks is certainly not cut.
pub(super) fn whole_blocks(shape: &Shape, piece: ByteCount) -> u64 {
    match piece.blocks_floor(shape.block_size).0 {
        0 => u64::MAX,
        blocks => blocks.saturating_mul(2).saturating_sub(1),
    }
}

/// Cuts reads and writes of two pieces or more. `piece` 0: never.
pub(super) fn cut(mut io: Io, shape: &Shape, piece: ByteCount) -> Cut {
    let blocks = piece.blocks_floor(shape.block_size);
    let range = match io.op() {
        Op::Read { range, .. } | Op::Write { range, .. } => *range,
        Op::WriteZeroes { .. }
        | Op::Discard { .. }
        | Op::CompareAndWrite { .. }
        | Op::Extents { .. }
        | Op::Flush => {
            return Cut::Whole(io);
        }
    };
    let kept_whole = range.len() <= shape.limits.atomic_blocks_max;
    if blocks.0 == 0 || range.len().0 < blocks.0.saturating_mul(2) || kept_whole {
        return Cut::Whole(io);
    }
    let origin = io.origin();
    let parts = ranges(range, blocks).map(|part| {
        let op = match io.op() {
            Op::Write {
                data, durability, ..
            } => {
                let before = LbaRange::between(range.start(), part.start())
                    .map_or(0, |before| shape.bytes_in(before));
                Op::Write {
                    range: part,
                    data: data.slice(before..before + shape.bytes_in(part)),
                    durability: *durability,
                }
            }
            Op::Read { .. }
            | Op::WriteZeroes { .. }
            | Op::Discard { .. }
            | Op::CompareAndWrite { .. }
            | Op::Extents { .. }
            | Op::Flush => Op::Read {
                range: part,
                into: None,
            },
        };
        Io::new(op, origin)
    });
    let parts = parts.collect();
    let into = io.op_mut().take_into();
    Cut::Pieces { parts, into }
}

fn ranges(range: LbaRange, blocks: BlockCount) -> impl Iterator<Item = LbaRange> {
    let mut at = range.start();
    std::iter::from_fn(move || {
        let next = (at.0 / blocks.0 + 1).saturating_mul(blocks.0);
        let end = Lba(next.min(range.end().0));
        let part = LbaRange::between(at, end).filter(|part| !part.is_empty())?;
        at = end;
        Some(part)
    })
}

/// The answer of the whole: data in order, or the first error by address, after every piece has ended. One that promises that
/// nothing was done is told only if that is so of every piece.
pub(super) fn join(answers: Vec<IoFuture>, into: Option<BufMut>) -> IoFuture {
    Answer::wait(async move {
        let mut data = Buf::empty();
        let mut error: Option<IoError> = None;
        let (mut read, mut changed) = (false, false);
        for answer in answers {
            match answer.await {
                Ok(Done::Data(part)) => {
                    read = true;
                    data.append_owned(part);
                }
                Ok(Done::Nothing | Done::Extents(_)) => changed = true,
                Err(it) => {
                    changed |= !it.leaves_nothing_done();
                    error = error.or(Some(it));
                }
            }
        }
        match (error, into) {
            (Some(error), _) if changed => Err(error.of_a_part()),
            (Some(error), _) => Err(error),
            (None, Some(into)) => Ok(Done::Data(fill(into, &data))),
            (None, None) if read => Ok(Done::Data(data)),
            (None, None) => Ok(Done::Nothing),
        }
    })
}

/// The memory that a read was given, with what was read.
pub(super) fn fill(mut into: BufMut, data: &Buf) -> Buf {
    let mut at = 0;
    for piece in data.segments() {
        into.copy_at(at, piece);
        at += piece.len();
    }
    into.freeze()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn that_nothing_was_done_is_told_only_if_it_is_so_of_every_piece() {
        let joined = |answers: Vec<volume::IoResult>| {
            let answers = answers.into_iter().map(IoFuture::ready).collect();
            let mut answer = join(answers, None);
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            match std::pin::Pin::new(&mut answer).poll(&mut cx) {
                std::task::Poll::Ready(result) => result.map(|_| ()),
                std::task::Poll::Pending => panic!("every piece has ended"),
            }
        };
        let refused = || Err(IoError::WriteProtected);
        assert_eq!(
            joined(vec![refused(), refused()]),
            Err(IoError::WriteProtected)
        );
        let part = [
            vec![refused(), Ok(Done::Nothing)],
            vec![Ok(Done::Nothing), refused()],
        ];
        for part in part {
            assert_eq!(joined(part), Err(IoError::Unavailable));
        }
        let busy = vec![Err(IoError::Busy), refused()];
        assert_eq!(joined(busy), Err(IoError::Busy));
    }

    #[test]
    fn pieces_end_at_multiples_and_cover_the_range() {
        let range = |start, end| LbaRange::between(Lba(start), Lba(end)).unwrap();
        let cut: Vec<LbaRange> = ranges(range(5, 21), BlockCount(8)).collect();
        assert_eq!(cut, [range(5, 8), range(8, 16), range(16, 21)]);
        assert_eq!(
            ranges(range(8, 16), BlockCount(8)).collect::<Vec<_>>(),
            [range(8, 16)]
        );
    }
}
