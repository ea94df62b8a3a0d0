//! What this node, the owner, notes of a copy that is removed from those in sync: where to begin
//! when it comes back and the log has given up what it lacks.
//!
//! ```text
//!   removed --> from these numbers on, what is committed is noted --> a cut --> stored
//!   back    --> it had all below those numbers? --> what was noted, and what changed since the cut
//! ```
//!
//! That is true for ever, whoever owns the LUN meanwhile: so what was stored is never too little,
//! at most too much.

use replica::{NodeSlot, RoleRecord};
use std::collections::BTreeSet;
use std::ops::Range;
use units::{Lba, LbaRange};
use volume::Cut;

/// Histories know of parts of so many bytes.
const PART_BYTES: u64 = 64 << 10;

/// So many ranges of parts are kept: more become longer ones.
const RANGES_MAX: usize = 1024;

/// A copy that was removed from those in sync.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// Whose copy it is.
    pub node: NodeSlot,
    /// If it has all changes below these numbers, ring by ring,
    pub below: Vec<u64>,
    /// it lacks what changed since this cut, and
    pub cut: Cut,
    /// changes of these parts of 64 KiB, by their numbers in the volume.
    pub parts: Vec<Range<u64>>,
}

impl Removed {
    /// Why a copy that has all below these numbers may lack more than that; `None`: it does not.
    pub(crate) fn is_too_late_for(&self, base: &[u64]) -> Option<&'static str> {
        // One that never had anything may be empty where the LUN was not when it got its copies.
        if base.len() != self.below.len() || base.iter().all(|it| *it == 0) {
            return Some("nobody knows what it had when it was whole last");
        }
        let has_less = base.iter().zip(&self.below).any(|(has, of)| has < of);
        has_less.then_some("it has less than it had when it was removed")
    }

    /// The parts of a chunk that the copy may lack, in blocks. `changed`: since the cut.
    pub(crate) fn parts_of(
        &self,
        chunk: LbaRange,
        block_bytes: u64,
        changed: &[LbaRange],
    ) -> Vec<LbaRange> {
        let part = PART_BYTES / block_bytes;
        let of_blocks = |it: &LbaRange| it.start().0 / part..it.end().0.div_ceil(part);
        let within = of_blocks(&chunk);
        let noted = self.parts.iter().cloned();
        let all: BTreeSet<u64> = (changed.iter().map(of_blocks).chain(noted))
            .flat_map(|it| it.start.max(within.start)..it.end.min(within.end))
            .collect();
        let blocks = |it: &Range<u64>| {
            let start = (it.start * part).max(chunk.start().0);
            let end = (it.end * part).min(chunk.end().0);
            LbaRange::between(Lba(start), Lba(end)).expect("in order")
        };
        runs(&all).iter().map(blocks).collect()
    }
}

fn runs(of: &BTreeSet<u64>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for it in of {
        match all.last_mut() {
            Some(last) if last.end == *it => last.end += 1,
            _ => all.push(*it..it + 1),
        }
    }
    all
}

/// The parts that these blocks lie in: few ranges, with more than that where need be.
pub(crate) fn few_parts(of: &[LbaRange], block_bytes: u64) -> Vec<Range<u64>> {
    let part = PART_BYTES / block_bytes;
    let mut by = 1;
    loop {
        let groups = of.iter().flat_map(|it| {
            let (start, end) = (it.start().0 / part, it.end().0.div_ceil(part));
            start / by..end.div_ceil(by)
        });
        let ranges = runs(&groups.collect());
        if ranges.len() <= RANGES_MAX {
            let longer = ranges.iter().map(|it| it.start * by..it.end * by);
            return longer.collect();
        }
        by *= 2;
    }
}

/// Who is not in sync any more, by a record of this node's own.
pub(crate) fn who_left(me: NodeSlot, before: &RoleRecord, is: &RoleRecord) -> Vec<NodeSlot> {
    let gone = before.in_sync.iter().filter(|it| !is.in_sync.has(*it));
    gone.filter(|_| is.owner == me).collect()
}

#[cfg(test)]
mod test {
    use super::*;

    fn range(start: u64, end: u64) -> LbaRange {
        LbaRange::between(Lba(start), Lba(end)).unwrap()
    }

    fn removed(below: &[u64], parts: &[Range<u64>]) -> Removed {
        Removed {
            node: NodeSlot(1),
            below: below.to_vec(),
            cut: Cut(7),
            parts: parts.to_vec(),
        }
    }

    #[test]
    fn a_copy_that_has_less_than_was_noted_in_any_ring_is_not_brought_up_by_it() {
        let of = removed(&[5, 9], &[]);
        for (base, may) in [
            (&[5, 9][..], true),
            (&[6, 30], true),
            (&[4, 30], false),
            (&[30, 8], false),
            (&[30], false),
            (&[], false),
            (&[0, 0], false),
        ] {
            assert_eq!(of.is_too_late_for(base).is_none(), may, "{base:?}");
        }
        let of_nothing = removed(&[0, 0], &[]);
        assert!(of_nothing.is_too_late_for(&[0, 0]).is_some(), "it is new");
        assert_eq!(of_nothing.is_too_late_for(&[0, 1]), None);
    }

    #[test]
    fn what_is_copied_is_what_changed_and_what_was_noted_in_whole_parts_of_the_chunk() {
        // Parts have 16 blocks, the chunk the parts 4 to 6 and a half.
        let of = removed(&[0], &[0..1, 3..5, 6..9]);
        let chunk = range(64, 104);
        assert_eq!(
            of.parts_of(chunk, 4096, &[]),
            [range(64, 80), range(96, 104)]
        );
        let changed = [range(81, 82), range(200, 201)];
        assert_eq!(of.parts_of(chunk, 4096, &changed), [range(64, 104)]);
        let none = removed(&[0], &[]);
        assert_eq!(none.parts_of(chunk, 4096, &[]), []);
    }

    #[test]
    fn many_parts_become_fewer_and_lose_none() {
        assert_eq!(
            few_parts(&[range(15, 17), range(60, 61)], 4096),
            [0..2, 3..4]
        );
        let many: Vec<LbaRange> = (0..5000).map(|it| range(it * 64, it * 64 + 1)).collect();
        let few = few_parts(&many, 4096);
        assert!(few.len() <= RANGES_MAX, "{}", few.len());
        for it in many {
            let part = it.start().0 / 16;
            assert!(few.iter().any(|it| it.contains(&part)), "{part}");
        }
    }
}
