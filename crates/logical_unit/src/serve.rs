//! A node begins to serve hosts of a unit with copies, with what it kept of the unit's state.

use crate::change::{Effects, change};
use crate::copies::StateCopies;
use crate::share::find;
use crate::state::UnitState;
use crate::unit::LogicalUnit;
use env::CoreHandle;
use scsi::alua::AccessState;
use scsi::unit_attention::UnitAttention;
use std::sync::Arc;

/// What this node kept of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeldState {
    /// The last state; `None`: no node ever kept one.
    pub state: Option<Vec<u8>>,
    /// Some node that is in sync has had it without losing power.
    pub lived: bool,
}

/// What was kept of a unit is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateDamaged;

impl LogicalUnit {
    /// The unit's state is kept on several nodes from now on.
    pub fn set_copies(&self, copies: Arc<dyn StateCopies>) {
        self.replace_copies(copies);
    }

    /// This node serves hosts from now on, with the state that it kept. Those that came through it
    /// before learn that nobody knows what was pending for them: I_T NEXUS LOSS OCCURRED, and
    /// ASYMMETRIC ACCESS STATE CHANGED.
    ///
    /// # Errors
    /// What was kept is damaged: hosts are not served.
    pub async fn serve(
        self: &Arc<Self>,
        core: &CoreHandle,
        held: HeldState,
    ) -> Result<(), StateDamaged> {
        let Some(unit) = find(core, self.id()) else {
            return Ok(());
        };
        if unit.with_state(UnitState::is_served) {
            return Ok(());
        }
        let mut sound = unit.with_state(UnitState::clone);
        if let Some(state) = &held.state {
            let adopted = sound.adopt_copy(state, held.lived);
            adopted.ok_or(StateDamaged)?;
        }
        self.establish_for_all(core, UnitAttention::NexusLoss).await;
        let edited = change(core, self, move |state| {
            if let Some(kept) = &held.state {
                let _sound = state.adopt_copy(kept, held.lived);
            }
            state.access_state = AccessState::ActiveOptimized;
            state.groups.served_by = None;
            Ok(Effects {
                // What the copies have already. Where all lost power they are to know that it
                // counts.
                copied: Some(held.state.filter(|_| held.lived).unwrap_or_default()),
                attention_for_others: Some((None, UnitAttention::AccessStateChanged)),
                ..Effects::default()
            })
        });
        // It may be refused where another node serves by now, which says so next.
        drop(edited.await);
        Ok(())
    }
}
