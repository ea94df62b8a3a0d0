//! Why a connection does not begin, or ends: cause and next step.

use crate::ids::{ClusterId, NodeId, Purpose};
use crate::limits::{Cost, VERSION};
use journal::{Sequence, VolumeId};
use replica::NodeSlot;
use std::fmt;

/// Versions of the protocol that a program speaks, from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    /// The lowest.
    pub min: u16,
    /// The highest.
    pub max: u16,
}

impl Versions {
    /// Those of this program.
    pub const OURS: Self = Self {
        min: VERSION,
        max: VERSION,
    };

    /// The highest that both speak.
    #[must_use]
    pub fn common(self, other: Self) -> Option<u16> {
        let highest = self.max.min(other.max);
        (highest >= self.min.max(other.min)).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "version {}", self.max)
        } else {
            write!(f, "versions {} to {}", self.min, self.max)
        }
    }
}

/// Why a connection does not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// What came is no first frame.
    NotAPeer,
    /// The first frame does not fit its checksum.
    Damaged,
    /// The other node belongs to another cluster.
    OtherCluster {
        /// This node's cluster.
        ours: ClusterId,
        /// The other node's.
        theirs: ClusterId,
    },
    /// The other node says that it has this node's slot.
    OwnSlot {
        /// The slot of both.
        slot: NodeSlot,
        /// The other node.
        theirs: NodeId,
    },
    /// The other node says that it is this node.
    OwnId {
        /// The number of both.
        node: NodeId,
    },
    /// No node of the cluster that this connection may be with has that slot.
    UnknownNode {
        /// Its slot, as it says.
        slot: NodeSlot,
        /// Its number, as it says.
        node: NodeId,
    },
    /// The slot belongs to another node.
    OtherNode {
        /// The slot.
        slot: NodeSlot,
        /// The node that says it has it.
        theirs: NodeId,
        /// The node that has it.
        known: NodeId,
    },
    /// There is no version of the protocol that both speak.
    Version {
        /// Those of this program.
        ours: Versions,
        /// Those of the other one.
        theirs: Versions,
    },
    /// The cluster has a level that this program does not know.
    Level {
        /// The highest that this program knows.
        ours_max: u32,
        /// The cluster's, as the other node knows it.
        theirs: u32,
    },
    /// The other side answers for another connection than it was asked for, or for none that there
    /// is.
    OtherPurpose,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPeer => write!(
                f,
                "what answers there is no node of Causeway; check address and port of the other node"
            ),
            Self::Damaged => write!(
                f,
                "the first frame came damaged; check the network between the nodes (cable, NIC, switch)"
            ),
            Self::OtherCluster { ours, theirs } => write!(
                f,
                "the other node belongs to cluster {theirs}, this one to {ours}; check the address of the other \
                 node, or have it join this cluster"
            ),
            Self::OwnSlot { slot, theirs } => write!(
                f,
                "node {theirs} has slot {} like this node; one of them was set up from a copy of the other: have it \
                 leave and join anew",
                slot.0
            ),
            Self::OwnId { node } => write!(
                f,
                "the other end says that it is this node, {node}; check that the address is not this node's own, and \
                 that no copy of this node's disk runs elsewhere"
            ),
            Self::UnknownNode { slot, node } => write!(
                f,
                "node {node} with slot {} is not one that this connection may be with; have it join the cluster, or \
                 wait until this node knows that it did",
                slot.0
            ),
            Self::OtherNode {
                slot,
                theirs,
                known,
            } => write!(
                f,
                "node {theirs} says that it has slot {}, which belongs to node {known}; have it leave and join anew",
                slot.0
            ),
            Self::Version { ours, theirs } => write!(
                f,
                "the other node speaks {theirs} of the protocol, this one {ours}; upgrade the older program"
            ),
            Self::Level { ours_max, theirs } => write!(
                f,
                "the cluster has level {theirs}, this program knows levels up to {ours_max}; upgrade this node"
            ),
            Self::OtherPurpose => write!(
                f,
                "the other node answers for another connection than it was asked for; restart it, and report it"
            ),
        }
    }
}

