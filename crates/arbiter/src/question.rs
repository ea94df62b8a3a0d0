//! What is asked of an arbiter, and what its answers mean.

use crate::trouble::Trouble;
use env::LocalFuture;
use replica::Revision;
use std::collections::BTreeSet;
use std::fmt;

/// Longest name of a record, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

/// Largest record, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 10;

/// Questions that are asked together at most.
pub const BATCH_MAX: usize = 64;

/// Bytes of records that change together at most: etcd takes half a second for a mebibyte.
pub const TOGETHER_BYTES_MAX: usize = 128 << 10;

/// The name of a record: words of letters, digits and `.:_-` with a `/` between them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(String);

impl Key {
    /// A name; `None`: it is none.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_usual = |it: u8| it.is_ascii_alphanumeric() || b".:_-".contains(&it);
        let is_word = |it: &str| !it.is_empty() && it.bytes().all(is_usual);
        let is_name = text.len() <= KEY_BYTES_MAX && text.split('/').all(is_word);
        is_name.then(|| Self(text.to_owned()))
    }

    /// As it is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands below `folder`.
    #[must_use]
    pub fn is_below(&self, folder: &Self) -> bool {
        let rest = self.0.strip_prefix(&folder.0);
        rest.is_some_and(|it| it.starts_with('/'))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A record, and the version of it.
pub type Record = (Revision, Vec<u8>);

/// A record is to be put in the place of one version of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Swap {
    /// Its name.
    pub key: Key,
    /// The version that it must have now; 0: there must be none.
    pub expected: Revision,
    to: Vec<u8>,
}

impl Swap {
    /// `to` in the place of `expected`.
    ///
    /// # Panics
    /// If the record is longer than [`VALUE_BYTES_MAX`], or empty.
    #[must_use]
    pub fn new(key: Key, expected: Revision, to: Vec<u8>) -> Self {
        let is_fit = !to.is_empty() && to.len() <= VALUE_BYTES_MAX;
        assert!(is_fit, "{key}: a record of {} bytes", to.len());
        Self { key, expected, to }
    }

    /// The record that is to be there.
    #[must_use]
    pub fn to(&self) -> &[u8] {
        &self.to
    }

    /// What it means that this is there in the place of the version that was expected. If it is
    /// what was to be written, the swap was done, and the answer to it was lost.
    #[must_use]
    pub fn met(&self, is: Option<Record>) -> Answer {
        match is {
            Some((revision, is)) if is == self.to => Answer::Swapped(revision),
            is => Answer::Refused(is),
        }
    }
}

/// Records that change together: all of them, or none.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SwapAll(Vec<Swap>);

impl SwapAll {
    /// All of these.
    ///
    /// # Panics
    /// If they are none or more than [`BATCH_MAX`], two of them are of the same record, or they
    /// have more than [`TOGETHER_BYTES_MAX`].
    #[must_use]
    pub fn new(swaps: Vec<Swap>) -> Self {
        let keys: BTreeSet<&Key> = swaps.iter().map(|it| &it.key).collect();
        let bytes: usize = swaps.iter().map(|it| it.to.len()).sum();
        let is_fit = (1..=BATCH_MAX).contains(&swaps.len()) && bytes <= TOGETHER_BYTES_MAX;
        let count = swaps.len();
        assert!(is_fit, "{count} records of {bytes} bytes");
        assert_eq!(keys.len(), count, "each record once");
        Self(swaps)
    }

    /// Each of them.
    #[must_use]
    pub fn swaps(&self) -> &[Swap] {
        &self.0
    }

    /// What it means that these are there, at one moment, where not all are of the versions that
    /// were expected. If all are what was to be written, in one change, that was done, and the
    /// answer to it was lost.
    #[must_use]
    pub fn met(&self, are: Vec<Option<Record>>) -> Together {
        let first = are.first().and_then(|it| it.as_ref()).map(|it| it.0);
        let is_own = |(swap, is): (&Swap, &Option<Record>)| {
            let is = is.as_ref();
            is.is_some_and(|(revision, is)| Some(*revision) == first && *is == swap.to)
        };
        match first {
            Some(revision) if self.0.iter().zip(&are).all(is_own) => Together::Swapped(revision),
            _ => Together::Refused(are),
        }
    }
}

/// What is known after several records were to change together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Together {
    /// All of them have this version since.
    Swapped(Revision),
    /// None was changed, and none will be any more: these were there, at one moment, in their
    /// order. Where an answer was lost on the way, all may have been changed, and some of them
    /// again since.
    Refused(Vec<Option<Record>>),
    /// Whether they were changed, or will be, nobody knows: ask the same again.
    Unknown(Trouble),
}

/// What one may want of an arbiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Question {
    /// What is the record of this name?
    Read(Key),
    /// Put a record there, if nobody else did.
    Swap(Swap),
}

