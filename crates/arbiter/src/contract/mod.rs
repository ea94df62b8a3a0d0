//! What every arbiter must do, whatever it is: one suite for all of them.

mod history;

pub use history::{Counts, History};

use crate::question::{
    Answer, Arbiter, BATCH_MAX, Key, Question, Record, Swap, SwapAll, Together, VALUE_BYTES_MAX,
};
use crate::trouble::{Trouble, TroubleKind};
use env::{CoreHandle, detach, in_time};
use replica::Revision;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use units::Now;

/// How often something is asked again before the arbiter counts as gone.
const TRIES_MAX: u32 = 200;

/// A name below `folder`.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn key(folder: &str, name: &str) -> Key {
    Key::new(&format!("{folder}/{name}")).expect("a name")
}

/// A swap as a question.
#[must_use]
pub fn swap(key: &Key, expected: Revision, to: impl Into<Vec<u8>>) -> Question {
    Question::Swap(Swap::new(key.clone(), expected, to.into()))
}

/// Asks until all is known.
///
/// # Panics
/// If it never is.
pub async fn insist(
    core: &CoreHandle,
    arbiter: &dyn Arbiter,
    questions: Vec<Question>,
) -> Vec<Answer> {
    let mut answers = arbiter.ask(questions.clone()).await;
    assert_eq!(
        answers.len(),
        questions.len(),
        "each question has an answer"
    );
    for _ in 0..TRIES_MAX {
        let open = |at: &usize| matches!(answers[*at], Answer::Unknown(_));
        let open: Vec<usize> = (0..answers.len()).filter(open).collect();
        if open.is_empty() {
            return answers;
        }
        core.sleep_until(core.now().after(Duration::from_millis(20)))
            .await;
        let again = open.iter().map(|at| questions[*at].clone()).collect();
        for (at, answer) in open.into_iter().zip(arbiter.ask(again).await) {
            answers[at] = answer;
        }
    }
    panic!("nothing is known: {answers:?}");
}

async fn one(core: &CoreHandle, arbiter: &dyn Arbiter, question: Question) -> Answer {
    let mut answers = insist(core, arbiter, vec![question]).await;
    answers.pop().expect("it is one")
}

fn done(answer: &Answer) -> Revision {
    match answer {
        Answer::Swapped(revision) => *revision,
        Answer::Is(_) | Answer::Refused(_) | Answer::Unknown(_) => panic!("{answer:?}"),
    }
}

/// One record, from nothing to its third version.
///
/// # Panics
/// If something is not as it must be.
pub async fn changes_by_compare_and_swap(core: &CoreHandle, arbiter: &dyn Arbiter, folder: &str) {
    let key = key(folder, "one");
    let read = || Question::Read(key.clone());
    assert_eq!(one(core, arbiter, read()).await, Answer::Is(None));
    let early = one(core, arbiter, swap(&key, Revision(7), "early")).await;
    assert_eq!(early, Answer::Refused(None));
    let first = done(&one(core, arbiter, swap(&key, Revision(0), "a")).await);
    let is = |revision, text: &str| Some((revision, text.as_bytes().to_vec()));
    assert_eq!(one(core, arbiter, read()).await, Answer::Is(is(first, "a")));
    let again = one(core, arbiter, swap(&key, Revision(0), "b")).await;
    assert_eq!(again, Answer::Refused(is(first, "a")), "it is there");
    let second = done(&one(core, arbiter, swap(&key, first, "b")).await);
    assert!(second > first);
    let late = one(core, arbiter, swap(&key, first, "c")).await;
    assert_eq!(late, Answer::Refused(is(second, "b")));
    let repeated = one(core, arbiter, swap(&key, first, "b")).await;
    assert_eq!(repeated, Answer::Swapped(second), "its own record is there");
    let other = one(core, arbiter, Question::Read(self::key(folder, "on"))).await;
    assert_eq!(
        other,
        Answer::Is(None),
        "a name that another one begins with"
    );
}

