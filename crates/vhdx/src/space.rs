//! Where in the file new blocks go.

use crate::geometry::MIB;
use std::collections::BTreeMap;

/// Space of the file that nothing uses.
///
/// What became free is used again when the log says so on the disk; until then an older entry may
/// still point there.
#[derive(Clone, Default, Debug)]
pub(crate) struct Space {
    /// Free, from and to, in bytes.
    free: BTreeMap<u64, u64>,
    /// Free as soon as the log says so.
    freed: Vec<(u64, u64)>,
    /// The log says that they are free, and somebody may still read or write there.
    resting: Vec<(u64, u64)>,
    /// What became free rests first.
    rests: bool,
    /// The first byte behind everything.
    end: u64,
}

/// Some space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub(crate) place: u64,
    pub(crate) bytes: u64,
    /// Something was there before: it does not read as zeroes.
    pub(crate) is_used: bool,
}

impl Space {
    /// Of a file so long, all of which may be in use.
    pub(crate) fn behind(file_bytes: u64) -> Self {
        Self {
            end: file_bytes.next_multiple_of(MIB),
            ..Self::default()
        }
    }

    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn set_end(&mut self, end: u64) {
        self.end = end;
        let beyond = self.free.split_off(&end);
        drop(beyond);
    }

    /// Space for a block: the first that is free, else behind everything.
    pub(crate) fn take(&mut self, bytes: u64) -> Taken {
        let found = self.free.iter().find(|(from, to)| **to - **from >= bytes);
        if let Some((&place, &to)) = found {
            self.free.remove(&place);
            if place + bytes < to {
                self.free.insert(place + bytes, to);
            }
            return Taken {
                place,
                bytes,
                is_used: true,
            };
        }
        let place = self.end;
        self.end += bytes;
        Taken {
            place,
            bytes,
            is_used: false,
        }
    }

    /// Nothing needs it as soon as the log says so.
    pub(crate) fn free(&mut self, place: u64, bytes: u64) {
        self.freed.push((place, place + bytes));
    }

    /// The log says what was freed.
    pub(crate) fn committed(&mut self) {
        let freed = std::mem::take(&mut self.freed);
        if self.rests {
            self.resting.extend(freed);
        } else {
            self.reuse(freed);
        }
    }

    pub(crate) const fn let_rest(&mut self) {
        self.rests = true;
    }

    pub(crate) fn take_resting(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.resting)
    }

    pub(crate) fn reuse(&mut self, places: Vec<(u64, u64)>) {
        for (from, to) in places {
            // What was cut off meanwhile is no space any more.
            if to <= self.end {
                self.add(from, to);
            }
        }
    }

    /// It was taken for nothing.
    pub(crate) fn give(&mut self, taken: Taken) {
        self.add(taken.place, taken.place + taken.bytes);
    }

    /// What is free already, in whole or in part, stays as it is: given twice, two blocks would
    /// get it.
    fn add(&mut self, mut from: u64, mut to: u64) {
        let last = self.free.range(..to).next_back();
        if last.is_some_and(|(_, stop)| *stop > from) {
            return;
        }
        if let Some(end) = self.free.remove(&to) {
            to = end;
        }
        if let Some((&start, &stop)) = self.free.range(..from).next_back()
            && stop == from
        {
            self.free.remove(&start);
            from = start;
        }
        self.free.insert(from, to);
    }

    #[cfg(test)]
    fn free_bytes(&self) -> u64 {
        self.free.iter().map(|(from, to)| to - from).sum()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn space_is_used_again_when_the_log_says_that_it_is_free() {
        let mut space = Space::behind(5 * MIB + 1);
        let first = space.take(2 * MIB);
        assert_eq!(
            (first.place, first.is_used, space.end()),
            (6 * MIB, false, 8 * MIB)
        );
        space.free(first.place, first.bytes);
        assert_eq!(space.take(MIB).place, 8 * MIB);
        space.committed();
        assert_eq!(space.free_bytes(), 2 * MIB);
        let again = space.take(MIB);
        assert_eq!((again.place, again.is_used), (6 * MIB, true));
        assert_eq!(
            (space.take(2 * MIB).place, space.free_bytes()),
            (9 * MIB, MIB)
        );
    }

    #[test]
    fn space_that_is_given_back_twice_is_free_once() {
        let mut space = Space::behind(MIB);
        let [first, shared, second] = [2 * MIB, MIB, 2 * MIB].map(|bytes| space.take(bytes));
        for taken in [first, shared, second, shared, first, second] {
            space.give(taken);
        }
        assert_eq!(space.free_bytes(), 5 * MIB);
        // Nothing that is handed out then overlaps.
        let mut places: Vec<u64> = (0..5).map(|_| space.take(MIB).place).collect();
        places.sort_unstable();
        assert_eq!(places, [1, 2, 3, 4, 5].map(|number| number * MIB));
        assert_eq!((space.free_bytes(), space.take(MIB).place), (0, 6 * MIB));
    }
}
