//! A unit whose volume goes away and comes back while hosts are logged in.

use crate::admission::HoldKind;
use crate::change::{Effects, change};
use crate::share::find;
use crate::state::{Stored, describe};
use crate::unit::LogicalUnit;
use env::{CoreHandle, call_all};
use scsi::unit_attention::UnitAttention;
use std::sync::Arc;
use volume::{OpenError, Volume};

impl LogicalUnit {
    /// Takes the volume away: the unit is offline from now on and says why. What is under way ends
    /// first, as far as it does within a second; reservations and nexuses stay.
    pub async fn suspend(self: &Arc<Self>, core: &CoreHandle, why: OpenError) {
        self.publish_offline(core, Some(why)).await;
        let Some(unit) = find(core, self.id()) else {
            return;
        };
        let _held = unit.hold_for_change(HoldKind::All, None).await;
        let id = self.id();
        call_all(core, move |core| {
            if let Some(unit) = find(core, id) {
                unit.replace_lane(None);
            }
            Box::pin(async {})
        })
        .await;
        self.set_volume(None);
    }

    /// Gives the unit a volume, in place of one that was taken away or never opened, and brings it
    /// online. Hosts get a unit attention where its size has changed (SBC-4 4.9 "Changing the
    /// capacity"). What it has stored is read again where it could not be.
    ///
    /// # Errors
    /// Why it is still offline: a lane cannot be opened, or what it has stored still cannot be
    /// read.
    pub async fn resume(
        self: &Arc<Self>,
        core: &CoreHandle,
        volume: Arc<dyn Volume>,
    ) -> Result<(), OpenError> {
        let recovered = self.read_again(core).await?;
        let Some(unit) = find(core, self.id()) else {
            return Ok(());
        };
        let shape = volume.shape();
        self.set_volume(Some(volume));
        let _held = unit.hold_for_change(HoldKind::All, None).await;
        let identity = self.identity().clone();
        let edited = change(core, self, move |state| {
            let before = state.block_count();
            let cached = state.shape.map(|shape| shape.caps.volatile_cache);
            state.description = describe(&identity, Some(shape));
            state.shape = Some(shape);
            let volatile = shape.caps.volatile_cache;
            // One that was never open has what was saved, which no host could change since.
            if cached.map_or(!volatile, |cached| cached != volatile) {
                state.modes.set_write_cache(volatile);
            }
            if let Some(stored) = recovered {
                state.recover(stored);
            }
            let changed = state.block_count() != before;
            let reported = (None, UnitAttention::CapacityChanged);
            Ok(Effects {
                attention_for_others: changed.then_some(reported),
                ..Effects::default()
            })
        });
        // Nothing of it is stored, so it cannot be refused.
        drop(edited.await);
        // Only now, when every core has what was stored, may hosts change it.
        self.set_unreadable(None);
        self.open_lanes(core).await
    }

    /// What is stored of it, where that could not be read before.
    async fn read_again(self: &Arc<Self>, core: &CoreHandle) -> Result<Option<Stored>, OpenError> {
        if self.unreadable().is_none() {
            return Ok(None);
        }
        match self.load(core).await {
            Ok(stored) => Ok(Some(stored)),
            Err(error) => {
                self.set_unreadable(Some(error.clone()));
                self.publish_offline(core, Some(error.clone())).await;
                Err(error)
            }
        }
    }
}
