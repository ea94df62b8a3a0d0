//! How much each core and each session works, as measured.
//!
//! **Contract.** A core's load is the processor time that its thread was busy, as a part of the
//! time that passed, in a decaying average of which a third is left after 0.8 s. Commands pay
//! nothing for it: a core reads its own clock when core 0 asks, every [`TICK`] while there is a
//! connection, and never otherwise. A session's load is its part of its core's, by the commands
//! that it sent and the bytes that it moved.

use env::CoreId;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How often is measured.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// What a new connection is expected to take until it can be measured.
const EXPECTED: Load = Load(100);

/// Loads that are nearer to each other than this count as the same.
const SAME: u32 = 50;

/// What a command costs, in nanoseconds, and how many bytes cost one: only their relation matters.
const NANOS_PER_COMMAND: u64 = 2600;
const BYTES_PER_NANO: u64 = 7;

/// A part of a core's time, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Load(pub u16);

impl Load {
    /// All of a core's time.
    pub const FULL: Self = Self(1000);

    /// `part` of `whole`; nothing of nothing.
    pub(crate) fn of(part: u128, whole: u128) -> Self {
        let thousandths = (part * 1000).checked_div(whole).unwrap_or(0);
        Self(u16::try_from(thousandths).map_or(Self::FULL.0, |part| part.min(Self::FULL.0)))
    }

    /// The average after another [`TICK`] of which `now` was busy.
    pub(crate) fn next(self, now: Self) -> Self {
        let (old, new) = (u32::from(self.0), u32::from(now.0));
        // Rounded up where it rises: a load that is over comes down to nothing, and a full one is
        // reached.
        let next = (old * 70 + new * 30 + if new > old { 50 } else { 0 }) / 100;
        Self(u16::try_from(next).unwrap_or(Self::FULL.0))
    }

    /// 0.0 to 100.0, in steps of a tenth.
    #[must_use]
    pub fn percent(self) -> f64 {
        f64::from(self.0) / 10.0
    }
}

/// What a command and its bytes cost, against other ones.
pub(crate) fn work_of(commands: u64, bytes: u64) -> u64 {
    commands
        .saturating_mul(NANOS_PER_COMMAND)
        .saturating_add(bytes / BYTES_PER_NANO)
}

/// A session's own part of what its core does.
#[derive(Default)]
pub(crate) struct Part {
    seen: Cell<u64>,
    since: Cell<u64>,
    load: Cell<Load>,
}

impl Part {
    /// One that comes from another core.
    pub(crate) fn go_on(&self, load: Load) {
        self.load.set(load);
    }

    pub(crate) fn load(&self) -> Load {
        self.load.get()
    }

    /// What it did since this was last asked, of all that it has done.
    pub(crate) fn since(&self, work: u64) -> u64 {
        let since = work.saturating_sub(self.seen.replace(work));
        self.since.set(since);
        since
    }

    /// All sessions did so much while the core was busy so much.
    pub(crate) fn share(&self, all: u64, busy: Load) {
        let part = Load::of(
            u128::from(self.since.get()) * u128::from(busy.0),
            u128::from(all) * u128::from(Load::FULL.0),
        );
        self.load.set(self.load.get().next(part));
    }
}

/// What a core was found to do, for people and metrics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoreLoad {
    /// The core that it was measured on.
    pub core: CoreId,
    /// Processor time that it has worked since it began.
    pub busy: Duration,
    /// Its load now.
    pub load: Load,
    /// Connections that it serves, logged in or not.
    pub connections: usize,
}

/// Where connections are, and what the cores were found to do. Touched when a connection comes or
/// goes, and at each tick; never by commands.
pub(crate) struct Loads(Mutex<Inner>);

struct Inner {
    cores: Vec<OfCore>,
    waiting: Option<Waker>,
}

#[derive(Clone, Default)]
struct OfCore {
    measured: Load,
    /// What is expected of connections that came within the span that was measured.
    expected: u32,
    connections: usize,
}

