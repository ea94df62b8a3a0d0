//! What a peer did wrong, and the one table that says how we answer.
//!
//! Parsers return a [`Violation`]; they never decide what happens next. [`ViolationKind::reaction`]
//! does.
//!
//! Spec: RFC 7143 7.6 "Format Errors", 7.7 "Digest Errors", 7.8 "Sequence Errors", 7.9 "Message
//! Error Checking", 11.17 "Reject".

use core::fmt;

/// A breach of the protocol by the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// What kind of breach; decides the reaction.
    pub kind: ViolationKind,
    /// Clause of the standard that was broken.
    pub clause: &'static str,
    /// What exactly was wrong, for people.
    pub what: &'static str,
}

impl Violation {
    /// A breach of `clause`.
    #[must_use]
    pub const fn new(kind: ViolationKind, clause: &'static str, what: &'static str) -> Self {
        Self { kind, clause, what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (RFC 7143 {})", self.what, self.clause)
    }
}

/// Kinds of breach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViolationKind {
    /// The header does not match its digest: nothing in it can be believed, not even its length.
    HeaderDigest,
    /// The data segment of a PDU that is not Data-Out or a command does not match its digest.
    DataDigest,
    /// The payload of a Data-Out or of a command's immediate data does not match its digest.
    PayloadDigest,
    /// A data segment longer than we said we take.
    DataSegmentTooLong,
    /// An opcode that does not exist or that this side never receives.
    UnknownOpcode,
    /// A header field has a value that it may not have.
    InvalidField,
    /// A PDU that this phase of the connection does not allow.
    WrongPhase,
    /// Text that is not key=value pairs, or more of it than we hold.
    BadText,
    /// An initiator task tag that is still in use.
    TaskTagInUse,
    /// More immediate commands than we hold at once.
    TooManyImmediate,
    /// SNACK, which ErrorRecoveryLevel 0 does not have.
    SnackNotSupported,
    /// A command after Logout.
    WaitingForLogout,
    /// Unsolicited data where none was negotiated, or more than FirstBurstLength.
    UnexpectedUnsolicitedData,
    /// Data of the wrong amount, offset or number.
    IncorrectAmountOfData,
    /// The peer did not answer in time.
    TimedOut,
}

/// The answer to a breach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaction {
    /// Send a Reject PDU with this reason, discard the PDU and go on.
    Reject(RejectReason),
    /// The task that the data belongs to ends with CHECK CONDITION; the caller gets the cause. A
    /// digest error is answered with a Reject as well.
    EndTask(DataFault),
    /// Close the connection: with ErrorRecoveryLevel 0 the initiator makes a new session.
    Drop,
}

/// Reason codes of the Reject PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RejectReason {
    /// Data (payload) digest error.
    DataDigestError = 0x02,
    /// SNACK reject.
    SnackReject = 0x03,
    /// Protocol error.
    ProtocolError = 0x04,
    /// Command not supported.
    CommandNotSupported = 0x05,
    /// Immediate command reject: too many immediate commands.
    TooManyImmediateCommands = 0x06,
    /// Task in progress.
    TaskInProgress = 0x07,
    /// Invalid data ack.
    InvalidDataAck = 0x08,
    /// Invalid PDU field.
    InvalidPduField = 0x09,
    /// Long operation reject: can't generate Target Transfer Tag, out of resources.
    OutOfResources = 0x0A,
    /// Waiting for logout.
    WaitingForLogout = 0x0C,
}

impl RejectReason {
    /// The reason with this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0x02 => Self::DataDigestError,
            0x03 => Self::SnackReject,
            0x04 => Self::ProtocolError,
            0x05 => Self::CommandNotSupported,
            0x06 => Self::TooManyImmediateCommands,
            0x07 => Self::TaskInProgress,
            0x08 => Self::InvalidDataAck,
            0x09 => Self::InvalidPduField,
            0x0A => Self::OutOfResources,
            0x0C => Self::WaitingForLogout,
            _ => return None,
        })
    }
}

/// Why the data of a write cannot be had. The target answers CHECK CONDITION, ABORTED COMMAND with
/// the additional sense named here (RFC 7143 11.4.7.2 "Sense Data").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataFault {
    /// 0Ch/0Ch WRITE ERROR - UNEXPECTED UNSOLICITED DATA.
    UnexpectedUnsolicitedData,
    /// 0Ch/0Dh WRITE ERROR - NOT ENOUGH UNSOLICITED DATA ("incorrect amount of data").
    IncorrectAmountOfData,
    /// 47h/05h PROTOCOL SERVICE CRC ERROR.
    ProtocolServiceCrcError,
    /// 4Bh/06h INITIATOR RESPONSE TIMEOUT: it did not come in the time that it has.
    TimedOut,
    /// Unsolicited data came while too much of it was parked already. No fault of the initiator:
    /// the answer is TASK SET FULL or BUSY, without sense data.
    NoRoom,
}

impl DataFault {
    /// Additional sense code and its qualifier; none where it is no error.
    #[must_use]
    pub const fn additional_sense(self) -> Option<(u8, u8)> {
        match self {
            Self::UnexpectedUnsolicitedData => Some((0x0C, 0x0C)),
            Self::IncorrectAmountOfData => Some((0x0C, 0x0D)),
            Self::ProtocolServiceCrcError => Some((0x47, 0x05)),
            Self::TimedOut => Some((0x4B, 0x06)),
            Self::NoRoom => None,
        }
    }
}

impl ViolationKind {
    /// The one table of reactions in full feature phase (before it, every breach ends the login).
    #[must_use]
    pub const fn reaction(self) -> Reaction {
        match self {
            Self::HeaderDigest | Self::DataSegmentTooLong | Self::TimedOut => Reaction::Drop,
            Self::DataDigest => Reaction::Reject(RejectReason::DataDigestError),
            Self::PayloadDigest => Reaction::EndTask(DataFault::ProtocolServiceCrcError),
            Self::UnknownOpcode => Reaction::Reject(RejectReason::CommandNotSupported),
            Self::InvalidField => Reaction::Reject(RejectReason::InvalidPduField),
            Self::WrongPhase | Self::BadText => Reaction::Reject(RejectReason::ProtocolError),
            Self::TaskTagInUse => Reaction::Reject(RejectReason::TaskInProgress),
            Self::TooManyImmediate => Reaction::Reject(RejectReason::TooManyImmediateCommands),
            Self::SnackNotSupported => Reaction::Reject(RejectReason::SnackReject),
            Self::WaitingForLogout => Reaction::Reject(RejectReason::WaitingForLogout),
            Self::UnexpectedUnsolicitedData => {
                Reaction::EndTask(DataFault::UnexpectedUnsolicitedData)
            }
            Self::IncorrectAmountOfData => Reaction::EndTask(DataFault::IncorrectAmountOfData),
        }
    }
}
