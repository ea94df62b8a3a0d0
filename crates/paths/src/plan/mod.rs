//! The planner: which paths are active, which wait and how warm, what to do when something is lost,
//! and why.
//!
//! **Contract.** A plan is a function of facts, options and the set that is active now: the order
//! in which ports were found does not matter beyond ties that the hash decides. No port is ever
//! planned over its speed: that is what makes a mesh collapse, because two senders that fill one
//! receiving port overflow the switch's buffer.
//!
//! The objective, lexicographic: best access tier; bandwidth, within one speed class unless
//! `mixed`; host cards; controllers; cards of the target; fabrics (each: how many, then how
//! evenly); fewest sessions; stability; a hash.

mod contingency;
mod exact;
mod explain;
mod flow;
mod keeper;
#[cfg(test)]
mod keeper_test;
#[cfg(test)]
mod oracle;
mod score;
mod standby;
#[cfg(test)]
mod test;
#[cfg(test)]
pub(crate) mod test_facts;

pub use contingency::Contingency;
pub use explain::{Ends, Limit, Reason, StreamLimit};
pub use keeper::{Change, Keeper, Timing, Trouble};
pub use score::Term;

use crate::facts::{Element, Facts, PathName, Speed};
use crate::mesh::{Mesh, TIERS_WITH_IO};
use score::{Order, Problem};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// What comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Bandwidth, then diversity.
    #[default]
    Bandwidth,
    /// As many host cards and controllers as possible, then bandwidth.
    Diversity,
}

/// Paths between different subnets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routed {
    /// Only where no port reaches any other without a router.
    #[default]
    LastResort,
    /// No.
    Never,
    /// Like any other.
    Always,
}

/// What the administrator wants of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Most active paths.
    pub max_active: u16,
    /// Most sessions, hot standbys included.
    pub max_sessions: u16,
    /// Paths of different speed may be active together.
    pub mixed: bool,
    /// What comes first.
    pub priority: Priority,
    /// Paths through routers.
    pub routed: Routed,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_active: 4,
            max_sessions: 8,
            mixed: false,
            priority: Priority::default(),
            routed: Routed::default(),
        }
    }
}

/// Why a pair of ports is no path at all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Barred {
    /// By the administrator.
    Disabled,
    /// The host's port has no carrier.
    LinkDown,
    /// The host's port has no address.
    NoAddress,
    /// No address of the host's port is in a subnet of the target's.
    NoCommonSubnet,
    /// The ports are plugged into different fabrics.
    OtherFabric {
        /// The host's.
        host: String,
        /// The target's.
        target: String,
    },
    /// The target's port takes no more sessions.
    NoSessionsLeft,
    /// An element that it stands on is lost.
    Lost {
        /// Which.
        element: String,
    },
}

/// What a path is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Carries I/O.
    Active,
    /// Logged in and kept alive.
    Hot,
    /// Not logged in.
    Cold,
    /// Cannot be used now.
    Unusable,
}

/// One path of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedPath {
    /// Its name.
    pub path: PathName,
    /// What it is for.
    pub role: Role,
    /// Why.
    pub reason: Reason,
    /// The host's address; `None` where it is barred.
    pub source: Option<IpAddr>,
    /// The target's.
    pub portal: Option<SocketAddr>,
    /// It goes through a router.
    pub routed: bool,
    /// The most that one stream gets on it, and what limits it.
    pub stream: Option<StreamLimit>,
    /// Elements that it shares with active paths, the planner's measure for a standby; 0 for active
    /// ones.
    pub shares: u8,
}

/// How the active set was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// It is the optimum.
    Exact,
    /// By flow and exchanges: bandwidth of the chosen class is the largest, spread is close to the
    /// best.
    Flow,
}

/// What to do with every path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// All pairs: active ones, hot ones in order of merit, cold ones in order of merit, unusable
    /// ones.
    pub paths: Vec<PlannedPath>,
    /// Sum of the active paths' speeds, in bits per second.
    pub bandwidth: Speed,
    /// How.
    pub method: Method,
    /// What to do when one element is lost: for each that a path stands on.
    pub contingencies: Vec<Contingency>,
}

