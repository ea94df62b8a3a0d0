//! What comes from the socket goes into the machine.

use super::alone;
use super::coalescing::Wakeup;
use super::driver::{BYTES_PER_COMMAND, Driver};
use super::ending::End;
use super::receive::Receive;
use env::Woken;
use iscsi::Want;
use std::task::{Context, Poll};
use std::time::Duration;

/// Replies that wait to be sent beyond which nothing more is received: a host that does not read
/// cannot fill our memory.
const WAITING_BYTES_MAX: usize = 8 << 20;

impl Driver {
    /// So many replies wait to be sent that nothing more is worked on.
    fn is_full(&self) -> bool {
        self.machine.transmit().bytes() >= WAITING_BYTES_MAX
    }

    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> bool {
        let want = self.machine.want();
        if self.is_full() || want == Want::Nothing || self.is_deaf() {
            return false;
        }
        if let Some(awaited) = self.phase.awaited() {
            let memory = self.core.pool().limit_bytes();
            self.machine.allow_parked(awaited.may_park(memory));
        }
        if self.incoming.receive.unpack() {
            self.hand_in(cx);
            return true;
        }
        if Receive::is_direct(want) {
            let received = self.stream.poll_recv(cx, self.machine.data_chunk());
            return self.received(received, |driver, n| {
                driver.core.now();
                driver.machine.data_filled(n);
            });
        }
        let stream = &self.stream;
        let received = self
            .incoming
            .receive
            .fill(want, |scratch| stream.poll_recv(cx, scratch));
        self.received(received, |driver, n| {
            driver.incoming.receive.filled(n);
            driver.incoming.begun = 0;
            driver.hand_in(cx);
            let (now, begun) = (driver.core.recent(), driver.incoming.begun);
            let waited = driver.incoming.coalescing.came(now, begun, n as u64);
            driver.incoming.since.receives += 1;
            driver.incoming.since.waited += u64::from(waited);
        })
    }

    /// The connection has nothing to do: it is woken by each PDU that comes, or once for several.
    pub(super) fn say_when_to_wake(&mut self, cx: &mut Context<'_>) {
        let full = self.phase.full_feature();
        let runs = full.is_some_and(|full| !full.commands.running.is_empty());
        let at_once = runs || !self.pending.is_empty() || self.is_deaf();
        if at_once || Receive::is_direct(self.machine.want()) {
            // What runs ends when it ends, and its answer is worth more than a turn that is saved.
            self.incoming.coalescing.at_each();
            self.is_woken(cx, None);
            return;
        }
        let stream = &self.stream;
        let round_trip = || stream.measured().map(|measured| measured.round_trip_min_us);
        let owed = |pdus| self.machine.owed().bytes(pdus);
        match self
            .incoming
            .coalescing
            .rest(self.core.recent(), owed, round_trip)
        {
            Wakeup::AsSaid => {}
            Wakeup::AtEach => self.is_woken(cx, None),
            Wakeup::Late { bytes, within } => {
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                self.is_woken(cx, Some((bytes, within)));
            }
        }
    }

    fn is_woken(&mut self, cx: &mut Context<'_>, wait: Option<(u32, Duration)>) {
        match self.stream.coalesce(cx, wait) {
            Ok(Woken::AtEach) if wait.is_some() => self.incoming.coalescing.stop(),
            Ok(_) => {}
            Err(error) => {
                self.end_with(End::Socket(error));
                // The loop was about to rest: it ends instead.
                cx.waker().wake_by_ref();
            }
        }
    }

    fn received(
        &mut self,
        received: Poll<std::io::Result<usize>>,
        hand_in: impl FnOnce(&mut Self, usize),
    ) -> bool {
        match received {
            Poll::Pending => return false,
            Poll::Ready(Ok(0)) => self.end_with(End::PeerClosed),
            Poll::Ready(Ok(n)) => {
                hand_in(self, n);
                // What is here was worked on: to put it aside for the next turn would cost more.
                self.turn.spent += n / BYTES_PER_COMMAND;
            }
            Poll::Ready(Err(error)) => self.end_with(End::Socket(error)),
        }
        true
    }

    fn hand_in(&mut self, cx: &mut Context<'_>) {
        let now = self.core.now();
        // A host that was seen to have other work needs no early replies.
        let early = self.incoming.alone.batch() && !self.incoming.coalescing.is_at_work();
        while !self.incoming.receive.is_empty() {
            if self.has_had_its_turn() || self.is_full() {
                self.incoming.receive.pack();
                return;
            }
            self.incoming.at = (self.incoming.receive.first_byte(now), now);
            let begins = u64::from(matches!(self.machine.want(), Want::Header { .. }));
            self.incoming.begun += begins;
            self.turn.handed_in += begins;
            self.incoming.since.pdus += begins;
            let handed = self.incoming.receive.step(&mut self.machine, now);
            self.take_events();
            if early && self.machine.transmit().pdu_count() >= alone::REPLIES {
                self.poll_send(cx);
            }
            if let Err(violation) = handed {
                let damaged = self.shared.digest_errors().count(violation.kind);
                if damaged {
                    tracing::warn!(peer = %self.stream.peer(), %violation, "a header was damaged on its way: the connection is closed");
                } else {
                    tracing::debug!(peer = %self.stream.peer(), ?violation, "the initiator broke the protocol");
                }
                self.incoming.receive.forget();
            }
        }
    }
}
