//! What a node asks of whoever knows the other nodes of its cluster: for LUNs that have copies
//! there.

use env::LocalFuture;
use manifest::objects::{Lun, MirrorFacts, NodeNames};
use manifest::problem::Problem;
use std::sync::Arc;
use volume::{OpenError, Volume};
use write_back::WriteBack;

/// LUNs that have copies on several nodes.
pub trait Mirrors {
    /// Whether a new LUN may have the copies that it names.
    ///
    /// # Errors
    /// This node is in no cluster, or a named one is not in it.
    fn allows(&self, lun: &Lun) -> Result<(), Problem>;

    /// What hosts of a LUN use, over its part of the pool's journal, which nobody has opened yet.
    /// Who serves them is found out later. The LUN is said by its NAA identifier and the nodes that
    /// it names.
    ///
    /// # Errors
    /// What this node keeps of its copy cannot be used.
    fn over(
        &self,
        lun: (&str, NodeNames),
        log: Arc<WriteBack>,
    ) -> LocalFuture<Result<Arc<dyn Volume>, OpenError>>;

    /// The LUN works no more on this node, until it is put [over](Mirrors::over) a log again.
    fn close(&self, naa: &str) -> LocalFuture<()>;

    /// The LUN is destroyed here for good: what is kept of its copy is forgotten, and no copy of it
    /// is made here again.
    fn forget(&self, naa: &str) -> LocalFuture<()>;

    /// How its copies are, as this node knows it.
    fn facts(&self, naa: &str) -> Option<MirrorFacts>;
}
