//! Sessions that wait for room under a unit's limit of bytes in flight, the oldest first.
//!
//! **Contract.** One of them is woken at a time: the oldest that waits for nothing but room. It
//! looks for itself, on its own core, and says what came of it: it has begun a command and goes to
//! the end of the queue, it waits for something else first, or it leaves. Each of these wakes the
//! next one. Where it found too little room it stays where it is, and nobody is woken before more
//! is given back. So a wake-up is paid for by a command that begins, however many wait, and none is
//! lost: a session that was woken stays so until it has tried.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

/// A session's number in the queue: older ones are less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct QueueNumber(u64);

/// The sessions that wait.
#[derive(Default)]
pub(crate) struct RoomQueue {
    next: u64,
    waiting: BTreeMap<QueueNumber, Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// What its oldest command needs.
    bytes: u64,
    /// It waits for something else first, and comes by itself.
    is_busy: bool,
    is_woken: bool,
    waker: Option<Waker>,
}

/// Who is to be woken, outside of the lock.
#[must_use]
pub(crate) struct Wake(Option<Waker>);

impl Wake {
    pub(crate) fn wake(self) {
        if let Some(waker) = self.0 {
            waker.wake();
        }
    }
}

impl RoomQueue {
    /// A session comes to the end of the queue, with a command of `bytes` bytes.
    pub(crate) fn enter(&mut self, bytes: u64) -> QueueNumber {
        let waiting = Waiting {
            bytes,
            ..Waiting::default()
        };
        self.push(waiting)
    }

    fn push(&mut self, waiting: Waiting) -> QueueNumber {
        let place = QueueNumber(self.next);
        self.next += 1;
        self.waiting.insert(place, waiting);
        place
    }

    /// How many wait.
    pub(crate) fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// What the oldest that waits for nothing but room needs, if it stands before `place`.
    pub(crate) fn wanted_before(&self, place: Option<QueueNumber>) -> u64 {
        let oldest = self.waiting.iter().find(|(_, waiting)| !waiting.is_busy);
        let before = oldest.filter(|(oldest, _)| place.is_none_or(|place| **oldest < place));
        before.map_or(0, |(_, waiting)| waiting.bytes)
    }

    /// There may be room: wakes the oldest that waits for nothing else.
    pub(crate) fn wake_oldest(&mut self) -> Wake {
        let oldest = self.waiting.values_mut().find(|waiting| !waiting.is_busy);
        wake(oldest)
    }

    /// It tried, and found too little room for `bytes` bytes: it stays where it is.
    pub(crate) fn stays(&mut self, place: QueueNumber, bytes: u64) {
        if let Some(waiting) = self.waiting.get_mut(&place) {
            // While it was busy it was passed over, perhaps just after its try: it tries once
            // more.
            waiting.is_woken |= waiting.is_busy;
            (waiting.bytes, waiting.is_busy) = (bytes, false);
        }
    }

    /// It tried, began something, and needs `bytes` bytes more: others come first.
    pub(crate) fn goes_back(&mut self, place: QueueNumber, bytes: u64) -> (QueueNumber, Wake) {
        let Some(mut waiting) = self.waiting.remove(&place) else {
            return (place, Wake(None));
        };
        (waiting.bytes, waiting.is_busy) = (bytes, false);
        let place = self.push(waiting);
        (place, self.wake_oldest())
    }

    /// It tried, and waits for something else first: for memory of its core, or for commands of
    /// its own to end.
    pub(crate) fn is_busy(&mut self, place: QueueNumber) -> Wake {
        if let Some(waiting) = self.waiting.get_mut(&place) {
            waiting.is_busy = true;
        }
        self.wake_oldest()
    }

    /// It waits no longer. The part of each other is larger then: where all wait for something
    /// else, the oldest tries again.
    pub(crate) fn leave(&mut self, place: QueueNumber) -> Wake {
        self.waiting.remove(&place);
        let all_busy = self.waiting.values().all(|waiting| waiting.is_busy);
        if all_busy {
            wake(self.waiting.values_mut().next())
        } else {
            self.wake_oldest()
        }
    }

