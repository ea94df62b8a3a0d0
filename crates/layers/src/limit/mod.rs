//! What a volume may use of a second: operations and bytes, with bursts, changed while it works.
//!
//! **Contract.** An operation that is too early waits, and is never refused. One limit holds for
//! all cores together, in order of arrival; repair, resynchronisation and scrub take only what the
//! foreground leaves. Flushes and questions about extents pass. Where no limit is set, an operation
//! costs a read of a cell of its own core, and touches nothing shared.
//!
//! Where one is set, cores meet in a lock for as long as it takes to count: a limit makes
//! operations few. Whoever is first in the queue has the only timer.

mod gate;
#[cfg(test)]
mod test;

pub use gate::{Gate, LimitWaiter, MOMENT, Rates};

use env::{CoreHandle, LocalFuture, call_all, detach};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use units::Now;
use volume::{Class, Io, IoFuture, Lane, Op, Shape, Wrap};

/// A volume's limit; clones are one.
#[derive(Clone)]
pub struct Limit(Arc<Shared>);

struct Shared {
    id: u64,
    /// What lanes that are opened begin with.
    on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    gate: Gate,
    rates: Rates,
    /// Those that wait and have asked at least once.
    wakers: BTreeMap<LimitWaiter, Waker>,
    /// Those that may go and do not know it yet.
    granted: BTreeSet<LimitWaiter>,
    /// Who has the timer, and for when.
    armed: Option<(LimitWaiter, Now)>,
    deferred: u64,
    waited: Duration,
}

/// What a limit did, or who competes ([`crate::shares`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Deferred {
    /// Operations that had to wait, from the beginning on.
    pub operations: u64,
    /// How long those of them that went on had waited, together.
    pub waited: Duration,
    /// Operations that wait now.
    pub waiting: usize,
}

/// Whether there is a limit, as the lanes of one core read it.
#[derive(Default)]
struct OnCore(RefCell<BTreeMap<u64, Weak<Cell<bool>>>>);

impl Limit {
    /// None, to begin with.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two limits are never equal")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(Arc::new(Shared {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            on: AtomicBool::new(false),
            state: Mutex::default(),
        }))
    }

    /// Sets or lifts it, on every core. What waits goes on as the new limit lets it.
    pub async fn set(&self, core: &CoreHandle, rates: Rates) {
        let on = !rates.is_none();
        {
            let mut state = self.0.lock();
            if state.rates == rates {
                return;
            }
            state.rates = rates;
            state.gate.set(core.now(), &rates);
            state.go_on(core.now());
        }
        self.0.on.store(on, Ordering::Release);
        let id = self.0.id;
        call_all(core, move |core| {
            if let Some(cell) = lookup(core, id) {
                cell.set(on);
            }
            Box::pin(async {}) as LocalFuture<()>
        })
        .await;
    }

    /// There is one now.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.on.load(Ordering::Acquire)
    }

    /// How many operations it made wait since the start, and for how long.
    #[must_use]
    pub fn deferred(&self) -> Deferred {
        let state = self.0.lock();
        Deferred {
            operations: state.deferred,
            waited: state.waited,
            waiting: state.gate.waiting(),
        }
    }
}

fn lookup(core: &CoreHandle, id: u64) -> Option<Rc<Cell<bool>>> {
    let on_core = core.locals().get::<OnCore>();
    on_core.0.borrow().get(&id).and_then(Weak::upgrade)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets go who may, and wakes them, and the one that is first then: it has the timer.
    fn go_on(&mut self, now: Now) {
        while let Some(waiter) = self.gate.release(now) {
            self.granted.insert(waiter);
            if let Some(waker) = self.wakers.remove(&waiter) {
                waker.wake();
            }
        }
        let due = self.gate.due();
        if due != self.armed
            && let Some((first, _)) = due
            && let Some(waker) = self.wakers.remove(&first)
        {
            waker.wake();
        }
    }

    /// `None`: `waiter` may go. Else it waits to be woken, and where it is first until then at the
    /// most.
    fn poll(&mut self, waiter: LimitWaiter, now: Now, cx: &Context<'_>) -> Option<Option<Now>> {
        self.wakers.remove(&waiter);
        if !self.granted.contains(&waiter) {
            self.go_on(now);
        }
        if self.granted.remove(&waiter) {
            return None;
        }
        self.wakers.insert(waiter, cx.waker().clone());
        let due = self.gate.due().filter(|(first, _)| *first == waiter);
        if due.is_some() {
            self.armed = due;
        }
        Some(due.map(|(_, at)| at))
    }
}

