//! Bytes in flight: how many a unit and a session hold, and how many they may.
//!
//! **Contract.** A command holds its bytes from the moment when its data is asked for (a write) or when it goes to the
//! backend (a read), until the backend has let go of them, also where the command was aborted. Where a limit stands, what
//! is held never passes it, but that a unit that holds nothing takes one command however large it is. A session whose
//! command finds no room waits, and what others hold goes back to them: while somebody waits, nobody else takes more than
//! their part.
//!
//! Without a limit, a unit's bytes are counted on each core apart. With one, they are counted in one place for all cores,
//! which is what a limit over all of them costs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A unit's limit, which all cores share.
#[derive(Default)]
pub struct InFlightLimit {
    /// 0: none.
    most: AtomicU64,
    /// What is held under the limit.
    held: AtomicU64,
    /// Sessions that wait for it.
    waiting: AtomicU64,
}

impl InFlightLimit {
    /// Sets or lifts it. What is held stays; more is taken only where the new limit allows it.
    pub(crate) fn set(&self, most: Option<u64>) {
        self.most.store(most.unwrap_or(0), Ordering::Relaxed);
    }

    fn most(&self) -> Option<u64> {
        Some(self.most.load(Ordering::Relaxed)).filter(|most| *most > 0)
    }

    /// Takes `bytes` for a session that holds `holds` of this unit already; `waits`: it is among those that wait.
    fn take(&self, bytes: u64, holds: u64, waits: bool) -> Taken {
        let Some(most) = self.most() else {
            return Taken::Unlimited;
        };
        let waiting = self.waiting.load(Ordering::Relaxed);
        let others = waiting.saturating_sub(u64::from(waits));
        let part = most / 2 / (others + 1);
        if others > 0 && holds > 0 && holds.saturating_add(bytes) > part {
            return Taken::No;
        }
        let room = |held: u64| {
            let then = held.saturating_add(bytes);
            (then <= most || held == 0).then_some(then)
        };
        // The count alone is shared; nothing else is ordered by it.
        let taken = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        if taken.is_ok() {
            Taken::Limited
        } else {
            Taken::No
        }
    }
}

enum Taken {
    Unlimited,
    Limited,
    No,
}

/// Says that a session waits for room, until it is dropped.
pub struct WaitsForRoom(std::sync::Arc<crate::unit::LogicalUnit>);

impl WaitsForRoom {
    pub(crate) fn new(unit: &std::sync::Arc<crate::unit::LogicalUnit>) -> Self {
        unit.in_flight_limit()
            .waiting
            .fetch_add(1, Ordering::Relaxed);
        Self(std::sync::Arc::clone(unit))
    }
}

impl Drop for WaitsForRoom {
    fn drop(&mut self) {
        let limit = self.0.in_flight_limit();
        limit.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a task holds.
#[derive(Default)]
pub(crate) struct Held {
    bytes: Cell<u64>,
    limited: Cell<bool>,
}

impl Held {
    /// Takes `bytes`, once; `here`: what this core's tasks hold of the unit.
    pub(crate) fn take(
        &self,
        limit: &InFlightLimit,
        here: &Cell<u64>,
        bytes: u64,
        holds: u64,
        waits: bool,
    ) -> bool {
        if self.bytes.get() > 0 {
            return true;
        }
        match limit.take(bytes, holds, waits) {
            Taken::No => return false,
            Taken::Limited => self.limited.set(true),
            Taken::Unlimited => {}
        }
        self.bytes.set(bytes);
        here.set(here.get() + bytes);
        true
    }

    /// Gives all of it back.
    pub(crate) fn give_back(&self, limit: &InFlightLimit, here: &Cell<u64>) {
        let bytes = self.bytes.replace(0);
        here.set(here.get().saturating_sub(bytes));
        if self.limited.replace(false) {
            limit.held.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    struct Unit(InFlightLimit, Cell<u64>);

    impl Unit {
        fn new(most: u64) -> Self {
            let unit = Self(InFlightLimit::default(), Cell::new(0));
            unit.0.set(Some(most));
            unit
        }

        fn take(&self, bytes: u64, holds: u64, waits: bool) -> Option<Held> {
            let held = Held::default();
            held.take(&self.0, &self.1, bytes, holds, waits)
                .then_some(held)
        }

        fn give_back(&self, held: &Held) {
            held.give_back(&self.0, &self.1);
        }
    }

    #[test]
    fn the_limit_holds_and_an_idle_unit_takes_one_command_of_any_size() {
        let unit = Unit::new(100);
        let large = unit.take(1000, 0, false).unwrap();
        assert!(unit.take(1, 0, false).is_none());
        unit.give_back(&large);
        unit.give_back(&large);
        assert_eq!(unit.1.get(), 0, "once only");
        let held: Vec<_> = (0..10).map(|_| unit.take(10, 0, false).unwrap()).collect();
        assert!(unit.take(1, 0, false).is_none());
        unit.give_back(&held[0]);
        assert!(unit.take(11, 0, false).is_none());
        assert!(unit.take(10, 0, false).is_some());
    }

    #[test]
    fn while_another_session_waits_none_takes_more_than_its_part() {
        let unit = Unit::new(100);
        unit.0.waiting.store(1, Ordering::Relaxed);
        assert!(unit.take(10, 20, false).is_none(), "25 are its part");
        assert!(unit.take(5, 20, false).is_some());
        assert!(unit.take(60, 0, false).is_some(), "it holds nothing");
        assert!(unit.take(10, 20, true).is_some(), "nobody but itself waits");
    }

    #[test]
    fn a_limit_that_changes_meanwhile_counts_what_was_taken_under_it() {
        let unit = Unit::new(100);
        let old = unit.take(80, 0, false).unwrap();
        unit.0.set(None);
        let free = unit.take(500, 0, false).unwrap();
        unit.0.set(Some(50));
        assert!(unit.take(1, 0, false).is_none());
        unit.give_back(&old);
        assert!(unit.take(50, 0, false).is_some());
        unit.give_back(&free);
        assert!(
            unit.take(1, 0, false).is_none(),
            "what was free is not given back to it"
        );
    }
}
