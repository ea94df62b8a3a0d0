//! Records that could not be written down yet.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use volume::{OpenError, OpenErrorKind};

/// What is written down, and may be late.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Late {
    /// The records of LUNs in their pools.
    Luns,
    /// Which objects were stored last, in the pools.
    Saved { node_id: String, generation: u64 },
    /// What is stable in a pool's journal.
    Journal(String),
    /// What a pool keeps of itself: which it is, what its members are.
    Pool(String),
    /// How far the scrub of a LUN is, by NAA identifier.
    Scrub(String),
}

/// Those that are late, and why.
#[derive(Default)]
pub(crate) struct Unsaved(RefCell<BTreeMap<Late, OpenError>>);

/// A record that the system did not take.
pub(crate) fn not_taken(error: &io::Error) -> OpenError {
    OpenError {
        kind: OpenErrorKind::of_io(error),
        cause: error.to_string(),
        next_step: "it is written as soon as there is space and permission".to_owned(),
    }
}

/// A record of a pool that does not answer.
pub(crate) fn silent(what: impl Display) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Hung,
        cause: format!("{what} does not answer"),
        next_step: "it is written as soon as the pool answers".to_owned(),
    }
}

/// With what it is the record of in front.
pub(crate) fn of(what: impl Display, error: OpenError) -> OpenError {
    OpenError {
        cause: format!("{what}: {}", error.cause),
        ..error
    }
}

/// It is another kind of reason than before: words may change with every try.
fn is_news(why: &OpenError, before: Option<&OpenError>) -> bool {
    before.is_none_or(|before| before.kind != why.kind)
}

impl Unsaved {
    /// A record was written, or was not; `what` is what that costs.
    pub(crate) fn note(&self, record: Late, what: impl Display, written: Result<(), OpenError>) {
        let mut all = self.0.borrow_mut();
        let Err(error) = written else {
            if let Some(why) = all.remove(&record) {
                tracing::info!("it is written now: {}", why.cause);
            }
            return;
        };
        let why = of(what, error);
        if is_news(&why, all.get(&record)) {
            tracing::warn!("{}", why.cause);
        }
        if let Late::Saved { .. } = record {
            // The newest counts.
            all.retain(|known, _| !matches!(known, Late::Saved { .. }));
        }
        all.insert(record, why);
    }

    pub(crate) fn forget(&self, record: &Late) {
        self.0.borrow_mut().remove(record);
    }

    pub(crate) fn late(&self) -> Vec<Late> {
        self.0.borrow().keys().cloned().collect()
    }

    /// For `status`.
    pub(crate) fn reported(&self) -> Vec<String> {
        let all = self.0.borrow();
        all.values().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_is_late_is_news_once_for_each_kind_of_reason_and_its_newest_words_are_shown() {
        let of_kind = |kind, words: &'static str| not_taken(&io::Error::new(kind, words));
        let full = of_kind(io::ErrorKind::StorageFull, "3 bytes are free");
        let fuller = of_kind(io::ErrorKind::StorageFull, "2 bytes are free");
        let denied = of_kind(io::ErrorKind::PermissionDenied, "denied");
        assert!(is_news(&full, None));
        assert!(!is_news(&fuller, Some(&full)));
        assert!(is_news(&denied, Some(&fuller)));
        let unsaved = Unsaved::default();
        for why in [full, fuller] {
            unsaved.note(Late::Luns, "LUNs", Err(why));
        }
        let shown = unsaved.reported();
        assert!(
            shown[0].starts_with("LUNs: 2 bytes are free ("),
            "{shown:?}"
        );
        unsaved.note(Late::Luns, "", Ok(()));
        assert_eq!(unsaved.late(), []);
    }
}
