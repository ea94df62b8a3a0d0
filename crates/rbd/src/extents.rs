//! Which blocks of an image are there: by whole objects, as its map of them shows.

use crate::ffi::Region;
use units::{BlockCount, Lba, LbaRange};
use volume::{Extent, ExtentKind, ExtentList};

/// Extents that one answer holds at most.
const EXTENTS_MAX: usize = 256;

/// Objects that one question covers: a map shows many, without one each is asked by itself.
const OBJECTS_BY_MAP: u64 = 4096;
const OBJECTS_BY_ASKING: u64 = 64;

/// The first part of `range` that one question is about.
pub(crate) fn first_part(range: LbaRange, object_blocks: u64, has_map: bool) -> LbaRange {
    let objects = if has_map {
        OBJECTS_BY_MAP
    } else {
        OBJECTS_BY_ASKING
    };
    let most = BlockCount(object_blocks.max(1).saturating_mul(objects));
    LbaRange::new(range.start(), range.len().min(most)).expect("inside the range")
}

/// Regions of a range, in bytes, as extents of its blocks: a block with one byte that is there is
/// mapped.
pub(crate) fn in_blocks(range: LbaRange, regions: &[Region], block: u64) -> ExtentList {
    let mut list = ExtentList::new();
    let mut at = range.start();
    for region in regions.iter().filter(|it| it.exists) {
        let start = Lba((region.offset / block).clamp(at.0, range.end().0));
        let end = (region.offset + region.len).div_ceil(block);
        let end = Lba(end.clamp(start.0, range.end().0));
        if !push(&mut list, at, start, ExtentKind::Deallocated)
            || !push(&mut list, start, end, ExtentKind::Mapped)
        {
            return list;
        }
        at = end;
    }
    push(&mut list, at, range.end(), ExtentKind::Deallocated);
    list
}

/// Adds a run, joined to the last one where both are of a kind; answers whether there was room.
fn push(list: &mut ExtentList, start: Lba, end: Lba, kind: ExtentKind) -> bool {
    let Some(range) = LbaRange::between(start, end).filter(|it| !it.is_empty()) else {
        return true;
    };
    if let Some(last) = list.last_mut()
        && last.kind == kind
    {
        last.range = LbaRange::between(last.range.start(), end).expect("runs go forward");
        return true;
    }
    if list.len() >= EXTENTS_MAX {
        return false;
    }
    list.push(Extent { range, kind });
    true
}

#[cfg(test)]
mod test {
    use super::*;
    use ExtentKind::{Deallocated, Mapped};

    fn range(start: u64, end: u64) -> LbaRange {
        LbaRange::between(Lba(start), Lba(end)).unwrap()
    }

    fn region(offset: u64, len: u64) -> Region {
        Region {
            offset,
            len,
            exists: true,
        }
    }

    fn reported(regions: &[Region]) -> Vec<(u64, u64, ExtentKind)> {
        let list = in_blocks(range(8, 24), regions, 512);
        let of = |it: &Extent| (it.range.start().0, it.range.end().0, it.kind);
        list.iter().map(of).collect()
    }

    #[test]
    fn what_is_not_named_is_not_there_and_neighbours_are_one() {
        assert_eq!(reported(&[]), [(8, 24, Deallocated)]);
        assert_eq!(reported(&[region(0, 1 << 20)]), [(8, 24, Mapped)]);
        assert_eq!(
            reported(&[region(5120, 512), region(5632, 512)]),
            [
                (8, 10, Deallocated),
                (10, 12, Mapped),
                (12, 24, Deallocated)
            ]
        );
        assert_eq!(reported(&[region(5121, 1)])[1], (10, 11, Mapped));
        let gone = Region {
            exists: false,
            ..region(0, 1 << 20)
        };
        assert_eq!(reported(&[gone]), [(8, 24, Deallocated)]);
    }

    #[test]
    fn an_answer_has_an_end() {
        let many: Vec<Region> = (0..1000).map(|at| region(at * 1024, 512)).collect();
        let list = in_blocks(range(0, 2000), &many, 512);
        assert_eq!(list.len(), EXTENTS_MAX);
        assert_eq!(
            first_part(range(0, 1 << 40), 1024, true).len().0,
            4096 * 1024
        );
        assert_eq!(first_part(range(5, 9), 1024, false), range(5, 9));
    }
}