impl Loads {
    pub(crate) fn new(cores: u16) -> Self {
        Self(Mutex::new(Inner {
            cores: vec![OfCore::default(); usize::from(cores)],
            waiting: None,
        }))
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connections(&self) -> usize {
        let inner = self.locked();
        inner.cores.iter().map(|core| core.connections).sum()
    }

    /// Each core's load and how many connections it has.
    pub(crate) fn all(&self) -> Vec<(Load, usize)> {
        let inner = self.locked();
        let cores = inner.cores.iter();
        cores
            .map(|core| (core.measured, core.connections))
            .collect()
    }

    /// Chooses the core that works least of `among` (of all where it is empty), and counts a
    /// connection there.
    pub(crate) fn place(&self, among: &[CoreId]) -> CoreId {
        let mut inner = self.locked();
        let all = inner.cores.iter().zip(0..).map(|(of, id)| (CoreId(id), of));
        let may = |id: &CoreId| among.is_empty() || among.contains(id);
        let effort = |of: &OfCore| {
            let load = u32::from(of.measured.0) + of.expected;
            (load / SAME, of.connections, load)
        };
        let least = all
            .filter(|(id, _)| may(id))
            .min_by_key(|(_, of)| effort(of));
        let chosen = least.map_or(CoreId(0), |(id, _)| id);
        if let Some(of) = inner.cores.get_mut(usize::from(chosen.0)) {
            of.expected += u32::from(EXPECTED.0);
        }
        inner.enter(chosen);
        chosen
    }

    /// Counts a connection that comes from another core.
    pub(crate) fn enter(&self, core: CoreId) {
        self.locked().enter(core);
    }

    pub(crate) fn leave(&self, core: CoreId) {
        if let Some(of) = self.locked().cores.get_mut(usize::from(core.0)) {
            of.connections = of.connections.saturating_sub(1);
        }
    }

    /// A tick is over.
    pub(crate) fn measured(&self, all: &[(CoreId, Load)]) {
        let mut inner = self.locked();
        for core in &mut inner.cores {
            core.expected = core.expected * 70 / 100;
        }
        for (core, load) in all {
            if let Some(of) = inner.cores.get_mut(usize::from(core.0)) {
                of.measured = *load;
            }
        }
    }

    /// Ready while there is a connection.
    pub(crate) fn poll_any(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.locked();
        if inner.cores.iter().any(|core| core.connections > 0) {
            return Poll::Ready(());
        }
        inner.waiting = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Inner {
    fn enter(&mut self, core: CoreId) {
        if let Some(of) = self.cores.get_mut(usize::from(core.0)) {
            of.connections += 1;
        }
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn core(core: u16, load: u16) -> (CoreId, Load) {
        (CoreId(core), Load(load))
    }

    #[test]
    fn the_core_that_works_least_is_chosen_however_many_connections_it_has() {
        let loads = Loads::new(3);
        (0..20).for_each(|_| assert_eq!(loads.place(&[CoreId(2)]), CoreId(2)));
        loads.place(&[CoreId(0)]);
        loads.place(&[CoreId(1)]);
        (0..40).for_each(|_| loads.measured(&[]));
        loads.measured(&[core(0, 800), core(1, 400), core(2, 10)]);
        assert_eq!(loads.place(&[]), CoreId(2));
        assert_eq!(loads.place(&[CoreId(0), CoreId(1)]), CoreId(1));
    }

    #[test]
    fn a_burst_of_connections_does_not_land_on_one_core() {
        let loads = Loads::new(2);
        loads.measured(&[core(0, 300), core(1, 0)]);
        let mut on = [0; 2];
        (0..23).for_each(|_| on[usize::from(loads.place(&[]).0)] += 1);
        // What is measured makes up for three of them.
        assert_eq!(on, [10, 13]);
    }

    #[test]
    fn cores_that_hardly_work_get_connections_in_turn() {
        let loads = Loads::new(2);
        for tick in 0..40 {
            loads.measured(&[core(0, tick % 7), core(1, 10)]);
            (0..20).for_each(|_| loads.measured(&[]));
            loads.place(&[]);
        }
        assert_eq!(loads.all(), [(Load(4), 20), (Load(10), 20)]);
    }

    #[test]
    fn the_average_follows_within_seconds_and_comes_to_rest() {
        let mut load = Load(0);
        (0..3).for_each(|_| load = load.next(Load(900)));
        assert!(
            (Load(500)..Load(700)).contains(&load),
            "{load:?} after 750 ms"
        );
        (0..40).for_each(|_| load = load.next(Load(900)));
        assert!(load >= Load(895), "{load:?}");
        (0..40).for_each(|_| load = load.next(Load(0)));
        assert_eq!(load, Load(0));
        assert_eq!(Load::of(5, 0), Load(0));
        assert_eq!(Load::of(7, 5), Load::FULL);
    }

    #[test]
    fn sessions_share_their_cores_load_by_what_they_did() {
        let (busy, idle) = (Part::default(), Part::default());
        for round in 1..=30 {
            let all = busy.since(round * 300) + idle.since(round * 100);
            busy.share(all, Load(800));
            idle.share(all, Load(800));
        }
        let near = |is: Load, wanted: u16| is.0.abs_diff(wanted) <= 5;
        assert!(near(busy.load(), 600), "{:?}", busy.load());
        assert!(near(idle.load(), 200), "{:?}", idle.load());
    }
}
