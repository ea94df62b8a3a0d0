//! What a target connection reports to its owner, and what the owner answers.

use crate::bhs::Attribute;
use crate::connection::CloseReason;
use crate::extension_keys::nic::NicRecord;
use crate::ids::{Cid, Isid, Itt, Lun, Tsih};
use crate::login_status::LoginStatus;
use crate::parameters::Parameters;
use crate::serial::CmdSn;
use crate::violation::{DataFault, RejectReason, Violation};
use units::Buf;

/// Session type (RFC 7143 13.21 "SessionType").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionType {
    /// SendTargets only.
    Discovery,
    /// SCSI.
    Normal,
}

/// Something that the owner of a target connection must know or answer.
#[derive(Debug)]
pub enum TargetEvent {
    /// Authentication and negotiation are done; the last Login Response waits for
    /// [`complete_login`](super::TargetConnection::complete_login) or
    /// [`refuse_login`](super::TargetConnection::refuse_login), so that session limits and
    /// reinstatement (which must end the old session first) can take their time.
    LoginReady(Box<LoginOutcome>),
    /// The login was refused, and this was answered. The connection is closing.
    LoginRefused {
        /// What the initiator was answered.
        status: LoginStatus,
        /// Why, for log and `session` output.
        reason: String,
        /// Name that the initiator gave, if it came that far.
        initiator_name: Option<String>,
        /// Target that it asked for.
        target_name: Option<String>,
    },
    /// A SCSI command, in CmdSN order, before its data. Answer with
    /// [`respond`](super::TargetConnection::respond) or first
    /// [`accept_data`](super::TargetConnection::accept_data).
    Command(TargetCommand),
    /// All data that was asked for by `accept_data` is here.
    DataOut {
        /// Task.
        itt: Itt,
        /// Exactly the accepted bytes.
        data: Buf,
    },
    /// The data of a write cannot be had. The task waits for `respond` with CHECK CONDITION,
    /// ABORTED COMMAND and [`DataFault::additional_sense`].
    DataFault {
        /// Task.
        itt: Itt,
        /// Why.
        fault: DataFault,
    },
    /// A task management function; answer with
    /// [`task_management_response`](super::TargetConnection::task_management_response).
    TaskManagement(TaskManagement),
    /// SendTargets; answer with
    /// [`send_targets_response`](super::TargetConnection::send_targets_response).
    SendTargets {
        /// Text exchange.
        itt: Itt,
        /// What was asked for.
        scope: SendTargets,
    },
    /// Another session of this initiator with this target is to end for good
    /// ([`crate::extension_keys::FENCE`]); answer with
    /// [`fence_response`](super::TargetConnection::fence_response).
    Fence {
        /// Text exchange.
        itt: Itt,
        /// Its ISID.
        isid: Isid,
        /// Its handle.
        tsih: Tsih,
    },
    /// What stands behind the portals ([`crate::extension_keys::port`]); answer with
    /// [`ports_response`](super::TargetConnection::ports_response).
    Ports {
        /// Text exchange.
        itt: Itt,
    },
    /// Logout; answer with [`logout_response`](super::TargetConnection::logout_response) when the
    /// tasks that it ends have ended.
    Logout {
        /// Exchange.
        itt: Itt,
        /// What is to be closed.
        reason: LogoutReason,
    },
    /// A PDU of the initiator was answered with Reject. For logs and counters only.
    Rejected {
        /// Reason that was sent.
        reason: RejectReason,
        /// What was wrong.
        violation: Violation,
    },
    /// The parameters of the connection changed by a Text exchange (MaxRecvDataSegmentLength).
    ParametersChanged,
    /// The connection is over; send what [`transmit`](super::TargetConnection::transmit) still has,
    /// then close the socket. No event follows. Every task of it is gone.
    Closed(CloseReason),
}

/// A SCSI command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetCommand {
    /// Names the task until its response.
    pub itt: Itt,
    /// Logical unit.
    pub lun: Lun,
    /// First 16 bytes of the CDB.
    pub cdb: [u8; 16],
    /// The rest of a longer CDB (from the additional header segment); mostly `None`.
    pub cdb_extension: Option<Box<[u8]>>,
    /// Task attribute.
    pub attribute: Attribute,
    /// R: the initiator expects data.
    pub reads: bool,
    /// W: the initiator has data.
    pub writes: bool,
    /// Bytes that the initiator expects to move (for a bidirectional command: to write).
    pub expected_data_transfer_length: u32,
    /// Bytes that it expects to read, for a bidirectional command.
    pub bidirectional_read_length: Option<u32>,
    /// Delivered at once, outside CmdSN order.
    pub immediate: bool,
    /// Number of the command.
    pub cmd_sn: CmdSn,
}

/// The end of a task.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// SCSI status.
    pub status: u8,
    /// Sense data, with CHECK CONDITION.
    pub sense: Option<Buf>,
    /// What the command read. More than the initiator expects is cut here, and reported as
    /// overflow.
    pub data_in: Buf,
    /// Bytes of data-out that the command wanted (its transfer length), whether they were had or
    /// not. The residual of a write is computed from it: field lesson 33.
    pub data_out_wanted: u64,
    /// iSCSI response: target failure instead of "completed at target". `status` is then not read.
    pub target_failure: bool,
}