/// What was wrong with a frame after the first one. Every one ends the connection, and nothing of
/// the frame is given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breach {
    /// The header does not fit its checksum.
    HeaderDamaged,
    /// The body does not fit its checksum.
    BodyDamaged,
    /// The data of a record does not fit its checksum.
    DataDamaged {
        /// Of which LUN.
        volume: VolumeId,
        /// Which change.
        sequence: Sequence,
    },
    /// A frame is missing, or came twice.
    OutOfOrder {
        /// The frame that was to come, modulo 2^32.
        expected: u32,
        /// The one that came.
        found: u32,
    },
    /// A kind of frame that this version does not have, and that may not be ignored.
    UnknownKind(u8),
    /// A frame is larger than its kind may be.
    TooLong,
    /// The checksums fit, but what the frame says cannot be.
    Malformed(&'static str),
    /// The frame does not belong on a connection for this.
    NotHere(Purpose),
    /// More came than was granted.
    Overrun {
        /// What was granted since the beginning.
        granted: Cost,
        /// What has come since then, with this frame.
        came: Cost,
    },
    /// Credits were taken back.
    CreditsShrink,
    /// Records are missing between those that came and those before.
    Gap {
        /// Of which LUN.
        volume: VolumeId,
        /// The number that was to come.
        expected: Sequence,
        /// The number that came.
        found: Sequence,
    },
}

impl Breach {
    const NETWORK: &'static str = "check the network between the nodes (cable, NIC, switch); the stream goes on over \
                                   another connection";
    const REPORT: &'static str =
        "both programs are to have the same version; if they have, report it";
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (network, report) = (Self::NETWORK, Self::REPORT);
        match self {
            Self::HeaderDamaged => write!(f, "the header of a frame came damaged; {network}"),
            Self::BodyDamaged => write!(f, "the body of a frame came damaged; {network}"),
            Self::DataDamaged { volume, sequence } => write!(
                f,
                "the data of change {} of LUN {:016x} came damaged; {network}",
                sequence.0, volume.0
            ),
            Self::OutOfOrder { expected, found } => write!(
                f,
                "frame {found} came where frame {expected} was to come; {report}"
            ),
            Self::UnknownKind(kind) => write!(
                f,
                "a frame of kind {kind}, which this program does not know; {report}"
            ),
            Self::TooLong => write!(f, "a frame is longer than frames of its kind; {report}"),
            Self::Malformed(what) => write!(f, "a frame contradicts itself: {what}; {report}"),
            Self::NotHere(purpose) => write!(
                f,
                "a frame that has no place on a connection for {purpose}; {report}"
            ),
            Self::Overrun { granted, came } => write!(
                f,
                "{} bytes in {} records came where {} bytes in {} records were granted; {report}",
                came.bytes, came.records, granted.bytes, granted.records
            ),
            Self::CreditsShrink => write!(f, "credits were taken back; {report}"),
            Self::Gap {
                volume,
                expected,
                found,
            } => write!(
                f,
                "change {} of LUN {:016x} came where change {} was to come; {report}",
                found.0, volume.0, expected.0
            ),
        }
    }
}

/// Why the other side ends a connection, as its last frame says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// Its process stops.
    Stops,
    /// Another connection has taken this one's place.
    Replaced,
    /// [`Refusal::OtherCluster`].
    OtherCluster,
    /// [`Refusal::OwnSlot`] or [`Refusal::OwnId`].
    SameNode,
    /// [`Refusal::UnknownNode`] or [`Refusal::OtherNode`].
    UnknownNode,
    /// [`Refusal::Version`].
    Version,
    /// [`Refusal::Level`].
    Level,
    /// [`Refusal::OtherPurpose`].
    OtherPurpose,
    /// A checksum did not fit.
    Damaged,
    /// [`Breach::OutOfOrder`] or [`Breach::Gap`].
    OutOfOrder,
    /// [`Breach::UnknownKind`].
    UnknownKind,
    /// The frame cannot be, or not there.
    Malformed,
    /// [`Breach::Overrun`].
    Overrun,
    /// One that this version does not know.
    Other(u16),
}

impl Reason {
    const ALL: [Self; 13] = [
        Self::Stops,
        Self::Replaced,
        Self::OtherCluster,
        Self::SameNode,
        Self::UnknownNode,
        Self::Version,
        Self::Level,
        Self::OtherPurpose,
        Self::Damaged,
        Self::OutOfOrder,
        Self::UnknownKind,
        Self::Malformed,
        Self::Overrun,
    ];

