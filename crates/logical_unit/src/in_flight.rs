//! Bytes in flight: how many a unit and a session hold, and how many they may.
//!
//! **Contract.** A command holds its bytes from the moment when its data is asked for (a write) or
//! when it goes to the backend (a read), until the backend has let go of them, also where the
//! command was aborted. Where a limit stands, what is held never passes it, but that a unit that
//! holds nothing takes one command however large it is. A session whose command finds no room waits
//! in a queue ([`crate::room_queue`]) and is woken when it is its turn: while somebody waits,
//! nobody else takes what the oldest needs, nor more than their part.
//!
//! Without a limit, a unit's bytes are counted on each core apart. With one, they are counted in
//! one place for all cores, which is what a limit over all of them costs.

use crate::room_queue::{QueueNumber, RoomQueue, Wake};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// A unit's limit, which all cores share.
#[derive(Default)]
pub struct InFlightLimit {
    /// 0: none.
    most: AtomicU64,
    /// What is held under the limit.
    held: AtomicU64,
    /// Sessions in the queue, for those who do not read it.
    waiting: AtomicU64,
    queue: Mutex<RoomQueue>,
}

/// What came of a look for room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// It is taken.
    Taken,
    /// There is too little, or others come first.
    TooLittle,
    /// The session holds its part already. It tries again when a command of its own has ended.
    HasItsPart,
}

impl InFlightLimit {
    /// Sets or lifts it. What is held stays; more is taken only where the new limit allows it.
    pub(crate) fn set(&self, most: Option<u64>) {
        self.most.store(most.unwrap_or(0), Ordering::SeqCst);
        self.with_queue(RoomQueue::wake_oldest).wake();
    }

    fn most(&self) -> Option<u64> {
        Some(self.most.load(Ordering::Relaxed)).filter(|most| *most > 0)
    }

    fn with_queue<T>(&self, change: impl FnOnce(&mut RoomQueue) -> T) -> T {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut queue);
        self.waiting.store(queue.len(), Ordering::SeqCst);
        changed
    }

    /// Takes `bytes` for a session that holds `holds` of this unit already; `place`: where it
    /// stands in the queue.
    fn take(&self, bytes: u64, holds: u64, place: Option<QueueNumber>) -> Taken {
        let Some(most) = self.most() else {
            return Taken::Unlimited;
        };
        let waiting = self.waiting.load(Ordering::SeqCst);
        let others = waiting.saturating_sub(u64::from(place.is_some()));
        let part = most / 2 / (others + 1);
        if others > 0 && holds > 0 && holds.saturating_add(bytes) > part {
            return Taken::No(Room::HasItsPart);
        }
        let before = if others > 0 {
            self.with_queue(|queue| queue.wanted_before(place))
        } else {
            0
        };
        let room = |held: u64| {
            let then = held.saturating_add(bytes);
            let alone = held == 0 && before == 0;
            (alone || then.saturating_add(before) <= most).then_some(then)
        };
        // One order with the queue: whoever enters it and then finds nothing here is seen by who
        // gives back after that.
        let taken = self
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, room);
        if taken.is_ok() {
            Taken::Limited
        } else {
            Taken::No(Room::TooLittle)
        }
    }

    fn gives_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.with_queue(RoomQueue::wake_oldest).wake();
        }
    }
}

enum Taken {
    Unlimited,
    Limited,
    No(Room),
}

/// A session's place among those that wait for room at a unit, until it is dropped.
pub struct WaitsForRoom {
    limit: Arc<InFlightLimit>,
    place: QueueNumber,
}

impl WaitsForRoom {
    /// At the end of the queue, with a command of `bytes` bytes. Whoever has entered tries once
    /// more: what was given back just before woke nobody.
    pub(crate) fn new(limit: &Arc<InFlightLimit>, bytes: u64) -> Self {
        Self {
            place: limit.with_queue(|queue| queue.enter(bytes)),
            limit: Arc::clone(limit),
        }
    }

