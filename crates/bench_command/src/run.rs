//! The cores that a run has, the run itself, and what is shown meanwhile.

use crate::machine::{Times, between, times};
use crate::problem::of_run;
use crate::seconds::Seconds;
use crate::targets;
use bench::options::Source;
use bench::{
    Ended, Job, Options, PathFigures, Phase, Progress, RunError, RunResult, Shared, Target,
    TcpSample, Watcher,
};
use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use host::{Located, Status};
use manifest::code::Code;
use manifest::problem::Problem;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::cell::RefCell;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::rc::Rc;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use units::{Buf, Now};

/// Payload memory that a core may have out.
const POOL_BYTES: usize = 4 << 30;

/// Cores, and what is opened on them.
pub(crate) struct Bed {
    runtime: Runtime,
}

/// What lives on core 0 between preparation and runs.
#[derive(Default)]
struct Opened(RefCell<targets::Ready>);

fn internal(error: impl std::fmt::Display) -> Problem {
    Problem::new(Code::Internal, format!("{error}"))
}

/// Processors that this process may use.
fn processors() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else {
        return vec![0];
    };
    (0..CpuSet::MAX_CPU)
        .filter(|number| allowed.is_set(*number))
        .collect()
}

impl Bed {
    /// Starts as many cores as there are threads, but no more than processors. One alone may go
    /// where the system likes.
    pub(crate) fn start(options: &Options) -> Result<Self, Problem> {
        let threads = options.threads_total.unwrap_or_else(|| {
            let targets = u32::try_from(options.targets.len().max(1)).unwrap_or(u32::MAX);
            options.threads.saturating_mul(targets)
        });
        let most = usize::from(options.cores.unwrap_or(u16::MAX));
        let most = most
            .min(usize::try_from(threads).unwrap_or(usize::MAX))
            .max(1);
        let list = processors().into_iter().take(most).collect();
        let config = RuntimeConfig {
            cores: Cores::List(list),
            pool_limit_bytes: POOL_BYTES,
            ..RuntimeConfig::default()
        };
        let runtime = Runtime::start(&config).map_err(internal)?;
        Ok(Self { runtime })
    }

    /// Opens the targets; returns what of them all can be used.
    pub(crate) fn prepare(&self, options: &Options) -> Result<Room, Problem> {
        let options = options.clone();
        self.interruptible(None, move |core| {
            Box::pin(async move {
                let ready = targets::open_all(&core, &options).await?;
                let room = Room::of(&options, &ready.targets);
                *core.locals().get::<Opened>().0.borrow_mut() = ready;
                Ok(room)
            })
        })?
    }

    /// Writes all that the options use of every target.
    pub(crate) fn fill(&self, options: &Options) -> Result<(), Problem> {
        let options = options.clone();
        let filled = self.interruptible(None, move |core| {
            Box::pin(async move {
                let targets = core.locals().get::<Opened>().0.borrow().targets.clone();
                for target in &targets {
                    bench::fill(&core, &options, target).await?;
                }
                Ok(())
            })
        })?;
        filled.map_err(of_run)
    }

    /// Runs what the options say on the targets that are open.
    pub(crate) fn run(&self, options: &Options) -> Result<RunResult, Problem> {
        let mut all = self.run_together(std::slice::from_ref(options))?;
        Ok(all.pop().expect("as many results as runs"))
    }

    /// Runs several loads on the targets that are open, at the same time.
    pub(crate) fn run_together(&self, all: &[Options]) -> Result<Vec<RunResult>, Problem> {
        let mut jobs = Vec::new();
        for options in all {
            jobs.push((options.clone(), source(options)?));
        }
        if all.iter().any(|options| options.barrier) {
            wait_for_go()?;
        }
        let shared: Arc<Shared> = Arc::default();
        let progress = Arc::clone(&shared);
        let done = self.interruptible(Some(shared), move |core| {
            Box::pin(together(core, jobs, progress))
        })?;
        done.into_iter()
            .map(|result| result.map_err(of_run))
            .collect()
    }

