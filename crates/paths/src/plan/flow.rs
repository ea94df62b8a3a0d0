//! Large meshes: a min-cost flow for each speed class, then exchanges.
//!
//! ```text
//!   source =convex=> host card -> host port -> path
//!   path -> target port =convex=> target card =convex=> controller -> sink
//! ```
//!
//! All paths of one class have the same speed, so a unit of flow is a path. The n-th unit through a
//! card or controller costs more than the one before, which makes the flow spread; the costs are
//! the objective's terms, each weighted above everything that comes after it. A flow network holds
//! one family of nested groups on each side: fabrics do not fit in, so exchanges of one or two
//! paths mend what they can afterwards. Bandwidth is always the largest of one class; with mixed
//! classes the fastest class is filled first.

use super::model::Term;
use super::score::Problem;
use crate::mesh::BUSY_MAX;
use std::collections::VecDeque;

/// Most paths that the weights have room for.
pub(crate) const PATHS_MAX: usize = 64;

const ROUNDS_MAX: usize = 40;

struct Arc {
    to: usize,
    room: u32,
    cost: i128,
    /// The path that this arc stands for.
    path: Option<usize>,
}

#[derive(Default)]
struct Network {
    arcs: Vec<Arc>,
    leaving: Vec<Vec<usize>>,
}

impl Network {
    fn node(&mut self) -> usize {
        self.leaving.push(Vec::new());
        self.leaving.len() - 1
    }

    /// Arcs stand in pairs: `n ^ 1` takes back what `n` carries.
    fn arc(&mut self, from: usize, to: usize, room: u32, cost: i128, path: Option<usize>) {
        self.leaving[from].push(self.arcs.len());
        self.arcs.push(Arc {
            to,
            room,
            cost,
            path,
        });
        self.leaving[to].push(self.arcs.len());
        let back = Arc {
            to: from,
            room: 0,
            cost: -cost,
            path: None,
        };
        self.arcs.push(back);
    }

    /// `room` units, of which each costs more than the one before.
    fn convex(&mut self, from: usize, to: usize, room: u32, weight: Weight) {
        for nth in 0..room {
            let distinct = if nth == 0 { 0 } else { weight.distinct };
            let cost = distinct + weight.balance * (2 * i128::from(nth) + 1);
            self.arc(from, to, 1, cost, None);
        }
    }

    /// Sends one more unit along the cheapest path; false if there is none.
    fn augment(&mut self, source: usize, sink: usize) -> bool {
        let mut reached: Vec<Option<(i128, usize)>> = vec![None; self.leaving.len()];
        let mut waits = vec![false; self.leaving.len()];
        let mut queue = VecDeque::from([source]);
        reached[source] = Some((0, usize::MAX));
        while let Some(node) = queue.pop_front() {
            waits[node] = false;
            let Some((cost, _)) = reached[node] else {
                continue;
            };
            for number in &self.leaving[node] {
                let arc = &self.arcs[*number];
                let new = cost + arc.cost;
                if arc.room == 0 || reached[arc.to].is_some_and(|(old, _)| old <= new) {
                    continue;
                }
                reached[arc.to] = Some((new, *number));
                if !std::mem::replace(&mut waits[arc.to], true) {
                    queue.push_back(arc.to);
                }
            }
        }
        let mut node = sink;
        while node != source {
            let Some((_, number)) = reached[node] else {
                return false;
            };
            self.arcs[number].room -= 1;
            self.arcs[number ^ 1].room += 1;
            node = self.arcs[number ^ 1].to;
        }
        true
    }
}

#[derive(Clone, Copy)]
struct Weight {
    distinct: i128,
    balance: i128,
}

/// Every term's weight is more than all that later terms can sum up to.
struct Costs {
    weight: [i128; 13],
}

impl Costs {
    fn new(problem: &Problem<'_>) -> Self {
        let paths = i128::try_from(problem.limit.min(PATHS_MAX)).unwrap_or(1) + 1;
        let mut weight = [0; 13];
        let mut above = 1_i128;
        for term in problem.order.terms().into_iter().rev() {
            weight[term as usize] = above;
            above *= match term {
                // The flow's size is the bandwidth, and fabrics are not in the network.
                Term::Bandwidth | Term::Sessions | Term::Fabrics | Term::FabricBalance => 1,
                Term::HostCards | Term::Controllers | Term::TargetCards | Term::Stability => paths,
                Term::HostCardBalance | Term::ControllerBalance | Term::TargetCardBalance => {
                    paths * paths
                }
                Term::HeadRoom => paths * (i128::from(BUSY_MAX) + 1),
                Term::Spread => paths << 32,
            };
        }
        Self { weight }
    }

    fn of(&self, term: Term) -> i128 {
        self.weight[term as usize]
    }

    fn convex(&self, distinct: Term, balance: Term) -> Weight {
        Weight {
            distinct: self.of(distinct),
            balance: self.of(balance),
        }
    }
}

/// A good choice; what [`Problem::feasible`] asks for always holds.
pub(crate) fn solve(problem: &Problem<'_>) -> Vec<usize> {
    let speed = |path: &usize| problem.mesh.paths[*path].speed;
    let mut classes: Vec<u64> = problem.paths.iter().map(speed).collect();
    classes.sort_unstable();
    classes.dedup();
    let mut chosen = Vec::new();
    for class in classes.into_iter().rev() {
        let of_class = problem
            .paths
            .iter()
            .copied()
            .filter(|path| speed(path) == class);
        fill(problem, &of_class.collect::<Vec<_>>(), class, &mut chosen);
    }
    exchange(problem, &mut chosen);
    chosen.sort_unstable();
    chosen
}

