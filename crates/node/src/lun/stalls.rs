//! LUNs whose storage has stopped answering.
//!
//! **Contract.** An operation counts until the storage gives it back, also where its host has long
//! given it up: a disk that hangs is reported from some seconds after it began to the moment when
//! it answers, whatever hosts and file systems do meanwhile. What one check sees is that nothing
//! has ended since the one before, with something under way all the time.

use crate::inner::Inner;
use crate::lun::stalled::PATIENCE;
use crate::lun::stalled::PATIENCE_LIMITED;
use crate::lun::stalled::Seen;
use env::CoreHandle;
use manifest::facts::StallFacts;
use std::rc::Weak;
use std::time::Duration;
use units::Now;
use units::text::counted;

/// How often it checks.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// Checks for as long as the node lives.
pub(crate) async fn watch(core: CoreHandle, node: Weak<Inner>) {
    loop {
        core.sleep_until(core.now().after(PROBE_INTERVAL)).await;
        let Some(node) = node.upgrade() else { return };
        inspect(&core, &node).await;
    }
}

async fn inspect(core: &CoreHandle, node: &Inner) {
    let units = node.units.borrow().clone();
    let meters: Vec<_> = units.values().map(|unit| unit.parts().meter).collect();
    let all = layers::Meter::progress(core, meters).await;
    let now = core.now();
    let mut stalls = node.stalls.0.borrow_mut();
    let (known, last) = &mut *stalls;
    // The process itself stood still: nobody was asked meanwhile.
    let stood_still = last.is_some_and(|last| now.since(last) > 2 * PROBE_INTERVAL);
    *last = Some(now);
    known.retain(|naa, _| units.contains_key(naa));
    for ((naa, unit), progress) in units.iter().zip(all) {
        let seen = known
            .entry(naa.clone())
            .or_insert_with(|| Seen::new(progress, now));
        if stood_still {
            seen.moved = now;
        }
        seen.update(progress, now);
        let waits = unit.waiting() > 0;
        seen.patience = if waits { PATIENCE_LIMITED } else { PATIENCE };
        let stalled = seen.stalled(now);
        if stalled.is_some() != seen.is_logged {
            seen.is_logged = stalled.is_some();
            let lun = name_of(node, naa);
            match stalled {
                Some(_) => tracing::error!(
                    lun,
                    under_way = seen.progress.under_way(),
                    "the storage of this LUN answers nothing"
                ),
                None => tracing::info!(lun, "the storage of this LUN answers again"),
            }
        }
    }
}

fn name_of(node: &Inner, naa: &str) -> String {
    let objects = node.objects.borrow();
    let mut luns = objects.luns.iter();
    let found = luns.find(|(_, lun)| lun.naa == naa);
    found.map_or_else(|| naa.to_owned(), |(name, _)| name.clone())
}

/// Whether the storage of a LUN has stopped answering.
pub(crate) fn of(node: &Inner, naa: &str) -> Option<StallFacts> {
    let stalls = node.stalls.0.borrow();
    facts(stalls.0.get(naa)?, node.core.now())
}

fn facts(seen: &Seen, now: Now) -> Option<StallFacts> {
    Some(StallFacts {
        seconds: seen.stalled(now)?.as_secs(),
        operations: seen.progress.under_way(),
    })
}

