//! Why there is no volume, in words for the operator.

use std::fmt;
use volume::{OpenError, OpenErrorKind};

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
    /// The target does not take the proof of who we are.
    Refused,
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

    pub(crate) fn refused(cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self::new(Kind::Refused, cause, next_step)
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
            kind: match error.kind {
                Kind::NotFound => OpenErrorKind::Missing,
                // It is there, and what the operator wrote keeps it from being used.
                Kind::Usage | Kind::Refused => OpenErrorKind::Refused,
                Kind::Failed => OpenErrorKind::Other,
            },
            cause: error.cause,
            next_step: error.next_step,
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn whose_mistake_it_is_stays_known_to_whoever_opens_a_volume() {
        for (error, kind) in [
            (HostError::not_found("", ""), OpenErrorKind::Missing),
            (HostError::usage("", ""), OpenErrorKind::Refused),
            (HostError::refused("", ""), OpenErrorKind::Refused),
            (HostError::failed("", ""), OpenErrorKind::Other),
        ] {
            assert_eq!(OpenError::from(error).kind, kind);
        }
    }
}
