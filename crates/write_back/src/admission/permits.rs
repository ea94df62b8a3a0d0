//! How much may wait for a ring's log at once: whoever comes when that is reached waits for
//! something to be stable, in turn.
//!
//! **Invariants.** What is in use is bounded in bytes and by [`JOBS_MAX`], and one change more.
//! Those who wait go on in the order in which they came, and nobody overtakes them. A permit that
//! is dropped is given back, wherever that happens.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::sync::oneshot;

/// Bytes of data that may wait for a log at most: sixteen batches, which a disk of 1 GB/s writes in
/// 16 ms ...
const BYTES_MAX: u64 = 16 << 20;

/// ... and no more than this part of what the log has room for, so that what waits does not fill
/// it.
const LOG_PART: u64 = 8;

/// Changes that may wait for the log: sixteen batches of the shortest.
const JOBS_MAX: usize = 16 * journal::RECORDS_MAX;

/// What a ring's changes may take while they wait.
pub(crate) struct Permits {
    bytes_max: usize,
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    used: Admitted,
    waiting: VecDeque<Waiter>,
    waited: u64,
}

/// What the permits that are in use stand for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Admitted {
    pub(crate) bytes: usize,
    pub(crate) jobs: usize,
}

/// Somebody waits.
struct Waiter {
    bytes: usize,
    wake: oneshot::Sender<Permit>,
}

/// The right of one change to wait for the log.
pub(crate) struct Permit {
    of: Rc<Permits>,
    bytes: usize,
}

impl Permits {
    /// For a log that has room for so many bytes.
    pub(crate) fn of_log(room: u64) -> Rc<Self> {
        let bytes_max = BYTES_MAX.min(room / LOG_PART);
        Rc::new(Self {
            bytes_max: usize::try_from(bytes_max).expect("a few megabytes"),
            inner: RefCell::default(),
        })
    }

    fn has_room(&self) -> bool {
        let used = self.used();
        used.bytes < self.bytes_max && used.jobs < JOBS_MAX
    }

    /// There is room, and nobody waits for it.
    pub(crate) fn are_free(&self) -> bool {
        self.has_room() && self.inner.borrow().waiting.is_empty()
    }

    /// Takes one for a change with so many bytes of data, whether there is room or not: its turn
    /// has come, or it must not wait.
    pub(crate) fn take(self: &Rc<Self>, bytes: usize) -> Permit {
        let mut inner = self.inner.borrow_mut();
        inner.used.bytes += bytes;
        inner.used.jobs += 1;
        let of = Rc::clone(self);
        Permit { of, bytes }
    }

    /// Answers, when its turn has come, with room for so many bytes.
    pub(crate) fn wait(&self, bytes: usize) -> oneshot::Receiver<Permit> {
        let (wake, woken) = oneshot::channel();
        let mut inner = self.inner.borrow_mut();
        inner.waited += 1;
        inner.waiting.push_back(Waiter { bytes, wake });
        woken
    }

    /// What is in use now.
    pub(crate) fn used(&self) -> Admitted {
        self.inner.borrow().used
    }

    /// Changes that had to wait so far.
    pub(crate) fn waited(&self) -> u64 {
        self.inner.borrow().waited
    }

    fn next_waiter(&self) -> Option<Waiter> {
        if !self.has_room() {
            return None;
        }
        let mut inner = self.inner.borrow_mut();
        // Those who gave up waiting need nothing.
        while inner.waiting.front()?.wake.is_closed() {
            inner.waiting.pop_front();
        }
        inner.waiting.pop_front()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut inner = self.of.inner.borrow_mut();
        inner.used.bytes -= self.bytes;
        inner.used.jobs -= 1;
        drop(inner);
        while let Some(Waiter { bytes, wake }) = self.of.next_waiter() {
            // Nobody can have closed it since it was chosen: all of this is one core's.
            let _ = wake.send(self.of.take(bytes));
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_is_in_use_is_bounded_and_those_who_wait_go_on_in_turn() {
        let permits = Permits::of_log(1 << 40);
        let large = permits.take(permits.bytes_max - 1);
        assert!(permits.are_free());
        let over = permits.take(1 << 20);
        assert!(!permits.are_free(), "by one change and not more");
        let (mut first, second, mut third) = (permits.wait(7), permits.wait(8), permits.wait(9));
        assert!(first.try_recv().is_err());
        drop(second);
        drop(over);
        let first = first.try_recv().unwrap();
        assert!(third.try_recv().is_err(), "there is no room again");
        let bytes = permits.bytes_max - 1 + 7;
        assert_eq!(permits.used(), Admitted { bytes, jobs: 2 });
        drop(large);
        let third = third.try_recv().unwrap();
        assert_eq!(permits.used(), Admitted { bytes: 16, jobs: 2 });
        drop((first, third));
        assert_eq!(permits.used(), Admitted::default());
        assert!(permits.are_free());
        assert_eq!(permits.waited(), 3);
    }

    #[test]
    fn nobody_overtakes_and_jobs_count_like_bytes() {
        let permits = Permits::of_log(1 << 40);
        let mut used: Vec<Permit> = (0..JOBS_MAX).map(|_| permits.take(0)).collect();
        assert!(!permits.are_free());
        let mut waiting: VecDeque<_> = (0..5).map(|_| permits.wait(0)).collect();
        while let Some(mut turn) = waiting.pop_front() {
            assert!(turn.try_recv().is_err());
            used.pop();
            used.push(turn.try_recv().unwrap());
            assert!(waiting.iter_mut().all(|it| it.try_recv().is_err()));
            assert!(!permits.are_free());
        }
        used.pop();
        assert!(permits.are_free());
        // Whoever is woken and is gone gives back what it was given.
        used.push(permits.take(0));
        let gone = permits.wait(3);
        used.pop();
        drop(gone);
        assert_eq!(permits.used().bytes, 0);
    }
}
