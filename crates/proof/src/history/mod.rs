//! What several clients did and saw, and whether it can have happened one command after the other.
//!
//! **Contract.** Each block is a register. A command takes effect at one moment between its
//! invocation and its response: READ and WRITE for each block by itself, COMPARE AND WRITE for all
//! of its blocks at once. A command whose answer is unknown takes effect at such a moment, for each
//! block, or never; where it has no end, at any later moment. The history is right if there is an
//! order of all effects that respects these intervals and explains everything that was seen
//! (linearizability, Herlihy and Wing).
//!
//! A command may be given its place in a session's queue ([`History::queued`]); then an ORDERED one
//! takes effect after all older and before all newer commands of its client, except newer ones at
//! the HEAD OF QUEUE (SAM-5 8.7 "Task attributes"), and all blocks are checked together.
//!
//! Otherwise blocks are checked by themselves; those that COMPARE AND WRITE ties together are
//! checked together. The search is exhaustive with memory of what failed, so "right" and "wrong"
//! are both certain; where it would take too long, it says so ([`Verdict::Undecided`]) instead of
//! guessing.

mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use units::{Lba, LbaRange};
use volume_test::stamp::Value;

use search::{Effect, Step};

/// A command, when it was sent.
#[derive(Clone, Debug)]
pub enum Call {
    /// Reads blocks.
    Read {
        /// Which blocks.
        range: LbaRange,
    },
    /// Writes blocks, each by itself.
    Write {
        /// Which blocks.
        range: LbaRange,
        /// One value for each.
        values: Vec<Value>,
    },
    /// Replaces all blocks if all hold what is expected, at once.
    CompareAndWrite {
        /// Which blocks.
        range: LbaRange,
        /// What they must hold.
        expected: Vec<Value>,
        /// What they will hold.
        values: Vec<Value>,
    },
}

impl Call {
    /// The blocks that it touches.
    #[must_use]
    pub fn range(&self) -> LbaRange {
        match self {
            Self::Read { range }
            | Self::Write { range, .. }
            | Self::CompareAndWrite { range, .. } => *range,
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The read saw these values.
    Saw(Vec<Value>),
    /// The write, or compare-and-write, is done.
    Done,
    /// The compare found the first difference in this block of the range; nothing was written.
    Miscompare {
        /// The block's place in the range.
        place: usize,
    },
    /// Nobody knows whether it was done; from now on it does nothing.
    Unknown,
    /// The medium failed: any of its blocks may have been written, each by itself; from now on it
    /// does nothing.
    InPart,
    /// It did nothing.
    Nothing,
}

/// Names a command of the history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallId(usize);

#[derive(Clone, Debug)]
struct Record {
    client: u32,
    call: Call,
    invoked: u64,
    ended: Option<(u64, Answer)>,
    queue: Option<Queue>,
}

/// How a command stands in its session's queue; the older ones are those that began before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// Anywhere between ORDERED ones.
    Simple,
    /// After all older, before all newer.
    Ordered,
    /// Before what waits.
    Head,
}

/// What the check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// There is an order that explains everything.
    Right,
    /// There is none, and why.
    Wrong(Explanation),
    /// The search was given up at this block.
    Undecided(Lba),
}

