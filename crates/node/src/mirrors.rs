//! What a node asks of whoever knows the other nodes of its cluster: for LUNs that have copies
//! there.

use engine::{MirrorAsked, MirrorView, SharedChange};
use env::LocalFuture;
use logical_unit::{
    Forwarder, HeldState, NodeElsewhere, NodeNumber, PortElsewhere, StateCopies, UnitId,
};
use manifest::objects::{Lun, MirrorFacts, NodeNames};
use manifest::problem::Problem;
use std::sync::Arc;
use std::time::Duration;
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
    /// it names, and how many of them there have to be for writes.
    ///
    /// # Errors
    /// What this node keeps of its copy cannot be used.
    fn over(
        &self,
        lun: (&str, NodeNames, u32),
        log: Arc<WriteBack>,
    ) -> LocalFuture<Result<Arc<dyn Volume>, OpenError>>;

    /// So many of its nodes have to have all of it for writes from now on.
    fn set_min_copies(&self, naa: &str, nodes: u32);

    /// The LUN works no more on this node, until it is put [over](Mirrors::over) a log again.
    fn close(&self, naa: &str) -> LocalFuture<()>;

    /// The LUN is destroyed here for good: what is kept of its copy is forgotten, and no copy of it
    /// is made here again.
    fn forget(&self, naa: &str) -> LocalFuture<()>;

    /// This node is about to stop, or to rest: LUNs that it owns are given to nodes that have all
    /// of them, and hosts are served there. What could not be given in time stays, and is logged.
    fn hand_over(&self, within: Duration) -> LocalFuture<Vec<HandOver>>;

    /// What that would do, as things are now.
    fn would_hand_over(&self) -> Vec<HandOver>;

    /// Which node of its cluster this one is; `None`: it is in none. Known as soon as a LUN was put
    /// [over](Mirrors::over) its log.
    fn number(&self) -> Option<NodeNumber>;

    /// Through these ports of this node hosts reach the LUN from now on: other nodes hear it.
    fn say_ports(&self, naa: &str, ports: Vec<PortElsewhere>);

    /// What other nodes said last of their ports. An event of its volume says that it has changed.
    fn elsewhere(&self, naa: &str) -> Vec<NodeElsewhere>;

    /// Where what hosts set of the LUN is kept on all nodes, once it was put [over](Mirrors::over)
    /// its log.
    fn state_copies(&self, naa: &str) -> Option<Arc<dyn StateCopies>>;

    /// The way to the node that serves hosts of the LUN, where that is another one, once it was put
    /// [over](Mirrors::over) its log. Commands that come from other nodes are done by this unit.
    fn forwarder(&self, naa: &str, unit: UnitId) -> Option<Arc<dyn Forwarder>>;

    /// What hosts set of the LUN, once this node may serve them; `None`: another one does, or
    /// nobody.
    fn held_state(&self, naa: &str) -> LocalFuture<Option<HeldState>>;

    /// Changes the copies of a LUN, or says what that would do.
    ///
    /// # Errors
    /// Nothing was changed, except where it is only partly done.
    fn change(&self, asked: MirrorAsked) -> LocalFuture<Result<MirrorView, Problem>>;

    /// The nodes of these LUNs agree that they are so, before anything is done here.
    ///
    /// # Errors
    /// They do not, or cannot be asked.
    fn agree(&self, shared: Vec<SharedChange>) -> LocalFuture<Result<(), Problem>>;

    /// How its copies are, as this node knows it.
    fn facts(&self, naa: &str) -> Option<MirrorFacts>;
}

/// What became of a LUN that this node owned and was to give to another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandOver {
    /// The LUN, by its NAA identifier.
    pub naa: String,
    /// The node that owns it now, or why this one still does.
    pub to: Result<String, String>,
}
