//! What happens to a volume by itself, reported to everybody who follows.

use crate::{VolumeEvent, VolumeEvents};
use env::LocalFuture;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

/// Everybody who follows one volume.
#[derive(Default)]
pub struct Followers(Mutex<Vec<Weak<Mutex<Queue>>>>);

#[derive(Default)]
struct Queue {
    events: VecDeque<VolumeEvent>,
    waker: Option<Waker>,
}

struct Follower(Arc<Mutex<Queue>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Followers {
    /// One more, who is notified of everything from now on.
    pub fn follow(&self) -> Rc<dyn VolumeEvents> {
        let queue: Arc<Mutex<Queue>> = Arc::default();
        lock(&self.0).push(Arc::downgrade(&queue));
        Rc::new(Follower(queue))
    }

    /// Notifies all of them. May be called on any thread.
    pub fn notify(&self, event: &VolumeEvent) {
        let mut followers = lock(&self.0);
        followers.retain(|follower| follower.strong_count() > 0);
        let queues: Vec<_> = followers.iter().filter_map(Weak::upgrade).collect();
        drop(followers);
        for queue in queues {
            let mut queue = lock(&queue);
            queue.events.push_back(event.clone());
            if let Some(waker) = queue.waker.take() {
                drop(queue);
                waker.wake();
            }
        }
    }
}

impl VolumeEvents for Follower {
    fn next(&self) -> LocalFuture<VolumeEvent> {
        let queue = Arc::clone(&self.0);
        Box::pin(poll_fn(move |cx| {
            let mut queue = lock(&queue);
            match queue.events.pop_front() {
                Some(event) => Poll::Ready(event),
                None => {
                    queue.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }
}
