//! Which nodes a unit with copies is reached through, and which of them serves its hosts.

use crate::change::{Effects, change};
use crate::groups::{NodeElsewhere, NodeNumber};
use crate::names::UnitId;
use crate::share::control::AbortedBy;
use crate::share::find;
use crate::share::nexus::abort;
use crate::state::UnitState;
use crate::unit::LogicalUnit;
use env::{CoreHandle, call_all};
use scsi::alua::AccessState;
use scsi::unit_attention::UnitAttention;
use std::sync::Arc;
use volume::Access;

/// As hosts have it, and the other node that serves them.
fn state_of(access: Access) -> (AccessState, Option<NodeNumber>) {
    match access {
        Access::Served => (AccessState::ActiveOptimized, None),
        Access::Forwarded(to) => (AccessState::ActiveNonOptimized, Some(NodeNumber(to))),
        Access::Elsewhere(by) => (AccessState::Unavailable, by.map(NodeNumber)),
        Access::Nowhere => (AccessState::Unavailable, None),
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

    /// While this node serves hosts, these nodes forward what comes to them: a bit for each.
    pub async fn set_through(self: &Arc<Self>, core: &CoreHandle, through: u64) {
        let Some(unit) = find(core, self.id()) else {
            return;
        };
        if unit.with_state(|state| state.groups.through == through) {
            return;
        }
        let edited = change(core, self, move |state| {
            state.groups.through = through;
            let reported = (None, UnitAttention::AccessStateChanged);
            Ok(Effects {
                attention_for_others: state.is_served().then_some(reported),
                ..Effects::default()
            })
        });
        // Nothing of it is stored, so it cannot be refused.
        drop(edited.await);
    }

    /// Hosts are served here from now on, or not: REPORT TARGET PORT GROUPS says so on every core
    /// when this is answered. Where another node serves them, commands go there, or end with
    /// TARGET PORT IN UNAVAILABLE STATE (SPC-4 5.15.2.4.5). Hosts are informed of the change. Where
    /// nobody knows which node serves them ([`Access::Nowhere`]), connections with commands of this
    /// unit end.
    pub async fn set_access(self: &Arc<Self>, core: &CoreHandle, access: Access) {
        let (Some(unit), wanted) = (find(core, self.id()), state_of(access)) else {
            return;
        };
        let is_so = |state: &UnitState| (state.access_state, state.groups.served_by) == wanted;
        if !unit.with_state(is_so) {
            self.say_access(core, wanted).await;
        }
        if access == Access::Nowhere {
            give_up(core, self.id()).await;
        }
    }

    async fn say_access(
        self: &Arc<Self>,
        core: &CoreHandle,
        wanted: (AccessState, Option<NodeNumber>),
    ) {
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

/// Nobody knows how what hosts wait for will end: their connections end, so that they ask through
/// others. What the backend still has of it keeps its blocks until it comes back, also from hosts
/// that are served here later.
async fn give_up(core: &CoreHandle, id: UnitId) {
    call_all(core, move |core| {
        let unit = find(core, id);
        Box::pin(async move {
            let Some(unit) = unit else { return };
            let tasks = unit
                .nexuses()
                .iter()
                .flat_map(|it| it.all_tasks())
                .collect();
            abort(&unit, tasks, AbortedBy::GivenUp).await;
        })
    })
    .await;
}
