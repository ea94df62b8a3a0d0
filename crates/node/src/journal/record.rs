//! What is known of each pool's journal beside what it says itself, kept in `state_dir/journals`:
//! an older copy of it looks whole.
//!
//! A disk that was restored, or half of a mirror that was away, brings back a journal as it once
//! was. It fits its pool and all its checksums, and what it would destage is older than what
//! lies there. So it is written down which journal it was, how often it was opened, and what was
//! stable in it: at each opening, when it ends in order or goes away, and every ten seconds while
//! it is written. One that has less is not taken.
//!
//! What this does not tell: a copy that was made after the last of these moments, put in its place
//! after a crash. Everything else outside the journal that could tell it (the numbers in histories,
//! the generations of maps of checksums, what lies at home) is written later still.

use crate::data_plane::Inner;
use crate::pool::unsaved;
use env::durable::{make_dir, read_file, remove_file, replace_file};
use manifest::document;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use units::hex;
use volume::OpenError;
use write_back::{Accept, Journal, RingFound, RingStatus};

/// The longest record that is read back.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// How old the record may be of a journal that is written.
const RECORD_AGE: Duration = Duration::from_secs(10);

/// The kind of the file, as its first line says.
const KIND: &str = "journal";

/// The directory in the state directory.
const DIRECTORY: &str = "journals";

/// What a pool's journal must be.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// The pool's number: a name may be given to another one.
    pool: String,
    journal: String,
    rings: Vec<RingRecord>,
}

/// What one of its rings must have.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct RingRecord {
    /// How often it was opened.
    openings: u64,
    /// The last batch that was stable.
    stable: u64,
}

impl Record {
    fn of(journal: &Journal, rings: &[RingStatus]) -> Self {
        let ring = |ring: &RingStatus| RingRecord {
            openings: ring.openings,
            stable: ring.stable,
        };
        Self {
            pool: hex(&journal.pool()),
            journal: hex(&journal.number().0),
            rings: rings.iter().map(ring).collect(),
        }
    }

    /// Why a ring is none of the journal that was known, if it is not.
    fn lacks(&self, found: &RingFound) -> Option<String> {
        let number = hex(&found.journal);
        if number != self.journal {
            return Some(format!(
                "it is journal {number} of this pool, and journal {} was used last: it was given up, and may be of long ago",
                self.journal
            ));
        }
        let ring = usize::try_from(found.ring).ok();
        let known = ring.and_then(|ring| self.rings.get(ring))?;
        let RingFound { ring, .. } = found;
        if found.stable < known.stable {
            return Some(format!(
                "ring {ring} of the journal ends with batch {}, and batch {} was stable in it: it lost what it had acknowledged, or \
                 is an older copy",
                found.stable, known.stable
            ));
        }
        (found.openings < known.openings).then(|| {
            format!(
                "ring {ring} of the journal counts {} openings, and {} are known: it is an older copy",
                found.openings, known.openings
            )
        })
    }
}

