//! Parts of what several volumes have in common, in proportion to their shares, changed while they
//! work.
//!
//! **Contract.** Where volumes of one pool compete, each has its part of the pool's operations and
//! bytes: an operation counts as [`OPERATION_BYTES`] and what it moves. What one does not use the
//! others have at once, nothing is saved up, and one that is alone is held up by nothing. A volume
//! that hangs holds up no other: each always has one operation under way, and what hangs for a
//! second no longer counts. Nothing is refused. Repair, resynchronisation, scrub, flushes and
//! questions about extents pass.
//!
//! Where no volume of a pool was given shares, an operation costs a read of a flag that nobody
//! writes.

mod queue;
#[cfg(test)]
mod test;

pub use queue::{Flow, HANGS_AFTER, Queue, ShareWaiter};

use crate::limit::{Deferred, cost};
use env::{Answer, CoreHandle, detach};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use units::Now;
use volume::{Class, Io, IoFuture, Lane, Shape, Wrap};

/// Shares of a volume that was given none, where another one of its pool has some.
pub const USUAL: u32 = 100;

/// What an operation counts beside its bytes.
pub const OPERATION_BYTES: u64 = 16 << 10;

/// Operations of a pool under way while its volumes compete: what a disk needs to work at full
/// speed, and little enough that what waits waits here.
pub const DEPTH: usize = 32;

/// The volumes of a pool; clones are one.
#[derive(Clone)]
pub struct Shares(Arc<Pool>);

struct Pool {
    /// A volume was given shares.
    on: AtomicBool,
    state: Mutex<State>,
}

struct State {
    queue: Queue,
    /// Volumes that were given shares.
    named: usize,
    wakers: BTreeMap<ShareWaiter, Waker>,
    /// Those that may go and do not know it yet.
    granted: BTreeSet<ShareWaiter>,
    /// When something came or ended last.
    at: Now,
}

/// A volume's part; clones are one.
#[derive(Clone)]
pub struct Share(Arc<Member>);

struct Member {
    pool: Arc<Pool>,
    flow: Flow,
    shares: Mutex<Option<u32>>,
    deferred: AtomicU64,
    waited_nanos: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn grant(&mut self, waiter: ShareWaiter) {
        self.granted.insert(waiter);
        if let Some(waker) = self.wakers.remove(&waiter) {
            waker.wake();
        }
    }

    fn go_on(&mut self) {
        while let Some(waiter) = self.queue.release(self.at) {
            self.grant(waiter);
        }
    }

    fn go_on_all(&mut self) {
        while let Some(waiter) = self.queue.release_any(self.at) {
            self.grant(waiter);
        }
    }
}

impl Shares {
    /// Nobody yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two of them are never equal")]
    pub fn new() -> Self {
        let state = State {
            queue: Queue::new(DEPTH),
            named: 0,
            wakers: BTreeMap::new(),
            granted: BTreeSet::new(),
            at: Now::ZERO,
        };
        Self(Arc::new(Pool {
            on: AtomicBool::new(false),
            state: Mutex::new(state),
        }))
    }

    /// A volume more, with the shares that it was given.
    #[must_use]
    pub fn join(&self, shares: Option<u32>) -> Share {
        let flow = lock(&self.0.state).queue.join(USUAL);
        let share = Share(Arc::new(Member {
            pool: Arc::clone(&self.0),
            flow,
            shares: Mutex::new(None),
            deferred: AtomicU64::new(0),
            waited_nanos: AtomicU64::new(0),
        }));
        share.set(shares);
        share
    }
}

impl Share {
    /// It has so many from now on; `None`: it was given none.
    pub fn set(&self, shares: Option<u32>) {
        let mut known = lock(&self.0.shares);
        let (was, is) = (known.is_some(), shares.is_some());
        *known = shares;
        let mut state = lock(&self.0.pool.state);
        state.named = state.named + usize::from(is) - usize::from(was);
        let shares = shares.unwrap_or(USUAL).max(1);
        state.queue.set(self.0.flow, shares);
        self.0.pool.switch(&mut state);
    }

    /// What competing did to it, since it joined.
    #[must_use]
    pub fn deferred(&self) -> Deferred {
        let nanos = self.0.waited_nanos.load(Ordering::Relaxed);
        let waiting = lock(&self.0.pool.state).queue.waiting_of(self.0.flow);
        Deferred {
            operations: self.0.deferred.load(Ordering::Relaxed),
            waited: Duration::from_nanos(nanos),
            waiting,
        }
    }
}

impl Pool {
    /// What waits goes on where nobody has shares any more.
    fn switch(&self, state: &mut State) {
        let on = state.named > 0;
        self.on.store(on, Ordering::Release);
        if !on {
            state.go_on_all();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Whoever waits has a clone, so that nothing of it waits.
        let mut state = lock(&self.pool.state);
        state.queue.leave(self.flow);
        state.named -= usize::from(lock(&self.shares).is_some());
        self.pool.switch(&mut state);
        state.go_on();
    }
}

impl Wrap for Share {
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        Rc::new(ShareLane {
            core: Rc::clone(core),
            below,
            block_bytes: u64::from(shape.block_size.bytes()),
            share: self.clone(),
        })
    }
}

struct ShareLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    block_bytes: u64,
    share: Share,
}

/// One that went; the next may go when it has ended, whatever becomes of its answer.
struct UnderWay {
    share: Share,
    core: CoreHandle,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let member = &self.share.0;
        let mut state = lock(&member.pool.state);
        state.at = self.core.now();
        let at = state.at;
        state.queue.ended(member.flow, at);
        state.go_on();
    }
}

impl Lane for ShareLane {
    fn submit(&self, io: Io) -> IoFuture {
        let member = &self.share.0;
        if !member.pool.on.load(Ordering::Acquire) || io.origin().class != Class::Foreground {
            return self.below.submit(io);
        }
        let Some(bytes) = cost(io.op(), self.block_bytes) else {
            return self.below.submit(io);
        };
        let cost = OPERATION_BYTES.saturating_add(bytes);
        let waiter = member.pool.arrive(member.flow, cost, self.core.now());
        let (share, core) = (self.share.clone(), Rc::clone(&self.core));
        let Some(waiter) = waiter else {
            let under_way = UnderWay { share, core };
            let answer = self.below.submit(io);
            return Answer::wait(async move {
                let result = answer.await;
                drop(under_way);
                result
            });
        };
        member.deferred.fetch_add(1, Ordering::Relaxed);
        let below = Rc::clone(&self.below);
        let arrived = core.now();
        detach(&self.core, async move {
            poll_fn(|cx| share.0.pool.poll(waiter, cx)).await;
            let waited = u64::try_from(core.now().since(arrived).as_nanos());
            let waited = waited.unwrap_or(u64::MAX);
            share.0.waited_nanos.fetch_add(waited, Ordering::Relaxed);
            let under_way = UnderWay { share, core };
            let result = below.submit(io).await;
            drop(under_way);
            result
        })
    }
}

impl Pool {
    /// `None`: it goes.
    fn arrive(&self, flow: Flow, cost: u64, at: Now) -> Option<ShareWaiter> {
        let mut state = lock(&self.state);
        state.at = at;
        let waiter = state.queue.arrive(flow, cost, at)?;
        // It may go before those that wait.
        state.go_on();
        Some(waiter)
    }

    fn poll(&self, waiter: ShareWaiter, cx: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.granted.remove(&waiter) {
            state.wakers.remove(&waiter);
            return Poll::Ready(());
        }
        state.wakers.insert(waiter, cx.waker().clone());
        Poll::Pending
    }
}
