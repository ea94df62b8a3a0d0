//! What a crash in the middle of making or purging LUNs leaves: it belongs to nobody, and is given
//! back at the next start.
//!
//! ```text
//!   written down: these are made, these are purged --> made --> objects stored --> destroyed --> crossed out
//! ```
//!
//! **Contract.** Nothing is given back that was not written down by name before it was begun: space
//! that belongs to no LUN known here may be one's whose record was lost. What cannot be given back
//! stays written down.

use crate::data_plane::Inner;
use crate::pool::members::{MemberPool, lun_id};
use crate::state::spare;
use env::durable::{make_dir, read_file, remove_file};
use manifest::code::Code;
use manifest::document;
use manifest::objects::{Backing, Lun, Objects};
use manifest::orphan::LunRecord;
use manifest::plan::LunChanges;
use manifest::problem::Problem;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

/// The file in the state directory.
const FILE: &str = "unfinished.json";

/// The longest that is read back.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// LUNs whose making or purging did not come to its end.
#[derive(Default)]
pub(crate) struct Unfinished(RefCell<Vec<Lun>>);

#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Record {
    schema: u32,
    luns: Vec<Lun>,
}

/// The kind of the file, as its first line says.
const KIND: &str = "unfinished";

/// The version of what follows that line.
const SCHEMA: u32 = 1;

/// The record, from its file.
fn record_of(text: &[u8]) -> Result<Record, String> {
    let body = document::read_or_bare(KIND, text)?;
    let record: Record = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    if record.schema != SCHEMA {
        return Err(format!("it has schema {}, and not {SCHEMA}", record.schema));
    }
    Ok(record)
}

/// LUNs of pools that a change makes or destroys.
fn concerned(changes: &LunChanges) -> Vec<Lun> {
    let all = changes.created.iter().chain(&changes.purged);
    let in_pools = all.filter(|lun| matches!(lun.backing, Backing::Pool(_)));
    in_pools.cloned().collect()
}

/// Whether what a crash left is given back.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Finishing {
    /// As soon as the objects were compared with what the pools have seen.
    #[default]
    Soon,
    /// It was.
    Done,
    /// A pool has seen newer objects: what these lack may be all but unfinished.
    Not,
}

impl Inner {
    /// The objects were stored, or compared: nothing is newer.
    pub(crate) async fn finish_once(&self, objects: &Objects) {
        match self.finishing.replace(Finishing::Done) {
            Finishing::Done => {}
            Finishing::Soon => self.finish(objects).await,
            Finishing::Not => {
                // Older ones were accepted. What was unfinished then is not known now.
                self.unfinished.0.borrow_mut().clear();
                if let Err(error) = self.write_unfinished(Vec::new()).await {
                    tracing::warn!("{}: {error}", self.unfinished_file().display());
                }
                self.look_for_orphans().await;
            }
        }
    }

    fn unfinished_file(&self) -> PathBuf {
        self.config.state_dir.join(FILE)
    }

    /// LUNs whose making or purging did not come to its end.
    pub(crate) fn unfinished_naas(&self) -> Vec<String> {
        let all = self.unfinished.0.borrow();
        all.iter().map(|lun| lun.naa.clone()).collect()
    }

    /// Writes down what a change is about to make and destroy.
    pub(crate) async fn begin(&self, changes: &LunChanges) -> Result<(), Problem> {
        let mut luns = concerned(changes);
        if luns.is_empty() {
            return Ok(());
        }
        luns.extend(self.unfinished.0.borrow().iter().cloned());
        let makes_room = changes.created.is_empty();
        let written = self.write_unfinished_if(luns, makes_room).await;
        written.map_err(|error| {
            let file = self.unfinished_file();
            Problem::new(
                Code::StateNotSaved,
                format!(
                    "{} cannot be written, and nothing was changed: {error} (look at the space and the permissions of state_dir)",
                    file.display()
                ),
            )
        })
    }

    /// A change is at its end, and these of it could not be destroyed.
    pub(crate) async fn end(&self, changes: &LunChanges, left: Vec<Lun>) {
        if concerned(changes).is_empty() {
            return;
        }
        let luns = {
            let mut unfinished = self.unfinished.0.borrow_mut();
            unfinished.extend(left);
            unfinished.clone()
        };
        if let Err(error) = self.write_unfinished(luns).await {
            // What stands there is looked up in the objects before anything is given back.
            tracing::warn!("{}: {error}", self.unfinished_file().display());
        }
    }

    async fn write_unfinished(&self, luns: Vec<Lun>) -> io::Result<()> {
        self.write_unfinished_if(luns, false).await
    }

    /// The same, without room where the change makes some.
    async fn write_unfinished_if(&self, luns: Vec<Lun>, makes_room: bool) -> io::Result<()> {
        let (files, file) = (self.core.files(), self.unfinished_file());
        if luns.is_empty() {
            return remove_file(&*files, &file).await;
        }
        make_dir(&*files, &self.config.state_dir).await?;
        let record = Record {
            schema: SCHEMA,
            luns,
        };
        let text = serde_json::to_vec(&record).expect("LUNs are plain words and numbers");
        let (dir, text) = (&self.config.state_dir, document::write(KIND, &text));
        spare::replace_file(&*files, dir, &file, &text, makes_room).await
    }

