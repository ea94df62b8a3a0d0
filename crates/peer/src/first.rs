//! The first frame of each side. Its layout is the same in every version.

use crate::ids::{ClusterId, ConnectionNumber, Incarnation, NodeId, Purpose};
use crate::limits::FIRST_BYTES;
use crate::refusal::{Refusal, Versions};
use crate::rules::holds;
use formats::{Reader, Writer, crc32c, seal};
use replica::NodeSlot;

const MAGIC: &[u8; 8] = b"CWSTREAM";
const COVERED_FROM: usize = 12;

/// What a node says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Own {
    /// The cluster that it belongs to.
    pub cluster: ClusterId,
    /// Its place among the nodes there: 0 to 63.
    pub slot: NodeSlot,
    /// Its number.
    pub node: NodeId,
    /// Its process.
    pub incarnation: Incarnation,
    /// The cluster's level, as it knows it.
    pub level: u32,
    /// The highest level that its program knows.
    pub level_max: u32,
}

/// A node that may be at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownNode {
    /// Its place among the nodes of the cluster.
    pub slot: NodeSlot,
    /// Its number.
    pub node: NodeId,
}

/// The first frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct First {
    pub(crate) versions: Versions,
    pub(crate) own: Own,
    pub(crate) number: ConnectionNumber,
    pub(crate) purpose: Purpose,
}

impl First {
    pub(crate) fn write(&self) -> Vec<u8> {
        let (purpose, ring) = match self.purpose {
            Purpose::Control => (0, 0),
            Purpose::Ring(ring) => (1, ring),
            Purpose::Forward => (2, 0),
        };
        let mut fields = Writer::with_capacity(FIRST_BYTES);
        fields
            .bytes(MAGIC)
            .u32(0)
            .u16(self.versions.min)
            .u16(self.versions.max)
            .bytes(&self.own.cluster.0)
            .bytes(&self.own.node.0)
            .u64(self.own.incarnation.0)
            .u64(self.number.0)
            .u32(self.own.level)
            .u32(self.own.level_max)
            .u8(self.own.slot.0)
            .u8(purpose)
            .u8(ring);
        let mut bytes = fields.padded(FIRST_BYTES);
        seal(&mut bytes);
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut fields = Reader::new(bytes);
        if fields.bytes::<8>() != Some(*MAGIC) {
            return Err(Refusal::NotAPeer);
        }
        let covered = bytes.get(COVERED_FROM..).unwrap_or_default();
        if fields.u32() != Some(crc32c(covered)) && holds!(FirstIsChecked) {
            return Err(Refusal::Damaged);
        }
        Self::fields(fields).ok_or(Refusal::OtherPurpose)
    }

    fn fields(mut fields: Reader<'_>) -> Option<Self> {
        let versions = Versions {
            min: fields.u16()?,
            max: fields.u16()?,
        };
        let (cluster, node) = (ClusterId(fields.bytes()?), NodeId(fields.bytes()?));
        let incarnation = Incarnation(fields.u64()?);
        let number = ConnectionNumber(fields.u64()?);
        let (level, level_max) = (fields.u32()?, fields.u32()?);
        let slot = NodeSlot(fields.u8()?);
        let purpose = match (fields.u8()?, fields.u8()?) {
            (0, 0) => Purpose::Control,
            (1, ring) => Purpose::Ring(ring),
            (2, 0) => Purpose::Forward,
            _ => return None,
        };
        Some(Self {
            versions,
            own: Own {
                cluster,
                slot,
                node,
                incarnation,
                level,
                level_max,
            },
            number,
            purpose,
        })
    }

    /// The version that both speak, if the other side is one that this one may be connected with.
    pub(crate) fn accepted_by(&self, own: &Own, known: &[KnownNode]) -> Result<u16, Refusal> {
        let theirs = &self.own;
        if theirs.cluster != own.cluster {
            return Err(Refusal::OtherCluster {
                ours: own.cluster,
                theirs: theirs.cluster,
            });
        }
        if theirs.node == own.node {
            return Err(Refusal::OwnId { node: own.node });
        }
        if theirs.slot == own.slot {
            return Err(Refusal::OwnSlot {
                slot: own.slot,
                theirs: theirs.node,
            });
        }
        let of_slot = known.iter().find(|it| it.slot == theirs.slot);
        let Some(of_slot) = of_slot else {
            return Err(Refusal::UnknownNode {
                slot: theirs.slot,
                node: theirs.node,
            });
        };
        if of_slot.node != theirs.node {
            return Err(Refusal::OtherNode {
                slot: theirs.slot,
                theirs: theirs.node,
                known: of_slot.node,
            });
        }
        let common = Versions::OURS.common(self.versions);
        let version = common.ok_or(Refusal::Version {
            ours: Versions::OURS,
            theirs: self.versions,
        })?;
        if theirs.level > own.level_max {
            return Err(Refusal::Level {
                ours_max: own.level_max,
                theirs: theirs.level,
            });
        }
        Ok(version)
    }
}
