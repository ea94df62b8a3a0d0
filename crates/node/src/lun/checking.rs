//! Checksums for a LUN that has contents, and none for one that had some.
//!
//! **Contract.** On: the map is made, blocks are checked, and then it is stored that they are. Off:
//! that is stored, then blocks are no longer checked, and then the map is removed. So a crash
//! leaves the old or the new, and a map that was not followed is never trusted: one that nobody
//! wants is removed when its LUN is opened, and another one is made each time.

use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use crate::lun::failed::backing_failed;
use crate::lun::layers::sidecars;
use manifest::objects::Lun;
use manifest::problem::Problem;
use std::rc::Rc;
use volume::OpenError;

/// The field that its layer follows.
const FIELD: &str = "integrity";

impl Inner {
    /// Has a LUN checked from now on; one that is offline, when it comes online.
    pub(crate) async fn check(self: &Rc<Self>, lun: &Lun) -> Result<(), Problem> {
        let pools = self.pools();
        let ground = (&self.config, &*pools);
        sidecars::create_later(FIELD, &self.core, ground, lun).await?;
        let Some(unit) = self.unit(&lun.naa) else {
            return Ok(());
        };
        if unit.offline().is_some() {
            return Ok(());
        }
        self.rest_scrub(&lun.naa).await;
        let checked = unit.check(&self.core, ground, lun).await;
        self.go_on_scrubbing(&lun.naa).await;
        checked.map_err(|error| backing_failed(&error))
    }

    /// What [`Inner::check`] did is not wanted after all.
    pub(crate) async fn stop_checking_again(self: &Rc<Self>, lun: &Lun) {
        let unwanted = Lun {
            storage: lun.storage.without(FIELD),
            ..lun.clone()
        };
        if let Err(error) = self.stop_checking(&unwanted).await {
            let lun = self.name_of(lun);
            tracing::warn!(lun, "it is still checked, until a restart: {error}");
        }
    }

    /// Has a LUN no longer checked. One that is offline for want of its checksums comes online.
    ///
    /// # Errors
    /// Why that cannot be done before a restart.
    pub(crate) async fn stop_checking(self: &Rc<Self>, lun: &Lun) -> Result<(), OpenError> {
        let unit = self.unit(&lun.naa);
        let online = unit.filter(|unit| unit.offline().is_none());
        if let Some(unit) = &online {
            self.rest_scrub(&lun.naa).await;
            let stopped = unit.stop_checking(&self.core).await;
            self.go_on_scrubbing(&lun.naa).await;
            stopped?;
        }
        let pools = self.pools();
        sidecars::retire(FIELD, &self.core, (&self.config, &pools), lun).await?;
        let journal = self.journal_of(lun);
        if online.is_none() && matches!(journal, PoolJournal::Open(_)) {
            self.renew(lun, &journal).await;
        }
        Ok(())
    }
}
