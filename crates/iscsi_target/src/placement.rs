//! Which core a new connection goes to: the one that works least, by what was measured.

use crate::shared::Shared;
use env::CoreId;
use std::sync::Arc;

/// The core that a connection was placed on: it counts there until this is dropped.
pub(crate) struct Placement {
    shared: Arc<Shared>,
    core: CoreId,
}

impl Placement {
    /// On the core that works least of these; of all where there are none.
    pub(crate) fn choose(shared: &Arc<Shared>, among: &[CoreId]) -> Self {
        Self {
            core: shared.loads().place(among),
            shared: Arc::clone(shared),
        }
    }

    /// Where the connection is.
    pub(crate) fn core(&self) -> CoreId {
        self.core
    }

    /// The connection goes to another core.
    pub(crate) fn go_to(&mut self, core: CoreId) {
        self.shared.loads().enter(core);
        self.shared.loads().leave(self.core);
        self.core = core;
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        self.shared.loads().leave(self.core);
    }
}
