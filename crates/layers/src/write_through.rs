//! Every change is stable before it is answered, so that nothing is lost and no cache has to be
//! reported.
//!
//! **Contract.** While it is on, a mutation goes down as [`Durability::Stable`] and the shape has
//! no volatile cache (WCE is 0); while it is off, it is not there. A lane keeps what was so when it
//! was opened: whoever switches opens new lanes, with nothing in flight, and flushes what was
//! acknowledged before.

use env::CoreHandle;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volume::{Durability, Io, IoFuture, Lane, Shape, Support, Wrap};

/// Makes every mutation stable, or does nothing. Clones are switched together.
#[derive(Clone, Debug)]
pub struct WriteThrough(Arc<AtomicBool>);

impl WriteThrough {
    /// On or off.
    #[must_use]
    pub fn new(on: bool) -> Self {
        Self(Arc::new(AtomicBool::new(on)))
    }

    /// What lanes that are opened from now on do.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::Release);
    }

    /// What it was switched to last.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct WriteThroughLane {
    below: Rc<dyn Lane>,
}

impl Wrap for WriteThrough {
    fn shape(&self, below: Shape) -> Shape {
        let mut shape = below;
        shape.caps.volatile_cache &= !self.is_on();
        shape
    }

    fn lane(&self, _: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        if !self.is_on() || !shape.caps.volatile_cache {
            return below;
        }
        assert_ne!(
            shape.caps.stable_write,
            Support::Absent,
            "it stands over a volume that can write stable"
        );
        Rc::new(WriteThroughLane { below })
    }
}

impl Lane for WriteThroughLane {
    fn submit(&self, mut io: Io) -> IoFuture {
        if let Some(durability) = io.op_mut().durability_mut() {
            *durability = Durability::Stable;
        }
        self.below.submit(io)
    }
}
