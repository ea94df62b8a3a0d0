//! Starting, feeding and stopping the cores.

use super::files::{Engine, RealFiles, Special};
use super::forget::Forgetful;
use super::handle::{Handles, Locks};
use super::here::{Message, RealCore};
use super::notices::{Notice, Notices, describe_panic};
use super::ring::Ring;
use super::shared::FilesShared;
use super::slow_flush::SlowFlush;
use super::spin::{Activity, spin};
use super::workers::Workers;
use crate::LocalFuture;
use crate::core::{CoreHandle, CoreId, Job};
use rustix::thread::CpuSet;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use units::{Pool, Reserves};

/// Threads that may hang in the data of files, and in names.
const DATA_THREADS_MAX: usize = 64;
const NAME_THREADS_MAX: usize = 16;

/// How long a stop waits for operations that the kernel has not answered.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// How many processors a runtime uses at most.
const CORES_MAX: usize = 1024;

/// Which processors to run on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cores {
    /// One core on each processor that this process may use.
    Auto,
    /// One core on each of these processors. A processor may be named twice.
    List(Vec<usize>),
}

/// What carries the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// io_uring, or threads (with a notice) where it is refused.
    Auto,
    /// io_uring or nothing.
    Uring,
    /// Threads.
    Poll,
}

/// What a killed process leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilesMode {
    /// What the system's page cache has: all that was written.
    Ordinary,
    /// Only what was synced or written durably, and only names of synced directories: what a power
    /// cut would leave. For tests of the whole program; slow.
    ForgetUnsynced,
    /// As the first, and every flush takes so much longer, one after the other: a disk whose cache
    /// is slow to empty. For benches.
    SlowFlush(Duration),
}

/// How to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuntimeConfig {
    /// Which processors.
    pub cores: Cores,
    /// What carries the disk.
    pub driver: Driver,
    /// Payload memory that each core may have out, in bytes.
    pub pool_limit_bytes: usize,
    /// What of it is kept for work that frees memory.
    pub pool_reserves: Reserves,
    /// What a killed process leaves behind.
    pub files: FilesMode,
    /// How long a core looks for more before it sleeps, after bytes came or went; zero: it sleeps
    /// at once.
    pub poll: Duration,
}

impl Default for RuntimeConfig {
    /// All processors, io_uring where allowed, 256 MiB a core.
    fn default() -> Self {
        Self {
            cores: Cores::Auto,
            driver: Driver::Auto,
            pool_limit_bytes: 256 << 20,
            pool_reserves: Reserves::default(),
            files: FilesMode::Ordinary,
            poll: Duration::ZERO,
        }
    }
}

/// The running cores. Dropping it stops them as [`Runtime::shutdown`] does; neither may happen on
/// one of its cores.
pub struct Runtime {
    posts: Arc<[UnboundedSender<Message>]>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<FilesShared>,
    notices: Arc<Notices>,
}

/// Posts jobs to the cores, from any thread, as long as they run.
#[derive(Clone)]
pub struct Poster(Arc<[UnboundedSender<Message>]>);

impl Poster {
    /// Runs `job` on `core`, after every job that this thread posted there before. A job posted to
    /// a runtime that has stopped is dropped.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn post(&self, core: CoreId, job: Job) {
        let queue = self
            .0
            .get(usize::from(core.0))
            .expect("core numbers are below core_count");
        // A core that is gone takes no jobs.
        let _gone = queue.send(Message::Job(job));
    }

    /// How many cores there are.
    #[must_use]
    pub fn core_count(&self) -> u16 {
        u16::try_from(self.0.len()).expect("at most CORES_MAX")
    }
}

/// What the thread of a core starts with.
struct Start {
    id: CoreId,
    processor: Option<usize>,
    config: RuntimeConfig,
    posts: Arc<[UnboundedSender<Message>]>,
    jobs: UnboundedReceiver<Message>,
    shared: Arc<FilesShared>,
    special: Special,
    notices: Arc<Notices>,
    started: mpsc::Sender<io::Result<()>>,
}

