//! An arbiter in simulated time: late, twice or never, and set back when somebody likes.

use crate::memory::{Memory, StoreId};
use crate::question::{Answer, Arbiter, Changes, Key, Question, SwapAll, Together};
use crate::trouble::{Trouble, TroubleKind};
use env::{CoreHandle, LocalFuture, in_time};
use replica::Revision;
use replica::model::{ArbiterModel, Ask, Held, Said};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How it behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manners {
    /// Longest time of a question on its way, and of its answer.
    pub late_max: Duration,
    /// Questions and answers of a thousand that are lost.
    pub lost: u32,
    /// Questions of a thousand that are done a second time, later.
    pub twice: u32,
    /// How long who asks waits.
    pub patience: Duration,
}

impl Manners {
    /// Nothing goes wrong.
    pub const GOOD: Self = Self {
        late_max: Duration::from_millis(2),
        lost: 0,
        twice: 0,
        patience: Duration::from_secs(1),
    };

    /// Many answers come after nobody waits for them any more, or never.
    pub const BAD: Self = Self {
        late_max: Duration::from_millis(200),
        lost: 100,
        twice: 100,
        patience: Duration::from_millis(250),
    };
}

struct Store {
    id: StoreId,
    model: ArbiterModel<u64, Key, Vec<u8>>,
    asked: u64,
}

/// The store that several [`ModelArbiter`]s ask, on a core of a machine of its own.
#[derive(Clone)]
pub struct ModelStore {
    core: CoreHandle,
    store: Rc<RefCell<Store>>,
    is_away: Rc<Cell<bool>>,
}

impl ModelStore {
    /// An empty one.
    #[must_use]
    pub fn new(core: &CoreHandle) -> Self {
        Self {
            core: Rc::clone(core),
            store: Rc::new(RefCell::new(Store {
                id: StoreId(1),
                model: ArbiterModel::new(Held::nothing()),
                asked: 0,
            })),
            is_away: Rc::default(),
        }
    }

    /// All records, to set it back to them later.
    #[must_use]
    pub fn backup(&self) -> Held<Key, Vec<u8>> {
        self.store.borrow().model.held().clone()
    }

    /// It is restored from a backup, or from nothing. What is on its way to it goes on.
    pub fn set_back(&self, to: Held<Key, Vec<u8>>) {
        self.store.borrow_mut().model.set_back(to);
    }

    /// Another store is found at its address.
    pub fn becomes(&self, id: StoreId) {
        self.store.borrow_mut().id = id;
    }

    /// Nothing of what comes is done, or it comes back.
    pub fn is_away(&self, is_away: bool) {
        self.is_away.set(is_away);
    }

    fn draw(&self, below: u32) -> u32 {
        let mut bytes = [0; 4];
        self.core.fill_random(&mut bytes);
        u32::from_le_bytes(bytes) % below.max(1)
    }

    fn travels(&self, manners: Manners) -> LocalFuture<()> {
        let most = u32::try_from(manners.late_max.as_micros()).unwrap_or(u32::MAX);
        let span = Duration::from_micros(self.draw(most).into());
        self.core.sleep_until(self.core.now().after(span))
    }

    /// Puts a request on its way; what is said of it comes by the channel, or not at all.
    fn ask(
        &self,
        ask: Ask<Key, Vec<u8>>,
        (manners, floor): (Manners, Revision),
        answer: oneshot::Sender<Heard>,
    ) {
        let store = self.clone();
        let from = {
            let mut inner = self.store.borrow_mut();
            inner.asked += 1;
            let from = inner.asked;
            inner.model.asks(from, ask);
            from
        };
        self.core.spawn(Box::pin(async move {
            store.travels(manners).await;
            if store.is_lost(manners) {
                return store.store.borrow_mut().model.waits_no_more(from);
            }
            let heard = store.does(from, floor);
            if store.draw(1000) < manners.twice {
                store.again(from, (manners, floor));
            }
            store.travels(manners).await;
            let said = store.said(from);
            if let (false, Some(heard), Some(said)) = (store.is_lost(manners), heard, said) {
                let _nobody_waits = answer.send((heard, said));
            }
        }));
    }

    fn is_lost(&self, manners: Manners) -> bool {
        self.is_away.get() || self.draw(1000) < manners.lost
    }

    /// Does it now, unless the store is not so far as who asks has known it: which store it is,
    /// and how far since.
    fn does(&self, from: u64, floor: Revision) -> Option<(StoreId, Revision)> {
        let mut inner = self.store.borrow_mut();
        let mut all = inner.model.requests().iter();
        let at = all.position(|it| it.from == from && it.answer.is_none())?;
        if inner.model.held().revision < floor {
            inner.model.answers_nothing(at);
        } else {
            let _before = inner.model.does(at);
        }
        Some((inner.id, inner.model.held().revision))
    }

    fn again(&self, from: u64, (manners, floor): (Manners, Revision)) {
        let mut inner = self.store.borrow_mut();
        let at = inner.model.requests().iter().position(|it| it.from == from);
        if let Some(at) = at {
            inner.model.repeats(at);
            drop(inner);
            let store = self.clone();
            self.core.spawn(Box::pin(async move {
                store.travels(manners).await;
                let _heard = store.does(from, floor);
            }));
        }
    }

