//! Which syncs of a file may be believed.
//!
//! The kernel reports a failure of writing back once for each open file description: to one of the
//! syncs that run side by side, and to none that begins later. Cores share descriptions, so a sync
//! that succeeded says nothing yet while another one of the same description runs, and nothing at
//! all once one has failed.
//!
//! **Contract.** [`Syncs::believed`] answers `Ok` for a sync only if no sync of the description
//! that began before it was answered has failed. After one that failed all fail, until the file was
//! closed on all cores.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The syncs of one open file description.
#[derive(Default)]
pub(super) struct Syncs(Mutex<State>);

#[derive(Default)]
struct State {
    begun: u64,
    running: BTreeSet<u64>,
    failed: bool,
    waiting: Vec<oneshot::Sender<()>>,
}

/// A sync on its way. One that is dropped without an answer counts as failed.
pub(super) struct PendingSync {
    syncs: Arc<Syncs>,
    /// `None` once it has ended.
    number: Option<u64>,
}

impl Syncs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before the kernel is asked.
    pub(super) fn begin(self: &Arc<Self>) -> PendingSync {
        let mut state = self.lock();
        let number = state.begun;
        state.begun += 1;
        state.running.insert(number);
        PendingSync {
            syncs: Arc::clone(self),
            number: Some(number),
        }
    }

    /// Whether a sync that the kernel answered well just now may be believed.
    pub(super) async fn believed(&self) -> io::Result<()> {
        let bound = self.lock().begun;
        loop {
            let ended = {
                let mut state = self.lock();
                if state.failed {
                    return Err(io::Error::other(
                        "another sync of the file has failed: what was not stable before may be lost",
                    ));
                }
                if state.running.range(..bound).next().is_none() {
                    return Ok(());
                }
                let (notify, ended) = oneshot::channel();
                state.waiting.push(notify);
                ended
            };
            // A sender that is gone wakes it as well: it is tested again.
            let _reported = ended.await;
        }
    }
}

impl PendingSync {
    /// The kernel has answered.
    pub(super) fn end(&mut self, good: bool) {
        let Some(number) = self.number.take() else {
            return;
        };
        let mut state = self.syncs.lock();
        state.running.remove(&number);
        state.failed |= !good;
        // Whoever waits tests it again.
        state.waiting.clear();
    }
}

impl Drop for PendingSync {
    fn drop(&mut self) {
        self.end(false);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn inspect(future: std::pin::Pin<&mut impl Future<Output = io::Result<()>>>) -> Option<bool> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result.is_ok()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_sync_is_believed_once_those_next_to_it_are_answered_well() {
        let syncs = Arc::new(Syncs::default());
        let (mut one, mut other) = (syncs.begin(), syncs.begin());
        one.end(true);
        let mut believed = pin!(syncs.believed());
        assert_eq!(inspect(believed.as_mut()), None);
        // One that begins later is not waited for.
        let _later = syncs.begin();
        other.end(true);
        assert_eq!(inspect(believed.as_mut()), Some(true));
    }

    #[test]
    fn a_sync_next_to_one_that_fails_fails_as_well_and_so_do_all_later_ones() {
        let syncs = Arc::new(Syncs::default());
        let (mut one, mut other) = (syncs.begin(), syncs.begin());
        one.end(true);
        let mut believed = pin!(syncs.believed());
        assert_eq!(inspect(believed.as_mut()), None);
        other.end(false);
        assert_eq!(inspect(believed.as_mut()), Some(false));
        syncs.begin().end(true);
        assert_eq!(inspect(pin!(syncs.believed())), Some(false));
    }

    #[test]
    fn a_sync_that_is_never_answered_counts_as_failed() {
        let syncs = Arc::new(Syncs::default());
        drop(syncs.begin());
        assert_eq!(inspect(pin!(syncs.believed())), Some(false));
    }
}
