//! Who goes next of several flows that have one thing in common: start-time fair queueing with a
//! depth (SFQ(D): Jin, Chase and Kaur, 2004).
//!
//! Each operation begins, in a time of its own, where the one before it of its flow ended, but not
//! before now; it ends later by its cost divided by the flow's shares. Those that begin first go
//! first, and now is the beginning of the last one that went.
//!
//! **Invariants.** I1: while more than one flow has something, an operation goes only where fewer
//! than `depth` are under way, or none of its own flow. I2: nothing waits that may go. I3: a flow's
//! operations go in their order. I4: a flow of which nothing has ended for [`HANGS_AFTER`] does not
//! count in the depth, and gets nothing more, until something does: a disk that hangs holds up no
//! other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use units::Now;

/// What makes costs divisible.
const SCALE: u128 = 1 << 20;

/// A flow of which nothing ends for so long hangs.
pub const HANGS_AFTER: Duration = Duration::from_secs(1);

/// How often those that hang are looked for, while others wait.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// One of those that have something in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flow(u64);

/// Names an operation that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ShareWaiter(u64);

#[derive(Debug)]
struct Known {
    shares: u32,
    /// Where its last operation ends.
    end: u128,
    under_way: usize,
    /// Where each begins.
    waiting: VecDeque<(u128, ShareWaiter)>,
    /// When one of it ended last, or went while none was under way.
    moved: Now,
    hangs: bool,
}

impl Known {
    fn is_active(&self) -> bool {
        self.under_way + self.waiting.len() > 0
    }

    /// What of it counts in the depth.
    const fn counts(&self) -> usize {
        if self.hangs { 0 } else { self.under_way }
    }
}

/// The flows, and what waits of them.
#[derive(Debug)]
pub struct Queue {
    depth: usize,
    now: u128,
    under_way: usize,
    /// Of those, what counts.
    counted: usize,
    flows: BTreeMap<Flow, Known>,
    /// Flows of which something waits, by where the first of it begins.
    first: BTreeSet<(u128, Flow)>,
    waiting: usize,
    /// Flows that have something.
    active: usize,
    numbers: u64,
    checked_at: Now,
}

impl Queue {
    /// Nobody yet; `depth`: operations under way at once.
    #[must_use]
    pub const fn new(depth: usize) -> Self {
        Self {
            depth,
            now: 0,
            under_way: 0,
            counted: 0,
            flows: BTreeMap::new(),
            first: BTreeSet::new(),
            waiting: 0,
            active: 0,
            numbers: 0,
            checked_at: Now::ZERO,
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// One more flow, with so many shares (not 0).
    pub fn join(&mut self, shares: u32) -> Flow {
        let flow = Flow(self.number());
        let known = Known {
            shares,
            end: 0,
            under_way: 0,
            waiting: VecDeque::new(),
            moved: Now::ZERO,
            hangs: false,
        };
        self.flows.insert(flow, known);
        flow
    }

    /// It has so many shares from now on.
    pub fn set(&mut self, flow: Flow, shares: u32) {
        if let Some(known) = self.flows.get_mut(&flow) {
            known.shares = shares;
        }
    }

    /// It has gone; nothing of it waits any more.
    pub fn leave(&mut self, flow: Flow) {
        let Some(known) = self.flows.remove(&flow) else {
            return;
        };
        self.active -= usize::from(known.is_active());
        self.under_way -= known.under_way;
        self.counted -= known.counts();
        self.waiting -= known.waiting.len();
        if let Some((begin, _)) = known.waiting.front() {
            self.first.remove(&(*begin, flow));
        }
    }

    /// An operation of this cost has come; `None`: it goes.
    pub fn arrive(&mut self, flow: Flow, cost: u64, at: Now) -> Option<ShareWaiter> {
        let (now, waiter) = (self.now, ShareWaiter(self.number()));
        let known = self.flows.get_mut(&flow)?;
        let begin = now.max(known.end);
        known.end = begin + (u128::from(cost) * SCALE / u128::from(known.shares)).max(1);
        self.active += usize::from(!known.is_active());
        known.waiting.push_back((begin, waiter));
        self.waiting += 1;
        if known.waiting.len() == 1 {
            self.first.insert((begin, flow));
        }
        // Whoever waited before goes first, if it may; then nothing waits that may.
        let may = self.waiting == 1 && self.may_go(flow);
        if !may {
            return Some(waiter);
        }
        self.goes(flow, at);
        None
    }

    fn may_go(&self, flow: Flow) -> bool {
        let Some(known) = self.flows.get(&flow) else {
            return false;
        };
        let has_room = self.counted < self.depth && !known.hangs;
        self.active == 1 || has_room || known.under_way == 0
    }

    /// The first of a flow goes.
    fn goes(&mut self, flow: Flow, at: Now) -> Option<ShareWaiter> {
        let known = self.flows.get_mut(&flow)?;
        let (begin, waiter) = known.waiting.pop_front()?;
        self.first.remove(&(begin, flow));
        if let Some((next, _)) = known.waiting.front() {
            self.first.insert((*next, flow));
        }
        if known.under_way == 0 {
            known.moved = at;
        }
        self.counted -= known.counts();
        known.under_way += 1;
        self.counted += known.counts();
        self.under_way += 1;
        self.waiting -= 1;
        self.now = self.now.max(begin);
        Some(waiter)
    }

    /// The next one that may go now; to be asked until there is none, after every change.
    pub fn release(&mut self, at: Now) -> Option<ShareWaiter> {
        if let Some(flow) = self.next() {
            return self.goes(flow, at);
        }
        if self.waiting == 0 || at.since(self.checked_at) < CHECK_EVERY {
            return None;
        }
        self.find_hanging(at);
        let flow = self.next()?;
        self.goes(flow, at)
    }

    fn next(&self) -> Option<Flow> {
        let mut flows = self.first.iter().map(|(_, flow)| *flow);
        flows.find(|flow| self.may_go(*flow))
    }

    fn find_hanging(&mut self, at: Now) {
        self.checked_at = at;
        for known in self.flows.values_mut().filter(|it| it.under_way > 0) {
            if !known.hangs && at.since(known.moved) >= HANGS_AFTER {
                self.counted -= known.under_way;
                known.hangs = true;
            }
        }
    }

    /// The next one, whether it may go or not.
    pub fn release_any(&mut self, at: Now) -> Option<ShareWaiter> {
        let (_, flow) = *self.first.first()?;
        self.goes(flow, at)
    }

    /// One that went has ended.
    pub fn ended(&mut self, flow: Flow, at: Now) {
        let Some(known) = self.flows.get_mut(&flow) else {
            return;
        };
        self.counted -= known.counts();
        (known.moved, known.hangs) = (at, false);
        known.under_way -= 1;
        self.counted += known.counts();
        self.active -= usize::from(!known.is_active());
        self.under_way -= 1;
    }

    /// Of one flow.
    #[must_use]
    pub fn waiting_of(&self, flow: Flow) -> usize {
        self.flows.get(&flow).map_or(0, |it| it.waiting.len())
    }

    /// Operations that wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Operations that went and have not ended.
    #[must_use]
    pub const fn under_way(&self) -> usize {
        self.under_way
    }
}
