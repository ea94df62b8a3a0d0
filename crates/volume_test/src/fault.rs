//! Faults on demand: by script, or by chance from a seed.
//!
//! **Contract.** A fault never makes a volume lie: what is answered with success was done. A failed
//! or torn mutation leaves whole blocks, each old or new, as the waist allows. A hung operation
//! goes on when it is released, even if its answer was dropped meanwhile (C4).

use crate::draw::Draw;
use env::{Answer, CoreHandle, LocalFuture, detach};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;
use units::{BlockCount, LbaRange};
use volume::{Io, IoError, IoFuture, Lane, Op, OpKind, Shape, Wrap};

/// What happens to an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// It is not done and answered with this error.
    Fail(IoError),
    /// It is done and answered with this error all the same.
    FailAfter(IoError),
    /// Only its first blocks are written, then it is answered with this error. Other operations
    /// than writes fail undone.
    Tear(BlockCount, IoError),
    /// It waits for [`Faults::release`] and then goes on.
    Hang,
    /// It goes on after this time.
    Delay(Duration),
}

/// Which operations meet a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultRule {
    /// Of these kinds.
    pub kinds: Vec<OpKind>,
    /// That touch this range; `None`: wherever.
    pub range: Option<LbaRange>,
    /// After so many that were spared.
    pub skip: u64,
    /// So many of them.
    pub times: u64,
    /// What happens.
    pub action: Action,
}

/// How often chance strikes: once in so many operations; 0 for never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Odds {
    /// [`Action::Fail`] with a medium error.
    pub fail: u64,
    /// [`Action::FailAfter`] with a medium error.
    pub fail_after: u64,
    /// [`Action::Tear`].
    pub tear: u64,
    /// [`Action::Fail`] of a mutation with [`IoError::SpaceExhausted`].
    pub space: u64,
    /// [`Action::Delay`] of up to [`DELAY_MAX`].
    pub delay: u64,
}

/// The longest delay that chance gives.
pub const DELAY_MAX: Duration = Duration::from_millis(20);

/// The faults of one volume, to be kept by the test. Cloning shares them.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rules: Vec<FaultRule>,
    chance: Option<(Draw, Odds)>,
    hits: u64,
    hanging: usize,
    /// Counts releases: who hangs waits for the next one.
    releases: u64,
    wakers: Vec<Waker>,
}

impl Faults {
    /// No fault.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule; the first rule that fits decides.
    pub fn add(&self, rule: FaultRule) {
        self.lock().rules.push(rule);
    }

    /// One fault for the next operation of `kind`.
    pub fn once(&self, kind: OpKind, action: Action) {
        self.add(FaultRule {
            kinds: vec![kind],
            range: None,
            skip: 0,
            times: 1,
            action,
        });
    }

    /// Lets chance strike what no rule fits.
    pub fn by_chance(&self, seed: u64, odds: Odds) {
        self.lock().chance = Some((Draw::new(seed), odds));
    }

    /// Takes away all rules and chance; what hangs goes on hanging.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.rules.clear();
        state.chance = None;
    }

    /// Lets everything go on that hangs now.
    pub fn release(&self) {
        let mut state = self.lock();
        state.releases += 1;
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }

    /// How many operations met a fault.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.lock().hits
    }

    /// How many operations hang now.
    #[must_use]
    pub fn hanging(&self) -> usize {
        self.lock().hanging
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, op: &Op) -> Option<Action> {
        let mut state = self.lock();
        let action = state.scripted(op).or_else(|| state.chanced(op))?;
        state.hits += 1;
        Some(action)
    }

    fn released(&self) -> LocalFuture<()> {
        let faults = self.clone();
        let mut state = self.lock();
        state.hanging += 1;
        let since = state.releases;
        drop(state);
        Box::pin(poll_fn(move |cx| {
            let mut state = faults.lock();
            if state.releases == since {
                state.wakers.push(cx.waker().clone());
                return Poll::Pending;
            }
            state.hanging -= 1;
            Poll::Ready(())
        }))
    }
}

impl State {
    fn scripted(&mut self, op: &Op) -> Option<Action> {
        let kind = OpKind::of(op);
        let rule = self.rules.iter_mut().find(|rule| {
            let here = match (rule.range, op.range()) {
                (Some(range), Some(touched)) => range.overlaps(touched),
                (None, _) => true,
                (Some(_), None) => false,
            };
            here && rule.times > 0 && rule.kinds.contains(&kind)
        })?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.action)
    }

    fn chanced(&mut self, op: &Op) -> Option<Action> {
        let (draw, odds) = self.chance.as_mut()?;
        let lba = op.range().map_or_else(Default::default, LbaRange::start);
        let error = IoError::MediumError { lba };
        if draw.once_in(odds.fail) {
            return Some(Action::Fail(error));
        }
        if draw.once_in(odds.fail_after) {
            return Some(Action::FailAfter(error));
        }
        if op.mutates() && draw.once_in(odds.space) {
            return Some(Action::Fail(IoError::SpaceExhausted));
        }
        if draw.once_in(odds.tear) {
            let blocks = op.range().map_or(BlockCount(0), LbaRange::len);
            return Some(Action::Tear(BlockCount(draw.below(blocks.0.max(1))), error));
        }
        if draw.once_in(odds.delay) {
            let longest = u64::try_from(DELAY_MAX.as_nanos()).expect("milliseconds");
            return Some(Action::Delay(Duration::from_nanos(draw.below(longest))));
        }
        None
    }
}

struct FaultLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    shape: Shape,
    faults: Faults,
}

impl Wrap for Faults {
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        Rc::new(FaultLane {
            core: Rc::clone(core),
            below,
            shape,
            faults: self.clone(),
        })
    }
}

impl Lane for FaultLane {
    fn submit(&self, io: Io) -> IoFuture {
        let Some(action) = self.faults.decide(io.op()) else {
            return self.below.submit(io);
        };
        match action {
            Action::Fail(error) => Answer::ready(Err(error)),
            Action::FailAfter(error) => self.then_fail(io, error),
            Action::Tear(blocks, error) => match torn(&self.shape, &io, blocks) {
                Some(part) => self.then_fail(part, error),
                None => Answer::ready(Err(error)),
            },
            Action::Hang => self.after(self.faults.released(), io),
            Action::Delay(span) => {
                let until = self.core.now().after(span);
                self.after(self.core.sleep_until(until), io)
            }
        }
    }
}

impl FaultLane {
    fn then_fail(&self, io: Io, error: IoError) -> IoFuture {
        let first = self.below.submit(io);
        Answer::wait(async move {
            // Done or not: the answer is the fault.
            drop(first.await);
            Err(error)
        })
    }

    fn after(&self, moment: LocalFuture<()>, io: Io) -> IoFuture {
        let below = Rc::clone(&self.below);
        detach(&self.core, async move {
            moment.await;
            below.submit(io).await
        })
    }
}

/// The first `blocks` blocks of a write; `None` where nothing is left.
fn torn(shape: &Shape, io: &Io, blocks: BlockCount) -> Option<Io> {
    let Op::Write {
        range,
        data,
        durability,
    } = io.op()
    else {
        return None;
    };
    let part = LbaRange::new(range.start(), blocks.min(range.len()))?;
    if part.is_empty() {
        return None;
    }
    let op = Op::Write {
        range: part,
        data: data.slice(0..shape.bytes_in(part)),
        durability: *durability,
    };
    Some(Io::new(op, io.origin()))
}
