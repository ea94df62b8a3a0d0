//! Changes that wait to be stable, in the order in which they came.

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
    /// The tokens that these wait for, in order: all before each must be answered.
    sync_points: VecDeque<u64>,
}

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

    /// Takes one out that is about to be answered, and says how many sync points that reaches.
    pub(crate) fn take(&mut self, token: Token) -> Option<(Waiting, usize)> {
        let place = usize::try_from(token.0.checked_sub(self.first)?).ok()?;
        let waiting = self.waiting.get_mut(place)?.take()?;
        while matches!(self.waiting.front(), Some(None)) {
            self.waiting.pop_front();
            self.first += 1;
        }
        let mut reached = 0;
        while self.sync_points.front().is_some_and(|it| *it <= self.first) {
            self.sync_points.pop_front();
            reached += 1;
        }
        Some((waiting, reached))
    }

    /// Somebody waits until all that came before is answered; `false`: it is already.
    pub(crate) fn add_sync_point(&mut self) -> bool {
        let waits = !self.waiting.is_empty();
        if waits {
            self.sync_points.push_back(self.next_token().0);
        }
        waits
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

    fn change(sectors: Range<u64>) -> Waiting {
        Waiting {
            slot: Slot(0),
            sectors,
            fence: Fence::default(),
            bytes: 0,
        }
    }

    #[test]
    fn a_sync_point_is_reached_with_the_last_answer_before_it_whatever_their_order() {
        let mut changes = Changes::default();
        assert!(!changes.add_sync_point(), "nothing waits");
        let tokens: Vec<Token> = (0..3).map(|at| changes.push(change(at..at + 1))).collect();
        assert!(changes.add_sync_point());
        let later = changes.push(change(9..10));
        assert!(changes.add_sync_point());
        let reached = |changes: &mut Changes, token| changes.take(token).unwrap().1;
        assert_eq!(reached(&mut changes, tokens[2]), 0);
        assert_eq!(reached(&mut changes, tokens[0]), 0);
        assert!(changes.touch(Slot(0), &(1..2)) && !changes.touch(Slot(1), &(1..2)));
        assert_eq!(reached(&mut changes, tokens[1]), 1);
        assert!(changes.take(tokens[1]).is_none() && changes.get(tokens[1]).is_none());
        assert_eq!(reached(&mut changes, later), 1);
        assert_eq!(changes.next_token(), Token(4));
    }
}
