//! How far something has come, of many LUNs in one frame; and what else has a body of fixed size.

use crate::limits::Cost;
use formats::{Reader, Writer};
use journal::{Sequence, VolumeId};
use replica::{Epoch, Moment};

/// Bytes before the positions of a frame.
const FIXED: usize = 8;
/// Bytes of each.
const EACH: usize = 24;

/// How far something has come with the changes of a LUN in a ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    /// Of which LUN.
    pub volume: VolumeId,
    /// In the stream of this owner's epoch.
    pub epoch: Epoch,
    /// The first number that is not stable, or not committed.
    pub below: Sequence,
}

/// Positions of one ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Positions {
    /// Of which part of the log.
    pub ring: u8,
    /// Each LUN once.
    pub positions: Vec<Position>,
}

impl Positions {
    pub(crate) fn bytes(&self) -> usize {
        FIXED.saturating_add(self.positions.len().saturating_mul(EACH))
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        let count = u16::try_from(self.positions.len()).expect("frames are cut to their limits");
        to.u16(count).u8(self.ring).u8(0).u32(0);
        for it in &self.positions {
            to.u64(it.volume.0).u64(it.epoch.0).u64(it.below.0);
        }
    }

    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(body);
        let (count, ring, zero) = (fields.u16()?, fields.u8()?, fields.u8()?);
        let zeroes = fields.u32()?;
        let positions = (0..count).map(|_| {
            Some(Position {
                volume: VolumeId(fields.u64()?),
                epoch: Epoch(fields.u64()?),
                below: Sequence(fields.u64()?),
            })
        });
        let positions = positions.collect::<Option<Vec<Position>>>()?;
        let is_whole = fields.is_empty() && zero == 0 && zeroes == 0;
        is_whole.then_some(Self { ring, positions })
    }
}

pub(crate) fn write_credits(granted: Cost, to: &mut Writer) {
    to.u64(granted.bytes).u64(granted.records);
}

pub(crate) fn read_credits(body: &[u8]) -> Option<Cost> {
    let mut fields = Reader::new(body);
    let (bytes, records) = (fields.u64()?, fields.u64()?);
    fields.is_empty().then_some(Cost { bytes, records })
}

pub(crate) fn read_moment(body: &[u8]) -> Option<Moment> {
    let mut fields = Reader::new(body);
    let moment = Moment(fields.u64()?);
    fields.is_empty().then_some(moment)
}

pub(crate) fn read_reason(body: &[u8]) -> Option<u16> {
    let mut fields = Reader::new(body);
    let (code, zero, zeroes) = (fields.u16()?, fields.u16()?, fields.u32()?);
    (fields.is_empty() && zero == 0 && zeroes == 0).then_some(code)
}
