//! The EXTENDED COPY parameter list.
//!
//! Spec: SPC-3 6.3.2 to 6.3.7 "EXTENDED COPY parameter list", "Identification descriptor target
//! descriptor format", "Block device to block device segment descriptor"; SPC-4 "Identification
//! Descriptor CSCD descriptor format" for what became obsolete.

use alloc::vec::Vec;
use units::{BlockCount, BlockSize, ByteCount, Lba};

use super::{
    BLOCK_TO_BLOCK, DESCRIPTOR_LIST_BYTES_MAX, IDENTIFICATION, SEGMENT_BYTES, SEGMENTS_MAX,
    TARGET_BYTES, TARGETS_MAX, aborted,
};
use crate::bytes::{Reader, is_set};
use crate::description::UnitDescription;
use crate::sense::{AdditionalSense, Sense};
use crate::vpd::unit_designators;

/// A copy source or destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyTarget {
    /// The designation descriptor as page 83h has it: code set, association and type, zero, length,
    /// designator.
    pub designation: Vec<u8>,
    /// NUL: names nothing on purpose.
    pub null: bool,
    /// PERIPHERAL DEVICE TYPE; only zero can be copied.
    pub peripheral_type: u8,
    /// DISK BLOCK LENGTH in bytes; zero if not given.
    pub block_length: u32,
}

impl CopyTarget {
    /// This descriptor names that unit.
    #[must_use]
    pub fn names(&self, unit: &UnitDescription) -> bool {
        !self.null && unit_designators(unit).contains(&self.designation)
    }
}

/// One block to block segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segment {
    /// Index of the source in the list of targets.
    pub source: u16,
    /// Index of the destination in the list of targets.
    pub destination: u16,
    /// BLOCK DEVICE NUMBER OF BLOCKS, of the destination if `counts_destination`, otherwise of the
    /// source.
    pub blocks: u16,
    /// DC.
    pub counts_destination: bool,
    /// SOURCE BLOCK DEVICE LOGICAL BLOCK ADDRESS.
    pub source_lba: Lba,
    /// DESTINATION BLOCK DEVICE LOGICAL BLOCK ADDRESS.
    pub destination_lba: Lba,
}

impl Segment {
    /// The blocks to read and the blocks to write; `None` where they are not the same bytes, which
    /// a copy between different block sizes cannot do without padding.
    #[must_use]
    pub fn blocks(
        &self,
        source: BlockSize,
        destination: BlockSize,
    ) -> Option<(BlockCount, BlockCount)> {
        let counted = if self.counts_destination {
            destination
        } else {
            source
        };
        let ByteCount(bytes) = BlockCount(self.blocks.into()).bytes(counted)?;
        let whole = |size: BlockSize| {
            let count = ByteCount(bytes).blocks_floor(size);
            (count.bytes(size) == Some(ByteCount(bytes))).then_some(count)
        };
        Some((whole(source)?, whole(destination)?))
    }
}

/// A parameter list whose form is right; whom it names is not decided yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtendedCopy {
    /// What later commands of this nexus name the copy by.
    pub list_identifier: u8,
    /// LIST ID USAGE is not 11b: RECEIVE COPY RESULTS may ask for this copy.
    pub remembered: bool,
    /// Sources and destinations.
    pub targets: Vec<CopyTarget>,
    /// What to copy, in order.
    pub segments: Vec<Segment>,
}

impl ExtendedCopy {
    /// Reads the parameter list; `None` for an empty one, which copies nothing.
    ///
    /// # Errors
    /// ILLEGAL REQUEST with the code that the standard has for the fault, or COPY ABORTED for a
    /// segment that refers to a target that is not there.
    pub fn parse(list: &[u8], parameter_list_length: u32) -> Result<Option<Self>, Sense> {
        if parameter_list_length == 0 {
            return Ok(None);
        }
        let short = Sense::parameter_list_length_error;
        let length = usize::try_from(parameter_list_length).map_err(|_| short())?;
        let list = list.get(..length).ok_or_else(short)?;
        let mut reader = Reader::new(list);
        let [list_identifier, flags] = reader.array().ok_or_else(short)?;
        let target_bytes = reader.array().map(u16::from_be_bytes).ok_or_else(short)?;
        reader.skip(4).ok_or_else(short)?;
        let segment_bytes = reader.be32().ok_or_else(short)?;
        let inline_bytes = reader.be32().ok_or_else(short)?;
        if u32::from(target_bytes).saturating_add(segment_bytes) > DESCRIPTOR_LIST_BYTES_MAX {
            return Err(short());
        }
        let segment_bytes = usize::try_from(segment_bytes).map_err(|_| short())?;
        let targets = reader.take(target_bytes.into()).ok_or_else(short)?;
        let segments = reader.take(segment_bytes).ok_or_else(short)?;
        if inline_bytes != 0 {
            let code = AdditionalSense::INLINE_DATA_LENGTH_EXCEEDED;
            return Err(Sense::illegal_request(code));
        }
        let targets = self::targets(targets)?;
        let segments = self::segments(segments, &targets)?;
        Ok(Some(Self {
            list_identifier,
            remembered: (flags >> 3) & 0x03 != 0x03,
            targets,
            segments,
        }))
    }
}

