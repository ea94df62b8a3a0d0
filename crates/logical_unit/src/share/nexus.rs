//! One I_T nexus at one logical unit: its unit attentions, its tasks, its right to write.

use super::control::{AbortedBy, TaskControl};
use super::{CoreUnit, find};
use crate::names::{UnitId, UnitPorts};
use crate::state::UnitState;
use crate::travel::{NexusState, Slot};
use env::{CoreHandle, LocalFuture};
use futures_util::Stream as _;
use futures_util::stream::FuturesUnordered;
use scsi::copy::CopyHistory;
use scsi::reservation::{Nexus as NexusPort, Rights};
use scsi::unit_attention::{AttentionQueue, UnitAttention};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;
use units::Now;
use volume::Fence;

/// How long task management waits for the backend before it quarantines what is left. Together with
/// the adoption by all cores it stays under the 2 s within which a function is answered.
const ABORT_WAIT: Duration = Duration::from_millis(1200);

/// The units that a session sees: third-party copies may use these, and no others.
pub trait Peers {
    /// A nexus at each of them.
    fn all(&self) -> Vec<Rc<Nexus>>;

    /// Tasks of the session were aborted by another nexus and let go of:
    /// [`crate::TaskWatch::released`] says which, and what becomes of each.
    fn released(&self);
}

/// One I_T nexus at one logical unit. It lives on the core of its connection.
pub struct Nexus {
    unit: Rc<CoreUnit>,
    port: NexusPort,
    /// As all nodes of a unit with copies call them.
    ports: RefCell<UnitPorts>,
    read_only: Cell<bool>,
    fence: Cell<Fence>,
    /// Absent once it has gone to another core.
    slot: RefCell<Option<Slot>>,
    rights: Cell<Rights>,
    pub(crate) attentions: RefCell<AttentionQueue>,
    copies: RefCell<CopyHistory>,
    peers: Weak<dyn Peers>,
    tasks: RefCell<Slab<Rc<TaskControl>>>,
    closed: Cell<bool>,
    /// Another node forwards its commands.
    is_guest: bool,
    /// Some of its commands were forwarded.
    has_forwarded: Cell<bool>,
    /// Nobody knows what became of some of those.
    has_lost: Cell<bool>,
}

/// Why a nexus could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NexusError {
    /// The unit is not up.
    NoSuchUnit,
    /// The unit serves as many nexuses as it can.
    TooMany,
}

impl Nexus {
    /// A nexus at the unit `id` on this core, with the unit attentions that are pending for its
    /// initiator port. Its ports are said as this node calls them.
    ///
    /// # Errors
    /// [`NexusError`].
    pub fn open(
        core: &CoreHandle,
        id: UnitId,
        mut port: NexusPort,
        ports: UnitPorts,
        read_only: bool,
        peers: Weak<dyn Peers>,
    ) -> Result<Rc<Self>, NexusError> {
        let unit = find(core, id).ok_or(NexusError::NoSuchUnit)?;
        let ports = unit.with_state(|state| {
            port.target_port = state.groups.number(port.target_port);
            state.groups.ports(ports)
        });
        Self::open_with(&unit, (port, ports), (read_only, false), peers)
    }

    pub(crate) fn open_with(
        unit: &Rc<CoreUnit>,
        (port, ports): (NexusPort, UnitPorts),
        (read_only, is_guest): (bool, bool),
        peers: Weak<dyn Peers>,
    ) -> Result<Rc<Self>, NexusError> {
        let slot = Slot::take(unit.shared()).ok_or(NexusError::TooMany)?;
        let fence = unit.shared().fences().current(slot.number());
        let attentions = unit.shared().ports().arrives(&port);
        let state = NexusState {
            unit: unit.id(),
            port,
            ports,
            read_only,
            is_guest,
            has_forwarded: false,
            has_lost: false,
            fence,
            slot,
            attentions,
            copies: CopyHistory::new(),
        };
        Ok(Self::enter(unit, state, peers))
    }

    /// Goes on at this core's share of the unit.
    fn enter(unit: &Rc<CoreUnit>, state: NexusState, peers: Weak<dyn Peers>) -> Rc<Self> {
        let rights = unit.with_state(|unit| unit.reservations.rights(&state.port));
        let nexus = Rc::new(Self {
            unit: Rc::clone(unit),
            port: state.port,
            ports: RefCell::new(state.ports),
            read_only: Cell::new(state.read_only),
            fence: Cell::new(state.fence),
            slot: RefCell::new(Some(state.slot)),
            rights: Cell::new(rights),
            attentions: RefCell::new(state.attentions),
            copies: RefCell::new(state.copies),
            peers,
            tasks: RefCell::default(),
            closed: Cell::new(false),
            is_guest: state.is_guest,
            has_forwarded: Cell::new(state.has_forwarded),
            has_lost: Cell::new(state.has_lost),
        });
        unit.enter(&nexus);
        nexus
    }

