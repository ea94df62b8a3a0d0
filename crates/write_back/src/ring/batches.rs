//! Has batches and checkpoints written as long as there are some.

use super::driver::Ring;
use super::event::{Effect, Event};
use std::rc::Rc;

/// Runs as long as the ring is open.
pub(crate) async fn write_batches(ring: Rc<Ring>) {
    while !ring.machine().is_closing() {
        // Asked in the same poll that hands them to the device.
        let holds = |slot, fence| ring.holds(slot, fence);
        let goes_on = ring.ask(Event::WriteNext(&holds), |effects| {
            let writes =
                |it: &Effect| matches!(it, Effect::WriteBatch(_) | Effect::WriteCheckpoint(_));
            effects.iter().any(writes)
        });
        if !goes_on {
            ring.writer_is_woken().await;
        }
    }
}
