//! An operation on the straight way: one session takes it, and its answer is the issuer's. Most do.
//!
//! ```text
//!   fly --- the book holds its blocks, the selector its place, the session has it
//!    |
//!   Flying -- the issuer asks the session itself --> answered: everything is given back, and that was all
//!    |   \
//!    |    Followed -- a task asks: the issuer has gone, or does not look while others wait for the end
//!    |
//!   Turned -- the session has lost it, or its answer asks for something else: the book takes it on (the slow way)
//! ```
//!
//! **Invariants.** A place belongs to one issuer's [`Straight`] until that is dropped and the operation has ended. Nothing is borrowed
//! while a session is asked. Nothing here is allocated but the issuer's handle, once there are enough places.

use super::command::Pending;
use super::engine::{Engine, Inside};
use super::wait::Promise;
use super::{Begun, Ended, Session};
use env::{Answer, LocalFuture};
use paths::health::Seen;
use paths::policy::{self, Ticket};
use paths::stale::{Kind, Light, Nexus};
use std::cell::RefMut;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use units::{Buf, LbaRange, Now};
use volume::{Durability, Io, IoFuture, IoResult, Op, Origin};

/// Where an operation is.
enum Leg {
    /// The place is free.
    Free,
    /// With a session.
    Flying(Ride),
    /// The same, and its issuer polls just now.
    Polled,
    /// The same, and a task polls.
    Followed,
    /// It has ended, and its issuer has not looked yet.
    Landed(Option<Box<IoResult>>),
    /// The slow way has it.
    Turned(Promise<IoResult>),
    /// The layer is closed: nobody is answered any more.
    Closed,
}

/// An operation at a session.
struct Ride {
    session: Rc<dyn Session>,
    hand: Hand,
}

/// How the session is asked for its end.
enum Hand {
    Number(usize),
    Future(LocalFuture<Ended>),
}

impl Ride {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match &mut self.hand {
            Hand::Number(number) => self.session.poll_numbered(*number, cx),
            Hand::Future(future) => future.as_mut().poll(cx),
        }
    }
}

/// What is needed to send it again.
enum Cargo {
    Read,
    Write(Buf, Durability),
}

/// An operation under way.
struct Journey {
    nexus: Nexus,
    ticket: Ticket,
    light: Light,
    range: LbaRange,
    cargo: Cargo,
    origin: Origin,
}

/// A place for an operation.
pub(super) struct Flight {
    leg: Leg,
    journey: Option<Journey>,
    /// Whoever polled at this place last, of this operation or the one before: mostly the next one to do so.
    waker: Waker,
    /// Its issuer has gone.
    abandoned: bool,
    /// When it was polled last, in ticks.
    seen: u32,
}

impl Flight {
    pub(super) fn writes(&self) -> bool {
        let journey = self.journey.as_ref();
        journey.is_some_and(|it| matches!(it.cargo, Cargo::Write(..)))
    }

    pub(super) fn is_on(&self, nexus: Nexus) -> bool {
        self.journey.as_ref().is_some_and(|it| it.nexus == nexus)
    }

    /// Its issuer looks.
    fn looked(&mut self, ticks: u32, cx: &Context<'_>) {
        self.seen = ticks;
        if !self.waker.will_wake(cx.waker()) {
            self.waker = cx.waker().clone();
        }
    }

    /// Ticks since the issuer polled.
    pub(super) fn unseen_since(&self, ticks: u32) -> u32 {
        ticks.wrapping_sub(self.seen)
    }
}

/// All places.
#[derive(Default)]
pub(super) struct Flights {
    places: Vec<Flight>,
    free: Vec<usize>,
    ticks: u32,
    /// Whether any may be flying with nobody but its issuer to poll.
    alone: usize,
}