/// Many records at once: each has its own answer, in order, whatever becomes of the others.
///
/// # Panics
/// If something is not as it must be.
pub async fn answers_each_of_many(core: &CoreHandle, arbiter: &dyn Arbiter, folder: &str) {
    let keys: Vec<Key> = (0..2 * BATCH_MAX + 9)
        .map(|at| key(folder, &format!("many{at:03}")))
        .collect();
    let value =
        |at: usize| vec![b'a' + u8::try_from(at % 26).expect("few"); VALUE_BYTES_MAX - at % 5];
    let all: Vec<Question> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| swap(key, Revision(0), value(at)))
        .collect();
    let made: Vec<Revision> = insist(core, arbiter, all).await.iter().map(done).collect();
    // Of each three one is right, one is late, and one is only read.
    let ask = |at: usize| match at % 3 {
        0 => swap(&keys[at], made[at], format!("new{at}")),
        1 => swap(&keys[at], Revision(made[at].0 - 1), format!("new{at}")),
        _ => Question::Read(keys[at].clone()),
    };
    let answers = insist(core, arbiter, (0..keys.len()).map(ask).collect()).await;
    for (at, answer) in answers.into_iter().enumerate() {
        let is = Some((made[at], value(at)));
        match at % 3 {
            0 => assert!(done(&answer) > made[at], "{at}"),
            1 => assert_eq!(answer, Answer::Refused(is), "{at}"),
            _ => assert_eq!(answer, Answer::Is(is), "{at}"),
        }
    }
}

/// Whoever follows hears of each change once it asks, and of nothing else.
///
/// # Panics
/// If something is not as it must be.
pub async fn gives_what_changed(core: &CoreHandle, arbiter: &dyn Arbiter, folder: &str) {
    let (below, other) = (format!("{folder}/followed"), key(folder, "other"));
    let keys: Vec<Key> = (0..9).map(|at| key(&below, &format!("x{at}"))).collect();
    let below = Key::new(&below).expect("a name");
    let make = keys.iter().map(|key| swap(key, Revision(0), "a")).collect();
    let made: Vec<Revision> = insist(core, arbiter, make).await.iter().map(done).collect();
    let changes = async |since| {
        for _ in 0..TRIES_MAX {
            match arbiter.changes(&below, since).await {
                Ok(changes) => return changes,
                Err(trouble) => assert!(!trouble.kind.lasts(), "{trouble}"),
            }
        }
        panic!("nothing is known");
    };
    let all = changes(Revision(0)).await;
    let right = keys
        .iter()
        .zip(&made)
        .map(|(key, at)| (key.clone(), (*at, b"a".to_vec())));
    assert_eq!(all.records, right.collect::<Vec<(Key, Record)>>());
    done(&one(core, arbiter, swap(&other, Revision(0), "a")).await);
    let none = changes(all.until).await;
    assert_eq!(none.records, []);
    let second = done(&one(core, arbiter, swap(&keys[4], made[4], "b")).await);
    let one = changes(none.until).await;
    assert_eq!(one.records, [(keys[4].clone(), (second, b"b".to_vec()))]);
    assert!(one.until >= second);
}

/// Several records as a question.
fn all_of(swaps: &[(&Key, Revision)], to: &str) -> SwapAll {
    let swap = |(key, expected): &(&Key, Revision)| {
        Swap::new((*key).clone(), *expected, to.as_bytes().to_vec())
    };
    SwapAll::new(swaps.iter().map(swap).collect())
}

/// Asks until it is known.
async fn insist_on_all(core: &CoreHandle, arbiter: &dyn Arbiter, swaps: &SwapAll) -> Together {
    for _ in 0..TRIES_MAX {
        match arbiter.swap_all(swaps.clone()).await {
            Together::Unknown(_) => {}
            known @ (Together::Swapped(_) | Together::Refused(_)) => return known,
        }
        core.sleep_until(core.now().after(Duration::from_millis(20)))
            .await;
    }
    panic!("nothing is known");
}

/// Two records change together, or neither does.
///
/// # Panics
/// If something is not as it must be.
pub async fn changes_all_or_none(core: &CoreHandle, arbiter: &dyn Arbiter, folder: &str) {
    let (a, b) = (key(folder, "all_a"), key(folder, "all_b"));
    let both = |of_a, of_b, to: &str| all_of(&[(&a, of_a), (&b, of_b)], to);
    let none = Revision(0);
    let made = insist_on_all(core, arbiter, &both(none, none, "1")).await;
    let Together::Swapped(first) = made else {
        panic!("{made:?}")
    };
    let is = |revision, text: &str| Some((revision, text.as_bytes().to_vec()));
    let read = async || {
        let reads = [&a, &b].map(|it| Question::Read(it.clone()));
        insist(core, arbiter, reads.to_vec()).await
    };
    let one = is(first, "1");
    assert_eq!(
        read().await,
        [Answer::Is(one.clone()), Answer::Is(one.clone())]
    );
    let there = Together::Refused(vec![one.clone(), one.clone()]);
    for (of_a, of_b) in [(first, none), (none, first), (none, none)] {
        let late = insist_on_all(core, arbiter, &both(of_a, of_b, "2")).await;
        assert_eq!(late, there, "{of_a:?}, {of_b:?}");
    }
    assert_eq!(read().await, [Answer::Is(one.clone()), Answer::Is(one)]);
    let again = insist_on_all(core, arbiter, &both(none, none, "1")).await;
    assert_eq!(again, Together::Swapped(first), "its own are there");
    let second = done(&self::one(core, arbiter, swap(&b, first, "3")).await);
    let late = insist_on_all(core, arbiter, &both(first, first, "4")).await;
    let there = Together::Refused(vec![is(first, "1"), is(second, "3")]);
    assert_eq!(late, there);
    let most: Vec<Key> = (0..BATCH_MAX)
        .map(|at| key(folder, &format!("all{at}")))
        .collect();
    let new: Vec<(&Key, Revision)> = most.iter().map(|key| (key, none)).collect();
    let made = insist_on_all(core, arbiter, &all_of(&new, "5")).await;
    assert!(
        matches!(made, Together::Swapped(at) if at > second),
        "{made:?}"
    );
}

