//! Who may serve hosts on this node now: said by the task of the LUN, read by all cores.

use replica::{LunCopy, Moment, NodeSlot};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use volume::{Access, Followers, VolumeEvent, VolumeEvents};

/// The right to serve a LUN's hosts.
#[derive(Default)]
pub(crate) struct Tenure {
    /// Changes are taken.
    writes: AtomicBool,
    /// Reads that complete before this moment, in milliseconds, are right.
    reads_until: AtomicU64,
    /// Who may not now is worth waiting: this node owns the LUN, or is about to.
    waits: AtomicBool,
    changed: Notify,
    /// What was said last of who serves.
    said: Mutex<Option<Access>>,
    /// Who follows whether hosts are served.
    followers: Followers,
}

/// Hosts of a node that takes changes are served, and of one that will in a moment. `owner`: the
/// node that owns the LUN by the record, where that is another one.
const fn access(writes: bool, waits: bool, owner: Option<NodeSlot>) -> Access {
    match (writes || waits, owner) {
        (true, _) => Access::Served,
        (false, Some(owner)) => Access::Elsewhere(Some(owner.0)),
        (false, None) => Access::Elsewhere(None),
    }
}

/// The present, by a node's own clock.
pub(crate) fn moment(core: &env::CoreHandle) -> Moment {
    Moment(core.now().0 / 1_000_000)
}

impl Tenure {
    /// What the copy allows now. The order of the stores makes no difference: who reads them one
    /// after the other sees what held at a moment between two decisions.
    pub(crate) fn follow(self: &Arc<Self>, copy: &LunCopy, now: Moment, waits: bool) {
        let until = copy.reads_until(now).map_or(0, |it| it.0);
        let writes = copy.may_write();
        let was = (
            self.writes.swap(writes, Ordering::AcqRel),
            self.reads_until.swap(until, Ordering::AcqRel),
            self.waits.swap(waits, Ordering::AcqRel),
        );
        if was != (writes, until, waits) {
            self.changed.notify_waiters();
        }
        self.say(access(writes, waits, copy.owner_elsewhere()));
    }

    /// Whoever follows hears it, where it is news.
    fn say(&self, access: Access) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.replace(access) != Some(access) {
            self.followers.notify(&VolumeEvent::Access(access));
        }
    }

    /// Follows whether hosts are served, beginning with how it is now.
    pub(crate) fn events(&self) -> Rc<dyn VolumeEvents> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let events = self.followers.follow();
        let now = said.unwrap_or(Access::Elsewhere(None));
        self.followers.notify(&VolumeEvent::Access(now));
        events
    }

    /// Other nodes have said something of their paths.
    pub(crate) fn paths_changed(&self) {
        self.followers.notify(&VolumeEvent::Paths);
    }

    /// Nobody is served any more.
    pub(crate) fn end(&self) {
        self.writes.store(false, Ordering::Release);
        self.reads_until.store(0, Ordering::Release);
        self.waits.store(false, Ordering::Release);
        self.changed.notify_waiters();
        self.say(Access::Elsewhere(None));
    }

    pub(crate) fn may_write(&self) -> bool {
        self.writes.load(Ordering::Acquire)
    }

    pub(crate) fn may_read(&self, now: Moment) -> bool {
        now.0 < self.reads_until.load(Ordering::Acquire)
    }

    pub(crate) fn is_worth_waiting(&self) -> bool {
        self.waits.load(Ordering::Acquire)
    }

    /// Completes with the next change after this was called.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}