impl Flights {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(Flight {
                leg: Leg::Free,
                journey: None,
                waker: Waker::noop().clone(),
                abandoned: false,
                seen: 0,
            });
            self.places.len() - 1
        })
    }

    fn release(&mut self, at: usize) {
        self.places[at].leg = Leg::Free;
        self.free.push(at);
    }

    /// Time has passed; how many ticks have.
    pub(super) fn tick(&mut self) -> u32 {
        self.ticks = self.ticks.wrapping_add(1);
        self.ticks
    }

    /// Nobody is answered any more: what is flying is dropped, and wakers with it.
    pub(super) fn close(&mut self) -> Vec<impl Sized + use<>> {
        self.alone = 0;
        let mut dropped = Vec::new();
        for place in &mut self.places {
            place.waker = Waker::noop().clone();
            place.journey = None;
            if matches!(place.leg, Leg::Flying(_)) {
                dropped.push(std::mem::replace(&mut place.leg, Leg::Closed));
            }
        }
        dropped
    }
}

/// The operation as it would be sent again, and what it is to the book.
fn cargo(op: &Op) -> Option<(Kind, LbaRange, Cargo)> {
    match op {
        Op::Read { range, into: None } => Some((Kind::Harmless, *range, Cargo::Read)),
        Op::Write {
            range,
            data,
            durability,
        } => Some((Kind::Write, *range, Cargo::Write(data.clone(), *durability))),
        // Rare, or with an end of their own.
        Op::Read { into: Some(_), .. }
        | Op::WriteZeroes { .. }
        | Op::Discard { .. }
        | Op::CompareAndWrite { .. }
        | Op::Extents { .. }
        | Op::Flush => None,
    }
}

fn again(range: LbaRange, cargo: Cargo) -> Op {
    match cargo {
        Cargo::Read => Op::Read { range, into: None },
        Cargo::Write(data, durability) => Op::Write {
            range,
            data,
            durability,
        },
    }
}

