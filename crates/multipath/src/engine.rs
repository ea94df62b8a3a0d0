//! Carries out what the machines of the paths crate decide.

use super::command::Pending;
use super::driver::drive;
use super::line::Line;
use super::marginal::compare;
use super::pieces::{self, Cut};
use super::places::Flights;
use super::planned::Planned;
use super::wait::Bell;
use super::{Config, PathSpec, PathStatus, Session};
use env::CoreHandle;
use paths::PathName;
use paths::health::{Seen, Wanted};
use paths::policy::{Policy, Selector};
use paths::stale::{CommandId, Nexus, PendingTable};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::Now;
use volume::{Io, IoFuture, Shape};

/// What changes.
pub(super) struct Inside {
    pub(super) selector: Selector,
    pub(super) book: PendingTable,
    pub(super) lines: Vec<Line>,
    /// Operations on the straight way.
    pub(super) flights: Flights,
    /// Operations on the slow one.
    pub(super) pending: BTreeMap<CommandId, Pending>,
    /// Wait for a path.
    pub(super) ready: VecDeque<CommandId>,
    /// Sessions that are over and still have open operations: how many.
    pub(super) ending: BTreeMap<Nexus, u32>,
    pub(super) closed: bool,
}

/// The layer's inside.
pub(super) struct Engine {
    pub(super) core: CoreHandle,
    pub(super) shape: Shape,
    pub(super) config: Config,
    /// Operations of no more blocks are never cut.
    whole_blocks: u64,
    pub(super) state: RefCell<Inside>,
    pub(super) planned: RefCell<Option<Planned>>,
    pub(super) bell: Rc<Bell>,
    /// Until when the driver sleeps, unless the bell rings: nobody rings for what is due later.
    pub(super) armed: Cell<Option<Now>>,
}

impl Engine {
    pub(super) fn start(
        core: &CoreHandle,
        shape: Shape,
        config: Config,
        paths: Vec<PathSpec>,
        planned: Option<Planned>,
    ) -> Rc<Self> {
        let mut selector = Selector::new(config.policy);
        let mut lines = Vec::new();
        let mut wanted = Vec::new();
        for spec in paths {
            wanted.push(spec.wanted);
            lines.push(Line::new(core, &config, &mut selector, spec));
        }
        let engine = Rc::new(Self {
            core: Rc::clone(core),
            whole_blocks: pieces::whole_blocks(&shape, config.piece),
            shape,
            config,
            state: RefCell::new(Inside {
                selector,
                book: PendingTable::new(config.mode, config.sharing, config.quiesce),
                lines,
                flights: Flights::default(),
                pending: BTreeMap::new(),
                ready: VecDeque::new(),
                ending: BTreeMap::new(),
                closed: false,
            }),
            planned: RefCell::new(planned),
            bell: Rc::default(),
            armed: Cell::new(None),
        });
        for (path, wanted) in wanted.into_iter().enumerate() {
            engine.see(path, Seen::Want(wanted));
        }
        let driver = drive(
            Rc::downgrade(&engine),
            Rc::clone(&engine.bell),
            Rc::clone(core),
        );
        core.spawn(Box::pin(driver));
        core.spawn(Box::pin(compare(Rc::downgrade(&engine))));
        engine
    }

    pub(super) fn add(self: &Rc<Self>, name: PathName, spec: PathSpec) {
        let mut wanted = spec.wanted;
        let path = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let line = Line::new(&self.core, &self.config, &mut state.selector, spec);
            state.lines.push(line);
            state.lines.len() - 1
        };
        if let Some(planned) = self.planned.borrow_mut().as_mut() {
            planned.names.push(name);
            wanted = planned.wanted(path);
        }
        self.see(path, Seen::Want(wanted));
    }

    pub(super) fn set_policy(&self, policy: Policy) {
        self.state.borrow_mut().selector.set_policy(policy);
    }

    pub(super) fn want(self: &Rc<Self>, path: usize, wanted: Wanted) {
        self.see(path, Seen::Want(wanted));
    }

    pub(super) fn link(self: &Rc<Self>, path: usize, up: bool) {
        self.see(path, if up { Seen::LinkUp } else { Seen::LinkDown });
    }

    pub(super) fn status(&self) -> Vec<PathStatus> {
        let state = self.state.borrow();
        let lines = state.lines.iter().enumerate();
        let status = lines.map(|(path, line)| PathStatus {
            state: line.health.state(),
            wanted: line.health.wanted(),
            usage: line.settings.usage,
            marginal: line.health.marginal(),
            in_flight: state.selector.in_flight(path),
            bytes_in_flight: state.selector.bytes_in_flight(path),
            ended: state.selector.ended(path),
        });
        status.collect()
    }

    /// Ends everything; nobody is answered any more.
    pub(super) fn close(&self) {
        let (flying, pending, sessions) = {
            let mut state = self.state.borrow_mut();
            state.closed = true;
            let pending = std::mem::take(&mut state.pending);
            state.ready.clear();
            let lines = state.lines.iter_mut();
            let sessions: Vec<Rc<dyn Session>> =
                lines.filter_map(|line| line.session.take()).collect();
            (state.flights.close(), pending, sessions)
        };
        drop(flying);
        // Who hands out pieces looks up, and ends.
        pending.values().for_each(Pending::wake);
        for session in sessions {
            session.leave();
        }
        self.bell.ring();
    }

    pub(super) fn submit(self: &Rc<Self>, io: Io) -> IoFuture {
        let blocks = io.op().range().map_or(0, |range| range.len().0);
        if blocks <= self.whole_blocks {
            return match self.fly(io) {
                Ok(answer) => answer,
                Err(io) => self.command(io),
            };
        }
        let paths = pieces::abreast(&self.state.borrow().lines);
        match pieces::cut(io, &self.shape, self.config.piece, paths) {
            Cut::Whole(io) => self.command(io),
            Cut::Pieces { parts, into } => self.in_pieces(parts, into, paths),
        }
    }
}
