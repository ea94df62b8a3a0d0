//! How a task ends, and which sense data an operating error becomes.

use crate::latency_trace::LatencyTrace;
use scsi::{AdditionalSense, Sense, SenseKey, Status};
use units::Buf;
use volume::IoError;

/// What the front does with a task that has ended.
#[derive(Debug)]
pub enum Outcome {
    /// Answer the host.
    Respond(Response),
    /// Say nothing: the task was aborted.
    Silent,
    /// Drop the connection and say nothing: the right to serve was lost (field lesson: an error
    /// status would make hosts give up the device).
    Disconnect,
}

/// A status with what comes along.
#[derive(Debug)]
pub struct Response {
    /// The SCSI status.
    pub status: Status,
    /// Sense data, encoded as the control mode page asks for.
    pub sense: Option<Buf>,
    /// Data-In, already cut to the allocation length.
    pub data_in: Buf,
    /// How long it took so far, where that is reported.
    pub latency_trace: Option<LatencyTrace>,
}

impl Response {
    /// GOOD, with `data_in`.
    #[must_use]
    pub fn good(data_in: Buf) -> Self {
        Self {
            status: Status::Good,
            sense: None,
            data_in,
            latency_trace: None,
        }
    }

    /// TASK ABORTED (SAM-5 5.3.1 "Status codes").
    pub(crate) fn task_aborted() -> Self {
        Self {
            status: Status::TaskAborted,
            sense: None,
            data_in: Buf::empty(),
            latency_trace: None,
        }
    }
}

/// Why a command does not end with GOOD.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// CHECK CONDITION with this sense data.
    Sense(Sense),
    /// Another status, without sense data.
    Status(Status),
    /// It was aborted.
    Aborted,
    /// The right to write was lost.
    Fenced,
}

impl From<Sense> for Refusal {
    fn from(sense: Sense) -> Self {
        Self::Sense(sense)
    }
}

impl Refusal {
    /// The unit's backing cannot be reached.
    pub(crate) fn offline() -> Self {
        Sense::new(
            SenseKey::NotReady,
            AdditionalSense::LOGICAL_UNIT_NOT_READY_MANUAL_INTERVENTION_REQUIRED,
        )
        .into()
    }

    /// The nexus, or the medium, may not be written.
    pub(crate) fn write_protected() -> Self {
        Sense::new(SenseKey::DataProtect, AdditionalSense::WRITE_PROTECTED).into()
    }

    /// What an operating error of the volume becomes.
    ///
    /// | `IoError` | answer |
    /// |---|---|
    /// | MediumError, Integrity, of a read | MEDIUM ERROR, UNRECOVERED READ ERROR, its LBA |
    /// | MediumError, Integrity, of a write | MEDIUM ERROR, WRITE ERROR, INFORMATION = LBA |
    /// | Miscompare | MISCOMPARE DURING VERIFY OPERATION, INFORMATION = byte offset |
    /// | SpaceExhausted | DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT (SBC-3 4.7.3.6) |
    /// | WriteProtected | DATA PROTECT, WRITE PROTECTED |
    /// | Unavailable | NOT READY, the host looks for another path |
    /// | TimedOut | ABORTED COMMAND, COMMAND TIMEOUT DURING PROCESSING: the host repeats |
    /// | Aborted | no answer |
    /// | Fenced | the connection is dropped |
    /// | Transition, Busy | BUSY: the host repeats |
    pub(crate) fn of(error: IoError, writes: bool) -> Self {
        let medium = if writes {
            AdditionalSense::WRITE_ERROR
        } else {
            AdditionalSense::UNRECOVERED_READ_ERROR
        };
        match error {
            IoError::MediumError { lba } | IoError::Integrity { lba } => {
                Sense::new(SenseKey::MediumError, medium)
                    .with_information(lba.0)
                    .into()
            }
            IoError::Miscompare { at } => Sense::miscompare(at.0).into(),
            IoError::SpaceExhausted => Sense::new(
                SenseKey::DataProtect,
                AdditionalSense::SPACE_ALLOCATION_FAILED_WRITE_PROTECT,
            )
            .into(),
            IoError::WriteProtected => Self::write_protected(),
            IoError::Unavailable => Sense::new(
                SenseKey::NotReady,
                AdditionalSense::LOGICAL_UNIT_NOT_READY_CAUSE_NOT_REPORTABLE,
            )
            .into(),
            IoError::TimedOut => Sense::new(
                SenseKey::AbortedCommand,
                AdditionalSense::COMMAND_TIMEOUT_DURING_PROCESSING,
            )
            .into(),
            IoError::Aborted => Self::Aborted,
            IoError::Fenced => Self::Fenced,
            IoError::Transition | IoError::Busy => Self::Status(Status::Busy),
        }
    }
}
