//! Volumes that other nodes have copies of: what is stable here is read, destaged and acknowledged
//! when it is committed, and somebody else says when that is.
//!
//! ```text
//!   batch is stable --> Carrier::stable --> ... other copies ... --> commit --> read, answered
//! ```

use crate::carrier::{Carrier, RingOrder};
use crate::lane::WriteBack;
use crate::ring::{BeginEpoch, Condition, Effect, Event, Ring};
use env::CoreHandle;
use journal::{EpochRefused, Sequence};
use std::rc::Rc;
use volume::{IoError, IoFuture};

/// Why an epoch does not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoEpoch {
    /// The log's device has failed, the volume is not open, or the ring stops.
    Io(IoError),
    /// This one, or a later one, is known here.
    Late {
        /// The newest.
        newest: u64,
    },
    /// It would make void what is committed: all below this number.
    Committed {
        /// The first number that it may have.
        below: Sequence,
    },
    /// Numbers before it would be those of no change.
    Beyond {
        /// The number that comes next.
        next: Sequence,
    },
}

impl Ring {
    fn begun(self: &Rc<Self>, event: BeginEpoch) -> Result<IoFuture, NoEpoch> {
        let refused = |effects: &[Effect]| match effects.first() {
            Some(Effect::EpochRefused(refused)) => Err(*refused),
            Some(Effect::Submitted { token, bytes }) => Ok((*token, *bytes)),
            other => unreachable!("{other:?} is no answer"),
        };
        match self.ask(Event::BeginEpoch(event), refused) {
            Ok(waits) => Ok(self.answered(waits)),
            Err(EpochRefused::Late { newest }) => Err(NoEpoch::Late { newest }),
            Err(EpochRefused::Committed { below }) => Err(NoEpoch::Committed { below }),
            Err(EpochRefused::Beyond { next }) => Err(NoEpoch::Beyond { next }),
            Err(EpochRefused::Failed) => Err(NoEpoch::Io(self.machine().refused_write())),
            Err(EpochRefused::Begins) => unreachable!("that was waited for"),
        }
    }
}

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

    /// All copies that are in sync have the changes of a ring below this number, as the owner of
    /// this epoch says. What is said of another epoch than the newest one changes nothing.
    ///
    /// # Errors
    /// As [`WriteBack::carry`].
    pub async fn commit(
        &self,
        core: &CoreHandle,
        ring: u32,
        (epoch, below): (u64, Sequence),
    ) -> Result<(), IoError> {
        let committed = self.on_ring(core, ring, move |here, slot| {
            here.apply(Event::Commit { slot, epoch, below });
            Box::pin(async { Ok(()) })
        });
        committed.await
    }

    /// Has the volume go on in a ring with number `first` in a later epoch, and answers when that
    /// is committed. What has this number or a higher one, and is not committed, is void as soon as
    /// it is stable. What waits for the log is answered as unknown. An epoch that begins already is
    /// waited for.
    ///
    /// # Errors
    /// [`NoEpoch`].
    pub async fn begin_epoch(
        &self,
        core: &CoreHandle,
        ring: u32,
        (epoch, first): (u64, Sequence),
    ) -> Result<(), NoEpoch> {
        let begun = self.on_ring(core, ring, move |here, slot| {
            Box::pin(async move {
                here.wait_until(Condition::NoEpochBegins(slot)).await;
                let now = here.core.now();
                let event = BeginEpoch {
                    slot,
                    epoch,
                    first,
                    now,
                };
                Ok(match here.begun(event) {
                    Ok(begun) => begun.await.map(|_| ()).map_err(NoEpoch::Io),
                    Err(refused) => Err(refused),
                })
            })
        });
        begun.await.unwrap_or_else(|error| Err(NoEpoch::Io(error)))
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