    /// At the start: what is written down, and is no orphan.
    pub(crate) async fn read_unfinished(&self) {
        let file = self.unfinished_file();
        let read = read_file(&*self.core.files(), &file, FILE_BYTES_MAX).await;
        let record = match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => Err(error.to_string()),
            Ok(text) => record_of(&text),
        };
        match record {
            Ok(record) => *self.unfinished.0.borrow_mut() = record.luns,
            Err(why) => tracing::error!(
                "{}: {why}: what a crash left of LUNs is not given back",
                file.display()
            ),
        }
    }

    /// Gives back what is written down and belongs to no LUN, and what LUNs in pools of members
    /// have too much.
    async fn finish(&self, objects: &Objects) {
        let luns = self.unfinished.0.borrow().clone();
        if !luns.is_empty() {
            self.finish_all(objects, luns).await;
        }
        self.trim(objects).await;
    }

    async fn finish_all(&self, objects: &Objects, luns: Vec<Lun>) {
        let known: BTreeSet<&str> = objects
            .luns
            .values()
            .chain(objects.removed.values())
            .map(|lun| lun.naa.as_str())
            .collect();
        let mut left = Vec::new();
        for lun in luns {
            if known.contains(lun.naa.as_str()) {
                continue;
            }
            let naa = &lun.naa;
            match self.destroy(&lun).await {
                Ok(()) => tracing::info!("what a crash left of LUN {naa} was given back"),
                Err(problem) => {
                    tracing::warn!(
                        "what is left of LUN {naa} is given back at a later start: {}",
                        problem.detail
                    );
                    left.push(lun);
                }
            }
        }
        self.unfinished.0.borrow_mut().clone_from(&left);
        if let Err(error) = self.write_unfinished(left).await {
            tracing::warn!("{}: {error}", self.unfinished_file().display());
        }
    }

    /// Those of a change that are smaller now.
    pub(crate) fn note_shrunk(&self, before: &Objects, changes: &LunChanges) {
        for lun in &changes.resized {
            let all = before.luns.values().chain(before.removed.values());
            let was = all.into_iter().find(|was| was.naa == lun.naa);
            if was.is_some_and(|was| was.size > lun.size) {
                self.shrunk.borrow_mut().insert(lun.naa.clone());
            }
        }
    }

    /// Bytes that a LUN of members has, as far as is known here and to the pool, which may have
    /// seen it larger than objects that were restored say: of what the pool knows of these very
    /// objects nothing is given back.
    fn known_bytes(&self, pool: &MemberPool, lun: &Lun) -> u64 {
        let here = lun.size.bytes();
        let stored = self.stored.borrow();
        if !stored.as_ref().is_some_and(|it| pool.has_seen(it)) {
            return here;
        }
        let record = pool.record(lun_id(lun));
        let record = record.and_then(|record| LunRecord::decode(&record).ok());
        record.map_or(here, |record| record.lun.size.bytes().max(here))
    }

    /// A crash while a LUN grew or shrank may leave it more of its members than it has.
    async fn trim(&self, objects: &Objects) {
        let members = self.member_pools();
        for (name, lun) in objects.luns.iter().chain(&objects.removed) {
            let Backing::Pool(pool) = &lun.backing else {
                continue;
            };
            let Some(pool) = members.get(pool) else {
                continue;
            };
            let trimmed = pool.trim(&self.core, lun_id(lun), self.known_bytes(pool, lun));
            match trimmed.await {
                Ok(false) => {}
                Ok(true) => {
                    tracing::info!(lun = name, "what a crash left it too much was given back");
                }
                Err(error) => tracing::warn!(lun = name, "it keeps more than it has: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_also_before_it_had_a_checksum_and_never_when_it_is_damaged()
     {
        let bare = br#"{"schema":1,"luns":[]}"#;
        let whole = document::write(KIND, bare);
        assert!(whole.starts_with(b"causeway unfinished 1 sha256 "));
        for text in [&bare[..], &whole] {
            let record = record_of(text).unwrap();
            assert!(record.schema == 1 && record.luns.is_empty());
        }
        for end in 0..whole.len() {
            assert!(record_of(&whole[..end]).is_err(), "{end} bytes");
        }
        for at in 0..whole.len() {
            let mut hurt = whole.clone();
            hurt[at] ^= 1;
            assert!(record_of(&hurt).is_err(), "byte {at}");
        }
        let later = br#"{"schema":2,"luns":[]}"#;
        for text in [&later[..], &document::write(KIND, later)] {
            let told = record_of(text).unwrap_err();
            assert!(told.contains("it has schema 2"), "{told}");
        }
    }
}
