//! Who still reads from the log: its room is given up only when all who have found something in it
//! until then have read it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::Notify;

#[derive(Default)]
struct State {
    /// Rises with each wait.
    generation: u64,
    /// Readers of each generation that has any.
    readers: BTreeMap<u64, u32>,
}

/// Counts readers by the time of their beginning.
#[derive(Default)]
pub(crate) struct Grace {
    state: RefCell<State>,
    ended: Notify,
}

/// A reader, until it is dropped.
pub(crate) struct Reader {
    grace: Rc<Grace>,
    generation: u64,
}

impl Grace {
    /// Somebody begins to read what the index returned just now.
    pub(crate) fn enter(self: &Rc<Self>) -> Reader {
        let mut state = self.state.borrow_mut();
        let generation = state.generation;
        *state.readers.entry(generation).or_default() += 1;
        Reader {
            grace: Rc::clone(self),
            generation,
        }
    }

    /// Waits until all who have begun before have ended.
    pub(crate) async fn wait(&self) {
        let before = {
            let mut state = self.state.borrow_mut();
            state.generation += 1;
            state.generation
        };
        loop {
            let oldest = self.state.borrow().readers.keys().next().copied();
            if oldest.is_none_or(|oldest| oldest >= before) {
                return;
            }
            self.ended.notified().await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.grace.state.borrow_mut();
        let left = state.readers.get_mut(&self.generation);
        let left = left.expect("a reader is counted until it ends");
        *left -= 1;
        if *left == 0 {
            state.readers.remove(&self.generation);
            self.grace.ended.notify_one();
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn only_who_began_before_is_waited_for() {
        let grace = Rc::new(Grace::default());
        let (first, second) = (grace.enter(), grace.enter());
        let mut waiting = pin!(grace.wait());
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Pending);
        let later = grace.enter();
        drop(first);
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Pending);
        drop(second);
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Ready(()));
        drop(later);
    }
}
