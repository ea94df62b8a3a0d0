//! What an administrator reads of a file that could not be made, changed or removed.

use manifest::code::Code;
use manifest::problem::Problem;
use std::io;
use std::path::Path;
use volume::{OpenError, OpenErrorKind};

/// errno(3): too many open files.
const EMFILE: i32 = 24;

/// errno(3): file too large.
const EFBIG: i32 = 27;

pub(crate) fn failed(error: &io::Error, path: &Path, what: &str) -> Problem {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
    let code = if full {
        Code::PoolFull
    } else {
        Code::BackingFailed
    };
    let problem = Problem::new(code, format!("cannot {what} {}: {error}", path.display()));
    if error.raw_os_error() == Some(EFBIG) {
        return problem.hint(
            "the file system there has no files of that size (ext4: 16 TiB at most): make the LUN smaller, or put the pool on \
             XFS",
        );
    }
    if error.raw_os_error() == Some(EMFILE) {
        return problem.hint(backends::TOO_MANY_FILES);
    }
    problem
}

/// An operator's problem as the API reports it.
pub(crate) fn backing_failed(error: &OpenError) -> Problem {
    Problem::new(Code::BackingFailed, error.cause.clone()).hint(error.next_step.clone())
}

/// An operator's problem with a pool, which may be full.
pub(crate) fn of_pool(error: &OpenError) -> Problem {
    let problem = backing_failed(error);
    if error.kind == OpenErrorKind::NoSpace {
        return Problem::new(Code::PoolFull, problem.detail.clone()).hint(problem.hint.clone());
    }
    problem
}
