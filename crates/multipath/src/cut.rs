//! Large reads and writes go in pieces, each by the policy's choice: so one stream uses every path.
//!
//! Pieces end at multiples of their size, so that sequential streams are cut in the same places. A
//! path has only some of them ahead, the next one goes when one has ended: whichever path is
//! quicker takes more. The last ones are smaller, because the whole takes as long as the path that
//! ends last. What a volume promises to keep whole over a power cut is not cut.

use super::route::Route;
use paths::policy::{Settings, Use};
use std::collections::BTreeSet;
use units::{BlockCount, BufMut, ByteCount, Lba, LbaRange};
use volume::{Io, Op, Shape};

/// The last piece for each path is cut into so many.
const TAIL: u64 = 4;

/// But not below these bytes, from which on the rate matters more than the latency.
const TAIL_BYTES_MIN: u64 = 32 << 10;

/// How many paths can work side by side: two that share a port take turns.
pub(super) fn abreast(routes: &[Route]) -> usize {
    let ports = |of: fn(&Settings) -> u16| {
        let active = routes.iter().filter(|it| it.settings.usage == Use::Active);
        let ports: BTreeSet<u16> = active.map(|it| of(&it.settings)).collect();
        ports.len()
    };
    ports(|it| it.host_port).min(ports(|it| it.target_port))
}

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

/// Cuts reads and writes of two pieces or more. `piece` 0: never. `paths`: how many work side by
/// side.
pub(super) fn cut(mut io: Io, shape: &Shape, piece: ByteCount, paths: usize) -> Cut {
    let blocks = piece.blocks_floor(shape.block_size);
    let small = ByteCount((piece.0 / TAIL).max(TAIL_BYTES_MIN)).blocks_floor(shape.block_size);
    let tail = Tail {
        from: match paths {
            0 | 1 => 0,
            several => blocks.0.saturating_mul(several as u64),
        },
        blocks: small.min(blocks).max(BlockCount(1)),
    };
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
    let parts = ranges(range, blocks, tail).map(|part| {
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

/// How the end is cut.
#[derive(Clone, Copy)]
struct Tail {
    /// With no more than these blocks left, in smaller pieces.
    from: u64,
    blocks: BlockCount,
}

fn ranges(range: LbaRange, blocks: BlockCount, tail: Tail) -> impl Iterator<Item = LbaRange> {
    let mut at = range.start();
    std::iter::from_fn(move || {
        let size = if range.end().0 - at.0 <= tail.from {
            tail.blocks
        } else {
            blocks
        };
        let next = (at.0 / size.0 + 1).saturating_mul(size.0);
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
        let never = Tail {
            from: 0,
            blocks: BlockCount(1),
        };
        let cut: Vec<LbaRange> = ranges(range(5, 21), BlockCount(8), never).collect();
        assert_eq!(cut, [range(5, 8), range(8, 16), range(16, 21)]);
        assert_eq!(
            ranges(range(8, 16), BlockCount(8), never).collect::<Vec<_>>(),
            [range(8, 16)]
        );
        let tail = Tail {
            from: 16,
            blocks: BlockCount(4),
        };
        let cut: Vec<LbaRange> = ranges(range(5, 30), BlockCount(8), tail).collect();
        let small = [range(16, 20), range(20, 24), range(24, 28), range(28, 30)];
        assert_eq!(cut[..2], [range(5, 8), range(8, 16)]);
        assert_eq!(cut[2..], small);
    }
}
