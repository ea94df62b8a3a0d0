//! Stable operations for volumes that have only flushes: the operation, then a flush.

use env::{CoreHandle, detach};
use std::rc::Rc;
use volume::{Durability, Io, IoFuture, Lane, Op, Shape, Support, Wrap};

/// Emulates [`Durability::Stable`] where the volume below does not have it; elsewhere it does
/// nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct StableWrite;

struct StableWriteLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
}

impl Wrap for StableWrite {
    fn shape(&self, below: Shape) -> Shape {
        let mut shape = below;
        if shape.caps.stable_write == Support::Absent {
            shape.caps.stable_write = Support::Emulated;
        }
        shape
    }

    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        if shape.caps.stable_write != Support::Absent {
            return below;
        }
        let core = Rc::clone(core);
        Rc::new(StableWriteLane { core, below })
    }
}

impl Lane for StableWriteLane {
    fn submit(&self, mut io: Io) -> IoFuture {
        let asked = io
            .op_mut()
            .durability_mut()
            .map(|asked| std::mem::replace(asked, Durability::Cached));
        if asked != Some(Durability::Stable) {
            return self.below.submit(io);
        }
        let below = Rc::clone(&self.below);
        let flush = Io::new(Op::Flush, io.origin());
        let first = self.below.submit(io);
        detach(&self.core, async move {
            let done = first.await?;
            below.submit(flush).await?;
            Ok(done)
        })
    }
}
