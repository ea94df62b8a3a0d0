//! A connection, whichever role it has: framing, digests, phases and time. What its PDUs mean is
//! the protocol of a [`Protocol`].
//!
//! ```text
//!   Login --enter_full_feature--> FullFeature --logout, breach, silence--> Closing
//!     \------------------- refusal, breach, timeout -----------------------/
//! ```
//!
//! **Failure model.** A breach that a role does not answer ends the connection: its last event
//! says so, and nothing is wanted any more.

use crate::keepalive::{Due, Keepalive};
use crate::receive::{HeaderProgress, Receiver, Want};
use crate::transmit::Transmit;
use crate::violation::{Violation, ViolationKind};
use core::time::Duration;
use std::collections::VecDeque;
use units::{Now, copy_past_cache};

/// Payload of so many bytes and more is copied past the cache.
const PAST_CACHE_BYTES_MIN: usize = 4096;

/// Why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The peer broke the protocol in a way that ErrorRecoveryLevel 0 cannot mend, or data was
    /// damaged on its way.
    Violation(Violation),
    /// The login was refused, failed, or took too long.
    LoginFailed,
    /// The peer is silent: a ping stayed without answer.
    KeepaliveTimedOut,
    /// Logout was answered.
    LoggedOut,
}

/// What one role makes of its PDUs.
pub trait Protocol: Sized {
    /// What the owner of a connection learns.
    type Event;
    /// What only a login needs.
    type Login;
    /// What only the full feature phase needs.
    type FullFeature;
    /// What is remembered of what was sent.
    type Ledger;

    /// The last event.
    fn closed(reason: CloseReason) -> Self::Event;

    /// A header is whole. Its data segment follows, or [`finish`](Self::finish) where it has none.
    fn begin(connection: &mut Connection<Self>) -> Result<(), Violation>;

    /// Where payload byte `done` of the current PDU goes, with up to `left` bytes after it.
    fn chunk(connection: &mut Connection<Self>, done: usize, left: usize) -> &mut [u8];

    /// A PDU is whole; `intact`: its data segment matches its digest.
    fn finish(connection: &mut Connection<Self>, intact: bool) -> Result<(), Violation>;

    /// The login took too long.
    fn login_is_late(connection: &mut Connection<Self>);

    /// The peer has been silent: pings it, in full feature phase.
    fn ping(connection: &mut Connection<Self>);
}

/// What a connection gives out: events for its owner, PDUs for its peer.
pub(crate) struct Output<E, L> {
    pub(crate) transmit: Transmit,
    pub(crate) events: VecDeque<E>,
    pub(crate) ledger: L,
}

impl<E, L: Default> Default for Output<E, L> {
    fn default() -> Self {
        Self {
            transmit: Transmit::default(),
            events: VecDeque::new(),
            ledger: L::default(),
        }
    }
}

/// Where a connection stands, with what only that phase has.
pub(crate) enum Phase<P: Protocol> {
    Login {
        login: Box<P::Login>,
        deadline: Now,
    },
    FullFeature {
        full: Box<P::FullFeature>,
        keepalive: Keepalive,
    },
    Closing,
}

/// How long a peer may be silent.
#[derive(Clone, Copy)]
pub(crate) struct Silence {
    /// It is pinged after so much; `None`: never.
    pub(crate) ping_after: Option<Duration>,
    /// And is given up after so much more.
    pub(crate) ping_timeout: Duration,
}

/// A connection, from its first byte to its last: what the driver of the socket sees.
pub struct Connection<P: Protocol> {
    pub(crate) role: P,
    pub(crate) receiver: Receiver,
    pub(crate) output: Output<P::Event, P::Ledger>,
    pub(crate) phase: Phase<P>,
    pub(crate) now: Now,
}

impl<P: Protocol> Connection<P> {
    /// One in `phase` on which nothing has come.
    pub(crate) fn in_phase(now: Now, role: P, phase: Phase<P>) -> Self
    where
        P::Ledger: Default,
    {
        Self {
            role,
            receiver: Receiver::new(),
            output: Output::default(),
            phase,
            now,
        }
    }

    /// What to hand in next. Ask again after every call that hands something in, or that answers an
    /// event.
    #[must_use]
    pub fn want(&self) -> Want {
        match &self.phase {
            Phase::Closing => Want::Nothing,
            Phase::Login { .. } | Phase::FullFeature { .. } => self.receiver.want(),
        }
    }

    /// The bytes of [`Want::Header`]. Poll events and transmit afterwards.
    ///
    /// # Errors
    /// The breach that ends the connection (also in its last event): flush `transmit`, then close.
    ///
    /// # Panics
    /// If not exactly the wanted bytes are handed in.
    pub fn receive_header(&mut self, now: Now, bytes: &[u8]) -> Result<(), Violation> {
        self.now = now;
        match self.receiver.header(bytes) {
            Ok(HeaderProgress::Partial) => Ok(()),
            Ok(HeaderProgress::Complete) => {
                let begun = self.begin();
                self.settle(begun)
            }
            Err(violation) => self.settle(Err(violation)),
        }
    }

    /// Where the next payload bytes go while [`want`](Self::want) is `Data`: not empty, and never
    /// longer than what is wanted. The place may change between calls.
    #[must_use]
    pub fn data_chunk(&mut self) -> &mut [u8] {
        let Want::Data { bytes: left } = self.receiver.want() else {
            return &mut [];
        };
        let done = self.receiver.data_done();
        P::chunk(self, done, left)
    }

