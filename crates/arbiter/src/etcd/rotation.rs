//! Which endpoint is asked what, and when another one is asked the same: pure.
//!
//! Questions wait until they fit into a request: up to 64 in one transaction, some of which are on
//! their way at a time. A request goes to one endpoint. Where that does not answer soon the same
//! goes to the next one, and the first is still waited for: a swap that is done by one of them is
//! found done by the other. So an endpoint that hangs, or is slow, costs one such span, once:
//! whoever answered is asked first from then on.

use super::gateway::{self, Asks, Header, Says};
use super::health::Health;
use super::said;
use crate::memory::Memory;
use crate::question::{
    Answer, BATCH_MAX, Changes, Key, Question, Record, SwapAll, TOGETHER_BYTES_MAX, Together,
};
use crate::trouble::{Trouble, TroubleKind};
use replica::Revision;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use units::Now;

/// Requests that are on their way at a time.
const REQUESTS_MAX: usize = 4;

/// Bytes of records that one request writes, or one more record.
const REQUEST_BYTES_MAX: usize = TOGETHER_BYTES_MAX;

/// Questions that wait at most.
const WAITING_MAX: usize = 1 << 14;

/// What is known of the store is kept so long after it changed.
const KEEP_AFTER: Duration = Duration::from_secs(1);

/// How long to wait for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Patience {
    /// Before another endpoint is asked the same.
    pub again: Duration,
    /// Before all are asked once more, of which none could answer.
    pub round: Duration,
    /// Before nobody knows.
    pub answer: Duration,
}

impl Patience {
    /// A takeover has to be through in 1.2 s where a member of etcd hangs.
    pub(super) const USUAL: Self = Self {
        again: Duration::from_millis(200),
        round: Duration::from_millis(100),
        answer: Duration::from_millis(1200),
    };
}

/// A request to one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TryId(pub u64);

/// What is to be done, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Keep this, before what comes after it is done.
    Keep(Vec<u8>),
    /// Post this to an endpoint.
    Post {
        id: TryId,
        endpoint: usize,
        path: &'static str,
        body: Vec<u8>,
    },
    /// Nobody waits for it any more: end its connection.
    Drop(TryId),
    /// Answer who asked under this number.
    Answer(u64, Answer),
    /// The same for who changes several records together.
    Together(u64, Together),
    /// The same for who follows.
    Changes(u64, Result<Changes, Trouble>),
}

/// What became of a request to one endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// Status and body.
    Said(u16, Vec<u8>),
    /// No answer.
    Failed(Trouble),
}

/// Who waits for the answer to a request.
enum Asker {
    Batch(Vec<u64>),
    Together(u64),
    Follower(Follower),
}

struct Follower {
    number: u64,
    below: Key,
    since: Revision,
    records: Vec<(Key, Record)>,
    /// How far the store was when the first of them were read.
    until: Option<Revision>,
}

struct Request {
    asks: Asks,
    asker: Asker,
    deadline: Now,
    /// Endpoints that were asked in this round.
    asked: BTreeSet<usize>,
    /// When the next one is asked.
    next: Option<Now>,
    /// What is said in the end if nobody answers.
    trouble: Option<Trouble>,
}

struct Try {
    request: u64,
    endpoint: usize,
    since: Now,
    /// The last change that was known when it went out.
    floor: Revision,
}

struct Waiting {
    number: u64,
    question: Question,
    deadline: Now,
}

/// Questions in, requests to endpoints out.
pub(super) struct Rotation {
    prefix: String,
    names: Vec<String>,
    patience: Patience,
    memory: Memory,
    health: Health,
    waiting: VecDeque<Waiting>,
    requests: BTreeMap<u64, Request>,
    tries: BTreeMap<TryId, Try>,
    keeps_at: Option<Now>,
    next: u64,
    effects: Vec<Effect>,
}

impl Rotation {
    /// Over endpoints of these names, for keys that begin with `prefix`.
    pub(super) fn new(
        (names, prefix): (Vec<String>, &str),
        memory: Memory,
        patience: Patience,
    ) -> Self {
        Self {
            prefix: prefix.to_owned(),
            health: Health::new(names.len()),
            names,
            patience,
            memory,
            waiting: VecDeque::new(),
            requests: BTreeMap::new(),
            tries: BTreeMap::new(),
            keeps_at: None,
            next: 0,
            effects: Vec::new(),
        }
    }