    /// Leaves this core; `None` where it has tasks, which it would leave behind. Its unit must
    /// stand still ([`crate::LogicalUnit::stand_still`]) until [`Nexus::arrive_from`] has run on
    /// the other core.
    #[must_use]
    pub fn depart(self: Rc<Self>) -> Option<NexusState> {
        if !self.tasks.borrow().is_empty() {
            return None;
        }
        let slot = self.slot.borrow_mut().take()?;
        self.unit.leave_nexus(&self);
        Some(NexusState {
            unit: self.unit.shared().id(),
            port: self.port.clone(),
            ports: self.ports.borrow().clone(),
            read_only: self.read_only.get(),
            is_guest: self.is_guest,
            has_forwarded: self.has_forwarded.get(),
            has_lost: self.has_lost.get(),
            fence: self.fence.get(),
            slot,
            attentions: self.attentions.take(),
            copies: self.copies.take(),
        })
    }

    /// Goes on, on this core, as it was on another one: no unit attention reports it, and what
    /// reservations know of it stays.
    ///
    /// # Errors
    /// The unit is not up here.
    pub fn arrive_from(
        core: &CoreHandle,
        state: NexusState,
        peers: Weak<dyn Peers>,
    ) -> Result<Rc<Self>, NexusError> {
        let unit = find(core, state.unit).ok_or(NexusError::NoSuchUnit)?;
        Ok(Self::enter(&unit, state, peers))
    }

    /// The unit's share on this core.
    #[must_use]
    pub fn unit(&self) -> &Rc<CoreUnit> {
        &self.unit
    }

    /// Who it is, as reservations know it.
    #[must_use]
    pub fn port(&self) -> &NexusPort {
        &self.port
    }

    /// Another node forwards its commands: they are done here, or not at all.
    pub(crate) fn is_guest(&self) -> bool {
        self.is_guest
    }

    /// The owner may know it from now on.
    pub(crate) fn was_forwarded(&self) {
        self.has_forwarded.set(true);
    }

    /// Nobody knows what became of a command of it that was forwarded.
    pub(crate) fn loses(&self) {
        self.has_lost.set(true);
    }

    /// The owner has to say that it is over.
    pub(crate) fn has_lost(&self) -> bool {
        self.has_lost.get()
    }

    /// The owner may know it.
    pub(crate) fn has_forwarded(&self) -> bool {
        self.has_forwarded.get()
    }

    pub(crate) fn ports(&self) -> UnitPorts {
        self.ports.borrow().clone()
    }

    /// Goes on with other ports: pages 83h and 88h say so from now on, and a unit attention reports
    /// it (SPC-4 "INQUIRY DATA HAS CHANGED").
    pub fn set_ports(&self, ports: UnitPorts) {
        let ports = self.unit.with_state(|state| state.groups.ports(ports));
        if *self.ports.borrow() != ports {
            self.ports.replace(ports);
            self.establish(UnitAttention::InquiryChanged);
        }
    }

    pub(crate) fn fence(&self) -> Fence {
        self.fence.get()
    }

    /// What reservations leave it.
    pub(crate) fn rights(&self) -> Rights {
        self.rights.get()
    }

    pub(crate) fn adopt(&self, state: &UnitState) {
        self.rights.set(state.reservations.rights(&self.port));
    }

