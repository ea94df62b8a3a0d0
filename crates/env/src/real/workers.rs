//! Threads for what blocks: names, allocation, and all of the disk where io_uring is refused.
//!
//! **Contract.** Work starts at once while fewer than the cap's number of operations hang; a hung
//! one holds its own thread and nobody else. Work that was taken on is done even if nobody waits
//! for it.

use crate::LocalFuture;
use rustix::process::getpid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

pub(super) type Work = Box<dyn FnOnce() + Send>;

/// A pool of threads that grows with what hangs.
#[derive(Clone)]
pub(super) struct Workers(Arc<Inner>);

struct Inner {
    name: &'static str,
    cap: usize,
    /// Threads run wherever the process may, not only where the one runs that started them.
    unpinned: bool,
    state: Mutex<State>,
    work: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    threads: usize,
    idle: usize,
    stopping: bool,
}

impl Workers {
    /// No thread yet, `cap` at most.
    pub(super) fn new(name: &'static str, cap: usize) -> Self {
        Self::make(name, cap, false)
    }

    /// The same, for threads that start others.
    pub(super) fn unpinned(name: &'static str, cap: usize) -> Self {
        Self::make(name, cap, true)
    }

    fn make(name: &'static str, cap: usize, unpinned: bool) -> Self {
        Self(Arc::new(Inner {
            name,
            cap,
            unpinned,
            state: Mutex::default(),
            work: Condvar::new(),
            ended: Condvar::new(),
        }))
    }

    /// Runs `work` on a thread and answers what it gave. It runs even if the answer is dropped.
    ///
    /// # Panics
    /// The answer does, if `work` does.
    pub(super) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> LocalFuture<T> {
        let (answer, wait) = oneshot::channel();
        self.push(Box::new(move || {
            // Whoever asked may be gone: the work counts, not the answer.
            let _gone = answer.send(work());
        }));
        Box::pin(async move { wait.await.expect("the work panicked on its thread") })
    }

    pub(super) fn push(&self, work: Work) {
        let mut state = self.0.lock();
        state.queue.push_back(work);
        let grow = state.queue.len() > state.idle && state.threads < self.0.cap;
        if grow {
            state.threads += 1;
        }
        drop(state);
        if grow {
            let inner = Arc::clone(&self.0);
            let started = std::thread::Builder::new()
                .name(self.0.name.to_owned())
                .spawn(move || inner.serve());
            if started.is_err() {
                self.0.lock().threads -= 1;
            }
        }
        self.0.work.notify_one();
    }

    /// Lets every thread end after its work and waits until they have, at most for `grace`; answers
    /// how many still hang.
    pub(super) fn stop(&self, grace: Duration) -> usize {
        let mut state = self.0.lock();
        state.stopping = true;
        self.0.work.notify_all();
        let waited = self
            .0
            .ended
            .wait_timeout_while(state, grace, |state| state.threads > 0)
            .unwrap_or_else(PoisonError::into_inner);
        state = waited.0;
        state.threads
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        if self.unpinned {
            unpin();
        }
        while let Some(work) = self.next() {
            // The panic was reported by the hook, and the answer's sender is dropped: that shows
            // it.
            let _reported = catch_unwind(AssertUnwindSafe(work));
        }
        self.ended.notify_all();
    }

    /// The next piece of work; `None` (and this thread is counted out) when there is none for long.
    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.queue.pop_front() {
                return Some(work);
            }
            if state.stopping {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let (again, timeout) = self
                .work
                .wait_timeout(state, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state = again;
            state.idle -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}

/// Lets the calling thread run wherever the process may. Its first thread shows where that is: only
/// cores are pinned.
fn unpin() {
    if let Ok(all) = sched_getaffinity(Some(getpid())) {
        // A refusal leaves the thread where it is: slower, and right.
        let _refused = sched_setaffinity(None, &all);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_hung_piece_of_work_holds_up_nobody_else() {
        let workers = Workers::new("test", 3);
        let (release, hang) = mpsc::channel::<()>();
        let (reported, outcomes) = mpsc::channel();
        drop(workers.call(move || hang.recv()));
        for n in 0..20 {
            let reported = reported.clone();
            drop(workers.call(move || reported.send(n)));
        }
        let mut received: Vec<i32> = (0..20).map(|_| outcomes.recv().unwrap()).collect();
        received.sort_unstable();
        assert_eq!(received, (0..20).collect::<Vec<_>>());
        // The others end at once, which takes a moment on a busy machine; the one that hangs does
        // not.
        let mut left = (0..10_000).map(|_| workers.stop(Duration::from_millis(1)));
        assert!(left.any(|left| left == 1));
        assert_eq!(workers.stop(Duration::from_millis(1)), 1);
        drop(release);
        assert_eq!(workers.stop(Duration::from_secs(10)), 0);
    }

    #[test]
    fn a_panic_ends_the_work_and_not_the_pool() {
        let workers = Workers::new("test", 1);
        drop(workers.call(|| panic!("as the test wants")));
        let (reported, outcomes) = mpsc::channel();
        drop(workers.call(move || reported.send(1)));
        assert_eq!(outcomes.recv(), Ok(1));
    }
}