    fn change(&self, change: impl FnOnce(&mut RoomQueue) -> Wake) {
        self.limit.with_queue(change).wake();
    }

    /// It tried, and there was too little room for `bytes` bytes.
    pub fn stays(&self, bytes: u64) {
        self.limit
            .with_queue(|queue| queue.stays(self.place, bytes));
    }

    /// It tried, has begun a command, and needs `bytes` bytes more.
    pub fn goes_back(&mut self, bytes: u64) {
        let (place, next) = self
            .limit
            .with_queue(|queue| queue.goes_back(self.place, bytes));
        self.place = place;
        next.wake();
    }

    /// It tried, and waits for something else than room. It will try again by itself.
    pub fn is_busy(&self) {
        self.change(|queue| queue.is_busy(self.place));
    }

    /// Ready once it is to try; the task is woken then.
    pub fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        self.limit.with_queue(|queue| queue.poll(self.place, cx))
    }
}

impl Drop for WaitsForRoom {
    fn drop(&mut self) {
        self.change(|queue| queue.leave(self.place));
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
        waits: Option<&WaitsForRoom>,
    ) -> Room {
        if self.bytes.get() > 0 {
            return Room::Taken;
        }
        match limit.take(bytes, holds, waits.map(|waits| waits.place)) {
            Taken::No(why) => return why,
            Taken::Limited => self.limited.set(true),
            Taken::Unlimited => {}
        }
        self.bytes.set(bytes);
        here.set(here.get() + bytes);
        Room::Taken
    }

    /// Gives all of it back.
    pub(crate) fn give_back(&self, limit: &InFlightLimit, here: &Cell<u64>) {
        let bytes = self.bytes.replace(0);
        here.set(here.get().saturating_sub(bytes));
        if self.limited.replace(false) {
            limit.gives_back(bytes);
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    struct Unit(InFlightLimit);

    impl Unit {
        fn new(most: u64) -> Self {
            let unit = Self(InFlightLimit::default());
            unit.0.set(Some(most));
            unit
        }

        /// What is taken is given back when it is dropped.
        fn take(
            &self,
            bytes: u64,
            holds: u64,
            place: Option<QueueNumber>,
        ) -> Result<Taking<'_>, Room> {
            match self.0.take(bytes, holds, place) {
                Taken::No(why) => Err(why),
                Taken::Limited => Ok(Taking(&self.0, bytes)),
                Taken::Unlimited => Ok(Taking(&self.0, 0)),
            }
        }

        fn enter(&self, bytes: u64) -> QueueNumber {
            self.0.with_queue(|queue| queue.enter(bytes))
        }
    }

    struct Taking<'a>(&'a InFlightLimit, u64);

