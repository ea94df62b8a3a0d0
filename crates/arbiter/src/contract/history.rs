//! Whether what an arbiter answered can be explained: each record changed from version to version,
//! each question met it at one moment between its beginning and its end.
//!
//! Versions say in which order a record changed, so no order has to be searched for.

use crate::question::{Answer, Key, Question, Record, Swap};
use std::collections::BTreeMap;

struct Asked {
    question: Question,
    began: u64,
    /// `None`: nobody knows.
    ended: Option<(u64, Answer)>,
}

/// Questions and answers in the order in which they came.
#[derive(Default)]
pub struct History {
    asked: Vec<Asked>,
    clock: u64,
}

/// How often what was answered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Records that were read.
    pub read: usize,
    /// Swaps that were done.
    pub swapped: usize,
    /// Swaps that came too late.
    pub refused: usize,
    /// Questions that nobody knows the end of.
    pub unknown: usize,
    /// Of them, swaps that were done.
    pub done_unheard: usize,
}

impl History {
    /// Something is asked: its number.
    pub fn begins(&mut self, question: Question) -> usize {
        self.clock += 1;
        self.asked.push(Asked {
            question,
            began: self.clock,
            ended: None,
        });
        self.asked.len() - 1
    }

    /// An answer came.
    pub fn ends(&mut self, number: usize, answer: Answer) {
        self.clock += 1;
        if !matches!(answer, Answer::Unknown(_)) {
            self.asked[number].ended = Some((self.clock, answer));
        }
    }

    /// Counts what was answered.
    ///
    /// # Errors
    /// What nothing explains.
    pub fn check(&self) -> Result<Counts, String> {
        let mut keys: BTreeMap<&Key, Vec<&Asked>> = BTreeMap::new();
        for it in &self.asked {
            keys.entry(it.question.key()).or_default().push(it);
        }
        let mut counts = Counts::default();
        for (key, asked) in keys {
            let of_key = Versions::of(&asked).and_then(|it| it.check(&asked));
            counts.add(of_key.map_err(|why| format!("{key}: {why}"))?);
        }
        Ok(counts)
    }
}

impl Counts {
    const fn add(&mut self, other: Self) {
        self.read += other.read;
        self.swapped += other.swapped;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.done_unheard += other.done_unheard;
    }
}

/// Which version an answer is about; 0: of no record.
fn met(answer: &Answer) -> u64 {
    answer.version().map_or(0, |it| it.0)
}

/// The record that an answer shows.
fn shown(asked: &Asked) -> Option<Record> {
    match (&asked.ended.as_ref()?.1, &asked.question) {
        (Answer::Is(is) | Answer::Refused(is), _) => is.clone(),
        (Answer::Swapped(revision), Question::Swap(swap)) => Some((*revision, swap.to().to_vec())),
        (Answer::Swapped(_) | Answer::Unknown(_), _) => None,
    }
}

/// Versions of one record that somebody saw: what each is, and when the first question ended that
/// saw it, or a later one.
struct Versions {
    seen: BTreeMap<u64, (Vec<u8>, u64)>,
}

impl Versions {
    fn of(asked: &[&Asked]) -> Result<Self, String> {
        let mut seen: BTreeMap<u64, (Vec<u8>, u64)> = BTreeMap::new();
        for it in asked {
            let (Some((revision, is)), Some((ended, _))) = (shown(it), &it.ended) else {
                continue;
            };
            let (first, at) = seen.entry(revision.0).or_insert((is.clone(), *ended));
            if *first != is {
                return Err(format!("version {} is two records", revision.0));
            }
            *at = (*at).min(*ended);
        }
        let mut earliest = u64::MAX;
        for (_, at) in seen.values_mut().rev() {
            earliest = earliest.min(*at);
            *at = earliest;
        }
        Ok(Self { seen })
    }

    fn check(&self, asked: &[&Asked]) -> Result<Counts, String> {
        self.check_writers(asked)?;
        check_order(asked)?;
        let mut counts = Counts::default();
        for it in asked {
            match (&it.ended, &it.question) {
                (None, Question::Read(_)) => counts.unknown += 1,
                (None, Question::Swap(swap)) => {
                    counts.unknown += 1;
                    counts.done_unheard += usize::from(self.version_of(swap).is_some());
                }
                (Some((_, Answer::Swapped(_))), _) => counts.swapped += 1,
                (Some((_, Answer::Refused(is))), Question::Swap(swap)) => {
                    self.check_refusal(swap, is.as_ref().map_or(0, |it| it.0.0))?;
                    counts.refused += 1;
                }
                (Some(_), _) => counts.read += 1,
            }
        }
        Ok(counts)
    }

    fn version_of(&self, swap: &Swap) -> Option<u64> {
        let mut all = self.seen.iter();
        let found = all.find(|(_, (is, _))| is == swap.to());
        found.map(|(version, _)| *version)
    }

