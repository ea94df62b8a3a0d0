//! How a node is, as its data plane reports it: the figures behind the API's answers, `status` and
//! the metrics.

use crate::code::Code;
use crate::disks::DiskVerdict;
use crate::forecast::ForecastFacts;
use crate::journal::JournalFacts;
use crate::latency::{Latency, Stages};
use crate::objects::LayerFacts;
use crate::plan::SessionBrief;
use crate::scrub::ScrubFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Whether a LUN serves.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum LunState {
    /// It serves.
    Online,
    /// It does not, and why.
    Offline(String),
}

/// One kind of operation of a LUN since the daemon started.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct OpFacts {
    /// How many.
    pub ops: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that the storage has, and has not ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: u64,
    /// How long they took, by stage.
    pub latency: Stages,
    /// How large they were, of reads and writes that ended well: pairs of bytes and of how many had
    /// so many at least, and less than twice as many. The last of twelve has all that had more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<(u64, u64)>,
}

/// Storage that has stopped answering.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct StallFacts {
    /// For so long nothing of the LUN has ended, in seconds.
    pub seconds: u64,
    /// Operations that are under way.
    pub operations: u64,
}

/// Whether a LUN in service is well.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LunCondition {
    /// Whether it serves.
    pub state: LunState,
    /// What its checksums know to be bad now.
    pub checksums: Option<String>,
    /// The scrub that runs, or the last one.
    pub scrub: Option<ScrubFacts>,
    /// What is not as it should be of its copies on several nodes.
    pub copies: Option<String>,
}

/// What is known of a LUN in service.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct LunFacts {
    /// Whether it serves.
    pub state: LunState,
    /// By operation: `read`, `write`, `unmap`, `flush`, `caw`, `other`.
    pub ops: BTreeMap<String, OpFacts>,
    /// Commands in flight.
    pub in_flight: u64,
    /// Bytes that commands hold now.
    #[serde(default)]
    pub bytes_in_flight: u64,
    /// Commands that ended with another status than GOOD, by status and sense (`check 3/11/00`).
    pub statuses: BTreeMap<String, u64>,
    /// Bytes that its storage takes, where that is known.
    pub allocated: Option<u64>,
    /// What its layers did.
    #[serde(flatten)]
    pub layers: LayerFacts,
    /// What its checksums know to be bad now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad: Option<String>,
    /// The scrub that runs, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<ScrubFacts>,
    /// Its storage has stopped answering; absent: it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<StallFacts>,
}

/// A core of the runtime.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct CoreFacts {
    /// Its number.
    pub core: u16,
    /// Processor time that it has worked since the daemon started, in microseconds.
    pub busy_us: u64,
    /// How busy it is now, in thousandths.
    pub load_permille: u16,
    /// Connections that it serves, logged in or not.
    pub connections: usize,
    /// What carries its disks: `io_uring`, or `threads` where that is refused or not wanted.
    pub disk_engine: String,
    /// Files that are registered with the kernel.
    pub registered_files: u32,
    /// Bytes of payload memory that are.
    pub registered_bytes: u64,
}

/// Sessions that were to go to another core.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MoveFacts {
    /// Those that went.
    pub moved: u64,
    /// Those that did not come to rest, and stayed.
    pub given_up: u64,
}

/// What did not match its digest, of what hosts sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DigestFacts {
    /// Headers; the connection is closed.
    pub headers: u64,
    /// Data segments; the command fails, and the host sends it again.
    pub data: u64,
}

