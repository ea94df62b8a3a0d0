//! One core's share of a logical unit: its lane, its half of the task set, its copy of the unit's
//! state.

pub(crate) mod control;
pub(crate) mod hold;
pub(crate) mod nexus;

use crate::admission::{Admission, HoldId, HoldKind, TaskId};
use crate::hold_home::HoldHome;
use crate::names::UnitId;
use crate::news::{Here, Probed};
use crate::state::UnitState;
use crate::status_count::StatusCount;
use crate::store::Entry;
use crate::times::{Figures, StageBrief, StageTimes};
use crate::unit::LogicalUnit;
use crate::wait_list::WaitList;
use env::{CoreHandle, CoreId};
use nexus::Nexus;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use units::LbaRange;
use units::histogram::{Glance, News};
use volume::Lane;

/// The logical units of one core, kept in its [`env::Locals`].
#[derive(Default)]
pub(crate) struct Registry(RefCell<BTreeMap<UnitId, Rc<CoreUnit>>>);

impl Registry {
    /// Of these units, but those that are not up.
    pub(crate) fn figures(&self, wanted: &[UnitId]) -> BTreeMap<UnitId, Figures> {
        let units = self.0.borrow();
        let figures = |(id, unit): (&UnitId, &Rc<CoreUnit>)| {
            let figures = Figures {
                times: unit.times.borrow().clone(),
                bytes_in_flight: unit.bytes_in_flight.get(),
                endings: unit.statuses.read(),
            };
            (*id, figures)
        };
        let known = wanted.iter().filter_map(|id| units.get_key_value(id));
        known.map(figures).collect()
    }

    /// What the stages of these units counted since this was asked last.
    pub(crate) fn stage_news(&self, wanted: &[UnitId]) -> News<6> {
        let units = self.0.borrow();
        let mut news = News::default();
        for id in wanted {
            let Some(unit) = units.get(id) else {
                news.nothing();
                continue;
            };
            let times = unit.times.borrow();
            let [read, write] =
                [&times.read, &times.write].map(|it| [&it.total, &it.network, &it.queue]);
            let ([a, b, c], [d, e, f]) = (read, write);
            news.probe(&mut unit.stages_seen.borrow_mut(), [a, b, c, d, e, f]);
        }
        news
    }

    /// Nanoseconds that all commands of each took together.
    pub(crate) fn nanos(&self, wanted: &[UnitId]) -> Vec<u64> {
        let units = self.0.borrow();
        let nanos = |id: &UnitId| units.get(id).map_or(0, |unit| unit.times.borrow().nanos());
        wanted.iter().map(nanos).collect()
    }

    /// Probes these units: see [`crate::news`].
    pub(crate) fn probe(&self, wanted: &[(UnitId, bool)]) -> Here {
        let units = self.0.borrow();
        let mut here = Here::of(wanted.len());
        for (id, may_have_news) in wanted {
            match units.get(id) {
                Some(unit) => {
                    let mut probed = unit.probed.borrow_mut();
                    here.probe(&mut probed, &unit.times.borrow(), *may_have_news);
                }
                None => here.nothing(),
            }
        }
        here
    }

    /// The same of what is read every second.
    pub(crate) fn briefs(&self, wanted: &[UnitId]) -> Vec<StageBrief> {
        let units = self.0.borrow();
        let brief = |id: &UnitId| {
            let unit = units.get(id)?;
            Some(StageBrief::of(&unit.times.borrow()))
        };
        wanted
            .iter()
            .map(|id| brief(id).unwrap_or_default())
            .collect()
    }
}

/// This core's share of the unit `id`, if it is up here.
pub(crate) fn find(core: &CoreHandle, id: UnitId) -> Option<Rc<CoreUnit>> {
    core.locals().get::<Registry>().0.borrow().get(&id).cloned()
}

pub(crate) fn register(core: &CoreHandle, unit: Rc<CoreUnit>) {
    core.locals()
        .get::<Registry>()
        .0
        .borrow_mut()
        .insert(unit.id(), unit);
}