    /// Ready once it is to try.
    pub(crate) fn poll(&mut self, place: QueueNumber, cx: &Context<'_>) -> Poll<()> {
        let Some(waiting) = self.waiting.get_mut(&place) else {
            return Poll::Pending;
        };
        if std::mem::take(&mut waiting.is_woken) {
            return Poll::Ready(());
        }
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

fn wake(waiting: Option<&mut Waiting>) -> Wake {
    let waker = waiting.and_then(|waiting| {
        waiting.is_woken = true;
        waiting.waker.take()
    });
    Wake(waker)
}

#[cfg(test)]
mod test {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Wake as _;

    struct Count(AtomicU64);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }
        fn wake_by_ref(self: &Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sessions that are asleep.
    struct Sessions {
        queue: RoomQueue,
        places: Vec<QueueNumber>,
        woken: Arc<Count>,
    }

    impl Sessions {
        fn new(needs: &[u64]) -> Self {
            let mut queue = RoomQueue::default();
            let places = needs.iter().map(|bytes| queue.enter(*bytes)).collect();
            let woken = Arc::new(Count(AtomicU64::new(0)));
            let mut sessions = Self {
                queue,
                places,
                woken,
            };
            assert_eq!(sessions.that_poll(), []);
            sessions
        }

        /// Those that are to try, by their numbers.
        fn that_poll(&mut self) -> Vec<usize> {
            let waker = Arc::clone(&self.woken).into();
            let cx = Context::from_waker(&waker);
            let queue = &mut self.queue;
            let places = self.places.iter().enumerate();
            let inspect = places.filter(|(_, place)| queue.poll(**place, &cx).is_ready());
            inspect.map(|(number, _)| number).collect()
        }

        fn wakes(&self) -> u64 {
            self.woken.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn the_oldest_alone_is_woken_and_once() {
        let mut it = Sessions::new(&[10, 10, 10]);
        it.queue.wake_oldest().wake();
        it.queue.wake_oldest().wake();
        assert_eq!((it.wakes(), it.that_poll()), (1, vec![0]));
        // It found nothing: nobody else is asked, until there is more.
        let first = it.places[0];
        it.queue.stays(first, 20);
        assert_eq!(it.that_poll(), []);
        assert_eq!(it.queue.wanted_before(None), 20);
        it.queue.wake_oldest().wake();
        assert_eq!((it.wakes(), it.that_poll()), (2, vec![0]));
    }

    #[test]
    fn who_has_begun_something_goes_behind_the_others_and_wakes_the_next() {
        let mut it = Sessions::new(&[10, 11, 12]);
        for next in [1, 2, 0] {
            let number = (next + 2) % 3;
            let (place, wake) = it.queue.goes_back(it.places[number], 10 + number as u64);
            it.places[number] = place;
            wake.wake();
            assert_eq!(it.that_poll(), [next]);
            assert_eq!(it.queue.wanted_before(None), 10 + next as u64);
            assert_eq!(it.queue.wanted_before(Some(it.places[next])), 0);
        }
    }

    #[test]
    fn who_waits_for_something_else_is_passed_over_until_it_polls_by_itself() {
        let mut it = Sessions::new(&[10, 11]);
        let (first, second) = (it.places[0], it.places[1]);
        it.queue.is_busy(first).wake();
        assert_eq!(it.that_poll(), [1]);
        it.queue.wake_oldest().wake();
        assert_eq!(it.that_poll(), [1]);
        it.queue.stays(first, 10);
        assert_eq!(it.that_poll(), [0], "it may have been passed over just now");
        it.queue.wake_oldest().wake();
        assert_eq!(it.that_poll(), [0]);
        // All others are busy, and their part grows.
        it.queue.is_busy(first).wake();
        assert_eq!(it.that_poll(), [1]);
        it.queue.leave(second).wake();
        assert_eq!((it.that_poll(), it.queue.len()), (vec![0], 1));
    }

    #[test]
    fn a_wake_that_comes_before_anybody_waits_for_it_is_kept() {
        let mut queue = RoomQueue::default();
        let place = queue.enter(1);
        queue.wake_oldest().wake();
        let woken = Arc::new(Count(AtomicU64::new(0)));
        woken.wake_by_ref();
        let waker = woken.into();
        let cx = Context::from_waker(&waker);
        assert!(queue.poll(place, &cx).is_ready());
        assert!(queue.poll(place, &cx).is_pending());
        queue.leave(place).wake();
        assert!(queue.poll(place, &cx).is_pending());
    }
}
