//! The space of the pools.
//!
//! **Contract.** Whoever asks waits a moment at the most. A pool that hangs (a dead network file
//! system, a disk that answers nothing) is asked once and not again until it answers; meanwhile its
//! last figures are told with their age, and that it does not answer.

use crate::data_plane::Inner;
use crate::pool::fill::{Fill, Level};
use crate::pool::members::{Told as MembersTold, layout_name};
use env::{CoreHandle, LocalFuture, Space};
use manifest::code::Code;
use manifest::config::{Place, Pool};
use manifest::facts::{PoolFacts, PoolState};
use manifest::objects::Backing;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use units::Now;

/// How long an answer waits for fresh figures.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// After so long without an answer a pool needs a look.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a pool is looked at when nobody asks.
const LOOK: Duration = Duration::from_secs(10);

/// What is known of one pool.
#[derive(Default)]
pub(crate) struct Known {
    fill: Fill,
    /// When it was looked at last without being asked.
    looked: Option<Now>,
    /// The last answer and its time.
    answer: Option<(Result<Space, String>, Now)>,
    /// When the question was asked that is not answered yet.
    asked: Option<Now>,
}

/// What is known of every pool, in their order.
pub(crate) type Spaces = RefCell<Vec<Rc<RefCell<Known>>>>;

/// What there is to tell of one pool.
#[derive(PartialEq, Eq, Default, Debug)]
struct Told {
    space: Option<Space>,
    age: Option<Duration>,
    problem: Option<String>,
}

pub(crate) async fn pools(node: &Inner) -> Vec<PoolFacts> {
    let mut out: Vec<PoolFacts> = Vec::new();
    // By its place in `out`.
    let mut file_systems: Vec<(usize, u64)> = Vec::new();
    for (index, pool) in node.config.pools.iter().enumerate() {
        let promised = Promised::of(node, &pool.name);
        if let Some(members) = node.member_pools().get(&pool.name) {
            out.push(of_members(pool, &members.told(), &promised));
            continue;
        }
        let known = known(node, index);
        let told = match node.directories.missing(&pool.name) {
            Some(why) => Told {
                problem: Some(why.to_string()),
                ..Told::default()
            },
            None => {
                let ask = || node.core.files().space(pool.path());
                ask_in_time(&node.core, &known, ask).await
            }
        };
        let is_missing = node.directories.missing(&pool.name).is_some();
        file_systems.extend(told.space.map(|space| (out.len(), space.file_system)));
        let facts = of_directory(pool, told, &promised, is_missing);
        let full_in = known
            .borrow()
            .fill
            .full_in(node.core.now(), facts.used, facts.available);
        out.push(PoolFacts {
            full_in_seconds: full_in.filter(|_| facts.total > 0).map(|it| it.as_secs()),
            ..facts
        });
    }
    share(&mut out, &file_systems);
    out
}

/// Pools on one file system have its room together: what is free counts once.
fn share(pools: &mut [PoolFacts], file_systems: &[(usize, u64)]) {
    for (own, file_system) in file_systems {
        let same = file_systems.iter().filter(|(_, it)| it == file_system);
        let same: Vec<&PoolFacts> = same.filter_map(|(index, _)| pools.get(*index)).collect();
        let together = same.iter().fold(0_u64, |sum, pool| {
            sum.saturating_add(pool.outstanding_bytes)
        });
        let Some(pool) = pools.get(*own) else {
            continue;
        };
        let others = same.iter().filter(|other| other.name != pool.name);
        let others: Vec<String> = others.map(|other| other.name.clone()).collect();
        let over = together.saturating_sub(pool.available);
        let over = over.min(pool.outstanding_bytes);
        if let Some(pool) = pools.get_mut(*own).filter(|_| !others.is_empty()) {
            pool.shares_with = others;
            pool.overcommitted_bytes = if pool.total > 0 { over } else { 0 };
        }
    }
}

fn known(node: &Inner, index: usize) -> Rc<RefCell<Known>> {
    let mut all = node.spaces.borrow_mut();
    while all.len() <= index {
        all.push(Rc::default());
    }
    all.get(index).cloned().unwrap_or_default()
}

/// What the LUNs of a pool were given.
#[derive(Default)]
struct Promised {
    /// Their sizes.
    provisioned: u64,
    /// What they may still take of it.
    outstanding: u64,
}

impl Promised {
    fn of(node: &Inner, pool: &str) -> Self {
        let objects = node.objects.borrow();
        let all = objects.luns.values().chain(objects.removed.values());
        let mut out = Self::default();
        for lun in all.filter(|lun| matches!(&lun.backing, Backing::Pool(name) if name == pool)) {
            let size = lun.size.bytes();
            let takes = node.usage.of(&lun.naa).unwrap_or(0);
            out.provisioned = out.provisioned.saturating_add(size);
            out.outstanding = out.outstanding.saturating_add(size.saturating_sub(takes));
        }
        out
    }
}

fn state_of(total: u64, free: u64) -> PoolState {
    match Level::of(total, free) {
        Level::Roomy => PoolState::Ok,
        Level::Low => PoolState::Low,
        Level::Full => PoolState::Full,
    }
}