pub(crate) fn unregister(core: &CoreHandle, id: UnitId) -> Option<Rc<CoreUnit>> {
    core.locals().get::<Registry>().0.borrow_mut().remove(&id)
}

/// One core's share.
pub struct CoreUnit {
    shared: Arc<LogicalUnit>,
    core: CoreHandle,
    lane: RefCell<Option<Rc<dyn Lane>>>,
    state: RefCell<Arc<UnitState>>,
    admission: RefCell<Admission>,
    changed: WaitList,
    hold_numbers: Cell<u64>,
    hold_home: HoldHome,
    nexuses: RefCell<Vec<Weak<Nexus>>>,
    traces: Cell<u64>,
    statuses: StatusCount,
    times: RefCell<StageTimes>,
    probed: RefCell<Option<Box<Probed>>>,
    stages_seen: RefCell<Option<Box<[Glance; 6]>>>,
    bytes_in_flight: Cell<u64>,
    /// A command waits until that is less.
    is_waited_for: Cell<bool>,
    immediate_flush: Cell<ImmediateFlush>,
    /// Changes of the state are made one at a time, on the home core: whoever makes one has this
    /// lock. Behind it are the entries of the store whose last save failed: they may differ from
    /// the state, and are saved once more with the next change.
    changes: tokio::sync::Mutex<BTreeSet<Entry>>,
}

