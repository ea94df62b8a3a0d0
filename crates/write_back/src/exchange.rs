//! Another volume in the place of the one below, while hosts work.
//!
//! ```text
//!   flush --> in each ring: requests wait, nothing is destaged --> nothing is under way below
//!     --> flush --> in each ring: the other one --> go on
//! ```
//!
//! **Contract.** Nothing that went to the one is under way when the first goes to the other, and
//! all that it did is stable. Requests wait meanwhile, for as long as one below and a flush
//! take.
//! Where it does not come to rest in time, nothing has changed.

use crate::lane::WriteBack;
use crate::ring::{Condition, Event, OpenBacking, Ring, Wait};
use env::CoreHandle;
use futures_util::future::{Either, select};
use journal::Slot;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use units::Now;
use volume::{Io, IoError, Op, OpenError, OpenErrorKind, Origin, Volume};

fn busy() -> OpenError {
    OpenError {
        kind: OpenErrorKind::Hung,
        cause: "something is still under way where its blocks are, and does not end".to_owned(),
        next_step: "look for a disk that does not answer; then try again".to_owned(),
    }
}

fn unflushed(error: IoError) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Other,
        cause: format!("its blocks could not be made stable: {error:?}"),
        next_step: "check its disk and the kernel's log".to_owned(),
    }
}

/// The answer of `work`, which goes on where that takes too long.
async fn in_time<T: Unpin + 'static>(
    core: &CoreHandle,
    until: Now,
    work: impl Future<Output = Result<T, OpenError>> + 'static,
) -> Result<T, OpenError> {
    let answer = pin!(env::detach(core, work));
    match select(answer, core.sleep_until(until)).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => Err(busy()),
    }
}

impl WriteBack {
    /// Puts another volume with the same blocks in the place of the one below; `log_first`: as
    /// [`WriteBack::log_first`]. Whoever has lanes opens them anew, because facts may differ. It
    /// goes on when nobody waits for it any more.
    ///
    /// # Errors
    /// It did not come to rest until then, could not be flushed, or the other one cannot be opened:
    /// nothing has changed.
    pub async fn exchange(
        self: &Arc<Self>,
        core: &CoreHandle,
        other: Arc<dyn Volume>,
        log_first: bool,
        until: Now,
    ) -> Result<(), OpenError> {
        let (volume, here) = (Arc::clone(self), Rc::clone(core));
        env::detach(core, async move {
            let exchanged = volume.try_exchange(&here, &other, until).await;
            let first = match exchanged {
                Ok(()) => log_first,
                Err(_) => volume.modes().logs_first(),
            };
            // Before anything goes to the other one.
            volume.modes().log_first(first);
            if exchanged.is_ok() {
                volume.set_backing(other);
            }
            volume.all_go_on(&here, exchanged.is_ok()).await;
            exchanged
        })
        .await
    }

    async fn all_go_on(&self, core: &CoreHandle, done: bool) {
        for ring in 0..self.journal().rings() {
            let gone_on = self.on_ring(core, ring, move |here, slot| {
                here.end_exchange(slot, done);
                Box::pin(async { Ok(()) })
            });
            // A ring that is gone has nothing that waits.
            let _ = gone_on.await;
        }
    }

    async fn try_exchange(
        &self,
        core: &CoreHandle,
        other: &Arc<dyn Volume>,
        until: Now,
    ) -> Result<(), OpenError> {
        // Most of it now, so that little is left while requests wait.
        self.flush_backing(core, until).await?;
        for ring in 0..self.journal().rings() {
            let (other, fences) = (Arc::clone(other), self.fences().clone());
            let modes = Arc::clone(self.modes());
            let rests = self.on_ring(core, ring, move |here, slot| {
                Box::pin(async move {
                    let shape = other.shape();
                    let opening = Arc::clone(&other).open(&here.core);
                    let opened = in_time(&here.core, until, opening).await;
                    let next = opened.map(|lane| OpenBacking {
                        lane,
                        volume: other,
                        shape,
                        fences,
                        modes,
                    });
                    Ok(match next {
                        Ok(next) => rest_for(&here, slot, next, until).await,
                        Err(error) => Err(error),
                    })
                })
            });
            rests.await.map_err(unflushed)??;
        }
        self.flush_backing(core, until).await
    }

    async fn flush_backing(&self, core: &CoreHandle, until: Now) -> Result<(), OpenError> {
        let opening = self.backing().open(core);
        let flushed = async move {
            let lane = opening.await?;
            let flushed = lane.submit(Io::new(Op::Flush, Origin::default())).await;
            flushed.map(|_| ()).map_err(unflushed)
        };
        in_time(core, until, flushed).await
    }
}

/// Has everything of the volume wait that is asked for from now on, and waits until nothing of it
/// is under way in its backing volume.
async fn rest_for(
    ring: &Rc<Ring>,
    slot: Slot,
    next: OpenBacking,
    until: Now,
) -> Result<(), OpenError> {
    ring.begin_exchange(slot, next);
    let rests = pin!(async {
        // What goes around the log may need room in it, which is there only while something is
        // destaged.
        ring.wait_until(Condition::NoWriteAround(slot)).await;
        ring.apply(Event::Wait(slot, Wait::Pause));
        ring.wait_until(Condition::NoRound).await;
        ring.backing_reads_end(slot).await;
    });
    match select(rests, ring.core.sleep_until(until)).await {
        Either::Left(_) => Ok(()),
        Either::Right(_) => Err(busy()),
    }
}
