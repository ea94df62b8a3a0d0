//! The record of a LUN in its pool, with which it can be taken into service where no object
//! names it: after the state directory was lost, or the pool moved here from another machine.
//! `docs/formats/state.md` describes it.

use crate::document::{self, DocumentError};
use crate::objects::Lun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ending of a record's file; before it stands the name of the LUN's own.
pub const RECORD: &str = "record";

/// The longest record that is read back.
pub const RECORD_BYTES_MAX: u64 = 64 << 10;

/// The kind of the file, as its first line says.
const KIND: &str = "lun";

/// The record of a LUN: what the objects say of it, without secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct LunRecord {
    /// The name that the LUN had when the record was written.
    pub name: String,
    /// It was removed, and kept its data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Everything else, as objects have it.
    pub lun: Lun,
}

impl LunRecord {
    /// The bytes of the file.
    ///
    /// # Panics
    /// Never: it is a table of plain values.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("plain words and numbers");
        document::write(KIND, &body)
    }

    /// The record of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(text: &[u8]) -> Result<Self, DocumentError> {
        document::parse(KIND, text)
    }
}

/// Storage of a LUN that no object names.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Orphan {
    /// The pool that holds it.
    pub pool: String,
    /// Its NAA identifier, which its file is named after.
    pub naa: String,
    /// Its file in a pool that is a directory; its image as `POOL/IMAGE` in one of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Bytes that hosts saw, or that its pool keeps for it.
    pub size_bytes: u64,
    /// The name that it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// It was removed, and kept its data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Bytes in its logical blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<u32>,
    /// Why its record cannot be used, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// It was never a LUN: it is another's, or nobody's yet. Nobody is asked to do anything about
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
    /// Its map of checksums is there.
    #[serde(default)]
    pub has_checksums: bool,
    /// What its record says, where it can be read.
    #[serde(skip)]
    pub record: Option<LunRecord>,
}

impl Orphan {
    /// As people name it.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.naa)
    }

    /// `what` names it: its name, its NAA identifier, or its file.
    #[must_use]
    pub fn is(&self, what: &str) -> bool {
        let file = |path: &String| {
            let path = std::path::Path::new(path);
            let given = std::path::Path::new(what);
            path == given || path.file_name() == Some(given.as_os_str())
        };
        self.name.as_deref() == Some(what)
            || self.naa.eq_ignore_ascii_case(what)
            || self.file.as_ref().is_some_and(file)
    }
}

/// What shall be adopted.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct AdoptRequest {
    /// All that can be.
    #[serde(default)]
    pub all: bool,
    /// These: by name, NAA identifier or file.
    #[serde(default)]
    pub files: Vec<String>,
    /// Only of this pool.
    #[serde(default)]
    pub pool: Option<String>,
    /// Its new name, of one.
    #[serde(default)]
    pub name: Option<String>,
    /// Bytes in its logical blocks, of one that has no record.
    #[serde(default)]
    pub block_size: Option<u32>,
    /// Bytes in its physical blocks, of one that has no record.
    #[serde(default)]
    pub physical_block_size: Option<u32>,
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::objects::{Backing, fixture};

    #[test]
    fn a_record_is_read_as_it_was_written_and_never_when_it_is_damaged() {
        let record = LunRecord {
            name: "vm01".to_owned(),
            removed: true,
            lun: Lun {
                backing: Backing::Pool("default".to_owned()),
                ..fixture::lun()
            },
        };
        let text = record.encode();
        assert!(text.starts_with(b"causeway lun 1 sha256 "));
        assert_eq!(LunRecord::decode(&text), Ok(record));
        for end in 0..text.len() {
            assert!(LunRecord::decode(&text[..end]).is_err(), "{end} bytes");
        }
        for at in 0..text.len() {
            let mut hurt = text.clone();
            hurt[at] ^= 1;
            assert!(LunRecord::decode(&hurt).is_err(), "byte {at}");
        }
    }
}
