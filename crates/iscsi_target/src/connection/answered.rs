//! Commands whose answers wait for the socket to take them: what their time is counted by.

use crate::session::Session;
use env::CoreHandle;
use logical_unit::{LatencyTrace, Tally, Took, Transfer};
use std::collections::VecDeque;

/// The answers of one connection, in the order in which they leave.
#[derive(Default)]
pub(super) struct Answered {
    /// Bytes that the socket has taken.
    sent: u64,
    /// Commands, with the bytes that it will have taken when it has their whole answers.
    waiting: VecDeque<(u64, LatencyTrace)>,
}

impl Answered {
    /// A command has been answered; with its answer, `unsent` bytes wait for the socket.
    pub(super) fn push(&mut self, latency_trace: LatencyTrace, unsent: usize) {
        self.waiting
            .push_back((self.sent + unsent as u64, latency_trace));
    }

    /// The socket took `bytes` more. One reading of the clock does for all answers that it has now.
    pub(super) fn sent(&mut self, bytes: usize, core: &CoreHandle, session: Option<&Session>) {
        self.sent += bytes as u64;
        if self.waiting.front().is_none_or(|(end, _)| *end > self.sent) {
            return;
        }
        let count = |took: Option<Took>| {
            let (Some(session), Some(took)) = (session, took) else {
                return;
            };
            let counted = match took.transfer {
                Transfer::Read => &session.counters.reads,
                Transfer::Write => &session.counters.writes,
            };
            counted.borrow_mut().count_many(took.total, took.count);
        };
        let now = core.now();
        let mut tally = Tally::new(now);
        while self
            .waiting
            .front()
            .is_some_and(|(end, _)| *end <= self.sent)
            && let Some((_, latency_trace)) = self.waiting.pop_front()
        {
            if let (Some(session), Some(sampled)) = (session, latency_trace.sampled(now)) {
                session.sample.count(&sampled);
            }
            count(tally.sent(latency_trace));
        }
        count(tally.end());
    }
}
