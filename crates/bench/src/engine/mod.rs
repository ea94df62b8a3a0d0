//! Running a workload: threads spread over the cores, one window for all, one end.
//!
//! ```text
//!   run (any core) --prepare--> thread 0 on core 0, thread 1 on core 1, ...   every lane is open
//!                  --start----> the same first moment for all
//!                  <--shares--- after warm-up, measured time, cool-down, and what comes late
//! ```
//!
//! A thread is a set of slots on one core, as many for each target as `-o` says. Each slot has one
//! operation in flight, records it, and begins the next. What never comes back is given up after
//! the deadline and counted.

mod error;
mod gather;
mod job;
mod stream;
mod window;

pub use error::RunError;
pub use gather::Ended;
pub use job::{Job, Target, Watcher};
pub use window::{Phase, Progress, Shared};

use crate::options::{Options, Source};
use crate::payload::Payload;
use crate::random::{Random, mix};
use crate::result::{RunResult, Share, TargetFacts};
use crate::verify::{Checker, Tally};
use env::{CoreHandle, call};
use gather::Gather;
use job::{FILL, Plan};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::Stream;
use units::Now;
use volume::OpenError;
use window::Window;

/// How long after the last lane is open the run begins.
const START_DELAY: Duration = Duration::from_millis(5);

/// How often progress is reported.
const PROGRESS: Duration = Duration::from_secs(1);

/// Threads of runs that are prepared on this core, by run and thread.
#[derive(Default)]
struct Prepared(RefCell<BTreeMap<(u64, u32), Streams>>);

/// A thread's, one for each target.
type Streams = Vec<Rc<Stream>>;

/// What a run uses of a target.
///
/// # Errors
/// Where the options do not fit it.
pub fn region(options: &Options, target: &Target) -> Result<TargetFacts, RunError> {
    let (name, shape) = (&target.name, target.volume.shape());
    let size = shape.byte_count().0;
    let unit = u64::from(shape.block_size.bytes());
    let least = if target.marked {
        crate::mark::RESERVED
    } else {
        0
    };
    let base = options.base.unwrap_or(least);
    if base < least {
        return Err(unfit(format!(
            "{name}: -B: the first {least} bytes of a bench LUN hold its mark; begin at -B1M or leave -B out"
        )));
    }
    let room = size.saturating_sub(base) / unit * unit;
    let length = options.length.unwrap_or(room);
    if length > room {
        return Err(unfit(format!(
            "{name} has {room} bytes from byte {base} on, fewer than the {length} asked for"
        )));
    }
    if options.block > length {
        return Err(unfit(format!(
            "{name}: an operation of {} bytes does not fit into the {length} bytes that are used of it",
            options.block
        )));
    }
    let most = shape.limits.transfer_blocks_max.0.saturating_mul(unit);
    if options.block > most {
        return Err(unfit(format!(
            "{name} takes operations of at most {most} bytes: choose a smaller -b"
        )));
    }
    for (what, bytes) in steps(options).into_iter().chain([("-B", base)]) {
        if !bytes.is_multiple_of(unit) {
            return Err(unfit(format!(
                "{name} has blocks of {unit} bytes, of which {what} {bytes} is no multiple"
            )));
        }
    }
    Ok(TargetFacts {
        name: name.clone(),
        size,
        base,
        length,
    })
}

fn unfit(why: impl Into<String>) -> RunError {
    RunError::Unfit(why.into())
}

fn not_open(target: &Target, error: OpenError) -> RunError {
    let target = target.name.clone();
    RunError::Open { target, error }
}

fn core_is_gone() -> RunError {
    RunError::Failed("a core is gone".to_owned())
}

/// What offsets and lengths of operations are multiples of.
fn steps(options: &Options) -> Vec<(&'static str, u64)> {
    use crate::options::Access;
    let access = match options.access {
        Access::Sequential { stride, .. } => ("-s", stride),
        Access::Random { alignment, .. } => ("-r", alignment),
    };
    vec![("-b", options.block), access, ("-T", options.thread_stride)]
}

