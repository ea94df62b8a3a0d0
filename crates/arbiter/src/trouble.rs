//! Why an arbiter does not answer, in words for whoever must mend it.

use std::fmt;

/// What kind of trouble it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TroubleKind {
    /// Nothing came in time.
    Silent,
    /// Nobody is there, or the connection ended.
    Unreachable,
    /// It is there, and has no majority of its members, or is too busy.
    NotReady,
    /// More is asked at once than is kept waiting.
    Busy,
    /// It answers what nobody understands.
    Garbled,
    /// It does not take what it was asked.
    Refuses,
    /// It is full.
    Full,
    /// One of the two does not believe the other's certificate.
    Certificate,
    /// This node may not read or write there.
    NotAllowed,
    /// A file on the way cannot be read or written.
    File,
    /// It is another store than before.
    OtherStore,
    /// It holds less than it did: it was emptied, or restored from an old backup.
    SetBack,
}

impl TroubleKind {
    /// It lasts until somebody does something about it, so asking again soon is of no use.
    #[must_use]
    pub const fn lasts(self) -> bool {
        match self {
            Self::Silent | Self::Unreachable | Self::NotReady | Self::Busy | Self::Garbled => false,
            Self::Refuses
            | Self::Full
            | Self::Certificate
            | Self::NotAllowed
            | Self::File
            | Self::OtherStore
            | Self::SetBack => true,
        }
    }
}

/// Trouble, its cause, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// For whoever decides by it.
    pub kind: TroubleKind,
    /// What happened, where.
    pub cause: String,
    /// What somebody can do.
    pub next_step: String,
}

impl Trouble {
    /// Trouble of this kind.
    #[must_use]
    pub fn new(kind: TroubleKind, cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self {
            kind,
            cause: cause.into(),
            next_step: next_step.into(),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; next step: {}", self.cause, self.next_step)
    }
}

impl std::error::Error for Trouble {}
