//! The space of the pools.
//!
//! **Contract.** Whoever asks waits a moment at the most. A pool that hangs (a dead network file system, a disk
//! that answers nothing) is asked once and not again until it answers; meanwhile its last figures are told with
//! their age, and that it does not answer.

use super::Inner;
use super::members::{Told as MembersTold, layout_name};
use crate::config::{Place, Pool};
use crate::engine::PoolFacts;
use env::{CoreHandle, LocalFuture, Space};
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

/// What is known of one pool.
#[derive(Default)]
pub(super) struct Known {
    /// The last answer and its time.
    answer: Option<(Result<Space, String>, Now)>,
    /// When the question was asked that is not answered yet.
    asked: Option<Now>,
}

/// What is known of every pool, in their order.
pub(super) type Spaces = RefCell<Vec<Rc<RefCell<Known>>>>;

/// What there is to tell of one pool.
#[derive(PartialEq, Eq, Default, Debug)]
struct Told {
    space: Option<Space>,
    age: Option<Duration>,
    problem: Option<String>,
}

pub(super) async fn pools(node: &Inner) -> Vec<PoolFacts> {
    let mut out = Vec::new();
    for (index, pool) in node.config.pools.iter().enumerate() {
        let known = {
            let mut all = node.spaces.borrow_mut();
            while all.len() <= index {
                all.push(Rc::default());
            }
            all.get(index).cloned().unwrap_or_default()
        };
        if let Some(members) = node.member_pools().get(&pool.name) {
            out.push(of_members(pool, &members.told()));
            continue;
        }
        let ask = || node.core.files().space(pool.path());
        let told = ask_in_time(&node.core, &known, ask).await;
        let path = std::path::absolute(pool.path()).unwrap_or_else(|_| pool.path().to_owned());
        out.push(PoolFacts {
            name: pool.name.clone(),
            path: path.display().to_string(),
            total: told.space.map_or(0, |space| space.total),
            available: told.space.map_or(0, |space| space.available),
            used: told.space.map_or(0, |space| space.used),
            age_seconds: told.age.map(|age| age.as_secs()),
            problem: told.problem,
            layout: "directory".to_owned(),
            event: None,
            members: Vec::new(),
            notes: Vec::new(),
            journal: None,
        });
    }
    out
}

fn of_members(pool: &Pool, told: &MembersTold) -> PoolFacts {
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
