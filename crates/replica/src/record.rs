//! Who owns a LUN, and which nodes have all of it: the role record, which the arbiter holds.

/// Nodes that a cluster may have.
pub const NODES_MAX: u8 = 64;

/// A node, by its slot in the cluster, below [`NODES_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeSlot(pub u8);

/// Some nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct NodeSet(u64);

impl NodeSet {
    /// These nodes.
    #[must_use]
    pub fn of(nodes: impl IntoIterator<Item = NodeSlot>) -> Self {
        nodes.into_iter().fold(Self(0), Self::with)
    }

    /// Whether `node` is among them.
    #[must_use]
    pub const fn has(self, node: NodeSlot) -> bool {
        self.0 >> node.0 & 1 == 1
    }

    /// They and `node`.
    #[must_use]
    pub const fn with(self, node: NodeSlot) -> Self {
        Self(self.0 | 1 << node.0)
    }

    /// They without `node`.
    #[must_use]
    pub const fn without(self, node: NodeSlot) -> Self {
        Self(self.0 & !(1 << node.0))
    }

    /// How many they are.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Each of them, the lowest slot first.
    pub fn iter(self) -> impl Iterator<Item = NodeSlot> {
        (0..NODES_MAX)
            .map(NodeSlot)
            .filter(move |&node| self.has(node))
    }
}

/// The time of one owner: it rises with each new owner, and with each start of the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// Which of the versions of a record the arbiter holds (etcd: `mod_revision`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Revision(pub u64);

/// Made at random with a copy: one that was made anew is another one. Its lowest bit says that the
/// LUN had contents before it: such a copy has nothing at first, whatever logs say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CopyId(pub u128);

impl CopyId {
    /// Of these random bits; `is_added`: to a LUN that has contents.
    #[must_use]
    pub const fn new(random: u128, is_added: bool) -> Self {
        Self(random & !1 | is_added as u128)
    }

    /// The LUN had contents before this copy.
    #[must_use]
    pub const fn is_added(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Who owns a LUN, and who has all of it. It changes by compare-and-swap only.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RoleRecord {
    /// The owner's epoch: changes of an older one are not accepted any more.
    pub epoch: Epoch,
    /// It rises with each change of the record within an epoch.
    pub step: u32,
    /// The node that orders the changes of the LUN.
    pub owner: NodeSlot,
    /// The nodes whose copies have everything that was acknowledged.
    pub in_sync: NodeSet,
    /// All copies, in the order of slots.
    pub copies: Vec<(NodeSlot, CopyId)>,
}

impl RoleRecord {
    /// The copy of a node.
    #[must_use]
    pub fn copy_of(&self, node: NodeSlot) -> Option<CopyId> {
        let copy = self.copies.iter().find(|(at, _)| *at == node);
        copy.map(|(_, id)| *id)
    }

    /// The store that has this as the record of `revision` has forgotten a record that is `known`:
    /// it was emptied or restored from an old backup. Versions rise, and epochs with them.
    #[must_use]
    pub fn was_forgotten(known: &(Revision, Self), (revision, is): (Revision, &Self)) -> bool {
        let (known, record) = known;
        let fell = (is.epoch, is.step) < (record.epoch, record.step);
        revision < *known || fell || (revision == *known && is != record)
    }

    /// The record in which `owner` begins an epoch, with these nodes in sync.
    #[must_use]
    pub fn claimed_by(&self, owner: NodeSlot, epoch: Epoch, in_sync: NodeSet) -> Self {
        Self {
            epoch,
            step: 0,
            owner,
            in_sync,
            copies: self.copies.clone(),
        }
    }

    /// The record of the same owner and epoch with these copies. Who is none of them is not in sync
    /// any more, and who is another one is not yet.
    #[must_use]
    pub fn with_copies(&self, copies: Vec<(NodeSlot, CopyId)>) -> Self {
        let stays = |node: &NodeSlot| copies.iter().any(|it| self.has_copy(*it) && it.0 == *node);
        Self {
            step: self.step + 1,
            in_sync: NodeSet::of(self.in_sync.iter().filter(stays)),
            copies,
            ..*self
        }
    }

    /// This is one of the copies.
    pub(crate) fn has_copy(&self, copy: (NodeSlot, CopyId)) -> bool {
        self.copies.contains(&copy)
    }

    /// The record of the same owner and epoch with these nodes in sync.
    #[must_use]
    pub fn with_in_sync(&self, in_sync: NodeSet) -> Self {
        Self {
            step: self.step + 1,
            in_sync,
            ..self.clone()
        }
    }
}
