//! Why a path is what it is, and what limits a stream on it.

use super::choose::Choice;
use super::model::{Ends, Limit, PlannedPath, Reason, Role, StreamLimit, Term};
use super::options::Options;
use super::score::{Order, Problem};
use super::standby::Standby;
use crate::facts::{PathName, Speed};
use crate::mesh::{Candidate, Mesh};

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