/// Several who change the same two records together: whatever is seen of both at one moment was
/// written by one of them. How often that was done, and refused.
///
/// # Panics
/// If something is not as it must be, or it takes longer than `limit`.
pub async fn contend_together(
    core: &CoreHandle,
    arbiters: &[Rc<dyn Arbiter>],
    folder: &str,
    limit: Duration,
) -> (usize, usize) {
    let counts = Rc::new(Cell::new((0, 0)));
    let mut running = Vec::new();
    for (number, arbiter) in arbiters.iter().enumerate() {
        let keys = [key(folder, "pair_a"), key(folder, "pair_b")];
        let (core, arbiter, counts) = (Rc::clone(core), Rc::clone(arbiter), Rc::clone(&counts));
        running.push(detach(&Rc::clone(&core), async move {
            let mut known = Revision(0);
            for round in 0..20 {
                let pair = [(&keys[0], known), (&keys[1], known)];
                let swaps = all_of(&pair, &format!("{number}.{round}"));
                let known_now = insist_on_all(&core, &*arbiter, &swaps).await;
                let (done, refused) = counts.get();
                match known_now {
                    Together::Swapped(revision) => {
                        known = revision;
                        counts.set((done + 1, refused));
                    }
                    Together::Refused(are) => {
                        assert_eq!(are[0], are[1], "both were written at once");
                        known = are[0].as_ref().map_or(Revision(0), |it| it.0);
                        counts.set((done, refused + 1));
                    }
                    Together::Unknown(trouble) => panic!("{trouble}"),
                }
            }
        }));
    }
    let until = core.now().after(limit);
    for task in running {
        let left = until.since(core.now());
        assert!(in_time(core, left, task).await.is_some(), "{limit:?}");
    }
    counts.get()
}

/// Nothing is believed that a store says which is not so far as is known, and it writes nothing.
/// This arbiter is of no use any more then.
///
/// # Panics
/// If something is not as it must be.
pub async fn believes_no_store_that_is_behind(arbiter: &dyn Arbiter, folder: &str) {
    arbiter.knows(Revision(1 << 40));
    let key = key(folder, "behind");
    let kind = trouble(arbiter, &key).await.kind;
    assert_eq!(kind, TroubleKind::SetBack);
    let answers = arbiter.ask(vec![swap(&key, Revision(0), "a")]).await;
    assert!(matches!(answers[..], [Answer::Unknown(_)]), "{answers:?}");
    let both = arbiter.swap_all(all_of(&[(&key, Revision(0))], "a")).await;
    assert!(matches!(both, Together::Unknown(_)), "{both:?}");
}

/// Who asks the same records as others, each with numbers of its own.
struct Rival {
    core: CoreHandle,
    arbiter: Rc<dyn Arbiter>,
    history: Rc<RefCell<History>>,
    keys: Vec<Key>,
    number: usize,
    drawn: Cell<u64>,
    pace: Rc<Cell<Pace>>,
}

/// When something was known last, and the longest time without.
#[derive(Clone, Copy)]
struct Pace {
    last: Now,
    longest: Duration,
}

impl Rival {
    fn draw(&self, below: usize) -> usize {
        let next = self
            .drawn
            .get()
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.drawn.set(next);
        usize::try_from(next >> 33).unwrap_or_default() % below
    }

    async fn ask(&self, question: Question) -> Answer {
        let number = self.history.borrow_mut().begins(question.clone());
        let answers = self.arbiter.ask(vec![question]).await;
        let answer = answers.into_iter().next().expect("one answer");
        if !matches!(answer, Answer::Unknown(_)) {
            let (Pace { last, longest }, now) = (self.pace.get(), self.core.now());
            let longest = longest.max(now.since(last));
            self.pace.set(Pace { last: now, longest });
        }
        self.history.borrow_mut().ends(number, answer.clone());
        answer
    }

