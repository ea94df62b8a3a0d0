//! VERIFY and WRITE AND VERIFY.
//!
//! Spec: SBC-3 5.28 to 5.30 "VERIFY", 5.37 to 5.39 "WRITE AND VERIFY".

use super::raw::{Raw10, Raw12, Raw16, view};
use super::{BlockRange, CdbError, Command};

/// BYTCHK: what the medium is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ByteCheck {
    /// 00b: nothing; the medium is only read.
    Skip,
    /// 01b: as many blocks of data-out.
    Compare,
    /// 11b: one block of data-out, which every block must equal.
    CompareOneBlock,
}

type Fields = (BlockRange, u8);

fn fields_10(cdb: &[u8]) -> Result<Fields, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    let range = BlockRange::new(
        raw.logical_block_address.get().into(),
        raw.length.get().into(),
    );
    Ok((range.with_dpo(raw.byte1)?, raw.byte1))
}

fn fields_12(cdb: &[u8]) -> Result<Fields, CdbError> {
    let raw: &Raw12 = view(cdb)?;
    let range = BlockRange::new(
        raw.logical_block_address.get().into(),
        raw.length.get().into(),
    );
    Ok((range.with_dpo(raw.byte1)?, raw.byte1))
}

fn fields_16(cdb: &[u8]) -> Result<Fields, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    let range = BlockRange::new(raw.logical_block_address.get(), raw.length.get().into());
    Ok((range.with_dpo(raw.byte1)?, raw.byte1))
}

fn verify((range, byte1): Fields) -> Result<Command, CdbError> {
    let check = match (byte1 >> 1) & 0x03 {
        0 => ByteCheck::Skip,
        1 => ByteCheck::Compare,
        3 => ByteCheck::CompareOneBlock,
        _ => return Err(CdbError::field(1, 2)),
    };
    Ok(Command::Verify { range, check })
}

/// One block against many makes no sense for data that has just been written: 10b and 11b are
/// refused.
fn write_and_verify((range, byte1): Fields) -> Result<Command, CdbError> {
    let check = match (byte1 >> 1) & 0x03 {
        0 => ByteCheck::Skip,
        1 => ByteCheck::Compare,
        _ => return Err(CdbError::field(1, 2)),
    };
    Ok(Command::WriteAndVerify { range, check })
}

pub(crate) fn verify_10(cdb: &[u8]) -> Result<Command, CdbError> {
    fields_10(cdb).and_then(verify)
}

pub(crate) fn verify_12(cdb: &[u8]) -> Result<Command, CdbError> {
    fields_12(cdb).and_then(verify)
}

pub(crate) fn verify_16(cdb: &[u8]) -> Result<Command, CdbError> {
    fields_16(cdb).and_then(verify)
}

pub(crate) fn write_and_verify_10(cdb: &[u8]) -> Result<Command, CdbError> {
    fields_10(cdb).and_then(write_and_verify)
}

pub(crate) fn write_and_verify_12(cdb: &[u8]) -> Result<Command, CdbError> {
    fields_12(cdb).and_then(write_and_verify)
}

pub(crate) fn write_and_verify_16(cdb: &[u8]) -> Result<Command, CdbError> {
    fields_16(cdb).and_then(write_and_verify)
}
