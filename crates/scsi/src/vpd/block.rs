//! The pages of block devices: B0h, B1h, B2h.

use crate::bytes::{Writer, flag};
use crate::description::UnitDescription;

/// SBC-3 6.5.3 "Block Limits VPD page" (SBC-4 for the atomic fields).
pub(super) fn limits(out: &mut Writer, unit: &UnitDescription) {
    let limits = &unit.limits;
    out.u8(flag(limits.write_same_non_zero, 0));
    out.u8(limits.compare_and_write_blocks_max);
    out.be16(limits.transfer_granularity);
    out.be32(limits.transfer_blocks_max);
    out.be32(limits.transfer_blocks_optimal);
    out.be32(limits.prefetch_blocks_max);
    if unit.provisioning.unmap {
        out.be32(limits.unmap_blocks_max);
        out.be32(limits.unmap_descriptors_max);
    } else {
        out.zeros(8);
    }
    out.be32(limits.unmap_granularity);
    // UGAVALID is the top bit.
    out.be32(limits.unmap_alignment.map_or(0, |at| 0x8000_0000 | at));
    out.be64(limits.write_same_blocks_max);
    out.be32(limits.atomic.blocks_max);
    out.be32(limits.atomic.alignment);
    out.be32(limits.atomic.granularity);
    out.be32(limits.atomic.with_boundary_blocks_max);
    out.be32(limits.atomic.boundary_max);
}

/// SBC-3 6.5.2 "Block Device Characteristics VPD page".
pub(super) fn characteristics(out: &mut Writer) {
    // MEDIUM ROTATION RATE 0001h: does not rotate. The form factor is not reported.
    out.be16(0x0001);
    out.pad_to(64);
}

/// SBC-3 6.5.4 "Logical Block Provisioning VPD page".
pub(super) fn provisioning(out: &mut Writer, unit: &UnitDescription) {
    let facts = &unit.provisioning;
    out.u8(facts.threshold_exponent);
    out.u8(flag(facts.unmap, 7)
        | flag(facts.write_same_16, 6)
        | flag(facts.write_same_10, 5)
        | flag(facts.reads_zero, 2)
        | flag(facts.anchor, 1));
    // PROVISIONING TYPE: 010b thin, 000b not reported.
    out.u8(if facts.thin { 0x02 } else { 0x00 }).u8(0);
}
