//! Has batches and checkpoints written as long as there are some.

use super::driver::Ring;
use super::event::{Effect, Event};
use std::rc::Rc;

/// Runs as long as the ring is open.
pub(crate) async fn write_batches(ring: Rc<Ring>) {
    while !ring.machine().is_closing() {
        // Asked in the same poll that hands them to the device.
        let is_current = |slot, fence| ring.is_current(slot, fence);
        let goes_on = ring.ask(Event::WriteNext(&is_current), |effects| {
            let writes =
                |it: &Effect| matches!(it, Effect::WriteBatch(_) | Effect::WriteCheckpoint(_));
            effects.iter().any(writes)
        });
        if !goes_on {
            ring.writer_is_woken().await;
        }
    }
}
