//! TAS where an administrator says what it is.

use crate::change::{Effects, change};
use crate::share::find;
use crate::unit::LogicalUnit;
use env::CoreHandle;
use scsi::unit_attention::UnitAttention;
use std::sync::Arc;

impl LogicalUnit {
    /// Fixes TAS of the control mode page (SPC-4 7.5.8 "Control mode page"), so that hosts cannot
    /// change it, and informs them where it is another one now (MODE PARAMETERS CHANGED). `None`:
    /// it stays as it is, and is theirs to change.
    ///
    /// What is fixed is not stored here: whoever fixes it does so again after each start.
    pub async fn fix_task_aborted_status(self: &Arc<Self>, core: &CoreHandle, fixed: Option<bool>) {
        let Some(unit) = find(core, self.id()) else {
            return;
        };
        if unit.with_state(|state| state.task_aborted_status == fixed) {
            return;
        }
        let edited = change(core, self, move |state| {
            let before = state.modes.current;
            state.task_aborted_status = fixed;
            if let Some(reported) = fixed {
                state.modes.set_task_aborted_status(reported);
            }
            let changed = state.modes.current != before;
            let reported = (None, UnitAttention::ModeParametersChanged);
            Ok(Effects {
                attention_for_others: changed.then_some(reported),
                ..Effects::default()
            })
        });
        // Nothing of it is stored, so it cannot be refused.
        drop(edited.await);
    }
}
