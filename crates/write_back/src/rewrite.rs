//! A volume's blocks are written again, as they are: for a copy that is made anew.

use crate::addresses::parts;
use crate::lane::WriteBack;
use crate::ring::Ring;
use env::CoreHandle;
use journal::Slot;
use std::rc::Rc;
use units::LbaRange;
use volume::IoError;

pub use crate::ring::{Contents, Rewritten};

impl WriteBack {
    /// Has the first of these blocks go through the log as they are, in the order of all changes,
    /// so that whoever follows it has them, and answers when that is committed: as many as lie in
    /// one ring, and are alike, and fit into a record. What hosts change meanwhile is theirs, and
    /// is not written again; they wait for nothing.
    ///
    /// # Errors
    /// They cannot be read or written; [`IoError::Transition`]: another node orders the volume.
    pub async fn rewrite(&self, core: &CoreHandle, range: LbaRange) -> Result<Rewritten, IoError> {
        let block_size = self.backing().shape().block_size;
        let all = parts(self.id(), range, block_size, self.journal().sharding());
        let first = *all.first().expect("a range has blocks");
        let rewritten = self.on_ring(core, first.ring, move |here: Rc<Ring>, slot: Slot| {
            Box::pin(async move { Ok(here.rewrite(slot, first.range).await) })
        });
        rewritten.await?
    }

    /// What the first of these blocks have: as many as lie in one ring, and are alike, and fit into
    /// a record. Also where another node orders the volume: what is committed, then.
    ///
    /// # Errors
    /// They cannot be read, the volume is not open, or the ring stops.
    pub async fn contents(&self, core: &CoreHandle, range: LbaRange) -> Result<Contents, IoError> {
        let block_size = self.backing().shape().block_size;
        let all = parts(self.id(), range, block_size, self.journal().sharding());
        let first = *all.first().expect("a range has blocks");
        let read = self.on_ring(core, first.ring, move |here: Rc<Ring>, slot: Slot| {
            Box::pin(async move { here.contents(slot, first.range).await })
        });
        read.await
    }
}
