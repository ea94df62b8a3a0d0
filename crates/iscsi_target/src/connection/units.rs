//! The logical units that one session sees, and its nexuses at them.

use crate::export::{Luns, MappedUnit, UnitPortMap};
use env::{CoreHandle, LocalFuture};
use futures_util::future::join_all;
use logical_unit::{
    Closing, InitiatorPort, Nexus, NexusError, NexusPort, Peers, PortFacts, UnitAttention,
};
use logical_unit::{LogicalUnit, NexusState, StandStill, UnitId, UnitPorts};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Waker};

/// What the session is to its units.
pub(super) struct SessionUnits {
    core: CoreHandle,
    port: NexusPort,
    own: PortFacts,
    ports: RefCell<UnitPortMap>,
    luns: RefCell<Luns>,
    /// Made when first used.
    nexuses: RefCell<BTreeMap<u16, Rc<Nexus>>>,
    /// Whose units were taken away, until nothing of them is under way any more.
    closing: RefCell<Vec<Rc<Nexus>>>,
    myself: Weak<Self>,
    /// Tasks of the session were aborted by other nexuses.
    released: Cell<bool>,
    driver: RefCell<Option<Waker>>,
}

/// The units of a session on its way from one core to another.
pub(super) struct UnitsState {
    port: NexusPort,
    own: PortFacts,
    ports: UnitPortMap,
    luns: Luns,
    nexuses: Vec<(u16, NexusState)>,
}

impl SessionUnits {
    pub(super) fn new(
        core: &CoreHandle,
        initiator: InitiatorPort,
        own: PortFacts,
        ports: UnitPortMap,
        luns: Luns,
    ) -> Rc<Self> {
        Rc::new_cyclic(|myself| Self {
            core: Rc::clone(core),
            port: NexusPort {
                initiator,
                target_port: own.relative_port,
            },
            own,
            ports: RefCell::new(ports),
            luns: RefCell::new(luns),
            nexuses: RefCell::default(),
            closing: RefCell::default(),
            myself: Weak::clone(myself),
            released: Cell::new(false),
            driver: RefCell::default(),
        })
    }

    /// No nexus has tasks.
    pub(super) fn is_quiet(&self) -> bool {
        let nexuses = self.nexuses.borrow();
        nexuses.values().all(|nexus| nexus.live_tasks() == 0)
    }

    /// Has all units stand still at which there is a nexus; `None` where one of them cannot just
    /// now.
    pub(super) fn stand_still(&self) -> Option<Vec<StandStill>> {
        let nexuses = self.nexuses.borrow();
        let mut units: Vec<&Arc<LogicalUnit>> = nexuses
            .values()
            .map(|nexus| nexus.unit().shared())
            .collect();
        units.sort_by_key(|unit| unit.id());
        // A session may see a unit under several numbers.
        units.dedup_by_key(|unit| unit.id());
        units.into_iter().map(|unit| unit.stand_still()).collect()
    }

    /// Leaves this core, with every nexus. There must be no task.
    pub(super) fn depart(&self) -> UnitsState {
        let nexuses = std::mem::take(&mut *self.nexuses.borrow_mut());
        let nexuses = nexuses.into_iter().map(|(lun, nexus)| {
            let state = nexus.depart();
            (lun, state.expect("it was asked just now, and has no task"))
        });
        UnitsState {
            port: self.port.clone(),
            own: self.own.clone(),
            nexuses: nexuses.collect(),
            ports: self.ports.take(),
            luns: self.luns.borrow().clone(),
        }
    }

    /// Goes on, on this core.
    pub(super) fn arrive(core: &CoreHandle, state: UnitsState) -> Rc<Self> {
        let UnitsState {
            port,
            own,
            ports,
            luns,
            nexuses,
        } = state;
        let units = Self::new(core, port.initiator, own, ports, luns);
        for (lun, state) in nexuses {
            let peers: Weak<dyn Peers> = units.myself.clone();
            // A unit that went down meanwhile is missed when it is used next, as it would be
            // without the move.
            if let Ok(nexus) = Nexus::arrive_from(core, state, peers) {
                units.nexuses.borrow_mut().insert(lun, nexus);
            }
        }
        units
    }

    /// Identifies the target port that the session is at.
    pub(super) fn relative_port(&self) -> u16 {
        self.port.target_port
    }

    /// The LUNs, ascending.
    pub(super) fn luns(&self) -> Vec<u16> {
        self.luns.borrow().keys().copied().collect()
    }

    fn mapped(&self, lun: u16) -> Option<MappedUnit> {
        self.luns.borrow().get(&lun).copied()
    }