/// Runs a job to its end. Everything that can be refused is refused before anything is written.
///
/// # Errors
/// Why it could not be begun.
pub async fn run(
    core: &CoreHandle,
    job: Job,
    watcher: &mut dyn Watcher,
) -> Result<RunResult, RunError> {
    let options = job.options.clone();
    let (plan, run_id) = plan(core, job)?;
    let plan = Arc::new(plan);
    let threads = threads(&options, plan.targets.len());
    let cores = options
        .cores
        .unwrap_or(u16::MAX)
        .min(core.core_count())
        .max(1);
    let mut gather = Gather::new(run_id, threads, cores);
    let core_of = |thread: u32| gather.core_of(thread);
    for thread in 0..threads {
        let plan = Arc::clone(&plan);
        let opened = call(core, core_of(thread), move |core| {
            Box::pin(prepare(Rc::clone(core), plan, run_id, thread))
        });
        opened.await.ok_or_else(core_is_gone)??;
    }
    let started = core.wall_clock().0;
    let window = Window::new(core.now().after(START_DELAY), &options);
    let (sender, mut answers) = (Arc::clone(&plan.shared), Vec::new());
    for thread in 0..threads {
        let shared = Arc::clone(&sender);
        let begin = move |core: &CoreHandle| {
            let streams = prepared(core, run_id, thread);
            let core = Rc::clone(core);
            Box::pin(async move {
                gather::begins(&core, (run_id, thread), &streams);
                stream::run(core, streams, window, shared).await
            }) as env::LocalFuture<Vec<Share>>
        };
        let there = Rc::clone(core);
        let target = core_of(thread);
        answers.push(env::detach(core, async move {
            call(&there, target, begin).await
        }));
    }
    progress(core, &window, (&plan.shared, &mut gather), watcher).await;
    gather.forget(core).await;
    let mut shares = Vec::new();
    for answer in answers {
        shares.extend(answer.await.ok_or_else(core_is_gone)?);
    }
    let ended = plan.shared.ended_at().unwrap_or(window.to).min(window.to);
    let mut result = RunResult {
        seconds: ended.since(window.from).as_secs_f64(),
        shares,
        targets: plan
            .targets
            .iter()
            .map(|(_, facts, _)| facts.clone())
            .collect(),
        threads,
        interval: options.interval,
        started,
        stopped: plan.shared.is_stopped(),
        ..RunResult::default()
    };
    if options.verify {
        let (tally, unread) = last_pass(core, &plan).await;
        (result.verify, result.unread) = (Some(tally), unread);
    }
    Ok(result)
}

fn threads(options: &Options, targets: usize) -> u32 {
    let each = u32::try_from(targets)
        .unwrap_or(u32::MAX)
        .saturating_mul(options.threads);
    options.threads_total.unwrap_or(each)
}

fn plan(core: &CoreHandle, job: Job) -> Result<(Plan, u64), RunError> {
    let Job {
        options,
        targets,
        source,
        shared,
    } = job;
    if targets.is_empty() {
        return Err(unfit(
            "no target: name a file, a block device, memory:SIZE or an iscsi:// URL",
        ));
    }
    let mut run_id = [0; 8];
    core.fill_random(&mut run_id);
    let run_id = u64::from_le_bytes(run_id);
    let seed = options.seed.unwrap_or(run_id);
    let payload = Payload::new(&options, source.as_ref(), &mut Random::new(mix(seed)));
    let payload = payload.map_err(RunError::Unfit)?;
    let mut regions = Vec::new();
    for target in targets {
        let facts = region(&options, &target)?;
        let checker = options.verify.then(|| {
            let unit = u64::from(target.volume.shape().block_size.bytes());
            let steps: Vec<u64> = steps(&options)
                .into_iter()
                .map(|(_, bytes)| bytes)
                .collect();
            let steps = [steps, vec![unit]].concat();
            Arc::new(Checker::new(run_id, facts.base, facts.length, &steps))
        });
        regions.push((target, facts, checker));
    }
    let interlocked = regions.iter().map(|_| Arc::default()).collect();
    let plan = Plan {
        options,
        targets: regions,
        interlocked,
        payload,
        shared,
        seed,
    };
    Ok((plan, run_id))
}

/// What was prepared for a thread on this core.
fn prepared(core: &CoreHandle, run: u64, thread: u32) -> Streams {
    let all = core.locals().get::<Prepared>();
    let found = all.0.borrow_mut().remove(&(run, thread));
    found.unwrap_or_default()
}

