//! A plan: what every path is for, and why.

use crate::facts::{Element, PathName, Speed};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

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
    /// Whether it carries I/O, is only logged in, is not logged in, or cannot be used.
    pub role: Role,
    /// Why it has that role.
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
    /// The algorithm that chose the active paths.
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

/// The end of a path that bounds what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// The host's port.
    Host,
    /// The target's port.
    Target,
    /// Both, equally.
    Both,
}

/// What limits a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The port's speed.
    Port,
    /// The port is a team: one stream uses one of its links.
    TeamMember,
}

/// The most that one stream gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StreamLimit {
    /// In bits per second.
    pub speed: Speed,
    /// Which end limits.
    pub end: Ends,
    /// By the port's speed, or by that of one link of its team.
    pub by: Limit,
}

/// Why a path has its role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Reason {
    /// Active: it belongs to the best set; taking it away, with the best replacement, would first
    /// cost this term. `None`: no other path can take its place, or none would be better.
    Chosen {
        /// The term.
        best_in: Option<Term>,
    },
    /// Another path's access state is better.
    SlowerTier {
        /// The access state of this one, as its number in SPC-4.
        access: u8,
    },
    /// Its speed is not that of the active paths, and speeds are not to be mixed.
    OtherSpeedClass {
        /// That of the active paths.
        active: Speed,
    },
    /// A port would be over its speed with it, because of these active paths; the set with it
    /// instead of them is worse in this term first.
    PortFull {
        /// Which port.
        end: Ends,
        /// The paths that fill it.
        by: Vec<PathName>,
        /// Where the exchange would lose; `None`: it would be as good.
        worse_in: Option<Term>,
    },
    /// There are as many active paths as there may be.
    LimitReached {
        /// How many that is.
        limit: u16,
    },
    /// It cannot be used.
    Barred(Barred),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen {
                best_in: Some(term),
            } => write!(f, "in the best set, by {}", words(*term)),
            Self::Chosen { best_in: None } => {
                write!(f, "no other path in its place would be better")
            }
            Self::SlowerTier { access } => write!(
                f,
                "its access state ({access:x}h) is worse than that of other paths"
            ),
            Self::OtherSpeedClass { active } => {
                write!(f, "active paths run at {active}, and speeds are not mixed")
            }
            Self::PortFull { end, by, worse_in } => {
                let port = match end {
                    Ends::Host => "the host's port is",
                    Ends::Target => "the target's port is",
                    Ends::Both => "both ports are",
                };
                let by: Vec<String> = by.iter().map(ToString::to_string).collect();
                write!(f, "{port} filled by {}", by.join(", "))?;
                match worse_in {
                    Some(term) => {
                        write!(f, "; this path instead would be worse in {}", words(*term))
                    }
                    None => Ok(()),
                }
            }
            Self::LimitReached { limit } => {
                write!(f, "{limit} paths are active, the most that are wanted")
            }
            Self::Barred(barred) => write!(f, "{barred}"),
        }
    }
}

impl fmt::Display for Barred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => write!(f, "switched off by the administrator"),
            Self::LinkDown => write!(f, "the host's port has no carrier"),
            Self::NoAddress => write!(f, "the host's port has no address"),
            Self::NoCommonSubnet => write!(f, "the ports have no subnet in common"),
            Self::OtherFabric { host, target } => {
                write!(
                    f,
                    "the host's port is in fabric {host}, the target's in {target}"
                )
            }
            Self::NoSessionsLeft => write!(f, "the target's port takes no more sessions"),
            Self::Lost { element } => write!(f, "{element} is lost"),
        }
    }
}

const fn words(term: Term) -> &'static str {
    match term {
        Term::Bandwidth => "bandwidth",
        Term::HostCards => "the number of host cards",
        Term::HostCardBalance => "balance over host cards",
        Term::Controllers => "the number of controllers",
        Term::ControllerBalance => "balance over controllers",
        Term::TargetCards => "the number of target cards",
        Term::TargetCardBalance => "balance over target cards",
        Term::Fabrics => "the number of fabrics",
        Term::FabricBalance => "balance over fabrics",
        Term::Sessions => "the number of sessions",
        Term::Stability => "stability",
        Term::HeadRoom => "head-room of the target's ports",
        Term::Spread => "the hash that spreads hosts",
    }
}

/// The answer to the loss of one element.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contingency {
    /// What is lost.
    pub lost: Element,
    /// Active paths that die with it.
    pub dies: Vec<PathName>,
    /// Paths that become active at once.
    pub promote: Vec<PathName>,
    /// Paths that must make room for those: they drain.
    pub drain: Vec<PathName>,
    /// Bits per second that the rest carries.
    pub bandwidth: u64,
}

/// What a choice of active paths is judged by, in the order of the objective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// The sum of the paths' speeds.
    Bandwidth,
    /// How many cards of the host are in use.
    HostCards,
    /// How evenly.
    HostCardBalance,
    /// How many controllers.
    Controllers,
    /// How evenly.
    ControllerBalance,
    /// How many cards of the target.
    TargetCards,
    /// How evenly.
    TargetCardBalance,
    /// How many fabrics.
    Fabrics,
    /// How evenly.
    FabricBalance,
    /// The fewest sessions.
    Sessions,
    /// How many active paths stay as they are.
    Stability,
    /// How much the target's ports have to spare, in quarters of their speed.
    HeadRoom,
    /// A hash of initiator and path, so that hosts spread over equal ports.
    Spread,
}
