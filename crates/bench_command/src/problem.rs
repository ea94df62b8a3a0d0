//! What may be wrong with a command line or a result.

use bench::{Mistake, RunError, RunResult};
use manifest::code::Code;
use manifest::problem::Problem;
use units::text::counted;

/// A mistake of the command line.
pub(crate) fn usage(mistake: Mistake) -> Problem {
    Problem::new(Code::BenchUsage, mistake.cause).hint(mistake.next_step)
}

/// Whose mistake it is that a run could not be begun.
pub(crate) fn of_run(error: RunError) -> Problem {
    let cause = error.to_string();
    match error {
        RunError::Unfit(_) => Problem::new(Code::BenchUsage, cause)
            .hint("see -b, -B, -f and -r in `causeway bench --help`"),
        RunError::Open { target, error } => {
            let cause = format!("{target}: {}", error.cause);
            Problem::new(Code::TargetCannotBeOpened, cause).hint(error.next_step)
        }
        RunError::Failed(_) => Problem::new(Code::BenchFailed, cause),
    }
}

/// Whether all went well.
pub(crate) fn verdict(result: &RunResult) -> Result<(), Problem> {
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

#[cfg(test)]
mod test {
    use super::*;
    use volume::{OpenError, OpenErrorKind};

    #[test]
    fn a_target_that_cannot_be_opened_is_no_mistake_in_the_options() {
        let error = OpenError {
            kind: OpenErrorKind::Missing,
            cause: "it is gone".to_owned(),
            next_step: "bring it back".to_owned(),
        };
        let target = "/dev/x".to_owned();
        let problem = of_run(RunError::Open { target, error });
        assert_eq!(problem.code, Code::TargetCannotBeOpened);
        assert_eq!(problem.hint, "bring it back");
        let unfit = of_run(RunError::Unfit("too large".to_owned()));
        assert_eq!(unfit.code, Code::BenchUsage);
        let failed = of_run(RunError::Failed("a core is gone".to_owned()));
        assert_eq!(failed.code, Code::BenchFailed);
    }
}
