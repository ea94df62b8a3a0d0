//! What is known of each pool's journal besides what it says itself, kept in `state_dir/journals`:
//! an older copy of it seems whole.
//!
//! A disk that was restored, or half of a mirror that was away, brings back a journal as it once
//! was. It fits its pool and all its checksums, and what it would destage is older than what
//! lies there. So it is written down which journal it was, how often it was opened, and what was
//! stable in it: at each opening, when it ends in order or goes away, and every ten seconds while
//! it is written. One that has less is not taken.
//!
//! What this does not show: a copy that was made after the last of these moments, put in its place
//! after a crash. Everything else outside the journal that could show it (the numbers in histories,
//! the generations of maps of checksums, what was destaged) is written later still.

use crate::inner::Inner;
use crate::journal::known_record::JournalRecord;
use crate::journal::known_record::KIND;
use crate::journal::known_record::parse;
use crate::pool::late;
use env::durable::{make_dir, remove_file, replace_file};
use manifest::document;
use state::record::{self, Matters};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use units::hex;
use volume::{OpenError, OpenErrorKind};
use write_back::{Accept, Journal};

/// The longest record that is read back.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// How old the record may be of a journal that is written.
const RECORD_AGE: Duration = Duration::from_secs(10);

/// The directory in the state directory.
const DIRECTORY: &str = "journals";

impl Inner {
    fn record_file(&self, pool: &str) -> PathBuf {
        let directory = self.config.state_dir.join(DIRECTORY);
        directory.join(format!("{pool}.json"))
    }

    /// What decides whether a journal is taken for that of a pool with this number.
    ///
    /// # Errors
    /// What is known of it is there, and cannot be read.
    pub(crate) async fn accept(&self, pool: &str, number: [u8; 16]) -> Result<Accept, OpenError> {
        let file = self.record_file(pool);
        let record = match self.journals.record(pool) {
            Some(record) => Some(record),
            None => self.read_record(pool, &file).await?,
        };
        let record = record.filter(|record| record.pool == hex(&number));
        Ok(Arc::new(move |found| {
            match record.as_ref().and_then(|it| it.lacks(found)) {
                None => Ok(()),
                Some(lack) => Err(OpenError {
                    kind: OpenErrorKind::Refused,
                    cause: lack.to_string(),
                    next_step: format!(
                        "bring the right one back; or give up what it held: causeway journal discard; or, if all disks of the pool were put back \
                     to the same moment, remove {}, and restart",
                        file.display()
                    ),
                }),
            }
        }))
    }

    async fn read_record(
        &self,
        pool: &str,
        file: &Path,
    ) -> Result<Option<JournalRecord>, OpenError> {
        let lost = format!("pool {pool}: an older copy of its journal would be taken for it");
        let give_up = format!(
            "if the journal of pool {pool} is surely the newest, move {} elsewhere; or give up what it held: causeway journal \
             discard",
            file.display()
        );
        let (lost, give_up) = (&lost, &give_up);
        let files = self.core.files();
        let matters = Matters { lost, give_up };
        record::read(&*files, (file, RECORD_BYTES_MAX), parse, matters).await
    }

    /// Writes down what is stable in a pool's journal, where that is more than what stands there;
    /// not too often, as it takes two syncs.
    pub(crate) async fn follow(&self, pool: &str, journal: &Journal) {
        let now = self.core.now();
        if !self.journals.is_record_due(pool, now, RECORD_AGE) {
            return;
        }
        let status = journal.status(&self.core).await;
        if self.journals.record(pool) != Some(JournalRecord::of(journal, &status)) {
            self.write_down(pool, journal).await;
        }
    }

    /// Writes down what is stable in a pool's journal.
    pub(crate) async fn write_down(&self, pool: &str, journal: &Journal) {
        let status = journal.status(&self.core).await;
        let record = JournalRecord::of(journal, &status);
        self.journals.set_record(pool, Some(record.clone()));
        let file = self.record_file(pool);
        let written = self.write_record(&file, &record).await;
        let file = file.display();
        self.unsaved.note(
            late::Late::Journal(pool.to_owned()),
            format_args!(
                "pool {pool}: what is known of its journal cannot be kept in {file}, and after a restart an older copy may be taken for it"
            ),
            written.map_err(|error| late::not_taken(&error)),
        );
    }

    async fn write_record(&self, file: &Path, record: &JournalRecord) -> io::Result<()> {
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
            kind: OpenErrorKind::of_io(&error),
            cause: format!("{} cannot be removed: {error}", file.display()),
            next_step: "check the permissions of state_dir".to_owned(),
        })
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::journal::known_record::{Lack, RingRecord};
    use write_back::RingFound;

    fn record() -> JournalRecord {
        let ring = |openings, stable| RingRecord { openings, stable };
        JournalRecord {
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
        let batches = Lack::Batches {
            ring: 0,
            found: 49,
            known: 50,
        };
        assert_eq!(lacks(found(2, 0, 3, 49)), Some(batches));
        let openings = Lack::Openings {
            ring: 1,
            found: 2,
            known: 3,
        };
        assert_eq!(lacks(found(2, 1, 2, 7)), Some(openings));
        let other = Lack::Journal {
            number: hex(&[4; 16]),
            last: hex(&[2; 16]),
        };
        assert_eq!(lacks(found(4, 1, 3, 7)), Some(other));
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
