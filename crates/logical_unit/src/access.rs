//! Which nodes a unit with copies is reached through, and which of them serves its hosts.

use crate::change::{Effects, change};
use crate::groups::{NodeElsewhere, NodeNumber};
use crate::share::find;
use crate::unit::LogicalUnit;
use env::CoreHandle;
use scsi::alua::AccessState;
use scsi::unit_attention::UnitAttention;
use std::sync::Arc;
use volume::Access;

/// As hosts have it, and the other node that serves them.
fn state_of(access: Access) -> (AccessState, Option<NodeNumber>) {
    match access {
        Access::Served => (AccessState::ActiveOptimized, None),
        Access::Elsewhere(by) => (AccessState::Unavailable, by.map(NodeNumber)),
    }
}

impl LogicalUnit {
    /// The unit has copies on several nodes, of which this is the one with this number: its ports
    /// are called so from now on. To be said before there are nexuses.
    pub async fn set_node(self: &Arc<Self>, core: &CoreHandle, number: NodeNumber) {
        let edited = change(core, self, move |state| {
            state.groups.own = Some(number);
            Ok(Effects::default())
        });
        // Nothing of it is stored, so it cannot be refused.
        drop(edited.await);
    }

    /// Other nodes have these ports from now on. Hosts learn that pages say something else.
    pub async fn set_elsewhere(self: &Arc<Self>, core: &CoreHandle, others: Vec<NodeElsewhere>) {
        let edited = change(core, self, move |state| {
            let changed = *state.groups.others != *others;
            state.groups.others = others.into();
            let reported = (None, UnitAttention::InquiryChanged);
            Ok(Effects {
                attention_for_others: changed.then_some(reported),
                ..Effects::default()
            })
        });
        // Nothing of it is stored, so it cannot be refused.
        drop(edited.await);
    }

    /// Hosts are served here from now on, or not: REPORT TARGET PORT GROUPS says so on every core
    /// when this is answered. Where they are not, commands that read and write end with TARGET PORT
    /// IN UNAVAILABLE STATE (SPC-4 5.15.2.4.5). Hosts are informed of the change.
    pub async fn set_access(self: &Arc<Self>, core: &CoreHandle, access: Access) {
        let (Some(unit), wanted) = (find(core, self.id()), state_of(access)) else {
            return;
        };
        if unit.with_state(|state| (state.access_state, state.groups.served_by) == wanted) {
            return;
        }
        let edited = change(core, self, move |state| {
            let changed = (state.access_state, state.groups.served_by) != wanted;
            (state.access_state, state.groups.served_by) = wanted;
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