fn targets(bytes: &[u8]) -> Result<Vec<CopyTarget>, Sense> {
    let mut reader = Reader::new(bytes);
    let mut targets = Vec::new();
    while let Some(kind) = reader.rest().first() {
        if *kind != IDENTIFICATION {
            let code = AdditionalSense::UNSUPPORTED_TARGET_DESCRIPTOR_TYPE_CODE;
            return Err(Sense::illegal_request(code));
        }
        if targets.len() >= usize::from(TARGETS_MAX) {
            let code = AdditionalSense::TOO_MANY_TARGET_DESCRIPTORS;
            return Err(Sense::illegal_request(code));
        }
        let at = bytes
            .len()
            .saturating_sub(reader.rest().len())
            .saturating_add(16);
        let descriptor = reader
            .take(TARGET_BYTES.into())
            .ok_or(Sense::parameter_list_length_error())?;
        targets.push(target(descriptor, at)?);
    }
    Ok(targets)
}

fn target(descriptor: &[u8], at: usize) -> Result<CopyTarget, Sense> {
    let invalid = |offset: usize, bit| {
        let byte = u16::try_from(at.saturating_add(offset)).unwrap_or(u16::MAX);
        Sense::invalid_field_in_parameter_list(byte, bit)
    };
    let mut reader = Reader::new(descriptor);
    let short = Sense::parameter_list_length_error;
    let [_, flags, _, _] = reader.array().ok_or_else(short)?;
    let [code_set, kind, _, length] = reader.array().ok_or_else(short)?;
    let field = reader.take(20).ok_or_else(short)?;
    let block_length = reader.be32().ok_or_else(short)? & 0x00ff_ffff;
    // LU ID TYPE (bits 7 and 6) is obsolete since SPC-4, which is what INQUIRY claims: what was put
    // there is not evaluated, the designator alone says which unit is meant.
    let designator = field
        .get(..usize::from(length))
        .ok_or_else(|| invalid(7, None))?;
    let mut designation = Vec::from([code_set & 0x0f, kind & 0x3f, 0, length]);
    designation.extend_from_slice(designator);
    Ok(CopyTarget {
        designation,
        null: is_set(flags, 5),
        peripheral_type: flags & 0x1f,
        block_length,
    })
}

fn segments(bytes: &[u8], targets: &[CopyTarget]) -> Result<Vec<Segment>, Sense> {
    let short = Sense::parameter_list_length_error;
    let mut reader = Reader::new(bytes);
    let mut segments = Vec::new();
    while let Some(kind) = reader.rest().first() {
        if *kind != BLOCK_TO_BLOCK {
            let code = AdditionalSense::UNSUPPORTED_SEGMENT_DESCRIPTOR_TYPE_CODE;
            return Err(Sense::illegal_request(code));
        }
        if segments.len() >= usize::from(SEGMENTS_MAX) {
            let code = AdditionalSense::TOO_MANY_SEGMENT_DESCRIPTORS;
            return Err(Sense::illegal_request(code));
        }
        let descriptor = reader.take(SEGMENT_BYTES.into()).ok_or_else(short)?;
        segments.push(segment(descriptor).ok_or_else(short)??);
    }
    for (number, segment) in segments.iter().enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        for index in [segment.source, segment.destination] {
            match targets.get(usize::from(index)) {
                None => return Err(aborted(number, AdditionalSense::UNREACHABLE_COPY_TARGET)),
                Some(target) if target.null => {
                    let code = AdditionalSense::COPY_TARGET_DEVICE_NOT_REACHABLE;
                    return Err(aborted(number, code));
                }
                Some(target) if target.peripheral_type != 0 => {
                    let code = AdditionalSense::INCORRECT_COPY_TARGET_DEVICE_TYPE;
                    return Err(aborted(number, code));
                }
                Some(_) => {}
            }
        }
    }
    Ok(segments)
}

/// `None` if the descriptor ends early, which its caller has excluded.
fn segment(descriptor: &[u8]) -> Option<Result<Segment, Sense>> {
    let mut reader = Reader::new(descriptor);
    let [_, flags, high, low] = reader.array()?;
    // DESCRIPTOR LENGTH counts what follows it.
    if u16::from_be_bytes([high, low]) != u16::from(SEGMENT_BYTES).saturating_sub(4) {
        return Some(Err(Sense::illegal_request(
            AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST,
        )));
    }
    let source = reader.array().map(u16::from_be_bytes)?;
    let destination = reader.array().map(u16::from_be_bytes)?;
    reader.skip(2)?;
    let blocks = reader.array().map(u16::from_be_bytes)?;
    Some(Ok(Segment {
        source,
        destination,
        blocks,
        counts_destination: is_set(flags, 1),
        source_lba: Lba(reader.be64()?),
        destination_lba: Lba(reader.be64()?),
    }))
}