/// The commands of the blocks that nothing explains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// One of the blocks.
    pub lba: Lba,
    /// How far an order was found, and what then did not fit.
    pub lines: Vec<String>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no order of the commands explains block {}:", self.lba.0)?;
        for line in &self.lines {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

/// A history, as it is written.
#[derive(Clone, Debug, Default)]
pub struct History {
    initial: BTreeMap<u64, Value>,
    records: Vec<Record>,
    clock: u64,
    in_part: bool,
}

impl History {
    /// The history of a disk whose blocks hold `initial`, and zero elsewhere.
    #[must_use]
    pub fn new(initial: BTreeMap<u64, Value>) -> Self {
        Self {
            initial,
            ..Self::default()
        }
    }

    /// Whether a compare-and-write whose end nobody knows may be done in part, block by block.
    #[must_use]
    pub fn in_parts(mut self, in_part: bool) -> Self {
        self.in_part = in_part;
        self
    }

    /// A client sends a command.
    pub fn begin(&mut self, client: u32, call: Call) -> CallId {
        self.clock += 1;
        self.records.push(Record {
            client,
            call,
            invoked: self.clock,
            ended: None,
            queue: None,
        });
        CallId(self.records.len() - 1)
    }

    /// The command has this place in its client's queue.
    pub fn queued(&mut self, id: CallId, queue: Queue) {
        self.records[id.0].queue = Some(queue);
    }

    /// A command ended. One that never does has an open fate.
    pub fn end(&mut self, id: CallId, answer: Answer) {
        self.clock += 1;
        self.records[id.0].ended = Some((self.clock, answer));
    }

    /// Number of commands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// No command at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Looks for an order. It takes at most `steps_max` steps of the search for each group of
    /// blocks.
    #[must_use]
    pub fn check(&self, steps_max: u64) -> Verdict {
        let mut undecided = None;
        for group in self.groups() {
            let first = Lba(*group.first().expect("a group has a block"));
            let steps = self.steps(&group);
            let initial = |lba: u64| self.initial.get(&lba).copied().unwrap_or(Value::Zero);
            let state: BTreeMap<u64, Value> =
                group.iter().map(|lba| (*lba, initial(*lba))).collect();
            match search::explain(&steps, state, steps_max) {
                search::Outcome::Explained => {}
                search::Outcome::GaveUp => undecided = Some(first),
                search::Outcome::Impossible(lines) => {
                    return Verdict::Wrong(Explanation { lba: first, lines });
                }
            }
        }
        undecided.map_or(Verdict::Right, Verdict::Undecided)
    }

    /// Blocks that must be checked together.
    fn groups(&self) -> Vec<BTreeSet<u64>> {
        let mut leader: BTreeMap<u64, u64> = BTreeMap::new();
        let find = |leader: &BTreeMap<u64, u64>, mut lba: u64| {
            while let Some(up) = leader.get(&lba).filter(|up| **up != lba) {
                lba = *up;
            }
            lba
        };
        for record in &self.records {
            let range = record.call.range();
            for lba in range.start().0..range.end().0 {
                leader.entry(lba).or_insert(lba);
            }
            let Call::CompareAndWrite { range, .. } = &record.call else {
                continue;
            };
            let first = find(&leader, range.start().0);
            for lba in range.start().0..range.end().0 {
                let other = find(&leader, lba);
                leader.insert(other, first);
            }
        }
        let is_ordered = |record: &Record| record.queue == Some(Queue::Ordered);
        if self.records.iter().any(is_ordered) {
            return vec![leader.keys().copied().collect()];
        }
        let mut groups: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for lba in leader.keys() {
            groups.entry(find(&leader, *lba)).or_default().insert(*lba);
        }
        groups.into_values().collect()
    }

    /// The effects on the blocks of one group.
    fn steps(&self, group: &BTreeSet<u64>) -> Vec<Step> {
        let mut steps = Vec::new();
        for record in &self.records {
            let range = record.call.range();
            let touches = (range.start().0..range.end().0).any(|lba| group.contains(&lba));
            if touches {
                record.effects(group, self.in_part, &mut steps);
            }
        }
        search::without_unseen(steps)
    }
}

impl Record {
    fn effects(&self, group: &BTreeSet<u64>, in_part: bool, steps: &mut Vec<Step>) {
        let unknown = if in_part {
            Answer::InPart
        } else {
            Answer::Unknown
        };
        let (ended, answer) = match &self.ended {
            Some((_, Answer::Nothing)) => return,
            Some((at, Answer::Unknown)) => (*at, unknown),
            Some((at, answer)) => (*at, answer.clone()),
            None => (u64::MAX, unknown),
        };
        let must = !matches!(answer, Answer::Unknown | Answer::InPart);
        let mut add = |effect| {
            steps.push(Step {
                client: self.client,
                invoked: self.invoked,
                ended,
                must,
                queue: self.queue,
                effect,
            });
        };
        let blocks = self.call.range().start().0..self.call.range().end().0;
        match (&self.call, &answer) {
            (Call::Read { .. }, Answer::Saw(values)) => {
                for (lba, value) in blocks.zip(values).filter(|(lba, _)| group.contains(lba)) {
                    add(Effect {
                        is: vec![(lba, *value)],
                        ..Effect::default()
                    });
                }
            }
            (Call::Write { values, .. }, Answer::Done | Answer::Unknown | Answer::InPart) => {
                for (lba, value) in blocks.zip(values).filter(|(lba, _)| group.contains(lba)) {
                    add(Effect {
                        sets: vec![(lba, *value)],
                        ..Effect::default()
                    });
                }
            }
            (
                Call::CompareAndWrite {
                    expected, values, ..
                },
                Answer::Done | Answer::Unknown,
            ) => add(Effect {
                is: blocks.clone().zip(expected.iter().copied()).collect(),
                is_not: None,
                sets: blocks.zip(values.iter().copied()).collect(),
            }),
            (
                Call::CompareAndWrite {
                    expected, values, ..
                },
                Answer::InPart,
            ) => each_alone(blocks, expected, values).for_each(add),
            (Call::CompareAndWrite { expected, .. }, Answer::Miscompare { place }) => {
                let mut pairs: Vec<(u64, Value)> = blocks.zip(expected.iter().copied()).collect();
                pairs.truncate(place + 1);
                add(Effect {
                    is_not: pairs.pop(),
                    is: pairs,
                    sets: Vec::new(),
                });
            }
            // A read that failed saw nothing.
            (Call::Read { .. }, _) => {}
            (Call::Write { .. } | Call::CompareAndWrite { .. }, answer) => {
                panic!("{:?} cannot end with {answer:?}", self.call)
            }
        }
    }
}

/// A compare-and-write of which each block may have been written by itself.
fn each_alone(
    blocks: Range<u64>,
    expected: &[Value],
    values: &[Value],
) -> impl Iterator<Item = Effect> {
    let pairs = blocks.zip(expected.iter().copied().zip(values.iter().copied()));
    pairs.map(|(lba, (from, to))| Effect {
        is: vec![(lba, from)],
        is_not: None,
        sets: vec![(lba, to)],
    })
}

#[cfg(test)]
mod test;
