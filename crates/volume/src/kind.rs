//! Kinds of operations.

use crate::Op;

/// Kinds of operations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OpKind {
    /// [`Op::Read`].
    Read,
    /// [`Op::Write`].
    Write,
    /// [`Op::WriteZeroes`].
    WriteZeroes,
    /// [`Op::Discard`].
    Discard,
    /// [`Op::CompareAndWrite`].
    CompareAndWrite,
    /// [`Op::Extents`].
    Extents,
    /// [`Op::Flush`].
    Flush,
}

impl OpKind {
    /// Every kind, in the order of the counters.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Write,
        Self::WriteZeroes,
        Self::Discard,
        Self::CompareAndWrite,
        Self::Extents,
        Self::Flush,
    ];

    /// The kind of `op`.
    #[must_use]
    pub fn of(op: &Op) -> Self {
        match op {
            Op::Read { .. } => Self::Read,
            Op::Write { .. } => Self::Write,
            Op::WriteZeroes { .. } => Self::WriteZeroes,
            Op::Discard { .. } => Self::Discard,
            Op::CompareAndWrite { .. } => Self::CompareAndWrite,
            Op::Extents { .. } => Self::Extents,
            Op::Flush => Self::Flush,
        }
    }

    /// Its name in metrics and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteZeroes => "write_zeroes",
            Self::Discard => "discard",
            Self::CompareAndWrite => "compare_and_write",
            Self::Extents => "extents",
            Self::Flush => "flush",
        }
    }
}
