//! What goes wrong in a lab.

use std::fmt;

/// Why a lab could not be built, or a test in it could not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabError {
    /// What happened.
    pub what: String,
    /// The next step for whoever runs the lab.
    pub next: String,
    /// What kind of failure it is.
    pub kind: Kind,
}

/// Kinds of failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The words of the command line.
    Usage,
    /// This machine cannot have a lab.
    NotHere,
    /// Anything else.
    Failed,
}

impl LabError {
    /// A failure.
    #[must_use]
    pub fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            next: next.into(),
            kind: Kind::Failed,
        }
    }

    /// This machine cannot have a lab.
    #[must_use]
    pub fn not_here(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            kind: Kind::NotHere,
            ..Self::new(what, next)
        }
    }

    /// The words of the command line are wrong.
    #[must_use]
    pub fn usage(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            kind: Kind::Usage,
            ..Self::new(what, next)
        }
    }

    /// A call of the system failed while `doing`.
    #[must_use]
    pub fn system(doing: &str, error: &std::io::Error) -> Self {
        Self::new(format!("{doing}: {error}"), "see the cause in the message")
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.next)
    }
}

impl std::error::Error for LabError {}