    async fn runs(&self, goes_on: &dyn Fn(usize) -> bool) {
        let mut known = vec![Revision(0); self.keys.len()];
        for round in (0..).take_while(|it| goes_on(*it)) {
            let at = self.draw(self.keys.len());
            let key = &self.keys[at];
            let mut question = match self.draw(3) {
                0 => Question::Read(key.clone()),
                _ => swap(key, known[at], format!("{}.{round}", self.number)),
            };
            // What nobody knows is asked again as it was, or read, or left.
            for _ in 0..TRIES_MAX {
                match self.ask(question.clone()).await {
                    Answer::Swapped(revision) => known[at] = revision,
                    Answer::Is(is) | Answer::Refused(is) => {
                        known[at] = is.map_or(Revision(0), |it| it.0);
                    }
                    Answer::Unknown(_) => match self.goes_on_by(question).await {
                        Some(next) => {
                            question = next;
                            continue;
                        }
                        None => break,
                    },
                }
                break;
            }
        }
    }

    async fn goes_on_by(&self, unknown: Question) -> Option<Question> {
        self.pause().await;
        match self.draw(8) {
            0 => None,
            1 | 2 => Some(Question::Read(unknown.key().clone())),
            _ => Some(unknown),
        }
    }

    async fn pause(&self) {
        let span = Duration::from_millis(1 + self.draw(20) as u64);
        self.core.sleep_until(self.core.now().after(span)).await;
    }
}

/// Several who change the same few records at the same time, as long as `goes_on` says of each
/// round: what they were answered has an explanation. With the longest time in which nobody knew
/// anything.
///
/// # Errors
/// What has none, or that it takes longer than `limit`.
pub async fn contend(
    core: &CoreHandle,
    arbiters: &[Rc<dyn Arbiter>],
    (folder, seed): (&str, u64),
    goes_on: impl Fn(usize) -> bool + 'static,
    limit: Duration,
) -> Result<(Counts, Duration), String> {
    let history = Rc::new(RefCell::new(History::default()));
    let pace = Rc::new(Cell::new(Pace {
        last: core.now(),
        longest: Duration::ZERO,
    }));
    let goes_on: Rc<dyn Fn(usize) -> bool> = Rc::new(goes_on);
    let mut running = Vec::new();
    for (number, arbiter) in arbiters.iter().enumerate() {
        let stream = seed.wrapping_add(number as u64);
        let rival = Rival {
            core: Rc::clone(core),
            arbiter: Rc::clone(arbiter),
            history: Rc::clone(&history),
            keys: (0..3)
                .map(|at| key(folder, &format!("rivals{at}")))
                .collect(),
            number,
            drawn: Cell::new(stream.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            pace: Rc::clone(&pace),
        };
        let goes_on = Rc::clone(&goes_on);
        running.push(detach(core, async move { rival.runs(&*goes_on).await }));
    }
    let until = core.now().after(limit);
    for task in running {
        let left = until.since(core.now());
        let ended = in_time(core, left, task).await;
        ended.ok_or_else(|| format!("it takes longer than {limit:?}"))?;
    }
    let counts = history.borrow().check()?;
    Ok((counts, pace.get().longest))
}

/// All of it, by an arbiter that nothing happens to.
///
/// # Panics
/// If something is not as it must be.
pub async fn holds(
    core: &CoreHandle,
    arbiters: &[Rc<dyn Arbiter>],
    folder: &str,
    limit: Duration,
) -> Counts {
    let first = arbiters.first().expect("one at least");
    let begun = core.now();
    changes_by_compare_and_swap(core, &**first, folder).await;
    answers_each_of_many(core, &**first, folder).await;
    gives_what_changed(core, &**first, folder).await;
    changes_all_or_none(core, &**first, folder).await;
    let (done, refused) = contend_together(core, arbiters, folder, limit).await;
    assert!(done >= 10 && refused > 0, "{done} done, {refused} refused");
    let contended = contend(core, arbiters, (folder, 1), |round| round < 60, limit).await;
    let (counts, _) = contended.unwrap_or_else(|why| panic!("{why}"));
    believes_no_store_that_is_behind(&**first, folder).await;
    let took = core.now().since(begun);
    assert!(took < limit, "it took {took:?}");
    counts
}

/// Asks for a record once, and says why nothing is known of it.
///
/// # Panics
/// If it is known.
pub async fn trouble(arbiter: &dyn Arbiter, key: &Key) -> Trouble {
    match arbiter.ask(vec![Question::Read(key.clone())]).await.pop() {
        Some(Answer::Unknown(trouble)) => trouble,
        answer => panic!("{answer:?}"),
    }
}
