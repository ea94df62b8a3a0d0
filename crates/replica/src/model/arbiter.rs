//! The arbiter of the model: records that change by compare-and-swap, and what is asked of it.
//!
//! It is late as long as somebody likes, loses answers, does what nobody waits for any more, does
//! it twice, and can be set back to what it was: for the explorer, and for whoever runs against it
//! in simulated time.

use crate::record::Revision;
use std::collections::BTreeMap;

/// What is asked of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Ask<K, V> {
    /// The record of this name.
    Read(K),
    /// To put a record in the place of this version; [`Revision`] 0: of none.
    Swap(K, Revision, V),
    /// The same of several, all or none.
    SwapAll(Vec<(K, Revision, V)>),
}

/// How it answers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Said<V> {
    /// The record: no swap was asked for, or it came too late.
    Is(Option<(Revision, V)>),
    /// Not all of several could be done: these are there.
    AreAll(Vec<Option<(Revision, V)>>),
    /// The swap was done.
    Swapped(Revision),
}

/// Something that was asked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Request<W, K, V> {
    /// Who asked.
    pub from: W,
    /// Nobody waits for it any more.
    pub is_forgotten: bool,
    /// It was done, and this is to be said.
    pub answer: Option<Said<V>>,
    ask: Ask<K, V>,
}

/// Its records by name, as they were at some time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Held<K, V> {
    /// It rises with each change of any record.
    pub revision: Revision,
    /// With the revision at which each was written.
    pub records: BTreeMap<K, (Revision, V)>,
}

impl<K: Ord, V> Held<K, V> {
    /// As a store begins that was made just now.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            revision: Revision(1),
            records: BTreeMap::new(),
        }
    }
}

/// The arbiter, for whoever `W` is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArbiterModel<W, K, V> {
    held: Held<K, V>,
    requests: Vec<Request<W, K, V>>,
}

impl<W: Copy + PartialEq, K: Ord + Clone, V: Clone> ArbiterModel<W, K, V> {
    /// With these records, and nothing asked.
    #[must_use]
    pub const fn new(held: Held<K, V>) -> Self {
        Self {
            held,
            requests: Vec::new(),
        }
    }

    /// Its records now: a backup, or what the newest answer is.
    #[must_use]
    pub const fn held(&self) -> &Held<K, V> {
        &self.held
    }

    /// It is set back to what it was, or emptied. What was asked before goes on.
    pub fn set_back(&mut self, to: Held<K, V>) {
        self.held = to;
    }

    /// What was asked and makes a difference yet.
    #[must_use]
    pub fn requests(&self) -> &[Request<W, K, V>] {
        &self.requests
    }

    /// Somebody asks.
    pub fn asks(&mut self, from: W, ask: Ask<K, V>) {
        self.requests.push(Request {
            from,
            is_forgotten: false,
            answer: None,
            ask,
        });
    }

    /// Somebody waits for no answer any more.
    pub fn waits_no_more(&mut self, from: W) {
        let all = self.requests.iter_mut();
        all.filter(|it| it.from == from)
            .for_each(|it| it.is_forgotten = true);
        self.forget();
    }

    /// A request is done, whether anybody waits or not. Gives the record that was there before, if
    /// one was written by itself.
    pub fn does(&mut self, at: usize) -> Option<Option<V>> {
        let (answer, before) = match &self.requests[at].ask {
            Ask::Swap(key, expected, to) if *expected == self.revision_of(key) => {
                let revision = Revision(self.held.revision.0 + 1);
                self.held.revision = revision;
                let record = (revision, to.clone());
                let before = self.held.records.insert(key.clone(), record);
                (Said::Swapped(revision), Some(before.map(|(_, is)| is)))
            }
            Ask::SwapAll(all) if self.may_come(&self.requests[at].ask) => {
                let revision = Revision(self.held.revision.0 + 1);
                self.held.revision = revision;
                let records = all
                    .iter()
                    .map(|(key, _, to)| (key.clone(), (revision, to.clone())));
                self.held.records.extend(records);
                (Said::Swapped(revision), None)
            }
            Ask::SwapAll(all) => {
                let is = |it: &(K, Revision, V)| self.held.records.get(&it.0).cloned();
                (Said::AreAll(all.iter().map(is).collect()), None)
            }
            Ask::Swap(key, ..) | Ask::Read(key) => {
                (Said::Is(self.held.records.get(key).cloned()), None)
            }
        };
        self.requests[at].answer = Some(answer);
        self.forget();
        before
    }

    /// It is to change a record.
    #[must_use]
    pub fn is_swap(&self, at: usize) -> bool {
        matches!(self.requests[at].ask, Ask::Swap(..) | Ask::SwapAll(_))
    }

    /// A request is answered and not done: who asked knows more than the arbiter.
    pub fn answers_nothing(&mut self, at: usize) {
        self.requests[at].answer = Some(Said::Is(None));
    }

    /// The same is asked once more, and nobody waits for that.
    pub fn repeats(&mut self, at: usize) {
        let request = Request {
            is_forgotten: true,
            answer: None,
            ..self.requests[at].clone()
        };
        self.requests.push(request);
    }

    /// The answer to a request that was done arrives.
    ///
    /// # Panics
    /// If it was not done.
    pub fn answers(&mut self, at: usize) -> (W, Said<V>) {
        let request = self.requests.remove(at);
        (request.from, request.answer.expect("it was done"))
    }

    /// The answer to a request will never arrive.
    pub fn loses(&mut self, at: usize) -> W {
        self.requests[at].is_forgotten = true;
        let from = self.requests[at].from;
        self.forget();
        from
    }

    /// 0: there is none.
    fn revision_of(&self, key: &K) -> Revision {
        let record = self.held.records.get(key);
        record.map_or(Revision(0), |(revision, _)| *revision)
    }

    /// Who asked is gone, and it was done or will never be: it makes no difference.
    fn forget(&mut self) {
        let requests = std::mem::take(&mut self.requests);
        let makes_a_difference = |it: &Request<W, K, V>| {
            !it.is_forgotten || (it.answer.is_none() && self.may_come(&it.ask))
        };
        self.requests = requests.into_iter().filter(makes_a_difference).collect();
    }

    /// It would write something.
    fn may_come(&self, ask: &Ask<K, V>) -> bool {
        let may = |key: &K, expected: &Revision| *expected == self.revision_of(key);
        match ask {
            Ask::Swap(key, expected, _) => may(key, expected),
            Ask::SwapAll(all) => all.iter().all(|(key, expected, _)| may(key, expected)),
            Ask::Read(_) => false,
        }
    }
}
