//! What hosts change of blocks while somebody reads them to write them again.
//!
//! ```text
//!   begin --> read the blocks --> of them, which are as they were? --> those are written again
//! ```
//!
//! Nobody waits for that: what was committed meanwhile is in the log, behind where the watch began,
//! and whoever follows the log has it from there. What waits to be committed is asked for again.

use super::changes::overlap;
use journal::Slot;
use std::collections::BTreeMap;
use std::ops::Range;

/// Some blocks that are watched.
#[derive(Clone)]
struct Watch {
    slot: Slot,
    sectors: Range<u64>,
    committed: Vec<Range<u64>>,
}

/// All that are watched, by number.
#[derive(Clone, Default)]
pub(crate) struct Watches {
    all: BTreeMap<u64, Watch>,
    next: u64,
}

/// What of some sectors that are watched may be written again.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Watched {
    /// They are as they were when the watch began.
    pub(crate) unchanged: Vec<Range<u64>>,
    /// A change of them waits, and may be withdrawn.
    pub(crate) waiting: Vec<Range<u64>>,
}

impl Watches {
    pub(crate) fn begin(&mut self, slot: Slot, sectors: Range<u64>) -> u64 {
        let number = self.next;
        self.next += 1;
        let committed = Vec::new();
        self.all.insert(
            number,
            Watch {
                slot,
                sectors,
                committed,
            },
        );
        number
    }

    pub(crate) fn end(&mut self, number: u64) {
        self.all.remove(&number);
    }

    /// The volume has left the ring: nobody asks for these any more.
    pub(crate) fn leave(&mut self, slot: Slot) {
        self.all.retain(|_, it| it.slot != slot);
    }

    /// What was committed since the watch with this number began.
    pub(crate) fn of(&self, number: u64) -> Option<&[Range<u64>]> {
        self.all.get(&number).map(|it| &*it.committed)
    }

    /// Nothing is watched, as is so nearly always.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A change is committed.
    pub(crate) fn committed(&mut self, slot: Slot, sectors: &Range<u64>) {
        for watch in self.all.values_mut() {
            if watch.slot == slot && overlap(&watch.sectors, sectors) {
                watch.committed.push(sectors.clone());
            }
        }
    }

    /// Of these sectors, which are watched under this number; `waiting`: those of all changes that
    /// are not committed.
    pub(crate) fn watched(
        &self,
        number: u64,
        sectors: Range<u64>,
        waiting: impl Iterator<Item = Range<u64>>,
    ) -> Watched {
        let Some(watch) = self.all.get(&number) else {
            return Watched::default();
        };
        let mut left = vec![sectors];
        for it in &watch.committed {
            left = without(left, it);
        }
        let mut unchanged = left.clone();
        let mut later = Vec::new();
        for it in waiting {
            later.extend(left.iter().filter_map(|part| common(part, &it)));
            unchanged = without(unchanged, &it);
        }
        Watched {
            unchanged,
            waiting: joined(later),
        }
    }
}

fn common(one: &Range<u64>, other: &Range<u64>) -> Option<Range<u64>> {
    let common = one.start.max(other.start)..one.end.min(other.end);
    (!common.is_empty()).then_some(common)
}

fn without(parts: Vec<Range<u64>>, what: &Range<u64>) -> Vec<Range<u64>> {
    let mut left = Vec::with_capacity(parts.len());
    for part in parts {
        if overlap(&part, what) {
            left.push(part.start..what.start);
            left.push(what.end..part.end);
            left.retain(|it| !it.is_empty());
        } else {
            left.push(part);
        }
    }
    left
}

/// The same sectors, each once.
fn joined(mut parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    parts.sort_by_key(|it| it.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            Some(_) | None => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod test {
    use super::super::changes::{Changes, Waiting};
    use super::*;
    use volume::Fence;

    const SLOT: Slot = Slot(3);

    fn waits(slot: Slot, sectors: Range<u64>) -> Waiting {
        Waiting {
            slot,
            sectors,
            fence: Fence::default(),
            bytes: 0,
        }
    }

    #[test]
    fn what_was_committed_is_left_out_and_what_waits_is_asked_for_again() {
        let (mut watches, mut changes) = (Watches::default(), Changes::default());
        let number = watches.begin(SLOT, 10..30);
        let other = watches.begin(Slot(4), 10..30);
        let waiting = changes.push(waits(SLOT, 5..12));
        changes.push(waits(Slot(4), 20..21));
        let own = changes.push(waits(SLOT, 25..27));
        watches.committed(SLOT, &(14..16));
        watches.committed(SLOT, &(40..41));
        let watched = |watches: &Watches, changes: &Changes| {
            let it = watches.watched(number, 10..28, changes.of(SLOT));
            (it.unchanged, it.waiting)
        };
        let expected = (vec![12..14, 16..25, 27..28], vec![10..12, 25..27]);
        assert_eq!(watched(&watches, &changes), expected);
        // The first one is committed, the other one withdrawn.
        changes.take(waiting).unwrap();
        watches.committed(SLOT, &(5..12));
        changes.take(own).unwrap();
        assert_eq!(watched(&watches, &changes), (vec![12..14, 16..28], vec![]));
        let others = watches.watched(other, 10..30, changes.of(Slot(4)));
        assert_eq!(others.unchanged, [10..20, 21..30]);
        watches.end(number);
        assert_eq!(watched(&watches, &changes), (vec![], vec![]), "no watch");
    }

    #[test]
    fn what_waits_twice_and_what_was_committed_meanwhile_comes_once_or_not_at_all() {
        let (mut watches, mut changes) = (Watches::default(), Changes::default());
        let number = watches.begin(SLOT, 0..10);
        changes.push(waits(SLOT, 2..6));
        changes.push(waits(SLOT, 4..8));
        watches.committed(SLOT, &(5..6));
        let found = watches.watched(number, 0..10, changes.of(SLOT));
        assert_eq!(found.unchanged, [0..2, 8..10]);
        assert_eq!(found.waiting, [2..5, 6..8]);
    }
}
