//! Sense data: why a command did not simply succeed.
//!
//! `Sense` is the meaning; [`Sense::to_bytes`] writes it in the fixed or the descriptor format,
//! whichever the control mode page's D_SENSE bit asks for; [`Sense::parse`] reads both (for the
//! initiator).
//!
//! Spec: SPC-4 4.5 "Sense data".

mod code;
mod format;

pub use code::{AdditionalSense, SenseKey};
pub use format::SenseFormat;

/// Where the first wrong field of a CDB or parameter list starts.
///
/// SPC-4 4.5.2.4.2 "Field pointer sense-key-specific data".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FieldPointer {
    /// In the CDB; otherwise in the data-out parameter list.
    pub in_cdb: bool,
    /// Byte offset of the field.
    pub byte: u16,
    /// Most significant bit of the field, when the field is not whole bytes.
    pub bit: Option<u8>,
}

/// The sense-key-specific data (SPC-4 4.5.2.4 "Sense-key-specific descriptor").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Specific {
    /// SKSV is zero.
    #[default]
    None,
    /// ILLEGAL REQUEST: which field is wrong.
    Field(FieldPointer),
    /// NO SENSE or NOT READY: done so far, in 65536ths.
    Progress(u16),
    /// COPY ABORTED: which field of the segment is wrong.
    Segment(SegmentPointer),
}

/// SPC-4 4.5.2.4.5 "Segment pointer sense-key-specific data".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SegmentPointer {
    /// The offset counts from the segment descriptor; otherwise from the parameter list.
    pub in_segment: bool,
    /// Byte offset of the field.
    pub byte: u16,
    /// Most significant bit of the field, when the field is not whole bytes.
    pub bit: Option<u8>,
}

/// One piece of sense data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sense {
    /// What class of trouble.
    pub key: SenseKey,
    /// What exactly.
    pub code: AdditionalSense,
    /// INFORMATION: usually the LBA concerned, for MISCOMPARE the byte offset.
    pub information: Option<u64>,
    /// COMMAND-SPECIFIC INFORMATION.
    pub command_specific: Option<u64>,
    /// SENSE KEY SPECIFIC.
    pub specific: Specific,
    /// The error is reported by a command after the one that met it (response code 71h or 73h).
    pub deferred: bool,
}

impl Sense {
    /// Nothing to report.
    pub const NONE: Self = Self::new(SenseKey::NoSense, AdditionalSense::NONE);

    /// A key and a code, nothing more.
    #[must_use]
    pub const fn new(key: SenseKey, code: AdditionalSense) -> Self {
        Self {
            key,
            code,
            information: None,
            command_specific: None,
            specific: Specific::None,
            deferred: false,
        }
    }

    /// ILLEGAL REQUEST with `code`.
    #[must_use]
    pub const fn illegal_request(code: AdditionalSense) -> Self {
        Self::new(SenseKey::IllegalRequest, code)
    }

    /// INVALID FIELD IN CDB; `bit` is the field's most significant bit where it is not whole bytes.
    #[must_use]
    pub const fn invalid_field_in_cdb(byte: u16, bit: Option<u8>) -> Self {
        let field = FieldPointer {
            in_cdb: true,
            byte,
            bit,
        };
        Self::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB).with_field(field)
    }

    /// The parameter list has a wrong value at this byte, and bit (ILLEGAL REQUEST, 26h/00h).
    #[must_use]
    pub const fn invalid_field_in_parameter_list(byte: u16, bit: Option<u8>) -> Self {
        let field = FieldPointer {
            in_cdb: false,
            byte,
            bit,
        };
        Self::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST).with_field(field)
    }

    /// The parameter list is shorter than its fields say (ILLEGAL REQUEST, 1Ah/00h).
    #[must_use]
    pub const fn parameter_list_length_error() -> Self {
        Self::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR)
    }

    /// The range of blocks is not wholly on the medium; `lba` is the first block of the command
    /// that is not, reported as INFORMATION.
    #[must_use]
    pub const fn lba_out_of_range(lba: u64) -> Self {
        Self::illegal_request(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE)
            .with_information(lba)
    }

    /// MISCOMPARE at byte `offset` of the data-out buffer.
    ///
    /// spec: SBC-3 5.2 "COMPARE AND WRITE command": the INFORMATION field holds the offset of the
    /// first byte that differs.
    #[must_use]
    pub const fn miscompare(offset: u64) -> Self {
        Self::new(
            SenseKey::Miscompare,
            AdditionalSense::MISCOMPARE_DURING_VERIFY_OPERATION,
        )
        .with_information(offset)
    }

    /// The same with INFORMATION.
    #[must_use]
    pub const fn with_information(mut self, information: u64) -> Self {
        self.information = Some(information);
        self
    }

    /// The same with COMMAND-SPECIFIC INFORMATION.
    #[must_use]
    pub const fn with_command_specific(mut self, information: u64) -> Self {
        self.command_specific = Some(information);
        self
    }

    /// The same with a field pointer.
    #[must_use]
    pub const fn with_field(mut self, field: FieldPointer) -> Self {
        self.specific = Specific::Field(field);
        self
    }

    /// The same with a progress indication.
    #[must_use]
    pub const fn with_progress(mut self, progress: u16) -> Self {
        self.specific = Specific::Progress(progress);
        self
    }
}
