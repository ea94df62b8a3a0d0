//! One thread on one target: its slots, and what each operation does.

use super::gather::Ended;
use super::job::{FILL, Plan};
use super::window::{Shared, Window};
use crate::meter::{Kind, Meter};
use crate::offsets::Offsets;
use crate::pace::Pace;
use crate::payload::{Payload, memory};
use crate::random::{Random, mix};
use crate::result::{Share, TargetFacts};
use crate::verify::Checker;
use env::CoreHandle;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use units::{BlockCount, Lba, LbaRange, Now};
use volume::{Done, Durability, Io, IoError, IoFuture, IoResult, Lane, Op, Origin, Shape};

/// Operations that end at once, in a row, before other tasks have a turn.
const TURN: u32 = 32;

/// How long a slot rests after a failure, so that a dead target is not asked a million times.
const REST: Duration = Duration::from_millis(50);

/// How long a slot rests where all places that it tried are taken.
const CLAIM_REST: Duration = Duration::from_micros(200);

/// Places that a slot tries in a row.
const CLAIM_TRIES: u32 = 16;

/// How often counters are reported to others: each so many operations of a slot.
const REPORT_EVERY: u64 = 16;

/// Bytes of one read of the last pass.
const READ_BACK: u64 = 1 << 20;

/// One thread on one target.
pub(super) struct Stream {
    core: CoreHandle,
    lane: Rc<dyn Lane>,
    shape: Shape,
    thread: u32,
    target: usize,
    slots: u32,
    block: u64,
    base: u64,
    write_percent: u64,
    durability: Durability,
    payload: Payload,
    checker: Option<Arc<Checker>>,
    interval: Duration,
    state: RefCell<State>,
    pace: RefCell<Pace>,
    outcome: Outcome,
}

/// Slots that have not come back, failures and the first of them.
#[derive(Default)]
struct Outcome {
    running: Cell<u32>,
    errors: RefCell<(u64, Option<String>)>,
}

struct State {
    random: Random,
    offsets: Offsets,
    meter: Meter,
}

/// An operation that is about to be submitted.
struct Next {
    kind: Kind,
    /// Offset in the region.
    at: u64,
    /// Number of the write, where it carries stamps.
    write: u64,
    io: Io,
}

impl Stream {
    pub(super) fn new(
        core: &CoreHandle,
        plan: &Arc<Plan>,
        (thread, target): (u32, usize),
        lane: Rc<dyn Lane>,
    ) -> Self {
        let options = &plan.options;
        let (at, facts, checker) = &plan.targets[target];
        let slots = slots(plan, target);
        let of_target = if options.threads_total.is_some() {
            thread
        } else {
            thread % options.threads
        };
        let start = options.thread_stride.wrapping_mul(u64::from(of_target));
        let offsets = Offsets::new(
            options.access,
            &options.zones,
            (options.block, facts.length),
            start,
            slots,
            Arc::clone(&plan.interlocked[target]),
        );
        let stream = mix(u64::from(thread) << 32 | target as u64);
        Self {
            core: Rc::clone(core),
            lane,
            shape: at.volume.shape(),
            thread,
            target,
            slots,
            block: options.block,
            base: facts.base,
            write_percent: options.write_percent.into(),
            durability: if options.write_through {
                Durability::Stable
            } else {
                Durability::Cached
            },
            payload: plan.payload.clone(),
            checker: checker.clone(),
            interval: options.interval,
            state: RefCell::new(State {
                random: Random::new(mix(plan.seed) ^ stream),
                offsets,
                meter: Meter::new(Now(0), Now(0), Duration::from_secs(1)),
            }),
            pace: RefCell::new(Pace::new(options, Now(0))),
            outcome: Outcome::default(),
        }
    }

    fn range(&self, at: u64, bytes: u64) -> LbaRange {
        let block = u64::from(self.shape.block_size.bytes());
        let start = Lba((self.base + at) / block);
        LbaRange::new(start, BlockCount(bytes / block)).expect("inside the target")
    }

    /// The next operation; `None` where all places that were tried have one in flight already.
    fn next(&self) -> Option<Next> {
        let mut state = self.state.borrow_mut();
        let State {
            random, offsets, ..
        } = &mut *state;
        let write = match self.write_percent {
            0 => false,
            100 => true,
            percent => random.below(100) < percent,
        };
        let at = match &self.checker {
            None => offsets.next(random),
            Some(checker) => {
                let mut tries = (0..CLAIM_TRIES).map(|_| offsets.next(random));
                tries.find(|at| checker.claim(*at, self.block))?
            }
        };
        let bytes = usize::try_from(self.block).expect("an operation fits into memory");
        let range = self.range(at, self.block);
        let (kind, write, op) = if write {
            let (write, data) = match &self.checker {
                None => (0, self.payload.next(bytes, random, self.core.pool())),
                Some(checker) => {
                    checker.stamp(at, self.thread.into(), memory(self.core.pool(), bytes))
                }
            };
            let durability = self.durability;
            (
                Kind::Write,
                write,
                Op::Write {
                    range,
                    data,
                    durability,
                },
            )
        } else {
            (Kind::Read, 0, Op::Read { range, into: None })
        };
        Some(Next {
            kind,
            at,
            write,
            io: Io::new(op, Origin::default()),
        })
    }

