//! READ CAPACITY parameter data.
//!
//! Spec: SBC-3 5.15.2 "READ CAPACITY (10) parameter data", 5.16.2 "READ CAPACITY (16) parameter
//! data".

use alloc::vec::Vec;

use crate::bytes::{Writer, flag};
use crate::description::UnitDescription;

/// 8 bytes; FFFFFFFFh directs the initiator to READ CAPACITY (16).
#[must_use]
pub fn read_capacity_10(unit: &UnitDescription) -> Vec<u8> {
    let last = unit.block_count.0.saturating_sub(1);
    let mut out = Writer::new();
    out.be32(u32::try_from(last).unwrap_or(u32::MAX));
    out.be32(unit.block_size.bytes());
    out.finish()
}

/// 32 bytes.
#[must_use]
pub fn read_capacity_16(unit: &UnitDescription) -> Vec<u8> {
    let mut out = Writer::new();
    out.be64(unit.block_count.0.saturating_sub(1));
    out.be32(unit.block_size.bytes());
    // No protection information; exponent of the physical block.
    out.u8(0).u8(unit.physical_block_exponent & 0x0f);
    let [high, low] = unit.lowest_aligned_lba.to_be_bytes();
    let thin = flag(unit.provisioning.thin, 7);
    let reads_zero = flag(unit.provisioning.thin && unit.provisioning.reads_zero, 6);
    out.u8(thin | reads_zero | (high & 0x3f)).u8(low);
    out.pad_to(32);
    out.finish()
}
