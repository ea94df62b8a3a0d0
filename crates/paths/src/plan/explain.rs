//! Why a path is what it is, and what limits a stream on it.

use super::score::{Order, Problem, Term};
use super::standby::Standby;
use super::{Barred, Choice, Options, PlannedPath, Role};
use crate::facts::{PathName, Speed};
use crate::mesh::{Candidate, Mesh};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which end.
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
    /// By what.
    pub by: Limit,
}

/// Why a path has its role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Reason {
    /// Active: it belongs to the best set; taking it away, with the best replacement, would first
    /// cost this term. `None`: it is all there is.
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
            Self::Chosen { best_in: None } => write!(f, "there is no other choice"),
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

/// Every path of the plan with its reason.
pub(crate) fn paths(
    mesh: &Mesh,
    options: &Options,
    current: &[PathName],
    choice: &Choice,
    standbys: &[Standby],
) -> Vec<PlannedPath> {
    let is_current: Vec<bool> = mesh
        .paths
        .iter()
        .map(|path| current.contains(&path.name))
        .collect();
    let problem = Problem {
        mesh,
        paths: (0..mesh.paths.len()).collect(),
        limit: usize::from(options.max_active),
        order: Order {
            priority: options.priority,
            sticky: false,
        },
        current: &is_current,
    };
    let why = Why {
        problem: &problem,
        options,
        active: &choice.active,
    };
    let active = choice.active.iter();
    let mut all: Vec<PlannedPath> = active
        .map(|path| planned(mesh, *path, (Role::Active, 0), why.chosen(*path)))
        .collect();
    for standby in standbys {
        let role = if standby.hot { Role::Hot } else { Role::Cold };
        all.push(planned(
            mesh,
            standby.path,
            (role, standby.shares),
            why.not_chosen(standby.path),
        ));
    }
    let barred = mesh.barred.iter().map(|(name, barred)| PlannedPath {
        path: name.clone(),
        role: Role::Unusable,
        reason: Reason::Barred(barred.clone()),
        source: None,
        portal: None,
        routed: false,
        stream: None,
        shares: 0,
    });
    all.extend(barred);
    all
}

fn planned(mesh: &Mesh, path: usize, (role, shares): (Role, u8), reason: Reason) -> PlannedPath {
    let it = &mesh.paths[path];
    PlannedPath {
        path: it.name.clone(),
        role,
        reason,
        source: Some(it.source),
        portal: Some(it.portal),
        routed: it.routed,
        stream: Some(stream(mesh, it)),
        shares,
    }
}

fn stream(mesh: &Mesh, path: &Candidate) -> StreamLimit {
    let (host, target) = (&mesh.hosts[path.host], &mesh.targets[path.target]);
    let end = match host.stream.cmp(&target.stream) {
        std::cmp::Ordering::Less => Ends::Host,
        std::cmp::Ordering::Equal => Ends::Both,
        std::cmp::Ordering::Greater => Ends::Target,
    };
    let limiting = if end == Ends::Target { target } else { host };
    let team = limiting.stream < limiting.capacity;
    StreamLimit {
        speed: Speed(path.speed),
        end,
        by: if team { Limit::TeamMember } else { Limit::Port },
    }
}

struct Why<'a> {
    problem: &'a Problem<'a>,
    options: &'a Options,
    active: &'a [usize],
}

impl Why<'_> {
    /// The first term of the objective in which `other` differs for the worse.
    fn worse(&self, other: &[usize]) -> Option<Term> {
        let order = self.problem.order;
        let (ours, theirs) = (self.problem.score(self.active), self.problem.score(other));
        let differs = order
            .terms()
            .into_iter()
            .find(|term| ours.get(*term) != theirs.get(*term));
        differs.filter(|term| ours.get(*term) > theirs.get(*term))
    }

    fn chosen(&self, path: usize) -> Reason {
        let order = self.problem.order;
        let at = self.active.iter().position(|it| *it == path);
        let candidates = self
            .problem
            .paths
            .iter()
            .filter(|it| !self.active.contains(it));
        let of_kind = candidates.filter(|it| self.comparable(**it));
        let instead = of_kind.filter_map(|other| {
            let mut set = self.active.to_vec();
            *set.get_mut(at?)? = *other;
            self.problem.ports_hold(&set, *other).then_some(set)
        });
        let best = instead.max_by_key(|set| self.problem.score(set).key(order));
        Reason::Chosen {
            best_in: best.and_then(|set| self.worse(&set)),
        }
    }

    /// In the tier and class that the active paths were chosen from.
    fn comparable(&self, path: usize) -> bool {
        let paths = &self.problem.mesh.paths;
        self.active.first().is_some_and(|first| {
            let (it, first) = (&paths[path], &paths[*first]);
            it.tier == first.tier && (self.options.mixed || it.speed == first.speed)
        })
    }

    fn not_chosen(&self, path: usize) -> Reason {
        let mesh = self.problem.mesh;
        let it = &mesh.paths[path];
        let first = self.active.first().map(|path| &mesh.paths[*path]);
        match first {
            None => {
                return Reason::SlowerTier {
                    access: it.access.code(),
                };
            }
            Some(first) if it.tier != first.tier => {
                return Reason::SlowerTier {
                    access: it.access.code(),
                };
            }
            Some(first) if !self.options.mixed && it.speed != first.speed => {
                let active = Speed(first.speed);
                return Reason::OtherSpeedClass { active };
            }
            Some(_) => {}
        }
        self.full(path).unwrap_or(Reason::LimitReached {
            limit: self.options.max_active,
        })
    }

    fn full(&self, path: usize) -> Option<Reason> {
        let mesh = self.problem.mesh;
        let it = &mesh.paths[path];
        let on = |at_host: bool| {
            let shares = move |other: &&usize| {
                let other = &mesh.paths[**other];
                if at_host {
                    other.host == it.host
                } else {
                    other.target == it.target
                }
            };
            self.active
                .iter()
                .filter(shares)
                .copied()
                .collect::<Vec<usize>>()
        };
        let (at_host, at_target) = (on(true), on(false));
        let used = |paths: &[usize]| {
            paths
                .iter()
                .map(|path| mesh.paths[*path].speed)
                .sum::<u64>()
        };
        let host_full = used(&at_host).saturating_add(it.speed) > mesh.hosts[it.host].capacity;
        let port = &mesh.targets[it.target];
        let sessions = u32::try_from(at_target.len()).unwrap_or(u32::MAX);
        let target_full =
            used(&at_target).saturating_add(it.speed) > port.capacity || sessions >= port.sessions;
        let end = match (host_full, target_full) {
            (true, true) => Ends::Both,
            (true, false) => Ends::Host,
            (false, true) => Ends::Target,
            (false, false) => return None,
        };
        let mut by = if host_full { at_host } else { Vec::new() };
        if target_full {
            by.extend(at_target);
        }
        by.sort_unstable();
        by.dedup();
        let mut instead: Vec<usize> = self
            .active
            .iter()
            .copied()
            .filter(|path| !by.contains(path))
            .collect();
        instead.push(path);
        Some(Reason::PortFull {
            end,
            by: by
                .iter()
                .map(|path| mesh.paths[*path].name.clone())
                .collect(),
            worse_in: self.worse(&instead),
        })
    }
}
