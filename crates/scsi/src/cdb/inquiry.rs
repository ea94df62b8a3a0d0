//! INQUIRY and REQUEST SENSE.
//!
//! Spec: SPC-4 6.6 "INQUIRY command", 6.39 "REQUEST SENSE command".

use super::raw::{Raw6, view};
use super::{CdbError, Command};
use crate::bytes::is_set;

pub(crate) fn inquiry(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    // CMDDT is obsolete; an old initiator that sets it wants other data than we would send.
    if is_set(raw.byte1, 1) {
        return Err(CdbError::field(1, 1));
    }
    let vital_product_data = is_set(raw.byte1, 0);
    // spec: SPC-4 6.6.1: a PAGE CODE without EVPD is an invalid field.
    if !vital_product_data && raw.byte2 != 0 {
        return Err(CdbError::bytes(2));
    }
    Ok(Command::Inquiry {
        page: vital_product_data.then_some(raw.byte2),
        allocation_length: u16::from_be_bytes([raw.byte3, raw.byte4]),
    })
}

pub(crate) fn request_sense(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    Ok(Command::RequestSense {
        descriptor: is_set(raw.byte1, 0),
        allocation_length: raw.byte4,
    })
}
