//! Which reads and writes go straight to places of an image's file: a place that was given back is
//! not used again before all that found it have ended.

use env::{Answer, CoreHandle, FileDone};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// How often whoever waits asks again.
const PAUSE: Duration = Duration::from_millis(5);

/// How many are under way, by whether they began in an even turn or an odd one.
#[derive(Default)]
pub(super) struct Grace {
    turn: AtomicU64,
    under_way: [AtomicU64; 2],
}

/// One that is under way.
pub(super) struct Rider {
    of: Arc<Grace>,
    turn: u64,
}

impl Grace {
    fn count(&self, turn: u64) -> &AtomicU64 {
        &self.under_way[usize::from(turn % 2 == 1)]
    }

    /// One begins: to be called before it asks where anything is.
    pub(super) fn ride(self: &Arc<Self>) -> Rider {
        loop {
            let turn = self.turn.load(Ordering::SeqCst);
            self.count(turn).fetch_add(1, Ordering::SeqCst);
            // Else the next turn began in between, and nobody waits for this count.
            if self.turn.load(Ordering::SeqCst) == turn {
                let of = Arc::clone(self);
                return Rider { of, turn };
            }
            self.count(turn).fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Waits until all have ended that have begun so far. One waits at a time.
    pub(super) async fn wait(&self, core: &CoreHandle) {
        let turn = self.turn.fetch_add(1, Ordering::SeqCst);
        while self.count(turn).load(Ordering::SeqCst) > 0 {
            core.sleep_until(core.now().after(PAUSE)).await;
        }
    }
}

impl Drop for Rider {
    fn drop(&mut self) {
        self.of.count(self.turn).fetch_sub(1, Ordering::SeqCst);
    }
}

/// A request to a file with its rider, which ends with the request, whoever waits for it.
pub(super) struct Ride {
    answer: Option<Answer<io::Result<FileDone>>>,
    rider: Option<Rider>,
    core: CoreHandle,
}

impl Ride {
    pub(super) fn new(
        core: &CoreHandle,
        rider: Rider,
        answer: Answer<io::Result<FileDone>>,
    ) -> Self {
        Self {
            answer: Some(answer),
            rider: Some(rider),
            core: core.clone(),
        }
    }
}

impl Future for Ride {
    type Output = io::Result<FileDone>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let answer = this.answer.as_mut().expect("polled until it is ready");
        let done = std::task::ready!(Pin::new(answer).poll(context));
        (this.answer, this.rider) = (None, None);
        Poll::Ready(done)
    }
}

impl Drop for Ride {
    fn drop(&mut self) {
        if let (Some(answer), Some(rider)) = (self.answer.take(), self.rider.take()) {
            self.core.spawn(Box::pin(async move {
                drop(answer.await);
                drop(rider);
            }));
        }
    }
}
