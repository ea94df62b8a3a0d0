//! Cuts: one number for each ring, so that what comes before and after is the same for all who
//! watch the volume.
//!
//! ```text
//!   hold all rings of the volume --> the next cut's number --> a record of it in each ring
//!         --> let go --> all are stable
//! ```
//!
//! A change that was acknowledged before another one was asked for is never after a cut that the
//! other one is before: while one ring is held and another is not yet, nothing that waits in the
//! held one is acknowledged, so that nothing can follow from it.

use crate::lane::WriteBack;
use crate::ring::{Condition, Event, Ring, Wait, ring_of};
use env::{CoreHandle, LocalFuture, call};
use journal::{Kind, Sequence, Slot};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use units::{Lba, LbaRange};
use volume::{Cut, IoError};

/// A ring's part of a volume's history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingHistory {
    /// The number of the ring whose changes they are.
    pub ring: u32,
    /// The number that the volume's next change gets there: they have no gap.
    pub next: Sequence,
    /// The newest cut there; `None` where no history is kept.
    pub cut: Option<Cut>,
    /// The first cut that it knows of: what changed since an earlier one it cannot say.
    pub made: Option<Cut>,
    /// The number of that cut's own record: changes with lower ones are before it. `None` before
    /// the first cut.
    pub cut_at: Option<Sequence>,
}

/// What a ring answers about a volume.
pub(crate) type OnRing<T> = LocalFuture<Result<T, IoError>>;

impl WriteBack {
    /// What each ring knows of the volume's history.
    pub async fn history(&self, core: &CoreHandle) -> Vec<RingHistory> {
        let mut all = Vec::new();
        for ring in 0..self.journal().rings() {
            let found = self.on_ring(core, ring, move |here, slot| {
                Box::pin(async move { Ok(ring_history(&here, ring, slot)) })
            });
            all.extend(found.await);
        }
        all
    }

    /// Divides all changes of the volume into those before and those after, and answers when that
    /// is stable: whatever was acknowledged before this was asked for is before the cut, and read
    /// by whoever reads after it. Changes that come meanwhile wait for a few hundred microseconds.
    /// It goes on when nobody waits for it any more.
    ///
    /// # Errors
    /// The volume keeps no history ([`IoError::WriteProtected`]), or a ring takes nothing.
    pub async fn cut(self: &Arc<Self>, core: &CoreHandle) -> Result<Cut, IoError> {
        let (volume, here) = (Arc::clone(self), Rc::clone(core));
        env::detach(core, async move { volume.make_cut(&here).await }).await
    }

    async fn make_cut(&self, core: &CoreHandle) -> Result<Cut, IoError> {
        let mut newest = Ok(Cut(0));
        let mut held = Vec::new();
        // In the order of rings, so that two cuts wait for each other at the first one.
        for ring in 0..self.journal().rings() {
            let cut = self.on_ring(core, ring, move |here, slot| {
                Box::pin(async move {
                    hold(&here, slot).await;
                    Ok(ring_history(&here, ring, slot).cut)
                })
            });
            let cut = cut.await;
            held.extend(cut.is_ok().then_some(ring));
            let cut = cut.and_then(|cut| cut.ok_or(IoError::WriteProtected));
            newest = newest.and_then(|newest: Cut| Ok(newest.max(cut?)));
        }
        let cut = newest.map(|newest| Cut(newest.0 + 1));
        let mut recorded = Vec::new();
        for ring in held {
            // In the log's queue ahead of all that waits; whether it is stable is asked when all
            // rings have gone on.
            let stable = self.on_ring(core, ring, move |here, slot| {
                let stable = cut.map(|cut| record_cut(&here, slot, cut));
                here.apply(Event::Wait(slot, Wait::EndHold));
                Box::pin(async move { stable })
            });
            recorded.push(stable.await?);
        }
        for stable in recorded {
            stable.await.unwrap_or(Err(IoError::Unavailable))?;
        }
        cut
    }

    /// Asks a ring on its core.
    pub(crate) async fn on_ring<T: Send + 'static>(
        &self,
        core: &CoreHandle,
        ring: u32,
        ask: impl FnOnce(Rc<Ring>, Slot) -> OnRing<T> + Send + 'static,
    ) -> Result<T, IoError> {
        let (key, id) = ((self.journal().key(), ring), self.id());
        let answer = call(core, self.journal().owner(ring), move |core| {
            let here = ring_of(core, key);
            let slot = here.as_ref().and_then(|it| it.slot(id));
            match here.zip(slot) {
                Some((here, slot)) if is_open(&here, slot) => ask(here, slot),
                _ => Box::pin(async { Err(IoError::Unavailable) }),
            }
        });
        answer.await.unwrap_or(Err(IoError::Unavailable))
    }
}

fn is_open(ring: &Ring, slot: Slot) -> bool {
    ring.machine().volume(slot).open.is_some()
}

fn ring_history(here: &Ring, ring: u32, slot: Slot) -> RingHistory {
    let backings = here.backings();
    let history = backings.of(slot).history.as_ref();
    let history = history.map(|it| it.history.borrow());
    RingHistory {
        ring,
        next: here.machine().next_sequence(slot),
        cut: history.as_ref().map(|it| Cut(it.cut())),
        made: history.as_ref().map(|it| Cut(it.made())),
        cut_at: history.and_then(|it| it.cuts().last().map(|it| it.sequence)),
    }
}

/// Puts a hold on the volume: its changes wait from now on. Answers when none is on its way around
/// the log.
async fn hold(ring: &Rc<Ring>, slot: Slot) {
    ring.wait_until(Condition::IsNotHeld(slot)).await;
    ring.apply(Event::Wait(slot, Wait::Hold));
    ring.wait_until(Condition::NoWriteAround(slot)).await;
}

/// Puts the cut into the log; what is received says when it is stable.
fn record_cut(ring: &Rc<Ring>, slot: Slot, cut: Cut) -> oneshot::Receiver<Result<(), IoError>> {
    let range = LbaRange::between(Lba(cut.0), Lba(cut.0)).expect("in order");
    let recorded = ring.note(slot, range, Kind::Cut);
    let (notify, stable) = oneshot::channel();
    ring.core.spawn(Box::pin(async move {
        // Who asked may have gone.
        let _ = notify.send(recorded.await.map(|_| ()));
    }));
    stable
}
