//! The world: one seed, one clock, one run queue.

use super::config::WorldConfig;
use super::executor::Executor;
use super::fault::{FaultPlan, Hits};
use super::inner::Inner;
use super::node::Node;
use super::random::Rng;
use super::trace::Trace;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use units::{Now, WallClock};

/// Why a run did not come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunError {
    /// Nobody can run, and no timer will change that.
    Deadlock,
    /// The virtual time that was given is over.
    OutOfTime,
    /// A great number of steps did not lead to the end.
    OutOfSteps,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadlock => "nothing can run and no timer is set",
            Self::OutOfTime => "the time given is over",
            Self::OutOfSteps => "the steps given are over",
        })
    }
}

impl std::error::Error for RunError {}

/// 2026-01-01T00:00:00Z, when the simulated wall clock starts.
const WALL_CLOCK_START: WallClock = WallClock(1_767_225_600_000_000_000);

/// Steps that [`World::run_until`] takes at most.
const STEPS_MAX: u64 = 200_000_000;

/// A simulated world. Dropping it ends every task in it.
pub struct World(Rc<Inner>);

impl World {
    /// A world without nodes.
    #[must_use]
    pub fn new(seed: u64, config: WorldConfig) -> Self {
        let mut rng = Rng::new(seed);
        Self(Rc::new(Inner {
            executor: Executor::default(),
            nodes: RefCell::default(),
            net: RefCell::default(),
            plan: RefCell::new(config.faults.clone()),
            order: RefCell::new(rng.fork()),
            rng: RefCell::new(rng),
            now: Cell::new(1_000_000_000),
            wall: Cell::new((WALL_CLOCK_START, Now(0))),
            steps: Cell::new(0),
            stalls: RefCell::default(),
            hits: RefCell::default(),
            trace: RefCell::new(Trace::new(config.trace_lines)),
            config,
        }))
    }

    /// The node called `name`; made, and started, where there is none yet. The n-th node has the
    /// addresses 10.0.0.n and fd00::n on `eth0`, and the loopback addresses on `lo`.
    #[must_use]
    pub fn node(&self, name: &str) -> Node {
        Node::named(&self.0, name)
    }

    /// Virtual time.
    #[must_use]
    pub fn now(&self) -> Now {
        Now(self.0.now())
    }

    /// Steps so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.0.steps.get()
    }

    /// Tasks that have not ended.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.0.executor.task_count()
    }

    /// The hash of all events so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.0.trace.borrow().hash()
    }

    /// The last events, one line each, with the columns that `trace.rs` documents.
    #[must_use]
    pub fn trace(&self) -> String {
        self.0.trace.borrow().text()
    }

    /// Adds a line of the test's own to the trace and the hash.
    pub fn note(&self, numbers: [u64; 3]) {
        self.0.event(None, "note", numbers);
    }

    /// How often each class of faults took place.
    #[must_use]
    pub fn hits(&self) -> Hits {
        self.0.hits.borrow().clone()
    }

    /// Changes which faults happen from now on.
    pub fn set_faults(&self, plan: FaultPlan) {
        *self.0.plan.borrow_mut() = plan;
    }

    /// Cuts the link between two nodes, in both directions: what is on the way waits.
    pub fn cut_link(&self, a: &Node, b: &Node) {
        self.cut_one_way(a, b);
        self.cut_one_way(b, a);
    }

    /// Cuts one direction of a link: what the first node sends waits on its way to the second, and
    /// neither can connect. What the second one sends arrives.
    pub fn cut_one_way(&self, from: &Node, to: &Node) {
        let (from, to) = (from.index(), to.index());
        self.0.net.borrow_mut().set_cut(from, to, true);
    }

    /// Mends a link that was cut, in one direction or both.
    pub fn mend_link(&self, a: &Node, b: &Node) {
        let (a, b) = (a.index(), b.index());
        let mut net = self.0.net.borrow_mut();
        net.set_cut(a, b, false);
        net.set_cut(b, a, false);
    }

    /// Cuts the port of a node that has this address: what is on the way to and from it waits, and
    /// its other addresses go on.
    pub fn cut_port(&self, address: IpAddr) {
        self.0.net.borrow_mut().set_port_cut(address, true);
    }

    /// Mends a port that was cut.
    pub fn mend_port(&self, address: IpAddr) {
        self.0.net.borrow_mut().set_port_cut(address, false);
    }

    /// Does the next thing: a task, a job or a timer. `false` where there is none.
    pub fn step(&self) -> bool {
        self.0.step(u64::MAX)
    }

    /// Goes on for `span` of virtual time.
    pub fn run_for(&self, span: Duration) {
        let end = Now(self.0.now()).after(span).0;
        while self.0.step(end) {}
        self.0.now.set(self.0.now().max(end));
    }

    /// Lets `span` pass with nobody running, as a machine that is suspended does: what was to
    /// happen meanwhile happens late.
    pub fn sleep(&self, span: Duration) {
        self.0.now.set(Now(self.0.now()).after(span).0);
    }

    /// Sets the wall clock, which goes on from there; time that is measured does not notice.
    pub fn set_wall_clock(&self, to: WallClock) {
        let at = Now(self.0.now());
        self.0.wall.set((to, at));
    }

    /// Goes on until `done` says so, which is asked after each step.
    ///
    /// # Errors
    /// What kept it from getting there within `limit` of virtual time.
    pub fn run_until(
        &self,
        limit: Duration,
        mut done: impl FnMut() -> bool,
    ) -> Result<(), RunError> {
        let end = Now(self.0.now()).after(limit).0;
        for _ in 0..STEPS_MAX {
            if done() {
                return Ok(());
            }
            if !self.0.step(end) {
                return Err(if self.0.executor.next_timer().is_some() {
                    RunError::OutOfTime
                } else {
                    RunError::Deadlock
                });
            }
        }
        Err(RunError::OutOfSteps)
    }

    /// Runs `future` as a task on core 0 of `node` until it ends.
    ///
    /// # Errors
    /// What kept it from ending within `limit` of virtual time.
    pub fn block_on<T: 'static>(
        &self,
        node: &Node,
        limit: Duration,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, RunError> {
        let slot = Rc::new(RefCell::new(None));
        let answer = Rc::clone(&slot);
        node.core(0).spawn(Box::pin(async move {
            let value = future.await;
            *answer.borrow_mut() = Some(value);
        }));
        self.run_until(limit, || slot.borrow().is_some())?;
        let value = slot.borrow_mut().take();
        Ok(value.expect("run_until ended because it is there"))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.executor.leak();
            return;
        }
        Node::end_all(&self.0);
        self.0.executor.clear_timers();
    }
}
