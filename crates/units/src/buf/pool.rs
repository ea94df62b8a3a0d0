//! The pool of slabs that one core allocates from.

use super::classes::{CLASSES, SLAB_BYTES_MAX, class_of};
use super::kept::Slab;
use super::reserve::{Reserve, Reserves};
use super::slab::stock::{PoolInner, State, wake};
use super::slab::{IdleSlab, SlabRef};
use super::unique::BufMut;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

/// The pool has given out as much as it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exhausted;

/// Where payload memory comes from. Cloning shares the pool.
///
/// A slab may be dropped on any core; it goes back to the pool that made it.
///
/// **Bound.** No more than the limit is out at any time, and each [`Reserve`] is refused when its
/// own share of the limit is reached: the front first, recovery last.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<PoolInner>,
    /// The most bytes that may be out after a request of this handle.
    mark: usize,
}

impl Pool {
    /// A pool that has at most `limit_bytes` out at any time (counted in whole slabs), with nothing
    /// kept for anyone.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self::with_reserves(limit_bytes, Reserves::default())
    }

    /// A pool as [`Pool::new`] makes it, of which some is kept for those whose work frees memory.
    /// The handle is the front's.
    #[must_use]
    pub fn with_reserves(limit_bytes: usize, reserves: Reserves) -> Self {
        let state = State {
            out_bytes: 0,
            idle: Default::default(),
            freed: 0,
            waiting: Vec::new(),
        };
        let shared = Arc::new(PoolInner {
            limit_bytes,
            reserves,
            state: Mutex::new(state),
        });
        let mark = shared.mark(Reserve::Front);
        Self { shared, mark }
    }

    /// The same pool, for whoever may go as far as `reserve` goes.
    #[must_use]
    pub fn reserve(&self, reserve: Reserve) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            mark: self.shared.mark(reserve),
        }
    }

    /// Writable memory of exactly `bytes` bytes. Its contents are unspecified: initialised, perhaps
    /// with what an earlier owner left, so every byte must be written before it is shown to anyone.
    ///
    /// # Errors
    /// [`Exhausted`] when the pool's limit would be passed; nothing is then taken.
    pub fn alloc(&self, bytes: usize) -> Result<BufMut, Exhausted> {
        self.alloc_pieces(bytes, SLAB_BYTES_MAX)
    }

    /// As [`Pool::alloc`], in contiguous pieces of no more than `piece_max` bytes (at most
    /// [`SLAB_BYTES_MAX`] count): for a volume that keeps whole pieces as they are.
    ///
    /// # Errors
    /// [`Exhausted`], as above.
    ///
    /// # Panics
    /// If `piece_max` is 0.
    pub fn alloc_pieces(&self, bytes: usize, piece_max: usize) -> Result<BufMut, Exhausted> {
        assert!(piece_max > 0, "a piece has at least one byte");
        let mut out = BufMut::empty();
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(piece_max).min(SLAB_BYTES_MAX);
            out.push_slab(self.slab(class_of(piece))?, piece);
            left -= piece;
        }
        Ok(out)
    }

    /// Gives memory to the pool that it will lend again: a slab that nobody else refers to, of a
    /// size that it lends. Other slabs are let go.
    pub fn give(&self, slab: Slab) {
        if let Some(idle) = slab.into_idle()
            && CLASSES.contains(&idle.capacity())
        {
            let class = class_of(idle.capacity());
            self.shared.lock().idle[class].push(idle);
        }
    }

    /// Bytes that are out now, in whole slabs.
    #[must_use]
    pub fn out_bytes(&self) -> usize {
        self.shared.lock().out_bytes
    }

    /// Bytes that this handle may still take.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.mark.saturating_sub(self.out_bytes())
    }

    /// The most bytes that may be out when this handle takes some: the pool's limit, less what is
    /// kept for others.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        self.mark
    }

    /// The bytes of memory that [`Pool::alloc_pieces`] takes for so many: whole slabs.
    ///
    /// # Panics
    /// If `piece_max` is 0.
    #[must_use]
    pub fn taken_for(bytes: usize, piece_max: usize) -> usize {
        assert!(piece_max > 0, "a piece has at least one byte");
        let piece = piece_max.min(SLAB_BYTES_MAX);
        let of = |bytes: usize| {
            if bytes == 0 {
                0
            } else {
                CLASSES[class_of(bytes)]
            }
        };
        (bytes / piece)
            .saturating_mul(of(piece))
            .saturating_add(of(bytes % piece))
    }

    /// Counts slabs that came back.
    #[must_use]
    pub fn freed(&self) -> u64 {
        self.shared.lock().freed
    }

    /// Ready once a slab has come back since [`Pool::freed`] said `seen`; the task is woken then.
    pub fn poll_freed(&self, cx: &Context<'_>, seen: u64) -> Poll<()> {
        let mut state = self.shared.lock();
        if state.freed != seen {
            return Poll::Ready(());
        }
        let waiting = &mut state.waiting;
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Something else that commands wait for besides memory has come back: whoever waits for a slab
    /// is to try, too.
    pub fn wake_waiting(&self) {
        let waiting = self.shared.lock().has_freed();
        wake(waiting);
    }

    fn slab(&self, class: usize) -> Result<SlabRef, Exhausted> {
        let capacity = CLASSES[class];
        let idle = {
            let mut state = self.shared.lock();
            if state.out_bytes + capacity > self.mark {
                return Err(Exhausted);
            }
            state.out_bytes += capacity;
            state.idle[class].pop()
        };
        let idle = idle.unwrap_or_else(|| IdleSlab::any(capacity));
        Ok(SlabRef::adopt(idle, Some(Arc::clone(&self.shared))))
    }
}
