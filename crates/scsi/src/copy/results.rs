//! What one nexus can ask about its copies.
//!
//! Spec: SPC-3 6.18.2 "COPY STATUS", 6.18.3 "RECEIVE DATA", 6.18.5 "FAILED SEGMENT DETAILS".

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::operating_parameters;
use crate::bytes::Writer;
use crate::cdb::{CdbError, CopyResults};
use crate::sense::{Sense, SenseFormat};
use crate::status::Status;

/// How a copy ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CopyOutcome {
    /// Segments that were done.
    pub segments: u16,
    /// Bytes that were written.
    pub bytes: u64,
    /// Why it ended early.
    pub failure: Option<Sense>,
}

/// The last outcome for each list identifier; at most 256.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CopyHistory {
    outcomes: BTreeMap<u8, CopyOutcome>,
}

impl CopyHistory {
    /// Nothing copied yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            outcomes: BTreeMap::new(),
        }
    }

    /// Remembers a copy that has ended.
    pub fn record(&mut self, list_identifier: u8, outcome: CopyOutcome) {
        self.outcomes.insert(list_identifier, outcome);
    }

    /// RECEIVE COPY RESULTS parameter data, before it is cut to the allocation length. Details of a
    /// failed segment are forgotten when they have been read.
    ///
    /// # Errors
    /// INVALID FIELD IN CDB (LIST IDENTIFIER) for a copy that is not known or, for RECEIVE DATA,
    /// holds nothing.
    pub fn receive(
        &mut self,
        action: CopyResults,
        list_identifier: u8,
    ) -> Result<Vec<u8>, CdbError> {
        let unknown = CdbError::bytes(2);
        match action {
            CopyResults::OperatingParameters => Ok(operating_parameters()),
            CopyResults::CopyStatus => {
                let outcome = self.outcomes.get(&list_identifier).ok_or(unknown)?;
                Ok(status(outcome))
            }
            // Nothing is ever held: block to block copies have no data for the initiator.
            CopyResults::ReceiveData => Err(unknown),
            CopyResults::FailedSegmentDetails => {
                let outcome = self.outcomes.get(&list_identifier).ok_or(unknown)?;
                let Some(sense) = outcome.failure else {
                    return Ok([0; 4].into());
                };
                self.outcomes.remove(&list_identifier);
                Ok(failed_segment(&sense))
            }
        }
    }
}

fn status(outcome: &CopyOutcome) -> Vec<u8> {
    let mut out = Writer::new();
    out.counted32(|out| {
        // COPY MANAGER STATUS: 01h done, 02h done with errors.
        out.u8(if outcome.failure.is_some() { 2 } else { 1 });
        out.be16(outcome.segments);
        // TRANSFER COUNT UNITS: bytes, or kibibytes where they do not fit.
        match u32::try_from(outcome.bytes) {
            Ok(bytes) => out.u8(0x00).be32(bytes),
            Err(_) => {
                let kibibytes = u32::try_from(outcome.bytes >> 10).unwrap_or(u32::MAX);
                out.u8(0x01).be32(kibibytes)
            }
        };
    });
    out.finish()
}

fn failed_segment(sense: &Sense) -> Vec<u8> {
    let mut out = Writer::new();
    out.counted32(|out| {
        out.zeros(52);
        out.u8(Status::CheckCondition.code()).u8(0);
        out.counted16(|out| {
            out.bytes(&sense.to_bytes(SenseFormat::Fixed));
        });
    });
    out.finish()
}