/// What needs attention now.
pub(crate) fn reported(node: &Inner) -> Vec<String> {
    let now = node.core.now();
    let stalls = node.stalls.0.borrow();
    let line = |(naa, seen): (&String, &Seen)| {
        let stalled = facts(seen, now)?;
        Some(format!(
            "LUN {}: its storage has answered nothing for {} s, with {} under way: check its disk or network file system",
            name_of(node, naa),
            stalled.seconds,
            counted(stalled.operations, "operation")
        ))
    };
    stalls.0.iter().filter_map(line).collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::data_plane::Node;
    use controller::test_support::{config, lab};
    use controller::{Controller, How};
    use env::sim::{World, WorldConfig};
    use layers::meter::Progress;
    use manifest::plan::Edit;
    use manifest::pulse::Asked;
    use manifest::view::{Health, StatusView};
    use std::rc::Rc;
    use units::{BlockCount, Buf, Lba, LbaRange};
    use volume::{Durability, Io, Op, Origin};

    const LIMIT: Duration = Duration::from_secs(600);

    #[test]
    fn only_a_lun_that_has_something_under_way_and_answers_nothing_is_reported() {
        let at = |seconds: u64| Now(0).after(Duration::from_secs(seconds));
        let progress = |started, ended| Progress { started, ended };
        let mut seen = Seen::new(progress(9, 9), at(0));
        seen.update(progress(9, 9), at(60));
        assert_eq!(seen.stalled(at(60)), None, "idle");
        seen.update(progress(12, 10), at(62));
        seen.update(progress(12, 10), at(64));
        assert_eq!(seen.stalled(at(66)), None, "not for long enough");
        assert_eq!(seen.stalled(at(70)), Some(Duration::from_secs(8)));
        seen.update(progress(12, 11), at(70));
        assert_eq!(seen.stalled(at(71)), None, "one was answered");
        seen.update(progress(12, 12), at(80));
        assert_eq!(seen.stalled(at(99)), None, "all were");
    }

    /// A node with one LUN.
    fn serving(world: &World, machine: &env::sim::Node) -> (Node, Rc<Controller>) {
        let core = machine.core(0);
        let node = Node::new(Rc::clone(&core), config(), Box::new(Vec::new));
        let started = Controller::start(Rc::clone(&core), config(), Rc::new(node.clone()));
        let controller = world.block_on(machine, LIMIT, started).unwrap().unwrap();
        let (asked, edit) = (
            Rc::clone(&controller),
            Edit::Apply {
                set: lab(),
                prune: false,
            },
        );
        let applied = async move { asked.edit(&edit, How::default()).await.map(|_| ()) };
        world.block_on(machine, LIMIT, applied).unwrap().unwrap();
        (node, controller)
    }

    /// A write to the LUN, whose disk answers no more.
    fn writes_to_a_disk_that_hangs(world: &World, machine: &env::sim::Node, node: &Node) {
        let core = machine.core(0);
        let unit = node
            .0
            .units
            .borrow()
            .values()
            .next()
            .cloned()
            .expect("the LUN");
        let volume = unit.volume().unwrap();
        let (opening, there) = (volume, Rc::clone(&core));
        let lane = world
            .block_on(
                machine,
                LIMIT,
                async move { opening.open(&there).await.ok() },
            )
            .unwrap()
            .expect("it serves");
        machine.disk().hang();
        let write = Op::Write {
            range: LbaRange::new(Lba(0), BlockCount(8)).unwrap(),
            data: Buf::copy_of(&[7; 4096]),
            durability: Durability::Stable,
        };
        core.spawn(Box::pin(async move {
            drop(lane.submit(Io::new(write, Origin::default())).await);
        }));
    }

    #[test]
    fn status_reports_a_disk_that_hangs_until_it_answers_again() {
        let world = World::new(3, WorldConfig::default());
        let machine = world.node("a");
        let (node, controller) = serving(&world, &machine);
        let status = || -> StatusView {
            let controller = Rc::clone(&controller);
            let asked = async move { controller.status().await };
            world.block_on(&machine, LIMIT, asked).unwrap()
        };
        let reported = |status: &StatusView| {
            let problems = status.problems.iter();
            problems
                .filter(|it| it.contains("has answered nothing"))
                .cloned()
                .collect::<Vec<_>>()
        };
        writes_to_a_disk_that_hangs(&world, &machine, &node);
        // As alerts and metrics have it, and as events have it.
        let stalled = || {
            let controller = Rc::clone(&controller);
            let of_figures = Asked {
                figures: true,
                ..Asked::default()
            };
            let asked = async move {
                let sample = controller.sample().await;
                let moment = controller.moment(of_figures, None).await;
                (sample.luns["l"].stalled, moment.luns[0].stalled)
            };
            world.block_on(&machine, LIMIT, asked).unwrap()
        };
        assert_eq!(stalled(), (None, None));
        world.run_for(Duration::from_secs(3));
        assert_eq!(reported(&status()), [""; 0], "it may be slow");
        for seconds in [10, 30, 55] {
            world.run_for(Duration::from_secs(seconds));
            let status = status();
            let reported = reported(&status);
            assert_eq!(
                (reported.len(), status.health),
                (1, Health::Degraded),
                "{status:?}"
            );
            assert!(
                reported[0].starts_with("LUN l: ") && reported[0].contains("1 operation under way"),
                "{reported:?}"
            );
        }
        let (Some(of_facts), Some(of_pulse)) = stalled() else {
            panic!("it does not stall");
        };
        assert_eq!((of_facts.operations, of_pulse.operations), (1, 1));
        assert!((90..110).contains(&of_facts.seconds), "{of_facts:?}");
        machine.disk().release();
        world.run_for(Duration::from_secs(5));
        assert_eq!(reported(&status()), [""; 0]);
        assert_eq!(stalled(), (None, None));
    }
}
