//! What a LUN is, for the other nodes that shall have a copy of it: `luns/NAA/lun`, as JSON.

use arbiter::Key;
use manifest::objects::{Lun, NodeNames};
use serde::{Deserialize, Serialize};

const FORMAT: u32 = 1;

/// A LUN as it was made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct LunObject {
    format: u32,
    /// What people called it then.
    pub(crate) name: String,
    /// All of it. Where the other node has no pool of this name, it takes its own.
    pub(crate) lun: Lun,
    /// The node that wrote it, and random digits: no two write the same.
    written_by: String,
    nonce: String,
}

impl LunObject {
    pub(crate) fn new(name: &str, lun: &Lun, (by, nonce): (&str, String)) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            lun: lun.clone(),
            written_by: by.to_owned(),
            nonce,
        }
    }

    /// Nodes that have copies of it.
    pub(crate) fn copies(&self) -> Option<NodeNames> {
        self.lun.storage.copies
    }
}

/// The name that all records of LUNs are below.
pub(crate) fn luns_key() -> Key {
    Key::new("luns").expect("a name")
}

/// The name of a LUN's object; `None`: that is no NAA identifier.
pub(crate) fn key(naa: &str) -> Option<Key> {
    arbiter::role::key(naa)?;
    Key::new(&format!("luns/{}/lun", naa.to_ascii_lowercase()))
}

/// The LUN whose object has this name.
pub(crate) fn naa_of(key: &Key) -> Option<&str> {
    key.as_str().strip_prefix("luns/")?.strip_suffix("/lun")
}

pub(crate) fn encode(object: &LunObject) -> Vec<u8> {
    serde_json::to_vec(object).expect("texts and numbers")
}

/// An object that was stored.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn decode(text: &[u8]) -> Result<LunObject, String> {
    let object: LunObject = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if object.format != FORMAT {
        return Err(format!(
            "it has format {}, and {FORMAT} is known here",
            object.format
        ));
    }
    Ok(object)
}