impl Wrap for Limit {
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        let on_core = core.locals().get::<OnCore>();
        let mut cells = on_core.0.borrow_mut();
        cells.retain(|_, cell| cell.strong_count() > 0);
        let known = cells.get(&self.0.id).and_then(Weak::upgrade);
        let on = known.unwrap_or_else(|| {
            let cell = Rc::new(Cell::new(self.0.on.load(Ordering::Acquire)));
            cells.insert(self.0.id, Rc::downgrade(&cell));
            cell
        });
        Rc::new(LimitLane {
            core: Rc::clone(core),
            below,
            block_bytes: u64::from(shape.block_size.bytes()),
            on,
            shared: Arc::clone(&self.0),
        })
    }
}

struct LimitLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    block_bytes: u64,
    on: Rc<Cell<bool>>,
    shared: Arc<Shared>,
}

impl Lane for LimitLane {
    fn submit(&self, io: Io) -> IoFuture {
        if !self.on.get() {
            return self.below.submit(io);
        }
        let Some(bytes) = cost(io.op(), self.block_bytes) else {
            return self.below.submit(io);
        };
        let class = io.origin().class;
        let Some(waiter) = self.arrive(class, bytes) else {
            return self.below.submit(io);
        };
        let (core, below) = (Rc::clone(&self.core), Rc::clone(&self.below));
        let shared = Arc::clone(&self.shared);
        let arrived = core.now();
        detach(&self.core, async move {
            wait(&core, &shared, waiter).await;
            shared.lock().waited += core.now().since(arrived);
            below.submit(io).await
        })
    }
}

impl LimitLane {
    fn arrive(&self, class: Class, bytes: u64) -> Option<LimitWaiter> {
        let mut state = self.shared.lock();
        let now = self.core.now();
        // Those that may go by now go first.
        state.go_on(now);
        let waiter = state.gate.arrive(now, class, bytes);
        state.deferred += u64::from(waiter.is_some());
        waiter
    }
}

/// Waits until `waiter` may go. Where it is first it asks when it is due, else it is woken.
async fn wait(core: &CoreHandle, shared: &Shared, waiter: LimitWaiter) {
    let mut timer: Option<(Now, LocalFuture<()>)> = None;
    poll_fn(|cx| {
        loop {
            let polled = shared.lock().poll(waiter, core.now(), cx);
            let Some(due) = polled else {
                return Poll::Ready(());
            };
            let Some(at) = due else {
                timer = None;
                return Poll::Pending;
            };
            if timer.as_ref().is_none_or(|(until, _)| *until != at) {
                timer = Some((at, core.sleep_until(at)));
            }
            let (_, sleeping) = timer.as_mut().expect("set just above");
            if sleeping.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            timer = None;
        }
    })
    .await;
}

/// The bytes that an operation moves; `None` where it is not limited.
pub(crate) fn cost(op: &Op, block_bytes: u64) -> Option<u64> {
    match op {
        Op::Read { range, .. } | Op::Write { range, .. } | Op::CompareAndWrite { range, .. } => {
            Some(range.len().0.saturating_mul(block_bytes))
        }
        Op::WriteZeroes { .. } | Op::Discard { .. } => Some(0),
        Op::Extents { .. } | Op::Flush => None,
    }
}
