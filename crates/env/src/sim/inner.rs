//! What all parts of a world share: its clock, its run queue, its draws, its trace.

use super::config::WorldConfig;
use super::executor::{Due, Executor, Life, Runnable, run_job};
use super::fault::{Fault, FaultPlan, Hits};
use super::net::NetState;
use super::node_state::NodeState;
use super::random::Rng;
use super::trace::{Line, Trace};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use units::{Now, WallClock};

/// Virtual nanoseconds that one step takes.
const STEP_NANOS: u64 = 200;

/// Longest time for which a stalled core runs nothing, in nanoseconds: longer than most operations
/// of disks.
const STALL_NANOS_MAX: u64 = 500_000;

pub(super) struct Inner {
    pub(super) config: WorldConfig,
    pub(super) executor: Executor<Inner>,
    pub(super) nodes: RefCell<Vec<NodeState>>,
    pub(super) net: RefCell<NetState>,
    pub(super) plan: RefCell<FaultPlan>,
    /// Draws for everything but the order of tasks.
    pub(super) rng: RefCell<Rng>,
    pub(super) order: RefCell<Rng>,
    pub(super) now: Cell<u64>,
    /// What the wall clock said at a moment.
    pub(super) wall: Cell<(WallClock, Now)>,
    pub(super) steps: Cell<u64>,
    /// Until when a core runs nothing.
    pub(super) stalls: RefCell<BTreeMap<(Life, u16), u64>>,
    pub(super) hits: RefCell<Hits>,
    pub(super) trace: RefCell<Trace>,
}

impl Inner {
    pub(super) fn now(&self) -> u64 {
        self.now.get()
    }

    /// What the clock of a node shows now.
    pub(super) fn shown_at(&self, node: u16) -> u64 {
        self.nodes.borrow()[usize::from(node)].clock.at(self.now())
    }

    /// When it will show this.
    pub(super) fn when_shown(&self, node: u16, shows: u64) -> u64 {
        self.nodes.borrow()[usize::from(node)].clock.when(shows)
    }

    pub(super) fn wall_clock(&self) -> WallClock {
        let (said, at) = self.wall.get();
        WallClock(said.0.saturating_add(self.now().saturating_sub(at.0)))
    }

    /// Does one thing whose time is not after `end`.
    pub(super) fn step(self: &Rc<Self>, end: u64) -> bool {
        self.net_sweep();
        let ready = self
            .executor
            .take_ready(|len| self.order.borrow_mut().index(len));
        let Some(ready) = ready else {
            return self.next_timer(end);
        };
        self.advance();
        if !self.is_kept(ready) {
            self.run(ready);
        }
        // Timers that fell due while others ran are served without waiting for idleness.
        while let Some((key, due)) = self.executor.take_due(self.now()) {
            self.serve(key.1, due);
        }
        true
    }

    /// Its core runs nothing just now: it is ready again when the core goes on.
    fn is_kept(&self, ready: Runnable) -> bool {
        let Some((life, core)) = self.executor.place_of(ready) else {
            return false;
        };
        if self.waits_for_its_node(life, ready) {
            return true;
        }
        let mut stalls = self.stalls.borrow_mut();
        let until = stalls.entry((life, core)).or_default();
        if *until <= self.now() {
            if !self.happens(Fault::CoreStalled) {
                return false;
            }
            *until = self.now() + self.between(1_000, STALL_NANOS_MAX);
        }
        let again = move |world: &Rc<Self>| world.executor.put_ready(ready);
        self.executor.timer(*until, Due::Event(Box::new(again)));
        true
    }

    /// Its node is paused: it runs when that goes on.
    fn waits_for_its_node(&self, life: Life, ready: Runnable) -> bool {
        let mut nodes = self.nodes.borrow_mut();
        let node = &mut nodes[usize::from(life.node)];
        let paused = node.paused.as_mut();
        let paused = paused.filter(|_| node.incarnation == life.incarnation);
        paused.map(|kept| kept.push(ready)).is_some()
    }

