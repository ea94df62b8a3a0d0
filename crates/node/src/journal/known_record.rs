//! What is known to be stable in a pool's journal, as it is written down.

use manifest::document::{self, DocumentError};
use serde::{Deserialize, Serialize};
use std::fmt;
use units::hex;
use write_back::{Journal, RingFound, RingStatus};

/// The kind of the file, as its first line says.
pub(crate) const KIND: &str = "journal";

/// What a pool's journal must be.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalRecord {
    /// The pool's number: a name may be given to another one.
    pub(crate) pool: String,
    pub(crate) journal: String,
    pub(crate) rings: Vec<RingRecord>,
}

/// What one of its rings must have.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct RingRecord {
    /// How often it was opened.
    pub(crate) openings: u64,
    /// The last batch that was stable.
    pub(crate) stable: u64,
}

impl JournalRecord {
    pub(crate) fn of(journal: &Journal, rings: &[RingStatus]) -> Self {
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
    pub(crate) fn lacks(&self, found: &RingFound) -> Option<Lack> {
        let number = hex(&found.journal);
        if number != self.journal {
            let last = self.journal.clone();
            return Some(Lack::Journal { number, last });
        }
        let ring = usize::try_from(found.ring).ok();
        let known = ring.and_then(|ring| self.rings.get(ring))?;
        let ring = u64::from(found.ring);
        if found.stable < known.stable {
            let (found, known) = (found.stable, known.stable);
            return Some(Lack::Batches { ring, found, known });
        }
        let (found, known) = (found.openings, known.openings);
        (found < known).then_some(Lack::Openings { ring, found, known })
    }
}

/// What a ring has not that the journal had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lack {
    /// It is of another journal of the pool.
    Journal { number: String, last: String },
    /// Batches that were stable.
    Batches { ring: u64, found: u64, known: u64 },
    /// It was opened less often.
    Openings { ring: u64, found: u64, known: u64 },
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal { number, last } => write!(
                f,
                "it is journal {number} of this pool, and journal {last} was used last: it was given up, and may be of long ago"
            ),
            Self::Batches { ring, found, known } => write!(
                f,
                "ring {ring} of the journal ends with batch {found}, and batch {known} was stable in it: it lost what it had \
                 acknowledged, or is an older copy"
            ),
            Self::Openings { ring, found, known } => write!(
                f,
                "ring {ring} of the journal counts {found} openings, and {known} are known: it is an older copy"
            ),
        }
    }
}

pub(crate) fn parse(text: &[u8]) -> Result<JournalRecord, DocumentError> {
    document::parse(KIND, text)
}
