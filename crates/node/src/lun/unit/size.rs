//! A LUN becomes larger or smaller.

use super::Unit;
use crate::lun::failed::backing_failed;
use crate::lun::geometry::blocks;
use backends::Progress;
use env::CoreHandle;
use manifest::problem::Problem;
use manifest::size::Size;
use std::sync::atomic::Ordering;
use units::BlockCount;
use volume::OpenError;

impl Unit {
    /// Bytes of its file or device, which may be more than it has.
    pub(crate) fn own_bytes(&self) -> Option<u64> {
        self.stack.leaf.as_ref()?.own_bytes()
    }

    /// Bytes that hosts see now.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.blocks.load(Ordering::Acquire) * self.block_bytes
    }

    /// Makes room for a larger size. Hosts see nothing of it yet.
    pub(crate) async fn grow(
        &self,
        core: &CoreHandle,
        size: Size,
        progress: &Progress,
    ) -> Result<(), Problem> {
        let blocks = BlockCount(size.bytes() / self.block_bytes);
        let reaches = self.stack.layers.reaches(blocks);
        reaches.map_err(|error| backing_failed(&error))?;
        let Some(leaf) = &self.stack.leaf else {
            return Ok(());
        };
        let now = self.bytes();
        leaf.grow(core, now, size.bytes(), progress).await
    }

    /// Brings the new size into force on every core, and cuts off what is too much; of storage that
    /// has more, `kept` stays, and of an image what was never the LUN's. Where that fails, it can
    /// be asked for again.
    pub(crate) async fn resize(
        &self,
        core: &CoreHandle,
        size: Size,
        kept: Size,
    ) -> Result<(), OpenError> {
        let Some(leaf) = &self.stack.leaf else {
            return Ok(());
        };
        let block_size = leaf.volume().shape().block_size;
        let wanted = BlockCount(blocks(size, block_size));
        leaf.extend(wanted);
        let before = self.parts.blocks.swap(wanted.0, Ordering::AcqRel);
        let grows = wanted.0 > before;
        if grows && let Err(error) = self.stack.layers.reshape(core).await {
            // Nothing has changed, so that all of it can be done again.
            self.parts.blocks.store(before, Ordering::Release);
            return Err(error);
        }
        self.unit.reshape(core).await?;
        // What is cut off must not come back from the journal when the LUN grows again.
        self.stack.layers.destage(core).await;
        let mut followed = Ok(());
        if !grows {
            followed = self.stack.layers.reshape(core).await;
        }
        let kept = size.max(kept).bytes();
        leaf.shrink(core, before * self.block_bytes, kept).await?;
        if followed.is_err() {
            // What was cut off may be the room that was lacking.
            return self.stack.layers.reshape(core).await;
        }
        Ok(())
    }
}
