//! Why something was not done.

use rusqlite::ErrorCode;
use std::fmt;

/// Why a closure has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failed {
    /// A newer program has made the file: `found` is its version, `known` the newest that this
    /// program knows.
    Newer {
        /// The file's version.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// The file, or what is asked of it.
    File(String),
    /// Too much waits already.
    Busy,
    /// It was closed.
    Closed,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { found, known } => write!(
                f,
                "a newer program has made it (version {found}, this one knows up to {known}): run that program, or \
                 move the file away to begin a new one"
            ),
            Self::File(why) => f.write_str(why),
            Self::Busy => f.write_str("the disk is slower than what is recorded"),
            Self::Closed => f.write_str("it was closed"),
        }
    }
}

impl std::error::Error for Failed {}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::File(error.to_string())
    }
}

/// What an error says of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Nothing: the closure asked for something that is not so.
    OfTheWork,
    /// It cannot be had or written now.
    Failing,
    /// It is not what was written.
    Damaged,
}

pub(crate) fn kind(error: &rusqlite::Error) -> Kind {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Kind::Damaged,
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::FileLockingProtocolFailed,
        ) => Kind::Failing,
        _ => Kind::OfTheWork,
    }
}
