//! Why a run could not be begun.

use std::fmt;
use volume::OpenError;

/// Why a run could not be begun, or its targets not be filled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The options do not fit a target, or there is none, in words.
    Unfit(String),
    /// A target cannot be opened.
    Open {
        /// Its name.
        target: String,
        /// Why.
        error: OpenError,
    },
    /// Something failed that should not, in words.
    Failed(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(why) | Self::Failed(why) => f.write_str(why),
            Self::Open { target, error } => write!(f, "{target}: {error}"),
        }
    }
}

impl std::error::Error for RunError {}