fn parse(text: &[u8]) -> Result<Record, String> {
    let body = document::read(KIND, text)?;
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

impl Inner {
    fn record_file(&self, pool: &str) -> PathBuf {
        let directory = self.config.state_dir.join(DIRECTORY);
        directory.join(format!("{pool}.json"))
    }

    /// What decides whether a journal is taken for that of a pool with this number.
    pub(crate) async fn accept(&self, pool: &str, number: [u8; 16]) -> Accept {
        let file = self.record_file(pool);
        let record = match self.journals.record(pool) {
            Some(record) => Some(record),
            None => self.read_record(pool, &file).await,
        };
        let record = record.filter(|record| record.pool == hex(&number));
        Arc::new(
            move |found| match record.as_ref().and_then(|it| it.lacks(found)) {
                None => Ok(()),
                Some(cause) => Err(OpenError {
                    cause,
                    next_step: format!(
                        "bring the right one back; or give up what it held: causeway journal discard; or, if all disks of the pool were put back \
                     to the same moment, remove {}, and restart",
                        file.display()
                    ),
                }),
            },
        )
    }

    async fn read_record(&self, pool: &str, file: &Path) -> Option<Record> {
        let text = match read_file(&*self.core.files(), file, RECORD_BYTES_MAX).await {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                let file = file.display();
                tracing::warn!(
                    pool,
                    "{file}: {error}: an older copy of its journal would be taken for it"
                );
                return None;
            }
        };
        match parse(&text) {
            Ok(record) => Some(record),
            Err(why) => {
                let file = file.display();
                tracing::warn!(
                    pool,
                    "{file}: {why}: an older copy of its journal would be taken for it"
                );
                None
            }
        }
    }

    /// Writes down what is stable in a pool's journal, where that is more than what stands there;
    /// not too often, as it takes two syncs.
    pub(crate) async fn follow(&self, pool: &str, journal: &Journal) {
        let now = self.core.now();
        if !self.journals.is_record_due(pool, now, RECORD_AGE) {
            return;
        }
        let status = journal.status(&self.core).await;
        if self.journals.record(pool) != Some(Record::of(journal, &status)) {
            self.write_down(pool, journal).await;
        }
    }

    /// Writes down what is stable in a pool's journal.
    pub(crate) async fn write_down(&self, pool: &str, journal: &Journal) {
        let status = journal.status(&self.core).await;
        let record = Record::of(journal, &status);
        self.journals.set_record(pool, Some(record.clone()));
        let file = self.record_file(pool);
        let written = self.write_record(&file, &record).await;
        let file = file.display();
        self.unkept.note(
            unsaved::Record::Journal(pool.to_owned()),
            format_args!(
                "pool {pool}: what is known of its journal cannot be kept in {file}, and after a restart an older copy may be taken for it"
            ),
            written.map_err(|error| error.to_string()),
        );
    }

    async fn write_record(&self, file: &Path, record: &Record) -> io::Result<()> {
        let files = self.core.files();
        make_dir(&*files, &self.config.state_dir.join(DIRECTORY)).await?;
        let text = serde_json::to_vec(record).expect("plain words and numbers");
        replace_file(&*files, file, &document::write(KIND, &text)).await
    }

    /// The pool's journal is given up, or a new one is made.
    pub(crate) async fn forget(&self, pool: &str) -> Result<(), OpenError> {
        let file = self.record_file(pool);
        self.journals.set_record(pool, None);
        let removed = remove_file(&*self.core.files(), &file).await;
        removed.map_err(|error| OpenError {
            cause: format!("{} cannot be removed: {error}", file.display()),
            next_step: "look at the permissions of state_dir".to_owned(),
        })
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn record() -> Record {
        let ring = |openings, stable| RingRecord { openings, stable };
        Record {
            pool: hex(&[1; 16]),
            journal: hex(&[2; 16]),
            rings: vec![ring(3, 50), ring(3, 7)],
        }
    }

    #[test]
    fn a_ring_that_has_less_than_was_known_or_is_of_another_journal_is_named() {
        let found = |journal: u8, ring, openings, stable| RingFound {
            journal: [journal; 16],
            ring,
            openings,
            stable,
        };
        let lacks = |found: RingFound| record().lacks(&found);
        for good in [found(2, 0, 3, 50), found(2, 1, 3, 7), found(2, 0, 9, 60)] {
            assert_eq!(lacks(good), None);
        }
        for (bad, words) in [
            (found(2, 0, 3, 49), "batch 49, and batch 50 was stable"),
            (found(2, 1, 2, 7), "counts 2 openings, and 3 are known"),
            (found(4, 1, 3, 7), "it was given up"),
        ] {
            let told = lacks(bad).unwrap_or_default();
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_never_when_it_is_damaged() {
        let text = document::write(KIND, &serde_json::to_vec(&record()).unwrap());
        assert_eq!(parse(&text), Ok(record()));
        for end in 0..text.len() {
            assert!(parse(&text[..end]).is_err(), "{end} bytes");
        }
        for at in 0..text.len() {
            let mut hurt = text.clone();
            hurt[at] ^= 1;
            assert!(parse(&hurt).is_err(), "byte {at}");
        }
    }
}