    /// What is to be done since the last time.
    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// What is known of the store.
    pub(super) const fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// What is wrong with each endpoint now, if anything.
    pub(super) fn troubles(&self) -> impl Iterator<Item = (&str, Option<&Trouble>)> {
        let names = self.names.iter().enumerate();
        names.map(|(at, name)| (name.as_str(), self.health.trouble(at)))
    }

    /// Somebody asks; the numbers name each question in [`Effect::Answer`].
    pub(super) fn ask(&mut self, questions: Vec<(u64, Question)>, now: Now) {
        let deadline = now.after(self.patience.answer);
        for (number, question) in questions {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(Waiting {
                    number,
                    question,
                    deadline,
                });
            } else {
                let cause = format!("{WAITING_MAX} questions wait for etcd");
                let trouble = Trouble::new(TroubleKind::Busy, cause, "wait: they are asked again");
                self.effects
                    .push(Effect::Answer(number, Answer::Unknown(trouble)));
            }
        }
        self.send_waiting(now);
    }

    /// Somebody changes several records together.
    pub(super) fn swap_all(&mut self, number: u64, swaps: SwapAll, now: Now) {
        let asks = Asks::Together(swaps, self.memory.mark());
        self.begin(asks, Asker::Together(number), now);
    }

    /// Somebody follows.
    pub(super) fn follow(&mut self, number: u64, below: Key, since: Revision, now: Now) {
        let follower = Follower {
            number,
            below,
            since,
            records: Vec::new(),
            until: None,
        };
        // While nothing has changed it costs the store a read of one number.
        let asks = if since.0 == 0 {
            follower.page()
        } else {
            Asks::Glance
        };
        self.begin(asks, Asker::Follower(follower), now);
    }

    fn send_waiting(&mut self, now: Now) {
        while self.requests.len() < REQUESTS_MAX && !self.waiting.is_empty() {
            let (mut questions, mut numbers) = (Vec::new(), Vec::new());
            let mut keys = BTreeSet::new();
            let mut bytes = 0;
            while questions.len() < BATCH_MAX && bytes < REQUEST_BYTES_MAX {
                let first = self.waiting.front();
                // A transaction has each key once.
                if !first.is_some_and(|it| keys.insert(it.question.key().clone())) {
                    break;
                }
                if let Some(first) = self.waiting.pop_front() {
                    bytes += first.question.bytes();
                    questions.push(first.question);
                    numbers.push(first.number);
                }
            }
            let asks = Asks::Batch(questions, self.memory.mark());
            self.begin(asks, Asker::Batch(numbers), now);
        }
    }

    fn begin(&mut self, asks: Asks, asker: Asker, now: Now) {
        let id = self.number();
        let request = Request {
            asks,
            asker,
            deadline: now.after(self.patience.answer),
            asked: BTreeSet::new(),
            next: None,
            trouble: None,
        };
        self.requests.insert(id, request);
        self.try_next(id, now);
    }

    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Asks the best endpoint that was not asked in this round.
    fn try_next(&mut self, id: u64, now: Now) {
        let number = self.number();
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        let Some(endpoint) = self.health.best_but(&request.asked, now) else {
            request.next = None;
            return;
        };
        request.asked.insert(endpoint);
        request.next = Some(now.after(self.patience.again));
        let (path, body) = gateway::request(&self.prefix, &request.asks);
        let try_id = TryId(number);
        let it = Try {
            request: id,
            endpoint,
            since: now,
            floor: self.memory.revision(),
        };
        self.tries.insert(try_id, it);
        self.effects.push(Effect::Post {
            id: try_id,
            endpoint,
            path,
            body,
        });
    }

    /// Something became of a request to an endpoint.
    pub(super) fn came(&mut self, id: TryId, came: Came, now: Now) {
        let Some(it) = self.tries.remove(&id) else {
            return;
        };
        let name = &self.names[it.endpoint];
        let request = self.requests.get(&it.request);
        let heard = match (came, request) {
            (_, None) => return,
            (Came::Failed(trouble), _) => Err(trouble),
            (Came::Said(200, body), Some(request)) => {
                gateway::read(&self.prefix, &request.asks, &body)
                    .map_err(|why| garbled(name, &why))
                    .and_then(|(header, says)| {
                        let Header { store, revision } = header;
                        self.memory.hears((store, revision), it.floor, name)?;
                        if let Says::IsBehind(at) = says {
                            return Err(self.memory.is_set_back(at, name));
                        }
                        says.records()
                            .into_iter()
                            .for_each(|it| self.memory.knows(it));
                        Ok((revision, says))
                    })
            }
            (Came::Said(status, body), _) => Err(said::trouble(name, status, &body)),
        };
        if self.memory.is_to_be_kept_first() {
            self.keep();
        } else if self.memory.is_newer_than_kept() && self.keeps_at.is_none() {
            self.keeps_at = Some(now.after(KEEP_AFTER));
        }
        match heard {
            Ok((revision, says)) => self.answered(&it, revision, says, now),
            Err(trouble) => self.failed(&it, trouble, now),
        }
        self.send_waiting(now);
    }

    fn answered(&mut self, by: &Try, revision: Revision, says: Says, now: Now) {
        self.health.answered(by.endpoint);
        self.drop_tries(by.request, now);
        let Some(mut request) = self.requests.remove(&by.request) else {
            return;
        };
        match (says, &mut request.asker) {
            (Says::Answers(answers), Asker::Batch(numbers)) => {
                let answered = numbers.iter().zip(answers);
                let answered = answered.map(|(number, answer)| Effect::Answer(*number, answer));
                self.effects.extend(answered);
            }
            (Says::Together(together), Asker::Together(number)) => {
                self.effects.push(Effect::Together(*number, together));
            }
            (Says::Nothing, Asker::Follower(follower)) if revision <= follower.since => {
                let changes = Changes {
                    records: Vec::new(),
                    until: revision,
                };
                let answered = Effect::Changes(follower.number, Ok(changes));
                self.effects.push(answered);
            }
            (Says::Nothing, Asker::Follower(follower)) => {
                let asks = follower.page();
                self.begin(asks, request.asker, now);
            }
            (Says::Page { records, is_last }, Asker::Follower(follower)) => {
                let until = *follower.until.get_or_insert(revision);
                let is_over = is_last || records.is_empty();
                follower.records.extend(records);
                if is_over {
                    let records = std::mem::take(&mut follower.records);
                    let changes = Ok(Changes { records, until });
                    let answered = Effect::Changes(follower.number, changes);
                    self.effects.push(answered);
                } else {
                    let asks = follower.page();
                    self.begin(asks, request.asker, now);
                }
            }
            // An answer is read by what was asked.
            (
                Says::Answers(_)
                | Says::Together(_)
                | Says::Nothing
                | Says::IsBehind(_)
                | Says::Page { .. },
                _,
            ) => {}
        }
    }

    fn failed(&mut self, by: &Try, trouble: Trouble, now: Now) {
        self.health.failed(by.endpoint, trouble.clone(), now);
        let is_last = !self.tries.values().any(|it| it.request == by.request);
        let Some(request) = self.requests.get_mut(&by.request) else {
            return;
        };
        let is_over = trouble.kind == TroubleKind::SetBack;
        let lasts = trouble.kind.lasts();
        if request
            .trouble
            .as_ref()
            .is_none_or(|it| lasts || !it.kind.lasts())
        {
            request.trouble = Some(trouble);
        }
        if is_over {
            return self.gives_up(by.request, now);
        }
        if self.health.best_but(&request.asked, now).is_some() {
            return self.try_next(by.request, now);
        }
        if is_last && request.trouble.as_ref().is_some_and(|it| it.kind.lasts()) {
            return self.gives_up(by.request, now);
        }
        request.next = Some(now.after(self.patience.round));
    }

    /// Nobody waits for the endpoints any more that were asked the same. Those that had time enough
    /// are not asked first again.
    fn drop_tries(&mut self, request: u64, now: Now) {
        let of = self.tries.iter().filter(|(_, it)| it.request == request);
        let of: Vec<TryId> = of.map(|(id, _)| *id).collect();
        for id in of {
            let Some(it) = self.tries.remove(&id) else {
                continue;
            };
            self.effects.push(Effect::Drop(id));
            let waited = now.since(it.since);
            if waited >= self.patience.again {
                let trouble = silent(&self.names[it.endpoint], waited);
                self.health.failed(it.endpoint, trouble, now);
            }
        }
    }

    /// Nobody knows: with the trouble of each endpoint.
    fn gives_up(&mut self, id: u64, now: Now) {
        self.drop_tries(id, now);
        let Some(request) = self.requests.remove(&id) else {
            return;
        };
        let mut trouble = request
            .trouble
            .unwrap_or_else(|| silent("etcd", self.patience.answer));
        let all = self.troubles().filter_map(|(_, trouble)| trouble);
        let causes: BTreeSet<&str> = all.map(|it| it.cause.as_str()).collect();
        let others = causes.into_iter().filter(|it| *it != trouble.cause);
        let others: Vec<&str> = others.collect();
        if !others.is_empty() {
            trouble.cause = format!("{}; {}", trouble.cause, others.join("; "));
        }
        match request.asker {
            Asker::Batch(numbers) => {
                let answered = |number| Effect::Answer(number, Answer::Unknown(trouble.clone()));
                self.effects.extend(numbers.into_iter().map(answered));
            }
            Asker::Together(number) => {
                let answered = Effect::Together(number, Together::Unknown(trouble));
                self.effects.push(answered);
            }
            Asker::Follower(follower) => {
                let answered = Effect::Changes(follower.number, Err(trouble));
                self.effects.push(answered);
            }
        }
    }

    fn keep(&mut self) {
        self.keeps_at = None;
        let kept = self.memory.keep();
        self.effects.push(Effect::Keep(kept));
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Now) {
        if self.keeps_at.is_some_and(|it| it <= now) {
            self.keep();
        }
        while self.waiting.front().is_some_and(|it| it.deadline <= now) {
            if let Some(late) = self.waiting.pop_front() {
                let trouble = silent("etcd", self.patience.answer);
                let answered = Effect::Answer(late.number, Answer::Unknown(trouble));
                self.effects.push(answered);
            }
        }
        let all: Vec<u64> = self.requests.keys().copied().collect();
        for id in all {
            let Some(request) = self.requests.get_mut(&id) else {
                continue;
            };
            if request.deadline <= now {
                self.gives_up(id, now);
            } else if request.next.is_some_and(|it| it <= now) {
                if self.health.best_but(&request.asked, now).is_none() {
                    let waits = self.tries.values().filter(|it| it.request == id);
                    request.asked = waits.map(|it| it.endpoint).collect();
                }
                self.try_next(id, now);
            }
        }
        self.send_waiting(now);
    }

    /// When time makes a difference next.
    pub(super) fn wakes_at(&self) -> Option<Now> {
        let waiting = self.waiting.front().map(|it| it.deadline);
        let requests = self.requests.values();
        let requests = requests.map(|it| it.next.map_or(it.deadline, |next| next.min(it.deadline)));
        requests.chain(waiting).chain(self.keeps_at).min()
    }
}

impl Follower {
    fn page(&self) -> Asks {
        Asks::Page {
            below: self.below.clone(),
            since: self.since,
            after: self.records.last().map(|(key, _)| key.clone()),
        }
    }
}

fn silent(name: &str, waited: Duration) -> Trouble {
    let cause = format!("{name}: nothing for {} ms", waited.as_millis());
    let next = "check that etcd runs and its address is reached; wait";
    Trouble::new(TroubleKind::Silent, cause, next)
}

fn garbled(name: &str, why: &str) -> Trouble {
    let next = "check that this is an endpoint of etcd, not of something else at its address";
    Trouble::new(
        TroubleKind::Garbled,
        format!("{name}: the answer cannot be read: {why}"),
        next,
    )
}