/// An iSCSI session, with its connection and what it did since its login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct SessionFacts {
    /// Its number.
    pub id: u64,
    /// The host that it belongs to.
    pub host: String,
    /// The initiator's iSCSI name.
    pub initiator: String,
    /// The target; absent in a discovery session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The initiator's address.
    pub from: String,
    /// The portal's address.
    pub portal: String,
    /// The core that serves it.
    pub core: u16,
    /// How much of its core's time goes to it now, in thousandths.
    #[serde(default)]
    pub load_permille: u16,
    /// It stays on its core: node.toml pins its portal group.
    #[serde(default)]
    pub pinned: bool,
    /// When it logged in (RFC 3339).
    pub since: String,
    /// Bytes from the initiator.
    pub bytes_in: u64,
    /// Bytes to the initiator.
    pub bytes_out: u64,
    /// PDUs from the initiator.
    #[serde(default)]
    pub pdus_received: u64,
    /// Times that the connection received something: several PDUs at once where it waited for them.
    #[serde(default)]
    pub receives: u64,
    /// Times that it waited for several.
    #[serde(default)]
    pub receives_waited: u64,
    /// Commands in flight.
    pub in_flight: u64,
    /// Bytes that they hold now.
    #[serde(default)]
    pub bytes_in_flight: u64,
    /// The most that they may hold, where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight_max: Option<u64>,
    /// Commands that have ended.
    #[serde(default)]
    pub commands: u64,
    /// How long its reads and writes took, from the first byte until the socket had the answer.
    #[serde(default, skip_serializing_if = "Latency::is_empty")]
    pub latency: Latency,
    /// The user that the initiator proved to be by CHAP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_user: Option<String>,
    /// The target proved itself, too.
    #[serde(default)]
    pub mutual_chap: bool,
    /// What the initiator sees, by number.
    #[serde(default)]
    pub luns: Vec<SessionLun>,
    /// The NIC of the host, as our own initiator reports it; absent: this host does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<SessionNic>,
    /// What was negotiated, by the standard's names.
    pub keys: BTreeMap<String, String>,
}

/// The NIC that a session goes through in its host, as the host reported it at the login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct SessionNic {
    /// Its name in the host.
    pub name: String,
    /// The card in the host, where it is hardware: what fails with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// What it is plugged into, where the host's administrator named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<String>,
    /// Bits a second, all links of a team together, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_second: Option<u64>,
    /// Equal links behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<u16>,
    /// The largest IP packet in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The host plans its paths: those that move nothing stand by.
    pub planned: bool,
}

/// A NIC of the node, with what carries its VLANs and bridges.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct NodeNic {
    /// What the system calls it: `eth2`, or a team of several.
    pub name: String,
    /// The card, where it is hardware: what fails with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// Bits a second, all links of a team together, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_second: Option<u64>,
    /// Equal links behind it.
    pub links: u16,
    /// The largest IP packet in bytes.
    pub mtu: u32,
    /// It has a signal from its other end.
    pub carrier: bool,
    /// Those of its VLANs included.
    pub addresses: Vec<NicAddress>,
}

/// Where a NIC can be reached, and from where without a router.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct NicAddress {
    /// Without a port, such as `10.1.0.1`.
    pub address: String,
    /// The subnet that it is in, such as `10.1.0.0/24`.
    pub network: String,
}

/// A LUN as a session sees it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct SessionLun {
    /// The number by which the host knows it.
    pub lun_id: u16,
    /// Its name.
    pub lun: String,
    /// The host may not write.
    pub read_only: bool,
}

impl SessionFacts {
    /// As a plan needs it.
    #[must_use]
    pub fn brief(&self) -> SessionBrief {
        SessionBrief {
            id: self.id,
            host: self.host.clone(),
            initiator: self.initiator.clone(),
            target: self.target.clone(),
            bytes_per_second: None,
        }
    }
}

/// How many logins ended in a way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoginFacts {
    /// `accepted`, `redirected` or `refused`.
    pub result: &'static str,
    /// The catalogue's code where it was not accepted.
    pub code: Option<Code>,
    /// How many.
    pub count: u64,
}

/// A login that was refused.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct RefusalFacts {
    /// When (RFC 3339); the last time.
    pub at: String,
    /// How often, from the same address and for the same reason.
    #[serde(default = "once")]
    pub times: u64,
    /// The initiator's name, where it said one.
    pub initiator: String,
    /// Its address.
    pub from: String,
    /// The target that it asked for; empty for discovery.
    pub target: String,
    /// The portal's address.
    pub portal: String,
    /// The catalogue's code.
    pub code: Code,
    /// Status class and detail on the wire, such as `0202`.
    pub status: String,
    /// The reason in words.
    pub reason: String,
}

