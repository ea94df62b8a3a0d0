//! What a node remembers of its arbiter, so that another store, or the same one set back to an old
//! backup, is not taken for it.
//!
//! A store that was emptied or restored knows nothing of the last owners. Who believed it would
//! take over a LUN whose owner lives, with a copy that lacks what was acknowledged since. So the
//! number of its last change must never fall, and once it did, nothing of it is believed until
//! somebody has inspected it.

use crate::trouble::{Trouble, TroubleKind};
use manifest::document::{self, DocumentError};
use replica::Revision;
use serde::{Deserialize, Serialize};

/// The kind of the document.
const KIND: &str = "arbiter";

/// Which store it is: etcd's identifier of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreId(pub u64);

/// Which store, and how far it has come.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// `None`: it was never heard.
    store: Option<StoreId>,
    /// Its last change that was heard of.
    revision: u64,
    /// The newest version of a record that was heard of.
    #[serde(default)]
    mark: u64,
    /// It said once that its last change is this one, though a later one was known.
    set_back_to: Option<u64>,
    #[serde(skip)]
    /// Revision and mark.
    kept: Option<(u64, u64)>,
}

impl Memory {
    /// Its last change that was heard of: an answer to what is asked from now on must not be older.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        Revision(self.revision)
    }

    /// The newest version of a record that is known: a store that is not so far must write
    /// nothing.
    #[must_use]
    pub const fn mark(&self) -> Revision {
        Revision(self.mark)
    }

    /// A record of this version is known, so the store has come at least so far.
    pub fn knows(&mut self, revision: Revision) {
        self.mark = self.mark.max(revision.0);
        self.revision = self.revision.max(revision.0);
    }

    /// A store said that its last change is `revision`, to a question that was asked when `floor`
    /// was known. `at` is where it was asked.
    ///
    /// # Errors
    /// It is not to be believed.
    pub fn hears(
        &mut self,
        (store, revision): (StoreId, Revision),
        floor: Revision,
        at: &str,
    ) -> Result<(), Trouble> {
        if let Some(known) = self.store
            && known != store
        {
            return Err(other_store(at, known, store));
        }
        if revision < floor {
            return Err(self.is_set_back(revision, at));
        }
        if let Some(to) = self.set_back_to {
            return Err(self.set_back(at, to));
        }
        self.store = Some(store);
        self.revision = self.revision.max(revision.0);
        Ok(())
    }

    /// A store said that its last change is this one, though a later one is known.
    pub fn is_set_back(&mut self, to: Revision, at: &str) -> Trouble {
        if self.set_back_to.is_none() {
            self.set_back_to = Some(to.0);
            self.kept = None;
        }
        self.set_back(at, self.set_back_to.unwrap_or(to.0))
    }

    /// Whether it must be kept before anything that was heard is acted on: the store is known for
    /// the first time, or was set back.
    #[must_use]
    pub const fn is_to_be_kept_first(&self) -> bool {
        self.store.is_some() && self.kept.is_none()
    }

    /// Whether the store has come further than what was kept.
    #[must_use]
    pub fn is_newer_than_kept(&self) -> bool {
        self.store.is_some() && self.kept != Some((self.revision, self.mark))
    }

    /// What to keep. It counts as kept from now on.
    ///
    /// # Panics
    /// Never: plain numbers become JSON.
    #[must_use]
    pub fn keep(&mut self) -> Vec<u8> {
        self.kept = Some((self.revision, self.mark));
        let body = serde_json::to_vec_pretty(self).expect("numbers");
        document::write(KIND, &body)
    }

    /// What was kept.
    ///
    /// # Errors
    /// It is damaged, or another version wrote it.
    pub fn parse(text: &[u8]) -> Result<Self, DocumentError> {
        let mut memory: Self = document::parse(KIND, text)?;
        memory.kept = Some((memory.revision, memory.mark));
        Ok(memory)
    }

    fn set_back(&self, at: &str, to: u64) -> Trouble {
        let known = self.revision;
        let what = if to <= 1 {
            "it was emptied"
        } else {
            "it was restored from an old backup, or lost what it had said is stable"
        };
        Trouble::new(
            TroubleKind::SetBack,
            format!(
                "{at}: its last change was number {to}, and number {known} is known here: {what}"
            ),
            "nothing is changed until somebody has inspected it: restore the members of etcd from their own data, or have \
             the cluster's records made anew by the nodes that have the data",
        )
    }
}

fn other_store(at: &str, known: StoreId, is: StoreId) -> Trouble {
    Trouble::new(
        TroubleKind::OtherStore,
        format!(
            "{at}: this is cluster {:016x} of etcd, and the role records are in cluster {:016x}",
            is.0, known.0
        ),
        "name the endpoints of the etcd that this cluster was made with",
    )
}

#[cfg(test)]
mod test {
    use super::*;

    const STORE: StoreId = StoreId(7);

    fn hears(memory: &mut Memory, store: u64, revision: u64) -> Result<(), TroubleKind> {
        let floor = memory.revision();
        let heard = memory.hears((StoreId(store), Revision(revision)), floor, "etcd-a");
        heard.map_err(|it| it.kind)
    }

    #[test]
    fn a_store_that_falls_behind_is_believed_no_more_not_even_when_it_has_caught_up() {
        let mut memory = Memory::default();
        assert_eq!(hears(&mut memory, 7, 100), Ok(()));
        assert_eq!(hears(&mut memory, 7, 100), Ok(()));
        assert_eq!(hears(&mut memory, 7, 99), Err(TroubleKind::SetBack));
        assert_eq!(hears(&mut memory, 7, 101), Err(TroubleKind::SetBack));
        let mut after = Memory::parse(&memory.keep()).unwrap();
        assert_eq!(hears(&mut after, 7, 500), Err(TroubleKind::SetBack));
        assert_eq!(memory.revision(), Revision(100));
    }

    #[test]
    fn another_store_changes_nothing_of_what_is_known_of_the_first() {
        let mut memory = Memory::default();
        assert_eq!(hears(&mut memory, 7, 100), Ok(()));
        assert_eq!(hears(&mut memory, 8, 5000), Err(TroubleKind::OtherStore));
        assert_eq!(hears(&mut memory, 7, 101), Ok(()));
    }

    #[test]
    fn an_answer_to_an_older_question_may_be_older_than_what_is_known_by_now() {
        let mut memory = Memory::default();
        let asked = memory.revision();
        assert_eq!(hears(&mut memory, 7, 100), Ok(()));
        let late = memory.hears((STORE, Revision(98)), asked, "etcd-b");
        assert_eq!(late, Ok(()));
        assert_eq!(memory.revision(), Revision(100));
    }

    #[test]
    fn it_is_kept_before_all_else_at_first_and_when_the_store_was_set_back() {
        let mut memory = Memory::default();
        memory.knows(Revision(40));
        assert!(
            !memory.is_to_be_kept_first() && !memory.is_newer_than_kept(),
            "no store is known"
        );
        assert_eq!(hears(&mut memory, 7, 50), Ok(()));
        assert!(memory.is_to_be_kept_first());
        let kept = memory.keep();
        assert!(!memory.is_to_be_kept_first() && !memory.is_newer_than_kept());
        assert_eq!(Memory::parse(&kept), Ok(memory.clone()));
        assert_eq!(hears(&mut memory, 7, 51), Ok(()));
        assert!(!memory.is_to_be_kept_first() && memory.is_newer_than_kept());
        let _kept = memory.keep();
        assert!(hears(&mut memory, 7, 3).is_err());
        assert!(memory.is_to_be_kept_first());
    }
}
