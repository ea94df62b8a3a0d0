//! Writes batches and checkpoints as the machine wants them written.

use super::driver::Ring;
use super::event::{Effect, Event, Extent, Failure};
use env::{Durable, FileOp};
use journal::{CheckpointWrite, Write};
use std::rc::Rc;
use units::Buf;

/// Runs as long as the ring is open.
pub(crate) async fn write_batches(ring: Rc<Ring>) {
    while !ring.machine().is_closing() {
        let goes_on = ring.ask(Event::WriteNext, |effects| {
            let writes =
                |it: &Effect| matches!(it, Effect::WriteBatch(_) | Effect::WriteCheckpoint(_));
            effects.iter().any(writes)
        });
        if !goes_on {
            ring.writer_is_woken().await;
        }
    }
}

impl Ring {
    /// Hands a batch to the device.
    pub(super) fn write_batch(self: &Rc<Self>, write: Write) {
        {
            let mut counts = self.counts.borrow_mut();
            counts.batches += 1;
            counts.records += write.data_at.len() as u64;
            counts.written_bytes += write.bytes.len() as u64;
        }
        let now = self.core.recent();
        self.ages.borrow_mut().written(write.number, now);
        let place = Extent {
            offset: self.device.log_at + write.at,
            len: write.bytes.len(),
        };
        let number = write.number;
        self.write_log(place, write.bytes, move |result| Event::BatchEnded {
            number,
            result,
        });
    }

    pub(super) fn write_checkpoint(self: &Rc<Self>, write: CheckpointWrite) {
        let place = Extent {
            offset: self.device.checkpoints_at[usize::from(write.slot)],
            len: write.bytes.len(),
        };
        self.write_log(place, Buf::from(write.bytes), Event::CheckpointEnded);
    }

    fn write_log(
        self: &Rc<Self>,
        place: Extent,
        data: Buf,
        ended: impl FnOnce(Result<(), Failure>) -> Event<'static> + 'static,
    ) {
        let answer = self.device.file.submit(FileOp::Write {
            offset: place.offset,
            data,
            durable: Durable::Yes,
        });
        let ring = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let result = answer.await.map(|_| ());
            let result = result.map_err(|error| Failure::of_write(place, &error));
            ring.apply(ended(result));
        }));
    }
}