impl Plan {
    /// The paths of one role, in order.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &PathName> {
        let of_role = self.paths.iter().filter(move |it| it.role == role);
        of_role.map(|it| &it.path)
    }

    /// The active paths.
    #[must_use]
    pub fn active(&self) -> Vec<PathName> {
        self.of(Role::Active).cloned().collect()
    }

    /// What is known of one path.
    #[must_use]
    pub fn path(&self, name: &PathName) -> Option<&PlannedPath> {
        self.paths.iter().find(|it| it.path == *name)
    }
}

/// A chosen set and how it was found.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) active: Vec<usize>,
    pub(crate) method: Method,
}

/// How the solver is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Solver {
    /// Exact where it can.
    Best,
    /// The flow, for tests that compare.
    #[cfg(test)]
    Flow,
}

/// Plans afresh: diversity counts more than what is active now, which only decides between equals.
#[must_use]
pub fn plan(facts: &Facts, options: &Options, current: &[PathName]) -> Plan {
    plan_mesh(&Mesh::new(facts, options), options, current, false)
}

/// Plans so that as much of `current` as possible stays, as long as no bandwidth is lost by it.
#[must_use]
pub fn plan_sticky(facts: &Facts, options: &Options, current: &[PathName]) -> Plan {
    plan_mesh(&Mesh::new(facts, options), options, current, true)
}

/// The plan for the loss of `elements`, starting from `current`.
#[must_use]
pub fn what_if(
    facts: &Facts,
    options: &Options,
    current: &[PathName],
    elements: &[Element],
) -> Plan {
    let mesh = Mesh::new(facts, options).without(elements);
    plan_mesh(&mesh, options, current, true)
}

fn plan_mesh(mesh: &Mesh, options: &Options, current: &[PathName], sticky: bool) -> Plan {
    let choice = choose(mesh, options, current, sticky, Solver::Best);
    let contingencies = contingency::table(mesh, options, &choice.active);
    let ranked = standby::rank(mesh, options, &choice.active, &contingencies);
    let speeds = choice.active.iter().map(|path| mesh.paths[*path].speed);
    Plan {
        bandwidth: Speed(speeds.sum()),
        paths: explain::paths(mesh, options, current, &choice, &ranked),
        method: choice.method,
        contingencies,
    }
}

/// The active set.
pub(crate) fn choose(
    mesh: &Mesh,
    options: &Options,
    current: &[PathName],
    sticky: bool,
    solver: Solver,
) -> Choice {
    let best_tier = mesh.paths.iter().map(|path| path.tier).min();
    let tier = best_tier.filter(|tier| *tier < TIERS_WITH_IO);
    let usable: Vec<usize> = (0..mesh.paths.len())
        .filter(|path| Some(mesh.paths[*path].tier) == tier)
        .collect();
    let is_current: Vec<bool> = mesh
        .paths
        .iter()
        .map(|path| current.contains(&path.name))
        .collect();
    let order = Order {
        priority: options.priority,
        sticky,
    };
    let mut classes: Vec<u64> = usable.iter().map(|path| mesh.paths[*path].speed).collect();
    classes.sort_unstable();
    classes.dedup();
    if options.mixed {
        classes.truncate(1);
    }
    let mut best: Option<([i64; 13], Choice)> = None;
    for class in classes {
        let of_class = usable.iter().copied();
        let of_class = of_class.filter(|path| options.mixed || mesh.paths[*path].speed == class);
        let problem = Problem {
            mesh,
            paths: of_class.collect(),
            limit: usize::from(options.max_active).min(flow::PATHS_MAX),
            order,
            current: &is_current,
        };
        let choice = solve(&problem, solver);
        let key = problem.score(&choice.active).key(order);
        if best.as_ref().is_none_or(|(old, _)| key > *old) {
            best = Some((key, choice));
        }
    }
    let none = Choice {
        active: Vec::new(),
        method: Method::Exact,
    };
    best.map_or(none, |(_, choice)| choice)
}

fn solve(problem: &Problem<'_>, solver: Solver) -> Choice {
    let exact = match solver {
        Solver::Best => exact::solve(problem),
        #[cfg(test)]
        Solver::Flow => None,
    };
    match exact {
        Some(active) => Choice {
            active,
            method: Method::Exact,
        },
        None => Choice {
            active: flow::solve(problem),
            method: Method::Flow,
        },
    }
}
