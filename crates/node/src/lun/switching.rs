//! A layer comes between or goes while hosts work: checksums for a LUN that has contents, and none
//! for one that had some.
//!
//! **Contract.** On: the layer's sidecar is made, it comes between, and then it is stored that the
//! LUN has it. Off: that is stored, then the layer goes, and then its sidecar is removed. So a
//! crash leaves the old or the new, and a sidecar that was not followed is never trusted: one that
//! nobody wants is removed when its LUN is opened, and another one is made each time.

use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use crate::lun::failed::backing_failed;
use crate::lun::layers::sidecars;
use manifest::objects::{Lun, Switched};
use manifest::problem::Problem;
use std::rc::Rc;
use volume::OpenError;

impl Inner {
    /// Has a LUN have a layer from now on; one that is offline, when it comes online.
    pub(crate) async fn switch_on(
        self: &Rc<Self>,
        switched: &Switched,
        lun: &Lun,
    ) -> Result<(), Problem> {
        let pools = self.pools();
        let ground = (&self.config, &*pools);
        sidecars::create_later(switched.field, &self.core, ground, lun).await?;
        let Some(unit) = self.unit(&lun.naa) else {
            return Ok(());
        };
        if unit.offline().is_some() {
            return Ok(());
        }
        self.rest_scrub(&lun.naa).await;
        let done = unit
            .switch_on(switched.field, &self.core, ground, lun)
            .await;
        self.go_on_scrubbing(&lun.naa).await;
        done.map_err(|error| backing_failed(&error))
    }

    /// What [`Inner::switch_on`] did is not wanted after all.
    pub(crate) async fn switch_off_again(self: &Rc<Self>, switched: &Switched, lun: &Lun) {
        let unwanted = Lun {
            storage: lun.storage.without(switched.field),
            ..lun.clone()
        };
        if let Err(error) = self.switch_off(switched, &unwanted).await {
            let (lun, still) = (self.name_of(lun), switched.still);
            tracing::warn!(lun, "it is {still}, until a restart: {error}");
        }
    }

    /// Has a LUN no longer have a layer. One that is offline for want of what the layer needs comes
    /// online.
    ///
    /// # Errors
    /// Why that cannot be done before a restart.
    pub(crate) async fn switch_off(
        self: &Rc<Self>,
        switched: &Switched,
        lun: &Lun,
    ) -> Result<(), OpenError> {
        let unit = self.unit(&lun.naa);
        let online = unit.filter(|unit| unit.offline().is_none());
        if let Some(unit) = &online {
            self.rest_scrub(&lun.naa).await;
            let stopped = unit.switch_off(switched.field, &self.core).await;
            self.go_on_scrubbing(&lun.naa).await;
            stopped?;
        }
        let pools = self.pools();
        sidecars::retire(switched.field, &self.core, (&self.config, &pools), lun).await?;
        let journal = self.journal_of(lun);
        if online.is_none() && matches!(journal, PoolJournal::Open(_)) {
            self.renew(lun, &journal).await;
        }
        Ok(())
    }
}
