//! The four CDB layouts that most commands share, byte for byte.
//!
//! Spec: SPC-4 4.2.2 "Fixed length CDB formats".

use zerocopy::byteorder::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::CdbError;

/// 6-byte CDB.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Raw6 {
    pub(super) operation_code: u8,
    pub(super) byte1: u8,
    pub(super) byte2: u8,
    pub(super) byte3: u8,
    pub(super) byte4: u8,
    pub(super) control: u8,
}

/// 10-byte CDB.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Raw10 {
    pub(super) operation_code: u8,
    pub(super) byte1: u8,
    pub(super) logical_block_address: U32,
    pub(super) byte6: u8,
    pub(super) length: U16,
    pub(super) control: u8,
}

/// 12-byte CDB.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Raw12 {
    pub(super) operation_code: u8,
    pub(super) byte1: u8,
    pub(super) logical_block_address: U32,
    pub(super) length: U32,
    pub(super) byte10: u8,
    pub(super) control: u8,
}

/// 16-byte CDB.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Raw16 {
    pub(super) operation_code: u8,
    pub(super) byte1: u8,
    pub(super) logical_block_address: U64,
    pub(super) length: U32,
    pub(super) byte14: u8,
    pub(super) control: u8,
}

const _: () = assert!(size_of::<Raw6>() == 6);
const _: () = assert!(size_of::<Raw10>() == 10);
const _: () = assert!(size_of::<Raw12>() == 12);
const _: () = assert!(size_of::<Raw16>() == 16);
const _: () = assert!(core::mem::offset_of!(Raw10, length) == 7);
const _: () = assert!(core::mem::offset_of!(Raw12, length) == 6);
const _: () = assert!(core::mem::offset_of!(Raw16, length) == 10);

/// Views the front of `cdb` as one of the layouts.
pub(super) fn view<T: FromBytes + KnownLayout + Immutable + Unaligned>(
    cdb: &[u8],
) -> Result<&T, CdbError> {
    T::ref_from_prefix(cdb)
        .map(|(raw, _)| raw)
        .map_err(|_| CdbError::Truncated)
}
