//! EXTENDED COPY (LID1): parameter lists, operating parameters, and what is remembered of copies.
//!
//! Only block to block segments between units of this target: descriptors that name anything else
//! are refused. Which unit a descriptor names is decided by the caller, and only among the units
//! that the issuing nexus can see (CVE-2020-28374 was a global list).
//!
//! Spec: SPC-3 6.3 "EXTENDED COPY command", 6.18 "RECEIVE COPY RESULTS command"; SPC-4 7.8.17
//! "Third-party Copy VPD page".

mod parameters;
mod results;
#[cfg(test)]
mod test;

pub use parameters::{CopyTarget, ExtendedCopy, Segment};
pub use results::{CopyHistory, CopyOutcome};

use alloc::vec::Vec;

use crate::bytes::Writer;
use crate::opcode::rows;
use crate::sense::{AdditionalSense, Sense, SenseKey};

/// MAXIMUM TARGET DESCRIPTOR COUNT.
pub const TARGETS_MAX: u16 = 8;
/// MAXIMUM SEGMENT DESCRIPTOR COUNT.
pub const SEGMENTS_MAX: u16 = 16;
/// MAXIMUM DESCRIPTOR LIST LENGTH in bytes: as many of both as the counts allow.
pub const DESCRIPTOR_LIST_BYTES_MAX: u32 =
    TARGETS_MAX as u32 * TARGET_BYTES as u32 + SEGMENTS_MAX as u32 * SEGMENT_BYTES as u32;
/// MAXIMUM SEGMENT LENGTH in bytes: 65535 blocks of 4096 bytes.
pub const SEGMENT_BYTES_MAX: u32 = 0xffff * 4096;

/// Identification descriptor target descriptor.
const IDENTIFICATION: u8 = 0xe4;
/// Block device to block device segment descriptor.
const BLOCK_TO_BLOCK: u8 = 0x02;
const TARGET_BYTES: u8 = 32;
const SEGMENT_BYTES: u8 = 28;

/// COPY ABORTED while segment `segment` was processed; its number is in COMMAND-SPECIFIC
/// INFORMATION.
#[must_use]
pub fn aborted(segment: u16, code: AdditionalSense) -> Sense {
    Sense::new(SenseKey::CopyAborted, code).with_command_specific(segment.into())
}

/// RECEIVE COPY RESULTS, OPERATING PARAMETERS.
#[must_use]
pub fn operating_parameters() -> Vec<u8> {
    let mut out = Writer::new();
    out.counted32(|out| {
        // SNLID zero: a list identifier of zero is an identifier like others.
        out.zeros(4);
        out.be16(TARGETS_MAX).be16(SEGMENTS_MAX);
        out.be32(DESCRIPTOR_LIST_BYTES_MAX).be32(SEGMENT_BYTES_MAX);
        // No inline data, no held data, no streams.
        out.be32(0).be32(0).be32(0).zeros(2);
        // TOTAL CONCURRENT COPIES, MAXIMUM CONCURRENT COPIES: one for each nexus.
        out.be16(1).u8(1);
        // Granularities: DATA SEGMENT 512 bytes; none of inline and held data.
        out.u8(9).u8(0).u8(0).zeros(3);
        out.counted8(|out| {
            out.u8(BLOCK_TO_BLOCK).u8(IDENTIFICATION);
        });
    });
    out.finish()
}

/// The descriptors of the Third-party Copy VPD page (8Fh).
pub(crate) fn vital_product_data(out: &mut Writer) {
    // Supported Commands, from the table of commands.
    third_party_descriptor(out, 0x0001, |out| {
        out.counted8(|out| {
            for opcode in [0x83, 0x84] {
                let actions: Vec<u8> = rows(opcode)
                    .iter()
                    .filter_map(|row| u8::try_from(row.service_action?).ok())
                    .collect();
                out.u8(opcode).counted8(|out| {
                    out.bytes(&actions);
                });
            }
        });
    });
    // Parameter Data.
    third_party_descriptor(out, 0x0004, |out| {
        out.be32(0).be16(TARGETS_MAX).be16(SEGMENTS_MAX);
        out.be32(DESCRIPTOR_LIST_BYTES_MAX).be32(0).zeros(12);
    });
    // Supported Descriptors.
    third_party_descriptor(out, 0x0008, |out| {
        out.counted8(|out| {
            out.u8(BLOCK_TO_BLOCK).u8(IDENTIFICATION);
        });
    });
    // General Copy Operations.
    third_party_descriptor(out, 0x8001, |out| {
        out.be32(1).be32(1).be32(SEGMENT_BYTES_MAX);
        out.u8(9).u8(0).zeros(18);
    });
}

/// Type and length; the whole is padded to a multiple of four bytes.
fn third_party_descriptor(out: &mut Writer, kind: u16, body: impl FnOnce(&mut Writer)) {
    out.be16(kind).counted16(|out| {
        let start = out.len();
        body(out);
        let len = out.len().saturating_sub(start).next_multiple_of(4);
        out.pad_to(start.saturating_add(len));
    });
}
