//! The world: one seed, one clock, one run queue.

use super::executor::{Due, Executor, Life, Runnable, run_job};
use super::fault::{Fault, FaultPlan, Hits};
use super::net::NetState;
use super::node::{Node, NodeState};
use super::random::Rng;
use super::trace::{Line, Trace};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use units::{Now, Reserves, WallClock};

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Cores of each node.
    pub cores: u16,
    /// Payload memory of each core, in bytes.
    pub pool_bytes: usize,
    /// What of it is kept for work that frees memory.
    pub pool_reserves: Reserves,
    /// Which faults, how often.
    pub faults: FaultPlan,
    /// Shortest time from one node to another.
    pub latency_min: Duration,
    /// Longest usual time from one node to another.
    pub latency_max: Duration,
    /// Bytes per second in one direction of a connection.
    pub bytes_per_second: u64,
    /// Bytes that a sender may have on the way, including what the receiver has not taken.
    pub window_bytes: usize,
    /// How long a sender waits for signs of life before its connection is given up.
    pub tcp_timeout: Duration,
    /// Capacity of each node's file system, in bytes.
    pub disk_bytes: u64,
    /// Shortest time of an operation on a file.
    pub disk_latency_min: Duration,
    /// Longest usual time of an operation on a file.
    pub disk_latency_max: Duration,
    /// Bytes that a disk never tears; at least 512, a power of two.
    pub sector_bytes: u64,
    /// Alignment that direct I/O asks for; 0 where the file system has none.
    pub direct_alignment: u32,
    /// Processor time that one poll of a task, or one job, counts as in [`crate::Core::busy`]. It
    /// takes no time of the world.
    pub work_per_poll: Duration,
    /// How many of the last events to keep for [`World::trace`].
    pub trace_lines: usize,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            cores: 2,
            pool_bytes: 64 << 20,
            pool_reserves: Reserves::default(),
            faults: FaultPlan::benign(),
            latency_min: Duration::from_micros(20),
            latency_max: Duration::from_micros(200),
            bytes_per_second: 1_000_000_000,
            window_bytes: 256 << 10,
            tcp_timeout: Duration::from_secs(120),
            disk_bytes: 1 << 30,
            disk_latency_min: Duration::from_micros(10),
            disk_latency_max: Duration::from_micros(300),
            sector_bytes: 512,
            direct_alignment: 512,
            work_per_poll: Duration::from_micros(3),
            trace_lines: 0,
        }
    }
}

/// Why a run did not come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stuck {
    /// Nobody can run, and no timer will change that.
    Deadlock,
    /// The virtual time that was given is over.
    OutOfTime,
    /// A great number of steps did not lead to the end.
    OutOfSteps,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deadlock => "nothing can run and no timer is set",
            Self::OutOfTime => "the time given is over",
            Self::OutOfSteps => "the steps given are over",
        })
    }
}

impl std::error::Error for Stuck {}

/// 2026-01-01T00:00:00Z, when the simulated wall clock starts.
const WALL_CLOCK_START: WallClock = WallClock(1_767_225_600_000_000_000);

/// Virtual nanoseconds that one step takes.
const STEP_NANOS: u64 = 200;

/// Longest time for which a stalled core runs nothing, in nanoseconds: longer than most operations
/// of disks.
const STALL_NANOS_MAX: u64 = 500_000;

/// Steps that [`World::run_until`] takes at most.
const STEPS_MAX: u64 = 200_000_000;

/// A simulated world. Dropping it ends every task in it.
pub struct World(Rc<Inner>);

pub(super) struct Inner {
    pub(super) config: WorldConfig,
    pub(super) executor: Executor,
    pub(super) nodes: RefCell<Vec<NodeState>>,
    pub(super) net: RefCell<NetState>,
    pub(super) plan: RefCell<FaultPlan>,
    /// Draws for everything but the order of tasks.
    pub(super) rng: RefCell<Rng>,
    order: RefCell<Rng>,
    now: Cell<u64>,
    /// What the wall clock said at a moment.
    wall: Cell<(WallClock, Now)>,
    steps: Cell<u64>,
    /// Until when a core runs nothing.
    stalls: RefCell<BTreeMap<(Life, u16), u64>>,
    hits: RefCell<Hits>,
    trace: RefCell<Trace>,
}

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
        self.0.net.borrow_mut().set_cut(a.index(), b.index(), true);
    }

    /// Mends a link that was cut.
    pub fn mend_link(&self, a: &Node, b: &Node) {
        self.0.net.borrow_mut().set_cut(a.index(), b.index(), false);
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
    pub fn run_until(&self, limit: Duration, mut done: impl FnMut() -> bool) -> Result<(), Stuck> {
        let end = Now(self.0.now()).after(limit).0;
        for _ in 0..STEPS_MAX {
            if done() {
                return Ok(());
            }
            if !self.0.step(end) {
                return Err(if self.0.executor.next_timer().is_some() {
                    Stuck::OutOfTime
                } else {
                    Stuck::Deadlock
                });
            }
        }
        Err(Stuck::OutOfSteps)
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
    ) -> Result<T, Stuck> {
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

impl Inner {
    pub(super) fn now(&self) -> u64 {
        self.now.get()
    }

    pub(super) fn wall_clock(&self) -> WallClock {
        let (said, at) = self.wall.get();
        WallClock(said.0.saturating_add(self.now().saturating_sub(at.0)))
    }

    /// Does one thing whose time is not after `end`.
    fn step(self: &Rc<Self>, end: u64) -> bool {
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

    fn serve(self: &Rc<Self>, number: u64, due: Due) {
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
