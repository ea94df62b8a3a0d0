//! A host's work at depth: several workers on one session, each with one command at a time.

use super::client::within;
use super::initiator::{Host, Job, Outcome};
use super::oracle::{End, Oracle, Ticket};
use crate::history::Queue;
use env::CoreHandle;
use env::sim::Rng;
use iscsi::bhs::Attribute;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Lba, LbaRange};
use volume::{Done, Durability, IoError, Op};
use volume_test::stamp::Value;

/// How long a worker waits; its session gives commands up long before.
const PATIENCE: Duration = Duration::from_secs(90);

/// What each command is recorded in, when it begins and when it ends.
pub(super) trait Ledger {
    /// It was sent; the number is given back at its end.
    fn begun(&self, host: u32, writes: bool, ticket: Ticket) -> u64;

    /// It has ended.
    fn ended(&self, number: u64, outcome: Option<&Outcome>, end: &End);
}

/// The hosts' work ends together.
#[derive(Clone, Default)]
pub(super) struct Shift {
    pub(super) over: Rc<Cell<bool>>,
    pub(super) working: Rc<Cell<u32>>,
}

pub(super) struct Worker {
    pub(super) number: u32,
    pub(super) core: CoreHandle,
    pub(super) host: Host,
    pub(super) oracle: Rc<Oracle>,
    pub(super) ledger: Rc<dyn Ledger>,
    pub(super) rng: Rng,
    /// Blocks that it uses.
    pub(super) blocks: Rc<Cell<u64>>,
    /// Blocks of one command at most.
    pub(super) len_max: u64,
    /// Sends ORDERED and HEAD OF QUEUE as well.
    pub(super) queues: bool,
    /// Flushes now and then.
    pub(super) flushes: bool,
    pub(super) commands: u32,
    pub(super) shift: Shift,
}

impl Worker {
    /// Starts it on its core.
    pub(super) fn start(self) {
        self.shift.working.set(self.shift.working.get() + 1);
        let core = Rc::clone(&self.core);
        core.spawn(Box::pin(self.work()));
    }

    async fn work(mut self) {
        while self.commands > 0 && !self.shift.over.get() {
            self.commands -= 1;
            self.command().await;
            if self.rng.below(3) == 0 {
                let pause = Duration::from_micros(self.rng.below(1000));
                self.core.sleep_until(self.core.now().after(pause)).await;
            }
        }
        self.shift.working.set(self.shift.working.get() - 1);
    }

    fn range(&mut self) -> LbaRange {
        let blocks = self.blocks.get();
        let area = if self.rng.below(3) == 0 {
            blocks
        } else {
            blocks.min(8)
        };
        let len = self.rng.between(1, self.len_max.min(area));
        let start = self.rng.below(area - len + 1);
        LbaRange::new(Lba(start), BlockCount(len)).expect("inside a small disk")
    }

    fn attribute(&mut self) -> (Attribute, Queue) {
        match self.rng.below(6) {
            0 | 1 if self.queues => (Attribute::Ordered, Queue::Ordered),
            2 if self.queues => (Attribute::HeadOfQueue, Queue::Head),
            _ => (Attribute::Simple, Queue::Simple),
        }
    }

    fn choose(&mut self) -> (Op, Ticket) {
        let number = self.number;
        match self.rng.below(if self.flushes { 20 } else { 19 }) {
            0..10 => {
                let range = self.range();
                (
                    Op::Read { range, into: None },
                    self.oracle.read(number, range),
                )
            }
            10..19 => {
                let range = self.range();
                let durability = match self.rng.below(3) {
                    0 => Durability::Stable,
                    _ => Durability::Cached,
                };
                let values = self.oracle.fresh(number, range);
                let ticket = self.oracle.write(number, range, &values, durability);
                let data = Value::payload(&values, self.oracle.block_size());
                let op = Op::Write {
                    range,
                    data,
                    durability,
                };
                (op, ticket)
            }
            _ => (Op::Flush, self.oracle.flush()),
        }
    }

    async fn command(&mut self) {
        let (attribute, queue) = self.attribute();
        let (op, ticket) = self.choose();
        if self.queues {
            self.oracle.queued(&ticket, queue);
        }
        let writes = matches!(op, Op::Write { .. });
        let wire = self.host.wire(&op, attribute);
        // Nothing is awaited between the oracle's and the session's turn, so both know one order.
        let number = self.ledger.begun(self.number, writes, ticket);
        let session = self.host.session();
        let asked = session.send(Job::Command(wire.clone()));
        let answer = async {
            let mut outcome = asked.await;
            // A flush that was kept from being done did not fail, so it is sent until it is.
            while matches!(op, Op::Flush) && outcome.is_worth_again() {
                outcome = session.send(Job::Command(wire.clone())).await;
            }
            outcome
        };
        let Some(outcome) = within(&self.core, PATIENCE, answer).await else {
            self.ledger.ended(number, None, &End::Timeout);
            return;
        };
        let end = match self.host.result(&op, &outcome) {
            // A unit attention: the command was not done.
            None => End::Error(IoError::WriteProtected),
            Some(Ok(Done::Data(bytes))) => End::Done(Some(bytes)),
            Some(Ok(Done::Nothing | Done::Logged | Done::Extents(_))) => End::Done(None),
            Some(Err(error)) => End::Error(error),
        };
        self.ledger.ended(number, Some(&outcome), &end);
    }
}
