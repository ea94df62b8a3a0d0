//! Another volume in the place of the one below, while hosts work.
//!
//! ```text
//!   flush --> in each ring: requests wait, nothing is destaged --> nothing of it is under way at home
//!     --> flush --> in each ring: the other one --> go on
//! ```
//!
//! **Contract.** Nothing that went to the one is under way when the first goes to the other, and
//! all that it did is stable. Requests wait meanwhile, for as long as one at home and a flush take.
//! Where it does not come to rest in time, nothing has changed.

use crate::lane::WriteBack;
use crate::shard::{OpenHome, Shard};
use env::CoreHandle;
use futures_util::future::{Either, select};
use journal::Slot;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use units::Now;
use volume::{Io, IoError, Op, OpenError, Origin, Volume};

fn busy() -> OpenError {
    OpenError {
        cause: "something is still under way where its blocks are, and does not end".to_owned(),
        next_step: "look for a disk that does not answer; then try again".to_owned(),
    }
}

fn unflushed(error: IoError) -> OpenError {
    OpenError {
        cause: format!("its blocks could not be made stable: {error:?}"),
        next_step: "look at its disk and the kernel's log".to_owned(),
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
    /// Puts another volume with the same blocks in the place of the one below; `tell_first`: as
    /// [`WriteBack::tell_first`]. Whoever has lanes opens them anew, because facts may differ. It
    /// goes on when nobody waits for it any more.
    ///
    /// # Errors
    /// It did not come to rest until then, could not be flushed, or the other one cannot be opened:
    /// nothing has changed.
    pub async fn exchange(
        self: &Arc<Self>,
        core: &CoreHandle,
        other: Arc<dyn Volume>,
        tell_first: bool,
        until: Now,
    ) -> Result<(), OpenError> {
        let (volume, here) = (Arc::clone(self), Rc::clone(core));
        env::detach(core, async move {
            let exchanged = volume.try_exchange(&here, &other, until).await;
            let first = match exchanged {
                Ok(()) => tell_first,
                Err(_) => volume.modes().tells_first(),
            };
            // Before anything goes to the other one.
            volume.modes().tell_first(first);
            if exchanged.is_ok() {
                volume.set_home(other);
            }
            volume.all_go_on(&here, exchanged.is_ok()).await;
            exchanged
        })
        .await
    }

    async fn all_go_on(&self, core: &CoreHandle, done: bool) {
        for ring in 0..self.journal().rings() {
            let gone_on = self.on_ring(core, ring, move |shard, slot| {
                shard.go_on(slot, done);
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
        self.flush_home(core, until).await?;
        for ring in 0..self.journal().rings() {
            let (other, fences) = (Arc::clone(other), self.fences().clone());
            let modes = Arc::clone(self.modes());
            let rests = self.on_ring(core, ring, move |shard, slot| {
                Box::pin(async move {
                    let shape = other.shape();
                    let opening = Arc::clone(&other).open(&shard.core);
                    let opened = in_time(&shard.core, until, opening).await;
                    let next = opened.map(|lane| OpenHome {
                        lane,
                        volume: other,
                        shape,
                        fences,
                        modes,
                    });
                    Ok(match next {
                        Ok(next) => shard.rest_for(slot, next, until).await,
                        Err(error) => Err(error),
                    })
                })
            });
            rests.await.map_err(unflushed)??;
        }
        self.flush_home(core, until).await
    }

    async fn flush_home(&self, core: &CoreHandle, until: Now) -> Result<(), OpenError> {
        let opening = self.home().open(core);
        let flushed = async move {
            let lane = opening.await?;
            let flushed = lane.submit(Io::new(Op::Flush, Origin::default())).await;
            flushed.map(|_| ()).map_err(unflushed)
        };
        in_time(core, until, flushed).await
    }
}

impl Shard {
    /// Has everything of the volume wait that is asked for from now on, and waits until nothing of
    /// it is under way at home.
    async fn rest_for(
        self: &Rc<Self>,
        slot: Slot,
        next: OpenHome,
        until: Now,
    ) -> Result<(), OpenError> {
        let reads = {
            let mut state = self.state.borrow_mut();
            let home = state.home_mut(slot);
            home.next = Some(next);
            Rc::clone(&home.reads)
        };
        let rests = pin!(async {
            // What goes past the log may need room in it, which is there only while something is
            // destaged.
            self.until(|| !self.state.borrow().has_direct_of(slot))
                .await;
            self.pauses.borrow_mut().insert(slot);
            self.until(|| !self.in_round.get()).await;
            reads.wait().await;
        });
        match select(rests, self.core.sleep_until(until)).await {
            Either::Left(_) => Ok(()),
            Either::Right(_) => Err(busy()),
        }
    }

    /// Ends what [`Shard::rest_for`] began, where it did; `done`: with the other volume.
    fn go_on(&self, slot: Slot, done: bool) {
        let mut state = self.state.borrow_mut();
        let home = state.home_mut(slot);
        let Some(next) = home.next.take() else {
            return;
        };
        if done {
            home.open = Some(next);
            home.stuck = None;
        }
        drop(state);
        self.pauses.borrow_mut().remove(&slot);
        self.moved.notify_waiters();
        self.carry.notify_one();
    }

    /// Waits until requests of the volume need not wait any more.
    pub(crate) async fn let_in(&self, slot: Slot, changes: bool) {
        self.until(|| !self.state.borrow().home(slot).makes_wait(changes))
            .await;
    }

    pub(crate) async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            let moved = self.moved.notified();
            if is_so() {
                return;
            }
            moved.await;
        }
    }
}
