//! One connection on one core: receives in bulk, executes, sends what is done in one go.

use crate::execute::{Outcome, Unit};
use crate::machine::{Machine, Step};
use crate::outbox::Outbox;
use crate::stop::{Counters, Stop};
use crate::wire::{Command, Request, Violation};
use env::{LocalFuture, Stream};
use futures_util::stream::{FuturesUnordered, Stream as _};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use units::{Buf, BufMut};

/// Requests that one connection may have in flight.
pub const IN_FLIGHT_REQUESTS: usize = 256;

/// Bytes of data that one connection may have in flight or waiting to be sent; one larger request
/// alone is fine.
pub const IN_FLIGHT_BYTES: usize = 64 << 20;

/// Bytes that one system call receives at most, beside those of large writes.
const INBOX_BYTES: usize = 256 << 10;

/// Data of a write up to this size are received in bulk with what else there is, and copied.
const COPY_MAX: usize = 32 << 10;

/// A write whose data are on their way.
struct Incoming {
    request: Request,
    into: BufMut,
    have: usize,
}

/// What a connection does next with what it receives.
enum Reading {
    /// Heads, and small data behind them.
    Heads,
    /// The data of a large write, straight into its buffer.
    Payload(Incoming),
    /// Data that nobody wants.
    Skip(u64),
    /// Nothing more is read; what is in flight is finished.
    Over,
}

pub(crate) struct Connection {
    unit: Unit,
    stream: Rc<dyn Stream>,
    machine: Machine,
    inbox: Box<[u8]>,
    /// What of the inbox is filled and not used.
    filled: std::ops::Range<usize>,
    reading: Reading,
    in_flight: FuturesUnordered<LocalFuture<(usize, Outcome)>>,
    /// Bytes of data of what is in flight.
    bytes: usize,
    outbox: Outbox,
    stop: Stop,
    counters: Arc<Counters>,
}

impl Connection {
    pub(crate) fn new(
        unit: Unit,
        stream: Rc<dyn Stream>,
        stop: Stop,
        counters: Arc<Counters>,
    ) -> Self {
        let mut outbox = Outbox::default();
        let machine = Machine::new((*unit.export).clone(), outbox.tail());
        Self {
            unit,
            stream,
            machine,
            inbox: vec![0; INBOX_BYTES].into(),
            filled: 0..0,
            reading: Reading::Heads,
            in_flight: FuturesUnordered::new(),
            bytes: 0,
            outbox,
            stop,
            counters,
        }
    }

    /// Serves until the client goes, breaks the protocol, or the server stops.
    pub(crate) async fn run(mut self) -> Result<(), Violation> {
        let result = poll_fn(|cx| self.turn(cx)).await;
        // What was taken is finished even where nobody receives the answer any more.
        while poll_fn(|cx| Pin::new(&mut self.in_flight).poll_next(cx))
            .await
            .is_some()
        {}
        result
    }

