//! EXTENDED COPY (LID1) and RECEIVE COPY RESULTS.
//!
//! Spec: SPC-3 6.3 "EXTENDED COPY command", 6.18 "RECEIVE COPY RESULTS command" (SPC-4 6.4 and 6.23
//! to 6.26).

use super::raw::{Raw16, view};
use super::{CdbError, Command};

/// Which copy results are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CopyResults {
    /// 00h COPY STATUS.
    CopyStatus,
    /// 01h RECEIVE DATA.
    ReceiveData,
    /// 03h OPERATING PARAMETERS.
    OperatingParameters,
    /// 04h FAILED SEGMENT DETAILS.
    FailedSegmentDetails,
}

pub(crate) fn extended_copy(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    Ok(Command::ExtendedCopy {
        parameter_list_length: raw.length.get(),
    })
}

pub(crate) fn receive_copy_results(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    let action = match raw.byte1 & 0x1f {
        0x00 => CopyResults::CopyStatus,
        0x01 => CopyResults::ReceiveData,
        0x03 => CopyResults::OperatingParameters,
        0x04 => CopyResults::FailedSegmentDetails,
        _ => return Err(CdbError::field(1, 4)),
    };
    let [byte2, ..] = raw.logical_block_address.get().to_be_bytes();
    // Operating parameters are those of the unit, not of a copy.
    let list_identifier = match action {
        CopyResults::OperatingParameters => 0,
        CopyResults::CopyStatus | CopyResults::ReceiveData | CopyResults::FailedSegmentDetails => {
            byte2
        }
    };
    Ok(Command::ReceiveCopyResults {
        action,
        list_identifier,
        allocation_length: raw.length.get(),
    })
}
