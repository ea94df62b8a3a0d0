//! A unit's coming up and going down, on all cores.

use crate::share::{CoreUnit, find, register, unregister};
use crate::state::{Stored, UnitState};
use crate::status_count::Ending;
use crate::store::Entry;
use crate::unit::LogicalUnit;
use env::{CoreHandle, call_all};
use scsi::mode::ModeParameters;
use scsi::reservation::Reservations;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;
use volume::{OpenError, OpenErrorKind, Volume};

impl LogicalUnit {
    /// Brings the unit up on every core: loads what it has stored and opens a lane per core.
    ///
    /// # Errors
    /// Why it is offline: the volume cannot be opened, or what it has stored cannot be read
    /// (serving without its reservations could let a host write that was shut out). The unit is
    /// there all the same, keeps its place and says why.
    pub async fn start(
        self: &Arc<Self>,
        core: &CoreHandle,
        volume: Result<Arc<dyn Volume>, OpenError>,
    ) -> Result<(), OpenError> {
        let (stored, unreadable) = match self.load(core).await {
            Ok(stored) => (stored, None),
            Err(error) => (Stored::default(), Some(error)),
        };
        let (volume, missing) = match volume {
            Ok(volume) => (Some(volume), None),
            Err(error) => (None, Some(error)),
        };
        let shape = volume.as_ref().map(|volume| volume.shape());
        self.set_unreadable(unreadable.clone());
        let offline = unreadable.or(missing);
        let state = Arc::new(UnitState::new(
            self.identity(),
            shape,
            stored,
            offline.as_ref(),
        ));
        self.set_volume(volume.filter(|_| offline.is_none()));
        let shared = Arc::clone(self);
        call_all(core, move |core| {
            register(
                core,
                CoreUnit::new(Arc::clone(&shared), core, None, Arc::clone(&state)),
            );
            Box::pin(async {})
        })
        .await;
        match offline {
            Some(offline) => Err(offline),
            None => self.open_lanes(core).await,
        }
    }

    /// Reads again what is stored of it: reservations and mode pages.
    ///
    /// # Errors
    /// What cannot be used.
    pub async fn check_stored(&self, core: &CoreHandle) -> Result<(), OpenError> {
        self.load(core).await.map(|_| ())
    }

    pub(crate) async fn load(&self, core: &CoreHandle) -> Result<Stored, OpenError> {
        let key = &self.identity().store_key;
        let broken = |what: &str, why: &dyn Display| OpenError {
            kind: OpenErrorKind::Damaged,
            cause: format!("the stored {what} cannot be used: {why}"),
            next_step: self.store().next_step(key),
        };
        let mut stored = Stored::default();
        match self.store().load(core, key, Entry::Reservations).await {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                stored.reservations = Reservations::from_bytes(&bytes)
                    .map_err(|error| broken("reservations", &error))?;
                stored.reservations.power_on();
            }
            Err(error) => return Err(broken("reservations", &error)),
        }
        match self.store().load(core, key, Entry::ModePages).await {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                let modes = ModeParameters::from_bytes(&bytes);
                stored.modes =
                    Some(modes.ok_or_else(|| broken("mode pages", &"they are damaged"))?);
            }
            Err(error) => return Err(broken("mode pages", &error)),
        }
        Ok(stored)
    }

    /// Opens the volume anew on every core and says so in the state; the reason for being offline
    /// where that fails on any of them.
    pub(crate) async fn open_lanes(self: &Arc<Self>, core: &CoreHandle) -> Result<(), OpenError> {
        let Some(volume) = self.current_volume() else {
            return Err(OpenError {
                kind: OpenErrorKind::Missing,
                cause: "the volume has not been opened".to_owned(),
                next_step: "see the reason in `causeway lun show`".to_owned(),
            });
        };
        let id = self.id();
        let lanes = call_all(core, move |core| {
            let (volume, core) = (Arc::clone(&volume), Rc::clone(core));
            Box::pin(async move {
                let lane = volume.open(&core).await?;
                if let Some(unit) = find(&core, id) {
                    unit.replace_lane(Some(lane));
                }
                Ok(())
            })
        })
        .await;
        let failed: Option<OpenError> = lanes.into_iter().find_map(Result::err);
        self.publish_offline(core, failed.clone()).await;
        failed.map_or(Ok(()), Err)
    }

    /// Why hosts find it offline, where they do.
    #[must_use]
    pub fn offline(&self, core: &CoreHandle) -> Option<OpenError> {
        find(core, self.id())?.with_state(|state| state.offline.clone())
    }

    /// How often commands ended with something else than GOOD, over all cores.
    pub async fn endings(&self, core: &CoreHandle) -> BTreeMap<Ending, u64> {
        let id = self.id();
        let per_core = call_all(core, move |core| {
            let counts = find(core, id)
                .map(|unit| unit.statuses().read())
                .unwrap_or_default();
            Box::pin(async move { counts })
        });
        let mut all = BTreeMap::new();
        for (ending, count) in per_core.await.into_iter().flatten() {
            *all.entry(ending).or_default() += count;
        }
        all
    }

    /// Takes the unit down on every core. Its nexuses must be closed before.
    pub async fn stop(self: &Arc<Self>, core: &CoreHandle) {
        let id = self.id();
        call_all(core, move |core| {
            let unit = unregister(core, id);
            Box::pin(async move {
                if let Some(unit) = unit {
                    unit.replace_lane(None);
                }
            })
        })
        .await;
        self.set_volume(None);
    }
}
