//! How much may happen in the model.

/// How often what may happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// Nodes, all of them with a copy.
    pub nodes: u8,
    /// Writes of hosts.
    pub writes: u8,
    /// Reads of hosts.
    pub reads: u8,
    /// Crashes of nodes.
    pub crashes: u8,
    /// Connections that end for no reason of the nodes'.
    pub cuts: u8,
    /// Answers of the arbiter that are lost.
    pub lost: u8,
    /// Questions of replicas whether they may read.
    pub asks: u8,
    /// Members that the owner wants to be rid of.
    pub unwell: u8,
    /// Handovers by an owner while all are well.
    pub handovers: u8,
    /// How often the arbiter's store is set back to what it was at first.
    pub set_backs: u8,
    /// How often an owner's log gives up all that is committed.
    pub forgets: u8,
    /// Copies that the owner adds and removes.
    pub changes: u8,
    /// Disks that are lost with the node's copy.
    pub losses: u8,
    /// How often somebody has a node go on although those in sync are down.
    pub promotes: u8,
    /// Nodes that have to be in sync for writes.
    pub min_copies: u32,
    /// Claims end at this epoch.
    pub epochs: u64,
}

impl Bounds {
    /// Two nodes, one write, one read, and nothing goes wrong.
    pub const QUIET: Self = Self {
        nodes: 2,
        writes: 1,
        reads: 1,
        crashes: 0,
        cuts: 0,
        lost: 0,
        asks: 0,
        unwell: 0,
        handovers: 0,
        set_backs: 0,
        forgets: 0,
        changes: 0,
        losses: 0,
        promotes: 0,
        min_copies: 1,
        epochs: 3,
    };
}
