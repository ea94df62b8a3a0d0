//! Memory: gone when the daemon ends.

use super::door::{Backend, Leaf, Work, done};
use crate::lun::geometry::{block_count, block_size, exponent};
use backends::{MemoryVolume, Progress};
use env::CoreHandle;
use manifest::objects::Lun;
use manifest::problem::Problem;
use std::rc::Rc;
use std::sync::Arc;
use units::{BlockCount, ByteCount};
use volume::{Fences, OpenError, Volume};

/// The kind `memory`.
pub(crate) struct Memory;

struct MemoryLeaf(Arc<MemoryVolume>);

impl Backend for Memory {
    fn create<'a>(
        &'a self,
        _: &'a CoreHandle,
        _: &'a Lun,
        _: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        done(Ok(()))
    }

    fn open<'a>(
        &'a self,
        _: &'a CoreHandle,
        lun: &'a Lun,
        fences: Fences,
    ) -> Work<'a, Result<Rc<dyn Leaf>, OpenError>> {
        let blocks = BlockCount(block_count(lun));
        let volume = MemoryVolume::new(block_size(lun), blocks, exponent(lun), fences);
        let leaf: Rc<dyn Leaf> = Rc::new(MemoryLeaf(volume));
        done(Ok(leaf))
    }

    fn destroy<'a>(&'a self, _: &'a CoreHandle, _: &'a Lun) -> Work<'a, Result<(), Problem>> {
        done(Ok(()))
    }
}

impl Leaf for MemoryLeaf {
    fn volume(&self) -> Arc<dyn Volume> {
        Arc::<MemoryVolume>::clone(&self.0)
    }

    fn grow<'a>(
        &'a self,
        _: &'a CoreHandle,
        _: u64,
        _: u64,
        _: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        done(Ok(()))
    }

    fn extend(&self, blocks: BlockCount) {
        if blocks > self.0.shape().block_count {
            self.0.resize(blocks);
        }
    }

    fn shrink<'a>(
        &'a self,
        _: &'a CoreHandle,
        _: u64,
        bytes: u64,
    ) -> Work<'a, Result<(), OpenError>> {
        let shape = self.0.shape();
        if ByteCount(bytes) < shape.byte_count() {
            let blocks = bytes / u64::from(shape.block_size.bytes());
            self.0.resize(BlockCount(blocks));
        }
        done(Ok(()))
    }

    fn allocated(&self) -> Option<u64> {
        Some(self.0.allocated().0)
    }

    fn outlives_service(&self) -> bool {
        true
    }
}
