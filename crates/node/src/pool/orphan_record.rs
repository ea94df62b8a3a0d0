//! Storage that no object names, as its pool describes it.

use manifest::document::DocumentError;
use manifest::orphan::{LunRecord, Orphan};
use std::fmt;
use std::io;

/// Why it is not known what a LUN is.
pub(crate) enum NoRecord {
    /// Nothing says it; where it was inspected.
    Absent(&'static str),
    System(io::Error),
    Document(DocumentError),
    /// It is the record of another LUN.
    Other(String),
}

impl From<DocumentError> for NoRecord {
    fn from(why: DocumentError) -> Self {
        Self::Document(why)
    }
}

impl fmt::Display for NoRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(place) => write!(f, "nothing {place} says what it is"),
            Self::System(error) => write!(f, "{error}"),
            Self::Document(why) => write!(f, "{why}"),
            Self::Other(naa) => write!(f, "its record is LUN {naa}'s"),
        }
    }
}

/// 32 hexadecimal digits, as LUNs' files are named.
pub(crate) fn is_naa(text: &str) -> bool {
    let digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
    text.len() == 32 && text.bytes().all(digit)
}

/// A LUN of this pool that no object names, with its record, or why there is none.
pub(crate) fn orphan_of(
    pool: &str,
    naa: &str,
    record: Result<LunRecord, NoRecord>,
    has_checksums: bool,
) -> Orphan {
    let record = record.and_then(|record| {
        if record.lun.naa == naa {
            return Ok(record);
        }
        Err(NoRecord::Other(record.lun.naa))
    });
    let (record, problem) = match record {
        Ok(record) => (Some(record), None),
        Err(why) => (None, Some(why.to_string())),
    };
    Orphan {
        pool: pool.to_owned(),
        naa: naa.to_owned(),
        file: None,
        size_bytes: record.as_ref().map_or(0, |it| it.lun.size.bytes()),
        name: record.as_ref().map(|it| it.name.clone()),
        removed: record.as_ref().is_some_and(|it| it.removed),
        block_size: record.as_ref().map(|it| it.lun.block_size),
        problem,
        is_foreign: false,
        has_checksums,
        record,
    }
}