    /// The grant allows reading only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only.get()
    }

    /// Changes what the grant allows. Where it forbids what it allowed before, writes that have
    /// arrived and are not with the backend are refused as if they came now, what the backend has
    /// is waited for and answered as it ends; when the future is ready nothing of this nexus is
    /// written any more, but what is in quarantine, which is answered TASK ABORTED.
    pub fn set_read_only(&self, read_only: bool) -> Option<LocalFuture<()>> {
        if self.read_only.replace(read_only) || !read_only {
            return None;
        }
        self.raise_fence();
        let writes = self.all_tasks().into_iter().filter(|task| task.writes());
        Some(abort(&self.unit, writes.collect(), AbortedBy::ReadOnly))
    }

    /// Adds a unit attention.
    pub fn establish(&self, attention: UnitAttention) {
        self.attentions.borrow_mut().establish(attention);
    }

    /// REPORT LUNS was answered: the initiator knows the list now.
    pub fn luns_reported(&self) {
        self.attentions.borrow_mut().luns_reported();
    }

    pub(crate) fn copies(&self) -> &RefCell<CopyHistory> {
        &self.copies
    }

    /// Every unit that the initiator sees through this session, as nexuses of this core.
    pub(crate) fn session(&self) -> Vec<Rc<Self>> {
        self.peers
            .upgrade()
            .map(|peers| peers.all())
            .unwrap_or_default()
    }

    /// Notifies the session that some of its tasks are no longer its concern, if there are such.
    fn notify_released(&self) {
        let any = self
            .tasks
            .borrow()
            .iter()
            .any(|(_, task)| task.is_released());
        if let Some(peers) = self.peers.upgrade().filter(|_| any) {
            peers.released();
        }
    }

    /// A task begins; answers its place, for [`task_ends`](Self::task_ends).
    pub(crate) fn task_begins(&self, control: Rc<TaskControl>) -> usize {
        self.tasks.borrow_mut().insert(control)
    }

    pub(crate) fn task_ends(&self, place: usize) {
        self.tasks.borrow_mut().remove(place);
    }

    /// Tasks that have arrived and not ended.
    #[must_use]
    pub fn live_tasks(&self) -> usize {
        self.tasks.borrow().len()
    }

    pub(crate) fn task(&self, tag: u64) -> Option<Rc<TaskControl>> {
        let tasks = self.tasks.borrow();
        // The last to begin: an initiator may use the tag of an aborted task again while the
        // backend still has that.
        let named = tasks.iter().filter(|(_, task)| task.tag() == tag);
        let last = named.max_by_key(|(_, task)| task.task_id().arrival());
        last.map(|(_, task)| Rc::clone(task))
    }

    pub(crate) fn all_tasks(&self) -> Vec<Rc<TaskControl>> {
        self.tasks_but(None)
    }

    /// Every task but the one with this tag, oldest first.
    pub(crate) fn tasks_but(&self, spare: Option<u64>) -> Vec<Rc<TaskControl>> {
        let tasks = self.tasks.borrow();
        let named = tasks.iter().filter(|(_, task)| Some(task.tag()) != spare);
        let mut found: Vec<_> = named.map(|(_, task)| Rc::clone(task)).collect();
        found.sort_by_key(|task| task.task_id().arrival());
        found
    }

    /// Takes the right to write from everything that was handed down so far.
    pub(crate) fn raise_fence(&self) {
        self.fence
            .set(self.unit.shared().fences().raise(self.fence.get().slot));
    }

    /// ABORT TASK. The task is marked when this returns; what the future waits for is the backend.
    pub fn abort_task(&self, tag: u32) -> LocalFuture<()> {
        self.abort_own(self.task(u64::from(tag)).into_iter().collect())
    }

    /// ABORT TASK SET: every task of this nexus is marked when this returns.
    pub fn abort_task_set(&self) -> LocalFuture<()> {
        self.abort_own(self.all_tasks())
    }

    /// Where nobody knows what became of a task, the function is never answered: its session ends.
    fn abort_own(&self, tasks: Vec<Rc<TaskControl>>) -> LocalFuture<()> {
        let may_be_lost = tasks.iter().filter(|it| it.is_forwarded());
        let may_be_lost: Vec<_> = may_be_lost.map(Rc::clone).collect();
        let aborted = abort(&self.unit, tasks, AbortedBy::Own);
        if may_be_lost.is_empty() {
            return aborted;
        }
        Box::pin(async move {
            aborted.await;
            if may_be_lost.iter().any(|it| it.is_lost()) {
                std::future::pending::<()>().await;
            }
        })
    }

    /// It is closed from now on. `false` the first time.
    pub(crate) fn is_closed_already(&self) -> bool {
        self.closed.replace(true)
    }

    /// The task of this tag has not ended here.
    #[must_use]
    pub fn has_task(&self, tag: u32) -> bool {
        self.task(u64::from(tag)).is_some()
    }
}

/// Aborts tasks of one core, at once, and waits until the backend has let go of them, or until what
/// it still has is quarantined: within 2 s in any case.
pub(crate) fn abort(
    unit: &Rc<CoreUnit>,
    tasks: Vec<Rc<TaskControl>>,
    by: AbortedBy,
) -> LocalFuture<()> {
    for task in &tasks {
        task.abort(unit, by);
    }
    unit.changed().wake_all();
    // What was given up has been waited for.
    let wait = match by {
        AbortedBy::GivenUp => Duration::ZERO,
        AbortedBy::Own | AbortedBy::Other { .. } | AbortedBy::ReadOnly => ABORT_WAIT,
    };
    let deadline = unit.core().now().after(wait);
    let unit = Rc::clone(unit);
    Box::pin(async move {
        let_go(&unit, &tasks, deadline).await;
        let mut released = false;
        for task in &tasks {
            released |= task.release();
        }
        if released {
            unit.nexuses()
                .iter()
                .for_each(|nexus| nexus.notify_released());
        }
    })
}

/// Puts the blocks of writes that the backend has out of reach, waits for the backend, and lets go
/// of what it still has after a while.
async fn let_go(unit: &Rc<CoreUnit>, tasks: &[Rc<TaskControl>], deadline: Now) {
    let mut timer = unit.core().sleep_until(deadline);
    let mut writes = Vec::new();
    for task in tasks {
        task.writes_in_backend(unit, &mut writes);
    }
    let mut secluding: FuturesUnordered<_> = writes
        .iter()
        .map(|(unit, task)| task.seclude(unit))
        .collect();
    while poll_fn(|cx| Pin::new(&mut secluding).poll_next(cx))
        .await
        .is_some()
    {}
    let mut is_late = false;
    poll_fn(|cx| {
        is_late = is_late || timer.as_mut().poll(cx).is_ready();
        let is_over =
            |task: &Rc<TaskControl>| task.is_harmless() || (is_late && task.may_be_quarantined());
        if tasks.iter().all(is_over) {
            return Poll::Ready(());
        }
        unit.changed().register(cx.waker());
        Poll::Pending
    })
    .await;
    for task in tasks.iter().filter(|task| !task.is_harmless()) {
        task.quarantine(unit);
    }
}
