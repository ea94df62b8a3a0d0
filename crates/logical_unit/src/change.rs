//! Changes of a unit's state: made on its home core, one after the other, adopted by every core,
//! answered then.
//!
//! ```text
//!   any core --edit--> home core: [turn] edit a copy -> store it -> every core adopts it ->
//!         unit attentions,
//!                                 aborts -> answer
//! ```
//!
//! A crash before the store has it leaves the old state, after it the new one; nobody was answered
//! yet. Where the store says that it failed, the change is refused, and the store holds the old
//! state or the new one: the next change of the same kind then stores what it leaves, even where it
//! changes nothing that is kept.

use crate::admission::HoldKind;
use crate::copies::{NotKept, StateCopies};
use crate::names::UnitId;
use crate::outcome::Refusal;
use crate::ports::KnownPorts;
use crate::share::control::{AbortedBy, TaskControl};
use crate::share::nexus::{Nexus, abort};
use crate::share::{CoreUnit, find};
use crate::state::{UnitState, describe};
use crate::store::Entry;
use crate::unit::LogicalUnit;
use env::{CoreHandle, call, call_all};
use scsi::mode::ModePages;
use scsi::reservation::Nexus as NexusPort;
use scsi::unit_attention::UnitAttention;
use scsi::{AdditionalSense, Sense, SenseKey, Status};
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use volume::{Io, Op, OpenError, OpenErrorKind, Origin};

/// What follows from a change.
#[derive(Default)]
pub(crate) struct Effects {
    /// To be stored before anybody sees the change.
    pub(crate) store: Vec<(Entry, Vec<u8>)>,
    /// As `store`, for a change that leaves an entry as it was: stored only where an earlier save
    /// of the entry failed. What that one left would else be there after the next start, although
    /// this change was answered.
    pub(crate) store_again: Vec<(Entry, Vec<u8>)>,
    /// Of a unit with copies: what other nodes have of its state already, where that is not what
    /// this one had before the change.
    pub(crate) copied: Option<Vec<u8>>,
    /// Unit attentions for single nexuses.
    pub(crate) attentions: Vec<(NexusPort, UnitAttention)>,
    /// A unit attention for every nexus but this one.
    pub(crate) attention_for_others: Option<(Option<NexusPort>, UnitAttention)>,
    /// Nexuses whose tasks are aborted, and the one task that is not: the one that asks for it.
    pub(crate) abort: Vec<NexusPort>,
    /// The task that asks.
    pub(crate) spare: Option<(NexusPort, u64)>,
}

type Edit = Box<dyn FnOnce(&mut UnitState) -> Result<Effects, Refusal> + Send>;

impl CoreUnit {
    /// One change, on the home core.
    async fn change_here(&self, edit: Edit) -> Result<(), Refusal> {
        let mut unsure = self.change_turn().await;
        let mut state = UnitState::clone(&self.state());
        let effects = edit(&mut state)?;
        match self.shared().copies() {
            Some(copies) => self.copy_state(&*copies, &state, effects.copied).await?,
            None => {
                let again = effects.store_again.into_iter();
                let again = again.filter(|(entry, _)| unsure.contains(entry));
                let entries = effects.store.into_iter().chain(again).collect();
                self.store(&mut unsure, entries).await?;
            }
        }
        state.version += 1;
        let _going = self.shared().keep_going().await;
        publish(self.core(), self.id(), Arc::new(state)).await;
        follow_up(
            self.core(),
            self.id(),
            effects.attentions,
            effects.attention_for_others,
        )
        .await;
        if !effects.abort.is_empty() {
            abort_nexuses(self.core(), self.id(), effects.abort, effects.spare).await;
        }
        Ok(())
    }
}

impl CoreUnit {
    /// All nodes in sync keep what has changed, where this one serves hosts. Elsewhere nothing is
    /// kept: what this node goes on with one day is what it was sent.
    async fn copy_state(
        &self,
        copies: &dyn StateCopies,
        state: &UnitState,
        known: Option<Vec<u8>>,
    ) -> Result<(), Refusal> {
        if !state.is_served() {
            return Ok(());
        }
        let (known, new) = (
            known.unwrap_or_else(|| self.with_state(UnitState::to_copy)),
            state.to_copy(),
        );
        if known == new {
            return Ok(());
        }
        Ok(copies.keep(self.core(), new).await?)
    }

    async fn store(
        &self,
        unsure: &mut BTreeSet<Entry>,
        entries: Vec<(Entry, Vec<u8>)>,
    ) -> Result<(), Refusal> {
        for (entry, bytes) in entries {
            let (store, key) = (self.shared().store(), &self.shared().identity().store_key);
            if let Err(error) = store.save(self.core(), key, entry, bytes).await {
                tracing::error!(lun = &*self.shared().name(), %error, "a change could not be stored, so it is refused");
                if error.kind() != io::ErrorKind::Unsupported {
                    unsure.insert(entry);
                }
                return Err(not_stored(entry, &error));
            }
            unsure.remove(&entry);
        }
        Ok(())
    }
}

