//! The places of operations on the straight path ([`super::flight`]).
//!
//! **Invariants.** A place belongs to one issuer until that has taken its end or has gone, and the
//! operation has ended. Nothing here is allocated once there are enough places.

use super::wait::Promise;
use super::{Ended, Session};
use env::LocalFuture;
use paths::policy::Booking;
use paths::stale::{Light, Nexus};
use std::rc::Rc;
use std::task::{Context, Waker};
use volume::{Io, IoResult};

/// Where an operation is.
pub(super) enum Leg {
    /// The place is free.
    Free,
    /// With a session, and nobody but its issuer asks for its end.
    Flying(Hand),
    /// The same, and its issuer polls just now.
    Polled,
    /// With a session, and a task asks.
    Followed,
    /// It has ended, and its issuer has not polled yet.
    Landed(Box<IoResult>),
    /// The slow path has it.
    Turned(Promise<IoResult>),
    /// The layer is closed: nobody is answered any more.
    Closed,
}

/// How the session is asked for its end.
pub(super) enum Hand {
    Number(usize),
    Future(LocalFuture<Ended>),
}

/// An operation under way, with all that is needed to send it again.
pub(super) struct Journey {
    pub(super) session: Rc<dyn Session>,
    pub(super) io: Io,
    pub(super) nexus: Nexus,
    pub(super) booking: Booking,
    pub(super) light: Light,
}

/// A place for an operation.
pub(super) struct Flight {
    pub(super) leg: Leg,
    /// What is flying; `None` in a free place, and once it has ended or the layer is closed.
    pub(super) journey: Option<Journey>,
    /// Whoever polled at this place last, of this operation or the one before: mostly the next one
    /// to do so.
    waker: Waker,
    /// When it was polled last, in ticks.
    seen: u32,
    /// Its issuer has gone.
    pub(super) abandoned: bool,
}

impl Flight {
    pub(super) fn writes(&self) -> bool {
        let journey = self.journey.as_ref();
        journey.is_some_and(|it| it.io.op().mutates())
    }

    pub(super) fn is_on(&self, nexus: Nexus) -> bool {
        self.journey.as_ref().is_some_and(|it| it.nexus == nexus)
    }

    /// Its issuer polls.
    pub(super) fn polled(&mut self, ticks: u32, cx: &Context<'_>) {
        self.seen = ticks;
        if !self.waker.will_wake(cx.waker()) {
            self.waker = cx.waker().clone();
        }
    }

    /// Ticks since the issuer polled.
    pub(super) fn unseen_since(&self, ticks: u32) -> u32 {
        ticks.wrapping_sub(self.seen)
    }

    /// Wakes whoever polled last.
    pub(super) fn wake(&self) {
        self.waker.wake_by_ref();
    }
}

/// All places.
#[derive(Default)]
pub(super) struct Flights {
    pub(super) places: Vec<Flight>,
    free: Vec<usize>,
    pub(super) ticks: u32,
    /// How many fly with nobody but the issuer to ask.
    pub(super) alone: usize,
}

impl Flights {
    /// A place for what has just begun to fly.
    pub(super) fn take(&mut self, journey: Journey, hand: Hand) -> usize {
        self.alone += 1;
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Flight {
                leg: Leg::Free,
                journey: None,
                waker: Waker::noop().clone(),
                seen: 0,
                abandoned: false,
            });
            self.places.len() - 1
        });
        let flight = &mut self.places[at];
        flight.leg = Leg::Flying(hand);
        flight.journey = Some(journey);
        flight.seen = self.ticks;
        flight.abandoned = false;
        at
    }

    pub(super) fn release(&mut self, at: usize) {
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
            let leg = match place.leg {
                Leg::Flying(_) => Some(std::mem::replace(&mut place.leg, Leg::Closed)),
                Leg::Free
                | Leg::Polled
                | Leg::Followed
                | Leg::Landed(_)
                | Leg::Turned(_)
                | Leg::Closed => None,
            };
            dropped.push((leg, place.journey.take()));
        }
        dropped
    }
}

/// What became of an operation that a session has ended.
pub(super) enum Landed {
    /// That was all.
    Answered(IoResult),
    /// The slow path has it.
    Turned(Promise<IoResult>),
    /// The layer is closed: nobody is answered any more.
    Closed,
}
