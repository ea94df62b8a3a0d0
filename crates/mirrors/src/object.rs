//! What a LUN is, for the other nodes that shall have a copy of it: `luns/NAA/lun`, as JSON.

use arbiter::Key;
use manifest::objects::{Lun, NodeNames};
use replica::{NodeSlot, RoleRecord};
use serde::{Deserialize, Serialize};

const FORMAT: u32 = 1;

/// Whether the LUN is in service, on all of its nodes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LunState {
    /// It is.
    #[default]
    Served,
    /// It is not, and keeps its data.
    Removed,
    /// Its data is destroyed.
    Purged,
}

/// A LUN as its nodes have agreed on it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct LunObject {
    format: u32,
    /// What people call it.
    pub(crate) name: String,
    /// All of it. Where the other node has no pool of this name, it takes its own.
    pub(crate) lun: Lun,
    /// Whether it is in service.
    #[serde(default)]
    pub(crate) state: LunState,
    /// It was out of service, and is not any more.
    #[serde(default)]
    pub(crate) again: bool,
    /// It was made larger: each node says when it has that size.
    #[serde(default)]
    pub(crate) grown: bool,
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
            state: LunState::Served,
            again: false,
            grown: false,
            written_by: by.to_owned(),
            nonce,
        }
    }

    /// Nodes that have copies of it.
    pub(crate) fn copies(&self) -> Option<NodeNames> {
        self.lun.storage.copies
    }

    /// Says so with somebody else's name.
    pub(crate) fn by(mut self, (by, nonce): (&str, String)) -> Self {
        (self.written_by, self.nonce) = (by.to_owned(), nonce);
        self
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

/// The name under which a node says which version of a LUN's object it has.
pub(crate) fn has_key(naa: &str, slot: NodeSlot) -> Option<Key> {
    arbiter::role::key(naa)?;
    let naa = naa.to_ascii_lowercase();
    Key::new(&format!("luns/{naa}/has/{}", slot.0))
}

/// What a record below `luns` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    /// What a LUN is.
    Object(Box<LunObject>),
    /// Who owns it.
    Role(RoleRecord),
}

/// The LUN that a record is about, and what it says of it; `None`: nothing that is followed.
pub(crate) fn said<'a>(key: &'a Key, text: &[u8]) -> Option<(&'a str, Result<Said, String>)> {
    let (naa, what) = key.as_str().strip_prefix("luns/")?.split_once('/')?;
    let said = match what {
        "lun" => decode(text).map(|it| Said::Object(Box::new(it))),
        "role" => arbiter::role::decode(text).map(Said::Role),
        _ => return None,
    };
    Some((naa, said))
}

/// A node has the LUN as this version of its object says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct HasIt {
    /// As the arbiter counts them.
    pub(crate) version: u64,
    nonce: String,
}

impl HasIt {
    pub(crate) const fn new(version: u64, nonce: String) -> Self {
        Self { version, nonce }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers")
    }

    /// The version; 0 where nothing that can be read says one.
    pub(crate) fn version_of(text: &[u8]) -> u64 {
        serde_json::from_slice(text).map_or(0, |it: Self| it.version)
    }
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
