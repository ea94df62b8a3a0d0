//! The issuer's handle of an operation on the straight path ([`super::flight`]): it asks the
//! session itself.

use super::Ended;
use super::engine::{Engine, Inside};
use super::places::{Hand, Landed, Leg};
use super::wait::Promise;
use std::cell::RefMut;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use volume::IoResult;

/// Dropping it abandons the answer, never the work.
pub(super) struct Straight {
    pub(super) engine: Rc<Engine>,
    pub(super) seat: Seat,
}

/// Where the answer will come from.
pub(super) enum Seat {
    /// This place.
    Place(usize),
    /// The slow path.
    Turned(Promise<IoResult>),
    /// Nowhere: it was taken, or nobody is answered any more.
    Over,
}

impl Straight {
    fn poll_flight(&mut self, at: usize, cx: &mut Context<'_>) -> Poll<IoResult> {
        let mut inside = self.engine.state.borrow_mut();
        let flights = &mut inside.flights;
        let flight = &mut flights.places[at];
        if let (Leg::Flying(Hand::Number(number)), Some(journey)) = (&flight.leg, &flight.journey) {
            // Mostly; the session does not call back.
            return match journey.session.poll_numbered(*number, cx) {
                Poll::Pending => {
                    flight.polled(flights.ticks, cx);
                    Poll::Pending
                }
                Poll::Ready(ended) => {
                    flights.alone -= 1;
                    Self::end(&mut self.seat, &self.engine, inside, (at, ended), cx)
                }
            };
        }
        flight.polled(flights.ticks, cx);
        match std::mem::replace(&mut flight.leg, Leg::Polled) {
            Leg::Flying(hand) => {
                drop(inside);
                self.fly_on(at, hand, cx)
            }
            Leg::Landed(result) => {
                flights.release(at);
                self.seat = Seat::Over;
                Poll::Ready(*result)
            }
            Leg::Turned(promise) => {
                flights.release(at);
                let answer = promise.poll_kept(cx);
                self.seat = Seat::Turned(promise);
                answer
            }
            others @ (Leg::Followed | Leg::Polled | Leg::Free | Leg::Closed) => {
                flight.leg = others;
                Poll::Pending
            }
        }
    }

    /// Asks a session's future, which nobody else does. Nothing is borrowed.
    fn fly_on(&mut self, at: usize, hand: Hand, cx: &mut Context<'_>) -> Poll<IoResult> {
        let polled = match hand {
            Hand::Future(mut future) => match future.as_mut().poll(cx) {
                Poll::Ready(ended) => Ok(ended),
                Poll::Pending => Err(Hand::Future(future)),
            },
            // These are asked while the place is polled.
            number @ Hand::Number(_) => Err(number),
        };
        let mut inside = self.engine.state.borrow_mut();
        match polled {
            Err(hand) => {
                let leg = &mut inside.flights.places[at].leg;
                if matches!(leg, Leg::Polled) {
                    *leg = Leg::Flying(hand);
                }
                Poll::Pending
            }
            Ok(ended) => {
                let flights = &mut inside.flights;
                flights.alone = flights.alone.saturating_sub(1);
                Self::end(&mut self.seat, &self.engine, inside, (at, ended), cx)
            }
        }
    }

    /// It has ended, and its place is free.
    fn end(
        seat: &mut Seat,
        engine: &Rc<Engine>,
        mut inside: RefMut<'_, Inside>,
        (at, ended): (usize, Ended),
        cx: &mut Context<'_>,
    ) -> Poll<IoResult> {
        *seat = Seat::Over;
        let journey = inside.flights.places[at].journey.take();
        inside.flights.release(at);
        match engine.landed(inside, journey, ended) {
            Landed::Answered(result) => Poll::Ready(result),
            Landed::Turned(promise) => {
                let answer = promise.poll_kept(cx);
                *seat = Seat::Turned(promise);
                answer
            }
            Landed::Closed => Poll::Pending,
        }
    }
}

impl Future for Straight {
    type Output = IoResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<IoResult> {
        match &self.seat {
            Seat::Place(at) => {
                let at = *at;
                self.poll_flight(at, cx)
            }
            Seat::Turned(promise) => promise.poll_kept(cx),
            Seat::Over => Poll::Pending,
        }
    }
}

impl Drop for Straight {
    fn drop(&mut self) {
        let Seat::Place(at) = self.seat else { return };
        let mut state = self.engine.state.borrow_mut();
        let flight = &mut state.flights.places[at];
        match &flight.leg {
            Leg::Flying(_) => {
                flight.abandoned = true;
                drop(state);
                self.engine.follow(|flight| flight.abandoned);
            }
            Leg::Followed | Leg::Polled => flight.abandoned = true,
            Leg::Landed(_) | Leg::Turned(_) | Leg::Closed | Leg::Free => {
                state.flights.release(at);
            }
        }
    }
}
