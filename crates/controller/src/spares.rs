//! The room that the state directory keeps for changes that make room, and which changes those are.

use super::Controller;
use manifest::objects::{Lun, Objects};
use manifest::plan::LunChanges;
use state::Store;
use std::rc::Weak;
use std::time::Duration;

/// How long until missing room is looked for again.
const AGAIN: Duration = Duration::from_secs(10);

/// Something is removed, purged or made smaller, and nothing is made or grows.
pub(super) fn makes_room(current: &Objects, changes: &LunChanges) -> bool {
    let was = |is: &Lun| current.luns.values().find(|lun| lun.naa == is.naa);
    let shrinks = |is: &Lun| was(is).is_some_and(|was| is.size < was.size);
    let less = !changes.retired.is_empty()
        || !changes.purged.is_empty()
        || !changes.switched_off.is_empty()
        || changes.resized.iter().any(shrinks);
    let more = !changes.created.is_empty()
        || !changes.switched_on.is_empty()
        || changes.resized.iter().any(|is| !shrinks(is));
    less && !more
}

impl Controller {
    /// Makes that room where it is missing.
    pub(super) async fn keep_spares(&self, store: &Store) {
        let missing = store.keep_spares().await.err();
        let dir = self.config.state_dir.display();
        let reported = missing.map(|error| {
            format!(
                "state_dir {dir}: {error}: changes are refused but for a few that make room (lun delete, lun purge, a smaller size)"
            )
        });
        if let Some(problem) = &reported
            && self.no_spares.borrow().is_none()
        {
            tracing::warn!("{problem}");
        }
        *self.no_spares.borrow_mut() = reported;
    }

    /// What of it is missing, for `status`.
    pub(super) fn no_spares(&self) -> Option<String> {
        self.no_spares.borrow().clone()
    }

    /// Makes it once there is room.
    pub(super) async fn follow_spares(this: Weak<Self>) {
        loop {
            let Some(core) = this.upgrade().map(|it| it.core.clone()) else {
                return;
            };
            core.sleep_until(core.now().after(AGAIN)).await;
            let Some(this) = this.upgrade() else { return };
            if this.no_spares.borrow().is_some()
                && let Ok(store) = this.store.try_lock()
                && !this.stopping.get()
            {
                this.keep_spares(&store).await;
            }
        }
    }
}