impl Runtime {
    /// Starts one thread per core and waits until all run.
    ///
    /// # Errors
    /// Where a thread, its event loop, or the io_uring that [`Driver::Uring`] insists on cannot be
    /// had.
    pub fn start(config: &RuntimeConfig) -> io::Result<Self> {
        let processors = processors(&config.cores)?;
        let (posts, jobs): (Vec<_>, Vec<_>) =
            processors.iter().map(|_| unbounded_channel()).unzip();
        let shared = Arc::new(FilesShared {
            locks: Locks::default(),
            handles: Handles::default(),
            data: Workers::new("disk", DATA_THREADS_MAX),
            names: Workers::new("names", NAME_THREADS_MAX),
            bounces: AtomicU64::new(0),
        });
        let special = Special {
            forgetful: match config.files {
                FilesMode::Ordinary | FilesMode::SlowFlush(_) => None,
                FilesMode::ForgetUnsynced => Some(Arc::new(Forgetful::default())),
            },
            slow: match config.files {
                FilesMode::Ordinary | FilesMode::ForgetUnsynced => None,
                FilesMode::SlowFlush(takes) => Some(Arc::new(SlowFlush::new(takes))),
            },
        };
        let mut runtime = Self {
            posts: posts.into(),
            threads: Vec::new(),
            shared,
            notices: Arc::default(),
        };
        let (started, wait) = mpsc::channel();
        for (number, (processor, jobs)) in processors.into_iter().zip(jobs).enumerate() {
            let start = Start {
                id: CoreId(u16::try_from(number).expect("at most CORES_MAX")),
                processor,
                config: config.clone(),
                posts: Arc::clone(&runtime.posts),
                jobs,
                shared: Arc::clone(&runtime.shared),
                special: special.clone(),
                notices: Arc::clone(&runtime.notices),
                started: started.clone(),
            };
            let thread = std::thread::Builder::new()
                .name(format!("core-{number}"))
                .spawn(move || run_core(start))?;
            runtime.threads.push(thread);
        }
        drop(started);
        for _ in 0..runtime.threads.len() {
            wait.recv()
                .map_err(|_| io::Error::other("a core's thread ended at its start"))??;
        }
        Ok(runtime)
    }

    /// How many cores there are.
    #[must_use]
    pub fn core_count(&self) -> u16 {
        self.poster().core_count()
    }

    /// Starts a task on `core`, made there.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn spawn_on(
        &self,
        core: CoreId,
        make: impl FnOnce(CoreHandle) -> LocalFuture<()> + Send + 'static,
    ) {
        self.post(
            core,
            Box::new(move |core| core.spawn(make(Rc::clone(core)))),
        );
    }

    /// Runs `job` on `core`, after every job that this thread posted there before.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn post(&self, core: CoreId, job: Job) {
        self.poster().post(core, job);
    }

    /// Posts jobs to the cores, for threads that do not own the runtime.
    #[must_use]
    pub fn poster(&self) -> Poster {
        Poster(Arc::clone(&self.posts))
    }

    /// Runs a future on `core` and waits for what it gives. Not from one of the cores.
    ///
    /// # Panics
    /// If the future panics, or if there is no such core.
    pub fn run<T: Send + 'static>(
        &self,
        core: CoreId,
        make: impl FnOnce(CoreHandle) -> LocalFuture<T> + Send + 'static,
    ) -> T {
        let (answer, wait) = mpsc::channel();
        self.spawn_on(core, move |core| {
            let future = make(core);
            Box::pin(async move {
                let value = future.await;
                answer.send(value).expect("`run` waits for the answer");
            })
        });
        wait.recv()
            .unwrap_or_else(|_| panic!("the future panicked: {:?}", self.notices()))
    }

    /// What the administrator should know: io_uring refused, processors refused, tasks that
    /// panicked.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        let all = &self.notices.0;
        all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the process cannot go on: a core that serves no disk any more, or whose thread has
    /// ended. Waiting for such a core never ends, so a stop in order is not possible either.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let failed = self.notices.1.lock();
        let failed = failed.unwrap_or_else(PoisonError::into_inner).clone();
        failed.or_else(|| {
            let ended = self.threads.iter().position(JoinHandle::is_finished)?;
            Some(format!("the thread of core {ended} has ended"))
        })
    }

    /// Copies that direct I/O needed because memory was not aligned, since the start.
    #[must_use]
    pub fn bounce_copies(&self) -> u64 {
        self.shared.bounces.load(Ordering::Relaxed)
    }

    /// Ends all tasks where they stand, waits for what the kernel has, and stops. Answers what
    /// could not be ended in time.
    pub fn shutdown(mut self) -> Vec<Notice> {
        self.stop();
        self.notices()
    }

    fn stop(&mut self) {
        for core in self.posts.iter() {
            // A core that is gone needs no stop.
            let _gone = core.send(Message::Stop);
        }
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                let why = describe_panic(&panic).to_owned();
                self.notices
                    .push(format!("a core's thread panicked: {why}"));
            }
        }
        let hung = self.shared.data.stop(STOP_GRACE) + self.shared.names.stop(STOP_GRACE);
        if hung > 0 {
            self.notices
                .push(format!("{hung} threads still hang in file operations"));
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop();
        }
    }
}