    fn fail(&self, kind: Kind, at: u64, why: &str) {
        let mut errors = self.outcome.errors.borrow_mut();
        errors.0 += 1;
        let what = match kind {
            Kind::Read => "read",
            Kind::Write => "write",
        };
        errors.1.get_or_insert_with(|| {
            format!(
                "{what} of {} bytes at byte {}: {why}",
                self.block,
                self.base + at
            )
        });
    }

    /// Adds what has ended in the measured time so far.
    pub(super) fn add_to(&self, sum: &mut Ended) {
        let state = self.state.borrow();
        sum.read.add(&state.meter.read);
        sum.write.add(&state.meter.write);
    }

    /// Takes the answer; says whether all is well.
    fn end(
        &self,
        kind: Kind,
        (at, write): (u64, u64),
        begun: Now,
        now: Now,
        result: IoResult,
    ) -> bool {
        let answered = match (kind, result) {
            (Kind::Write, Ok(_)) => Ok(None),
            (Kind::Read, Ok(Done::Data(data))) if data.len() as u64 == self.block => Ok(Some(data)),
            (Kind::Read, Ok(_)) => Err("an answer without the data".to_owned()),
            (_, Err(error)) => Err(in_words(error)),
        };
        let well = answered.is_ok();
        let meter = &mut self.state.borrow_mut().meter;
        let data = match answered {
            Ok(data) => {
                meter.ended(kind, self.block, begun, now);
                data
            }
            Err(why) => {
                meter.failed(now);
                self.fail(kind, at, &why);
                None
            }
        };
        if let Some(checker) = &self.checker {
            match kind {
                Kind::Read => checker.read(at, self.block, data.as_ref()),
                Kind::Write => checker.wrote(at, self.block, write, well),
            }
        }
        well
    }
}

fn in_words(error: IoError) -> String {
    match error {
        IoError::MediumError { lba } => format!("medium error at block {}", lba.0),
        IoError::Integrity { lba } => format!("damaged data at block {}", lba.0),
        IoError::Miscompare { at } => format!("miscompare at byte {}", at.0),
        IoError::SpaceExhausted => "no space is left".to_owned(),
        IoError::WriteProtected => "write protected".to_owned(),
        IoError::Unavailable => "the volume cannot be reached".to_owned(),
        IoError::TimedOut => "it took too long".to_owned(),
        IoError::Aborted => "it was aborted".to_owned(),
        IoError::Fenced => "the right to write was lost".to_owned(),
        IoError::Transition => "the right to serve is moving".to_owned(),
        IoError::Busy => "busy: no memory or no place in a queue".to_owned(),
    }
}

fn slots(plan: &Plan, target: usize) -> u32 {
    let options = &plan.options;
    match options.outstanding_total {
        None => options.outstanding,
        Some(total) => {
            let count = u32::try_from(plan.targets.len()).expect("few targets");
            let extra = u32::from(u32::try_from(target).expect("few targets") < total % count);
            total / count + extra
        }
    }
}

/// Lets other tasks have a turn.
async fn pause(core: &CoreHandle) {
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        core.pause(cx);
        Poll::Pending
    })
    .await;
}

/// One operation in flight at a time, until the end.
async fn slot(stream: Rc<Stream>, window: Window, shared: Arc<Shared>) {
    let core = &stream.core;
    core.sleep_until(window.start).await;
    let free = stream.pace.borrow().is_free();
    let mut now = core.now();
    let (mut row, mut reported) = (0, 0);
    while now < window.end && !shared.is_stopped() {
        if !free {
            let at = stream.pace.borrow_mut().take(now);
            if at >= window.end {
                break;
            }
            if at > now {
                core.sleep_until(at).await;
                now = core.now();
            }
        }
        let Some(next) = stream.next() else {
            core.sleep_until(now.after(CLAIM_REST)).await;
            now = core.now();
            continue;
        };
        let (kind, place, begun) = (next.kind, (next.at, next.write), now);
        stream.state.borrow_mut().meter.began(now);
        let result = match stream.lane.submit(next.io).now() {
            Ok(result) => {
                row += 1;
                result
            }
            Err(answer) => {
                row = 0;
                answer.await
            }
        };
        now = core.now();
        if stream.end(kind, place, begun, now, result) {
            reported += 1;
        } else {
            shared.failed();
            core.sleep_until(now.after(REST)).await;
            now = core.now();
        }
        if reported == REPORT_EVERY {
            shared.add(reported, reported * stream.block);
            reported = 0;
        }
        if row >= TURN {
            row = 0;
            pause(core).await;
            now = core.now();
        }
    }
    shared.add(reported, reported * stream.block);
    stream.outcome.running.set(stream.outcome.running.get() - 1);
}

