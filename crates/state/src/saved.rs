//! What a pool says of the newest objects that were stored, as it is written down.

use env::Files;
use env::durable::{read_file, replace_file};
use manifest::document;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The file in a pool's directory.
const FILE: &str = "saved.json";

/// The longest that is read back.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The kind of the file, as its first line says.
const KIND: &str = "saved";

/// The newest objects that were stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    /// The node that stored them.
    pub node_id: String,
    /// Their generation.
    pub generation: u64,
}

/// The newest objects that were stored, as a pool keeps them.
#[derive(Clone, Debug)]
pub struct SavedText {
    /// The node that stored them.
    pub node_id: String,
    /// Their generation.
    pub generation: u64,
    /// What is written down.
    pub text: Vec<u8>,
}

/// What a pool says. One that cannot be read says nothing, and other pools say the same.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Saved> {
    document::parse(KIND, text).ok()
}

impl SavedText {
    /// As it is written down.
    ///
    /// # Panics
    /// Never: these are plain words and numbers.
    #[must_use]
    pub fn new(node_id: &str, generation: u64) -> Self {
        let saved = Saved {
            node_id: node_id.to_owned(),
            generation,
        };
        let body = serde_json::to_vec(&saved).expect("plain words and numbers");
        Self {
            node_id: saved.node_id,
            generation,
            text: document::write(KIND, &body),
        }
    }

    /// A pool that says this has seen later objects of this node: it was away when they were
    /// compared, and is about to be.
    #[must_use]
    pub fn is_older_than(&self, known: Option<&[u8]>) -> bool {
        let known = known.and_then(parse);
        known.is_some_and(|it| it.node_id == self.node_id && it.generation > self.generation)
    }

    fn is_needless_after(&self, known: Option<&[u8]>) -> bool {
        let same = |it: &Saved| it.node_id == self.node_id && it.generation == self.generation;
        self.is_older_than(known) || known.and_then(parse).is_some_and(|it| same(&it))
    }
}

/// What a directory says.
pub async fn read(files: &dyn Files, directory: &Path) -> Option<Vec<u8>> {
    let text = read_file(files, &directory.join(FILE), FILE_BYTES_MAX).await;
    text.ok()
}

/// Writes down what was stored last, unless the pool says that already, or something newer.
///
/// # Errors
/// What the system says; what the pool said before is still there.
pub async fn keep(files: Rc<dyn Files>, directory: PathBuf, saved: SavedText) -> io::Result<()> {
    let known = read(&*files, &directory).await;
    if saved.is_needless_after(known.as_deref()) {
        return Ok(());
    }
    replace_file(&*files, &directory.join(FILE), &saved.text).await
}