    /// As a frame has it.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Stops => 1,
            Self::Replaced => 2,
            Self::OtherCluster => 3,
            Self::SameNode => 4,
            Self::UnknownNode => 5,
            Self::Version => 6,
            Self::Level => 7,
            Self::OtherPurpose => 8,
            Self::Damaged => 9,
            Self::OutOfOrder => 10,
            Self::UnknownKind => 11,
            Self::Malformed => 12,
            Self::Overrun => 13,
            Self::Other(code) => code,
        }
    }

    pub(crate) fn of_code(code: u16) -> Self {
        let known = Self::ALL.into_iter().find(|it| it.code() == code);
        known.unwrap_or(Self::Other(code))
    }
}

impl From<&Refusal> for Reason {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::NotAPeer | Refusal::Damaged => Self::Damaged,
            Refusal::OtherCluster { .. } => Self::OtherCluster,
            Refusal::OwnSlot { .. } | Refusal::OwnId { .. } => Self::SameNode,
            Refusal::UnknownNode { .. } | Refusal::OtherNode { .. } => Self::UnknownNode,
            Refusal::Version { .. } => Self::Version,
            Refusal::Level { .. } => Self::Level,
            Refusal::OtherPurpose => Self::OtherPurpose,
        }
    }
}

impl From<&Breach> for Reason {
    fn from(breach: &Breach) -> Self {
        match breach {
            Breach::HeaderDamaged | Breach::BodyDamaged | Breach::DataDamaged { .. } => {
                Self::Damaged
            }
            Breach::OutOfOrder { .. } | Breach::Gap { .. } => Self::OutOfOrder,
            Breach::UnknownKind(_) => Self::UnknownKind,
            Breach::TooLong | Breach::Malformed(_) | Breach::NotHere(_) | Breach::CreditsShrink => {
                Self::Malformed
            }
            Breach::Overrun { .. } => Self::Overrun,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            Self::Stops => "its process stops; it connects again when it is back",
            Self::Replaced => "another connection has taken this one's place",
            Self::OtherCluster => "it belongs to another cluster; check the address of the node",
            Self::SameNode => {
                "it has the slot or the number of this node; have one of them leave and join anew"
            }
            Self::UnknownNode => {
                "it does not know this node; have this node join the cluster, or wait until it knows"
            }
            Self::Version => {
                "no version of the protocol is common to both; upgrade the older program"
            }
            Self::Level => "the cluster's level is too new for its program; upgrade that node",
            Self::OtherPurpose => "it was asked for something else than it was answered for",
            Self::Damaged => {
                "what came there was damaged; check the network between the nodes (cable, NIC, switch)"
            }
            Self::OutOfOrder => "something was missing in what came there",
            Self::UnknownKind => "its program does not know what it was sent; upgrade that node",
            Self::Malformed => "what it was sent contradicts itself",
            Self::Overrun => "it was sent more than it had granted",
            Self::Other(code) => {
                return write!(
                    f,
                    "the other node ended the connection for reason {code}, which this program does not know; upgrade \
                     this node"
                );
            }
        };
        write!(f, "the other node ended the connection: {said}")
    }
}

/// Why a connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// This side did not let it begin.
    Refused(Refusal),
    /// The other side sent what may not be.
    Broken(Breach),
    /// The other side ended it.
    TheyEnd(Reason),
    /// This side ended it.
    WeEnd(Reason),
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Broken(breach) => breach.fmt(f),
            Self::TheyEnd(reason) => reason.fmt(f),
            Self::WeEnd(reason) => write!(f, "this node ended the connection: {reason:?}"),
        }
    }
}

/// Why something is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotSent {
    /// The connection has not begun, or is over.
    NotOpen,
    /// [`SEND_AHEAD_BYTES`](crate::SEND_AHEAD_BYTES) wait: again when some of them are sent.
    Full,
    /// The other side has to let go something first.
    NoCredit,
    /// It does not fit a frame.
    TooLong,
    /// It has no place on a connection for this.
    NotHere,
    /// Beacons, answers, records, commit positions and acknowledgements have frames of their own.
    OwnFrame,
}