/// Runs a thread's streams to their end, or to the deadline.
pub(super) async fn run(
    core: CoreHandle,
    streams: Vec<Rc<Stream>>,
    window: Window,
    shared: Arc<Shared>,
) -> Vec<Share> {
    for stream in &streams {
        stream.state.borrow_mut().meter = Meter::new(window.from, window.to, stream.interval);
        stream.pace.borrow_mut().start(window.start);
        stream.outcome.running.set(stream.slots);
        for _ in 0..stream.slots {
            core.spawn(Box::pin(slot(
                Rc::clone(stream),
                window,
                Arc::clone(&shared),
            )));
        }
    }
    let patience = window.deadline.since(window.end);
    loop {
        let ended = shared.ended_at().unwrap_or(window.end).min(window.end);
        let now = core.now();
        let all_back = streams
            .iter()
            .all(|stream| stream.outcome.running.get() == 0);
        if all_back || now >= ended.after(patience) {
            break;
        }
        let until = if now < ended {
            ended.min(now.after(REST))
        } else {
            now.after(Duration::from_millis(1))
        };
        core.sleep_until(until).await;
    }
    let now = core.now();
    streams.iter().map(|stream| share(stream, now)).collect()
}

fn share(stream: &Stream, now: Now) -> Share {
    let mut state = state_of(stream);
    state.finish(now);
    let errors = stream.outcome.errors.borrow();
    let missing = u64::from(stream.outcome.running.get());
    let lost = || format!("{missing} operations had not come back when the run was given up");
    Share {
        thread: stream.thread,
        target: stream.target,
        read: state.read,
        write: state.write,
        series: state.series,
        stall: state.stall,
        time_in_flight: state.time_in_flight,
        errors: errors.0,
        first_error: errors.1.clone().or_else(|| (missing > 0).then(lost)),
        missing,
    }
}

/// What was measured. The meter stays: what comes back later is counted nowhere.
fn state_of(stream: &Stream) -> Meter {
    stream.state.borrow().meter.clone()
}

/// The answer, if it comes in time.
async fn within(core: &CoreHandle, patience: Duration, answer: IoFuture) -> Option<IoResult> {
    let mut answer = match answer.now() {
        Ok(result) => return Some(result),
        Err(answer) => answer,
    };
    let mut timer = core.sleep_until(core.now().after(patience));
    poll_fn(|cx| match answer.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Reads what was written, part by part, and compares.
pub(super) async fn read_back(
    core: &CoreHandle,
    lane: &Rc<dyn Lane>,
    shape: &Shape,
    (facts, checker): (&TargetFacts, &Arc<Checker>),
    patience: Duration,
) -> Result<(), String> {
    let unit = u64::from(shape.block_size.bytes());
    let most = READ_BACK.min(shape.limits.transfer_blocks_max.0.saturating_mul(unit));
    for (at, bytes) in checker.written(most) {
        let bytes = bytes.min(facts.length - at);
        if !checker.claim(at, bytes) {
            continue;
        }
        let start = Lba((facts.base + at) / unit);
        let range = LbaRange::new(start, BlockCount(bytes / unit)).expect("inside the target");
        let op = Op::Read { range, into: None };
        let answer = lane.submit(Io::new(op, Origin::default()));
        let why = match within(core, patience, answer).await {
            Some(Ok(Done::Data(data))) => {
                checker.read(at, bytes, Some(&data));
                pause(core).await;
                continue;
            }
            Some(Ok(_)) => "an answer without the data".to_owned(),
            Some(Err(error)) => in_words(error),
            None => format!("no answer within {} s", patience.as_secs_f64()),
        };
        let name = &facts.name;
        return Err(format!(
            "{name}: what was written cannot be read back: {why}"
        ));
    }
    Ok(())
}

/// Writes the whole region, a few operations at a time.
pub(super) async fn fill(
    core: &CoreHandle,
    lane: &Rc<dyn Lane>,
    shape: &Shape,
    facts: &TargetFacts,
    payload: &Payload,
) -> Result<(), String> {
    const AT_ONCE: u64 = 8;
    let unit = u64::from(shape.block_size.bytes());
    let most = FILL.min(shape.limits.transfer_blocks_max.0.saturating_mul(unit));
    let mut random = Random::new(1);
    let mut at = 0;
    while at < facts.length {
        let mut answers = Vec::new();
        for _ in 0..AT_ONCE {
            let bytes = most.min(facts.length - at);
            if bytes == 0 {
                break;
            }
            let start = Lba((facts.base + at) / unit);
            let range = LbaRange::new(start, BlockCount(bytes / unit)).expect("inside the target");
            let len = usize::try_from(bytes).expect("at most a mebibyte");
            let data = payload.next(len, &mut random, core.pool());
            let durability = Durability::Cached;
            answers.push(lane.submit(Io::new(
                Op::Write {
                    range,
                    data,
                    durability,
                },
                Origin::default(),
            )));
            at += bytes;
        }
        for answer in answers {
            let why = |error| format!("{} cannot be filled: {}", facts.name, in_words(error));
            answer.await.map_err(why)?;
        }
        pause(core).await;
    }
    match lane.submit(Io::new(Op::Flush, Origin::default())).await {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "{} cannot be filled: {}",
            facts.name,
            in_words(error)
        )),
    }
}