    /// Each version was asked for before anybody saw it, and replaced the one before it.
    fn check_writers(&self, asked: &[&Asked]) -> Result<(), String> {
        let mut before = 0;
        for (version, (is, seen)) in &self.seen {
            let writers = asked.iter().filter_map(|it| match &it.question {
                Question::Swap(swap) if swap.to() == is => Some((it.began, swap)),
                Question::Swap(_) | Question::Read(_) => None,
            });
            let Some((began, swap)) = writers.min_by_key(|it| it.0) else {
                return Err(format!("nobody wrote version {version}"));
            };
            if began > *seen {
                return Err(format!(
                    "version {version} was seen before it was asked for"
                ));
            }
            // A version that nobody saw may stand between the two.
            if swap.expected.0 < before || swap.expected.0 >= *version {
                let expected = swap.expected.0;
                return Err(format!(
                    "version {version} was to replace {expected}, and {before} was there"
                ));
            }
            before = *version;
        }
        Ok(())
    }

    /// A swap that is refused met another version than it expected, and is never done afterwards.
    fn check_refusal(&self, swap: &Swap, met: u64) -> Result<(), String> {
        if met == swap.expected.0 {
            return Err(format!("a swap of {met} was refused, and {met} was there"));
        }
        match self.version_of(swap) {
            Some(version) if version >= met => Err(format!(
                "a swap was refused by version {met}, and was done as {version}"
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// Who asks after another one's answer came does not meet an older version.
fn check_order(asked: &[&Asked]) -> Result<(), String> {
    let mut ends: Vec<(u64, u64)> = Vec::new();
    for it in asked {
        if let Some((ended, answer)) = &it.ended {
            ends.push((*ended, met(answer)));
        }
    }
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut newest = 0;
    let mut by_beginning = asked.to_vec();
    by_beginning.sort_by_key(|it| it.began);
    for it in by_beginning {
        while let Some((_, version)) = ends.next_if(|(ended, _)| *ended < it.began) {
            newest = newest.max(version);
        }
        if let Some((_, answer)) = &it.ended
            && met(answer) < newest
        {
            let met = met(answer);
            return Err(format!("version {met} was met after {newest} was known"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::trouble::{Trouble, TroubleKind};
    use replica::Revision;

    fn key() -> Key {
        Key::new("a").unwrap()
    }

    fn swap(expected: u64, to: &str) -> Question {
        Question::Swap(Swap::new(key(), Revision(expected), to.as_bytes().to_vec()))
    }

    fn is(version: u64, text: &str) -> Option<Record> {
        Some((Revision(version), text.as_bytes().to_vec()))
    }

    fn one_by_one(all: Vec<(Question, Answer)>) -> Result<Counts, String> {
        let mut history = History::default();
        for (question, answer) in all {
            let number = history.begins(question);
            history.ends(number, answer);
        }
        history.check()
    }

    fn read() -> Question {
        Question::Read(key())
    }

    fn unknown() -> Answer {
        Answer::Unknown(Trouble::new(TroubleKind::Silent, "", ""))
    }

    #[test]
    fn what_a_right_arbiter_answers_is_explained() {
        let counts = one_by_one(vec![
            (read(), Answer::Is(None)),
            (swap(0, "a"), Answer::Swapped(Revision(2))),
            (swap(2, "b"), unknown()),
            (read(), Answer::Is(is(2, "a"))),
            (read(), Answer::Is(is(4, "b"))),
            (swap(2, "c"), Answer::Refused(is(4, "b"))),
            (swap(2, "b"), Answer::Swapped(Revision(4))),
            (swap(4, "d"), unknown()),
            (swap(4, "e"), Answer::Swapped(Revision(9))),
        ]);
        let right = Counts {
            read: 3,
            swapped: 3,
            refused: 1,
            unknown: 2,
            done_unheard: 1,
        };
        assert_eq!(counts, Ok(right));
    }

    #[test]
    fn each_kind_of_wrong_answer_is_found() {
        let first = (swap(0, "a"), Answer::Swapped(Revision(2)));
        let second = (swap(2, "b"), Answer::Swapped(Revision(3)));
        for (after, why) in [
            (vec![(read(), Answer::Is(None))], "older: nothing"),
            (vec![(read(), Answer::Is(is(2, "x")))], "another record"),
            (vec![(read(), Answer::Is(is(5, "x")))], "nobody wrote it"),
            (
                vec![second.clone(), (read(), Answer::Is(is(2, "a")))],
                "older",
            ),
            (
                vec![second.clone(), (swap(2, "c"), Answer::Swapped(Revision(4)))],
                "two of one",
            ),
            (
                vec![(swap(2, "c"), Answer::Refused(is(2, "a")))],
                "refused for nothing",
            ),
            (
                vec![
                    (swap(0, "c"), Answer::Refused(is(2, "a"))),
                    (read(), Answer::Is(is(3, "c"))),
                ],
                "refused, done",
            ),
            (
                vec![(read(), Answer::Is(is(3, "b"))), second.clone()],
                "seen before it was asked for",
            ),
        ] {
            let all = [vec![first.clone()], after].concat();
            assert!(one_by_one(all).is_err(), "{why}");
        }
    }
}
