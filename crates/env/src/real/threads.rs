//! Threads for a library that blocks: what runs there holds up no core.

use super::workers::Workers;
use crate::LocalFuture;

/// Threads for calls into a foreign library, which may wait for a network or for ever.
///
/// **Contract.** As [`Workers`]: a call that hangs holds its own thread and nobody else, until the
/// cap is reached. The threads may run on every processor that the process may use, also when a
/// core that is pinned to one has started them: threads that the library starts inherit that.
#[derive(Clone)]
pub struct Threads(Workers);

impl Threads {
    /// No thread yet, `cap` at most.
    #[must_use]
    pub fn new(name: &'static str, cap: usize) -> Self {
        Self(Workers::unpinned(name, cap))
    }

    /// Runs `work` on a thread and answers what it gave. It runs even if the answer is dropped.
    ///
    /// # Panics
    /// The answer does, if `work` does.
    pub fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> LocalFuture<T> {
        self.0.call(work)
    }

    /// Runs `work` on a thread; nobody waits for it. May be called on any thread.
    pub fn start(&self, work: impl FnOnce() + Send + 'static) {
        self.0.push(Box::new(work));
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::sync::mpsc;

    #[test]
    fn threads_that_a_pinned_core_starts_run_on_every_processor() {
        let all = sched_getaffinity(Some(rustix::process::getpid())).unwrap();
        let here = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&number| here.is_set(number));
        let mut one = CpuSet::new();
        one.set(first.unwrap());
        sched_setaffinity(None, &one).unwrap();
        let (reported, outcomes) = mpsc::channel();
        Threads::new("test", 1).start(move || reported.send(sched_getaffinity(None)).unwrap());
        assert_eq!(outcomes.recv().unwrap().unwrap(), all);
    }
}
