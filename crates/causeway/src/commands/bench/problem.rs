//! What may be wrong with a command line or a result.

use bench::{Mistake, RunResult};
use manifest::code::Code;
use manifest::problem::Problem;
use units::text::counted;

/// A mistake of the command line.
pub(super) fn usage(mistake: Mistake) -> Problem {
    Problem::new(Code::BenchUsage, mistake.cause).hint(mistake.next_step)
}

/// Whether all went well.
pub(super) fn verdict(result: &RunResult) -> Result<(), Problem> {
    if result.is_clean() {
        return Ok(());
    }
    let bad = result.verify.as_ref().map_or(0, |tally| tally.bad);
    let mut what = Vec::new();
    if bad > 0 {
        what.push(format!(
            "not what was acknowledged: {} of 512 bytes",
            counted(bad, "block")
        ));
    }
    if result.errors() > 0 {
        let first = result.first_error().unwrap_or("no reason was given");
        what.push(format!(
            "{} failed; the first: {first}",
            counted(result.errors(), "operation")
        ));
    }
    Err(Problem::new(Code::BenchFailed, what.join("; ")))
}
