//! MODE SELECT.

use crate::change::{Effects, change};
use crate::outcome::Refusal;
use crate::store::Entry;
use crate::task::Task;
use scsi::cdb::ModeSelect;
use scsi::unit_attention::UnitAttention;
use units::Buf;

impl Task {
    /// spec: SPC-4 6.11 "MODE SELECT (6) command": the other nexuses get a unit attention for a
    /// change.
    pub(super) async fn mode_select(&self, select: ModeSelect, list: &Buf) -> Result<Buf, Refusal> {
        self.admit(None).await?;
        let list = list.to_vec();
        let read_only = self.nexus.is_read_only();
        let own = self.nexus.port().clone();
        change(self.unit().core(), self.unit().shared(), move |state| {
            let new = state
                .modes
                .select(&select, &list, &state.mode_unit(read_only))?;
            let mut effects = Effects::default();
            if new.current != state.modes.current {
                effects.attention_for_others =
                    Some((Some(own), UnitAttention::ModeParametersChanged));
            }
            if select.save_pages {
                let saved = (Entry::ModePages, new.saved.to_bytes().to_vec());
                if new.saved == state.modes.saved {
                    effects.store_again.push(saved);
                } else {
                    effects.store.push(saved);
                }
            }
            state.modes = new;
            Ok(effects)
        })
        .await?;
        Ok(Buf::empty())
    }
}
