//! The engine starts, takes paths in, and serves.

use super::cut::{self, Cut};
use super::driver::drive;
use super::engine::{Engine, Inside};
use super::marginal::compare;
use super::places::Flights;
use super::planned::Planned;
use super::route::Route;
use super::{Config, PathSpec};
use env::CoreHandle;
use paths::PathName;
use paths::health::Seen;
use paths::policy::Selector;
use paths::stale::PendingTable;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use volume::{Io, IoFuture, Shape};

impl Engine {
    pub(super) fn start(
        core: &CoreHandle,
        shape: Shape,
        config: Config,
        paths: Vec<PathSpec>,
        planned: Option<Planned>,
    ) -> Rc<Self> {
        let mut selector = Selector::new(config.policy);
        let mut routes = Vec::new();
        let mut wanted = Vec::new();
        for spec in paths {
            wanted.push(spec.wanted);
            routes.push(Route::new(core, &config, &mut selector, spec));
        }
        let engine = Rc::new(Self {
            core: Rc::clone(core),
            whole_blocks: cut::whole_blocks(&shape, config.piece),
            shape,
            config,
            state: RefCell::new(Inside {
                selector,
                pending_table: PendingTable::new(config.mode, config.sharing, config.quiesce),
                routes,
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
            let route = Route::new(&self.core, &self.config, &mut state.selector, spec);
            state.routes.push(route);
            state.routes.len() - 1
        };
        if let Some(planned) = self.planned.borrow_mut().as_mut() {
            planned.names.push(name);
            wanted = planned.wanted(path);
        }
        self.see(path, Seen::Want(wanted));
    }

    pub(super) fn submit(self: &Rc<Self>, io: Io) -> IoFuture {
        let blocks = io.op().range().map_or(0, |range| range.len().0);
        if blocks <= self.whole_blocks {
            return match self.fly(io) {
                Ok(answer) => answer,
                Err(io) => self.command(io),
            };
        }
        let paths = cut::abreast(&self.state.borrow().routes);
        match cut::cut(io, &self.shape, self.config.piece, paths) {
            Cut::Whole(io) => self.command(io),
            Cut::Pieces { parts, into } => self.in_pieces(parts, into, paths),
        }
    }
}
