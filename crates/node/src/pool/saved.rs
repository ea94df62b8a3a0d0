//! What each pool says of the newest objects that were stored: a state directory that was restored
//! from an older copy is known by it.

use crate::data_plane::Inner;
use crate::pool::asks;
use crate::pool::members::MemberPool;
use crate::pool::unsaved;
use ::members::LunId;
use env::Files;
use env::durable::{read_file, replace_file};
use manifest::config::Place;
use manifest::document;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
struct Saved {
    node_id: String,
    generation: u64,
}

/// One that cannot be read says nothing, and other pools say the same.
fn parse(text: &[u8]) -> Option<Saved> {
    let body = document::read(KIND, text).ok()?;
    serde_json::from_slice(&body).ok()
}

/// A pool has seen later objects of this node: it was away when they were compared, and is about to
/// be.
fn is_newer(known: Option<&Saved>, than: &Saved) -> bool {
    known.is_some_and(|it| it.node_id == than.node_id && it.generation > than.generation)
}

impl MemberPool {
    /// It has seen these objects, of this node and this generation, or later ones.
    pub(crate) fn has_seen(&self, (node_id, generation): &(String, u64)) -> bool {
        let saved = self.record(LunId::POOL).as_deref().and_then(parse);
        saved.is_some_and(|it| it.node_id == *node_id && it.generation >= *generation)
    }
}

async fn read_saved(files: &dyn Files, directory: &Path) -> Option<Saved> {
    let text = read_file(files, &directory.join(FILE), FILE_BYTES_MAX).await;
    parse(&text.ok()?)
}

/// Writes down what was stored last, unless the pool says that already, or something newer.
async fn keep_saved(
    files: Rc<dyn Files>,
    directory: PathBuf,
    saved: Saved,
    text: Vec<u8>,
) -> io::Result<()> {
    let known = read_saved(&*files, &directory).await;
    if known.as_ref() == Some(&saved) || is_newer(known.as_ref(), &saved) {
        return Ok(());
    }
    replace_file(&*files, &directory.join(FILE), &text).await
}

impl Inner {
    /// Pools that are directories and there.
    fn present(&self) -> impl Iterator<Item = (&str, &Path)> {
        let pools = self.config.pools.iter();
        pools.filter_map(|pool| match &pool.place {
            Place::Path(path) if self.directories.missing(&pool.name).is_none() => {
                Some((pool.name.as_str(), path.as_path()))
            }
            Place::Path(_) | Place::Members { .. } => None,
        })
    }

    /// The newest generation of this node's objects that a pool has seen, and the pool.
    pub(crate) async fn newest_saved(&self, node_id: &str) -> Option<(u64, String)> {
        let mut all = Vec::new();
        for (pool, path) in self.present() {
            let read = read_saved(&*self.core.files(), path).await;
            all.push((pool.to_owned(), read));
        }
        for (name, pool) in &*self.member_pools() {
            let saved = pool.record(LunId::POOL);
            all.push((name.clone(), saved.as_deref().and_then(parse)));
        }
        let of_node = all.into_iter().filter_map(|(pool, saved)| {
            let saved = saved.filter(|saved| saved.node_id == node_id)?;
            Some((saved.generation, pool))
        });
        of_node.max()
    }

    /// Objects of this generation are stored: the pools say so from now on.
    pub(crate) async fn write_saved(&self, node_id: &str, generation: u64) {
        let saved = Saved {
            node_id: node_id.to_owned(),
            generation,
        };
        let body = serde_json::to_vec(&saved).expect("plain words and numbers");
        let text = document::write(KIND, &body);
        let mut kept = Ok(());
        for (name, pool) in &*self.member_pools() {
            let known = pool.record(LunId::POOL).as_deref().and_then(parse);
            if !pool.is_whole() || is_newer(known.as_ref(), &saved) {
                // Nothing is written to it until it is, or until it was compared.
                continue;
            }
            let record = BTreeMap::from([(LunId::POOL, text.clone())]);
            if let Err(error) = pool.keep_records(&self.core, record).await {
                kept = Err(format!("pool {name}: {error}"));
            }
        }
        for (pool, path) in self.present() {
            let writing = keep_saved(
                self.core.files(),
                path.to_owned(),
                saved.clone(),
                text.clone(),
            );
            match self.ask(format!("{pool}: saved"), writing).await {
                Some(Ok(())) => {}
                Some(Err(error)) => kept = Err(format!("pool {pool}: {error}")),
                None => kept = Err(asks::silent(pool)),
            }
        }
        let record = unsaved::Record::Saved {
            node_id: node_id.to_owned(),
            generation,
        };
        let what = "a pool does not say which objects were stored last, which only matters where state_dir is restored";
        self.unkept.note(record, what, kept);
    }
}
