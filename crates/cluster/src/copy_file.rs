//! What a copy keeps of itself: the role record that it knows, and what it promised.

use crate::removed::Removed;
use arbiter::role;
use env::durable::{read_file, replace_file, settle_dir};
use env::{CoreHandle, LocalFuture};
use manifest::document;
use replica::{CopyId, Durable, Epoch, NodeSlot, Revision};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use volume::Cut;

/// What kind of state file it is.
const KIND: &str = "copy";

/// Bytes of the file at most: those of a unit's state are two digits each.
const BYTES_MAX: u64 = (4 << 20) + 2 * peer::UNIT_BYTES_MAX as u64;

/// Where a copy stores what it must not forget.
pub trait CopyStore {
    /// Stores it; when this is answered, it survives a power cut.
    fn keep(&self, durable: &Durable) -> LocalFuture<io::Result<()>>;

    /// Stores what hosts set of its unit, likewise.
    fn keep_state(&self, state: &StoredState) -> LocalFuture<io::Result<()>>;

    /// What was stored of that; `None`: nothing yet.
    fn kept_state(&self) -> Option<StoredState>;

    /// Stores what copies lack that were removed from those in sync, likewise.
    fn keep_removed(&self, removed: &[Removed]) -> LocalFuture<io::Result<()>>;

    /// What was stored of that.
    fn kept_removed(&self) -> Vec<Removed>;
}

/// What hosts set of a unit, as this node has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredState {
    /// The epoch of the owner that said it,
    pub epoch: Epoch,
    /// and how many changes of it there were.
    pub version: u64,
    /// The state.
    pub bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    revision: u64,
    promised: u64,
    /// Its data is all there.
    whole: bool,
    /// What it had when that was so last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    base: Vec<u64>,
    record: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<WrittenState>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<WrittenRemoved>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRemoved {
    node: u8,
    below: Vec<u64>,
    cut: u64,
    /// The first part of each range, and the first one behind it.
    parts: Vec<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenState {
    epoch: u64,
    version: u64,
    /// In hexadecimal digits.
    bytes: String,
}

fn digits(bytes: &[u8]) -> String {
    let digit = |it: u8| char::from(b"0123456789abcdef"[usize::from(it)]);
    let both = bytes.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]);
    both.collect()
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok()?;
        (text.len() == 2).then(|| u8::from_str_radix(text, 16).ok())?
    });
    pairs.collect()
}

fn invalid(why: &dyn ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

fn write_removed(it: &Removed) -> WrittenRemoved {
    WrittenRemoved {
        node: it.node.0,
        below: it.below.clone(),
        cut: it.cut.0,
        parts: it.parts.iter().map(|it| (it.start, it.end)).collect(),
    }
}

fn read_removed(it: WrittenRemoved) -> io::Result<Removed> {
    let in_order = it.parts.iter().all(|(start, end)| start < end);
    let is_node = it.node < replica::NODES_MAX;
    if !in_order || !is_node {
        return Err(invalid(&"what a copy lacks cannot be"));
    }
    Ok(Removed {
        node: NodeSlot(it.node),
        below: it.below,
        cut: Cut(it.cut),
        parts: it
            .parts
            .into_iter()
            .map(|(start, end)| start..end)
            .collect(),
    })
}

/// What a file holds.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Held {
    durable: Durable,
    state: Option<StoredState>,
    removed: Vec<Removed>,
}

fn encode(held: &Held) -> io::Result<Vec<u8>> {
    let Held {
        durable,
        state,
        removed,
    } = held;
    let (revision, record) = &durable.known;
    let written = Written {
        revision: revision.0,
        promised: durable.promised.0,
        whole: durable.is_whole,
        base: durable.base.clone(),
        record: serde_json::from_slice(&role::encode(record)).map_err(|why| invalid(&why))?,
        unit: state.as_ref().map(|it| WrittenState {
            epoch: it.epoch.0,
            version: it.version,
            bytes: digits(&it.bytes),
        }),
        removed: removed.iter().map(write_removed).collect(),
    };
    let body = serde_json::to_vec(&written).map_err(|why| invalid(&why))?;
    Ok(document::write(KIND, &body))
}

fn decode(text: &[u8]) -> io::Result<Held> {
    let written: Written = document::parse(KIND, text).map_err(|why| invalid(&why))?;
    let record = serde_json::to_vec(&written.record).map_err(|why| invalid(&why))?;
    let record = role::decode(&record).map_err(|why| invalid(&why))?;
    let state = written.unit.map(|it| {
        let bytes = bytes_of(&it.bytes).ok_or_else(|| invalid(&"the state of its unit is none"));
        Ok::<_, io::Error>(StoredState {
            epoch: Epoch(it.epoch),
            version: it.version,
            bytes: bytes?,
        })
    });
    let durable = Durable {
        known: (Revision(written.revision), record),
        promised: Epoch(written.promised),
        is_whole: written.whole,
        base: written.base,
    };
    let removed = written.removed.into_iter().map(read_removed);
    Ok(Held {
        durable,
        state: state.transpose()?,
        removed: removed.collect::<io::Result<_>>()?,
    })
}