fn of_directory(pool: &Pool, told: Told, promised: &Promised, is_missing: bool) -> PoolFacts {
    let path = std::path::absolute(pool.path()).unwrap_or_else(|_| pool.path().to_owned());
    let space = told.space.unwrap_or(Space {
        file_system: 0,
        total: 0,
        available: 0,
        used: 0,
    });
    let state = match (&told.problem, told.age) {
        _ if is_missing => PoolState::Missing,
        (Some(_), Some(_)) => PoolState::Silent,
        (Some(_), None) => PoolState::Unusable,
        (None, _) => state_of(space.total, space.available),
    };
    let over = promised.outstanding.saturating_sub(space.available);
    let over = if space.total > 0 { over } else { 0 };
    PoolFacts {
        name: pool.name.clone(),
        path: path.display().to_string(),
        total: space.total,
        available: space.available,
        used: space.used,
        state,
        provisioned_bytes: promised.provisioned,
        outstanding_bytes: promised.outstanding,
        shares_with: Vec::new(),
        overcommitted_bytes: over,
        full_in_seconds: None,
        age_seconds: told.age.map(|age| age.as_secs()),
        problem: told.problem,
        layout: "directory".to_owned(),
        event: None,
        members: Vec::new(),
        notes: Vec::new(),
        journal: None,
    }
}

/// Looks at a pool's room, whoever asks: tells when it gets low or full, and when it is well again.
pub(crate) async fn watch(node: &Rc<Inner>, pool: &Pool) {
    let index = node.config.pools.iter().position(|it| it.name == pool.name);
    let (Place::Path(path), Some(index)) = (&pool.place, index) else {
        return;
    };
    if node.directories.missing(&pool.name).is_some() {
        return;
    }
    let (known, now) = (known(node, index), node.core.now());
    let looked = known.borrow().looked;
    if looked.is_some_and(|looked| now.since(looked) < LOOK) {
        return;
    }
    known.borrow_mut().looked = Some(now);
    let told = ask_in_time(&node.core, &known, || node.core.files().space(path)).await;
    let Some(space) = told.space.filter(|_| told.age.is_none()) else {
        return;
    };
    let level = known
        .borrow_mut()
        .fill
        .sample(now, space.total, space.used, space.available);
    let (pool, free) = (pool.name.as_str(), manifest::size::rounded(space.available));
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

fn of_members(pool: &Pool, told: &MembersTold, promised: &Promised) -> PoolFacts {
    let layout = match &pool.place {
        Place::Members { layout, .. } => layout_name(*layout),
        Place::Path(_) => "directory",
    };
    let path = std::path::absolute(pool.path()).unwrap_or_else(|_| pool.path().to_owned());
    PoolFacts {
        name: pool.name.clone(),
        path: path.display().to_string(),
        total: told.total,
        available: told.available,
        used: told.total.saturating_sub(told.available),
        state: match told.problem {
            Some(_) => PoolState::Unusable,
            // LUNs have their whole size from the beginning: one that is full serves all of them,
            // and takes no more.
            None => state_of(told.total, told.available),
        },
        provisioned_bytes: promised.provisioned,
        outstanding_bytes: 0,
        shares_with: Vec::new(),
        overcommitted_bytes: 0,
        full_in_seconds: None,
        age_seconds: None,
        problem: told.problem.clone(),
        layout: layout.to_owned(),
        event: told.event,
        members: told.members.clone(),
        notes: told.notes.clone(),
        journal: None,
    }
}

/// Asks, unless an earlier question has no answer yet, and tells what is known after a moment.
async fn ask_in_time(
    core: &CoreHandle,
    known: &Rc<RefCell<Known>>,
    ask: impl FnOnce() -> LocalFuture<io::Result<Space>>,
) -> Told {
    if known.borrow().asked.is_none() {
        known.borrow_mut().asked = Some(core.now());
        let (asking, keep, clock) = (ask(), Rc::clone(known), Rc::clone(core));
        let mut asking: LocalFuture<()> = Box::pin(async move {
            let answer = asking.await.map_err(|error| error.to_string());
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
    known.borrow().tell(core.now())
}

impl Known {
    fn tell(&self, now: Now) -> Told {
        let waiting = self.asked.map(|asked| now.since(asked));
        let mut told = Told::default();
        match &self.answer {
            Some((Ok(space), at)) => {
                told.space = Some(*space);
                told.age = waiting.map(|_| now.since(*at));
            }
            Some((Err(error), _)) => told.problem = Some(format!("it cannot be used: {error}")),
            None => {}
        }
        let silent = waiting.filter(|waiting| told.space.is_none() || *waiting > PATIENCE);
        if let Some(silent) = silent {
            let figures = match told.age {
                Some(age) => format!("its figures are {} s old", age.as_secs()),
                None => "its figures are not known".to_owned(),
            };
            told.problem = Some(format!(
                "it does not answer (asked {} s ago; {figures}): look at its disk or network file system",
                silent.as_secs()
            ));
        }
        told
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

    fn ask(world: &World, node: &env::sim::Node, known: &Rc<RefCell<Known>>, hangs: bool) -> Told {
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

    #[test]
    fn a_pool_that_hangs_is_told_of_with_its_last_figures_and_holds_nobody_up() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        let known = Rc::default();
        let fresh = Told {
            space: Some(SPACE),
            ..Told::default()
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
        let told = ask(&world, &node, &known, false);
        assert_eq!(told.space, Some(SPACE));
        let problem = told.problem.unwrap();
        assert!(
            problem.starts_with("it does not answer (asked 90 s ago; its figures are 90 s old)"),
            "{problem}"
        );
    }

    #[test]
    fn a_pool_that_never_answered_is_told_of_at_once_and_one_that_answers_again_is_well() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        let known = Rc::default();
        let told = ask(&world, &node, &known, true);
        assert_eq!(told.space, None);
        assert!(told.problem.unwrap().contains("its figures are not known"));
        known.borrow_mut().asked = None;
        assert_eq!(ask(&world, &node, &known, false).problem, None);
    }
}