const fn once() -> u64 {
    1
}

/// A place where the node listens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug)]
pub struct PortalFacts {
    /// The portal group.
    pub group: String,
    /// TargetPortalGroupTag of its portal group.
    pub tag: u16,
    /// The address with the real port.
    pub address: String,
    /// The interface that has the address, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Why it does not listen, where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A member of a pool.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct MemberFacts {
    /// Which; absent: what stands there is no member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u16>,
    /// Where it is, or was last.
    pub path: String,
    /// The device's serial number, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Its event, where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The last event that was to be written to it.
    pub last_event: u64,
    /// Bytes of the file or device; absent where it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Bytes of it that LUNs have, with their checksums and histories.
    #[serde(default)]
    pub taken_bytes: u64,
    /// The disks below it, as `/disks` has them, where that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<String>,
    /// `present`, or what is wrong with it.
    pub state: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// How a pool is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum PoolState {
    /// It can be used, and has room.
    #[default]
    Ok,
    /// Less than a tenth of it is free.
    Low,
    /// Less than a hundredth of it is free.
    Full,
    /// Nothing of it lies at its path: its file system is not mounted.
    Missing,
    /// It does not answer.
    Silent,
    /// It cannot be used, or not all of it.
    Unusable,
}

/// What the storage below a pool says of itself, such as a cluster of its own.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct HealthFacts {
    /// As it names itself.
    pub system: String,
    /// As a whole.
    pub severity: HealthSeverity,
    /// What is wrong with it, in its own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
}

/// How bad that is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum HealthSeverity {
    /// Nothing is wrong.
    #[default]
    Ok,
    /// Something needs attention.
    Warning,
    /// Something fails.
    Error,
}

impl HealthSeverity {
    /// As documents write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for HealthFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.checks.join("; ");
        write!(f, "{} says {}: {all}", self.system, self.severity.name())
    }
}

/// The space of a pool, in bytes.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct PoolFacts {
    /// As `node.toml` has it.
    pub name: String,
    /// The directory, the members or the cluster's pool, as `node.toml` has them.
    pub path: String,
    /// The size of the whole pool, used and unused.
    pub total: u64,
    /// What may still be used; less than what is not used where the file system keeps some for
    /// root.
    pub available: u64,
    /// What is used.
    #[serde(default)]
    pub used: u64,
    /// How it is, in a word.
    #[serde(default)]
    pub state: PoolState,
    /// Bytes that its LUNs were given, those that were removed included.
    #[serde(default)]
    pub provisioned_bytes: u64,
    /// Bytes of these that they have not taken yet; 0 in a pool of members, where they have them
    /// from the beginning.
    #[serde(default)]
    pub outstanding_bytes: u64,
    /// Other pools on the same file system: what is free there is free for all of them together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares_with: Vec<String>,
    /// Bytes that its LUNs may still take and that it does not have, or that it has together with
    /// the pools that it shares with.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overcommitted_bytes: u64,
    /// When it is full at the rate of the last hour, in seconds from now, where that is known and
    /// within a year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_in_seconds: Option<u64>,
    /// When it is likely to be full, by its history of up to 30 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastFacts>,
    /// How old these figures are, where the pool does not answer now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    /// Why it cannot be used, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What the storage below says of itself, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthFacts>,
    /// `directory`, `span`, `stripe` or `rbd`.
    #[serde(default)]
    pub layout: String,
    /// Counts the changes of a pool of members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// Its members; those that are missing are there with what is known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberFacts>,
    /// What is no problem and still worth knowing, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its journal, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalFacts>,
    /// The disks that it lies on, where the system shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<PoolDisk>,
}

/// A disk that a pool lies on.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct PoolDisk {
    /// As `/disks` has it.
    pub id: String,
    /// What people call it: device, serial number and bay.
    pub called: String,
    /// Its verdict in `/disks`.
    pub health: DiskVerdict,
    /// It holds the journal, and no blocks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_journal: bool,
}