    /// Goes on as long as anything moves.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Violation>> {
        loop {
            if self.stop.poll(cx) {
                self.reading = Reading::Over;
            }
            let mut moved = self.answers(cx);
            match self.send(cx) {
                Ok(sent) => moved |= sent,
                // The client is gone: there is nobody to answer.
                Err(_) => return Poll::Ready(Ok(())),
            }
            moved |= match self.receive(cx) {
                Ok(received) => received,
                Err(violation) => return Poll::Ready(Err(violation)),
            };
            let over = matches!(self.reading, Reading::Over);
            if over && self.in_flight.is_empty() && self.outbox.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Takes what has ended.
    fn answers(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Poll::Ready(Some((bytes, outcome))) = Pin::new(&mut self.in_flight).poll_next(cx)
        {
            moved = true;
            self.bytes -= bytes;
            self.answer(outcome);
        }
        moved
    }

    fn answer(&mut self, outcome: Outcome) {
        let Outcome {
            cookie,
            reply,
            data,
        } = outcome;
        self.machine.answer(cookie, &reply, self.outbox.tail());
        self.outbox.push(data);
    }

    fn send(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut moved = false;
        while !self.outbox.is_empty() {
            match self.stream.poll_send(cx, &self.outbox.slices()) {
                Poll::Ready(Ok(bytes)) => {
                    self.outbox.advance(bytes);
                    moved = true;
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        Ok(moved)
    }

    /// There is room for one more request.
    fn has_room(&self) -> bool {
        self.in_flight.len() < IN_FLIGHT_REQUESTS
            && self.bytes + self.outbox.data_bytes() < IN_FLIGHT_BYTES
    }

    /// Uses what is there, then receives more.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, Violation> {
        let mut moved = self.digest()?;
        if matches!(self.reading, Reading::Over) || !self.has_room() {
            return Ok(moved);
        }
        let target = match &mut self.reading {
            Reading::Payload(incoming) => incoming.into.chunk_mut(incoming.have),
            Reading::Heads | Reading::Skip(_) => {
                if self.filled.start > 0 {
                    self.inbox.copy_within(self.filled.clone(), 0);
                    self.filled = 0..self.filled.len();
                }
                &mut self.inbox[self.filled.end..]
            }
            Reading::Over => return Ok(moved),
        };
        match self.stream.poll_recv(cx, target) {
            Poll::Pending => return Ok(moved),
            Poll::Ready(Ok(0) | Err(_)) => {
                self.reading = Reading::Over;
                return Ok(true);
            }
            Poll::Ready(Ok(bytes)) => {
                moved = true;
                match &mut self.reading {
                    Reading::Payload(incoming) => incoming.have += bytes,
                    Reading::Heads | Reading::Skip(_) | Reading::Over => self.filled.end += bytes,
                }
            }
        }
        self.digest()?;
        Ok(moved)
    }

    /// Uses what was received as far as it goes.
    fn digest(&mut self) -> Result<bool, Violation> {
        let mut moved = false;
        loop {
            let went = match &mut self.reading {
                Reading::Over => false,
                Reading::Payload(incoming) => {
                    let whole = incoming.have == incoming.into.len();
                    if whole {
                        self.finish_payload();
                    }
                    whole
                }
                Reading::Skip(left) => {
                    let here = (self.filled.len() as u64).min(*left);
                    *left -= here;
                    let done = *left == 0;
                    self.filled.start += usize::try_from(here).expect("inside the inbox");
                    if done {
                        self.reading = Reading::Heads;
                    }
                    done
                }
                Reading::Heads => self.has_room() && self.head()?,
            };
            if !went {
                return Ok(moved);
            }
            moved = true;
        }
    }

    /// Takes one head; false where there is not enough of it.
    fn head(&mut self) -> Result<bool, Violation> {
        let input = &self.inbox[self.filled.clone()];
        if input.is_empty() {
            return Ok(false);
        }
        match self.machine.step(input, self.outbox.tail())? {
            Step::More => Ok(false),
            Step::Took(used) => {
                self.filled.start += used;
                Ok(true)
            }
            Step::Left(used) => {
                self.filled.start += used;
                self.reading = Reading::Over;
                Ok(true)
            }
            Step::Skip(used, length) => {
                self.filled.start += used;
                self.reading = Reading::Skip(length.into());
                Ok(true)
            }
            Step::Request(used, request) if request.command == Command::Write => {
                let length = usize::try_from(request.length).expect("at most 32 MiB");
                if length <= COPY_MAX && input.len() < used + length {
                    return Ok(false);
                }
                self.filled.start += used;
                self.begin_payload(request);
                Ok(true)
            }
            Step::Request(used, request) => {
                self.filled.start += used;
                self.begin(request, Buf::empty());
                Ok(true)
            }
        }
    }

    /// Data of a write follow: what is here of them is copied, the rest is received into place.
    fn begin_payload(&mut self, request: Request) {
        let length = usize::try_from(request.length).expect("at most 32 MiB");
        let piece = match self.unit.export.shape.limits.payload_piece_bytes {
            0 => usize::MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
        };
        let pool = self.unit.core.pool();
        // Bounded by what a connection may have in flight, whatever the pool has left.
        let into = pool
            .alloc_pieces(length, piece)
            .unwrap_or_else(|_| BufMut::zeroed(length));
        let mut incoming = Incoming {
            request,
            into,
            have: 0,
        };
        let here = self.filled.len().min(length);
        let at = self.filled.start;
        incoming.into.copy_at(0, &self.inbox[at..at + here]);
        incoming.have = here;
        self.filled.start += here;
        self.reading = Reading::Payload(incoming);
    }

    fn finish_payload(&mut self) {
        if let Reading::Payload(incoming) = std::mem::replace(&mut self.reading, Reading::Heads) {
            self.begin(incoming.request, incoming.into.freeze());
        }
    }

    fn begin(&mut self, request: Request, data: Buf) {
        let bytes = match request.command {
            Command::Read | Command::Write => usize::try_from(request.length).unwrap_or(usize::MAX),
            Command::Flush | Command::Trim | Command::WriteZeroes | Command::BlockStatus => 0,
        };
        self.bytes += bytes;
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let work = self.unit.clone().run(request, data);
        self.in_flight
            .push(Box::pin(async move { (bytes, work.await) }));
    }
}