    /// Copies payload that was received elsewhere to where it belongs; answers how many of `bytes`
    /// had their place there. Poll events and transmit afterwards.
    ///
    /// Much of it goes past the cache: what reads it next is a disk, or nobody soon. It is digested
    /// where it lies, in the cache.
    pub fn receive_data(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.data_chunk().len());
        let bytes = bytes.get(..n).unwrap_or_default();
        if self.receiver.digests_data() {
            self.receiver.digest(bytes);
        }
        let chunk = self.data_chunk().get_mut(..n).unwrap_or_default();
        if n >= PAST_CACHE_BYTES_MIN {
            copy_past_cache(bytes, chunk);
        } else {
            chunk.copy_from_slice(bytes);
        }
        self.data_came(n);
        n
    }

    /// The first `n` bytes of [`data_chunk`](Self::data_chunk) have been filled. Poll events and
    /// transmit afterwards.
    ///
    /// # Panics
    /// If `n` is more than the chunk's length.
    pub fn data_filled(&mut self, n: usize) {
        if self.receiver.digests_data() {
            let mut running = self.receiver.take_digest();
            running.update(
                self.data_chunk()
                    .get(..n)
                    .expect("no more than the chunk holds"),
            );
            self.receiver.put_digest(running);
        }
        self.data_came(n);
    }

    fn data_came(&mut self, n: usize) {
        if self.receiver.data(n) {
            let finished = P::finish(self, true);
            // The connection's end is reported by the event and by `want`.
            let _ = self.settle(finished);
        }
    }

    /// The bytes of [`Want::Trailer`]. Poll events and transmit afterwards.
    ///
    /// # Errors
    /// As [`receive_header`](Self::receive_header).
    pub fn receive_trailer(&mut self, now: Now, bytes: &[u8]) -> Result<(), Violation> {
        self.now = now;
        let intact = self.receiver.trailer(bytes);
        let finished = P::finish(self, intact);
        self.settle(finished)
    }

    /// Time has come to `now`. Poll events and transmit afterwards.
    pub fn tick(&mut self, now: Now) {
        self.now = now;
        match &mut self.phase {
            Phase::Login { deadline, .. } if *deadline <= now => P::login_is_late(self),
            Phase::FullFeature { keepalive, .. } => match keepalive.due(now) {
                Due::Nothing => {}
                Due::Ping => P::ping(self),
                Due::GiveUp => self.close(CloseReason::KeepaliveTimedOut),
            },
            Phase::Login { .. } | Phase::Closing => {}
        }
    }

    /// When [`tick`](Self::tick) has something to do; ask again after every call.
    #[must_use]
    pub fn next_tick(&self) -> Option<Now> {
        match &self.phase {
            Phase::Login { deadline, .. } => Some(*deadline),
            Phase::FullFeature { keepalive, .. } => keepalive.next(),
            Phase::Closing => None,
        }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<P::Event> {
        self.output.events.pop_front()
    }

    /// What waits to be sent.
    #[must_use]
    pub fn transmit(&self) -> &Transmit {
        &self.output.transmit
    }

    /// The next `bytes` bytes of [`transmit`](Self::transmit) were given to the socket.
    pub fn sent(&mut self, bytes: usize) {
        self.output.transmit.sent(bytes);
    }

    /// The state of the full feature phase, where it is, and where its answers go.
    #[expect(clippy::type_complexity, reason = "two halves of one connection")]
    pub(crate) fn full_feature(
        &mut self,
    ) -> Option<(&mut P::FullFeature, &mut Output<P::Event, P::Ledger>)> {
        match &mut self.phase {
            Phase::FullFeature { full, .. } => Some((full, &mut self.output)),
            Phase::Login { .. } | Phase::Closing => None,
        }
    }

    /// Negotiation is over; digests are those that were agreed upon, from the next PDU on.
    pub(crate) fn enter_full_feature(
        &mut self,
        full: P::FullFeature,
        silence: Silence,
        (header_digest, data_digest): (bool, bool),
    ) {
        self.receiver.set_digests(header_digest, data_digest);
        self.output.transmit.set_digests(header_digest, data_digest);
        self.phase = Phase::FullFeature {
            full: Box::new(full),
            keepalive: Keepalive::new(self.now, silence.ping_after, silence.ping_timeout),
        };
    }

    /// A PDU without data is whole with its header.
    fn begin(&mut self) -> Result<(), Violation> {
        P::begin(self)?;
        match self.receiver.data_length() {
            0 => P::finish(self, true),
            _ => Ok(()),
        }
    }

    /// Ends the connection if a breach asks for it.
    fn settle(&mut self, result: Result<(), Violation>) -> Result<(), Violation> {
        if let Err(violation) = result {
            self.close(CloseReason::Violation(violation));
            return Err(violation);
        }
        Ok(())
    }

    /// Ends the connection, once.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        if !matches!(self.phase, Phase::Closing) {
            self.phase = Phase::Closing;
            self.output.events.push_back(P::closed(reason));
        }
    }
}

/// A data segment of more than `limit` bytes is not received.
pub(crate) fn check_length(length: usize, limit: usize) -> Result<(), Violation> {
    if length > limit {
        return Err(Violation::new(
            ViolationKind::DataSegmentTooLong,
            "13.12 \"MaxRecvDataSegmentLength\"",
            "a data segment longer than we declared to receive",
        ));
    }
    Ok(())
}

/// A PDU that has no place in a login.
pub(crate) fn wrong_phase(what: &'static str) -> Violation {
    Violation::new(ViolationKind::WrongPhase, "6.3 \"Login Phase\"", what)
}

/// A data segment that does not match its digest.
pub(crate) fn damaged_data() -> Violation {
    Violation::new(
        ViolationKind::DataDigest,
        "7.7 \"Digest Errors\"",
        "data does not match its digest",
    )
}