impl Question {
    /// Bytes of a record that it writes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Read(_) => 0,
            Self::Swap(swap) => swap.to.len(),
        }
    }

    /// Which record it is about.
    #[must_use]
    pub const fn key(&self) -> &Key {
        match self {
            Self::Read(key) | Self::Swap(Swap { key, .. }) => key,
        }
    }
}

/// What is known after a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The record, as it was at some moment between question and answer.
    Is(Option<Record>),
    /// The swap was done, and the record has this version since.
    Swapped(Revision),
    /// The record is this one, and the swap will never be done any more. Where an answer was lost
    /// on the way it may have been done, and been replaced by this one since.
    Refused(Option<Record>),
    /// Whether a swap was done, or will be, nobody knows: ask the same again, or read, before
    /// anything is concluded.
    Unknown(Trouble),
}

impl Answer {
    /// The version of the record that it has, or has written.
    #[must_use]
    pub fn version(&self) -> Option<Revision> {
        match self {
            Self::Is(is) | Self::Refused(is) => is.as_ref().map(|it| it.0),
            Self::Swapped(revision) => Some(*revision),
            Self::Unknown(_) => None,
        }
    }
}

/// The records below a name that changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Each as it was at some moment between question and answer, in the order of names.
    pub records: Vec<(Key, Record)>,
    /// Ask again from here: nothing that changes is missed.
    pub until: Revision,
}

/// Holds records, each of which changes by compare-and-swap.
///
/// **Contract.** The versions of a record rise, and no two records of the store are written with
/// the same version unless they were asked for together. Nothing is ever taken away, so a swap
/// that comes true late compares with what can never be there again. Each record says who wrote it
/// when: no two writers write the same bytes, and one who finds his own there has written them.
/// Dropping the future is allowed at any time: then nobody knows.
pub trait Arbiter {
    /// Asks. Each question has an answer of its own, in their order; they are not all done at the
    /// same moment, or all or none. No two are about the same record.
    fn ask(&self, questions: Vec<Question>) -> LocalFuture<Vec<Answer>>;

    /// Changes several records at one moment, or none of them.
    fn swap_all(&self, swaps: SwapAll) -> LocalFuture<Together>;

    /// A record of this version is known from elsewhere, such as what a copy keeps: a store that is
    /// not so far is not believed, and writes nothing.
    fn knows(&self, revision: Revision);

    /// What changed below a name since the version `since`: 0 gives everything. Who wants to
    /// follow asks again from where the last answer ended; while nothing changes, that costs the
    /// store a read of one number.
    fn changes(&self, below: &Key, since: Revision) -> LocalFuture<Result<Changes, Trouble>>;
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_key_is_words_with_slashes_between_them() {
        for good in ["a", "luns/naa.6001405/role", "gen/7/x:y_z-1"] {
            assert_eq!(Key::new(good).unwrap().as_str(), good);
        }
        let long = "a".repeat(KEY_BYTES_MAX + 1);
        for bad in ["", "/", "a/", "/a", "a//b", "a b", "a\0", "ä", &long] {
            assert_eq!(Key::new(bad), None, "{bad}");
        }
        let key = |text| Key::new(text).unwrap();
        assert!(key("luns/a/role").is_below(&key("luns")));
        assert!(!key("lunsa/role").is_below(&key("luns")));
        assert!(!key("luns").is_below(&key("luns")));
    }

    #[test]
    fn what_was_written_together_is_found_so_and_nothing_else_is_taken_for_it() {
        let swap = |name, to: &str| {
            Swap::new(Key::new(name).unwrap(), Revision(3), to.as_bytes().to_vec())
        };
        let both = SwapAll::new(vec![swap("a", "mine"), swap("b", "too")]);
        let is = |revision, text: &str| Some((Revision(revision), text.as_bytes().to_vec()));
        let mine = vec![is(5, "mine"), is(5, "too")];
        assert_eq!(both.met(mine), Together::Swapped(Revision(5)));
        for others in [
            vec![is(5, "mine"), is(6, "too")],
            vec![is(5, "mine"), is(5, "theirs")],
            vec![is(5, "mine"), None],
            vec![None, None],
        ] {
            assert_eq!(both.met(others.clone()), Together::Refused(others));
        }
    }

    #[test]
    fn who_finds_what_he_was_to_write_has_written_it() {
        let swap = Swap::new(Key::new("a").unwrap(), Revision(3), b"mine".to_vec());
        let mine = Some((Revision(4), b"mine".to_vec()));
        assert_eq!(swap.met(mine), Answer::Swapped(Revision(4)));
        for other in [None, Some((Revision(4), b"theirs".to_vec()))] {
            assert_eq!(swap.met(other.clone()), Answer::Refused(other));
        }
    }
}
