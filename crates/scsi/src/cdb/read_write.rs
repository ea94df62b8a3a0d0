//! READ, WRITE, WRITE ATOMIC, ORWRITE, COMPARE AND WRITE.
//!
//! Spec: SBC-3 5.2 "COMPARE AND WRITE", 5.6 "ORWRITE (16)", 5.9 to 5.12 "READ", 5.33 to 5.36
//! "WRITE"; SBC-4 "WRITE ATOMIC (16)".

use super::raw::{Raw6, Raw10, Raw12, Raw16, view};
use super::{BlockRange, CdbError, Command};

fn range_6(cdb: &[u8]) -> Result<BlockRange, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    let lba = u32::from_be_bytes([0, raw.byte1 & 0x1f, raw.byte2, raw.byte3]);
    // spec: SBC-3 5.9 "READ (6)": zero means 256 blocks.
    let blocks = if raw.byte4 == 0 {
        256
    } else {
        raw.byte4.into()
    };
    Ok(BlockRange::new(lba.into(), blocks))
}

fn range_10(cdb: &[u8]) -> Result<BlockRange, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    BlockRange::new(
        raw.logical_block_address.get().into(),
        raw.length.get().into(),
    )
    .with_flags(raw.byte1)
}

fn range_12(cdb: &[u8]) -> Result<BlockRange, CdbError> {
    let raw: &Raw12 = view(cdb)?;
    BlockRange::new(
        raw.logical_block_address.get().into(),
        raw.length.get().into(),
    )
    .with_flags(raw.byte1)
}

fn range_16(cdb: &[u8]) -> Result<BlockRange, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    BlockRange::new(raw.logical_block_address.get(), raw.length.get().into()).with_flags(raw.byte1)
}

pub(crate) fn read_6(cdb: &[u8]) -> Result<Command, CdbError> {
    range_6(cdb).map(Command::Read)
}

pub(crate) fn read_10(cdb: &[u8]) -> Result<Command, CdbError> {
    range_10(cdb).map(Command::Read)
}

pub(crate) fn read_12(cdb: &[u8]) -> Result<Command, CdbError> {
    range_12(cdb).map(Command::Read)
}

pub(crate) fn read_16(cdb: &[u8]) -> Result<Command, CdbError> {
    range_16(cdb).map(Command::Read)
}

pub(crate) fn write_6(cdb: &[u8]) -> Result<Command, CdbError> {
    range_6(cdb).map(Command::Write)
}

pub(crate) fn write_10(cdb: &[u8]) -> Result<Command, CdbError> {
    range_10(cdb).map(Command::Write)
}

pub(crate) fn write_12(cdb: &[u8]) -> Result<Command, CdbError> {
    range_12(cdb).map(Command::Write)
}

pub(crate) fn write_16(cdb: &[u8]) -> Result<Command, CdbError> {
    range_16(cdb).map(Command::Write)
}

pub(crate) fn or_write(cdb: &[u8]) -> Result<Command, CdbError> {
    range_16(cdb).map(Command::OrWrite)
}

/// Bytes 10 to 13 hold ATOMIC BOUNDARY and TRANSFER LENGTH, 16 bits each.
pub(crate) fn write_atomic_16(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    let [b0, b1, n0, n1] = raw.length.get().to_be_bytes();
    let blocks = u16::from_be_bytes([n0, n1]);
    let range = BlockRange::new(raw.logical_block_address.get(), blocks.into());
    Ok(Command::WriteAtomic {
        range: range.with_flags(raw.byte1)?,
        boundary: u16::from_be_bytes([b0, b1]),
    })
}

/// Bytes 10 to 12 are reserved, byte 13 is NUMBER OF LOGICAL BLOCKS.
pub(crate) fn compare_and_write(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    let [_, _, _, blocks] = raw.length.get().to_be_bytes();
    BlockRange::new(raw.logical_block_address.get(), blocks.into())
        .with_flags(raw.byte1)
        .map(Command::CompareAndWrite)
}
