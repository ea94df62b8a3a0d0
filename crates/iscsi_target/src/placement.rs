//! Which core a new connection goes to: the one that works least, by what was measured.

use crate::shared::Shared;
use env::CoreId;
use std::sync::Arc;

/// A count on a core that is given back when dropped.
pub(crate) struct Place {
    shared: Arc<Shared>,
    core: CoreId,
}

impl Place {
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

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.loads().leave(self.core);
    }
}
