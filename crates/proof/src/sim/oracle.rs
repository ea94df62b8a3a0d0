//! Both judges behind one door: every command goes in when it starts and when it ends.

use crate::history::{Answer, Call, CallId, History, Queue, Verdict};
use crate::model_disk::{Ending, ModelDisk, Started, Writing};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use units::{BlockSize, Buf, Lba, LbaRange};
use volume::{Durability, IoError};
use volume_test::stamp::{Stamp, Value};

/// Steps of the history's search for each group of blocks.
const SEARCH_STEPS: u64 = 200_000;

/// What was done and judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Reads that were answered with data.
    pub reads: u64,
    /// Writes, zeroes and discards that were answered with success.
    pub writes: u64,
    /// Compare-and-writes that wrote.
    pub swaps: u64,
    /// Compare-and-writes that found a difference.
    pub miscompares: u64,
    /// Flushes that were answered with success.
    pub flushes: u64,
    /// Commands that were answered with an error.
    pub errors: u64,
    /// Of these, for want of space.
    pub no_space: u64,
    /// Commands that were not answered in time.
    pub timeouts: u64,
    /// Histories that were judged right.
    pub histories: u64,
    /// Histories that could not be judged in the steps given.
    pub undecided: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.swaps += other.swaps;
        self.miscompares += other.miscompares;
        self.flushes += other.flushes;
        self.errors += other.errors;
        self.no_space += other.no_space;
        self.timeouts += other.timeouts;
        self.histories += other.histories;
        self.undecided += other.undecided;
    }
}

struct State {
    model: ModelDisk,
    /// Absent while registers are no model of the disk: after a failed flush, until the next audit.
    history: Option<History>,
    in_parts: bool,
    /// Counts the histories, so that a command of an older one is not entered into a newer.
    chapter: u64,
    counts: Counts,
    violations: Vec<String>,
    sequence: u64,
    /// Syncs of the node that failed in its earlier lives.
    failed_syncs: u64,
    /// The disk is synced whenever somebody below likes to, and that may fail.
    own_syncs: Option<Started>,
    /// What was asked and answered, in words, where that is wanted.
    log: Option<Vec<String>>,
}

/// Judges what the clients of one volume do and see.
pub struct Oracle {
    block_size: BlockSize,
    state: RefCell<State>,
}

/// A command in flight.
#[derive(Debug)]
pub struct Ticket {
    chapter: u64,
    call: Option<CallId>,
    kind: Kind,
    range: Option<LbaRange>,
    /// It may contain a sync, whose failure concerns everybody.
    sync: Option<Started>,
}

#[derive(Debug)]
enum Kind {
    Read(Started),
    Write(Writing),
    /// Each block is given up or left as it is.
    Discard(Writing),
    Swap(Writing),
    Flush(Started),
}

/// How a command ended, as its client saw it.
#[derive(Debug)]
pub enum End {
    /// With success; data for reads.
    Done(Option<Buf>),
    /// With an error.
    Error(IoError),
    /// Not at all, in the time that the client had: it may still be done.
    Timeout,
    /// Not at all, and it changes nothing from now on: its nexus is gone.
    Lost,
}

impl Oracle {
    /// The oracle of a disk of zeroes.
    #[must_use]
    pub fn new(block_size: BlockSize, log: bool) -> Self {
        let state = State {
            model: ModelDisk::new(block_size),
            history: Some(History::default()),
            in_parts: false,
            chapter: 0,
            counts: Counts::default(),
            violations: Vec::new(),
            sequence: 0,
            failed_syncs: 0,
            own_syncs: None,
            log: log.then(Vec::new),
        };
        Self {
            block_size,
            state: RefCell::new(state),
        }
    }

    /// Something that belongs into the log.
    pub fn note(&self, line: impl FnOnce() -> String) {
        self.state.borrow_mut().say(line);
    }

    /// The disk's logical block.
    #[must_use]
    pub fn block_size(&self) -> BlockSize {
        self.block_size
    }

    /// New values for a range, never used before.
    pub fn fresh(&self, writer: u32, range: LbaRange) -> Vec<Value> {
        let mut state = self.state.borrow_mut();
        state.sequence += 1;
        let sequence = state.sequence;
        let blocks = range.start().0..range.end().0;
        blocks
            .map(|lba| {
                Value::Stamp(Stamp {
                    lba: Lba(lba),
                    writer,
                    sequence,
                })
            })
            .collect()
    }

    /// The oracle of a disk of zeroes that asks the model disk alone: for clients without number or
    /// end, whose histories nobody could search.
    #[must_use]
    pub fn without_history(block_size: BlockSize) -> Self {
        let oracle = Self::new(block_size, false);
        oracle.state.borrow_mut().history = None;
        oracle
    }

