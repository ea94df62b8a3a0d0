//! What an administrator is told of a file that could not be made, changed or removed.

use manifest::code::Code;
use manifest::problem::Problem;
use std::io;
use std::path::Path;

/// errno(3): too many open files.
const EMFILE: i32 = 24;

pub(crate) fn failed(error: &io::Error, path: &Path, what: &str) -> Problem {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
    let code = if full {
        Code::PoolFull
    } else {
        Code::BackingFailed
    };
    let problem = Problem::new(code, format!("cannot {what} {}: {error}", path.display()));
    if error.raw_os_error() == Some(EMFILE) {
        return problem.hint(backends::TOO_MANY_FILES);
    }
    problem
}
