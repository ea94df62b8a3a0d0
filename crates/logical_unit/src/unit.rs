//! The shared half of a logical unit.

use crate::copies::StateCopies;
use crate::forwarder::Forwarder;
use crate::going::{Going, StandStill};
use crate::in_flight::InFlightLimit;
use crate::names::UnitId;
use crate::ports::KnownPorts;
use crate::state::Identity;
use crate::store::Store;
use env::CoreId;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::RwLockReadGuard;
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
    /// Where its state is kept on several nodes; in place of the store.
    copies: Mutex<Option<Arc<dyn StateCopies>>>,
    /// The way to the node that serves hosts, where that may be another one.
    forwarder: Mutex<Option<Arc<dyn Forwarder>>>,
    /// What it has stored could not be read when it came up.
    unreadable: Mutex<Option<OpenError>>,
    going: Going,
    in_flight: Arc<InFlightLimit>,
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
    /// The fences that the volume's leaves test; [`LogicalUnit::fences_for`] makes them.
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
            copies: Mutex::new(None),
            forwarder: Mutex::new(None),
            unreadable: Mutex::new(None),
            going: Going::default(),
            in_flight: Arc::default(),
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

    pub(crate) fn in_flight_limit(&self) -> &Arc<InFlightLimit> {
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

    pub(crate) fn copies(&self) -> Option<Arc<dyn StateCopies>> {
        let copies = self.copies.lock();
        copies.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace_copies(&self, copies: Arc<dyn StateCopies>) {
        let mut place = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(copies);
    }

    pub(crate) fn forwarder(&self) -> Option<Arc<dyn Forwarder>> {
        let forwarder = self.forwarder.lock();
        forwarder.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace_forwarder(&self, forwarder: Arc<dyn Forwarder>) {
        let place = self.forwarder.lock();
        *place.unwrap_or_else(PoisonError::into_inner) = Some(forwarder);
    }

    pub(crate) fn fences(&self) -> &Fences {
        &self.fences
    }

    pub(crate) fn ports(&self) -> &KnownPorts {
        &self.ports
    }

    /// Lets nexuses of the unit go from core to core; `None` where a unit attention is being
    /// established for all of them.
    #[must_use]
    pub fn stand_still(&self) -> Option<StandStill> {
        self.going.stand_still()
    }

    /// While it is held, each nexus is on exactly one core.
    pub(crate) async fn keep_going(&self) -> RwLockReadGuard<'_, ()> {
        self.going.keep_going().await
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
}