    /// Logs out where there is anything to log out of.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        self.interruptible(None, move |core| {
            Box::pin(async move {
                let opened = core.locals().get::<Opened>().0.take();
                for attached in opened.attached {
                    attached.stop(&core).await;
                }
            })
        })
    }

    /// Runs a future on core 0. A signal stops what `shared` belongs to; the second one, or one
    /// where there is nothing to stop, ends the process.
    fn interruptible<T: Send + 'static>(
        &self,
        shared: Option<Arc<Shared>>,
        make: impl FnOnce(CoreHandle) -> LocalFuture<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let (answer, mut answered) = oneshot::channel();
        self.runtime.spawn_on(CoreId(0), move |core| {
            let future = make(core);
            // Nobody waits any more where the process is ending.
            Box::pin(async move { drop(answer.send(future.await)) })
        });
        let main = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        main.map_err(internal)?.block_on(async {
            let mut terminate = signal(SignalKind::terminate()).map_err(internal)?;
            let mut interrupt = signal(SignalKind::interrupt()).map_err(internal)?;
            let mut shared = shared;
            loop {
                tokio::select! {
                    done = &mut answered => return done.map_err(|_| {
                        internal(format!("a task panicked: {:?}", self.runtime.notices()))
                    }),
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                match shared.take() {
                    Some(shared) => self
                        .runtime
                        .post(CoreId(0), Box::new(move |core| shared.stop(core.now()))),
                    None => std::process::exit(130),
                }
            }
        })
    }
}

/// What of the targets a run can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// First byte.
    pub(crate) start: u64,
    /// Bytes, of the smallest target.
    pub(crate) bytes: u64,
}

impl Room {
    fn of(options: &Options, targets: &[Target]) -> Self {
        let any_marked = targets.iter().any(|target| target.marked);
        let least = if any_marked { bench::mark::RESERVED } else { 0 };
        let start = options.base.unwrap_or(least);
        let sizes = targets
            .iter()
            .map(|target| target.volume.shape().byte_count().0);
        let bytes = sizes.min().unwrap_or(0).saturating_sub(start);
        Self { start, bytes }
    }
}

/// Runs loads at the same time, each with the counters of its own; the first one's are shown.
async fn together(
    core: CoreHandle,
    jobs: Vec<(Options, Option<Buf>)>,
    shared: Arc<Shared>,
) -> Vec<Result<RunResult, RunError>> {
    let opened = core.locals().get::<Opened>();
    let targets = opened.0.borrow().targets.clone();
    let attached: Vec<Located> = opened
        .0
        .borrow()
        .attached
        .iter()
        .map(|it| it.located())
        .collect();
    let mut answers = Vec::new();
    for (number, (options, source)) in jobs.into_iter().enumerate() {
        let (targets, attached) = (targets.clone(), attached.clone());
        let (there, shared) = (Rc::clone(&core), Arc::clone(&shared));
        answers.push(env::detach(&core, async move {
            let mut watcher = Live::new(&there, &options, number == 0, attached);
            let job = Job {
                options,
                targets,
                source,
                shared,
            };
            let result = bench::run(&there, job, &mut watcher).await;
            watcher.clear();
            result.map(|mut result| {
                result.processors = between(&watcher.before, &watcher.after);
                result.paths = watcher.paths();
                result.tcp = watcher.tcp;
                result
            })
        }));
    }
    let mut results = Vec::new();
    for answer in answers {
        results.push(answer.await);
    }
    results
}

/// The bytes of `-Z<size>,<file>`.
fn source(options: &Options) -> Result<Option<Buf>, Problem> {
    let Source::File { bytes, path } = &options.source else {
        return Ok(None);
    };
    let unreadable = |why: String| {
        Problem::new(Code::BenchUsage, format!("-Z: {}: {why}", path.display()))
            .hint("name a file that is at least as large as the size before the comma")
    };
    let mut all = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let wanted = usize::try_from(*bytes).unwrap_or(usize::MAX);
    if all.len() < wanted {
        return Err(unreadable(format!("it has {} bytes", all.len())));
    }
    all.truncate(wanted);
    Ok(Some(Buf::copy_of(&all)))
}

/// Says that all is ready, and waits for a line.
fn wait_for_go() -> Result<(), Problem> {
    output::print("ready\n");
    std::io::stdout().flush().map_err(internal)?;
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) => Err(Problem::new(
            Code::BenchUsage,
            "--barrier: standard input ended before a line came",
        )
        .hint("whoever starts several runs writes a line to each when all have said `ready`")),
        Ok(_) => Ok(()),
        Err(error) => Err(internal(error)),
    }
}

