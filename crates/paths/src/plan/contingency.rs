//! What to do when one element is lost, computed beforehand: failing over is a lookup, not
//! thinking.

use super::choose::{Choice, Solver, choose};
use super::model::Contingency;
use super::options::Options;
use crate::facts::{Element, PathName};
use crate::mesh::Mesh;

/// One row for each element that a path stands on, and for each active path.
pub(crate) fn table(mesh: &Mesh, options: &Options, active: &[usize]) -> Vec<Contingency> {
    let names: Vec<PathName> = active
        .iter()
        .map(|path| mesh.paths[*path].name.clone())
        .collect();
    let mut elements = mesh.all_elements();
    elements.extend(names.iter().map(|name| Element::Path(name.to_string())));
    let elements = elements.into_iter();
    elements
        .map(|lost| row(mesh, options, (active, &names), lost))
        .collect()
}

fn row(
    mesh: &Mesh,
    options: &Options,
    (active, names): (&[usize], &[PathName]),
    lost: Element,
) -> Contingency {
    let dies = active
        .iter()
        .filter(|path| mesh.stands_on(&mesh.paths[**path], &lost));
    let dies: Vec<PathName> = dies.map(|path| mesh.paths[*path].name.clone()).collect();
    let rest = mesh.without(std::slice::from_ref(&lost));
    if dies.is_empty() {
        let bandwidth = active.iter().map(|path| mesh.paths[*path].speed).sum();
        return Contingency {
            lost,
            dies,
            promote: Vec::new(),
            drain: Vec::new(),
            bandwidth,
        };
    }
    let Choice { active, .. } = choose(&rest, options, names, true, Solver::Best);
    let after: Vec<PathName> = active
        .iter()
        .map(|path| rest.paths[*path].name.clone())
        .collect();
    let drain = names
        .iter()
        .filter(|name| !dies.contains(name) && !after.contains(name));
    Contingency {
        bandwidth: active.iter().map(|path| rest.paths[*path].speed).sum(),
        drain: drain.cloned().collect(),
        promote: after
            .into_iter()
            .filter(|name| !names.contains(name))
            .collect(),
        lost,
        dies,
    }
}
