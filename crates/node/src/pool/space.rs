//! The space of the pools.
//!
//! **Contract.** Whoever asks waits a moment at the most. A pool that hangs (a dead network file
//! system, a disk that answers nothing) is asked once and not again until it answers; meanwhile its
//! last figures are reported with their age, and that it does not answer.

use crate::backend::door::Promised;
use crate::pool::fill::{Fill, Level};
use env::{CoreHandle, LocalFuture, Space};
use manifest::code::Code;
use manifest::facts::{PoolFacts, PoolState};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use units::Now;
use volume::{OpenError, OpenErrorKind};

/// How long an answer waits for fresh figures.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// After so long without an answer a pool needs attention.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a pool is probed when nobody asks.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// What was probed of one pool, and when.
#[derive(Default)]
pub(crate) struct Probed {
    fill: Fill,
    /// When it was probed last without being asked.
    probed: Option<Now>,
    /// The last answer and its time.
    answer: Option<(Result<Space, OpenError>, Now)>,
    /// When the question was asked that is not answered yet.
    asked: Option<Now>,
}

/// What there is to report of one pool.
#[derive(PartialEq, Eq, Default, Debug)]
pub(crate) struct Room {
    space: Option<Space>,
    age: Option<Duration>,
    problem: Option<OpenError>,
}

/// Asks a directory how much room it has, unless it is known to be missing.
pub(crate) async fn room(
    core: &CoreHandle,
    known: &Rc<RefCell<Probed>>,
    path: &Path,
    missing: Option<&OpenError>,
) -> Room {
    match missing {
        Some(why) => Room {
            problem: Some(why.clone()),
            ..Room::default()
        },
        None => ask_in_time(core, known, || core.files().space(path)).await,
    }
}

impl Room {
    /// By its device number: pools with the same one share their room.
    pub(crate) fn file_system(&self) -> Option<u64> {
        self.space.map(|space| space.file_system)
    }
}

impl Probed {
    /// When it is full at the rate of the last hour.
    pub(crate) fn full_in(&self, now: Now, facts: &PoolFacts) -> Option<Duration> {
        self.fill.full_in(now, facts.used, facts.available)
    }
}

/// How full a pool is.
pub(crate) fn state_of(used: u64, free: u64) -> PoolState {
    match Level::of(used, free) {
        Level::Roomy => PoolState::Ok,
        Level::Low => PoolState::Low,
        Level::Full => PoolState::Full,
    }
}

/// What there is to report of a directory.
pub(crate) fn facts(
    (name, path): (&str, &Path),
    room: Room,
    promised: Promised,
    is_missing: bool,
) -> PoolFacts {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let space = room.space.unwrap_or(Space {
        file_system: 0,
        total: 0,
        available: 0,
        used: 0,
    });
    let state = match room.problem.as_ref().map(|why| why.kind) {
        _ if is_missing => PoolState::Missing,
        Some(OpenErrorKind::Hung) => PoolState::Silent,
        Some(_) => PoolState::Unusable,
        None => state_of(space.used, space.available),
    };
    let over = promised.outstanding.saturating_sub(space.available);
    let over = if space.total > 0 { over } else { 0 };
    PoolFacts {
        name: name.to_owned(),
        path: path.display().to_string(),
        total: space.total,
        available: space.available,
        used: space.used,
        state,
        provisioned_bytes: promised.provisioned,
        outstanding_bytes: promised.outstanding,
        overcommitted_bytes: over,
        age_seconds: room.age.map(|age| age.as_secs()),
        problem: room.problem.map(|why| why.to_string()),
        layout: "directory".to_owned(),
        ..PoolFacts::default()
    }
}

/// The same, and when it is full.
pub(crate) fn with_forecast(facts: PoolFacts, full_in: Option<Duration>) -> PoolFacts {
    PoolFacts {
        full_in_seconds: full_in.filter(|_| facts.total > 0).map(|it| it.as_secs()),
        ..facts
    }
}

/// Probes a pool's room, whoever asks: logs when it gets low or full, and when it is well again.
pub(crate) async fn watch(core: &CoreHandle, pool: &str, known: &Rc<RefCell<Probed>>, path: &Path) {
    let now = core.now();
    let probed = known.borrow().probed;
    if probed.is_some_and(|probed| now.since(probed) < PROBE_INTERVAL) {
        return;
    }
    known.borrow_mut().probed = Some(now);
    let room = ask_in_time(core, known, || core.files().space(path)).await;
    let Some(space) = room.space.filter(|_| room.age.is_none()) else {
        return;
    };
    let level = known
        .borrow_mut()
        .fill
        .sample(now, space.used, space.available);
    let free = manifest::size::rounded(space.available);
    match level {
        Some(Level::Full) => tracing::warn!(
            pool,
            code = %Code::PoolFull,
            "the pool is full, {free} are free: hosts are refused blocks that have no room yet; free or add space"
        ),
        Some(Level::Low) => tracing::warn!(pool, "the pool has less than 10 % free space, {free}"),
        Some(Level::Roomy) => tracing::info!(pool, "the pool has room again, {free} are free"),
        None => {}
    }
}

