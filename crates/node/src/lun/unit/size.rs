//! A LUN becomes larger or smaller.

use super::{Leaf, Unit, blocks, failed, of_members};
use crate::data_plane::backing_failed;
use env::CoreHandle;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::size::Size;
use std::io;
use std::sync::atomic::Ordering;
use units::{BlockCount, ByteCount};
use volume::Volume;

impl Unit {
    /// Bytes of its file or device, which may be more than it has.
    pub(crate) fn file_bytes(&self) -> Option<u64> {
        match self.stack.leaf.as_ref()? {
            Leaf::Disk(volume) => Some(volume.shape().byte_count().0),
            Leaf::Memory(_) | Leaf::Members(_) => None,
        }
    }

    /// Makes room for a larger size. Hosts see nothing of it yet.
    pub(crate) async fn grow(&self, core: &CoreHandle, size: Size) -> Result<(), Problem> {
        if let Some(checksums) = self.stack.layers.checksums() {
            let reaches = checksums.reaches(BlockCount(size.bytes() / self.block_bytes));
            reaches.map_err(|error| backing_failed(&error))?;
        }
        let wanted = ByteCount(size.bytes());
        let volume = match &self.stack.leaf {
            Some(Leaf::Disk(volume)) => volume,
            Some(Leaf::Members(leaf)) => {
                let now = self.blocks.load(Ordering::Acquire) * self.block_bytes;
                if wanted.0 <= now {
                    return Ok(());
                }
                let grown = leaf.grow(core, now, wanted.0).await;
                return grown.map_err(|error| of_members(&error));
            }
            Some(Leaf::Memory(_)) | None => return Ok(()),
        };
        if wanted <= volume.shape().byte_count() {
            return Ok(());
        }
        let grown = volume.grow(core, wanted).await;
        grown.map_err(|error| failed(&error, volume.path(), "grow"))?;
        let has = volume.shape().byte_count();
        if has >= wanted {
            return Ok(());
        }
        let (path, has) = (volume.path().display(), has.0);
        let detail = format!("{path} has {has} bytes, not {}", wanted.0);
        Err(Problem::new(Code::BackingFailed, detail)
            .hint("make the device larger first: a LUN ends where its device ends"))
    }

    /// Brings the new size into force on every core, and cuts off what is too much; of storage that
    /// has more, `kept` stays. Where that fails, it can be asked for again.
    pub(crate) async fn resize(
        &self,
        core: &CoreHandle,
        size: Size,
        kept: Size,
    ) -> Result<(), String> {
        let Some(leaf) = &self.stack.leaf else {
            return Ok(());
        };
        let block_size = leaf.volume().shape().block_size;
        let wanted = BlockCount(blocks(size, block_size));
        if let Leaf::Memory(volume) = leaf
            && wanted > volume.shape().block_count
        {
            volume.resize(wanted);
        }
        let before = self.blocks.swap(wanted.0, Ordering::AcqRel);
        let grows = wanted.0 > before;
        if grows && let Err(error) = self.reshape_checksums(core).await {
            // Nothing has changed, so that all of it can be done again.
            self.blocks.store(before, Ordering::Release);
            return Err(error);
        }
        let adopted = self.unit.reshape(core).await;
        adopted.map_err(|error| error.to_string())?;
        if let Some(journaled) = self.stack.layers.journaled() {
            // What is cut off must not come back from the journal when the LUN grows again.
            journaled.destage(core).await;
        }
        let mut followed = Ok(());
        if !grows {
            followed = self.reshape_checksums(core).await;
        }
        let kept = size.max(kept).bytes();
        let cut = match leaf {
            Leaf::Memory(volume) if wanted < volume.shape().block_count => {
                volume.resize(wanted);
                Ok(())
            }
            Leaf::Disk(volume) if ByteCount(kept) < volume.shape().byte_count() => {
                match volume.shrink(core, ByteCount(kept)).await {
                    // A device keeps its size; the clip hides the rest.
                    Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
                    done => done.map(|_| ()),
                }
            }
            Leaf::Members(leaf) => {
                let cut = leaf.shrink(core, kept).await;
                cut.map_err(|error| io::Error::other(error.to_string()))
            }
            Leaf::Memory(_) | Leaf::Disk(_) => Ok(()),
        };
        cut.map_err(|error| error.to_string())?;
        if followed.is_err() {
            // What was cut off may be the room that was lacking.
            return self.reshape_checksums(core).await;
        }
        Ok(())
    }

    async fn reshape_checksums(&self, core: &CoreHandle) -> Result<(), String> {
        let Some(checksums) = self.stack.layers.checksums() else {
            return Ok(());
        };
        let reshaped = checksums.reshape(core).await;
        reshaped.map_err(|error| error.to_string())
    }
}
