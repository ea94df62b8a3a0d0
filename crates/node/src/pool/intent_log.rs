//! What a crash in the middle of making or purging LUNs leaves: it belongs to nobody, and is given
//! back at the next start.
//!
//! ```text
//!   written down: these are made, these are purged --> made --> objects stored --> destroyed
//!         --> crossed out
//! ```
//!
//! **Contract.** Nothing is given back that was not written down by name before it was begun: space
//! that belongs to no LUN known here may be one's whose record was lost. What cannot be given back
//! stays written down.

use crate::inner::Inner;
use crate::pool::intents::Finishing;
use env::durable::{make_dir, remove_file};
use env::in_time;
use manifest::code::Code;
use manifest::document::{self, DocumentError};
use manifest::objects::{Lun, Objects};
use manifest::plan::LunChanges;
use manifest::problem::Problem;
use serde::{Deserialize, Serialize};
use state::record::{self, Matters};
use state::spare;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The file in the state directory.
const FILE: &str = "intent_log.json";

/// How long a start waits to hear what LUNs take of a pool.
const USAGE_WAIT_MAX: Duration = Duration::from_secs(5);

/// The longest that is read back.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct IntentRecord {
    schema: u32,
    luns: Vec<Lun>,
}

/// As much of it as every version has.
#[derive(Deserialize)]
struct Schema {
    schema: u32,
}

/// The kind of the file, as its first line says.
const KIND: &str = "intent_log";

/// The version of what follows that line.
const SCHEMA: u32 = 1;

/// The record, from its file.
fn record_of(text: &[u8]) -> Result<IntentRecord, DocumentError> {
    let Schema { schema } = document::parse_or_bare(KIND, text)?;
    if schema != SCHEMA {
        let why = format!("it has schema {schema}, and not {SCHEMA}");
        return Err(DocumentError::Unknown(why));
    }
    document::parse_or_bare(KIND, text)
}

/// LUNs of pools that a change makes or destroys.
fn concerned(changes: &LunChanges) -> Vec<Lun> {
    let all = changes.created.iter().chain(&changes.purged);
    let in_pools = all.filter(|lun| lun.backing.pool().is_some());
    in_pools.cloned().collect()
}

impl Inner {
    /// The objects were stored, or compared: nothing is newer.
    pub(crate) async fn finish_once(&self, objects: &Objects) {
        match self.finishing.replace(Finishing::Done) {
            Finishing::Done => {}
            Finishing::Soon => self.finish(objects).await,
            Finishing::Not => {
                // Older ones were accepted. What was in flight then is not known now.
                self.put_unread_aside().await;
                self.intent_log.luns.borrow_mut().clear();
                if let Err(error) = self.write_intent_log(Vec::new()).await {
                    tracing::warn!("{}: {error}", self.intent_log_file().display());
                }
                self.find_orphans().await;
            }
        }
    }

    /// One that nobody could read is not to be acted on by whoever reads it later.
    async fn put_unread_aside(&self) {
        if self.intent_log.unread.borrow().is_none() {
            return;
        }
        let file = self.intent_log_file();
        let aside = record::aside(&file);
        match self.core.files().rename(&file, &aside).await {
            Ok(()) => {
                self.intent_log.unread.borrow_mut().take();
                tracing::warn!("{} is kept as {}", file.display(), aside.display());
            }
            Err(error) => tracing::error!("{} cannot be put aside: {error}", file.display()),
        }
    }

    fn intent_log_file(&self) -> PathBuf {
        self.config.state_dir.join(FILE)
    }

    /// LUNs whose making or purging did not come to its end.
    pub(crate) fn intended_naas(&self) -> Vec<String> {
        let all = self.intent_log.luns.borrow();
        all.iter().map(|lun| lun.naa.clone()).collect()
    }

    /// Why nothing is made, purged or adopted, where that is so.
    fn refuses(&self) -> Result<(), Problem> {
        let Some(why) = self.intent_log.unread.borrow().clone() else {
            return Ok(());
        };
        let detail = format!(
            "what a crash left of LUNs is not known, so that none is made, purged or adopted: {}",
            why.cause
        );
        Err(Problem::new(Code::StateNotSaved, detail).hint(why.next_step))
    }

    /// For `status`.
    pub(crate) fn intent_log_notice(&self) -> Option<String> {
        let problem = self.refuses().err()?;
        Some(format!("{} ({})", problem.detail, problem.hint))
    }

    /// Whether it belongs to an object, as one of a LUN that comes back does.
    pub(crate) fn is_named(&self, lun: &Lun) -> bool {
        let objects = self.objects.borrow();
        let mut all = objects.luns.values().chain(objects.removed.values());
        all.any(|known| known.naa == lun.naa)
    }

