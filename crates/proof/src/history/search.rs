//! The search for an order (Wing and Gong, with memory of dead ends as by Lowe).

use super::Queue;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use volume_test::stamp::Value;

/// What a command does at its moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Effect {
    /// It found these values.
    pub(super) is: Vec<(u64, Value)>,
    /// It found another value there.
    pub(super) is_not: Option<(u64, Value)>,
    /// It leaves these values.
    pub(super) sets: Vec<(u64, Value)>,
}

/// An effect and the interval of its moment.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) client: u32,
    pub(super) invoked: u64,
    pub(super) ended: u64,
    /// It took place for sure.
    pub(super) must: bool,
    /// Its place in its client's queue.
    pub(super) queue: Option<Queue>,
    pub(super) effect: Effect,
}

/// What the search found.
pub(super) enum Outcome {
    Explained,
    GaveUp,
    /// How the best attempt ended.
    Impossible(Vec<String>),
}

type State = BTreeMap<u64, Value>;

impl Effect {
    fn fits(&self, state: &State) -> bool {
        let is = |lba: &u64, value: &Value| state.get(lba) == Some(value);
        self.is.iter().all(|(lba, value)| is(lba, value))
            && self
                .is_not
                .as_ref()
                .is_none_or(|(lba, value)| !is(lba, value))
    }
}

/// Leaves out the effects that may have taken place and that nobody can have noticed: an order that
/// explains the rest explains them by never.
pub(super) fn without_unseen(steps: Vec<Step>) -> Vec<Step> {
    let seen: BTreeSet<(u64, Value)> = (steps.iter())
        .flat_map(|step| step.effect.is.iter().copied())
        .collect();
    let matters = |step: &Step| {
        // Something that is not what was expected may be the trace of any write to that block.
        let noticed = |place: &(u64, Value)| {
            seen.contains(place)
                || steps
                    .iter()
                    .any(|it| it.effect.is_not.is_some_and(|(lba, _)| lba == place.0))
        };
        step.must || step.effect.sets.iter().any(noticed)
    };
    let keep: Vec<bool> = steps.iter().map(matters).collect();
    let mut keep = keep.into_iter();
    let mut steps = steps;
    steps.retain(|_| keep.next().unwrap_or(true));
    steps.sort_by_key(|step| step.invoked);
    steps
}

/// Which steps are in the order so far: all below `from`, and those in `beyond`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Taken {
    from: usize,
    beyond: BTreeSet<usize>,
}

impl Taken {
    fn has(&self, step: usize) -> bool {
        step < self.from || self.beyond.contains(&step)
    }

    /// The one that was invoked last.
    fn last(&self) -> Option<usize> {
        let below = self.from.checked_sub(1);
        self.beyond.last().copied().or(below)
    }

    fn take(&mut self, step: usize) {
        self.beyond.insert(step);
        while self.beyond.remove(&self.from) {
            self.from += 1;
        }
    }
}

/// What is known to lead nowhere, by its hash: states are long and alike, and a tree of them would
/// compare each with many.
#[derive(Default)]
struct Dead(BTreeMap<u64, Vec<(Taken, State)>>);

impl Dead {
    /// `false`: it is known already.
    fn insert(&mut self, taken: &Taken, state: &State) -> bool {
        let mut hasher = DefaultHasher::new();
        (taken, state).hash(&mut hasher);
        let alike = self.0.entry(hasher.finish()).or_default();
        let is_new = !alike.iter().any(|it| (&it.0, &it.1) == (taken, state));
        if is_new {
            alike.push((taken.clone(), state.clone()));
        }
        is_new
    }
}

struct Search<'a> {
    steps: &'a [Step],
    /// For each step those that the queue puts before it.
    before: Vec<Vec<usize>>,
    /// For each step those that the queue puts after it.
    after: Vec<Vec<usize>>,
    dead: Dead,
    left: u64,
    /// The longest order found, and what it led to.
    best: (usize, Taken, State),
}

impl Step {
    /// The queue puts `older` before it.
    fn waits_for(&self, older: &Self) -> bool {
        let (Some(own), Some(other)) = (self.queue, older.queue) else {
            return false;
        };
        self.client == older.client
            && older.invoked < self.invoked
            && (own == Queue::Ordered || (other == Queue::Ordered && own != Queue::Head))
    }
}

/// Which steps the queues put before and after each one.
fn queues(steps: &[Step]) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut before = vec![Vec::new(); steps.len()];
    let mut after = vec![Vec::new(); steps.len()];
    for (number, step) in steps.iter().enumerate() {
        for (older, other) in steps.iter().enumerate().take(number) {
            // What ended before needs no word of the queue.
            if step.waits_for(other) && other.ended > step.invoked {
                before[number].push(older);
                after[older].push(number);
            }
        }
    }
    (before, after)
}