/// A file of its own for each copy, in the state directory.
pub struct CopyFile {
    core: CoreHandle,
    path: PathBuf,
    /// What it holds.
    durable: RefCell<Option<Durable>>,
    state: RefCell<Option<StoredState>>,
    removed: RefCell<Vec<Removed>>,
}

impl CopyFile {
    /// Keeps it in this file.
    #[must_use]
    pub fn new(core: &CoreHandle, path: PathBuf) -> Self {
        Self {
            core: Rc::clone(core),
            path,
            durable: RefCell::default(),
            state: RefCell::default(),
            removed: RefCell::default(),
        }
    }

    /// What was kept.
    ///
    /// # Errors
    /// It cannot be read, or is none that this program wrote.
    pub async fn kept(&self) -> io::Result<Durable> {
        let files = self.core.files();
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        settle_dir(&*files, dir).await?;
        let held = decode(&read_file(&*files, &self.path, BYTES_MAX).await?)?;
        self.durable.replace(Some(held.durable.clone()));
        self.state.replace(held.state);
        self.removed.replace(held.removed);
        Ok(held.durable)
    }

    /// The copy of this node, as it was kept or read last.
    #[must_use]
    pub fn copy_of(&self, node: NodeSlot) -> Option<CopyId> {
        let durable = self.durable.borrow();
        durable.as_ref()?.known.1.copy_of(node)
    }

    fn store(&self) -> LocalFuture<io::Result<()>> {
        let durable = self.durable.borrow().clone();
        let held = durable.map(|durable| Held {
            durable,
            state: self.state.borrow().clone(),
            removed: self.removed.borrow().clone(),
        });
        let held = held.ok_or_else(|| invalid(&"it has no record"));
        let text = held.and_then(|it| encode(&it));
        let (files, path) = (self.core.files(), self.path.clone());
        Box::pin(async move { replace_file(&*files, &path, &text?).await })
    }
}

impl CopyStore for CopyFile {
    fn keep(&self, durable: &Durable) -> LocalFuture<io::Result<()>> {
        self.durable.replace(Some(durable.clone()));
        self.store()
    }

    fn keep_state(&self, state: &StoredState) -> LocalFuture<io::Result<()>> {
        self.state.replace(Some(state.clone()));
        self.store()
    }

    fn kept_state(&self) -> Option<StoredState> {
        self.state.borrow().clone()
    }

    fn keep_removed(&self, removed: &[Removed]) -> LocalFuture<io::Result<()>> {
        self.removed.replace(removed.to_vec());
        self.store()
    }

    fn kept_removed(&self) -> Vec<Removed> {
        self.removed.borrow().clone()
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use replica::{NodeSet, RoleRecord};

    #[test]
    fn what_is_kept_is_read_as_it_was_and_nothing_else_is_believed() {
        let durable = Durable {
            known: (
                Revision(17),
                RoleRecord {
                    epoch: Epoch(4),
                    step: 2,
                    owner: NodeSlot(1),
                    in_sync: NodeSet::of([NodeSlot(0), NodeSlot(1)]),
                    copies: vec![(NodeSlot(0), CopyId(7)), (NodeSlot(1), CopyId(u128::MAX))],
                },
            ),
            promised: Epoch(5),
            is_whole: false,
            base: vec![3, u64::MAX],
        };
        let alone = Held {
            durable: durable.clone(),
            state: None,
            removed: Vec::new(),
        };
        assert_eq!(decode(&encode(&alone).unwrap()).unwrap(), alone);
        let state = StoredState {
            epoch: Epoch(4),
            version: 9,
            bytes: (0..=255).collect(),
        };
        let removed = Removed {
            node: NodeSlot(1),
            below: vec![9, 0],
            cut: Cut(12),
            parts: vec![0..1, 7..900],
        };
        let all = Held {
            durable,
            state: Some(state),
            removed: vec![removed],
        };
        let text = encode(&all).unwrap();
        assert_eq!(decode(&text).unwrap(), all);
        let body = document::read(KIND, &text).unwrap();
        let body = String::from_utf8(body).unwrap();
        let mut flipped = text;
        *flipped.last_mut().unwrap() ^= 1;
        assert!(decode(&flipped).is_err(), "it has a checksum");
        for (from, to) in [
            (r#""promised":5"#, r#""promised":-5"#),
            (r#""promised":5"#, r#""promised":5,"other":1"#),
            (r#""whole":false"#, r#""whole":0"#),
            (r#""owner":1"#, r#""owner":2"#),
            (r#""node":1"#, r#""node":64"#),
            ("[7,900]", "[7,7]"),
            (r#""bytes":"00"#, r#""bytes":"0"#),
            (r#""bytes":"00"#, r#""bytes":"x0"#),
        ] {
            assert!(body.contains(from), "{body}");
            let other = document::write(KIND, body.replacen(from, to, 1).as_bytes());
            let error = decode(&other).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