/// Asks, unless an earlier question has no answer yet, and returns what is known after a moment.
async fn ask_in_time(
    core: &CoreHandle,
    known: &Rc<RefCell<Probed>>,
    ask: impl FnOnce() -> LocalFuture<io::Result<Space>>,
) -> Room {
    if known.borrow().asked.is_none() {
        known.borrow_mut().asked = Some(core.now());
        let (asking, keep, clock) = (ask(), Rc::clone(known), Rc::clone(core));
        let mut asking: LocalFuture<()> = Box::pin(async move {
            let answer = asking.await.map_err(|error| OpenError {
                kind: OpenErrorKind::of_io(&error),
                cause: format!("it cannot be used: {error}"),
                next_step: "check its disk and its permissions".to_owned(),
            });
            let mut known = keep.borrow_mut();
            known.answer = Some((answer, clock.now()));
            known.asked = None;
        });
        let mut timeout = core.sleep_until(core.now().after(WAIT_MAX));
        let answered = poll_fn(|cx| {
            if asking.as_mut().poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            timeout.as_mut().poll(cx).map(|()| false)
        });
        if !answered.await {
            core.spawn(asking);
        }
    }
    known.borrow().room(core.now())
}

impl Probed {
    fn room(&self, now: Now) -> Room {
        let waiting = self.asked.map(|asked| now.since(asked));
        let mut room = Room::default();
        match &self.answer {
            Some((Ok(space), at)) => {
                room.space = Some(*space);
                room.age = waiting.map(|_| now.since(*at));
            }
            Some((Err(why), _)) => room.problem = Some(why.clone()),
            None => {}
        }
        let silent = waiting.filter(|waiting| room.space.is_none() || *waiting > PATIENCE);
        if let Some(silent) = silent {
            let figures = match room.age {
                Some(age) => format!("its figures are {} s old", age.as_secs()),
                None => "its figures are not known".to_owned(),
            };
            room.problem = Some(OpenError {
                kind: OpenErrorKind::Hung,
                cause: format!(
                    "it does not answer: asked {} s ago, {figures}",
                    silent.as_secs()
                ),
                next_step: "check its disk or network file system".to_owned(),
            });
        }
        room
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use env::sim::{World, WorldConfig};
    use std::future::pending;

    const SPACE: Space = Space {
        file_system: 1,
        total: 100,
        available: 40,
        used: 60,
    };

    fn ask(world: &World, node: &env::sim::Node, known: &Rc<RefCell<Probed>>, hangs: bool) -> Room {
        let (core, known) = (node.core(0), Rc::clone(known));
        let answer = move || -> LocalFuture<io::Result<Space>> {
            if hangs {
                return Box::pin(pending());
            }
            Box::pin(std::future::ready(Ok(SPACE)))
        };
        let run = async move { ask_in_time(&core, &known, answer).await };
        // Half a second is more than any answer may take, whatever the pool does.
        world
            .block_on(node, Duration::from_millis(500), run)
            .unwrap()
    }

    fn state(room: Room) -> PoolState {
        let promised = Promised::default();
        facts(("p", Path::new("/p")), room, promised, false).state
    }

    #[test]
    fn a_pool_that_refuses_is_unusable_for_the_reason_that_the_system_gives() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        let (core, known) = (node.core(0), Rc::default());
        let denied = || -> LocalFuture<io::Result<Space>> {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            Box::pin(std::future::ready(Err(error)))
        };
        let run = async move { ask_in_time(&core, &known, denied).await };
        let room = world.block_on(&node, Duration::from_secs(1), run).unwrap();
        let kind = room.problem.as_ref().map(|why| why.kind);
        assert_eq!(kind, Some(OpenErrorKind::Refused));
        assert_eq!(state(room), PoolState::Unusable);
    }

    #[test]
    fn a_pool_that_hangs_is_reported_of_with_its_last_figures_and_holds_nobody_up() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        let known = Rc::default();
        let fresh = Room {
            space: Some(SPACE),
            ..Room::default()
        };
        assert_eq!(ask(&world, &node, &known, false), fresh);
        let first = ask(&world, &node, &known, true);
        assert_eq!(
            (first.space, first.problem),
            (Some(SPACE), None),
            "a slow answer is no alarm"
        );
        let core = node.core(0);
        let later = core.sleep_until(core.now().after(Duration::from_secs(90)));
        world
            .block_on(&node, Duration::from_secs(100), later)
            .unwrap();
        // The second question is not asked: it would hang, too, and take one more thread.
        let room = ask(&world, &node, &known, false);
        assert_eq!(room.space, Some(SPACE));
        let problem = room.problem.clone().unwrap();
        assert_eq!(problem.kind, OpenErrorKind::Hung);
        assert!(problem.cause.contains("figures are 90 s old"), "{problem}");
        assert_eq!(state(room), PoolState::Silent);
    }

    #[test]
    fn a_pool_that_never_answered_is_reported_of_at_once_and_one_that_answers_again_is_well() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        let known = Rc::default();
        let room = ask(&world, &node, &known, true);
        assert_eq!(room.space, None);
        let problem = room.problem.clone().unwrap();
        assert!(problem.cause.contains("are not known"), "{problem}");
        assert_eq!(
            state(room),
            PoolState::Silent,
            "nothing is known against it"
        );
        known.borrow_mut().asked = None;
        assert_eq!(ask(&world, &node, &known, false).problem, None);
    }
}
