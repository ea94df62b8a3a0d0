//! Runs as files keep them, and how many.

use crate::run::RunRecord;
use serde::{Deserialize, Serialize};

/// The most runs that are kept.
pub const KEPT_MAX: u64 = 100;

/// The most bytes that they take.
pub const KEPT_BYTES_MAX: u64 = 64 << 20;

/// What the documents are called.
const SCHEMA: u32 = 1;

/// A run as its file has it.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Document {
    schema: u32,
    /// View, seconds and result.
    pub run: RunRecord,
}

impl Document {
    /// Of a run.
    #[must_use]
    pub fn new(run: RunRecord) -> Self {
        Self {
            schema: SCHEMA,
            run,
        }
    }

    /// The bytes of its file.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("documents are made of plain data")
    }

    /// What a file says.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        let head: Head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if head.schema != SCHEMA {
            return Err(format!("it is of version {}", head.schema));
        }
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

/// A run that is kept: its number and what it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Its number.
    pub id: u64,
    /// What it takes, in bytes.
    pub bytes: u64,
}

/// Which runs go so that the others fit, the oldest first; `all` in the order of their numbers. The
/// newest one stays.
#[must_use]
pub fn to_forget(all: &[Stored]) -> Vec<u64> {
    let mut count = all.len() as u64;
    let mut bytes: u64 = all.iter().map(|run| run.bytes).sum();
    let mut out = Vec::new();
    let older = all.split_last().map_or(&[][..], |(_, older)| older);
    for run in older {
        if count <= KEPT_MAX && bytes <= KEPT_BYTES_MAX {
            break;
        }
        count -= 1;
        bytes -= run.bytes;
        out.push(run.id);
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;

    fn stored(count: u64, bytes: u64) -> Vec<Stored> {
        (1..=count).map(|id| Stored { id, bytes }).collect()
    }

    #[test]
    fn the_oldest_go_until_the_others_fit_and_the_newest_stays() {
        assert!(to_forget(&[]).is_empty());
        assert!(to_forget(&stored(KEPT_MAX, 1)).is_empty());
        assert_eq!(to_forget(&stored(KEPT_MAX + 2, 1)), [1, 2]);
        assert_eq!(to_forget(&stored(3, KEPT_BYTES_MAX / 2)), [1]);
        assert!(to_forget(&stored(1, KEPT_BYTES_MAX * 2)).is_empty());
    }

    #[test]
    fn what_another_version_wrote_or_is_damaged_is_named() {
        let why = Document::read(b"{\"schema\":9,\"x\":1}").unwrap_err();
        assert!(why.contains("version 9"), "{why}");
        assert!(Document::read(b"{\"schema\":1}").is_err());
        assert!(Document::read(b"").is_err());
    }
}