/// Paths of this speed that an end still has room for.
fn room(problem: &Problem<'_>, chosen: &[usize], class: u64, at_host: bool, end: usize) -> u32 {
    let paths = &problem.mesh.paths;
    let on_it = || {
        chosen.iter().filter(|path| {
            if at_host {
                paths[**path].host == end
            } else {
                paths[**path].target == end
            }
        })
    };
    let used: u64 = on_it().map(|path| paths[*path].speed).sum();
    let port = if at_host {
        &problem.mesh.hosts[end]
    } else {
        &problem.mesh.targets[end]
    };
    let by_speed = u32::try_from(port.capacity.saturating_sub(used) / class).unwrap_or(u32::MAX);
    let sessions = u32::try_from(on_it().count()).unwrap_or(u32::MAX);
    by_speed.min(port.sessions.saturating_sub(sessions))
}

/// Adds the cheapest largest flow of one class.
fn fill(problem: &Problem<'_>, paths: &[usize], class: u64, chosen: &mut Vec<usize>) {
    let costs = Costs::new(problem);
    let mut net = Network::default();
    let (source, sink) = (net.node(), net.node());
    let mesh = problem.mesh;
    let mut nodes = Nodes::default();
    let left = u32::try_from(problem.limit.min(PATHS_MAX).saturating_sub(chosen.len()))
        .unwrap_or(u32::MAX);
    for path in paths {
        let it = &mesh.paths[*path];
        let host_card = nodes.get(&mut net, (0, it.host_card), |net, node| {
            net.convex(
                source,
                node,
                left,
                costs.convex(Term::HostCards, Term::HostCardBalance),
            );
        });
        let host = nodes.get(&mut net, (1, it.host), |net, node| {
            net.arc(
                host_card,
                node,
                room(problem, chosen, class, true, it.host).min(left),
                0,
                None,
            );
        });
        let controller = nodes.get(&mut net, (2, it.controller), |net, node| {
            net.convex(
                node,
                sink,
                left,
                costs.convex(Term::Controllers, Term::ControllerBalance),
            );
        });
        let card = nodes.get(&mut net, (3, it.target_card), |net, node| {
            net.convex(
                node,
                controller,
                left,
                costs.convex(Term::TargetCards, Term::TargetCardBalance),
            );
        });
        let target = nodes.get(&mut net, (4, it.target), |net, node| {
            net.arc(
                node,
                card,
                room(problem, chosen, class, false, it.target).min(left),
                0,
                None,
            );
        });
        let weights = problem.weights(*path);
        let moved = if weights.current {
            0
        } else {
            costs.of(Term::Stability)
        };
        let cost = moved
            + costs.of(Term::HeadRoom) * i128::from(weights.busy)
            + costs.of(Term::Spread) * i128::from(weights.spread);
        net.arc(host, target, 1, cost, Some(*path));
    }
    for _ in 0..left {
        if !net.augment(source, sink) {
            break;
        }
    }
    let full = net.arcs.iter().filter(|arc| arc.room == 0);
    chosen.extend(full.filter_map(|arc| arc.path));
}

#[derive(Default)]
struct Nodes(Vec<((u8, usize), usize)>);

impl Nodes {
    fn get(
        &mut self,
        net: &mut Network,
        name: (u8, usize),
        link: impl FnOnce(&mut Network, usize),
    ) -> usize {
        if let Some((_, node)) = self.0.iter().find(|(it, _)| *it == name) {
            return *node;
        }
        let node = net.node();
        link(net, node);
        self.0.push((name, node));
        node
    }
}

/// Replaces one path, or re-pairs the ends of two, as long as that is better.
fn exchange(problem: &Problem<'_>, chosen: &mut Vec<usize>) {
    let key = |chosen: &[usize]| problem.score(chosen).key(problem.order);
    let mut best = key(chosen);
    for _ in 0..ROUNDS_MAX {
        let before = best;
        for at in 0..=chosen.len() {
            for path in &problem.paths {
                if chosen.contains(path) {
                    continue;
                }
                let mut other = chosen.clone();
                match other.get_mut(at) {
                    Some(old) => *old = *path,
                    None => other.push(*path),
                }
                if other.len() <= problem.limit
                    && problem.ports_hold(&other, *path)
                    && key(&other) > best
                {
                    best = key(&other);
                    *chosen = other;
                }
            }
        }
        for a in 0..chosen.len() {
            for b in a + 1..chosen.len() {
                if let Some(other) = crossed(problem, chosen, (a, b))
                    && key(&other) > best
                {
                    best = key(&other);
                    *chosen = other;
                }
            }
        }
        if best == before {
            return;
        }
    }
}

/// The choice with the target ports of two paths exchanged, if that is possible.
fn crossed(problem: &Problem<'_>, chosen: &[usize], (a, b): (usize, usize)) -> Option<Vec<usize>> {
    let paths = &problem.mesh.paths;
    let (first, second) = (&paths[chosen[a]], &paths[chosen[b]]);
    let find = |host: usize, target: usize| {
        let wanted = |path: &&usize| paths[**path].host == host && paths[**path].target == target;
        problem
            .paths
            .iter()
            .find(wanted)
            .copied()
            .filter(|path| !chosen.contains(path))
    };
    let mut other = chosen.to_vec();
    other[a] = find(first.host, second.target)?;
    other[b] = find(second.host, first.target)?;
    problem.feasible(&other).then_some(other)
}