    fn run(self: &Rc<Self>, ready: Runnable) {
        match ready {
            Runnable::Task(task) => {
                if let Some((life, core, ended)) = self.executor.poll(task) {
                    self.worked(life, core);
                    let place = Some((life.node, core));
                    self.event(place, "poll", [task, u64::from(ended), 0]);
                }
            }
            Runnable::Job(channel) => {
                let core = self.core_of(channel.life, channel.to);
                let job = self.executor.take_job(channel);
                if let (Some(core), Some(job)) = (core, job) {
                    let place = Some((channel.life.node, channel.to));
                    let numbers = [channel.from.into(), channel.to.into(), 0];
                    self.event(place, "job", numbers);
                    self.worked(channel.life, channel.to);
                    run_job(job, &core);
                }
            }
        }
    }

    fn next_timer(self: &Rc<Self>, end: u64) -> bool {
        let Some(at) = self.executor.next_timer().filter(|at| *at <= end) else {
            return false;
        };
        self.now.set(self.now().max(at));
        self.advance();
        if let Some((key, due)) = self.executor.take_due(self.now()) {
            self.serve(key.1, due);
        }
        true
    }

    fn serve(self: &Rc<Self>, number: u64, due: Due<Self>) {
        match due {
            Due::Wake(waker) => {
                self.event(None, "timer", [number, 0, 0]);
                waker.wake();
            }
            Due::Event(event) => event(self),
        }
    }

    fn advance(&self) {
        self.steps.set(self.steps.get() + 1);
        self.now.set(self.now() + STEP_NANOS);
    }

    /// Calls `event` in `nanos` nanoseconds.
    pub(super) fn after(&self, nanos: u64, event: impl FnOnce(&Rc<Self>) + 'static) {
        let at = self.now().saturating_add(nanos);
        self.executor.timer(at, Due::Event(Box::new(event)));
    }

    pub(super) fn event(&self, place: Option<(u16, u16)>, event: &'static str, numbers: [u64; 3]) {
        self.trace.borrow_mut().add(Line {
            time: self.now(),
            step: self.steps.get(),
            place,
            event,
            numbers,
        });
    }

    /// The plan and the seed say that this fault happens now; it is not counted yet.
    pub(super) fn draws(&self, fault: Fault) -> bool {
        let per_million = self.plan.borrow().per_million(fault);
        self.rng.borrow_mut().chance(per_million)
    }

    /// This fault takes place now.
    pub(super) fn hit(&self, fault: Fault) {
        self.hits.borrow_mut().count(fault);
        self.event(None, "fault", [fault as u64, 0, 0]);
    }

    /// As [`Inner::draws`], and counted where it says yes.
    pub(super) fn happens(&self, fault: Fault) -> bool {
        let yes = self.draws(fault);
        if yes {
            self.hit(fault);
        }
        yes
    }

    pub(super) fn between(&self, low: u64, high: u64) -> u64 {
        self.rng.borrow_mut().between(low, high)
    }

    /// One of two, with equal probability.
    pub(super) fn coin(&self) -> bool {
        self.rng.borrow_mut().below(2) == 0
    }

    /// A core has polled a task or run a job.
    fn worked(&self, life: Life, core: u16) {
        if self.is_alive(life) {
            self.nodes.borrow_mut()[usize::from(life.node)].work(core);
        }
    }

    /// The processor time of a core of this life.
    pub(super) fn busy(&self, life: Life, core: u16) -> Duration {
        if !self.is_alive(life) {
            return Duration::ZERO;
        }
        let polls = self.nodes.borrow()[usize::from(life.node)].worked(core);
        let nanos = nanos(self.config.work_per_poll).saturating_mul(polls);
        Duration::from_nanos(nanos)
    }

    /// This life goes on.
    pub(super) fn is_alive(&self, life: Life) -> bool {
        let nodes = self.nodes.borrow();
        let node = nodes.get(usize::from(life.node));
        node.is_some_and(|node| node.is_up() && node.incarnation() == life.incarnation)
    }

    fn core_of(&self, life: Life, core: u16) -> Option<crate::CoreHandle> {
        if !self.is_alive(life) {
            return None;
        }
        let nodes = self.nodes.borrow();
        nodes.get(usize::from(life.node))?.core(core)
    }
}

/// Nanoseconds of a span that fits.
pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