impl Engine {
    /// Sends an operation on the straight way; gives it back where that is not open to it.
    pub(super) fn fly(self: &Rc<Self>, io: Io) -> Result<IoFuture, Io> {
        let mut inside = self.state.borrow_mut();
        let state = &mut *inside;
        let Some((kind, range, cargo)) = cargo(io.op()) else {
            return Err(io);
        };
        let now = if state.selector.wants_time() {
            self.core.now()
        } else {
            policy::UNTIMED
        };
        let Some(light) = state.book.light(kind, Some(range)) else {
            return Err(io);
        };
        let Ok(ticket) = state.selector.take(self.request(io.op()), now) else {
            return Err(self.unbegun(inside, light, io));
        };
        let line = &mut state.lines[ticket.path()];
        let Some(session) = &line.session else {
            state.selector.done(ticket, policy::Ended::Lost, now);
            return Err(self.unbegun(inside, light, io));
        };
        let (session, nexus) = (Rc::clone(session), line.nexus);
        let late = self.sent_on(line, || self.core.now());
        let at = state.flights.take();
        let flight = &mut state.flights.places[at];
        flight.journey = Some(Journey {
            nexus,
            ticket,
            light,
            range,
            cargo,
            origin: io.origin(),
        });
        flight.leg = Leg::Polled;
        flight.abandoned = false;
        drop(inside);
        if late {
            self.bell.ring();
        }
        // A session may answer at once: nothing is borrowed.
        let hand = match session.begin(io) {
            Begun::Ended(ended) => Err(ended),
            Begun::Numbered(number) => Ok(Hand::Number(number)),
            // It may begin only when it is polled.
            Begun::Waiting(mut future) => {
                match future
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()))
                {
                    Poll::Ready(ended) => Err(ended),
                    Poll::Pending => Ok(Hand::Future(future)),
                }
            }
        };
        Ok(match hand {
            Ok(hand) => self.begun(at, Ride { session, hand }),
            Err(ended) => self.ended_at_once(at, ended),
        })
    }

    /// No path takes it now.
    fn unbegun(self: &Rc<Self>, mut inside: RefMut<'_, Inside>, light: Light, io: Io) -> Io {
        let decisions = inside.book.over(light);
        drop(inside);
        self.act(decisions);
        io
    }

    fn begun(self: &Rc<Self>, at: usize, ride: Ride) -> IoFuture {
        let mut state = self.state.borrow_mut();
        let ticks = state.flights.ticks;
        state.flights.alone += 1;
        let flight = &mut state.flights.places[at];
        flight.leg = Leg::Flying(ride);
        flight.seen = ticks;
        drop(state);
        self.handle(at)
    }

    fn ended_at_once(self: &Rc<Self>, at: usize, ended: Ended) -> IoFuture {
        match self.landed(self.state.borrow_mut(), at, ended) {
            Some(result) => {
                self.state.borrow_mut().flights.release(at);
                Answer::ready(result)
            }
            None => self.handle(at),
        }
    }

    fn handle(self: &Rc<Self>, at: usize) -> IoFuture {
        Answer::wait(Straight {
            engine: Rc::clone(self),
            at,
            over: false,
        })
    }

    /// A session has ended an operation. The answer for its issuer, or `None`: then its place says what comes next.
    fn landed(
        self: &Rc<Self>,
        mut inside: RefMut<'_, Inside>,
        at: usize,
        ended: Ended,
    ) -> Option<IoResult> {
        let state = &mut *inside;
        let journey = state.flights.places[at].journey.take();
        let journey = journey.expect("an operation ends once");
        if state.closed {
            state.flights.places[at].leg = Leg::Closed;
            return None;
        }
        let result = match ended {
            Ended::Done(result) => result,
            Ended::Again(..) | Ended::Lost { .. } => {
                drop(inside);
                self.turn(at, journey, ended);
                return None;
            }
        };
        let Journey {
            nexus,
            ticket,
            light,
            ..
        } = journey;
        let path = ticket.path();
        let siblings = state.lines.len() > 1 && ticket.is_timed();
        let (bytes, begun) = (ticket.bytes(), ticket.begun());
        // What was received last was this answer.
        let now = if ticket.is_timed() {
            self.core.recent()
        } else {
            Now::ZERO
        };
        state.selector.done(ticket, policy::Ended::Carried, now);
        if state.selector.in_flight(path) == 0 {
            let now = self.core.recent();
            state.lines[path].health.seen(Seen::NothingExpected, now);
        }
        let mut decisions = state.book.over(light);
        if state.one_less(nexus) {
            let now = self.core.now();
            decisions.extend(super::fence::lost(state, nexus, now));
        }
        let waits = !state.ready.is_empty();
        drop(inside);
        if siblings {
            self.clocked(path, bytes, begun);
        }
        if !decisions.is_empty() {
            self.act(decisions);
        }
        if self.keeper_drains() {
            self.keeper_drained();
        }
        if waits {
            self.pump();
        }
        Some(result)
    }

    /// The book takes an operation on, and hears how it ended.
    fn turn(self: &Rc<Self>, at: usize, journey: Journey, ended: Ended) {
        let Journey {
            nexus,
            ticket,
            light,
            range,
            cargo,
            origin,
        } = journey;
        let promise = Promise::new();
        let io = Io::new(again(range, cargo), origin);
        let id = {
            let mut state = self.state.borrow_mut();
            let id = state.book.enter(light, nexus);
            let pending = Pending::new(io, None, promise.clone());
            state.pending.insert(id, pending);
            state.flights.places[at].leg = Leg::Turned(promise);
            id
        };
        self.ended(id, nexus, ticket, ended);
    }

    /// Tasks poll what flies and is `which`, whether its issuer does or not.
    pub(super) fn follow(self: &Rc<Self>, which: impl Fn(&Flight) -> bool) {
        let mut state = self.state.borrow_mut();
        let flights = &mut state.flights;
        if flights.alone == 0 {
            return;
        }
        let mut followed = Vec::new();
        for (at, flight) in flights.places.iter_mut().enumerate() {
            // One that is polled just now is looked at.
            if !matches!(flight.leg, Leg::Flying(_)) || !which(flight) {
                continue;
            }
            flights.alone -= 1;
            if let Leg::Flying(ride) = std::mem::replace(&mut flight.leg, Leg::Followed) {
                followed.push((at, ride));
            }
        }
        drop(state);
        for (at, mut ride) in followed {
            let engine = Rc::clone(self);
            self.core.spawn(Box::pin(async move {
                let ended = poll_fn(|cx| ride.poll(cx)).await;
                engine.landed_followed(at, ended);
            }));
        }
    }

    fn landed_followed(self: &Rc<Self>, at: usize, ended: Ended) {
        let result = self.landed(self.state.borrow_mut(), at, ended);
        let mut state = self.state.borrow_mut();
        let flight = &mut state.flights.places[at];
        if flight.abandoned {
            state.flights.release(at);
            return;
        }
        if let Some(result) = result {
            flight.leg = Leg::Landed(Some(Box::new(result)));
        }
        flight.waker.wake_by_ref();
    }
}