    fn begin(
        &self,
        client: u32,
        call: Option<Call>,
        kind: impl FnOnce(&mut ModelDisk) -> Kind,
    ) -> Ticket {
        let state = &mut *self.state.borrow_mut();
        let range = call.as_ref().map(Call::range);
        state.say(|| format!("client {client} asks {call:?}"));
        let history = state.history.as_mut();
        let call = call.and_then(|call| history.map(|history| history.begin(client, call)));
        Ticket {
            chapter: state.chapter,
            call,
            kind: kind(&mut state.model),
            range,
            sync: None,
        }
    }

    /// The command that just started has this place in its client's queue.
    pub fn queued(&self, ticket: &Ticket, queue: Queue) {
        let state = &mut *self.state.borrow_mut();
        if let (Some(history), Some(call)) = (&mut state.history, ticket.call) {
            history.queued(call, queue);
        }
    }

    /// A read starts.
    pub fn read(&self, client: u32, range: LbaRange) -> Ticket {
        let call = Call::Read { range };
        self.begin(client, Some(call), |model| Kind::Read(model.read()))
    }

    /// The command that just started syncs the whole disk on its way: stable zeroes and discards.
    pub fn may_sync(&self, ticket: &mut Ticket) {
        ticket.sync = Some(self.state.borrow_mut().model.flush());
    }

    /// A write of `values` starts; zeroes count as writes.
    pub fn write(
        &self,
        client: u32,
        range: LbaRange,
        values: &[Value],
        durability: Durability,
    ) -> Ticket {
        let values = values.to_vec();
        let call = Call::Write {
            range,
            values: values.clone(),
        };
        self.begin(client, Some(call), |model| {
            Kind::Write(model.write(range, &values, durability))
        })
    }

    /// A discard starts.
    pub fn discard(&self, client: u32, range: LbaRange) -> Ticket {
        let blocks = usize::try_from(range.len().0).expect("ranges of a test are short");
        let values = vec![Value::Zero; blocks];
        let call = Call::Write {
            range,
            values: values.clone(),
        };
        self.begin(client, Some(call), |model| {
            Kind::Discard(model.write(range, &values, Durability::Cached))
        })
    }

    /// A compare-and-write starts.
    pub fn swap(
        &self,
        client: u32,
        range: LbaRange,
        expected: &[Value],
        values: &[Value],
        durability: Durability,
    ) -> Ticket {
        let call = Call::CompareAndWrite {
            range,
            expected: expected.to_vec(),
            values: values.to_vec(),
        };
        self.begin(client, Some(call), |model| {
            Kind::Swap(model.write(range, values, durability))
        })
    }

    /// A flush starts.
    pub fn flush(&self) -> Ticket {
        self.begin(0, None, |model| Kind::Flush(model.flush()))
    }

    /// What started as a flush was no host's and went well: it makes nothing stable for hosts.
    pub fn did_not_fail(&self, ticket: &Ticket) {
        let state = &mut *self.state.borrow_mut();
        if let Kind::Flush(started) = &ticket.kind {
            state.end_sync(started, &End::Done(None), false);
        }
    }

    /// A command ended. Answers what a read saw.
    pub fn end(&self, ticket: &Ticket, end: &End) -> Option<Vec<Value>> {
        let state = &mut *self.state.borrow_mut();
        state.count(&ticket.kind, end);
        state.say(|| format!("{end} ends {:?}", ticket.kind));
        if let Some(started) = &ticket.sync {
            state.end_sync(started, end, false);
        }
        let bytes_per_block = u64::from(self.block_size.bytes());
        let (seen, answer) = match &ticket.kind {
            Kind::Read(started) => state.end_read(started, ticket.range?, end),
            Kind::Flush(started) => {
                state.end_sync(started, end, true);
                return None;
            }
            Kind::Discard(writing) => {
                let (ending, answer) = match end {
                    End::Timeout => (Ending::Open, None),
                    End::Done(_) | End::Error(_) | End::Lost => {
                        (Ending::Failed, Some(Answer::Unknown))
                    }
                };
                state.model.written(writing, ending);
                (None, answer)
            }
            Kind::Write(writing) | Kind::Swap(writing) => {
                let (ending, answer) = how(end, bytes_per_block);
                state.model.written(writing, ending);
                (None, answer)
            }
        };
        let current = ticket.chapter == state.chapter;
        if let (true, Some(history), Some(call), Some(answer)) =
            (current, &mut state.history, ticket.call, answer)
        {
            history.end(call, answer);
        }
        seen
    }

