//! A plan from facts.

use super::choose::{Solver, choose};
use super::model::Plan;
use super::options::Options;
use super::{contingency, explain, standby};
use crate::facts::{Element, Facts, PathName, Speed};
use crate::mesh::Mesh;

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

pub(super) fn plan_mesh(
    mesh: &Mesh,
    options: &Options,
    current: &[PathName],
    sticky: bool,
) -> Plan {
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