/// The issuer's handle. Dropping it abandons the answer, never the work.
struct Straight {
    engine: Rc<Engine>,
    at: usize,
    over: bool,
}

impl Straight {
    /// Asks a session's future, which nobody else does. Nothing is borrowed.
    fn fly_on(&self, mut ride: Ride, cx: &mut Context<'_>) -> Poll<IoResult> {
        match ride.poll(cx) {
            Poll::Pending => {
                let mut state = self.engine.state.borrow_mut();
                let flight = &mut state.flights.places[self.at];
                if matches!(flight.leg, Leg::Polled) {
                    flight.leg = Leg::Flying(ride);
                }
                Poll::Pending
            }
            Poll::Ready(ended) => {
                let mut state = self.engine.state.borrow_mut();
                state.flights.alone -= 1;
                self.land(state, ended, cx)
            }
        }
    }

    fn land(
        &self,
        state: RefMut<'_, Inside>,
        ended: Ended,
        cx: &mut Context<'_>,
    ) -> Poll<IoResult> {
        match self.engine.landed(state, self.at, ended) {
            Some(result) => Poll::Ready(result),
            None => self.turned(cx),
        }
    }

    /// The slow way's answer.
    fn turned(&self, cx: &mut Context<'_>) -> Poll<IoResult> {
        let mut state = self.engine.state.borrow_mut();
        match &mut state.flights.places[self.at].leg {
            Leg::Turned(promise) => promise.poll_kept(cx),
            Leg::Free
            | Leg::Flying(_)
            | Leg::Polled
            | Leg::Followed
            | Leg::Landed(_)
            | Leg::Closed => Poll::Pending,
        }
    }

    fn look(&self, cx: &mut Context<'_>) -> Poll<IoResult> {
        let mut inside = self.engine.state.borrow_mut();
        let flights = &mut inside.flights;
        let flight = &mut flights.places[self.at];
        if let Leg::Flying(ride) = &mut flight.leg
            && let Hand::Number(number) = ride.hand
        {
            // Mostly; the session does not call back.
            return match ride.session.poll_numbered(number, cx) {
                Poll::Pending => {
                    flight.looked(flights.ticks, cx);
                    Poll::Pending
                }
                Poll::Ready(ended) => {
                    flight.leg = Leg::Polled;
                    flights.alone -= 1;
                    self.land(inside, ended, cx)
                }
            };
        }
        flight.looked(flights.ticks, cx);
        match &mut flight.leg {
            Leg::Flying(_) => {
                let Leg::Flying(ride) = std::mem::replace(&mut flight.leg, Leg::Polled) else {
                    return Poll::Pending;
                };
                drop(inside);
                self.fly_on(ride, cx)
            }
            Leg::Landed(result) => result.take().map_or(Poll::Pending, |it| Poll::Ready(*it)),
            Leg::Turned(promise) => promise.poll_kept(cx),
            Leg::Followed | Leg::Polled | Leg::Free | Leg::Closed => Poll::Pending,
        }
    }
}

impl Future for Straight {
    type Output = IoResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<IoResult> {
        let answer = self.look(cx);
        if answer.is_ready() {
            self.over = true;
            self.engine.state.borrow_mut().flights.release(self.at);
        }
        answer
    }
}

impl Drop for Straight {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let mut state = self.engine.state.borrow_mut();
        let flight = &mut state.flights.places[self.at];
        match &flight.leg {
            Leg::Flying(_) => {
                flight.abandoned = true;
                drop(state);
                self.engine.follow(|flight| flight.abandoned);
            }
            Leg::Followed | Leg::Polled => flight.abandoned = true,
            Leg::Landed(_) | Leg::Turned(_) | Leg::Closed | Leg::Free => {
                state.flights.release(self.at);
            }
        }
    }
}
