//! Holding blocks, or everything, or everything later, on all cores at once.
//!
//! ```text
//!  core of the task          home core                every core
//!     request  ------------> HoldTable (one order)
//!              <-- granted --
//!     install  ------------------------------------->  Admission::install
//!              <------------------------------------- drained
//!     ... the task runs alone ...
//!     drop     ------------> release ; remove --------> Admission::remove, wake
//! ```
//!
//! **Contract.** When [`CoreUnit::hold`] returns, nothing that the hold stops runs on any core, and
//! nothing will until the guard is dropped. Dropping the guard, or the future, at any moment gives
//! everything back. Jobs from one core to another keep their order, so a removal never overtakes
//! its installation.

use super::{CoreUnit, find};
use crate::admission::{HoldId, HoldKind, TaskId};
use crate::names::UnitId;
use env::{CoreHandle, CoreId, call, call_all};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// How long a change of the unit's state waits for what is in flight.
const CHANGE_WAIT: Duration = Duration::from_millis(1200);

/// A hold that stands, or is about to. Dropping it ends it everywhere.
pub(crate) struct HoldGuard {
    core: CoreHandle,
    unit: UnitId,
    id: HoldId,
    /// The home core whose table knows of it; none for a hold that asked nobody (quarantine).
    home: Option<CoreId>,
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let (unit, id) = (self.unit, self.id);
        for number in 0..self.core.core_count() {
            on_core(&self.core, CoreId(number), move |core| {
                if let Some(unit) = find(core, unit) {
                    unit.remove_hold(id);
                }
            });
        }
        if let Some(home) = self.home {
            on_core(&self.core, home, move |core| {
                if let Some(unit) = find(core, unit) {
                    unit.hold_home().release(id);
                }
            });
        }
    }
}

fn on_core(core: &CoreHandle, to: CoreId, work: impl FnOnce(&CoreHandle) + Send + 'static) {
    if to == core.id() {
        work(core);
    } else {
        core.post(to, Box::new(work));
    }
}

impl CoreUnit {
    /// Takes a hold for the task `owner` of this core.
    pub(crate) async fn hold(self: &Rc<Self>, kind: HoldKind, owner: Option<TaskId>) -> HoldGuard {
        let guard = self.begin_hold(kind, owner);
        self.finish_hold(&guard, kind, owner).await;
        guard
    }

    /// Takes a hold for a change of the unit's state. What is in flight is waited for, but not for
    /// ever: a backend that hangs must not keep hosts from changing reservations. What is still in
    /// flight then was admitted under the old state, and the change comes after it.
    pub(crate) async fn hold_for_change(
        self: &Rc<Self>,
        kind: HoldKind,
        owner: Option<TaskId>,
    ) -> HoldGuard {
        let guard = self.begin_hold(kind, owner);
        let mut timer = self
            .core()
            .sleep_until(self.core().now().after(CHANGE_WAIT));
        {
            let mut standing = pin!(self.finish_hold(&guard, kind, owner));
            poll_fn(|cx| match standing.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => timer.as_mut().poll(cx),
            })
            .await;
        }
        guard
    }

    /// The part of taking a hold that must happen at the very moment that an ordered task arrives:
    /// later tasks of this core stop here from now on.
    pub(crate) fn begin_hold(self: &Rc<Self>, kind: HoldKind, owner: Option<TaskId>) -> HoldGuard {
        let id = self.next_hold_id();
        let guard = HoldGuard {
            core: Rc::clone(self.core()),
            unit: self.id(),
            id,
            home: Some(self.home()),
        };
        if kind == HoldKind::Order {
            self.install_hold(id, kind, owner);
        }
        guard
    }

    /// Waits until the hold stands on every core.
    pub(crate) async fn finish_hold(
        self: &Rc<Self>,
        guard: &HoldGuard,
        kind: HoldKind,
        owner: Option<TaskId>,
    ) {
        let (unit, id) = (self.id(), guard.id);
        // The request is entered when the job runs, before anything is awaited: the guard's
        // release, which is posted later, can then never overtake it.
        call(self.core(), self.home(), move |core| {
            let waits = find(core, unit).and_then(|unit| unit.hold_home().request(id, kind));
            Box::pin(async move {
                if let Some(waits) = waits {
                    drop(waits.await);
                }
            })
        })
        .await;
        self.install_everywhere(id, kind, owner).await;
    }

    /// Puts the blocks of a write that the backend still has out of reach, without asking whether
    /// another hold is in the way: nothing may touch them before that write has returned.
    pub(crate) async fn quarantine_hold(
        self: &Rc<Self>,
        kind: HoldKind,
        owner: TaskId,
    ) -> HoldGuard {
        let id = self.next_hold_id();
        let guard = HoldGuard {
            core: Rc::clone(self.core()),
            unit: self.id(),
            id,
            home: None,
        };
        let unit = self.id();
        let here = self.core().id();
        call_all(self.core(), move |core| {
            if let Some(unit) = find(core, unit) {
                unit.install_hold(id, kind, (core.id() == here).then_some(owner));
            }
            Box::pin(async {})
        })
        .await;
        guard
    }

    async fn install_everywhere(
        self: &Rc<Self>,
        id: HoldId,
        kind: HoldKind,
        owner: Option<TaskId>,
    ) {
        let unit = self.id();
        let here = self.core().id();
        call_all(self.core(), move |core| {
            let found = find(core, unit);
            if let Some(unit) = &found {
                unit.install_hold(id, kind, owner.filter(|_| core.id() == here));
            }
            Box::pin(async move {
                if let Some(unit) = found {
                    unit.until_drained(id).await;
                }
            })
        })
        .await;
    }
}
