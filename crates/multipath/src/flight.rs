//! An operation on the straight path: one session takes it, and its answer is the issuer's. Most
//! do.
//!
//! ```text
//!   fly --- the pending table holds its blocks, the selector its place, the session has it
//!    |
//!   Flying -- the issuer asks the session itself --> answered: everything is given back
//!    |   \
//!    |    Followed -- a task asks: the issuer has gone,
//!    |      or does not poll while others wait for the end
//!    |
//!   Turned -- the session has lost it, or its answer asks for something else: the pending table
//!             takes it on (the slow path)
//! ```
//!
//! **Invariants.** The operation stays with the layer until it has ended, so that it can be sent
//! again. Nothing is borrowed while a session's future is asked. Of memory, an operation takes the
//! issuer's handle and no more.

use super::engine::{Engine, Inside};
use super::pending::Pending;
use super::places::{Flight, Hand, Journey, Landed, Leg};
use super::straight::{Seat, Straight};
use super::wait::Promise;
use super::{Begun, Ended};
use env::Answer;
use paths::health::Seen;
use paths::policy;
use paths::stale::{Kind, Light};
use std::cell::RefMut;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use units::{LbaRange, Now};
use volume::{Io, IoFuture, IoResult, Op};

/// What the operation is to the pending table; `None` for those that are rare, or have an end of
/// their own.
fn concerns(op: &Op) -> Option<(Kind, LbaRange)> {
    match op {
        Op::Read { range, into: None } => Some((Kind::Harmless, *range)),
        Op::Write { range, .. } => Some((Kind::Write, *range)),
        Op::Read { into: Some(_), .. }
        | Op::WriteZeroes { .. }
        | Op::Discard { .. }
        | Op::CompareAndWrite { .. }
        | Op::Extents { .. }
        | Op::Flush => None,
    }
}

impl Engine {
    /// Sends an operation on the straight path; gives it back where that is not open to it.
    pub(super) fn fly(self: &Rc<Self>, io: Io) -> Result<IoFuture, Io> {
        let Some((kind, range)) = concerns(io.op()) else {
            return Err(io);
        };
        let mut inside = self.state.borrow_mut();
        let state = &mut *inside;
        let now = if state.selector.wants_time() {
            self.core.now()
        } else {
            policy::UNTIMED
        };
        let Some(light) = state.pending_table.light(kind, Some(range)) else {
            return Err(io);
        };
        let Ok(booking) = state.selector.take(self.request(io.op()), now) else {
            return Err(self.unbegun(inside, light, io));
        };
        let route = &mut state.routes[booking.path()];
        let Some(session) = &route.session else {
            state.selector.done(booking, policy::Ended::Lost, now);
            return Err(self.unbegun(inside, light, io));
        };
        let (session, nexus) = (Rc::clone(session), route.nexus);
        let late = self.sent_on(route, || self.core.now());
        drop(inside);
        if late {
            self.bell.ring();
        }
        // A session may answer at once: nothing is borrowed.
        let begun = session.begin(&io);
        let journey = Journey {
            session,
            io,
            nexus,
            booking,
            light,
        };
        match begun {
            Begun::Numbered(number) => Ok(self.flies(journey, Hand::Number(number))),
            Begun::Ended(ended) => Ok(self.landed_at_once(journey, ended)),
            Begun::Waiting(mut future) => {
                // It may begin only when it is polled.
                let first = future
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
                Ok(match first {
                    Poll::Ready(ended) => self.landed_at_once(journey, ended),
                    Poll::Pending => self.flies(journey, Hand::Future(future)),
                })
            }
        }
    }

    fn flies(self: &Rc<Self>, journey: Journey, hand: Hand) -> IoFuture {
        // Written where it stays: to be built elsewhere and moved costs more than all else that is
        // done with it.
        let handle = Box::new_uninit();
        let at = self.state.borrow_mut().flights.take(journey, hand);
        let handle = Box::write(
            handle,
            Straight {
                engine: Rc::clone(self),
                seat: Seat::Place(at),
            },
        );
        Answer::Waiting(Box::into_pin(handle))
    }

