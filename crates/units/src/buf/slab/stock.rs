//! What a pool has out and what it has in stock: slabs come back here, on any core.

use super::super::classes::{CLASSES, class_of};
use super::super::reserve::{Reserve, Reserves};
use super::IdleSlab;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

pub(in super::super) struct PoolInner {
    pub(in super::super) limit_bytes: usize,
    pub(in super::super) reserves: Reserves,
    pub(in super::super) state: Mutex<State>,
}

pub(in super::super) struct State {
    pub(in super::super) out_bytes: usize,
    pub(in super::super) idle: [Vec<IdleSlab>; CLASSES.len()],
    /// Counts slabs that came back.
    pub(in super::super) freed: u64,
    /// Who waits for one.
    pub(in super::super) waiting: Vec<Waker>,
}

impl State {
    /// A slab has come back: those that wait are to be woken, once the lock is free.
    pub(in super::super) fn gives_back(&mut self, capacity: usize) -> Vec<Waker> {
        self.out_bytes -= capacity;
        self.has_freed()
    }

    pub(in super::super) fn has_freed(&mut self) -> Vec<Waker> {
        self.freed = self.freed.wrapping_add(1);
        std::mem::take(&mut self.waiting)
    }
}

pub(in super::super) fn wake(waiting: Vec<Waker>) {
    for waker in waiting {
        waker.wake();
    }
}

impl PoolInner {
    pub(in super::super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in super::super) fn mark(&self, reserve: Reserve) -> usize {
        let Reserves {
            write_back,
            recovery,
        } = self.reserves;
        let kept = match reserve {
            Reserve::Front => write_back.saturating_add(recovery),
            Reserve::WriteBack => recovery,
            Reserve::Recovery => 0,
        };
        self.limit_bytes.saturating_sub(kept)
    }

    /// A slab leaves for good.
    pub(super) fn let_go(&self, capacity: usize) {
        let mut state = self.lock();
        assert!(state.out_bytes >= capacity, "I3: a slab leaves once");
        let waiting = state.gives_back(capacity);
        drop(state);
        wake(waiting);
    }

    #[inline]
    pub(super) fn take_back(&self, idle: IdleSlab) {
        let capacity = idle.capacity();
        let mut state = self.lock();
        assert!(state.out_bytes >= capacity, "I3: a slab comes back once");
        let waiting = state.gives_back(capacity);
        let class = class_of(capacity);
        // Idle memory is kept for the next request, but no more than the busiest moment needed.
        state.idle[class].push(idle);
        drop(state);
        wake(waiting);
    }
}
