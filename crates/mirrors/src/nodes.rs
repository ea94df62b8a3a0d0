//! Nodes of the cluster, as they say who they are on a stream.

use membership::{OtherNode, Present};
use peer::{ClusterId, Incarnation, KnownNode, NodeId, Own};
use replica::NodeSlot;

/// This node.
#[must_use]
pub fn own(present: &Present) -> Own {
    Own {
        cluster: ClusterId(present.cluster),
        slot: NodeSlot(present.slot),
        node: NodeId(present.node),
        incarnation: Incarnation(present.run),
        level: present.level.into(),
        level_max: present.level_max.into(),
    }
}

/// Another one.
#[must_use]
pub fn known(other: &OtherNode) -> KnownNode {
    KnownNode {
        slot: NodeSlot(other.slot),
        node: NodeId(other.node),
    }
}