    impl Drop for Taking<'_> {
        fn drop(&mut self) {
            if self.1 > 0 {
                self.0.gives_back(self.1);
            }
        }
    }

    fn why(taken: Result<Taking<'_>, Room>) -> Option<Room> {
        taken.err()
    }

    #[test]
    fn the_limit_holds_and_an_idle_unit_takes_one_command_of_any_size() {
        let unit = Unit::new(100);
        let large = unit.take(1000, 0, None).ok().unwrap();
        assert_eq!(why(unit.take(1, 0, None)), Some(Room::TooLittle));
        drop(large);
        let mut held: Vec<_> = (0..10)
            .map(|_| unit.take(10, 0, None).ok().unwrap())
            .collect();
        assert_eq!(why(unit.take(1, 0, None)), Some(Room::TooLittle));
        held.pop();
        assert_eq!(why(unit.take(11, 0, None)), Some(Room::TooLittle));
        assert_eq!(why(unit.take(10, 0, None)), None);
    }

    #[test]
    fn what_a_task_holds_is_given_back_once() {
        let (limit, here, held) = (InFlightLimit::default(), Cell::new(0), Held::default());
        limit.set(Some(100));
        assert_eq!(held.take(&limit, &here, 60, 0, None), Room::Taken);
        assert_eq!(
            held.take(&limit, &here, 60, 0, None),
            Room::Taken,
            "it has it"
        );
        assert_eq!((here.get(), limit.held.load(Ordering::Relaxed)), (60, 60));
        held.give_back(&limit, &here);
        held.give_back(&limit, &here);
        assert_eq!((here.get(), limit.held.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn while_another_session_waits_none_takes_more_than_its_part_nor_what_the_oldest_needs() {
        let unit = Unit::new(100);
        let place = unit.enter(60);
        assert_eq!(
            why(unit.take(10, 20, None)),
            Some(Room::HasItsPart),
            "25 are its part"
        );
        assert_eq!(why(unit.take(5, 20, None)), None);
        assert_eq!(
            why(unit.take(60, 0, None)),
            Some(Room::TooLittle),
            "60 are for the oldest"
        );
        let small = unit.take(40, 0, None).ok().unwrap();
        assert_eq!(
            why(unit.take(10, 20, Some(place))),
            None,
            "nobody but itself waits"
        );
        drop(small);
        unit.0.with_queue(|queue| queue.is_busy(place)).wake();
        assert_eq!(
            why(unit.take(100, 0, None)),
            None,
            "it does not wait for room"
        );
    }

    #[test]
    fn a_limit_that_changes_meanwhile_counts_what_was_taken_under_it() {
        let unit = Unit::new(100);
        let old = unit.take(80, 0, None).ok().unwrap();
        unit.0.set(None);
        let free = unit.take(500, 0, None).ok().unwrap();
        unit.0.set(Some(50));
        assert_eq!(why(unit.take(1, 0, None)), Some(Room::TooLittle));
        drop(old);
        let new = unit.take(50, 0, None).ok().unwrap();
        drop(free);
        assert_eq!(
            why(unit.take(1, 0, None)),
            Some(Room::TooLittle),
            "what was free is not given back to it"
        );
        drop(new);
    }

    /// Wakes a thread that is parked.
    struct Unpark(std::thread::Thread);

    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// A session as the target drives it: enters, tries once more, sleeps until it is woken.
    /// Answers how often it tried.
    fn session(limit: &InFlightLimit, commands: u64, bytes: u64) -> u64 {
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let cx = Context::from_waker(&waker);
        let mut polls = 0;
        for _ in 0..commands {
            let mut place = None;
            while !matches!(limit.take(bytes, 0, place), Taken::Limited) {
                polls += 1;
                let Some(place) = place else {
                    place = Some(limit.with_queue(|queue| queue.enter(bytes)));
                    continue;
                };
                if polls % 7 == 0 {
                    limit.with_queue(|queue| queue.is_busy(place)).wake();
                    std::thread::yield_now();
                    continue;
                }
                limit.with_queue(|queue| queue.stays(place, bytes));
                while limit
                    .with_queue(|queue| queue.poll(place, &cx))
                    .is_pending()
                {
                    std::thread::park();
                }
            }
            if let Some(place) = place {
                limit.with_queue(|queue| queue.leave(place)).wake();
            }
            std::thread::yield_now();
            limit.gives_back(bytes);
        }
        polls
    }

    #[test]
    fn sessions_of_several_cores_lose_no_wake_up_and_none_polls_in_vain() {
        const COMMANDS: u64 = 5_000;
        let limit = InFlightLimit::default();
        limit.set(Some(100));
        let polls: u64 = std::thread::scope(|scope| {
            let needs = [40, 60, 100, 7, 250, 51];
            let limit = &limit;
            let run = |bytes| scope.spawn(move || session(limit, COMMANDS, bytes));
            let sessions: Vec<_> = needs.into_iter().map(run).collect();
            sessions.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!(limit.held.load(Ordering::SeqCst), 0);
        assert_eq!(limit.waiting.load(Ordering::SeqCst), 0);
        // One try that fails, one more in the queue, and one for each of the others that gives
        // back meanwhile.
        assert!(polls <= 6 * COMMANDS * 8, "{polls}");
    }
}
