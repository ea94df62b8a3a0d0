//! One arbiter for nodes on several threads: records in memory.

use arbiter::{Answer, Arbiter, Changes, Key, Question, Record, Swap, SwapAll, Together, Trouble};
use env::LocalFuture;
use replica::Revision;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
struct Held {
    revision: u64,
    records: BTreeMap<Key, Record>,
}

/// What all nodes ask in the place of etcd.
#[derive(Clone, Default)]
pub(crate) struct Records(Arc<Mutex<Held>>);

impl Held {
    fn is(&self, key: &Key) -> Option<Record> {
        self.records.get(key).cloned()
    }

    fn version(&self, key: &Key) -> Revision {
        self.is(key).map_or(Revision(0), |it| it.0)
    }

    fn put(&mut self, swap: &Swap) {
        let record = (Revision(self.revision), swap.to().to_vec());
        self.records.insert(swap.key.clone(), record);
    }

    fn answer(&mut self, question: &Question) -> Answer {
        match question {
            Question::Read(key) => Answer::Is(self.is(key)),
            Question::Swap(swap) if self.version(&swap.key) == swap.expected => {
                self.revision += 1;
                self.put(swap);
                Answer::Swapped(Revision(self.revision))
            }
            Question::Swap(swap) => swap.met(self.is(&swap.key)),
        }
    }
}

impl Records {
    fn with<T: 'static>(&self, work: impl FnOnce(&mut Held) -> T) -> LocalFuture<T> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(work(&mut held)))
    }
}

impl Arbiter for Records {
    fn ask(&self, questions: Vec<Question>) -> LocalFuture<Vec<Answer>> {
        self.with(|held| questions.iter().map(|it| held.answer(it)).collect())
    }

    fn swap_all(&self, all: SwapAll) -> LocalFuture<Together> {
        self.with(|held| {
            let mut swaps = all.swaps().iter();
            if swaps.any(|it| held.version(&it.key) != it.expected) {
                return all.met(all.swaps().iter().map(|it| held.is(&it.key)).collect());
            }
            held.revision += 1;
            for swap in all.swaps() {
                held.put(swap);
            }
            Together::Swapped(Revision(held.revision))
        })
    }

    fn knows(&self, _: Revision) {}

    fn changes(&self, below: &Key, since: Revision) -> LocalFuture<Result<Changes, Trouble>> {
        self.with(|held| {
            let is_new = |(key, it): &(&Key, &Record)| key.is_below(below) && it.0 > since;
            let records = held.records.iter().filter(is_new);
            Ok(Changes {
                records: records.map(|(key, it)| (key.clone(), it.clone())).collect(),
                until: Revision(held.revision),
            })
        })
    }
}
