//! Command descriptor blocks: bytes in, one typed [`Command`] or the exact reason out.
//!
//! **Contract.** [`Command::parse`] finds the row of the [operation code table](crate::opcode) and
//! lets its family file decode the fields. What depends on the logical unit (capacity,
//! provisioning, limits) is not decided here but by [`crate::admission`].
//!
//! **Reserved bits** are ignored, as SPC-4 3.5.1 "Reserved keyword" permits, save those whose
//! meaning in a later standard changes what is written: protection fields, BYTCHK, LBDATA and
//! PBDATA.
//!
//! Spec: SPC-4 4.2 "Command descriptor block", SBC-3 5 "Commands for direct access block devices".

mod block;
mod copy;
mod inquiry;
mod mode;
mod raw;
mod read_write;
mod report;
mod reservation;
#[cfg(test)]
mod test;
mod transfer;
mod unit;
mod verify;
mod write;
mod write_same;

pub use block::BlockRange;
pub use copy::CopyResults;
pub use mode::{LogSense, ModeForm, ModeSelect, ModeSense, PageControl};
pub use report::{ReportLunsSelect, ReportedCommands};
pub use reservation::{PrInAction, PrOut, PrOutAction};
pub use transfer::{Access, Transfer};
pub use unit::{DefectList, StartStop};
pub use verify::ByteCheck;
pub use write_same::WriteSame;

pub(crate) use copy::{extended_copy, receive_copy_results};
pub(crate) use inquiry::{inquiry, request_sense};
pub(crate) use mode::{log_sense, mode_select_6, mode_select_10, mode_sense_6, mode_sense_10};
pub(crate) use read_write::{
    compare_and_write, or_write, read_6, read_10, read_12, read_16, write_6, write_10, write_12,
    write_16, write_atomic_16,
};
pub(crate) use report::{
    report_luns, report_supported_operation_codes, report_supported_task_management_functions,
    report_target_port_groups,
};
pub(crate) use reservation::{
    persistent_reserve_in, persistent_reserve_out, release_6, release_10, reserve_6, reserve_10,
};
pub(crate) use unit::{
    get_lba_status, pre_fetch_10, pre_fetch_16, prevent_allow_medium_removal, read_capacity_10,
    read_capacity_16, read_defect_data_10, read_defect_data_12, receive_diagnostic_results,
    send_diagnostic, start_stop_unit, synchronize_cache_10, synchronize_cache_16, test_unit_ready,
    unmap,
};
pub(crate) use verify::{
    verify_10, verify_12, verify_16, write_and_verify_10, write_and_verify_12, write_and_verify_16,
};
pub(crate) use write_same::{write_same_10, write_same_16};

use crate::sense::{AdditionalSense, FieldPointer, Sense};

/// Why a CDB is not a command that we have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CdbError {
    /// No such operation code.
    InvalidOperationCode,
    /// A field has a value that we do not support.
    InvalidField(FieldPointer),
    /// The CDB is shorter than its operation code says.
    Truncated,
}

impl CdbError {
    /// The sense data to answer with CHECK CONDITION.
    #[must_use]
    pub const fn sense(self) -> Sense {
        match self {
            Self::InvalidOperationCode => {
                Sense::illegal_request(AdditionalSense::INVALID_COMMAND_OPERATION_CODE)
            }
            Self::InvalidField(field) => {
                Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB).with_field(field)
            }
            Self::Truncated => Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB),
        }
    }

    /// The field that starts at bit `bit` of byte `byte`.
    #[must_use]
    pub const fn field(byte: u16, bit: u8) -> Self {
        Self::InvalidField(FieldPointer {
            in_cdb: true,
            byte,
            bit: Some(bit),
        })
    }

    /// A field of whole bytes that starts at byte `byte`.
    #[must_use]
    pub const fn bytes(byte: u16) -> Self {
        Self::InvalidField(FieldPointer {
            in_cdb: true,
            byte,
            bit: None,
        })
    }
}