impl From<NotKept> for Refusal {
    fn from(why: NotKept) -> Self {
        match why {
            NotKept::NotHere => Self::Status(Status::Busy),
            // A status would say that it is, or is not.
            NotKept::Unknown => Self::Fenced,
        }
    }
}

/// A store without room is no broken device: the sense data says what is short, and the host may
/// ask again when there is room.
///
/// spec: SPC-4 5.13.7 "Registering", 5.13.5 "Preserving persistent reservations and registrations":
/// without the resources to hold a registration the command ends with INSUFFICIENT REGISTRATION
/// RESOURCES; SPC-4 6.11 "MODE SELECT(6) command" names none, and table "ASC and ASCQ assignments"
/// has INSUFFICIENT RESOURCES for direct-access devices.
fn not_stored(entry: Entry, error: &io::Error) -> Refusal {
    let is_full =
        [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
    match (is_full, entry) {
        (true, Entry::Reservations) => {
            Sense::illegal_request(AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES).into()
        }
        (true, Entry::ModePages) => {
            Sense::illegal_request(AdditionalSense::INSUFFICIENT_RESOURCES).into()
        }
        (false, _) => Sense::new(
            SenseKey::HardwareError,
            AdditionalSense::INTERNAL_TARGET_FAILURE,
        )
        .into(),
    }
}

/// Makes `state` the state of every core.
async fn publish(core: &CoreHandle, id: UnitId, state: Arc<UnitState>) {
    call_all(core, move |core| {
        if let Some(unit) = find(core, id) {
            unit.adopt(Arc::clone(&state));
        }
        Box::pin(async {})
    })
    .await;
}

async fn follow_up(
    core: &CoreHandle,
    id: UnitId,
    single: Vec<(NexusPort, UnitAttention)>,
    others: Option<(Option<NexusPort>, UnitAttention)>,
) {
    if single.is_empty() && others.is_none() {
        return;
    }
    let Some(unit) = find(core, id) else { return };
    let establish_away = |ports: &KnownPorts| {
        for (port, attention) in &single {
            ports.establish(*attention, |away| away == port);
        }
        if let Some((except, attention)) = &others {
            ports.establish(*attention, |away| except.as_ref() != Some(away));
        }
    };
    // Before and after: one that comes or goes meanwhile gets it in one of its places.
    establish_away(unit.shared().ports());
    let (single_here, others_here) = (single.clone(), others.clone());
    call_all(core, move |core| {
        for nexus in find(core, id).iter().flat_map(|unit| unit.nexuses()) {
            let of_this = single_here.iter().filter(|(port, _)| port == nexus.port());
            for (_, attention) in of_this {
                nexus.establish(*attention);
            }
            if let Some((except, attention)) = &others_here
                && except.as_ref() != Some(nexus.port())
            {
                nexus.establish(*attention);
            }
        }
        Box::pin(async {})
    })
    .await;
    establish_away(unit.shared().ports());
}

/// Aborts every task of these nexuses on all cores.
async fn abort_nexuses(
    core: &CoreHandle,
    id: UnitId,
    ports: Vec<NexusPort>,
    spare: Option<(NexusPort, u64)>,
) {
    call_all(core, move |core| {
        let unit = find(core, id);
        let (ports, spare) = (ports.clone(), spare.clone());
        Box::pin(async move {
            let Some(unit) = unit else { return };
            let mut gone = Aborting::new(&unit);
            for nexus in unit
                .nexuses()
                .iter()
                .filter(|nexus| ports.contains(nexus.port()))
            {
                let own = spare.as_ref().filter(|(port, _)| port == nexus.port());
                let tasks = nexus.tasks_but(own.map(|(_, tag)| *tag));
                gone.add(nexus, tasks, own.is_some(), true);
            }
            gone.wait().await;
        })
    })
    .await;
}

/// Tasks of one core that are aborted together for one nexus.
struct Aborting {
    unit: Rc<CoreUnit>,
    reported: bool,
    own: Vec<Rc<TaskControl>>,
    others: Vec<Rc<TaskControl>>,
}

impl Aborting {
    fn new(unit: &Rc<CoreUnit>) -> Self {
        Self {
            unit: Rc::clone(unit),
            reported: unit.with_state(|state| state.modes.current.task_aborted_status),
            own: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Adds tasks of a nexus: the asking one, or another. Another one whose tasks end without TASK
    /// ABORTED learns of it by a unit attention, unless a stronger one says it anyway (SAM-5 5.6
    /// "Aborting commands").
    fn add(&mut self, nexus: &Nexus, tasks: Vec<Rc<TaskControl>>, asks: bool, attention: bool) {
        if asks {
            self.own.extend(tasks);
            return;
        }
        if attention && !self.reported && !tasks.is_empty() {
            nexus.establish(UnitAttention::CommandsCleared);
        }
        self.others.extend(tasks);
    }

    /// Aborts them all at once, and waits until the unit has let go of them.
    async fn wait(self) {
        // A command has asked, not a function: the own session does not know which of its commands
        // have ended.
        let own = abort(&self.unit, self.own, AbortedBy::Other { reported: false });
        let by = AbortedBy::Other {
            reported: self.reported,
        };
        let others = abort(&self.unit, self.others, by);
        own.await;
        others.await;
    }
}

/// Aborts the tasks of every nexus but that of `asks`, on all cores. Those whose tasks end learn of
/// it by a unit attention where that is asked for.
pub(crate) async fn abort_others(core: &CoreHandle, id: UnitId, asks: NexusPort, attention: bool) {
    call_all(core, move |core| {
        let (unit, asks) = (find(core, id), asks.clone());
        Box::pin(async move {
            let Some(unit) = unit else { return };
            let mut gone = Aborting::new(&unit);
            for nexus in unit.nexuses().iter().filter(|it| *it.port() != asks) {
                gone.add(nexus, nexus.all_tasks(), false, attention);
            }
            gone.wait().await;
        })
    })
    .await;
}

/// Runs one change of a unit from any core, and waits until every core has adopted it.
///
/// # Errors
/// What `edit` says; nothing has changed then. INTERNAL TARGET FAILURE where it could not be
/// stored.
pub(crate) async fn change(
    core: &CoreHandle,
    shared: &LogicalUnit,
    edit: impl FnOnce(&mut UnitState) -> Result<Effects, Refusal> + Send + 'static,
) -> Result<(), Refusal> {
    let id = shared.id();
    let changed = call(core, shared.home(), move |core| {
        let unit = find(core, id);
        Box::pin(async move {
            match unit {
                Some(unit) => unit.change_here(Box::new(edit)).await,
                None => Ok(()),
            }
        })
    })
    .await;
    changed.unwrap_or(Ok(()))
}

/// How long an answer waits for a change that another one holds up: with the wait for aborted
/// tasks, less than the 2 s of a task management function.
const CHANGE_SOON: Duration = Duration::from_millis(500);

/// A change of which nothing is stored, and whose answer does not wait for ever while another
/// change hangs in its store: it takes its turn all the same, later.
async fn change_soon(
    core: &CoreHandle,
    shared: &Arc<LogicalUnit>,
    edit: impl FnOnce(&mut UnitState) + Send + 'static,
) {
    let (notify, mut made) = oneshot::channel();
    let (own, shared) = (Rc::clone(core), Arc::clone(shared));
    core.spawn(Box::pin(async move {
        let changed = change(&own, &shared, move |state| {
            edit(state);
            Ok(Effects::default())
        });
        // Nothing of it is stored, so it cannot be refused; perhaps nobody waits any more.
        drop(changed.await);
        let _ = notify.send(());
    }));
    let mut timer = core.sleep_until(core.now().after(CHANGE_SOON));
    poll_fn(|cx| match Pin::new(&mut made).poll(cx) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending => timer.as_mut().poll(cx),
    })
    .await;
}

/// Waits, on any core, for the changes that are under way.
pub(crate) async fn changes_are_over(core: &CoreHandle, shared: &LogicalUnit) {
    let id = shared.id();
    let over = call(core, shared.home(), move |core| {
        let unit = find(core, id);
        Box::pin(async move {
            if let Some(unit) = unit {
                drop(unit.change_turn().await);
            }
        })
    });
    // Without a home core nothing changes any more.
    over.await.unwrap_or(());
}

impl LogicalUnit {
    pub(crate) async fn publish_offline(
        self: &Arc<Self>,
        core: &CoreHandle,
        offline: Option<OpenError>,
    ) {
        let edited = change(core, self, move |state| {
            state.offline = offline;
            Ok(Effects::default())
        });
        // Nothing of it is stored, so it cannot be refused.
        drop(edited.await);
    }

    /// Adopts the volume's facts as they are now, after it has grown or shrunk, and establishes a
    /// unit attention for every nexus (SBC-4 4.9 "Changing the capacity": CAPACITY DATA HAS
    /// CHANGED).
    ///
    /// Everything is held meanwhile: no command that was admitted under one size runs under the
    /// other. Lanes go first where the unit grows, the state goes first where it shrinks.
    ///
    /// # Errors
    /// Why a lane could not be opened; the unit is offline then.
    pub async fn reshape(self: &Arc<Self>, core: &CoreHandle) -> Result<(), OpenError> {
        let Some(shape) = self.current_volume().map(|volume| volume.shape()) else {
            return Ok(());
        };
        let Some(unit) = find(core, self.id()) else {
            return Ok(());
        };
        let _held = unit.hold_for_change(HoldKind::All, None).await;
        let before = Some(unit).map(|unit| unit.with_state(UnitState::block_count));
        let grows = before.is_none_or(|before| shape.block_count >= before);
        if grows {
            self.open_lanes(core).await?;
        }
        let identity = self.identity().clone();
        let edited = change(core, self, move |state| {
            state.description = describe(&identity, Some(shape));
            state.shape = Some(shape);
            Ok(Effects {
                attention_for_others: Some((None, UnitAttention::CapacityChanged)),
                ..Effects::default()
            })
        });
        // Nothing of it is stored, so it cannot be refused.
        drop(edited.await);
        if grows {
            Ok(())
        } else {
            self.open_lanes(core).await
        }
    }

    /// Adopts whether the volume has a volatile cache, after that has changed, and establishes a
    /// unit attention for every nexus (SPC-4 5.14 "Unit attention": MODE PARAMETERS CHANGED). WCE
    /// becomes what is so, whatever a host had set or saved.
    ///
    /// Everything is held meanwhile. What was acknowledged under a volatile cache is flushed before
    /// hosts are informed that there is none.
    ///
    /// # Errors
    /// A lane could not be opened, and the unit is offline; or the flush failed, and hosts still
    /// see the volatile cache.
    pub async fn adopt_cache(self: &Arc<Self>, core: &CoreHandle) -> Result<(), OpenError> {
        let Some(shape) = self.current_volume().map(|volume| volume.shape()) else {
            return Ok(());
        };
        let Some(unit) = find(core, self.id()) else {
            return Ok(());
        };
        let _held = unit.hold_for_change(HoldKind::All, None).await;
        self.open_lanes(core).await?;
        if !shape.caps.volatile_cache
            && let Some(lane) = unit.lane()
        {
            let flushed = lane.submit(Io::new(Op::Flush, Origin::default())).await;
            flushed.map_err(|error| OpenError {
                kind: OpenErrorKind::Other,
                cause: format!("what was acknowledged could not be flushed: {error:?}"),
                next_step: "check the disk; then set the mode again".to_owned(),
            })?;
        }
        let identity = self.identity().clone();
        let edited = change(core, self, move |state| {
            let before = state.modes;
            state.description = describe(&identity, Some(shape));
            state.shape = Some(shape);
            state.modes.set_write_cache(shape.caps.volatile_cache);
            let mut effects = Effects::default();
            if state.modes.current != before.current {
                effects.attention_for_others = Some((None, UnitAttention::ModeParametersChanged));
            }
            if state.modes.saved != before.saved {
                let saved = state.modes.saved.to_bytes().to_vec();
                effects.store.push((Entry::ModePages, saved));
            }
            Ok(effects)
        });
        edited.await.map_err(|_| OpenError {
            kind: OpenErrorKind::Other,
            cause: "the mode pages could not be stored".to_owned(),
            next_step: "check the state directory; then set the mode again".to_owned(),
        })
    }

    /// LOGICAL UNIT RESET (SAM-5 6.3.3 "Logical unit reset"): aborts every task of every nexus but
    /// those of `asks`, ends a reservation of SPC-2 and puts the saved mode pages in effect.
    /// Answered within 2 s. A nexus that asks uses [`Nexus::reset_unit`].
    pub async fn reset(
        self: &Arc<Self>,
        core: &CoreHandle,
        asks: &NexusPort,
        reported: UnitAttention,
    ) {
        abort_others(core, self.id(), asks.clone(), false).await;
        self.establish_for_all(core, reported).await;
        change_soon(core, self, |state| {
            state.reservations.reset();
            state.modes = ModePages::from_saved(state.modes.saved);
        })
        .await;
    }

    /// Establishes a unit attention for every nexus.
    pub async fn establish_for_all(self: &Arc<Self>, core: &CoreHandle, attention: UnitAttention) {
        let _going = self.keep_going().await;
        follow_up(core, self.id(), Vec::new(), Some((None, attention))).await;
    }
}

/// The nexus is gone: its reservation of SPC-2 ends with it.
pub(crate) async fn nexus_lost(nexus: &Rc<Nexus>) {
    let port = nexus.port().clone();
    let holds = nexus
        .unit()
        .with_state(|state| state.reservations.clone().nexus_lost(&port));
    if !holds {
        return;
    }
    change_soon(nexus.unit().core(), nexus.unit().shared(), move |state| {
        state.reservations.nexus_lost(&port);
    })
    .await;
}
