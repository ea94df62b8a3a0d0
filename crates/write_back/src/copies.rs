//! Volumes that other nodes have copies of: what is stable here is read, destaged and acknowledged
//! when it is committed, and somebody else says when that is.
//!
//! ```text
//!   batch is stable --> Carrier::stable --> ... other copies ... --> commit --> read, answered
//! ```

use crate::carrier::{Carrier, RingOrder};
use crate::lane::WriteBack;
use crate::ring::{BeginEpoch, Event};
use env::CoreHandle;
use journal::Sequence;
use std::rc::Rc;
use volume::IoError;

impl WriteBack {
    /// Has somebody bring the volume's changes in a ring to other nodes, from now on; `make` is
    /// called on the ring's core.
    ///
    /// # Errors
    /// [`IoError::Unavailable`]: the volume is not open, or the ring stops.
    pub async fn carry(
        &self,
        core: &CoreHandle,
        ring: u32,
        make: impl FnOnce(&CoreHandle) -> Rc<dyn Carrier> + Send + 'static,
    ) -> Result<(), IoError> {
        let carried = self.on_ring(core, ring, move |here, slot| {
            let carrier = make(&here.core);
            here.backings_mut().of_mut(slot).carrier = Some(carrier);
            Box::pin(async { Ok(()) })
        });
        carried.await
    }

    /// All copies that are in sync have the changes of a ring below this number.
    ///
    /// # Errors
    /// As [`WriteBack::carry`].
    pub async fn commit(
        &self,
        core: &CoreHandle,
        ring: u32,
        below: Sequence,
    ) -> Result<(), IoError> {
        let committed = self.on_ring(core, ring, move |here, slot| {
            here.apply(Event::Commit { slot, below });
            Box::pin(async { Ok(()) })
        });
        committed.await
    }

    /// Has the volume go on in a ring with number `first` in a later epoch, and answers when that
    /// is committed. What has this number or a higher one, and is not committed, is void as soon as
    /// it is stable.
    ///
    /// # Errors
    /// Of the log's device; else as [`WriteBack::carry`].
    ///
    /// # Panics
    /// If changes of the volume wait for a batch, or what is committed would be void.
    pub async fn begin_epoch(
        &self,
        core: &CoreHandle,
        ring: u32,
        (epoch, first): (u64, Sequence),
    ) -> Result<(), IoError> {
        let begun = self.on_ring(core, ring, move |here, slot| {
            let now = here.core.now();
            let begun = here.recorded(Event::BeginEpoch(BeginEpoch {
                slot,
                epoch,
                first,
                now,
            }));
            Box::pin(async move { begun.await.map(|_| ()) })
        });
        begun.await
    }

    /// What a ring knows of the order of the volume's changes.
    ///
    /// # Errors
    /// As [`WriteBack::carry`].
    pub async fn order(&self, core: &CoreHandle, ring: u32) -> Result<RingOrder, IoError> {
        let order = self.on_ring(core, ring, move |here, slot| {
            let order = here.machine().order(slot);
            Box::pin(async move { Ok(order) })
        });
        order.await
    }
}