/// Looks for an order of `steps`, which are sorted by invocation.
pub(super) fn explain(steps: &[Step], state: State, steps_max: u64) -> Outcome {
    let (before, after) = queues(steps);
    let mut search = Search {
        steps,
        before,
        after,
        dead: Dead::default(),
        left: steps_max,
        best: (0, Taken::default(), state.clone()),
    };
    let mut stack = vec![(Taken::default(), state)];
    while let Some((mut taken, mut state)) = stack.pop() {
        if search.left == 0 {
            return Outcome::GaveUp;
        }
        search.left -= 1;
        let may = search.advance(&mut taken, &mut state);
        if search.is_over(&taken) {
            return Outcome::Explained;
        }
        if !search.dead.insert(&taken, &state) {
            continue;
        }
        let count = taken.from + taken.beyond.len();
        if count >= search.best.0 {
            search.best = (count, taken.clone(), state.clone());
        }
        // The one that ends first is tried first, so it goes on the stack last.
        let mut may = may;
        may.sort_by_key(|step| std::cmp::Reverse(steps[*step].ended));
        for step in may {
            let (mut taken, mut state) = (taken.clone(), state.clone());
            taken.take(step);
            state.extend(steps[step].effect.sets.iter().copied());
            stack.push((taken, state));
        }
    }
    Outcome::Impossible(search.report())
}

impl Search<'_> {
    /// The steps that may be next: invoked before every other that is left has ended.
    fn candidates(&self, taken: &Taken) -> Vec<usize> {
        let mut earliest_end = u64::MAX;
        let mut out = Vec::new();
        for (number, step) in self.steps.iter().enumerate().skip(taken.from) {
            if step.invoked > earliest_end {
                break;
            }
            if taken.has(number) {
                continue;
            }
            // One that perhaps never took place holds nobody up.
            if step.must {
                earliest_end = earliest_end.min(step.ended);
            }
            out.push(number);
        }
        out.retain(|number| {
            self.steps[*number].invoked <= earliest_end && self.is_its_turn(taken, *number)
        });
        out
    }

    /// No queue forbids it: nothing that must come before is left, nothing that comes after is
    /// taken.
    fn is_its_turn(&self, taken: &Taken, number: usize) -> bool {
        let waits = |older: &usize| self.steps[*older].must && !taken.has(*older);
        !self.before[number].iter().any(waits)
            && !self.after[number].iter().any(|newer| taken.has(*newer))
    }

    /// Takes all steps that only read and fit now: taking them at once can hinder nothing, unless
    /// the time of a write that perhaps took place ends with it. Answers the other steps that may
    /// be next.
    fn advance(&self, taken: &mut Taken, state: &mut State) -> Vec<usize> {
        loop {
            self.expire(taken);
            let candidates = self.candidates(taken);
            let mut moved = false;
            let mut changes = Vec::new();
            for number in candidates {
                let effect = &self.steps[number].effect;
                if !effect.fits(state) {
                    continue;
                }
                if effect.sets.is_empty() && !self.ends_the_time_of_another(taken, number) {
                    taken.take(number);
                    moved = true;
                } else {
                    changes.push(number);
                }
            }
            if !moved {
                return changes;
            }
        }
    }

    /// Taking `number` means that a step which perhaps took place can do so no more.
    fn ends_the_time_of_another(&self, taken: &Taken, number: usize) -> bool {
        let invoked = self.steps[number].invoked;
        let of_queue = |other: &usize| !self.steps[*other].must && !taken.has(*other);
        if self.before[number].iter().any(of_queue) {
            return true;
        }
        (taken.from..number).any(|other| {
            let step = &self.steps[other];
            !step.must && step.ended < invoked && !taken.has(other)
        })
    }

    /// Gives up the steps that perhaps took place and whose time is over.
    fn expire(&self, taken: &mut Taken) {
        let Some(last) = taken.last() else { return };
        let latest = self.steps[last].invoked;
        for number in taken.from..last {
            let step = &self.steps[number];
            if !step.must && step.ended < latest && !taken.has(number) {
                taken.take(number);
            }
        }
    }

    /// Every step that took place for sure has its place.
    fn is_over(&self, taken: &Taken) -> bool {
        let mut left = self.steps.iter().enumerate().skip(taken.from);
        left.all(|(number, step)| !step.must || taken.has(number))
    }

    fn report(&self) -> Vec<String> {
        let (count, taken, state) = &self.best;
        let mut lines = vec![format!(
            "after {count} of {} effects in order it holds {state:?}, and then nothing fits:",
            self.steps.len()
        )];
        let before = self.steps.iter().enumerate();
        let before: Vec<_> = before.filter(|(number, _)| taken.has(*number)).collect();
        for (_, step) in before.iter().rev().take(8).rev() {
            lines.push(format!("fits     {}", step.line()));
        }
        let after = self.steps.iter().enumerate();
        for (_, step) in after.filter(|(number, _)| !taken.has(*number)).take(12) {
            lines.push(format!("does not {}", step.line()));
        }
        lines
    }
}

impl Step {
    fn line(&self) -> String {
        let Effect { is, is_not, sets } = &self.effect;
        let mut what = String::new();
        for (lba, value) in is {
            what += &format!(" {lba} is {value:?}");
        }
        if let Some((lba, value)) = is_not {
            what += &format!(" {lba} is not {value:?}");
        }
        for (lba, value) in sets {
            what += &format!(" {lba} := {value:?}");
        }
        let end = match self.ended {
            u64::MAX => "open".to_owned(),
            at => at.to_string(),
        };
        let sure = if self.must { "" } else { " (perhaps)" };
        let queue = self
            .queue
            .map(|queue| format!(" {queue:?}"))
            .unwrap_or_default();
        format!(
            "client {} [{}, {end}]{queue}{what}{sure}",
            self.client, self.invoked
        )
    }
}
