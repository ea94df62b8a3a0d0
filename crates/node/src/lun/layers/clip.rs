//! The clip gives the LUN its stored size where its file or device is larger: a device never fits
//! exactly, a file is longer for a moment while the LUN grows, or for good where objects of an
//! older copy make the LUN smaller.

use super::door::{Base, Layer, LayerKind, Opening, Over, put};
use crate::backend::door::Work;
use env::CoreHandle;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::BlockCount;
use volume::{Lane, OpenError, Shape, Volume, Wrap, over};

pub(crate) const KIND: LayerKind = LayerKind {
    name: "Clip",
    make: Some(|_, _, handles| Some(Box::new(Clip(Arc::clone(&handles.parts.blocks))))),
    ..LayerKind::BLANK
};

/// Shows so many blocks of the volume below, from its start.
#[derive(Clone)]
struct Clip(Arc<AtomicU64>);

impl Layer for Clip {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, _: &'a Opening<'a>) -> Over<'a> {
        put(self, below)
    }

    fn base<'a>(
        &'a self,
        core: &'a CoreHandle,
        leaf: &Arc<dyn Volume>,
    ) -> Option<Work<'a, Result<Base, OpenError>>> {
        let base = over(self.clone(), Arc::clone(leaf));
        Some(Box::pin(async move {
            let (shape, lane) = (base.shape(), base.open(core).await?);
            let map = None;
            Ok(Base { shape, lane, map })
        }))
    }
}

impl Wrap for Clip {
    fn shape(&self, below: Shape) -> Shape {
        let blocks = BlockCount(self.0.load(Ordering::Acquire));
        Shape {
            block_count: below.block_count.min(blocks),
            ..below
        }
    }

    fn lane(&self, _: &CoreHandle, below: Rc<dyn Lane>, _: Shape) -> Rc<dyn Lane> {
        below
    }
}