    /// Writes down what a change is about to make and destroy.
    pub(crate) async fn begin(&self, changes: &LunChanges) -> Result<(), Problem> {
        let mut luns = concerned(changes);
        // Of what is adopted it has to be known that it was not half purged.
        if !luns.is_empty() || changes.restored.iter().any(|lun| !self.is_named(lun)) {
            self.refuses()?;
        }
        if luns.is_empty() {
            return Ok(());
        }
        luns.extend(self.intent_log.luns.borrow().iter().cloned());
        let makes_room = changes.created.is_empty();
        let written = self.write_intent_log_if(luns, makes_room).await;
        written.map_err(|error| {
            let file = self.intent_log_file();
            Problem::new(
                Code::StateNotSaved,
                format!(
                    "{} cannot be written, and nothing was changed: {error} (check the space and the permissions of state_dir)",
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
            let mut intent_log = self.intent_log.luns.borrow_mut();
            intent_log.extend(left);
            intent_log.clone()
        };
        if let Err(error) = self.write_intent_log(luns).await {
            // What stands there is looked up in the objects before anything is given back.
            tracing::warn!("{}: {error}", self.intent_log_file().display());
        }
    }

    async fn write_intent_log(&self, luns: Vec<Lun>) -> io::Result<()> {
        self.write_intent_log_if(luns, false).await
    }

    /// The same, without room where the change makes some.
    async fn write_intent_log_if(&self, luns: Vec<Lun>, makes_room: bool) -> io::Result<()> {
        let (files, file) = (self.core.files(), self.intent_log_file());
        if let Some(why) = &*self.intent_log.unread.borrow() {
            return Err(io::Error::other(why.clone()));
        }
        if luns.is_empty() {
            return remove_file(&*files, &file).await;
        }
        make_dir(&*files, &self.config.state_dir).await?;
        let record = IntentRecord {
            schema: SCHEMA,
            luns,
        };
        let text = serde_json::to_vec(&record).expect("LUNs are plain words and numbers");
        let (dir, text) = (&self.config.state_dir, document::write(KIND, &text));
        spare::replace_file(&*files, dir, &file, &text, makes_room).await
    }

    /// At the start: what is written down, and is no orphan.
    pub(crate) async fn read_intent_log(&self) {
        let file = self.intent_log_file();
        let give_up = format!(
            "stop the daemon, move {} elsewhere, and start it again: what a crash left of LUNs then stays where it is",
            file.display()
        );
        let matters = Matters {
            lost: "what a crash left of LUNs is not given back",
            give_up: &give_up,
        };
        let files = self.core.files();
        match record::read(&*files, (&file, FILE_BYTES_MAX), record_of, matters).await {
            Ok(None) => {}
            Ok(Some(record)) => *self.intent_log.luns.borrow_mut() = record.luns,
            Err(why) => {
                tracing::error!("no LUN is made, purged or adopted: {why}");
                *self.intent_log.unread.borrow_mut() = Some(why);
            }
        }
    }

    /// Gives back what is written down and belongs to no LUN, and what LUNs have too much.
    async fn finish(&self, objects: &Objects) {
        let luns = self.intent_log.luns.borrow().clone();
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
        self.intent_log.luns.borrow_mut().clone_from(&left);
        if let Err(error) = self.write_intent_log(left).await {
            tracing::warn!("{}: {error}", self.intent_log_file().display());
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

    /// A crash while a LUN grew or shrank may leave it more of its pool than it has.
    async fn trim(&self, objects: &Objects) {
        let pools = self.pools();
        let mut allocated = BTreeMap::new();
        for (name, pool) in pools.iter() {
            if !has_thick_ones(objects, name) {
                continue;
            }
            // One that hangs holds up no start: what it has too much is given back at another one.
            match in_time(&self.core, USAGE_WAIT_MAX, pool.usage()).await {
                Some(usage) => allocated.extend(usage),
                None => tracing::warn!(pool = name, "what its LUNs take is not known: it hangs"),
            }
        }
        for (name, lun) in objects.luns.iter().chain(&objects.removed) {
            let Some(pool) = lun.backing.pool().and_then(|pool| pools.get(pool)) else {
                continue;
            };
            let trimmed = pool.trim(lun, allocated.get(&lun.naa).copied());
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

/// LUNs of fixed size lie in the pool: of others nothing is reserved.
fn has_thick_ones(objects: &Objects, pool: &str) -> bool {
    let mut all = objects.luns.values().chain(objects.removed.values());
    all.any(|lun| !lun.thin && lun.backing.pool() == Some(pool))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_also_before_it_had_a_checksum_and_never_when_it_is_damaged()
     {
        let bare = br#"{"schema":1,"luns":[]}"#;
        let whole = document::write(KIND, bare);
        assert!(whole.starts_with(b"causeway intent_log 1 sha256 "));
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
            let why = record_of(text).unwrap_err();
            assert!(!why.is_damage(), "{why}");
        }
    }
}