impl CoreUnit {
    pub(crate) fn new(
        shared: Arc<LogicalUnit>,
        core: &CoreHandle,
        lane: Option<Rc<dyn Lane>>,
        state: Arc<UnitState>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shared,
            core: Rc::clone(core),
            lane: RefCell::new(lane),
            state: RefCell::new(state),
            admission: RefCell::default(),
            changed: WaitList::default(),
            hold_numbers: Cell::new(0),
            hold_home: HoldHome::default(),
            nexuses: RefCell::default(),
            traces: Cell::new(0),
            statuses: StatusCount::default(),
            times: RefCell::default(),
            probed: RefCell::default(),
            stages_seen: RefCell::default(),
            bytes_in_flight: Cell::new(0),
            is_waited_for: Cell::new(false),
            immediate_flush: Cell::default(),
            changes: tokio::sync::Mutex::default(),
        })
    }

    /// The unit that this is a share of.
    #[must_use]
    pub fn shared(&self) -> &Arc<LogicalUnit> {
        &self.shared
    }

    pub(crate) fn id(&self) -> UnitId {
        self.shared.id()
    }

    pub(crate) fn home(&self) -> CoreId {
        self.shared.home()
    }

    /// The core that it lives on.
    #[must_use]
    pub fn core(&self) -> &CoreHandle {
        &self.core
    }

    /// The unit's state as this core has adopted it.
    #[must_use]
    pub fn state(&self) -> Arc<UnitState> {
        Arc::clone(&self.state.borrow())
    }

    pub(crate) fn with_state<T>(&self, inspect: impl FnOnce(&UnitState) -> T) -> T {
        inspect(&self.state.borrow())
    }

    /// Tasks that have arrived on this core and not ended.
    #[must_use]
    pub fn live_tasks(&self) -> usize {
        self.admission.borrow().live()
    }

    pub(crate) fn lane(&self) -> Option<Rc<dyn Lane>> {
        self.lane.borrow().clone()
    }

    pub(crate) fn replace_lane(&self, lane: Option<Rc<dyn Lane>>) {
        *self.lane.borrow_mut() = lane;
        self.changed.wake_all();
    }

    pub(crate) fn adopt(&self, state: Arc<UnitState>) {
        for nexus in self.nexuses() {
            nexus.adopt(&state);
        }
        *self.state.borrow_mut() = state;
        self.changed.wake_all();
    }

    pub(crate) fn statuses(&self) -> &StatusCount {
        &self.statuses
    }

    pub(crate) fn times(&self) -> &RefCell<StageTimes> {
        &self.times
    }

    /// What tasks of this core hold.
    pub(crate) fn bytes_in_flight(&self) -> &Cell<u64> {
        &self.bytes_in_flight
    }

    pub(crate) fn wait_for_less_in_flight(&self) {
        self.is_waited_for.set(true);
    }

    /// Less is held: who waits for that, or for memory of this core, tries again.
    pub(crate) fn has_less_in_flight(&self) {
        if self.is_waited_for.replace(false) {
            self.core.pool().wake_waiting();
        }
    }

    pub(crate) fn immediate_flush(&self) -> &Cell<ImmediateFlush> {
        &self.immediate_flush
    }

    pub(crate) fn next_trace(&self) -> volume::TraceId {
        let number = self.traces.get() + 1;
        self.traces.set(number);
        volume::TraceId((u64::from(self.core.id().0) << 48) | number)
    }

    pub(crate) async fn change_turn(&self) -> tokio::sync::MutexGuard<'_, BTreeSet<Entry>> {
        assert_eq!(
            self.core.id(),
            self.home(),
            "changes are made on the home core"
        );
        self.changes.lock().await
    }

    pub(crate) fn changed(&self) -> &WaitList {
        &self.changed
    }

    // Admission
    // ------------------------------------------------------------------------------------

    pub(crate) fn arrive(&self) -> TaskId {
        self.admission.borrow_mut().arrive()
    }

    pub(crate) fn admit(
        &self,
        task_id: TaskId,
        touches: Option<LbaRange>,
        head_of_queue: bool,
    ) -> bool {
        self.admission
            .borrow_mut()
            .admit(task_id, touches, head_of_queue)
    }

    pub(crate) fn leave(&self, task_id: TaskId) {
        if self.admission.borrow_mut().leave(task_id) {
            self.changed.wake_all();
        }
    }

    pub(crate) fn touches(&self, task_id: TaskId) -> Option<LbaRange> {
        self.admission.borrow().touches(task_id)
    }

    pub(crate) fn quarantine(&self, task_id: TaskId) -> Option<LbaRange> {
        let range = self.admission.borrow_mut().quarantine(task_id);
        self.changed.wake_all();
        range
    }

    pub(crate) fn next_hold_id(&self) -> HoldId {
        let number = self.hold_numbers.get() + 1;
        self.hold_numbers.set(number);
        HoldId {
            core: self.core.id().0,
            number,
        }
    }

    pub(crate) fn hold_home(&self) -> &HoldHome {
        assert_eq!(
            self.core.id(),
            self.home(),
            "holds are ordered on the home core"
        );
        &self.hold_home
    }

    pub(crate) fn install_hold(&self, id: HoldId, kind: HoldKind, owner: Option<TaskId>) {
        self.admission.borrow_mut().install(id, kind, owner);
    }

    pub(crate) fn remove_hold(&self, id: HoldId) {
        self.admission.borrow_mut().remove(id);
        self.changed.wake_all();
    }

    pub(crate) async fn until_drained(&self, id: HoldId) {
        self.changed
            .until(|| self.admission.borrow().drained(id))
            .await;
    }

    // Nexuses
    // --------------------------------------------------------------------------------------

    pub(crate) fn enter(&self, nexus: &Rc<Nexus>) {
        let mut nexuses = self.nexuses.borrow_mut();
        nexuses.retain(|known| known.strong_count() > 0);
        nexuses.push(Rc::downgrade(nexus));
    }

    pub(crate) fn leave_nexus(&self, nexus: &Rc<Nexus>) {
        let leaves = |known: &Weak<Nexus>| std::ptr::eq(known.as_ptr(), Rc::as_ptr(nexus));
        self.nexuses.borrow_mut().retain(|known| !leaves(known));
    }

    pub(crate) fn nexuses(&self) -> Vec<Rc<Nexus>> {
        self.nexuses
            .borrow()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

/// Where those of one core's share of a unit are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum ImmediateFlush {
    /// None is under way.
    #[default]
    None,
    /// One is in flight, and none was asked for since it began.
    InFlight,
    /// One is in flight, and another one begins when it is over.
    Wanted,
}
