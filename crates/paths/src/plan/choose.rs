//! The active set.

use super::model::Method;
use super::options::Options;
use super::score::{Order, Problem};
use super::{exact, flow};
use crate::facts::PathName;
use crate::mesh::{Mesh, TIERS_WITH_IO};

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
