//! What a session needs to leave its core.

use env::{CoreId, DetachedStream, LocalFuture};
use logical_unit::StandStill;
use tokio::sync::OwnedRwLockWriteGuard;

/// A session that was asked to go.
pub(super) struct Going {
    pub(super) to: CoreId,
    pub(super) limit: LocalFuture<()>,
    pub(super) again: Option<LocalFuture<()>>,
}

/// Keeps everybody from asking all cores while a session is on none of them.
pub(super) struct Still {
    pub(super) _front: OwnedRwLockWriteGuard<()>,
    pub(super) _units: Vec<StandStill>,
}

/// A session that is ready to go.
pub(super) struct Departure {
    pub(super) to: CoreId,
    pub(super) stream: DetachedStream,
    pub(super) still: Still,
}
