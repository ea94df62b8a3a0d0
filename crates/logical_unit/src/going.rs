//! Nexuses are notified or moved, never both at the same time: see [`crate::NexusState`].

use std::sync::Arc;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, RwLockReadGuard};

/// While it is held, a unit's nexuses may go from core to core, and no unit attention is
/// established for all of them.
pub struct StandStill(#[expect(dead_code, reason = "held, never read")] OwnedRwLockWriteGuard<()>);

/// Nexuses are notified or moved, never both at the same time.
#[derive(Default)]
pub(crate) struct Going(Arc<RwLock<()>>);

impl Going {
    /// Lets nexuses of the unit go from core to core; `None` where a unit attention is being
    /// established for all of them.
    pub(crate) fn stand_still(&self) -> Option<StandStill> {
        let still = Arc::clone(&self.0).try_write_owned();
        still.ok().map(StandStill)
    }

    /// While it is held, each nexus is on exactly one core.
    pub(crate) async fn keep_going(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().await
    }
}
