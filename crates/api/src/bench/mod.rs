//! Bench runs that are started over the API; [`trial_runner`] runs them.

mod routes;

pub(crate) use routes::{Since, paths};

use std::path::PathBuf;

/// The program that runs.
pub(crate) fn program() -> PathBuf {
    if cfg!(test) {
        // It says what a bench or a lab would say.
        concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/test_child.sh").into()
    } else {
        "/proc/self/exe".into()
    }
}
