//! What is known of the nodes of the cluster.

use arbiter::Arbiter;
use cluster::Transport;
use env::LocalFuture;
use manifest::objects::Lun;
use manifest::plan::Elsewhere;
use manifest::problem::Problem;
use peer::{KnownNode, Own};
use replica::NodeSlot;
use std::rc::Rc;

/// This node and the others, once it is in a cluster.
#[derive(Clone)]
pub struct Found {
    /// This node.
    pub own: Own,
    /// What people call it.
    pub name: String,
    /// The others that are in the cluster, with their names.
    pub others: Vec<(KnownNode, String)>,
}

impl Found {
    /// The node of this name.
    pub(crate) fn slot_of(&self, name: &str) -> Option<NodeSlot> {
        if name == self.name {
            return Some(self.own.slot);
        }
        let found = self.others.iter().find(|(_, it)| it == name);
        found.map(|(node, _)| node.slot)
    }

    /// The others, without their names.
    pub(crate) fn known(&self) -> Vec<KnownNode> {
        self.others.iter().map(|it| it.0).collect()
    }

    /// What people call a node; its number where nobody knows.
    pub(crate) fn name_of(&self, slot: NodeSlot) -> String {
        if slot == self.own.slot {
            return self.name.clone();
        }
        let found = self.others.iter().find(|(node, _)| node.slot == slot);
        found.map_or_else(|| format!("node {}", slot.0), |(_, name)| name.clone())
    }
}

/// The LUNs of this node, as they are stored.
pub trait Luns {
    /// The name of a LUN, and all of it; `None`: none in service has this NAA identifier.
    fn lun(&self, naa: &str) -> Option<(String, Lun)>;

    /// The same of a LUN that is in service or keeps its data; and whether it is in service.
    fn known(&self, naa: &str) -> Option<(String, Lun, bool)>;

    /// Makes the copy here of a LUN that another node has made; one that is there, also as one that
    /// was deleted, stays.
    fn make(&self, name: String, lun: Lun) -> LocalFuture<Result<(), Problem>>;

    /// Does with a LUN what its nodes have agreed.
    fn elsewhere(&self, wanted: Elsewhere) -> LocalFuture<Result<(), Problem>>;
}

/// Who knows the nodes of the cluster.
pub trait Nodes {
    /// As they are known now; `None`: this node is in no cluster.
    fn found(&self) -> Option<Found>;

    /// Completes after something of it has changed.
    fn changed(&self) -> LocalFuture<()>;

    /// Who holds the records of the cluster; `None`: it cannot be asked.
    fn arbiter(&self) -> LocalFuture<Option<Rc<dyn Arbiter>>>;

    /// How nodes are reached.
    fn transport(&self) -> Rc<dyn Transport>;
}
