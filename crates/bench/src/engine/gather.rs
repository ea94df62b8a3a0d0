//! What ended in the last second, asked of all threads while they run.

use super::Streams;
use crate::meter::Side;
use env::{CoreHandle, CoreId, call};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Threads that run on this core, by run and thread.
#[derive(Default)]
struct Running(RefCell<ByThread>);

type ByThread = BTreeMap<(u64, u32), Streams>;

/// What ended in some time.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// What was read, with latencies.
    pub read: Side,
    /// What was written, with latencies.
    pub write: Side,
}

impl Ended {
    /// Adds what another one has.
    pub(super) fn add(&mut self, other: &Self) {
        self.read.add(&other.read);
        self.write.add(&other.write);
    }
}

/// A thread is about to run: it can be asked from here on.
pub(super) fn begins(core: &CoreHandle, key: (u64, u32), streams: &Streams) {
    let all = core.locals().get::<Running>();
    all.0.borrow_mut().insert(key, streams.clone());
}

/// Where the threads of a run are, and what they had done when they were asked last.
pub(super) struct Gather {
    run: u64,
    threads: u32,
    cores: u16,
    last: Ended,
}

impl Gather {
    pub(super) fn new(run: u64, threads: u32, cores: u16) -> Self {
        Self {
            run,
            threads,
            cores,
            last: Ended::default(),
        }
    }

    /// The core that a thread runs on.
    pub(super) fn core_of(&self, thread: u32) -> CoreId {
        CoreId(u16::try_from(thread % u32::from(self.cores)).expect("below a u16"))
    }

    /// What ended since this was asked last.
    pub(super) async fn since_last(&mut self, core: &CoreHandle) -> Ended {
        let run = self.run;
        let mut now = Ended::default();
        for number in self.cores() {
            let sum = move |core: &CoreHandle| {
                let sum = sum_of(core, run);
                Box::pin(std::future::ready(sum)) as env::LocalFuture<Ended>
            };
            // A core that is gone has nothing to say.
            if let Some(there) = call(core, CoreId(number), sum).await {
                now.add(&there);
            }
        }
        let difference = Ended {
            read: now.read.since(&self.last.read),
            write: now.write.since(&self.last.write),
        };
        self.last = now;
        difference
    }

    /// The run is over: its threads are not asked any more.
    pub(super) async fn forget(&self, core: &CoreHandle) {
        let run = self.run;
        for number in self.cores() {
            let forget = move |core: &CoreHandle| {
                let all = core.locals().get::<Running>();
                all.0.borrow_mut().retain(|(of, _), _| *of != run);
                Box::pin(std::future::ready(())) as env::LocalFuture<()>
            };
            let _gone = call(core, CoreId(number), forget).await;
        }
    }

    fn cores(&self) -> std::ops::Range<u16> {
        0..self
            .cores
            .min(u16::try_from(self.threads).unwrap_or(u16::MAX))
    }
}

/// All threads of a run on this core.
fn sum_of(core: &CoreHandle, run: u64) -> Ended {
    let all = core.locals().get::<Running>();
    let mut sum = Ended::default();
    for (_, streams) in all.0.borrow().range((run, 0)..=(run, u32::MAX)) {
        for stream in streams {
            stream.add_to(&mut sum);
        }
    }
    sum
}
