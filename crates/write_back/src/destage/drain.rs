//! Waiting until all is destaged.

use crate::ring::{Condition, Destage, Event, Ring};
use std::rc::Rc;

/// Somebody waits until all is destaged.
struct Drain(Rc<Ring>);

impl Drain {
    fn begin(ring: &Rc<Ring>) -> Self {
        ring.apply(Event::Destage(Destage::BeginDrain));
        Self(Rc::clone(ring))
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.0.apply(Event::Destage(Destage::EndDrain));
    }
}

/// Waits until everything that was there is destaged, or cannot be.
pub(crate) async fn drained(ring: Rc<Ring>) {
    let _drain = Drain::begin(&ring);
    // One round may be under way, and know less than was there when this was asked for.
    let rounds = ring.machine().destaging().rounds() + 2;
    ring.wait_until(Condition::IsDrained { rounds }).await;
}
