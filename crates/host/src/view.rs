//! The documents of paths: what a program that has volumes open reports of them through its socket,
//! and what `causeway path` makes of that and of plans. Who writes one and who reads it use the
//! same types, and others may.

use crate::prepare::Prepared;
use crate::status::{PathStatus, Status};
use paths::plan::{Contingency, Method, PlannedPath};
use paths::{Element, HostPort, PathName, Plan, Policy, Speed, TargetPort};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// What a program answers: something of each volume that it has open.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessView<V> {
    /// Its process.
    pub pid: u32,
    /// One entry for each volume that it has open.
    pub volumes: Vec<V>,
}

/// A multipath volume that a program on this host has open.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct VolumeView {
    /// The process that has it open.
    pub pid: u32,
    /// Its paths, their states and their counters.
    #[serde(flatten)]
    pub status: Status,
}

/// A volume with the plan in force; one that chooses its paths by itself has none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlannedVolume {
    /// Its paths, their states and their counters.
    pub volume: Status,
    /// The planner's choice of paths, which is in force.
    pub plan: Option<Plan>,
}

/// Asks for a path to be let out of quarantine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReleaseRequest {
    /// Host port and target portal, as `causeway path ls` prints them.
    pub path: String,
    /// Only for this unit.
    #[serde(default)]
    pub unit: Option<String>,
}

/// What came of a [`ReleaseRequest`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReleaseAnswer {
    /// In so many volumes.
    pub released: u64,
}

/// Asks for another policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PolicyRequest {
    /// Target and LUN of the volumes whose policy changes: `iqn.../0`.
    pub unit: String,
    /// As `--policy` takes it.
    pub policy: String,
}

/// What came of a [`PolicyRequest`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PolicyAnswer {
    /// In so many volumes.
    pub volumes: u64,
}

/// `causeway path release`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReleasedView {
    /// The one that is out of quarantine.
    pub path: PathName,
    /// In so many volumes.
    pub released: u64,
}

/// `causeway path policy`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PolicyView {
    /// The LUN.
    pub url: String,
    /// The one that is in force from now on.
    pub policy: Policy,
    /// The open volumes in which it is in force.
    pub volumes: u64,
}

/// A port of this host, as a plan is made from it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HostPortView {
    /// The system's name.
    pub name: String,
    /// What fails with it.
    pub card: String,
    /// NUMA node of the card.
    pub numa: Option<u16>,
    /// Of all members of a team together; absent where nobody knows.
    pub speed: Option<Speed>,
    /// Links behind it.
    pub links: u16,
    /// Largest IP packet.
    pub mtu: u32,
    /// Whether it has a carrier.
    pub link: bool,
    /// What it is plugged into.
    pub fabric: Option<String>,
    /// False: not to be used.
    pub enabled: bool,
}

impl HostPortView {
    fn of(port: &HostPort) -> Self {
        Self {
            name: port.name.clone(),
            card: port.card.clone(),
            numa: port.numa,
            speed: port.speed,
            links: port.links,
            mtu: port.mtu,
            link: port.link,
            fabric: port.fabric.clone(),
            enabled: port.enabled,
        }
    }
}

/// A port of the target, as a plan is made from it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TargetPortView {
    /// Unique in the plan; where nothing better is known, its first portal.
    pub name: String,
    /// Where it listens.
    pub portals: Vec<SocketAddr>,
    /// Target portal group tag.
    pub portal_group: u16,
    /// What fails as a whole with it; absent: the portal group stands for it.
    pub controller: Option<String>,
    /// What fails with it inside the controller; absent: one card for each controller.
    pub card: Option<String>,
    /// Absent: that of the fastest host port that reaches it.
    pub speed: Option<Speed>,
    /// Links behind it.
    pub links: u16,
    /// Largest IP packet.
    pub mtu: Option<u32>,
    /// What it had to spare.
    pub free: Option<Speed>,
    /// Sessions that it takes still.
    pub sessions_left: Option<u32>,
    /// What it is plugged into.
    pub fabric: Option<String>,
    /// False: not to be used.
    pub enabled: bool,
}

