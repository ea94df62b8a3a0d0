//! Allocation, where a part of the volume is still in the log.

use super::driver::Ring;
use super::volumes::NotNow;
use crate::addresses::blocks;
use env::Answer;
use journal::{Kind, Slot, Source};
use std::rc::Rc;
use units::LbaRange;
use volume::{Done, Extent, ExtentKind, ExtentList, Io, IoFuture, Op, Origin, Shape, Support};

/// Runs of one answer at most.
const EXTENTS_MAX: usize = 256;

impl Ring {
    pub(crate) fn extents(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
        origin: Origin,
    ) -> Result<IoFuture, NotNow> {
        // Looked up first: what is destaged meanwhile is mapped in what is reported here.
        let (range, pieces) = self.machine().extents(slot, range, EXTENTS_MAX)?;
        let backing = self.backing_of(slot);
        let shape = backing.shape;
        let op = Op::Extents { range, since: None };
        let below = backing.lane.submit(Io::new(op, origin));
        Ok(Answer::wait(async move {
            let Done::Extents(below) = below.await? else {
                unreachable!("extents answer extents")
            };
            let mut reported = ExtentList::new();
            for piece in pieces {
                if reported.len() >= EXTENTS_MAX {
                    break;
                }
                let range = blocks(&piece.sectors, shape.block_size);
                let kind = match piece.source {
                    Source::Log(_) | Source::Lost => Some(ExtentKind::Mapped),
                    Source::Zeroes(kind) => Some(kind_of(kind, &shape)),
                    Source::Backing => None,
                };
                match kind {
                    Some(kind) => push(&mut reported, range, kind),
                    None if push_below(&mut reported, range, &below) => {}
                    None => break,
                }
            }
            Ok(Done::Extents(reported))
        }))
    }
}

/// What blocks are that are zeroes by a change of this kind.
fn kind_of(kind: Kind, below: &Shape) -> ExtentKind {
    let discards = below.caps.discard != Support::Absent && below.caps.discard_reads_zero;
    match kind {
        Kind::Deallocate if discards => ExtentKind::Deallocated,
        Kind::Anchor if discards => ExtentKind::Anchored,
        Kind::Write
        | Kind::Zeroes
        | Kind::Deallocate
        | Kind::Anchor
        | Kind::WriteAround
        | Kind::Lost
        | Kind::Gone
        | Kind::Cut
        | Kind::Touched
        | Kind::Epoch
        | Kind::RelocatedEpoch => ExtentKind::Mapped,
    }
}

/// Adds what the volume below says of these blocks; `false` where it does not say it of all.
fn push_below(reported: &mut ExtentList, range: LbaRange, below: &ExtentList) -> bool {
    let mut at = range.start();
    for extent in below {
        let from = extent.range.start().max(at);
        let to = extent.range.end().min(range.end());
        if from < to && from == at {
            let part = LbaRange::between(from, to).expect("in order");
            push(reported, part, extent.kind);
            at = to;
        }
    }
    at == range.end()
}

fn push(reported: &mut ExtentList, range: LbaRange, kind: ExtentKind) {
    if let Some(last) = reported.last_mut()
        && last.kind == kind
        && last.range.end() == range.start()
    {
        last.range = LbaRange::between(last.range.start(), range.end()).expect("in order");
        return;
    }
    reported.push(Extent { range, kind });
}
