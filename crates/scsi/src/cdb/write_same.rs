//! WRITE SAME.
//!
//! Spec: SBC-3 5.43 "WRITE SAME (10)", 5.44 "WRITE SAME (16)"; SBC-4 for NDOB.

use super::raw::{Raw10, Raw16, view};
use super::{BlockRange, CdbError, Command};
use crate::bytes::is_set;

/// One block of data, or zeros, over a whole range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteSame {
    /// The blocks; zero blocks mean all from the LBA on, unless WSNZ is one.
    pub range: BlockRange,
    /// UNMAP: may deallocate instead, where reads give the same data.
    pub unmap: bool,
    /// ANCHOR: with UNMAP, anchor instead of deallocate.
    pub anchor: bool,
    /// NDOB: no data-out buffer, the data is zeros.
    pub no_data_out: bool,
    /// The 16-byte form; page B2h permits UNMAP for each form on its own.
    pub sixteen: bool,
}

fn write_same(range: BlockRange, byte1: u8) -> Result<WriteSame, CdbError> {
    if byte1 & 0xe0 != 0 {
        return Err(CdbError::field(1, 7));
    }
    let (anchor, unmap) = (is_set(byte1, 4), is_set(byte1, 3));
    // spec: SBC-3 table "UNMAP bit and ANCHOR bit": ANCHOR without UNMAP is invalid.
    if anchor && !unmap {
        return Err(CdbError::field(1, 4));
    }
    // PBDATA and LBDATA are obsolete; ignoring them would write other data than was asked for.
    if byte1 & 0x06 != 0 {
        return Err(CdbError::field(1, if is_set(byte1, 2) { 2 } else { 1 }));
    }
    Ok(WriteSame {
        range,
        unmap,
        anchor,
        no_data_out: false,
        sixteen: false,
    })
}

pub(crate) fn write_same_10(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    let range = BlockRange::new(
        raw.logical_block_address.get().into(),
        raw.length.get().into(),
    );
    write_same(range, raw.byte1).map(Command::WriteSame)
}

pub(crate) fn write_same_16(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    let range = BlockRange::new(raw.logical_block_address.get(), raw.length.get().into());
    let command = WriteSame {
        no_data_out: is_set(raw.byte1, 0),
        sixteen: true,
        ..write_same(range, raw.byte1)?
    };
    Ok(Command::WriteSame(command))
}
