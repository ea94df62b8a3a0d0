//! The shared half of a logical unit, and its coming up and going down on all cores.

use crate::core_unit::{CoreUnit, UnitId, find, register, unregister};
use crate::in_flight::InFlightLimit;
use crate::ports::KnownPorts;
use crate::state::{Identity, Stored, UnitState};
use crate::status_count::Ending;
use crate::store::{Entry, Store};
use crate::travel::Going;
use env::{CoreHandle, CoreId, call_all};
use scsi::mode::ModeParameters;
use scsi::reservation::Reservations;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use volume::{FenceSlot, Fences, OpenError, Volume};

/// I_T nexuses that one logical unit serves at a time.
pub const NEXUSES_MAX: u32 = 4096;

/// A logical unit: the one entrance to an exported volume.
pub struct LogicalUnit {
    id: UnitId,
    home: CoreId,
    identity: Identity,
    /// Read by logs only, never by commands.
    name: Mutex<Arc<str>>,
    store: Store,
    fences: Fences,
    free_slots: Mutex<Vec<FenceSlot>>,
    volume: Mutex<Option<Arc<dyn Volume>>>,
    /// What it has stored could not be read when it came up.
    unreadable: Mutex<Option<OpenError>>,
    going: Going,
    in_flight: InFlightLimit,
    ports: KnownPorts,
}

/// What a logical unit is made of.
pub struct UnitConfig {
    /// Its number inside this program.
    pub id: UnitId,
    /// Where its reservations and other changes are put in order.
    pub home: CoreId,
    /// What it says of itself, for ever.
    pub identity: Identity,
    /// The fences that the volume's leaves look at; [`LogicalUnit::fences_for`] makes them.
    pub fences: Fences,
    /// Where reservations and saved mode pages are kept.
    pub store: Store,
    /// It was made just now: no host can have used it before.
    pub is_new: bool,
}

impl LogicalUnit {
    /// The fences for a volume that is to be exported.
    #[must_use]
    pub fn fences_for() -> Fences {
        Fences::new(NEXUSES_MAX + 1)
    }

    /// A unit that is not up yet.
    #[must_use]
    pub fn new(config: UnitConfig) -> Arc<Self> {
        let slots = (1..config.fences.slot_count())
            .rev()
            .map(FenceSlot)
            .collect();
        Arc::new(Self {
            id: config.id,
            home: config.home,
            name: Mutex::new(config.identity.name.as_str().into()),
            identity: config.identity,
            store: config.store,
            fences: config.fences,
            free_slots: Mutex::new(slots),
            volume: Mutex::new(None),
            unreadable: Mutex::new(None),
            going: Going::default(),
            in_flight: InFlightLimit::default(),
            ports: KnownPorts::new(config.is_new),
        })
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> UnitId {
        self.id
    }

    /// Its name, for people: the one that it was given last.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives it another name, which no host sees.
    pub fn rename(&self, name: &str) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name.into();
    }

    /// Sets the most bytes that commands may hold, over all cores and sessions, or lifts it.
    pub fn set_bytes_in_flight_max(&self, most: Option<u64>) {
        self.in_flight.set(most);
    }

    pub(crate) fn in_flight_limit(&self) -> &InFlightLimit {
        &self.in_flight
    }

    /// What it says of itself.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The core that orders its changes.
    #[must_use]
    pub fn home(&self) -> CoreId {
        self.home
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn fences(&self) -> &Fences {
        &self.fences
    }

    pub(crate) fn ports(&self) -> &KnownPorts {
        &self.ports
    }

    pub(crate) fn going(&self) -> &Going {
        &self.going
    }

    pub(crate) fn take_slot(&self) -> Option<FenceSlot> {
        self.free_slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    pub(crate) fn give_slot_back(&self, slot: FenceSlot) {
        self.fences.raise(slot);
        self.free_slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(slot);
    }

    pub(crate) fn current_volume(&self) -> Option<Arc<dyn Volume>> {
        self.volume
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

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
            &self.identity,
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
        let key = &self.identity.store_key;
        let broken = |what: &str, why: &dyn Display| OpenError {
            cause: format!("the stored {what} cannot be used: {why}"),
            next_step: self.store.way_out(key),
        };
        let mut stored = Stored::default();
        match self.store.load(core, key, Entry::Reservations).await {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                stored.reservations = Reservations::from_bytes(&bytes)
                    .map_err(|error| broken("reservations", &error))?;
                stored.reservations.power_on();
            }
            Err(error) => return Err(broken("reservations", &error)),
        }
        match self.store.load(core, key, Entry::ModePages).await {
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

    pub(crate) fn set_unreadable(&self, why: Option<OpenError>) {
        *self
            .unreadable
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Why it may not serve, whatever its volume is: what is stored of it could not be read.
    #[must_use]
    pub fn unreadable(&self) -> Option<OpenError> {
        let unreadable = self.unreadable.lock();
        unreadable.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_volume(&self, volume: Option<Arc<dyn Volume>>) {
        *self.volume.lock().unwrap_or_else(PoisonError::into_inner) = volume;
    }

    /// Opens the volume anew on every core and says so in the state; the reason for being offline
    /// where that fails on any of them.
    pub(crate) async fn open_lanes(self: &Arc<Self>, core: &CoreHandle) -> Result<(), OpenError> {
        let Some(volume) = self.current_volume() else {
            return Err(OpenError {
                cause: "the volume has not been opened".to_owned(),
                next_step: "see the reason in `causeway lun show`".to_owned(),
            });
        };
        let id = self.id;
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
        find(core, self.id)?.with_state(|state| state.offline.clone())
    }

    /// How often commands ended with something else than GOOD, over all cores.
    pub async fn endings(&self, core: &CoreHandle) -> BTreeMap<Ending, u64> {
        let id = self.id;
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
        let id = self.id;
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
