//! What a copy keeps of itself: the role record that it knows, and what it promised.

use arbiter::role;
use env::durable::{read_file, replace_file, settle_dir};
use env::{CoreHandle, LocalFuture};
use manifest::document;
use replica::{Durable, Epoch, Revision};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What kind of state file it is.
const KIND: &str = "copy";

/// Bytes of the file at most.
const BYTES_MAX: u64 = 64 << 10;

/// Where a copy stores what it must not forget.
pub trait CopyStore {
    /// Stores it; when this is answered, it survives a power cut.
    fn keep(&self, durable: &Durable) -> LocalFuture<io::Result<()>>;
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    revision: u64,
    promised: u64,
    /// Its data is all there.
    whole: bool,
    record: serde_json::Value,
}

fn invalid(why: &dyn ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

fn encode(durable: &Durable) -> io::Result<Vec<u8>> {
    let (revision, record) = &durable.known;
    let written = Written {
        revision: revision.0,
        promised: durable.promised.0,
        whole: durable.is_whole,
        record: serde_json::from_slice(&role::encode(record)).map_err(|why| invalid(&why))?,
    };
    let body = serde_json::to_vec(&written).map_err(|why| invalid(&why))?;
    Ok(document::write(KIND, &body))
}

fn decode(text: &[u8]) -> io::Result<Durable> {
    let written: Written = document::parse(KIND, text).map_err(|why| invalid(&why))?;
    let record = serde_json::to_vec(&written.record).map_err(|why| invalid(&why))?;
    let record = role::decode(&record).map_err(|why| invalid(&why))?;
    Ok(Durable {
        known: (Revision(written.revision), record),
        promised: Epoch(written.promised),
        is_whole: written.whole,
    })
}

/// A file of its own for each copy, in the state directory.
pub struct CopyFile {
    core: CoreHandle,
    path: PathBuf,
}

impl CopyFile {
    /// Keeps it in this file.
    #[must_use]
    pub fn new(core: &CoreHandle, path: PathBuf) -> Self {
        Self {
            core: Rc::clone(core),
            path,
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
        decode(&read_file(&*files, &self.path, BYTES_MAX).await?)
    }
}

impl CopyStore for CopyFile {
    fn keep(&self, durable: &Durable) -> LocalFuture<io::Result<()>> {
        let (files, path, text) = (self.core.files(), self.path.clone(), encode(durable));
        Box::pin(async move { replace_file(&*files, &path, &text?).await })
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use replica::{CopyId, NodeSet, NodeSlot, RoleRecord};

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
        let text = encode(&durable).unwrap();
        assert_eq!(decode(&text).unwrap(), durable);
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
        ] {
            assert!(body.contains(from), "{body}");
            let other = document::write(KIND, body.replacen(from, to, 1).as_bytes());
            let error = decode(&other).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
