//! What a pool has for the writes of its LUNs.

use std::sync::Arc;
use volume::OpenError;
use write_back::Journal;

/// What a pool has for the writes of its LUNs.
#[derive(Clone)]
pub(crate) enum PoolJournal {
    /// No journal: LUNs stand on their files alone.
    None,
    /// It is open.
    Open(Arc<Journal>),
    /// It has one that cannot be used, so that its LUNs cannot be served.
    Missing(OpenError),
}
