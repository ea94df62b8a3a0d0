//! What an initiator connection is asked, and what it reports to its owner.

use crate::bhs::{Attribute, Bhs};
use crate::chap::{CHALLENGE_BYTES, ChapAlgorithm, Secret};
use crate::connection::CloseReason;
use crate::data_sequence::Residual;
use crate::extension_keys::nic::NicRecord;
use crate::ids::{Cid, Isid, Itt, Lun, Tsih};
use crate::login_status::LoginStatus;
use crate::parameters::{Offer, Parameters};
use core::time::Duration;
use units::Buf;

/// How to log in.
#[derive(Clone, Debug)]
pub struct InitiatorConfig {
    /// Our name.
    pub initiator_name: String,
    /// Our alias.
    pub initiator_alias: Option<String>,
    /// Target of a normal session; `None` for a discovery session.
    pub target_name: Option<String>,
    /// Our part of the session identifier.
    pub isid: Isid,
    /// Connection identifier.
    pub cid: Cid,
    /// Credentials; `None` offers no authentication.
    pub chap: Option<InitiatorChap>,
    /// What we offer.
    pub offer: Offer,
    /// What a target of ours hears of the NIC that the session goes through.
    pub nic: Option<NicRecord>,
    /// A login that takes longer has failed.
    pub login_timeout: Duration,
    /// Silence after which the target is pinged; `None`: never.
    pub ping_after: Option<Duration>,
    /// Silence after a ping that ends the connection.
    pub ping_timeout: Duration,
}

impl InitiatorConfig {
    /// A login of `initiator_name` to `target_name` (or for discovery) with usual limits.
    #[must_use]
    pub fn new(initiator_name: &str, target_name: Option<&str>, isid: Isid) -> Self {
        Self {
            initiator_name: initiator_name.into(),
            initiator_alias: None,
            target_name: target_name.map(Into::into),
            isid,
            cid: Cid(0),
            chap: None,
            offer: Offer::default(),
            nic: None,
            login_timeout: Duration::from_secs(15),
            ping_after: Some(Duration::from_secs(5)),
            ping_timeout: Duration::from_secs(5),
        }
    }
}

/// Credentials of an initiator.
#[derive(Clone, Debug)]
pub struct InitiatorChap {
    /// Algorithms, best first.
    pub algorithms: Vec<ChapAlgorithm>,
    /// Our name.
    pub user: String,
    /// Our secret.
    pub secret: Secret,
    /// What the target must prove; then a target that skips authentication is refused.
    pub target: Option<TargetProof>,
}

/// What a target must prove.
#[derive(Clone, Debug)]
pub struct TargetProof {
    /// Name that it must give; `None`: any.
    pub user: Option<String>,
    /// Shared with the target alone: the two directions of CHAP must differ (RFC 7143 12.1.3).
    pub secret: Secret,
    /// Fresh randomness for our challenge.
    pub challenge: [u8; CHALLENGE_BYTES],
    /// Fresh randomness for our identifier.
    pub identifier: u8,
}

/// A SCSI command. What it writes and where it reads to go along with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitiatorCommand {
    /// Logical unit.
    pub lun: Lun,
    /// CDB, up to 16 bytes.
    pub cdb: [u8; 16],
    /// Task attribute.
    pub attribute: Attribute,
    /// Deliver at once, outside CmdSN order.
    pub immediate: bool,
}

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Completion {
    /// SCSI status.
    pub status: u8,
    /// The target failed; `status` means nothing.
    pub target_failure: bool,
    /// Sense data; mostly empty.
    pub sense: Buf,
    /// What was read: only bytes that have come, without a hole.
    pub data_in: Buf,
    /// As the target reports it.
    pub residual: Residual,
}

/// Something that the owner of an initiator connection must know.
#[derive(Debug)]
pub enum InitiatorEvent {
    /// The session is there.
    LoggedIn {
        /// Its handle.
        tsih: Tsih,
        /// Values in force.
        parameters: Box<Parameters>,
        /// TargetPortalGroupTag, if reported.
        portal_group_tag: Option<u16>,
    },
    /// No session; the connection is closing.
    LoginFailed {
        /// Status of the target, if it sent one.
        status: Option<LoginStatus>,
        /// What went wrong.
        reason: String,
        /// TargetAddress of a redirection.
        redirect: Option<String>,
    },
    /// A command has ended.
    Response {
        /// Task.
        itt: Itt,
        /// How.
        completion: Completion,
    },
    /// A task management function was answered.
    TaskManagement {
        /// Exchange.
        itt: Itt,
        /// Response code (RFC 7143 11.6.1).
        response: u8,
    },
    /// A ping of the owner was answered.
    Pong {
        /// Exchange.
        itt: Itt,
    },
    /// The answer to a Text exchange, whole.
    Text {
        /// Exchange.
        itt: Itt,
        /// Pairs; see [`crate::discovery::decode`].
        text: Vec<u8>,
    },
    /// Logout was answered; the connection is closing.
    LoggedOut {
        /// Response code (RFC 7143 11.15.1).
        response: u8,
    },
    /// The target rejected a PDU of ours.
    Rejected {
        /// Reason code (RFC 7143 11.17.1).
        reason: u8,
        /// Header of that PDU, if the target sent it back.
        header: Option<Bhs>,
    },
    /// Asynchronous message (RFC 7143 11.9.1).
    Async {
        /// InitiatorEvent code.
        event: u8,
        /// First, second, third parameter.
        parameters: [u16; 3],
    },
    /// The connection is over; tasks that have not ended are lost. No event follows.
    Closed(CloseReason),
}
