//! Volumes that other nodes have copies of: what is stable here is read, destaged and acknowledged
//! when it is committed, and somebody else says when that is.
//!
//! ```text
//!   batch is stable --> Carrier::stable --> ... other copies ... --> commit --> read, answered
//! ```

use crate::carrier::{Carrier, RingOrder};
use crate::lane::WriteBack;
use crate::ring::{BeginEpoch, Condition, Effect, Event, Follow, NotRead, Place, ReadBack, Ring};
use env::CoreHandle;
use journal::{EpochRefused, Sequence, Slot};
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
    fn no_epoch(&self, refused: EpochRefused) -> NoEpoch {
        match refused {
            EpochRefused::Late { newest } => NoEpoch::Late { newest },
            EpochRefused::Committed { below } => NoEpoch::Committed { below },
            EpochRefused::Beyond { next } => NoEpoch::Beyond { next },
            EpochRefused::Failed => NoEpoch::Io(self.machine().refused_write()),
            EpochRefused::Begins => unreachable!("that was waited for"),
        }
    }

    fn begun(self: &Rc<Self>, event: BeginEpoch) -> Result<IoFuture, NoEpoch> {
        let refused = |effects: &[Effect]| match effects.first() {
            Some(Effect::EpochRefused(refused)) => Err(*refused),
            Some(Effect::Submitted { token, bytes }) => Ok((*token, *bytes)),
            other => unreachable!("{other:?} is no answer"),
        };
        match self.ask(Event::BeginEpoch(event), refused) {
            Ok(waits) => Ok(self.answered(waits)),
            Err(refused) => Err(self.no_epoch(refused)),
        }
    }

    fn followed(self: &Rc<Self>, event: Follow) -> Result<Sequence, NoEpoch> {
        let seen = self.ask(Event::Follow(event), |effects| match effects {
            [Effect::EpochRefused(refused), ..] => Err(*refused),
            [Effect::Followed(next), ..] => Ok((*next, None)),
            [
                Effect::Submitted { token, bytes },
                Effect::Followed(next),
                ..,
            ] => Ok((*next, Some((*token, *bytes)))),
            other => unreachable!("{other:?} is no answer"),
        });
        let (next, waits) = seen.map_err(|refused| self.no_epoch(refused))?;
        // What follows comes behind it in the log: nobody has to wait for it.
        drop(waits.map(|it| self.answered(it)));
        Ok(next)
    }

    async fn follow(
        self: Rc<Self>,
        slot: Slot,
        (epoch, from): (u64, Sequence),
        anew: bool,
    ) -> FollowResult {
        self.wait_until(Condition::NoEpochBegins(slot)).await;
        let now = self.core.now();
        self.followed(Follow {
            slot,
            epoch,
            from,
            anew,
            now,
        })
    }
}

type FollowResult = Result<Sequence, NoEpoch>;

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

    /// Has the volume be a copy in a ring whose changes the owner of this epoch gives their
    /// numbers, and answers with the number of the one that is [taken](WriteBack::append) next.
    /// What this log has with the number `from` or a higher one is not that owner's: it is void
    /// from now on. What waits for the log is answered as unknown, hosts' changes as those that
    /// come while the right to serve moves. An owner that is followed already goes on where it
    /// was.
    ///
    /// # Errors
    /// [`NoEpoch`].
    pub async fn follow(
        &self,
        core: &CoreHandle,
        ring: u32,
        (epoch, from): (u64, Sequence),
    ) -> Result<Sequence, NoEpoch> {
        self.follow_as(core, ring, ((epoch, from), false)).await
    }

    /// Has the copy of the volume here be made anew by the owner of this epoch, in a ring: what is
    /// not committed is void, whatever its number, and that owner's change with the number `first`
    /// is [taken](WriteBack::append) next. What was committed stays as it is, until the owner
    /// writes it again. Answers when that is stable.
    ///
    /// # Errors
    /// [`NoEpoch`].
    pub async fn renew(
        &self,
        core: &CoreHandle,
        ring: u32,
        (epoch, first): (u64, Sequence),
    ) -> Result<(), NoEpoch> {
        self.follow_as(core, ring, ((epoch, first), true)).await?;
        let stable = self.on_ring(core, ring, move |here, slot| {
            Box::pin(async move {
                here.wait_until(Condition::NoEpochBegins(slot)).await;
                match here.machine().ring().has_failed() {
                    true => Err(here.machine().refused_write()),
                    false => Ok(()),
                }
            })
        });
        stable.await.map_err(NoEpoch::Io)
    }

    async fn follow_as(
        &self,
        core: &CoreHandle,
        ring: u32,
        (from, anew): ((u64, Sequence), bool),
    ) -> FollowResult {
        let followed = self.on_ring(core, ring, move |here, slot| {
            Box::pin(async move { Ok(here.follow(slot, from, anew).await) })
        });
        let none = |error| Err(NoEpoch::Io(error));
        followed.await.unwrap_or_else(none)
    }

    /// Has nobody give the volume's changes in a ring their numbers, until an epoch begins or is
    /// followed: neither hosts' changes nor those of an owner are taken.
    ///
    /// # Errors
    /// As [`WriteBack::carry`].
    pub async fn resign(&self, core: &CoreHandle, ring: u32) -> Result<(), IoError> {
        let resigned = self.on_ring(core, ring, move |here, slot| {
            here.apply(Event::Resign(slot));
            Box::pin(async { Ok(()) })
        });
        resigned.await
    }

    /// Reads changes of the volume out of a ring's log again, from this place on: as many as are
    /// stable and have `bytes` together, each counted with 64 and its data, but one at least.
    /// Those that are not committed are always there; the others for as long as the log has them
    /// as they were ordered. None that is void is among them.
    ///
    /// # Errors
    /// [`NotRead`], for the first one.
    pub async fn read_back(
        &self,
        core: &CoreHandle,
        ring: u32,
        (place, bytes): (Place, usize),
    ) -> Result<ReadBack, NotRead> {
        let read = self.on_ring(core, ring, move |here, slot| {
            Box::pin(async move { Ok(here.read_back(slot, place, bytes).await) })
        });
        read.await.unwrap_or_else(|error| Err(NotRead::Io(error)))
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
