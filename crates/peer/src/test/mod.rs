//! Two nodes joined by pipes of bytes.

mod damage;
mod decoder;
mod forwarding;
mod frames;
mod pipe;
mod refusals;
mod resume;
mod session;
mod world;

use crate::*;
use journal::{Change, Commit, Kind, Sequence, VolumeId};
use replica::{Epoch, NodeSlot};
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

pub(crate) const CLUSTER: ClusterId = ClusterId([0xC1; 16]);

/// The node with this slot.
pub(crate) const fn own(slot: u8) -> Own {
    Own {
        cluster: CLUSTER,
        slot: NodeSlot(slot),
        node: NodeId([0x10 + slot; 16]),
        incarnation: Incarnation(100 + slot as u64),
        level: 3,
        level_max: 5,
    }
}

pub(crate) const fn known(slot: u8) -> KnownNode {
    let Own { slot, node, .. } = own(slot);
    KnownNode { slot, node }
}

/// Bytes that say which change of which LUN they are of.
pub(crate) fn contents(volume: u64, number: u64, bytes: usize) -> Vec<u8> {
    let byte = |at: usize| {
        let mixed = (at as u64 / 8 + 1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(17)
            ^ volume.wrapping_mul(0xD6E8_FEB8_6659_FD93)
            ^ number.wrapping_mul(0xA076_1D64_78BD_642F);
        mixed.to_le_bytes()[at % 8]
    };
    (0..bytes).map(byte).collect()
}

/// A write of so many blocks of 512 bytes; without any, blocks become zeroes.
pub(crate) fn change(volume: u64, number: u64, blocks: u64) -> (Change, Buf) {
    let change = Change {
        volume: VolumeId(volume),
        sequence: Sequence(number),
        range: LbaRange::new(Lba(number * 8), BlockCount(blocks.max(1))).unwrap(),
        block_size: BlockSize::B512,
        kind: if blocks > 0 {
            Kind::Write
        } else {
            Kind::Zeroes
        },
        commit: Commit::Later,
    };
    let data = contents(volume, number, usize::try_from(blocks).unwrap() * 512);
    (change, Buf::copy_of(&data))
}

pub(crate) const fn origin(volume: u64, epoch: u64, ring: u8) -> Origin {
    Origin {
        volume: VolumeId(volume),
        epoch: Epoch(epoch),
        of: Epoch(epoch),
        ring,
        commit: Sequence(0),
    }
}

/// Records of a LUN in ring 2: from this number on one for each size in blocks of 512 bytes.
pub(crate) fn records(volume: u64, epoch: u64, first: u64, sizes: &[u64]) -> Records {
    let changes = (first..).zip(sizes);
    let changes = changes.map(|(number, blocks)| change(volume, number, *blocks));
    Records::new(origin(volume, epoch, 2), changes.collect()).unwrap()
}

pub(crate) fn position(volume: u64, epoch: u64, below: u64) -> Position {
    Position {
        volume: VolumeId(volume),
        epoch: Epoch(epoch),
        below: Sequence(below),
    }
}