/// Opens a thread's lanes on its core.
async fn prepare(core: CoreHandle, plan: Arc<Plan>, run: u64, thread: u32) -> Result<(), RunError> {
    let options = &plan.options;
    let all = options.threads_total.is_some();
    let mut streams = Vec::new();
    for (index, (target, ..)) in plan.targets.iter().enumerate() {
        let mine = u32::try_from(index).ok() == Some(thread / options.threads);
        if !all && !mine {
            continue;
        }
        let opened = Arc::clone(&target.volume).open(&core).await;
        let lane = opened.map_err(|error| not_open(target, error))?;
        streams.push(Rc::new(Stream::new(&core, &plan, (thread, index), lane)));
    }
    core.locals()
        .get::<Prepared>()
        .0
        .borrow_mut()
        .insert((run, thread), streams);
    Ok(())
}

/// Reports how far it is, each second and at the edges of the measured time, until the end or the
/// stop.
async fn progress(
    core: &CoreHandle,
    window: &Window,
    (shared, gather): (&Shared, &mut Gather),
    watcher: &mut dyn Watcher,
) {
    let mut last = shared.sample(core.now());
    let mut second = window.start.after(PROGRESS);
    let (mut begun, mut ended) = (false, false);
    loop {
        let now = core.now();
        let over = now >= window.end || shared.is_stopped();
        if !begun && now >= window.from {
            begun = true;
            watcher.begins();
        }
        if !ended && begun && (now >= window.to || over) {
            ended = true;
            watcher.ends();
        }
        if now >= second || over {
            let sample = shared.sample(now);
            let progress = Progress::between(&last, &sample, window);
            watcher.progress(&progress);
            if watcher.wants_seconds() {
                let ended = gather.since_last(core).await;
                watcher.second(&progress, &ended);
            }
            last = sample;
            second = second.after(PROGRESS);
        }
        if over {
            return;
        }
        let edges = [window.from, window.to, window.end, second];
        let next = edges
            .into_iter()
            .filter(|at| *at > now)
            .min()
            .unwrap_or(now);
        // A stop is noticed soon.
        core.sleep_until(next.min(now.after(Duration::from_millis(100))))
            .await;
    }
}

/// Reads everything that was written and compares it. Says why not, where that is not possible:
/// what was found until then is reported all the same.
async fn last_pass(core: &CoreHandle, plan: &Arc<Plan>) -> (Tally, Option<String>) {
    let (mut all, mut unread) = (Tally::default(), None);
    let patience = plan.options.deadline;
    for (target, facts, checker) in &plan.targets {
        let Some(checker) = checker else { continue };
        let read = match Arc::clone(&target.volume).open(core).await {
            Ok(lane) => {
                let shape = target.volume.shape();
                stream::read_back(core, &lane, &shape, (facts, checker), patience).await
            }
            Err(error) => Err(format!("{}: {error}", target.name)),
        };
        unread = unread.or(read.err());
        let tally = checker.tally();
        all.checked += tally.checked;
        all.bad += tally.bad;
        all.described.extend(tally.described);
    }
    (all, unread)
}

/// Writes the whole region of a target once, so that reads find blocks.
///
/// # Errors
/// What failed.
pub async fn fill(core: &CoreHandle, options: &Options, target: &Target) -> Result<(), RunError> {
    let facts = region(options, target)?;
    let lane = Arc::clone(&target.volume)
        .open(core)
        .await
        .map_err(|error| not_open(target, error))?;
    let mut random = Random::new(mix(options.seed.unwrap_or(0)));
    // Random bytes, unless zeroes were asked for: storage that compresses shall not win by it.
    let source = match &options.source {
        Source::Zeroes => Source::Zeroes,
        Source::Like { compress, dedupe } => Source::Like {
            compress: *compress,
            dedupe: *dedupe,
        },
        Source::Pattern | Source::RandomEach | Source::Random { .. } | Source::File { .. } => {
            Source::RandomEach
        }
    };
    let wanted = Options {
        source,
        block: FILL,
        ..Options::default()
    };
    let payload = Payload::new(&wanted, None, &mut random).map_err(RunError::Unfit)?;
    let filled = stream::fill(core, &lane, &target.volume.shape(), &facts, &payload).await;
    filled.map_err(RunError::Failed)
}

/// The stop of a run, for whoever catches signals.
impl Shared {
    /// Stops the run before its time.
    pub fn stop(&self, now: Now) {
        self.stop_at.fetch_min(now.0, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod test;
