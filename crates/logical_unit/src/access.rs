//! Whether this node serves hosts of a unit that is on several nodes.

use crate::change::{Effects, change};
use crate::share::find;
use crate::unit::LogicalUnit;
use env::CoreHandle;
use scsi::alua::AccessState;
use scsi::unit_attention::UnitAttention;
use std::sync::Arc;
use volume::Access;

/// As hosts have it.
const fn state_of(access: Access) -> AccessState {
    match access {
        Access::Served => AccessState::ActiveOptimized,
        Access::Elsewhere => AccessState::Unavailable,
    }
}

impl LogicalUnit {
    /// Hosts are served here from now on, or not: REPORT TARGET PORT GROUPS says so on every core
    /// when this is answered. Where they are not, commands that read and write end with TARGET PORT
    /// IN UNAVAILABLE STATE (SPC-4 5.15.2.4.5). Hosts are informed of the change.
    pub async fn set_access(self: &Arc<Self>, core: &CoreHandle, access: Access) {
        let (Some(unit), wanted) = (find(core, self.id()), state_of(access)) else {
            return;
        };
        if unit.with_state(|state| state.access_state == wanted) {
            return;
        }
        let edited = change(core, self, move |state| {
            let changed = state.access_state != wanted;
            state.access_state = wanted;
            let reported = (None, UnitAttention::AccessStateChanged);
            Ok(Effects {
                attention_for_others: changed.then_some(reported),
                ..Effects::default()
            })
        });
        // Nothing of it is stored, so it cannot be refused.
        drop(edited.await);
    }
}
