//! Why there is no volume, in words for the operator.

use std::fmt;
use volume::OpenError;

/// What is wrong and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostError {
    /// Whose mistake it is.
    pub kind: Kind,
    /// What is wrong.
    pub cause: String,
    /// What to do about it.
    pub next_step: String,
}

/// Whose mistake it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Of whoever wrote the command, a file that it names, or a URL.
    Usage,
    /// There is no such target or unit.
    NotFound,
    /// The world's.
    Failed,
}

impl HostError {
    pub(crate) fn usage(cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self::new(Kind::Usage, cause, next_step)
    }

    pub(crate) fn not_found(cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, cause, next_step)
    }

    pub(crate) fn failed(cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self::new(Kind::Failed, cause, next_step)
    }

    fn new(kind: Kind, cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self {
            kind,
            cause: cause.into(),
            next_step: next_step.into(),
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.cause, self.next_step)
    }
}

impl std::error::Error for HostError {}

impl From<HostError> for OpenError {
    fn from(error: HostError) -> Self {
        Self {
            cause: error.cause,
            next_step: error.next_step,
        }
    }
}
