//! What is wrong with what was read.

use std::fmt;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// Something else, or nothing, was written there.
    Foreign,
    /// It was written by another version of the program.
    Version {
        /// The version of the format that it has.
        found: u32,
        /// The version that this program reads.
        read: u32,
    },
    /// The checksum does not fit.
    Checksum,
    /// The checksum fits, but what it says cannot be.
    Contradiction(&'static str),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => write!(f, "nothing of this program's was written there"),
            Self::Version { found, read } => write!(
                f,
                "it has version {found} of the format, and this program reads version {read}"
            ),
            Self::Checksum => write!(f, "its checksum does not fit"),
            Self::Contradiction(what) => write!(f, "it contradicts itself: {what}"),
        }
    }
}
