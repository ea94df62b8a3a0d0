//! What a copy keeps of itself: the role record that it knows, and what it promised.

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

/// What kind of state file it is.
const KIND: &str = "copy";

/// Bytes of the file at most: those of a unit's state are two digits each.
const BYTES_MAX: u64 = (64 << 10) + 2 * peer::UNIT_BYTES_MAX as u64;

/// Where a copy stores what it must not forget.
pub trait CopyStore {
    /// Stores it; when this is answered, it survives a power cut.
    fn keep(&self, durable: &Durable) -> LocalFuture<io::Result<()>>;

    /// Stores what hosts set of its unit, likewise.
    fn keep_state(&self, state: &StoredState) -> LocalFuture<io::Result<()>>;

    /// What was stored of that; `None`: nothing yet.
    fn kept_state(&self) -> Option<StoredState>;
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
    record: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<WrittenState>,
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

fn encode(durable: &Durable, state: Option<&StoredState>) -> io::Result<Vec<u8>> {
    let (revision, record) = &durable.known;
    let written = Written {
        revision: revision.0,
        promised: durable.promised.0,
        whole: durable.is_whole,
        record: serde_json::from_slice(&role::encode(record)).map_err(|why| invalid(&why))?,
        unit: state.map(|it| WrittenState {
            epoch: it.epoch.0,
            version: it.version,
            bytes: digits(&it.bytes),
        }),
    };
    let body = serde_json::to_vec(&written).map_err(|why| invalid(&why))?;
    Ok(document::write(KIND, &body))
}

fn decode(text: &[u8]) -> io::Result<(Durable, Option<StoredState>)> {
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
    };
    Ok((durable, state.transpose()?))
}

/// A file of its own for each copy, in the state directory.
pub struct CopyFile {
    core: CoreHandle,
    path: PathBuf,
    /// What it holds.
    durable: RefCell<Option<Durable>>,
    state: RefCell<Option<StoredState>>,
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
        let (durable, state) = decode(&read_file(&*files, &self.path, BYTES_MAX).await?)?;
        self.durable.replace(Some(durable.clone()));
        self.state.replace(state);
        Ok(durable)
    }

    /// The copy of this node, as it was kept or read last.
    #[must_use]
    pub fn copy_of(&self, node: NodeSlot) -> Option<CopyId> {
        let durable = self.durable.borrow();
        durable.as_ref()?.known.1.copy_of(node)
    }

    fn store(&self) -> LocalFuture<io::Result<()>> {
        let durable = self.durable.borrow();
        let durable = durable.as_ref().ok_or_else(|| invalid(&"it has no record"));
        let text = durable.and_then(|it| encode(it, self.state.borrow().as_ref()));
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
        };
        let alone = encode(&durable, None).unwrap();
        assert_eq!(decode(&alone).unwrap(), (durable.clone(), None));
        let state = StoredState {
            epoch: Epoch(4),
            version: 9,
            bytes: (0..=255).collect(),
        };
        let text = encode(&durable, Some(&state)).unwrap();
        assert_eq!(decode(&text).unwrap(), (durable, Some(state)));
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