/// The processor of each core; `None` where it shall not be pinned.
fn processors(cores: &Cores) -> io::Result<Vec<Option<usize>>> {
    let chosen = match cores {
        Cores::List(list) if list.is_empty() || list.len() > CORES_MAX => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("between 1 and {CORES_MAX} cores, not {}", list.len()),
            ));
        }
        Cores::List(list) => list.clone(),
        Cores::Auto => {
            let allowed = rustix::thread::sched_getaffinity(None)?;
            let all = (0..CpuSet::MAX_CPU).filter(|&number| allowed.is_set(number));
            all.take(CORES_MAX).collect()
        }
    };
    let single = chosen.len() == 1;
    Ok(chosen
        .into_iter()
        .map(|number| (!single).then_some(number))
        .collect())
}

fn pin(processor: usize, notices: &Notices) {
    let mut set = CpuSet::new();
    let fits = processor < CpuSet::MAX_CPU;
    if fits {
        set.set(processor);
    }
    if !fits || rustix::thread::sched_setaffinity(None, &set).is_err() {
        notices.push(format!(
            "cannot run on processor {processor} alone: it does not exist or is not allowed; \
             the core runs unpinned"
        ));
    }
}

fn engine(driver: Driver, notices: &Arc<Notices>) -> io::Result<Engine> {
    match driver {
        Driver::Poll => Ok(Engine::Threads),
        Driver::Auto | Driver::Uring => {
            engine_with(driver, Ring::new(Arc::clone(notices)), notices)
        }
    }
}

fn engine_with(driver: Driver, ring: io::Result<Ring>, notices: &Notices) -> io::Result<Engine> {
    match ring {
        Ok(ring) => Ok(Engine::Ring(Rc::new(ring))),
        Err(error) if driver == Driver::Uring => Err(io::Error::new(
            error.kind(),
            format!(
                "io_uring is refused ({error}); allow it, or set driver = \"auto\" or \"poll\""
            ),
        )),
        Err(error) => {
            notices.push(format!(
                "io_uring is refused ({error}): disks run on threads, which costs several times the \
                 processor time; allow io_uring (seccomp profile, kernel.io_uring_disabled) for speed"
            ));
            Ok(Engine::Threads)
        }
    }
}

