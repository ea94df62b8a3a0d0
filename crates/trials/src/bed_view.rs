//! Lab beds as they are asked for, and as they are shown.

use crate::second::{LinkState, PathSecond, Second};
use manifest::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A port of a machine of the bed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedPort {
    /// Its name in its namespace.
    pub name: String,
    /// The card that it sits on.
    pub card: String,
    /// The controller that it belongs to; the target only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Without a port: IPv4, in the bed alone.
    pub address: String,
    /// Its line rate in bits a second.
    pub rate_bits: u64,
    /// Its network: ports of one network reach each other.
    pub network: u8,
    /// The link that it hangs on.
    pub link: String,
}

/// The host that makes the load, or the target that serves it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedMachine {
    /// `host` or `target`.
    pub name: String,
    /// The same: what it does.
    pub kind: String,
    /// NICs of the host, portals of the target.
    pub ports: Vec<BedPort>,
}

/// What ports of one network hang on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedSwitch {
    /// Of its bridge, in the namespace of switches.
    pub name: String,
    /// Ports of this number hang on it.
    pub network: u8,
}

/// A link from a port to a switch.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedLink {
    /// By what it is cut.
    pub id: String,
    /// The machine of its port.
    pub machine: String,
    /// One end of it, by name.
    pub port: String,
    /// The other end, by name.
    pub switch: String,
    /// Whether it carries what it should.
    #[serde(default)]
    pub state: LinkState,
}

/// Machines, switches and links of a topology.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedPlan {
    /// The host and the target.
    pub machines: Vec<BedMachine>,
    /// What is between them.
    pub switches: Vec<BedSwitch>,
    /// What may be cut.
    pub links: Vec<BedLink>,
}

/// A topology that a bed can have.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct TopologyView {
    /// By what it is asked for.
    pub id: String,
    /// It in one line.
    pub title: String,
    /// What the initiator makes of it.
    pub paths: String,
    /// What it consists of.
    #[serde(flatten)]
    pub plan: BedPlan,
}

/// What a child says of a bed that stands.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct BedFacts {
    /// All that the bed has of the machine that it stands on.
    pub namespaces: Vec<String>,
    /// What it consists of.
    pub plan: BedPlan,
    /// The load, as a shell would start it.
    pub load: String,
}

/// The load that runs over a bed's paths.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct BedLoad {
    /// Bytes of an operation: 4K to 1M.
    pub block: String,
    /// Operations in flight: 1 to 64.
    pub outstanding: u32,
    /// Writes among a hundred operations.
    pub write_percent: u8,
    /// How long it runs, and the bed with it: 10 to 3600.
    pub seconds: u32,
}

impl Default for BedLoad {
    fn default() -> Self {
        Self {
            block: "64K".to_owned(),
            outstanding: 8,
            write_percent: 50,
            seconds: 600,
        }
    }
}

/// A bed that somebody asks for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct WantedBed {
    /// One of the topologies.
    pub topology: String,
    /// Rate of every link, such as `250M` or `1G`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// The load over it.
    #[serde(default)]
    pub load: BedLoad,
}

/// How a bed is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum BedState {
    /// It is built.
    Starting,
    /// The load runs over it.
    Running,
    /// It is torn down.
    Stopping,
    /// It is gone, as it was meant to.
    Stopped,
    /// It is gone, because something failed.
    Failed,
}

impl BedState {
    /// It is gone.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Stopped | Self::Failed)
    }
}

/// A path of a bed in its newest second.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedPath {
    /// The host's NIC; empty where its address is none of the bed's.
    pub nic: String,
    /// The target's port.
    pub port: String,
    /// State and figures of the newest second.
    #[serde(flatten)]
    pub now: PathSecond,
}

/// Something that happened to a bed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedNote {
    /// After so many seconds of the load.
    pub second: u64,
    /// A sentence for people.
    pub text: String,
}

/// The load of a bed, as it is now.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedLoadView {
    /// As a shell would start it.
    pub command_line: String,
    /// Since it began.
    pub elapsed_seconds: f64,
    /// From its start to its end.
    pub whole_seconds: f64,
    /// Operations that failed.
    pub errors: u64,
}

/// A bed as the API shows it.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BedView {
    /// Its number.
    pub id: u64,
    /// What was asked for.
    pub topology: String,
    /// That in one line.
    pub title: String,
    /// Whether the load runs over it.
    pub state: BedState,
    /// Who started it.
    pub by: String,
    /// When it began.
    pub started: String,
    /// When it was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// What of the machine it uses: nothing else is touched.
    pub namespaces: Vec<String>,
    /// The same by hand.
    pub command_line: String,
    /// What it consists of.
    #[serde(flatten)]
    pub plan: BedPlan,
    /// Each path in the newest second.
    pub paths: Vec<BedPath>,
    /// How far what runs over the paths is.
    pub load: BedLoadView,
    /// The load second by second; in lists absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seconds: Vec<Second>,
    /// What happened.
    pub log: Vec<BedNote>,
}

/// Whether a bed can be started here, and which.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct LabView {
    /// This daemon may start one.
    pub may_start: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The next step, where it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
    /// The same by hand.
    pub command_line: String,
    /// The bed that stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bed: Option<u64>,
    /// What there is to start.
    pub topologies: Vec<TopologyView>,
}