    fn said(&self, from: u64) -> Option<Said<Vec<u8>>> {
        let mut inner = self.store.borrow_mut();
        let mut all = inner.model.requests().iter();
        let at = all.position(|it| it.from == from && it.answer.is_some())?;
        Some(inner.model.answers(at).1)
    }
}

type Heard = ((StoreId, Revision), Said<Vec<u8>>);

/// What a node asks of a [`ModelStore`].
pub struct ModelArbiter {
    core: CoreHandle,
    store: ModelStore,
    manners: Manners,
    memory: Rc<RefCell<Memory>>,
}

impl ModelArbiter {
    /// Asks `store` from a core.
    #[must_use]
    pub fn new(core: &CoreHandle, store: &ModelStore, manners: Manners) -> Self {
        Self {
            core: Rc::clone(core),
            store: store.clone(),
            manners,
            memory: Rc::default(),
        }
    }

    fn silent(&self) -> Trouble {
        let cause = format!(
            "the model of an arbiter: nothing for {:?}",
            self.manners.patience
        );
        Trouble::new(TroubleKind::Silent, cause, "wait")
    }
}

/// What an answer means for a question.
fn answer(question: &Question, said: Said<Vec<u8>>) -> Answer {
    match (question, said) {
        (Question::Read(_), Said::Is(is)) => Answer::Is(is),
        (Question::Swap(swap), Said::Is(is)) => swap.met(is),
        (Question::Swap(_) | Question::Read(_), Said::Swapped(revision)) => {
            Answer::Swapped(revision)
        }
        (Question::Swap(_) | Question::Read(_), Said::AreAll(_)) => unreachable!("it was one"),
    }
}

impl Arbiter for ModelArbiter {
    fn ask(&self, questions: Vec<Question>) -> LocalFuture<Vec<Answer>> {
        let (core, memory) = (Rc::clone(&self.core), Rc::clone(&self.memory));
        let (patience, silent) = (self.manners.patience, self.silent());
        let floor = memory.borrow().revision();
        let sent = questions.into_iter().map(|question| {
            let (answer, answered) = oneshot::channel();
            let ask = match &question {
                Question::Read(key) => Ask::Read(key.clone()),
                Question::Swap(swap) => {
                    Ask::Swap(swap.key.clone(), swap.expected, swap.to().to_vec())
                }
            };
            self.store.ask(ask, (self.manners, floor), answer);
            (question, answered)
        });
        let sent: Vec<_> = sent.collect();
        let until = self.core.now().after(patience);
        Box::pin(async move {
            let mut answers = Vec::new();
            for (question, answered) in sent {
                let left = until.since(core.now());
                let Some(Ok((heard, said))) = in_time(&core, left, answered).await else {
                    answers.push(Answer::Unknown(silent.clone()));
                    continue;
                };
                let is_right = memory
                    .borrow_mut()
                    .hears(heard, floor, "the model of an arbiter");
                answers.push(match is_right {
                    Ok(()) => answer(&question, said),
                    Err(trouble) => Answer::Unknown(trouble),
                });
            }
            answers
        })
    }

    fn swap_all(&self, swaps: SwapAll) -> LocalFuture<Together> {
        let (core, memory) = (Rc::clone(&self.core), Rc::clone(&self.memory));
        let (patience, silent) = (self.manners.patience, self.silent());
        let floor = memory.borrow().revision();
        let (answer, answered) = oneshot::channel();
        let all = swaps.swaps().iter();
        let all = all.map(|it| (it.key.clone(), it.expected, it.to().to_vec()));
        let ask = Ask::SwapAll(all.collect());
        self.store.ask(ask, (self.manners, floor), answer);
        Box::pin(async move {
            let Some(Ok((heard, said))) = in_time(&core, patience, answered).await else {
                return Together::Unknown(silent);
            };
            let is_right = memory
                .borrow_mut()
                .hears(heard, floor, "the model of an arbiter");
            match (is_right, said) {
                (Err(trouble), _) => Together::Unknown(trouble),
                (Ok(()), Said::Swapped(revision)) => Together::Swapped(revision),
                (Ok(()), Said::AreAll(are)) => swaps.met(are),
                (Ok(()), Said::Is(_)) => unreachable!("a store that is behind is not right"),
            }
        })
    }

    fn knows(&self, revision: Revision) {
        self.memory.borrow_mut().knows(revision);
    }

    fn changes(&self, below: &Key, since: Revision) -> LocalFuture<Result<Changes, Trouble>> {
        let (store, manners, below) = (self.store.clone(), self.manners, below.clone());
        let (silent, memory) = (self.silent(), Rc::clone(&self.memory));
        Box::pin(async move {
            let floor = memory.borrow().revision();
            store.travels(manners).await;
            let (id, held) = (store.store.borrow().id, store.backup());
            let is_lost = store.is_lost(manners);
            store.travels(manners).await;
            if is_lost {
                return Err(silent);
            }
            let heard = (id, held.revision);
            memory
                .borrow_mut()
                .hears(heard, floor, "the model of an arbiter")?;
            let of = |(key, (revision, _)): &(Key, (Revision, Vec<u8>))| {
                key.is_below(&below) && *revision > since
            };
            let records = held.records.into_iter().filter(of).collect();
            let until = held.revision;
            Ok(Changes { records, until })
        })
    }
}