    fn ports_of(&self, unit: UnitId) -> UnitPorts {
        let ports = self.ports.borrow();
        let own = self.own.clone();
        let all = ports.get(&unit).cloned();
        UnitPorts {
            all: all.unwrap_or_else(|| vec![own.clone()]),
            own,
        }
    }

    /// The nexus at a LUN.
    pub(super) fn nexus(&self, lun: u16) -> Result<Rc<Nexus>, NexusError> {
        if let Some(nexus) = self.nexuses.borrow().get(&lun) {
            return Ok(Rc::clone(nexus));
        }
        let mapped = self.mapped(lun).ok_or(NexusError::NoSuchUnit)?;
        let peers: Weak<dyn Peers> = self.myself.clone();
        let nexus = Nexus::open(
            &self.core,
            mapped.unit,
            self.port.clone(),
            self.ports_of(mapped.unit),
            mapped.read_only,
            peers,
        )?;
        self.nexuses.borrow_mut().insert(lun, Rc::clone(&nexus));
        Ok(nexus)
    }

    /// Whether other nexuses have aborted tasks of the session since this was last asked.
    pub(super) fn poll_released(&self, cx: &Context<'_>) -> bool {
        let mut driver = self.driver.borrow_mut();
        if !driver
            .as_ref()
            .is_some_and(|known| known.will_wake(cx.waker()))
        {
            *driver = Some(cx.waker().clone());
        }
        self.released.take()
    }

    /// REPORT LUNS was answered.
    pub(super) fn luns_reported(&self) {
        self.nexuses
            .borrow()
            .values()
            .for_each(|nexus| nexus.luns_reported());
    }

    /// The nexus that a task is at: the one at its LUN, or one whose unit was taken away from there
    /// and that has it still.
    pub(super) fn nexus_of_task(&self, lun: u16, tag: u32) -> Option<Rc<Nexus>> {
        let closing = self.closing.borrow();
        let has_it = closing.iter().find(|nexus| nexus.has_task(tag));
        has_it.cloned().or_else(|| self.nexus(lun).ok())
    }

    /// Takes every nexus out, and ends it. They do no more from now on; when the future is ready
    /// the units have let go.
    pub(super) fn close_all(&self, how: Closing) -> LocalFuture<()> {
        let nexuses = std::mem::take(&mut *self.nexuses.borrow_mut()).into_values();
        let closing = self.closing.take();
        let closed: Vec<_> = nexuses
            .chain(closing)
            .map(|nexus| nexus.close(how))
            .collect();
        Box::pin(async move {
            join_all(closed).await;
        })
    }

    /// Goes on with other LUNs, or with none. What is taken away from the host does no more from
    /// now on, and its commands are answered; when the future is ready nothing of it is under way
    /// any more. `None`: nothing was.
    pub(super) fn change_view(
        self: &Rc<Self>,
        luns: Luns,
        ports: UnitPortMap,
    ) -> Option<LocalFuture<()>> {
        let old = self.luns.replace(luns);
        self.ports.replace(ports);
        let luns = self.luns.borrow();
        let mut nexuses = self.nexuses.borrow_mut();
        let same = |lun: &u16| match (old.get(lun), luns.get(lun)) {
            (Some(old), Some(new)) => old.unit == new.unit,
            (Some(_) | None, _) => false,
        };
        let gone: Vec<u16> = nexuses.keys().copied().filter(|lun| !same(lun)).collect();
        let gone: Vec<Rc<Nexus>> = gone.iter().filter_map(|lun| nexuses.remove(lun)).collect();
        let mut taken: Vec<LocalFuture<()>> = Vec::new();
        for nexus in gone {
            self.closing.borrow_mut().push(Rc::clone(&nexus));
            let (units, closed) = (Rc::clone(self), Rc::clone(&nexus).close(Closing::Withdrawn));
            taken.push(Box::pin(async move {
                closed.await;
                let mut closing = units.closing.borrow_mut();
                closing.retain(|one| !Rc::ptr_eq(one, &nexus));
            }));
        }
        for (lun, nexus) in nexuses.iter() {
            nexus.set_ports(self.ports_of(nexus.unit().shared().id()));
            let read_only = luns.get(lun).is_some_and(|mapped| mapped.read_only);
            taken.extend(nexus.set_read_only(read_only));
            if !old.keys().eq(luns.keys()) {
                nexus.establish(UnitAttention::ReportedLunsChanged);
            }
        }
        if taken.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            join_all(taken).await;
        }))
    }
}

impl Peers for SessionUnits {
    fn released(&self) {
        self.released.set(true);
        if let Some(driver) = self.driver.borrow_mut().take() {
            driver.wake();
        }
    }

    fn all(&self) -> Vec<Rc<Nexus>> {
        self.luns()
            .into_iter()
            .filter_map(|lun| self.nexus(lun).ok())
            .collect()
    }
}
