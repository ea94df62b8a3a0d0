//! Changes that wait to be acknowledged, in the order in which they came, and who waits for those
//! of a volume that came before.

use journal::{Slot, Token};
use std::collections::VecDeque;
use std::ops::Range;
use volume::Fence;

/// A change that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) slot: Slot,
    pub(crate) sectors: Range<u64>,
    pub(crate) fence: Fence,
    /// Of its data.
    pub(crate) bytes: usize,
}

/// Those that wait, by their tokens, and who waits for all that came before.
#[derive(Clone, Default)]
pub(crate) struct Changes {
    /// From `first` on; `None` once answered.
    waiting: VecDeque<Option<Waiting>>,
    first: u64,
    /// In the order in which they came.
    sync_points: Vec<SyncPoint>,
}

/// Somebody waits until all changes of a volume are answered that came before.
#[derive(Clone)]
struct SyncPoint {
    slot: Slot,
    /// The token of the first one that came later.
    end: u64,
    /// How many of the volume are not answered.
    left: usize,
}

/// Which sync points are passed, one after another: the place of each among those that are left.
pub(crate) type Passed = Vec<usize>;

impl Changes {
    /// Adds one behind all others.
    pub(crate) fn push(&mut self, waiting: Waiting) -> Token {
        let token = self.next_token();
        self.waiting.push_back(Some(waiting));
        token
    }

    /// The token that the next one gets.
    pub(crate) fn next_token(&self) -> Token {
        Token(self.first + self.waiting.len() as u64)
    }

    /// One that waits.
    pub(crate) fn get(&self, token: Token) -> Option<&Waiting> {
        let place = usize::try_from(token.0.checked_sub(self.first)?).ok()?;
        self.waiting.get(place)?.as_ref()
    }

    /// Takes one out that is about to be answered, and says which sync points that reaches.
    pub(crate) fn take(&mut self, token: Token) -> Option<(Waiting, Passed)> {
        let place = usize::try_from(token.0.checked_sub(self.first)?).ok()?;
        let waiting = self.waiting.get_mut(place)?.take()?;
        while matches!(self.waiting.front(), Some(None)) {
            self.waiting.pop_front();
            self.first += 1;
        }
        let passed = self.pass(waiting.slot, token.0);
        Some((waiting, passed))
    }

    /// The change of a volume with this token is answered.
    fn pass(&mut self, slot: Slot, token: u64) -> Passed {
        let mut passed = Vec::new();
        if self.sync_points.is_empty() {
            return passed;
        }
        let mut place = 0;
        while let Some(it) = self.sync_points.get_mut(place) {
            if it.slot == slot && token < it.end {
                it.left -= 1;
            }
            if it.left == 0 {
                self.sync_points.remove(place);
                passed.push(place);
            } else {
                place += 1;
            }
        }
        passed
    }

    /// Somebody waits until all of the volume that came before is answered; `false`: it is already.
    /// Nobody waits for other volumes: what they wait for may be another node.
    pub(crate) fn add_sync_point(&mut self, slot: Slot) -> bool {
        let waiting = self.waiting.iter().flatten();
        let left = waiting.filter(|it| it.slot == slot).count();
        if left > 0 {
            let end = self.next_token().0;
            self.sync_points.push(SyncPoint { slot, end, left });
        }
        left > 0
    }

    /// The sectors of all that wait of a volume.
    pub(crate) fn of(&self, slot: Slot) -> impl Iterator<Item = Range<u64>> {
        let waiting = self.waiting.iter().flatten();
        let of_slot = waiting.filter(move |it| it.slot == slot);
        of_slot.map(|it| it.sectors.clone())
    }

    /// One waits that touches these sectors.
    pub(crate) fn touch(&self, slot: Slot, sectors: &Range<u64>) -> bool {
        let mut waiting = self.waiting.iter().flatten();
        waiting.any(|it| it.slot == slot && overlap(&it.sectors, sectors))
    }
}

/// Two ranges have something in common.
pub(crate) fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod test {
    use super::*;

    fn change(slot: u16, sectors: Range<u64>) -> Waiting {
        Waiting {
            slot: Slot(slot),
            sectors,
            fence: Fence::default(),
            bytes: 0,
        }
    }

    #[test]
    fn a_sync_point_is_passed_with_the_last_answer_of_its_volume_before_it_whatever_their_order() {
        let mut changes = Changes::default();
        assert!(!changes.add_sync_point(Slot(0)), "nothing waits");
        let tokens: Vec<Token> = (0..3)
            .map(|at| changes.push(change(0, at..at + 1)))
            .collect();
        let other = changes.push(change(1, 0..1));
        assert!(changes.add_sync_point(Slot(0)));
        assert!(changes.add_sync_point(Slot(1)));
        assert!(
            !changes.add_sync_point(Slot(2)),
            "others are not waited for"
        );
        let later = changes.push(change(0, 9..10));
        assert!(changes.add_sync_point(Slot(0)));
        let passed = |changes: &mut Changes, token| changes.take(token).unwrap().1;
        let none: Vec<usize> = Vec::new();
        assert_eq!(passed(&mut changes, tokens[2]), none);
        assert_eq!(passed(&mut changes, later), none);
        assert_eq!(passed(&mut changes, tokens[0]), none);
        assert!(changes.touch(Slot(0), &(1..2)) && !changes.touch(Slot(1), &(1..2)));
        // The first one and, of those that are left then, the second one.
        assert_eq!(passed(&mut changes, tokens[1]), [0, 1]);
        assert!(changes.take(tokens[1]).is_none() && changes.get(tokens[1]).is_none());
        assert_eq!(passed(&mut changes, other), [0]);
        assert_eq!(changes.next_token(), Token(5));
    }
}