fn run_core(start: Start) {
    if let Some(processor) = start.processor {
        pin(processor, &start.notices);
    }
    let event_loop = match Builder::new_current_thread().enable_all().build() {
        Ok(event_loop) => event_loop,
        Err(error) => {
            // `start` receives that and gives up.
            let _heard = start.started.send(Err(error));
            return;
        }
    };
    let inside = event_loop.enter();
    let engine = match engine(start.config.driver, &start.notices) {
        Ok(engine) => engine,
        Err(error) => {
            // As above.
            let _heard = start.started.send(Err(error));
            return;
        }
    };
    let notices = Arc::clone(&start.notices);
    let tasks = LocalSet::new();
    tasks.block_on(&event_loop, serve(start, engine.clone()));
    // Every task ends here; what they had in the kernel stays in the ring.
    drop(tasks);
    if let Engine::Ring(ring) = engine {
        let drained = poll_fn(|cx| {
            ring.poll_drive(cx);
            match ring.outstanding() {
                0 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        });
        let waited = event_loop.block_on(async { tokio::time::timeout(STOP_GRACE, drained).await });
        if waited.is_err() {
            let hung = ring.outstanding();
            notices.push(format!("{hung} disk operations still hang in the kernel"));
        }
    }
    drop(inside);
}

/// Drives the disk for as long as the core runs. Without it no operation would ever end, so a panic
/// in it is the end of all and not only of its task.
fn drive(mut step: impl FnMut(&mut Context<'_>) + 'static, notices: Arc<Notices>, id: u16) {
    tokio::task::spawn_local(poll_fn(move |cx| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| step(cx))) {
            let why = describe_panic(&panic);
            notices.fail(format!("the disk engine of core {id} panicked: {why}"));
            return Poll::Ready(());
        }
        Poll::Pending
    }));
}

/// Runs jobs until the stop.
async fn serve(mut start: Start, engine: Engine) {
    if let Engine::Ring(ring) = &engine {
        let (ring, notices, id) = (Rc::clone(ring), Arc::clone(&start.notices), start.id.0);
        drive(move |cx| ring.poll_drive(cx), notices, id);
    }
    let polls = !start.config.poll.is_zero();
    let activity: Option<Rc<Activity>> = polls.then(Rc::default);
    let core: CoreHandle = Rc::new(RealCore::new(
        start.id,
        Arc::clone(&start.posts),
        Pool::with_reserves(start.config.pool_limit_bytes, start.config.pool_reserves),
        RealFiles {
            engine,
            shared: Arc::clone(&start.shared),
            special: start.special.clone(),
        },
        Arc::clone(&start.notices),
        activity.clone(),
    ));
    if let Some(activity) = activity {
        tokio::task::spawn_local(spin(activity, start.config.poll));
    }
    start
        .started
        .send(Ok(()))
        .expect("`start` waits for every core");
    while let Some(message) = start.jobs.recv().await {
        match message {
            Message::Job(job) => RealCore::run(&core, &start.notices, job),
            Message::Stop => break,
        }
    }
    // What they hold may hold the core.
    core.locals().clear();
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_refused_ring_means_threads_and_a_notice_or_no_start_where_it_was_demanded() {
        let refused = || Err(io::ErrorKind::PermissionDenied.into());
        let notices = Notices::default();
        let engine = engine_with(Driver::Auto, refused(), &notices).unwrap();
        assert!(matches!(engine, Engine::Threads));
        let reported = notices.0.lock().unwrap().clone();
        assert_eq!(reported.len(), 1);
        assert!(
            reported[0].0.contains("io_uring is refused"),
            "{reported:?}"
        );
        let error = engine_with(Driver::Uring, refused(), &notices)
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("driver = \"auto\""), "{error}");
    }

    #[test]
    fn a_disk_engine_that_panics_is_a_failure_of_the_whole() {
        let notices = Arc::new(Notices::default());
        let local = LocalSet::new();
        let event_loop = Builder::new_current_thread().build().unwrap();
        let reported = Arc::clone(&notices);
        event_loop.block_on(local.run_until(async move {
            drive(|_| panic!("as the test wants"), reported, 3);
            tokio::task::yield_now().await;
        }));
        let why = notices.1.lock().unwrap().clone();
        assert_eq!(
            why.as_deref(),
            Some("the disk engine of core 3 panicked: as the test wants")
        );
    }
}