    /// The node's life is about to end, and so many of its syncs have failed in all its lives.
    /// Where one failed in this life, it may be a flush whose answer did not leave the node, or is
    /// still on its way.
    pub fn syncs_failed(&self, so_far: u64) {
        let state = &mut *self.state.borrow_mut();
        let before = std::mem::replace(&mut state.failed_syncs, so_far);
        if so_far > before && state.model.flushes_may_have_failed() {
            state.say(|| "a flush may have failed and nobody was notified".to_owned());
            state.history = None;
        }
    }

    /// From now on a journal syncs the disk by itself: what was not flushed may be gone at any
    /// moment, where [`Oracle::own_syncs_failed`] reports later that more than these have failed.
    pub fn syncs_by_itself(&self, failed_so_far: u64) {
        let state = &mut *self.state.borrow_mut();
        state.failed_syncs = failed_so_far;
        state.own_syncs = Some(state.model.flush());
    }

    /// As [`Oracle::syncs_failed`], where a journal syncs the disk by itself: what was not flushed
    /// may be gone although nobody flushed.
    pub fn own_syncs_failed(&self, so_far: u64) {
        let state = &mut *self.state.borrow_mut();
        let before = std::mem::replace(&mut state.failed_syncs, so_far);
        let own_syncs = state.own_syncs.take();
        if so_far > before {
            state.model.a_sync_failed();
            state.say(|| "a sync failed and nobody was notified".to_owned());
            state.history = None;
        } else if let Some(started) = own_syncs {
            state.end_sync(&started, &End::Done(None), false);
        }
    }

    /// The node lost its power (`true`) or its process. The history so far is judged.
    pub fn life_ended(&self, power_cut: bool) {
        self.close_history();
        let mut state = self.state.borrow_mut();
        state.say(|| format!("the node's life ends, power cut: {power_cut}"));
        if power_cut {
            state.model.power_cut();
        } else {
            state.model.killed();
        }
    }

    /// Every client has ended: no answer comes any more to what was asked so far. Keeps a long run
    /// fast.
    pub fn all_clients_ended(&self) {
        self.state.borrow_mut().model.forget_unseen();
    }

    /// Judges the history so far; commands in it that have not ended are of open fate.
    pub fn close_history(&self) {
        let state = &mut *self.state.borrow_mut();
        state.chapter += 1;
        let Some(history) = state.history.take().filter(|history| !history.is_empty()) else {
            return;
        };
        match history.check(SEARCH_STEPS) {
            Verdict::Right => state.counts.histories += 1,
            Verdict::Undecided(_) => state.counts.undecided += 1,
            Verdict::Wrong(explanation) => state.violations.push(explanation.to_string()),
        }
    }

    /// A compare-and-write whose answer nobody has got may be done in part: below, it is several
    /// writes.
    pub fn asked_in_parts(&self) {
        let mut state = self.state.borrow_mut();
        state.in_parts = true;
        state.history = Some(History::default().in_parts(true));
    }

    /// A new history starts, from what an audit has just read.
    pub fn open_history(&self, initial: BTreeMap<u64, Value>) {
        let mut state = self.state.borrow_mut();
        state.chapter += 1;
        state.history = Some(History::new(initial).in_parts(state.in_parts));
    }

    /// What went wrong so far.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.state.borrow().violations.clone()
    }

    /// Something else went wrong.
    pub fn complain(&self, what: String) {
        self.state.borrow_mut().violations.push(what);
    }

    /// What a block may hold now, between two lives.
    #[must_use]
    pub fn possible(&self, lba: Lba) -> Vec<Value> {
        self.state.borrow().model.possible(lba)
    }

    /// What was asked and answered, one command a line.
    #[must_use]
    pub fn log(&self) -> String {
        self.state
            .borrow()
            .log
            .as_ref()
            .map_or(String::new(), |log| log.join("\n"))
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.state.borrow().counts
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(_) => f.write_str("success"),
            Self::Error(error) => write!(f, "{error:?}"),
            Self::Timeout => f.write_str("timeout"),
            Self::Lost => f.write_str("loss"),
        }
    }
}

