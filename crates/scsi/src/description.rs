//! What a logical unit is: the one description from which INQUIRY, every vital product data page
//! and READ CAPACITY are derived, and which admission asks.
//!
//! **Contract.** Plain data. Identity (`naa`, `serial`) is made once and stored by the owner; it
//! never follows a name or a path. Vendor and product are the same for every unit, because ESXi
//! copies with EXTENDED COPY only between units whose product identification is equal.

use alloc::string::String;
use alloc::vec::Vec;
use units::{BlockCount, BlockSize};

use crate::opcode::Opcode;

/// T10 VENDOR IDENTIFICATION of every unit.
pub const VENDOR: &str = "CAUSEWAY";
/// PRODUCT IDENTIFICATION of every unit.
pub const PRODUCT: &str = "BLOCK VOLUME";

/// Limits of page B0h, in logical blocks unless said otherwise; zero means no limit or not
/// reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnitLimits {
    /// MAXIMUM TRANSFER LENGTH of reads, writes, verifies, ORWRITE.
    pub transfer_blocks_max: u32,
    /// What a VERIFY without data to compare may cover. No page reports it.
    pub verify_blocks_max: u64,
    /// OPTIMAL TRANSFER LENGTH.
    pub transfer_blocks_optimal: u32,
    /// OPTIMAL TRANSFER LENGTH GRANULARITY.
    pub transfer_granularity: u16,
    /// MAXIMUM PREFETCH LENGTH.
    pub prefetch_blocks_max: u32,
    /// MAXIMUM UNMAP LBA COUNT; `u32::MAX` means no limit, zero that UNMAP is not supported.
    pub unmap_blocks_max: u32,
    /// MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT.
    pub unmap_descriptors_max: u32,
    /// OPTIMAL UNMAP GRANULARITY: what the backend really frees.
    pub unmap_granularity: u32,
    /// UNMAP GRANULARITY ALIGNMENT: the first LBA of a granule, where it is known.
    pub unmap_alignment: Option<u32>,
    /// MAXIMUM WRITE SAME LENGTH.
    pub write_same_blocks_max: u64,
    /// WSNZ: a WRITE SAME of zero blocks is refused instead of running to the end.
    pub write_same_non_zero: bool,
    /// MAXIMUM COMPARE AND WRITE LENGTH; zero means that the command is not supported.
    pub compare_and_write_blocks_max: u8,
    /// What WRITE ATOMIC may do.
    pub atomic: AtomicLimits,
}

/// Limits of WRITE ATOMIC in page B0h, in logical blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtomicLimits {
    /// MAXIMUM ATOMIC TRANSFER LENGTH; zero means that WRITE ATOMIC is not supported.
    pub blocks_max: u32,
    /// ATOMIC ALIGNMENT.
    pub alignment: u32,
    /// ATOMIC TRANSFER LENGTH GRANULARITY.
    pub granularity: u32,
    /// MAXIMUM ATOMIC TRANSFER LENGTH WITH ATOMIC BOUNDARY.
    pub with_boundary_blocks_max: u32,
    /// MAXIMUM ATOMIC BOUNDARY SIZE; zero means that only a boundary of zero is supported.
    pub boundary_max: u32,
}

/// Logical block provisioning (SBC-3 4.7 "Logical block provisioning").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Provisioning {
    /// LBPME: the unit is thin provisioned.
    pub thin: bool,
    /// LBPRZ: unmapped blocks read as zeros.
    pub reads_zero: bool,
    /// LBPU: UNMAP works.
    pub unmap: bool,
    /// LBPWS: WRITE SAME (16) with UNMAP works.
    pub write_same_16: bool,
    /// LBPWS10: WRITE SAME (10) with UNMAP works.
    pub write_same_10: bool,
    /// ANC_SUP: anchored blocks exist.
    pub anchor: bool,
    /// THRESHOLD EXPONENT: the counts of log page 0Ch are in two to this power of blocks; zero for
    /// none.
    pub threshold_exponent: u8,
}

/// One logical unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitDescription {
    /// PRODUCT REVISION LEVEL; the first four characters are used.
    pub revision: String,
    /// UNIT SERIAL NUMBER: random, stored, ASCII.
    pub serial: String,
    /// NAA IEEE Registered Extended identifier (the first nibble is 6): random, stored.
    pub naa: [u8; 16],
    /// Logical block size.
    pub block_size: BlockSize,
    /// LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT: 3 for 512e.
    pub physical_block_exponent: u8,
    /// LOWEST ALIGNED LOGICAL BLOCK ADDRESS (14 bits).
    pub lowest_aligned_lba: u16,
    /// Blocks on the medium.
    pub block_count: BlockCount,
    /// Page B0h.
    pub limits: UnitLimits,
    /// Page B2h.
    pub provisioning: Provisioning,
    /// The medium is write protected (for this nexus).
    pub read_only: bool,
    /// There is a volatile write cache (the caching mode page's WCE can be one).
    pub write_cache: bool,
}

impl UnitDescription {
    /// This unit has the command of `row`: asked by dispatch and by REPORT SUPPORTED OPERATION
    /// CODES.
    #[must_use]
    pub const fn supports(&self, row: &Opcode) -> bool {
        match row.opcode {
            0x42 => self.provisioning.unmap,
            0x89 => self.limits.compare_and_write_blocks_max != 0,
            0x9c => self.limits.atomic.blocks_max != 0,
            _ => true,
        }
    }
}

/// One target port: an iSCSI portal group of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetPort {
    /// The iSCSI name of its target.
    pub target_name: String,
    /// RELATIVE TARGET PORT IDENTIFIER, from 1, unique across the nodes that share the target.
    pub relative_port: u16,
    /// iSCSI target portal group tag.
    pub portal_group_tag: u16,
    /// ALUA TARGET PORT GROUP.
    pub target_port_group: u16,
}

/// SERVICE TYPE of a management network address (SPC-4 7.8.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManagementService {
    /// 00h.
    Unspecified,
    /// 01h.
    StorageConfiguration,
    /// 02h.
    Diagnostics,
    /// 03h.
    Status,
}

/// The SCSI target device that holds the unit, as seen from one nexus.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetDescription {
    /// The target's iSCSI name.
    pub name: String,
    /// The port that the command came through.
    pub port: TargetPort,
    /// All ports through which this initiator can reach the unit, of this target and of others,
    /// that one included.
    pub ports: Vec<TargetPort>,
    /// URLs where the target is managed.
    pub management: Vec<(ManagementService, String)>,
}
