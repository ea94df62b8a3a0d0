//! Writes that go to the backing volume around the log, while they are under way.

use super::changes::overlap;
use journal::{Slot, Token};
use std::ops::Range;

/// Which one, in the order in which they began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WriteAroundId(u64);

#[derive(Clone)]
struct WriteAround {
    id: WriteAroundId,
    slot: Slot,
    sectors: Range<u64>,
    /// It is answered when the backing volume has it, whether the log knows of it or not.
    is_volatile: bool,
    /// Of its record, which says to the log that it is under way.
    record: Token,
}

/// Those that are under way.
#[derive(Clone, Default)]
pub(crate) struct WriteArounds {
    all: Vec<WriteAround>,
    begun: u64,
}

impl WriteArounds {
    pub(crate) fn begin(
        &mut self,
        slot: Slot,
        sectors: Range<u64>,
        is_volatile: bool,
        record: Token,
    ) -> WriteAroundId {
        let id = WriteAroundId(self.begun);
        self.begun += 1;
        self.all.push(WriteAround {
            id,
            slot,
            sectors,
            is_volatile,
            record,
        });
        id
    }

    /// # Panics
    /// If it has ended already.
    pub(crate) fn end(&mut self, id: WriteAroundId) {
        let place = self.all.iter().position(|it| it.id == id);
        self.all.remove(place.expect("it ends once"));
    }

    /// One touches these sectors.
    pub(crate) fn touch(&self, slot: Slot, sectors: &Range<u64>) -> bool {
        let mut all = self.all.iter();
        all.any(|it| it.slot == slot && overlap(&it.sectors, sectors))
    }

    /// One is of this volume.
    pub(crate) fn are_of(&self, slot: Slot) -> bool {
        self.all.iter().any(|it| it.slot == slot)
    }

    /// One of this volume is answered without the log.
    pub(crate) fn are_volatile_of(&self, slot: Slot) -> bool {
        self.all.iter().any(|it| it.slot == slot && it.is_volatile)
    }

    /// The newest one whose record does not wait any more. Records come in the order in which the
    /// writes began.
    pub(crate) fn newest_known(&self, waits: impl Fn(Token) -> bool) -> Option<WriteAroundId> {
        let known = self.all.iter().filter(|it| !waits(it.record));
        known.map(|it| it.id).max()
    }

    /// One up to this one is under way.
    pub(crate) fn are_until(&self, newest: WriteAroundId) -> bool {
        self.all.iter().any(|it| it.id <= newest)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn they_are_known_by_blocks_and_age_until_they_end() {
        let mut all = WriteArounds::default();
        let first = all.begin(Slot(1), 0..8, false, Token(3));
        let second = all.begin(Slot(2), 8..16, true, Token(5));
        assert!(all.touch(Slot(1), &(7..9)) && !all.touch(Slot(1), &(8..9)));
        assert!(all.are_volatile_of(Slot(2)) && !all.are_volatile_of(Slot(1)));
        assert_eq!(all.newest_known(|_| false), Some(second));
        assert_eq!(all.newest_known(|it| it >= Token(4)), Some(first));
        assert_eq!(all.newest_known(|_| true), None);
        all.end(first);
        assert!(!all.are_until(first) && all.are_until(second));
        assert!(!all.are_of(Slot(1)) && all.are_of(Slot(2)));
    }
}