/// Every command that a logical unit of ours has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// TEST UNIT READY.
    TestUnitReady,
    /// REQUEST SENSE.
    RequestSense {
        /// DESC: answer in the descriptor format.
        descriptor: bool,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u8,
    },
    /// INQUIRY.
    Inquiry {
        /// The vital product data page asked for; standard INQUIRY data if absent (EVPD is zero).
        page: Option<u8>,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u16,
    },
    /// REPORT LUNS.
    ReportLuns {
        /// SELECT REPORT.
        select: ReportLunsSelect,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u32,
    },
    /// READ (6), (10), (12), (16).
    Read(BlockRange),
    /// WRITE (6), (10), (12), (16).
    Write(BlockRange),
    /// WRITE ATOMIC (16).
    WriteAtomic {
        /// The blocks.
        range: BlockRange,
        /// ATOMIC BOUNDARY in blocks; zero for none.
        boundary: u16,
    },
    /// WRITE AND VERIFY (10), (12), (16).
    WriteAndVerify {
        /// The blocks.
        range: BlockRange,
        /// What to compare after writing.
        check: ByteCheck,
    },
    /// VERIFY (10), (12), (16).
    Verify {
        /// The blocks; none is legal and verifies nothing.
        range: BlockRange,
        /// What to compare with.
        check: ByteCheck,
    },
    /// WRITE SAME (10), (16).
    WriteSame(WriteSame),
    /// ORWRITE (16): read, or with the data, write, atomically.
    OrWrite(BlockRange),
    /// COMPARE AND WRITE.
    CompareAndWrite(BlockRange),
    /// UNMAP.
    Unmap {
        /// ANCHOR: the blocks become anchored, not deallocated.
        anchor: bool,
        /// PARAMETER LIST LENGTH in bytes.
        parameter_list_length: u16,
    },
    /// SYNCHRONIZE CACHE (10), (16). Zero blocks mean all from the LBA on.
    SynchronizeCache {
        /// The blocks.
        range: BlockRange,
        /// IMMED: answer before it is done.
        immediate: bool,
    },
    /// PRE-FETCH (10), (16). Zero blocks mean all from the LBA on.
    PreFetch {
        /// The blocks.
        range: BlockRange,
        /// IMMED: answer before it is done.
        immediate: bool,
    },
    /// GET LBA STATUS (16).
    GetLbaStatus {
        /// STARTING LOGICAL BLOCK ADDRESS.
        starting_lba: u64,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u32,
    },
    /// READ CAPACITY (10).
    ReadCapacity10,
    /// READ CAPACITY (16).
    ReadCapacity16 {
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u32,
    },
    /// READ DEFECT DATA (10).
    ReadDefectData10(DefectList),
    /// READ DEFECT DATA (12).
    ReadDefectData12(DefectList),
    /// EXTENDED COPY (LID1).
    ExtendedCopy {
        /// PARAMETER LIST LENGTH in bytes.
        parameter_list_length: u32,
    },
    /// RECEIVE COPY RESULTS.
    ReceiveCopyResults {
        /// Which of the four.
        action: CopyResults,
        /// LIST IDENTIFIER.
        list_identifier: u8,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u32,
    },
    /// MODE SENSE (6), (10).
    ModeSense(ModeSense),
    /// MODE SELECT (6), (10).
    ModeSelect(ModeSelect),
    /// LOG SENSE.
    LogSense(LogSense),
    /// REPORT SUPPORTED OPERATION CODES.
    ReportSupportedOperationCodes {
        /// Which ones.
        which: ReportedCommands,
        /// RCTD: with command timeouts descriptors.
        timeouts: bool,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u32,
    },
    /// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS.
    ReportSupportedTaskManagementFunctions {
        /// REPD: the extended parameter data.
        extended: bool,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u32,
    },
    /// REPORT TARGET PORT GROUPS.
    ReportTargetPortGroups {
        /// The extended header format.
        extended: bool,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u32,
    },
    /// START STOP UNIT.
    StartStopUnit(StartStop),
    /// PREVENT ALLOW MEDIUM REMOVAL.
    PreventAllowMediumRemoval {
        /// PREVENT is not zero.
        prevent: bool,
    },
    /// RECEIVE DIAGNOSTIC RESULTS.
    ReceiveDiagnosticResults {
        /// PAGE CODE, where PCV says that it counts.
        page: Option<u8>,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u16,
    },
    /// SEND DIAGNOSTIC.
    SendDiagnostic {
        /// SELFTEST: the default self-test.
        self_test: bool,
        /// PARAMETER LIST LENGTH in bytes; only zero gets here.
        parameter_list_length: u16,
    },
    /// PERSISTENT RESERVE IN.
    PersistentReserveIn {
        /// What to report.
        action: PrInAction,
        /// ALLOCATION LENGTH in bytes.
        allocation_length: u16,
    },
    /// PERSISTENT RESERVE OUT.
    PersistentReserveOut(PrOut),
    /// RESERVE (6), (10) of SPC-2.
    Reserve,
    /// RELEASE (6), (10) of SPC-2.
    Release,
}
