//! Large reads and writes go in pieces, each by the policy's choice: so one stream uses every path.
//!
//! Pieces end at multiples of their size, so that sequential streams are cut in the same places. What a volume promises to
//! keep whole over a power cut is not cut.

use units::{BlockCount, BufMut, ByteCount, Lba, LbaRange};
use volume::{Io, Op, Shape};

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

#[cfg(test)]
mod test {
    use super::*;

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
