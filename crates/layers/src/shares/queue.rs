//! Who goes next of several flows that have one thing in common: start-time fair queueing with a depth (SFQ(D): Jin, Chase and
//! Kaur, 2004).
//!
//! Each operation begins, in a time of its own, where the one before it of its flow ended, but not before now; it ends later by its
//! cost divided by the flow's shares. Those that begin first go first, and now is the beginning of the last one that went.
//!
//! **Invariants.** I1: while more than one flow has something, at most `depth` operations are under way after one has gone. I2: nothing waits where
//! less than that is under way, or where only one flow has something. I3: a flow's operations go in their order.

use std::collections::BTreeMap;

/// What makes costs divisible.
const SCALE: u128 = 1 << 20;

/// One of those that have something in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flow(u64);

/// Names an operation that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ticket(u64);

#[derive(Debug)]
struct Known {
    shares: u32,
    /// Where its last operation ends.
    end: u128,
    under_way: usize,
    waiting: usize,
}

impl Known {
    const fn is_active(&self) -> bool {
        self.under_way + self.waiting > 0
    }
}

/// The flows, and what waits of them.
#[derive(Debug)]
pub struct Queue {
    depth: usize,
    now: u128,
    under_way: usize,
    flows: BTreeMap<Flow, Known>,
    /// By where they begin.
    waiting: BTreeMap<(u128, Ticket), Flow>,
    /// Flows that have something.
    active: usize,
    numbers: u64,
}

impl Queue {
    /// Nobody yet; `depth`: operations under way at once.
    #[must_use]
    pub const fn new(depth: usize) -> Self {
        Self {
            depth,
            now: 0,
            under_way: 0,
            flows: BTreeMap::new(),
            waiting: BTreeMap::new(),
            active: 0,
            numbers: 0,
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
            waiting: 0,
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
        self.waiting.retain(|_, of| *of != flow);
    }

    /// An operation of this cost has come; `None`: it goes.
    pub fn arrive(&mut self, flow: Flow, cost: u64) -> Option<Ticket> {
        let now = self.now;
        let known = self.flows.get_mut(&flow)?;
        let begin = now.max(known.end);
        known.end = begin + (u128::from(cost) * SCALE / u128::from(known.shares)).max(1);
        self.active += usize::from(!known.is_active());
        let nothing_waits = self.waiting.is_empty();
        if nothing_waits && (self.active == 1 || self.under_way < self.depth) {
            self.goes(flow, begin);
            return None;
        }
        let ticket = Ticket(self.number());
        if let Some(known) = self.flows.get_mut(&flow) {
            known.waiting += 1;
        }
        self.waiting.insert((begin, ticket), flow);
        Some(ticket)
    }

    fn goes(&mut self, flow: Flow, begin: u128) {
        self.now = self.now.max(begin);
        self.under_way += 1;
        if let Some(known) = self.flows.get_mut(&flow) {
            known.under_way += 1;
        }
    }

    /// The next one that may go now; to be asked until there is none, after every change.
    pub fn release(&mut self) -> Option<Ticket> {
        if self.active > 1 && self.under_way >= self.depth {
            return None;
        }
        self.release_any()
    }

    /// The next one, whether it may go or not.
    pub fn release_any(&mut self) -> Option<Ticket> {
        let ((begin, ticket), flow) = self.waiting.pop_first()?;
        if let Some(known) = self.flows.get_mut(&flow) {
            known.waiting -= 1;
        }
        self.goes(flow, begin);
        Some(ticket)
    }

    /// One that went has ended.
    pub fn ended(&mut self, flow: Flow) {
        let Some(known) = self.flows.get_mut(&flow) else {
            return;
        };
        known.under_way -= 1;
        self.active -= usize::from(!known.is_active());
        self.under_way -= 1;
    }

    /// Of one flow.
    #[must_use]
    pub fn waiting_of(&self, flow: Flow) -> usize {
        self.flows.get(&flow).map_or(0, |it| it.waiting)
    }

    /// Operations that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Operations that went and have not ended.
    #[must_use]
    pub const fn under_way(&self) -> usize {
        self.under_way
    }
}