/// What a write's end means for the model and for the history.
fn how(end: &End, bytes_per_block: u64) -> (Ending, Option<Answer>) {
    match end {
        End::Done(_) => (Ending::Done, Some(Answer::Done)),
        End::Timeout => (Ending::Open, None),
        End::Lost => (Ending::Failed, Some(Answer::Unknown)),
        End::Error(IoError::Miscompare { at }) => {
            let place = usize::try_from(at.0 / bytes_per_block).expect("inside a short range");
            (Ending::Refused, Some(Answer::Miscompare { place }))
        }
        End::Error(IoError::WriteProtected | IoError::Fenced | IoError::Transition) => {
            (Ending::Refused, Some(Answer::Nothing))
        }
        End::Error(
            IoError::MediumError { .. } | IoError::Integrity { .. } | IoError::SpaceExhausted,
        ) => (Ending::Failed, Some(Answer::InPart)),
        End::Error(IoError::Unavailable | IoError::TimedOut | IoError::Aborted | IoError::Busy) => {
            (Ending::Failed, Some(Answer::Unknown))
        }
    }
}

impl State {
    fn say(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(line());
        }
    }

    fn count(&mut self, kind: &Kind, end: &End) {
        let counts = &mut self.counts;
        let no_space = matches!(end, End::Error(IoError::SpaceExhausted));
        counts.no_space += u64::from(no_space);
        let counter = match (end, kind) {
            (End::Timeout | End::Lost, _) => &mut counts.timeouts,
            (End::Error(IoError::Miscompare { .. }), _) => &mut counts.miscompares,
            (End::Error(_), _) => &mut counts.errors,
            (End::Done(_), Kind::Read(_)) => &mut counts.reads,
            (End::Done(_), Kind::Write(_) | Kind::Discard(_)) => &mut counts.writes,
            (End::Done(_), Kind::Swap(_)) => &mut counts.swaps,
            (End::Done(_), Kind::Flush(_)) => &mut counts.flushes,
        };
        *counter += 1;
    }

    fn end_read(
        &mut self,
        started: &Started,
        range: LbaRange,
        end: &End,
    ) -> (Option<Vec<Value>>, Option<Answer>) {
        let End::Done(Some(bytes)) = end else {
            return (None, Some(Answer::Nothing));
        };
        match self.model.was_read(started, range, bytes) {
            Ok(values) => (Some(values.clone()), Some(Answer::Saw(values))),
            Err(violation) => {
                self.violations.push(violation.to_string());
                (None, Some(Answer::Nothing))
            }
        }
    }

    fn end_sync(&mut self, started: &Started, end: &End, is_flush: bool) {
        match end {
            End::Done(_) => {
                let judged = if is_flush {
                    self.model.flushed(started)
                } else {
                    self.model.did_not_fail(started)
                };
                if let Err(violation) = judged {
                    self.violations.push(violation.to_string());
                }
            }
            End::Error(_) => {
                self.model.flush_failed(started);
                self.history = None;
            }
            // It may fail yet.
            End::Timeout | End::Lost => self.history = None,
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use units::BlockCount;

    #[test]
    fn data_that_came_back_next_to_a_flush_is_right_where_it_failed_and_nobody_was_notified() {
        for (failed, answered, right) in [(1, false, true), (1, true, false), (0, false, false)] {
            let oracle = Oracle::new(BlockSize::B512, false);
            let at = LbaRange::new(Lba(0), BlockCount(1)).unwrap();
            let [old, new] = [(); 2].map(|()| oracle.fresh(1, at));
            for values in [&old, &new] {
                let ticket = oracle.write(1, at, values, Durability::Cached);
                oracle.end(&ticket, &End::Done(None));
            }
            let flush = oracle.flush();
            let sees_the_old_one = || {
                let ticket = oracle.read(1, at);
                let seen = Value::payload(&old, BlockSize::B512);
                oracle.end(&ticket, &End::Done(Some(seen)));
            };
            sees_the_old_one();
            if answered {
                oracle.end(&flush, &End::Done(None));
            }
            oracle.syncs_failed(failed);
            oracle.life_ended(false);
            sees_the_old_one();
            assert_eq!(oracle.violations().is_empty(), right, "{failed} {answered}");
        }
    }

    #[test]
    fn data_that_came_back_is_right_where_a_journal_synced_by_itself_and_that_failed() {
        for (failed, right) in [(1, true), (0, false)] {
            let oracle = Oracle::new(BlockSize::B512, false);
            let at = LbaRange::new(Lba(0), BlockCount(1)).unwrap();
            let [old, new] = [(); 2].map(|()| oracle.fresh(1, at));
            oracle.syncs_by_itself(0);
            for values in [&old, &new] {
                let ticket = oracle.write(1, at, values, Durability::Cached);
                oracle.end(&ticket, &End::Done(None));
            }
            let ticket = oracle.read(1, at);
            let seen = Value::payload(&old, BlockSize::B512);
            oracle.end(&ticket, &End::Done(Some(seen)));
            oracle.own_syncs_failed(failed);
            oracle.life_ended(true);
            assert_eq!(oracle.violations().is_empty(), right, "{failed}");
        }
    }
}