    fn landed_at_once(self: &Rc<Self>, journey: Journey, ended: Ended) -> IoFuture {
        match self.landed(self.state.borrow_mut(), Some(journey), ended) {
            Landed::Answered(result) => Answer::ready(result),
            Landed::Turned(promise) => Answer::wait(promise.kept()),
            Landed::Closed => Answer::wait(std::future::pending()),
        }
    }

    /// No path takes it now.
    fn unbegun(self: &Rc<Self>, mut inside: RefMut<'_, Inside>, light: Light, io: Io) -> Io {
        let decisions = inside.pending_table.over(light);
        drop(inside);
        self.act(decisions);
        io
    }

    /// A session has ended an operation, which is `None` where the layer was closed meanwhile.
    pub(super) fn landed(
        self: &Rc<Self>,
        mut inside: RefMut<'_, Inside>,
        journey: Option<Journey>,
        ended: Ended,
    ) -> Landed {
        let state = &mut *inside;
        let journey = match journey {
            Some(journey) if !state.closed => journey,
            Some(_) | None => return Landed::Closed,
        };
        let result = match ended {
            Ended::Done(result) => result,
            Ended::Again(..) | Ended::Lost { .. } => {
                drop(inside);
                return Landed::Turned(self.turn(journey, ended));
            }
        };
        // The session and the operation are dropped at the end, when nothing is borrowed.
        let Journey {
            nexus,
            booking,
            light,
            session: _session,
            io: _io,
        } = journey;
        let path = booking.path();
        let siblings = state.routes.len() > 1 && booking.is_timed();
        let (bytes, begun) = (booking.bytes(), booking.begun());
        // What was received last was this answer.
        let now = if booking.is_timed() {
            self.core.recent()
        } else {
            Now::ZERO
        };
        state.selector.done(booking, policy::Ended::Carried, now);
        if state.selector.in_flight(path) == 0 {
            let now = self.core.recent();
            state.routes[path].health.seen(Seen::NothingExpected, now);
        }
        let mut decisions = state.pending_table.over(light);
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
        if self.plan_drains() {
            self.plan_drained();
        }
        if waits {
            self.pump();
        }
        Landed::Answered(result)
    }

    /// The pending table takes an operation on, and is notified how it ended.
    fn turn(self: &Rc<Self>, journey: Journey, ended: Ended) -> Promise<IoResult> {
        let Journey {
            session: _session,
            io,
            nexus,
            booking,
            light,
        } = journey;
        let promise = Promise::new();
        let id = {
            let mut state = self.state.borrow_mut();
            let id = state.pending_table.enter(light, nexus);
            let pending = Pending::new(io, None, promise.clone());
            state.pending.insert(id, pending);
            id
        };
        self.ended(id, nexus, booking, ended);
        promise
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
            // One that is polled just now is seen.
            if !matches!(flight.leg, Leg::Flying(_)) || !which(flight) {
                continue;
            }
            flights.alone -= 1;
            let session = flight.journey.as_ref().map(|it| Rc::clone(&it.session));
            let leg = std::mem::replace(&mut flight.leg, Leg::Followed);
            if let (Leg::Flying(hand), Some(session)) = (leg, session) {
                followed.push((at, session, hand));
            }
        }
        drop(state);
        for (at, session, mut hand) in followed {
            let engine = Rc::clone(self);
            self.core.spawn(Box::pin(async move {
                let ended = poll_fn(|cx| match &mut hand {
                    Hand::Number(number) => session.poll_numbered(*number, cx),
                    Hand::Future(future) => future.as_mut().poll(cx),
                });
                let ended = ended.await;
                engine.landed_followed(at, ended);
            }));
        }
    }

    fn landed_followed(self: &Rc<Self>, at: usize, ended: Ended) {
        let mut inside = self.state.borrow_mut();
        let journey = inside.flights.places[at].journey.take();
        let landed = self.landed(inside, journey, ended);
        let mut state = self.state.borrow_mut();
        let flight = &mut state.flights.places[at];
        if flight.abandoned {
            state.flights.release(at);
            return;
        }
        flight.leg = match landed {
            Landed::Answered(result) => Leg::Landed(Box::new(result)),
            Landed::Turned(promise) => Leg::Turned(promise),
            Landed::Closed => Leg::Closed,
        };
        flight.wake();
    }
}
