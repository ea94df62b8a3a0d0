//! Changes that come with their numbers, from the owner of a volume that this node has a copy of.
//!
//! ```text
//!   append(epoch, changes) --> the next numbers? --> share, permits --> log --> Carrier::stable
//! ```
//!
//! Whoever appends is answered when the log has taken them, not when they are stable: a log that is
//! slow or full holds up the owner so. What waits here is bounded by the ring's permits, what is
//! stable and not committed by the volume's share: so what the owner says is committed must not
//! wait behind what is appended.

use crate::admission::Permit;
use crate::lane::WriteBack;
use crate::ring::{Append, Condition, Effect, Event, Ring};
use env::CoreHandle;
use journal::{AppendRefused, Change, Sequence, Slot};
use std::rc::Rc;
use units::Buf;
use volume::IoError;

/// Why changes are not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAppended {
    /// The log's device has failed, the volume is not open, or the ring stops.
    Io(IoError),
    /// A later epoch is known here.
    Late {
        /// The newest.
        newest: u64,
    },
    /// This epoch is not [followed](WriteBack::follow) here.
    NotFollowed,
    /// The first one is not the next one, or one does not follow the one before it: none is taken.
    Expected {
        /// The number that comes next.
        next: Sequence,
    },
    /// This one is none that the owner of this volume sends: of other blocks, of a kind that is of
    /// one node alone, or with too little data. None is taken.
    Unfit {
        /// Its number.
        number: Sequence,
    },
}

impl Ring {
    /// What of these is not to be taken.
    fn may_append(
        &self,
        slot: Slot,
        epoch: u64,
        changes: &[(Change, Buf)],
    ) -> Result<Sequence, NotAppended> {
        let (machine, shape) = (self.machine(), self.backing_of(slot).shape);
        let Some((first, data)) = changes.first() else {
            let next = machine.next_to_append(slot, epoch);
            return next.ok_or(NotAppended::NotFollowed);
        };
        let refused = machine.may_append(epoch, (first, data.len()));
        let mut next = refused.map_err(|it| self.not_appended(it, first.sequence))?;
        for (change, data) in changes {
            let number = change.sequence;
            if number != next {
                let next = changes[0].0.sequence;
                return Err(NotAppended::Expected { next });
            }
            let is_here = change.range.is_empty()
                || (change.block_size == shape.block_size
                    && change.range.end().0 <= shape.block_count.0);
            let fits = change.volume == machine.volume(slot).id
                && is_here
                && change.is_ordered()
                && change.data_bytes() == Some(data.len());
            if !fits {
                return Err(NotAppended::Unfit { number });
            }
            next = Sequence(next.0 + 1);
        }
        Ok(next)
    }

    fn not_appended(&self, refused: AppendRefused, number: Sequence) -> NotAppended {
        match refused {
            AppendRefused::Failed => NotAppended::Io(self.machine().refused_write()),
            AppendRefused::Late { newest } => NotAppended::Late { newest },
            AppendRefused::NotFollowed => NotAppended::NotFollowed,
            AppendRefused::Expected { next } => NotAppended::Expected { next },
            AppendRefused::Unfit => NotAppended::Unfit { number },
        }
    }

    async fn append(
        self: Rc<Self>,
        slot: Slot,
        epoch: u64,
        changes: Vec<(Change, Buf)>,
    ) -> Result<Sequence, NotAppended> {
        let appends = Rc::clone(&self.backings().of(slot).appends);
        // In the order in which they came.
        let _turn = appends.lock().await;
        let next = self.may_append(slot, epoch, &changes)?;
        for (change, data) in changes {
            let permit = self.room_for(slot, epoch, data.len()).await;
            let (number, now) = (change.sequence, self.core.recent());
            let event = Event::Append(Append {
                slot,
                epoch,
                change,
                data,
                now,
            });
            let taken = self.ask(event, |effects| match effects {
                [Effect::Submitted { token, bytes }, ..] => Ok((*token, *bytes)),
                [Effect::AppendRefused(refused)] => Err(*refused),
                other => unreachable!("{other:?} is no answer"),
            });
            let waits = taken.map_err(|refused| self.not_appended(refused, number))?;
            // Its end is for the carrier to hear.
            drop(self.answered(waits));
            drop(permit);
        }
        Ok(next)
    }

    /// Waits until the volume may have more in the log, and it is its turn.
    async fn room_for(&self, slot: Slot, epoch: u64, bytes: usize) -> Option<Permit> {
        loop {
            self.wait_until(Condition::HasShareOf { slot, epoch }).await;
            if self.permits.are_free() {
                return None;
            }
            let turn = self.permits.wait(bytes);
            let Ok(permit) = turn.await else {
                // The ring is gone with its core: nobody is answered any more.
                return std::future::pending().await;
            };
            let share = Condition::HasShareOf { slot, epoch };
            if share.is_met(&self.machine()) {
                return Some(permit);
            }
        }
    }
}

impl WriteBack {
    /// Puts changes into a ring's log that the owner of this epoch has given numbers, with exactly
    /// these, and answers when the log has taken them, with the number that comes next; when they
    /// are stable, [`Carrier::stable`](crate::Carrier::stable) says so. All of them, or, where it
    /// is refused, none; but where the log fails, the volume leaves, or another epoch is followed
    /// meanwhile, perhaps the first ones. Calls are taken in their order.
    ///
    /// # Errors
    /// [`NotAppended`].
    pub async fn append(
        &self,
        core: &CoreHandle,
        ring: u32,
        (epoch, changes): (u64, Vec<(Change, Buf)>),
    ) -> Result<Sequence, NotAppended> {
        let appended = self.on_ring(core, ring, move |here, slot| {
            Box::pin(async move { Ok(here.append(slot, epoch, changes).await) })
        });
        let none = |error| Err(NotAppended::Io(error));
        appended.await.unwrap_or_else(none)
    }
}