/// A task management request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskManagement {
    /// Names the exchange.
    pub itt: Itt,
    /// What shall be done to which tasks (RFC 7143 11.5).
    pub function: TaskFunction,
    /// Logical unit, for the functions that have one.
    pub lun: Lun,
    /// Number of the request: a function that names several tasks means those whose `cmd_sn`
    /// precedes it.
    pub cmd_sn: CmdSn,
    /// Delivered at once.
    pub immediate: bool,
    /// For ABORT TASK: what the referenced task is.
    pub referenced: ReferencedTask,
}

/// Function of a task management request (RFC 7143 11.5.1 "Function").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskFunction {
    /// ABORT TASK.
    AbortTask,
    /// ABORT TASK SET.
    AbortTaskSet,
    /// CLEAR ACA.
    ClearAca,
    /// CLEAR TASK SET.
    ClearTaskSet,
    /// LOGICAL UNIT RESET.
    LogicalUnitReset,
    /// TARGET WARM RESET.
    TargetWarmReset,
    /// TARGET COLD RESET.
    TargetColdReset,
    /// TASK REASSIGN (not with ErrorRecoveryLevel 0).
    TaskReassign,
    /// A code of a later standard.
    Other(u8),
}

impl TaskFunction {
    /// The function of this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::AbortTask,
            2 => Self::AbortTaskSet,
            3 => Self::ClearAca,
            4 => Self::ClearTaskSet,
            5 => Self::LogicalUnitReset,
            6 => Self::TargetWarmReset,
            7 => Self::TargetColdReset,
            8 => Self::TaskReassign,
            code => Self::Other(code),
        }
    }

    /// The code of this function.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::AbortTask => 1,
            Self::AbortTaskSet => 2,
            Self::ClearAca => 3,
            Self::ClearTaskSet => 4,
            Self::LogicalUnitReset => 5,
            Self::TargetWarmReset => 6,
            Self::TargetColdReset => 7,
            Self::TaskReassign => 8,
            Self::Other(code) => code,
        }
    }
}

/// The task that ABORT TASK names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReferencedTask {
    /// The function names no single task.
    None,
    /// This task is here. End it with `forget`, then answer "function complete".
    Here(Itt),
    /// It has not arrived, but its CmdSN is in the window and before the request: it counts as
    /// received now and will never run. Answer "function complete".
    NeverArrived,
    /// There is no such task, and its number is not to come. Answer "task does not exist", or
    /// "function complete" where it was ended without an answer.
    Unknown(Option<Itt>),
}

/// Answer to a task management request (RFC 7143 11.6.1 "Response").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskManagementAnswer {
    /// Function complete.
    Complete = 0,
    /// Task does not exist.
    NoTask = 1,
    /// LUN does not exist.
    NoLun = 2,
    /// Task still allegiant.
    StillAllegiant = 3,
    /// Task allegiance reassignment not supported.
    ReassignNotSupported = 4,
    /// Task management function not supported.
    NotSupported = 5,
    /// Function authorization failed.
    NotAuthorized = 6,
    /// Function rejected.
    Rejected = 255,
}

/// What a Logout wants closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogoutReason {
    /// The session.
    Session,
    /// This connection; with one connection a session that is the same.
    Connection,
}

/// Answer to a Logout (RFC 7143 11.15.1 "Response").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum LogoutAnswer {
    /// Connection or session closed.
    Closed = 0,
    /// CID not found.
    CidNotFound = 1,
    /// Connection recovery is not supported.
    RecoveryNotSupported = 2,
    /// Cleanup failed.
    CleanupFailed = 3,
}

/// What SendTargets asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SendTargets {
    /// `All`: every target that this initiator may know (discovery sessions).
    All,
    /// One target, by name; in a normal session only its own.
    One(String),
}

/// What a login settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoginOutcome {
    /// The iSCSI name that it proved, or only claimed where no proof was asked for.
    pub initiator_name: String,
    /// Its alias, if it gave one.
    pub initiator_alias: Option<String>,
    /// Discovery or normal.
    pub session_type: SessionType,
    /// Target, in a normal session.
    pub target_name: Option<String>,
    /// Initiator part of the session identifier.
    pub isid: Isid,
    /// Session that the initiator wants to continue; 0 for a new one (which reinstates an old
    /// session of the same initiator name, ISID and portal group).
    pub tsih: Tsih,
    /// Connection.
    pub cid: Cid,
    /// Name by which the initiator was authenticated; `None` if authentication was not required.
    pub chap_user: Option<String>,
    /// We proved ourselves as well.
    pub mutual: bool,
    /// Values in force.
    pub parameters: Parameters,
    /// What the initiator reported of its NIC, where it is one of ours.
    pub nic: Option<Box<NicRecord>>,
}

/// An event of the target that the initiator is informed of (RFC 7143 11.9.1 "AsyncEvent").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsyncEvent {
    /// 1: log out within `seconds`.
    LogoutRequested {
        /// Seconds until we drop the connection.
        seconds: u16,
    },
    /// 2: the connection is about to be dropped.
    ConnectionDropped {
        /// Which connection.
        cid: Cid,
        /// Seconds to wait before reconnecting.
        time2wait: u16,
        /// Seconds that tasks are kept.
        time2retain: u16,
    },
    /// 3: all connections of the session are about to be dropped.
    SessionDropped {
        /// Seconds to wait before reconnecting.
        time2wait: u16,
        /// Seconds that tasks are kept.
        time2retain: u16,
    },
    /// 4: negotiate parameters again by Text.
    NegotiationRequested {
        /// Seconds within which to start.
        seconds: u16,
    },
}
