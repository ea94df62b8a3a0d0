//! Standbys: those that share the fewest failure domains with the active paths first, and which of
//! them are kept warm.

use super::model::Contingency;
use super::options::Options;
use crate::facts::Element;
use crate::mesh::Mesh;

/// A path that is not active.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standby {
    pub(crate) path: usize,
    /// Its elements that active paths stand on too.
    pub(crate) shares: u8,
    pub(crate) hot: bool,
}

/// All paths that are not active, best first.
pub(crate) fn rank(
    mesh: &Mesh,
    options: &Options,
    active: &[usize],
    table: &[Contingency],
) -> Vec<Standby> {
    let others = (0..mesh.paths.len()).filter(|path| !active.contains(path));
    let mut all: Vec<Standby> = others
        .map(|path| Standby {
            path,
            shares: shares(mesh, active, path),
            hot: false,
        })
        .collect();
    all.sort_by_key(|it| {
        let path = &mesh.paths[it.path];
        (path.tier, it.shares, u64::MAX - path.speed, path.spread)
    });
    let room = usize::from(options.max_sessions).saturating_sub(active.len());
    for path in wanted_hot(mesh, active, table, &all).into_iter().take(room) {
        if let Some(it) = all.iter_mut().find(|it| it.path == path) {
            it.hot = true;
        }
    }
    all.sort_by_key(|it| !it.hot);
    all
}

fn shares(mesh: &Mesh, active: &[usize], path: usize) -> u8 {
    let elements = mesh.elements(&mesh.paths[path]);
    let shared = |element: &&Element| {
        active
            .iter()
            .any(|it| mesh.stands_on(&mesh.paths[*it], element))
    };
    u8::try_from(elements.iter().filter(shared).count()).unwrap_or(u8::MAX)
}

/// Most useful first: one that survives each element that active paths stand on, then what single
/// losses promote.
fn wanted_hot(
    mesh: &Mesh,
    active: &[usize],
    table: &[Contingency],
    ranked: &[Standby],
) -> Vec<usize> {
    let mut hot: Vec<usize> = Vec::new();
    let needed = table.iter().filter(|row| !row.dies.is_empty());
    for row in needed.clone() {
        let survives = |path: usize| !mesh.stands_on(&mesh.paths[path], &row.lost);
        if hot.iter().any(|path| survives(*path)) {
            continue;
        }
        let best = ranked.iter().map(|it| it.path).find(|path| survives(*path));
        hot.extend(best);
    }
    let promoted = |path: usize| {
        let rows = needed
            .clone()
            .filter(|row| row.promote.contains(&mesh.paths[path].name));
        rows.count()
    };
    let mut rest: Vec<(usize, usize)> = Vec::new();
    for it in ranked.iter().filter(|it| !hot.contains(&it.path)) {
        let count = promoted(it.path);
        if count > 0 && !active.contains(&it.path) {
            rest.push((count, it.path));
        }
    }
    rest.sort_by_key(|(count, _)| usize::MAX - count);
    hot.extend(rest.into_iter().map(|(_, path)| path));
    hot
}
