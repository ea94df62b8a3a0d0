//! Lab beds that are started over the API; [`trial_runner`] builds them.

mod routes;

pub(crate) use routes::paths;

use manifest::problem::Problem;

/// In tests: a node of this name cannot have any.
#[cfg(test)]
pub(crate) const NO_LAB: &str = "no-lab";

/// What says whether a daemon may start one.
#[cfg(not(test))]
pub(crate) fn may(_: &str) -> fn() -> Result<(), Problem> {
    trial_runner::can_have_one
}

/// The children of tests build nothing.
#[cfg(test)]
pub(crate) fn may(node: &str) -> fn() -> Result<(), Problem> {
    let refused = || {
        let code = manifest::code::Code::LabNotHere;
        Err(Problem::new(code, "a lab needs root"))
    };
    if node == NO_LAB { refused } else { || Ok(()) }
}
