//! What a LUN needs of the node that it is on.

use crate::pace::Pace;
use crate::pair::Pair;
use arbiter::Arbiter;
use replica::{Moment, NodeSlot};
use std::rc::Rc;
use write_back::VolumeId;

/// This node, as one of its LUNs knows it.
pub(crate) trait Node {
    /// The present, by this node's clock.
    fn now(&self) -> Moment;

    /// Which node of the cluster it is.
    fn slot(&self) -> NodeSlot;

    /// What another node is to it.
    fn pair(&self, slot: NodeSlot) -> Option<Rc<Pair>>;

    /// A LUN works no more.
    fn loses(&self, id: VolumeId);

    /// How fast it copies.
    fn pace(&self) -> &Rc<Pace>;

    /// Who decides.
    fn arbiter(&self) -> Rc<dyn Arbiter>;
}
