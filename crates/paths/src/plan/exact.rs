//! The exact optimum, for meshes up to 8 x 8.
//!
//! Dynamic programming over the target's ports in order of controller and card. What the rest of
//! the choice can feel of the ports done so far is: how much of each host port is used, how many
//! paths each host card and each fabric has, and how many the controller and card in progress have.
//! Of all partial choices that agree in that, only the best can be part of an optimum, because
//! every term grows by the same amount whatever follows.

use super::score::{Counts, Problem, Score};
use std::collections::BTreeMap;

/// Ports on either side up to which an optimum is sought exactly.
pub(crate) const EXACT_PORTS: usize = 8;

/// Partial choices kept for one target port. Only teams on both sides, and mixed speeds without a
/// common measure, get there; the flow takes over then.
const STATES_MAX: usize = 40_000;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Key {
    used: [u64; EXACT_PORTS],
    host_cards: [u8; EXACT_PORTS],
    fabrics: [u8; EXACT_PORTS],
    controller: u8,
    target_card: u8,
    paths: u8,
}

#[derive(Clone, Copy)]
struct State {
    score: Score,
    /// In the layer before.
    parent: usize,
    /// Which of the port's paths were taken.
    taken: u64,
}

/// One target port with its paths, by small numbers.
struct Layer {
    target: usize,
    paths: Vec<(usize, Slots)>,
    new_controller: bool,
    new_card: bool,
}

#[derive(Clone, Copy)]
struct Slots {
    host: usize,
    host_card: usize,
    fabric: usize,
}

/// The best choice, or `None` where the mesh is too large or too irregular for this method.
pub(crate) fn solve(problem: &Problem<'_>) -> Option<Vec<usize>> {
    let layers = layers(problem)?;
    let mut done: Vec<Vec<(Key, State)>> = Vec::new();
    let start = State {
        score: Score::default(),
        parent: 0,
        taken: 0,
    };
    done.push(vec![(Key::default(), start)]);
    for layer in &layers {
        let mut next = BTreeMap::new();
        for (parent, (key, state)) in done.last()?.iter().enumerate() {
            let mut key = *key;
            if layer.new_controller {
                key.controller = 0;
            }
            if layer.new_card {
                key.target_card = 0;
            }
            let state = State {
                score: state.score,
                parent,
                taken: 0,
            };
            Step {
                problem,
                layer,
                next: &mut next,
            }
            .extend(0, (key, state), (0, 0));
            if next.len() > STATES_MAX {
                return None;
            }
        }
        done.push(next.into_iter().collect());
    }
    Some(trace_back(problem, &layers, &done))
}

struct Step<'a, 'b> {
    problem: &'a Problem<'b>,
    layer: &'a Layer,
    next: &'a mut BTreeMap<Key, State>,
}

impl Step<'_, '_> {
    /// Decides about the port's paths from `at` on; `used` and `sessions` are the port's so far.
    fn extend(&mut self, at: usize, (key, state): (Key, State), (used, sessions): (u64, u32)) {
        let Some((path, slots)) = self.layer.paths.get(at) else {
            self.keep(key, state);
            return;
        };
        self.extend(at + 1, (key, state), (used, sessions));
        let mesh = self.problem.mesh;
        let (port, speed) = (&mesh.targets[self.layer.target], mesh.paths[*path].speed);
        let host_used = key.used[slots.host].saturating_add(speed);
        let full = usize::from(key.paths) >= self.problem.limit
            || used.saturating_add(speed) > port.capacity
            || sessions >= port.sessions
            || host_used > mesh.hosts[mesh.paths[*path].host].capacity;
        if full {
            return;
        }
        let before = Counts {
            host_card: key.host_cards[slots.host_card],
            controller: key.controller,
            target_card: key.target_card,
            fabric: key.fabrics[slots.fabric],
        };
        let mut with = key;
        with.used[slots.host] = host_used;
        with.host_cards[slots.host_card] += 1;
        with.fabrics[slots.fabric] += 1;
        with.controller += 1;
        with.target_card += 1;
        with.paths += 1;
        let state = State {
            score: state.score.with(&self.problem.weights(*path), &before),
            taken: state.taken | 1 << at,
            ..state
        };
        self.extend(at + 1, (with, state), (used + speed, sessions + 1));
    }

    fn keep(&mut self, key: Key, state: State) {
        let order = self.problem.order;
        let kept = self.next.entry(key).or_insert(state);
        if state.score.key(order) > kept.score.key(order) {
            *kept = state;
        }
    }
}

fn layers(problem: &Problem<'_>) -> Option<Vec<Layer>> {
    let paths = &problem.mesh.paths;
    let distinct = |of: &dyn Fn(usize) -> usize| {
        let mut all: Vec<usize> = problem.paths.iter().map(|path| of(*path)).collect();
        all.sort_unstable();
        all.dedup();
        (all.len() <= EXACT_PORTS).then_some(all)
    };
    let hosts = distinct(&|path| paths[path].host)?;
    let cards = distinct(&|path| paths[path].host_card)?;
    let fabrics = distinct(&|path| paths[path].fabric)?;
    distinct(&|path| paths[path].target)?;
    let slot = |all: &[usize], value: usize| all.iter().position(|it| *it == value);
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    for path in &problem.paths {
        let it = &paths[*path];
        order.push((it.controller, it.target_card, it.target));
    }
    order.sort_unstable();
    order.dedup();
    let mut layers: Vec<Layer> = Vec::new();
    let mut before: Option<(usize, usize)> = None;
    for (controller, card, target) in order {
        let of_port = problem
            .paths
            .iter()
            .filter(|path| paths[**path].target == target);
        let with_slots = of_port.map(|path| {
            let it = &paths[*path];
            let slots = Slots {
                host: slot(&hosts, it.host)?,
                host_card: slot(&cards, it.host_card)?,
                fabric: slot(&fabrics, it.fabric)?,
            };
            Some((*path, slots))
        });
        layers.push(Layer {
            target,
            paths: with_slots.collect::<Option<_>>()?,
            new_controller: before.is_none_or(|it| it.0 != controller),
            new_card: before != Some((controller, card)),
        });
        before = Some((controller, card));
    }
    Some(layers)
}

fn trace_back(problem: &Problem<'_>, layers: &[Layer], done: &[Vec<(Key, State)>]) -> Vec<usize> {
    let order = problem.order;
    let last = done.last().into_iter().flatten();
    let best = last.max_by_key(|(_, state)| state.score.key(order));
    let mut chosen = Vec::new();
    let mut state = best.map(|(_, state)| *state);
    for (layer, states) in layers.iter().zip(done).rev() {
        let Some(now) = state else { break };
        let taken = layer.paths.iter().enumerate();
        let taken = taken.filter(|(at, _)| now.taken >> at & 1 == 1);
        chosen.extend(taken.map(|(_, (path, _))| *path));
        state = states.get(now.parent).map(|(_, state)| *state);
    }
    chosen.sort_unstable();
    chosen
}
