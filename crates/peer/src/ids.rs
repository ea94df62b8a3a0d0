//! Who is at the ends of a connection, and what it is for.

use std::fmt;
use units::hex;

/// Made at random with a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClusterId(pub [u8; 16]);

/// Made at random with a node: one that was set up anew has another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(pub [u8; 16]);

/// Made at random with each start of a node's process: what an earlier process was promised or was
/// sent holds no more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Incarnation(pub u64);

/// Which connection of two processes. Who connects takes a number above all that it knows of, so
/// that an older connection that is late takes nothing over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct ConnectionNumber(pub u64);

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Purpose {
    /// Messages about LUNs.
    Control,
    /// Records of this ring, from either side.
    Ring(u8),
    /// Commands of hosts that reach the owner of a LUN through the other node, in both directions.
    Forward,
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("control"),
            Self::Ring(ring) => write!(f, "ring {ring}"),
            Self::Forward => f.write_str("forwarding"),
        }
    }
}