/// Shows how far it is, on a terminal, and reads the processors' times at the edges.
struct Live {
    core: CoreHandle,
    attached: Vec<Located>,
    paths: (Vec<Status>, Vec<Status>),
    shown: bool,
    record_tcp: bool,
    tcp: Vec<TcpSample>,
    driven: Option<Seconds>,
    /// When the measured time began.
    began: Now,
    before: Vec<Times>,
    after: Vec<Times>,
}

impl Live {
    fn new(core: &CoreHandle, options: &Options, first: bool, attached: Vec<Located>) -> Self {
        Self {
            core: Rc::clone(core),
            attached,
            paths: (Vec::new(), Vec::new()),
            shown: first && !options.quiet && !options.driven && std::io::stderr().is_terminal(),
            driven: (first && options.driven).then(Seconds::default),
            record_tcp: options.record_tcp,
            tcp: Vec::new(),
            began: core.now(),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Notes what TCP says of every path.
    fn record(&mut self) {
        let at = self.core.now().since(self.began);
        for volume in self.all_paths() {
            let earlier = self.paths.0.iter().find(|it| it.url == volume.url);
            for path in &volume.paths {
                let was = earlier.and_then(|it| it.paths.iter().find(|was| was.path == path.path));
                let sent_again = was.map_or(0, |was| was.retransmits);
                self.tcp.push(TcpSample {
                    at,
                    path: path.path.clone(),
                    round_trip_us: path.round_trip_us,
                    retransmits: path.retransmits.saturating_sub(sent_again),
                    bytes_in_flight: path.bytes_in_flight,
                });
            }
        }
    }

    /// Every path of every target now; core 0 is their home.
    fn all_paths(&self) -> Vec<Status> {
        self.attached
            .iter()
            .filter_map(|it| it.status(&self.core))
            .collect()
    }

    /// What each path did in the measured time, and how it is at its end.
    fn paths(&self) -> Vec<PathFigures> {
        let (before, after) = &self.paths;
        let mut all = Vec::new();
        for volume in after {
            let earlier = before.iter().find(|it| it.url == volume.url);
            for path in &volume.paths {
                let known =
                    earlier.and_then(|it| it.paths.iter().find(|was| was.path == path.path));
                let since =
                    |of: fn(&host::PathStatus) -> u64| of(path).saturating_sub(known.map_or(0, of));
                all.push(PathFigures {
                    from: path.from.to_string(),
                    portal: path.portal.to_string(),
                    state: path.state.to_owned(),
                    ios: since(|it| it.ios),
                    bytes: since(|it| it.bytes),
                    retransmits: since(|it| it.retransmits),
                });
            }
        }
        all
    }

    /// Takes the line away.
    fn clear(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

impl Watcher for Live {
    fn progress(&mut self, progress: &Progress) {
        if self.record_tcp && progress.phase == Phase::Measuring {
            self.record();
        }
        if !self.shown {
            return;
        }
        let phase = match progress.phase {
            Phase::WarmUp => "warm-up",
            Phase::Measuring => "measuring",
            Phase::CoolDown => "cool-down",
        };
        let errors = match progress.errors {
            0 => String::new(),
            errors => format!(", {errors} errors"),
        };
        eprint!(
            "\r\x1b[K{phase} {:.0}/{:.0} s: {:.0} IOPS, {:.1} MiB/s{errors}",
            progress.elapsed.as_secs_f64(),
            progress.whole.as_secs_f64(),
            progress.iops,
            progress.bytes_per_second / f64::from(1 << 20)
        );
    }

    fn wants_seconds(&self) -> bool {
        self.driven.is_some()
    }

    fn second(&mut self, progress: &Progress, ended: &Ended) {
        let paths = self.all_paths();
        if let Some(driven) = &mut self.driven {
            driven.say(progress, ended, paths);
        }
    }

    fn begins(&mut self) {
        self.before = times();
        self.began = self.core.now();
        self.paths.0 = self.all_paths();
    }

    fn ends(&mut self) {
        self.after = times();
        self.paths.1 = self.all_paths();
    }
}