impl TargetPortView {
    fn of(port: &TargetPort) -> Self {
        Self {
            name: port.name.clone(),
            portals: port.portals.clone(),
            portal_group: port.portal_group,
            controller: port.controller.clone(),
            card: port.card.clone(),
            speed: port.speed,
            links: port.links,
            mtu: port.mtu,
            free: port.free,
            sessions_left: port.sessions_left,
            fabric: port.fabric.clone(),
            enabled: port.enabled,
        }
    }
}

/// A path of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlannedPathView {
    /// What the planner says.
    #[serde(flatten)]
    pub planned: PlannedPath,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl PlannedPathView {
    fn of(path: &PlannedPath) -> Self {
        Self {
            planned: path.clone(),
            why: Some(path.reason.to_string()),
        }
    }
}

/// Whether logins work on the paths of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LoginView {
    /// On one at least.
    pub works: bool,
    /// Those on which they do not.
    pub failed: Vec<FailedLoginView>,
}

/// A path on which nobody gets in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FailedLoginView {
    /// Host port and target portal.
    pub path: String,
    /// The target's answer, or the system's error.
    pub why: String,
}

/// `causeway path plan`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanView {
    /// The LUN.
    pub url: String,
    /// This host's name.
    pub initiator: String,
    /// What is lost in it.
    pub what_if: Vec<Element>,
    /// What the operator should know.
    pub notices: Vec<String>,
    /// Ports of this host that may carry a path.
    pub host_ports: Vec<HostPortView>,
    /// Ports of the target as its discovery session named them.
    pub target_ports: Vec<TargetPortView>,
    /// All pairs of them.
    pub paths: Vec<PlannedPathView>,
    /// Sum of the active paths' speeds.
    pub bandwidth: Speed,
    /// How the active paths were found.
    pub method: Method,
    /// What becomes of it when an element is lost.
    pub contingencies: Vec<Contingency>,
    /// What trying to log in gave, where that was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginView>,
}

impl PlanView {
    /// A plan, in which `lost` is lost.
    #[must_use]
    pub fn new(prepared: &Prepared, plan: &Plan, lost: &[Element]) -> Self {
        let facts = &prepared.facts;
        Self {
            url: prepared.url.to_string(),
            initiator: prepared.initiator.clone(),
            what_if: lost.to_vec(),
            notices: prepared.notices.clone(),
            host_ports: facts.hosts.iter().map(HostPortView::of).collect(),
            target_ports: facts.targets.iter().map(TargetPortView::of).collect(),
            paths: plan.paths.iter().map(PlannedPathView::of).collect(),
            bandwidth: plan.bandwidth,
            method: plan.method,
            contingencies: plan.contingencies.clone(),
            login: None,
        }
    }

    /// What is known of one path.
    #[must_use]
    pub fn path(&self, name: &PathName) -> Option<&PlannedPathView> {
        self.paths.iter().find(|it| it.planned.path == *name)
    }
}

/// `causeway path explain`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExplainedView {
    /// The LUN.
    pub url: String,
    /// A program has it open.
    pub running: bool,
    /// The program that has it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The policy that chooses among its paths now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// How the path is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<PathStatus>,
    /// What the plan says of it.
    pub planned: Option<PlannedPathView>,
}

impl ExplainedView {
    /// A path of a volume that a program has open, where the volume has it.
    #[must_use]
    pub fn running(pid: u32, of: &PlannedVolume, name: &PathName) -> Option<Self> {
        let text = name.to_string();
        let now = of.volume.paths.iter().find(|it| it.path == text)?;
        let planned = of.plan.as_ref().and_then(|plan| plan.path(name));
        Some(Self {
            url: of.volume.url.clone(),
            running: true,
            pid: Some(pid),
            policy: Some(of.volume.policy.clone()),
            now: Some(now.clone()),
            planned: planned.map(|planned| PlannedPathView {
                planned: planned.clone(),
                why: None,
            }),
        })
    }

    /// A path of a LUN that no program has open.
    #[must_use]
    pub fn planned(url: String, planned: PlannedPathView) -> Self {
        Self {
            url,
            running: false,
            pid: None,
            policy: None,
            now: None,
            planned: Some(planned),
        }
    }
}
