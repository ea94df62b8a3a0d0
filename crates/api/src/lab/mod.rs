//! Lab beds that are started over the API; [`trial_runner`] builds them.

mod routes;

pub(crate) use routes::paths;

use manifest::problem::Problem;

/// Whether this daemon may start one.
pub(crate) fn may() -> Result<(), Problem> {
    if cfg!(test) {
        // The children of these tests build nothing.
        return Ok(());
    }
    trial_runner::can_have_one()
}
