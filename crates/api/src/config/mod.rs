//! The settings of the node: shown, changed where that is allowed, and a restart that brings them
//! into force.

mod refusals;
mod reload;
mod routes;

#[cfg(test)]
mod test;

use crate::describe::Paths;

pub(crate) use routes::Settings;

pub(crate) fn paths(paths: Paths) -> Paths {
    reload::paths(routes::paths(paths))
}
