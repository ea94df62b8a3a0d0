//! One core: time, timers, tasks, randomness, memory, and jobs for other cores.

use crate::{Files, LocalFuture, Locals, Net};
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;
use units::{Now, Pool, WallClock};

/// What a core keeps of itself and hands to everything that runs on it.
pub type CoreHandle = Rc<dyn Core>;

/// Work that one core gives to another.
pub type Job = Box<dyn FnOnce(&CoreHandle) + Send>;

/// A core's number: 0 to [`Core::core_count`] - 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CoreId(pub u16);

/// One core of the runtime.
pub trait Core {
    /// This core's number.
    fn id(&self) -> CoreId;

    /// How many cores there are; fixed for the life of the runtime.
    fn core_count(&self) -> u16;

    /// Monotonic time, which counts while the machine sleeps. In the real world it is read from the
    /// clock at each call.
    fn now(&self) -> Now;

    /// The time that [`Core::now`] returned last on this core, or a newer one: good enough, and
    /// much cheaper than the clock, for whoever counts times of things that follow each other
    /// closely.
    fn recent(&self) -> Now {
        self.now()
    }

    /// Wall-clock time, for logs and stored events only.
    fn wall_clock(&self) -> WallClock;

    /// Whether something keeps the wall clock right, such as a time server; `None` where nobody
    /// knows.
    fn clock_is_steered(&self) -> Option<bool> {
        None
    }

    /// Processor time that this core has worked since it began. Waiting is no work.
    fn busy(&self) -> Duration;

    /// Wakes the task that calls, once everything else that is ready has had its turn, and whatever
    /// the network has by then. A task that wakes itself goes before what has just come.
    fn pause(&self, cx: &mut Context<'_>);

    /// Completes at `at` or a tick of the timers (a millisecond) later, and not in the poll that
    /// begins it, also where `at` has passed: whoever replaces a timer because its time has come
    /// is never notified. Dropping it cancels the timer.
    fn sleep_until(&self, at: Now) -> LocalFuture<()>;

    /// Starts a task on this core. It runs until it ends or the runtime stops; nobody waits for it.
    fn spawn(&self, task: LocalFuture<()>);

    /// Runs `job` on core `to`, after every job that this core posted there before. A job posted to
    /// a runtime that is stopping is dropped.
    fn post(&self, to: CoreId, job: Job);

    /// Fills `bytes` with unpredictable bytes: the system's generator in the real world, the seed's
    /// stream in the simulated one.
    fn fill_random(&self, bytes: &mut [u8]);

    /// This core's pool of payload memory.
    fn pool(&self) -> &Pool;

    /// Values that belong to this core, one per type, for jobs that other cores post here.
    fn locals(&self) -> &Locals;

    /// The network.
    fn net(&self) -> Rc<dyn Net>;

    /// The file system.
    fn files(&self) -> Rc<dyn Files>;

    /// A place where the simulator may make something rare happen. Always `false` in the real
    /// world.
    fn perhaps(&self, name: &'static str) -> bool {
        let _ = name;
        false
    }
}
