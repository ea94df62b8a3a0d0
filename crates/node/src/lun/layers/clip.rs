//! The clip gives the LUN its stored size where its file or device is larger: a device never fits
//! exactly, a file is longer for a moment while the LUN grows, or for good where objects of an
//! older copy make the LUN smaller.

use super::door::{LayerKind, Plain};
use env::CoreHandle;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::BlockCount;
use volume::{Lane, Shape, Wrap};

pub(crate) const KIND: LayerKind = LayerKind {
    name: "Clip",
    make: Some(|_, _, handles| Some(Box::new(Plain(Clip(Arc::clone(&handles.parts.blocks)))))),
    ..LayerKind::BLANK
};

/// Shows so many blocks of the volume below, from its start.
#[derive(Clone)]
pub(crate) struct Clip(pub(crate) Arc<AtomicU64>);

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
