//! What all layers that stand over one volume have in common.

use crate::{Lane, OpenError, Shape, Volume, VolumeEvents};
use env::{CoreHandle, LocalFuture};
use std::rc::Rc;
use std::sync::Arc;

/// How a layer changes the facts and wraps a lane.
pub trait Wrap: Send + Sync + 'static {
    /// The facts above, given those below.
    fn shape(&self, below: Shape) -> Shape {
        below
    }

    /// The lane above, given the one below and its facts.
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane>;
}

struct Over<W> {
    wrap: W,
    below: Arc<dyn Volume>,
}

/// The volume that `wrap` makes of `below`.
pub fn over(wrap: impl Wrap, below: Arc<dyn Volume>) -> Arc<dyn Volume> {
    Arc::new(Over { wrap, below })
}

impl<W: Wrap> Volume for Over<W> {
    fn shape(&self) -> Shape {
        self.wrap.shape(self.below.shape())
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            // The facts are taken first: if they change meanwhile, the lane knows the older ones,
            // and whoever opened it is notified of the change.
            let shape = self.below.shape();
            let below = Arc::clone(&self.below).open(&core).await?;
            Ok(self.wrap.lane(&core, below, shape))
        })
    }

    fn events(self: Arc<Self>, core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        Arc::clone(&self.below).events(core)
    }
}
