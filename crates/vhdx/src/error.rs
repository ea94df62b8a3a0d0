//! Why an image is refused, or an operation does not go on.

use formats::Damage;
use std::fmt;

/// Which structure of an image something is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// The file identifier.
    Identifier,
    /// The headers.
    Headers,
    /// The region tables.
    Regions,
    /// The metadata region.
    Metadata,
    /// The block allocation table.
    Bat,
    /// A sector bitmap.
    Bitmap,
    /// The log.
    Log,
    /// The parent locator.
    Locator,
    /// The footer of a VHD.
    Footer,
    /// The header of a dynamic or differencing VHD.
    VhdHeader,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Identifier => "file identifier",
            Self::Headers => "headers",
            Self::Regions => "region tables",
            Self::Metadata => "metadata",
            Self::Bat => "block allocation table",
            Self::Bitmap => "sector bitmap",
            Self::Log => "log",
            Self::Locator => "parent locator",
            Self::Footer => "footer",
            Self::VhdHeader => "dynamic disk header",
        })
    }
}

/// Why an operation ended without what it was to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The file could not be read, written or synced: whoever did it knows why.
    Io,
    /// Nothing was done, and whoever was asked knows why: there is no space, or he may write no
    /// more.
    /// The image is as it was.
    NotDone,
    /// An earlier write or sync failed, so that nobody knows what is in the file: open it again.
    Broken,
    /// The file is too short to have what it should have there.
    Truncated {
        /// What.
        part: Part,
    },
    /// A structure is damaged, and no copy of it is good.
    Damaged {
        /// Which.
        part: Part,
        /// How.
        damage: Damage,
    },
    /// The image has a feature that this program does not know, and that must be known.
    Unknown {
        /// Where it is named.
        part: Part,
        /// What it is.
        what: String,
    },
    /// The image is marked as having changes in its log, and there is no valid sequence in it.
    LogLost,
    /// The chain of files does not fit together.
    Parent(ParentMismatch),
    /// A block cannot be where the table says.
    BadBlock {
        /// The block.
        block: u64,
        /// Why.
        why: &'static str,
    },
    /// Somebody else has opened the image for writing since we did.
    ForeignWriter,
    /// It was opened for reading alone.
    ReadOnly,
    /// The range is not within the disk, or not of whole sectors.
    OutOfRange,
    /// What was asked for cannot be.
    Refused(&'static str),
    /// Data lies beyond the size that was asked for.
    InUse {
        /// The last block that holds data.
        block: u64,
    },
}

/// Why a file is not the parent of a differencing image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParentMismatch {
    /// It was written after the child was made: its identifier is another one.
    Linkage,
    /// Its disk has another size.
    Size,
    /// Its disk has other sectors.
    Sector,
    /// The child has none, or the chain ends too early.
    Count,
}

impl fmt::Display for ParentMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linkage => "the parent was changed after its child was made",
            Self::Size => "parent and child differ in size",
            Self::Sector => "parent and child differ in their sectors",
            Self::Count => "the chain of parents is not whole",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io => write!(f, "the file cannot be read, written or synced"),
            Self::NotDone => write!(f, "it was not done: the image is as it was"),
            Self::Broken => write!(f, "an earlier write or sync failed: open the image again"),
            Self::Truncated { part } => {
                write!(f, "the file is too short: it ends before its {part}")
            }
            Self::Damaged { part, damage } => match damage {
                Damage::Foreign => write!(f, "{part}: not there, its signature is missing"),
                Damage::Checksum => write!(f, "{part}: its checksum does not fit"),
                Damage::Version { found, read } => {
                    write!(
                        f,
                        "{part}: it has version {found}, and version {read} is read"
                    )
                }
                Damage::Contradiction(what) => write!(f, "{part}: {what}"),
            },
            Self::Unknown { part, what } => {
                write!(f, "{part}: {what} is required and unknown")
            }
            Self::LogLost => write!(
                f,
                "log: the header names one, and no whole sequence is in it"
            ),
            Self::Parent(why) => write!(f, "{why}"),
            Self::BadBlock { block, why } => write!(f, "block {block}: {why}"),
            Self::ForeignWriter => write!(f, "another program has opened the image for writing"),
            Self::ReadOnly => write!(f, "the image was opened for reading alone"),
            Self::OutOfRange => write!(f, "not whole sectors within the disk"),
            Self::Refused(why) => f.write_str(why),
            Self::InUse { block } => {
                write!(
                    f,
                    "block {block} holds data beyond the size that was asked for"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// A damaged structure.
pub(crate) const fn damaged(part: Part, damage: Damage) -> Error {
    Error::Damaged { part, damage }
}

/// A structure that says what cannot be.
pub(crate) const fn contradiction(part: Part, what: &'static str) -> Error {
    damaged(part, Damage::Contradiction(what))
}
