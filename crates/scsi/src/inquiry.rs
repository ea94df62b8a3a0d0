//! Standard INQUIRY data.
//!
//! Spec: SPC-4 6.6.2 "Standard INQUIRY data".

use alloc::vec::Vec;

use crate::bytes::Writer;
use crate::description::{PRODUCT, UnitDescription, VENDOR};

/// VERSION DESCRIPTORs: SAM-5, iSCSI, SPC-4, SBC-3 (no version claimed of any).
const VERSION_DESCRIPTORS: [u16; 4] = [0x00a0, 0x0960, 0x0460, 0x04c0];

/// What stands behind a logical unit number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peripheral {
    /// A disk: qualifier 000b, type 00h.
    Disk,
    /// A disk whose backing is missing, which keeps its place: qualifier 001b, type 00h.
    DiskNotConnected,
    /// The REPORT LUNS well-known logical unit: qualifier 000b, type 1Eh.
    WellKnown,
    /// Nothing: qualifier 011b, type 1Fh.
    Nothing,
}

impl Peripheral {
    /// PERIPHERAL QUALIFIER and PERIPHERAL DEVICE TYPE.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Disk => 0x00,
            Self::DiskNotConnected => 0x20,
            Self::WellKnown => 0x1e,
            Self::Nothing => 0x7f,
        }
    }
}

/// Standard INQUIRY data of a unit (96 bytes).
#[must_use]
pub fn standard(peripheral: Peripheral, unit: &UnitDescription) -> Vec<u8> {
    standard_with_revision(peripheral, &unit.revision)
}

/// Standard INQUIRY data where there is no unit: a logical unit number without one, or the
/// well-known logical unit.
#[must_use]
pub fn standard_with_revision(peripheral: Peripheral, revision: &str) -> Vec<u8> {
    let mut out = Writer::new();
    // RMB zero; VERSION 06h = SPC-4; HISUP, RESPONSE DATA FORMAT 2.
    out.u8(peripheral.code()).u8(0).u8(0x06).u8(0x12);
    out.counted8(|out| {
        // TPGS 01b (implicit), 3PC; MULTIP; CMDQUE.
        out.u8(0x18).u8(0x10).u8(0x02);
        out.ascii(VENDOR, 8).ascii(PRODUCT, 16).ascii(revision, 4);
        out.zeros(22);
        for descriptor in VERSION_DESCRIPTORS {
            out.be16(descriptor);
        }
        out.pad_to(96);
    });
    out.finish()
}
