//! The home core's table of holds: it puts conflicting holds of all cores into one order.
//!
//! A synchronous machine. First come, first served among those that conflict, so nobody starves;
//! those that agree pass each other. Ordered holds and exclusive ones never conflict here: an
//! ordered task waits for older tasks, and one of those may need an exclusive hold to end.

use crate::admission::{HoldId, HoldKind};
use std::collections::VecDeque;

/// The holds that stand, and those that wait behind them in the order in which they came.
#[derive(Default, Debug)]
pub(crate) struct HoldTable {
    standing: Vec<(HoldId, HoldKind)>,
    waiting: VecDeque<(HoldId, HoldKind)>,
}

impl HoldTable {
    /// Asks for a hold. `true`: it stands; `false`: [`HoldTable::release`] of another will name it.
    pub(crate) fn request(&mut self, id: HoldId, kind: HoldKind) -> bool {
        let free = self
            .standing
            .iter()
            .chain(&self.waiting)
            .all(|(_, other)| kind.agrees_with(*other));
        if free {
            self.standing.push((id, kind));
        } else {
            self.waiting.push_back((id, kind));
        }
        free
    }

    /// Gives a hold back, standing or still waiting; answers those that stand from now on.
    pub(crate) fn release(&mut self, id: HoldId) -> Vec<HoldId> {
        self.standing.retain(|(held, _)| *held != id);
        self.waiting.retain(|(held, _)| *held != id);
        let mut granted = Vec::new();
        let mut still = VecDeque::new();
        for (id, kind) in std::mem::take(&mut self.waiting) {
            if self
                .standing
                .iter()
                .chain(&still)
                .all(|(_, other)| kind.agrees_with(*other))
            {
                self.standing.push((id, kind));
                granted.push(id);
            } else {
                still.push_back((id, kind));
            }
        }
        self.waiting = still;
        granted
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use units::{BlockCount, Lba, LbaRange};

    fn id(number: u64) -> HoldId {
        HoldId { core: 0, number }
    }

    fn range(start: u64, len: u64) -> HoldKind {
        HoldKind::Range(LbaRange::new(Lba(start), BlockCount(len)).unwrap())
    }

    #[test]
    fn conflicting_holds_stand_one_after_the_other_in_order_of_asking() {
        let mut table = HoldTable::default();
        assert!(table.request(id(1), range(0, 4)));
        assert!(!table.request(id(2), HoldKind::All));
        assert!(
            !table.request(id(3), range(8, 1)),
            "it may not overtake the one on everything"
        );
        assert!(table.request(id(4), HoldKind::Order));
        assert_eq!(table.release(id(1)), [id(2)]);
        assert_eq!(table.release(id(2)), [id(3)]);
    }

    #[test]
    fn a_waiting_hold_can_be_given_up() {
        let mut table = HoldTable::default();
        assert!(table.request(id(1), HoldKind::All));
        assert!(!table.request(id(2), HoldKind::All));
        assert!(!table.request(id(3), HoldKind::All));
        assert_eq!(table.release(id(2)), []);
        assert_eq!(table.release(id(1)), [id(3)]);
    }
}
