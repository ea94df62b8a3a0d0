//! The controller over a simulated disk and an engine that only remembers.

use super::*;
use crate::test_support::{FakeEngine, config, lab, session};
use env::sim::{Node, World, WorldConfig};
use manifest::objects::{BackendSpec, CacheMode, LunSpec};
use manifest::scrub::{JournalScrub, ScrubFacts, ScrubState};
use manifest::size::Size;
use manifest::view::Health;
use std::path::Path;
use std::time::Duration;

struct Bench {
    world: World,
    node: Node,
    engine: Rc<FakeEngine>,
    controller: Rc<Controller>,
}

impl Bench {
    fn new() -> Self {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        Self::on(world, node)
    }

    fn on(world: World, node: Node) -> Self {
        let engine = Rc::new(FakeEngine::default());
        let start = Controller::start(node.core(0), config(), Rc::<FakeEngine>::clone(&engine));
        let controller = world
            .block_on(&node, Duration::from_secs(60), start)
            .unwrap()
            .unwrap();
        Self {
            world,
            node,
            engine,
            controller,
        }
    }

    fn edit(&self, edit: Edit, how: How) -> Result<Outcome, Problem> {
        let controller = Rc::clone(&self.controller);
        let run = async move { controller.edit(&edit, how).await };
        self.world
            .block_on(&self.node, Duration::from_secs(60), run)
            .unwrap()
    }

    fn apply(&self, set: ObjectSet) -> Result<Outcome, Problem> {
        self.edit(Edit::Apply { set, prune: false }, How::default())
    }

    fn ask<T: 'static>(&self, what: impl Future<Output = T> + 'static) -> T {
        self.world
            .block_on(&self.node, Duration::from_secs(60), what)
            .unwrap()
    }

    fn reboot(self) -> Self {
        let Self {
            world,
            node,
            engine,
            controller,
        } = self;
        drop((engine, controller));
        node.crash();
        node.restart();
        Self::on(world, node)
    }
}

#[test]
fn a_change_is_prepared_stored_and_adopted_and_survives_a_power_cut() {
    let bench = Bench::new();
    let outcome = bench.apply(lab()).unwrap();
    assert!(outcome.changed);
    assert_eq!((outcome.generation, outcome.actions.len()), (2, 4));
    assert_eq!(*bench.engine.log.borrow(), ["start", "prepare 1", "adopt"]);
    assert_eq!(*bench.engine.published.borrow(), bench.controller.objects());
    let again = bench.apply(lab()).unwrap();
    assert_eq!(
        (again.changed, again.generation, again.actions.len()),
        (false, 2, 0)
    );
    let objects = bench.controller.objects();
    let bench = bench.reboot();
    assert_eq!(bench.controller.objects(), objects);
    assert_eq!(*bench.engine.published.borrow(), objects);
}

#[test]
fn a_dry_run_reports_and_does_nothing() {
    let bench = Bench::new();
    let how = How {
        dry_run: true,
        force: false,
    };
    let edit = Edit::Apply {
        set: lab(),
        prune: false,
    };
    let outcome = bench.edit(edit, how).unwrap();
    assert_eq!((outcome.changed, outcome.actions.len()), (false, 4));
    assert_eq!(*bench.engine.log.borrow(), ["start"]);
    assert!(bench.controller.objects().luns.is_empty());
}

#[test]
fn a_failed_preparation_or_save_changes_nothing_at_all() {
    let bench = Bench::new();
    bench.engine.refuse_prepare.set(true);
    assert_eq!(bench.apply(lab()).unwrap_err().code, Code::BackingFailed);
    bench.engine.refuse_prepare.set(false);
    bench.node.disk().set_capacity(1);
    assert_eq!(bench.apply(lab()).unwrap_err().code, Code::StateNotSaved);
    assert_eq!(
        *bench.engine.log.borrow(),
        ["start", "prepare 1", "abandon"]
    );
    assert!(bench.engine.open.borrow().is_empty());
    assert!(bench.controller.objects().luns.is_empty());
    bench.node.disk().set_capacity(1 << 30);
    bench.apply(lab()).unwrap();
}

#[test]
fn what_disturbs_a_session_needs_force() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    bench.engine.sessions.borrow_mut().push(session(4));
    let prune = || Edit::Apply {
        set: ObjectSet::default(),
        prune: true,
    };
    let refused = bench.edit(prune(), How::default()).unwrap_err();
    assert_eq!((refused.code, refused.hits.len()), (Code::InUse, 1));
    let reported = bench
        .edit(
            prune(),
            How {
                dry_run: true,
                force: false,
            },
        )
        .unwrap();
    assert!(reported.refusal.unwrap().contains("session 4"));
    let forced = bench
        .edit(
            prune(),
            How {
                force: true,
                dry_run: false,
            },
        )
        .unwrap();
    assert!(forced.changed);
    assert_eq!(bench.controller.objects().removed.len(), 1);
}

#[test]
fn a_missing_backing_shows_as_offline_and_keeps_its_place() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    let naa = bench.controller.objects().luns["l"].naa.clone();
    bench.engine.offline.borrow_mut().insert(naa);
    let controller = Rc::clone(&bench.controller);
    let (status, luns) =
        bench.ask(async move { (controller.status().await, controller.luns(false).await) });
    assert_eq!(status.health, Health::Degraded);
    assert_eq!(status.problems, ["LUN l is offline: device missing"]);
    assert_eq!(status.counts.luns_offline, 1);
    assert_eq!(luns[0].state, "offline");
    assert_eq!(luns[0].grants, ["h:t:l"]);
}

#[test]
fn a_lun_that_loses_something_is_reported_by_default_or_as_asked_for_and_the_two_are_not_mixed_up()
{
    let bench = Bench::new();
    let mut set = lab();
    let mut asked = LunSpec::new("asked", Size::from_bytes(1 << 30).unwrap());
    asked.storage.cache = Some(CacheMode::Volatile);
    let mut through = LunSpec::new("through", Size::from_bytes(1 << 30).unwrap());
    through.storage.cache = Some(CacheMode::WriteThrough);
    let mut scratch = LunSpec::new("scratch", Size::from_bytes(1 << 20).unwrap());
    scratch.backend = Some(BackendSpec::Memory);
    set.lun.extend([asked, through, scratch]);
    let confirmed = How {
        dry_run: false,
        force: true,
    };
    bench
        .edit(Edit::Apply { set, prune: false }, confirmed)
        .unwrap();
    let controller = Rc::clone(&bench.controller);
    let status = bench.ask(async move { controller.status().await });
    let not_safe = status.not_safe.iter();
    let not_safe: Vec<(bool, &str)> = not_safe
        .map(|it| (it.by_default, it.text.as_str()))
        .collect();
    assert_eq!(
        not_safe,
        [
            (
                false,
                "1 LUN is in memory and gone with the daemon: scratch"
            ),
            (false, "1 LUN loses unflushed writes with the power: asked"),
            (true, "1 LUN loses unflushed writes with the power: l"),
        ]
    );
    assert_eq!(status.health, Health::Ok, "it serves as it was asked to");
    let notes = status.notes;
    let begin = |note: &String| note.split(':').next().unwrap_or_default().to_owned();
    let reported: Vec<String> = notes.iter().map(begin).collect();
    assert_eq!(
        reported,
        [
            "cache = \"volatile\" by default (there was no journal) in LUN l",
            "cache = \"volatile\" as asked for in LUN asked",
            "1 LUN is in memory and gone with the daemon",
        ]
    );
}

#[test]
fn a_lun_without_checksums_says_what_its_last_scrub_has_found() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    let naa = bench.controller.objects().luns["l"].naa.clone();
    let mut scrub = ScrubFacts::begun("1".to_owned(), 1 << 20);
    scrub.state = ScrubState::Finished;
    scrub.journal = Some(JournalScrub {
        batches: 1,
        changes: 1,
        damaged_changes: 0,
        damaged_superblocks: 1,
        damaged_checkpoints: 0,
        lost_blocks: 0,
        problem: None,
    });
    bench.engine.scrubs.borrow_mut().insert(naa, scrub);
    let controller = Rc::clone(&bench.controller);
    let (one, all) =
        bench.ask(async move { (controller.lun("l").await, controller.luns(false).await) });
    let said = ["its pool's journal has 1 damaged superblocks: check its device"];
    assert_eq!(one.unwrap().findings, said);
    assert_eq!(all[0].findings, said);
}

#[test]
fn damaged_state_exports_nothing_and_takes_no_change() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    let path = Path::new("/c/state/objects-0000000002.json");
    assert!(bench.node.disk().rot(path, 200));
    let bench = bench.reboot();
    assert!(
        bench.engine.log.borrow().is_empty(),
        "the engine does not start"
    );
    assert_eq!(bench.apply(lab()).unwrap_err().code, Code::StateDamaged);
    assert_eq!(
        bench.controller.export().unwrap_err().code,
        Code::StateDamaged
    );
    let controller = Rc::clone(&bench.controller);
    let status = bench.ask(async move { controller.status().await });
    assert_eq!(status.health, Health::Damaged);
    assert!(status.problems[0].contains("objects-0000000002.json"));
}

#[test]
fn a_journal_that_is_missing_is_named_in_status() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    bench.engine.loses_journal.set(true);
    let controller = Rc::clone(&bench.controller);
    let status = bench.ask(async move { controller.status().await });
    assert_eq!(status.health, Health::Degraded);
    let reported = "the journal of pool default cannot be used: it is away";
    assert!(
        status.problems.iter().any(|it| it.starts_with(reported)),
        "{status:?}"
    );
}

/// A task that panics is dropped where it stands, as here.
#[test]
fn after_a_change_that_was_cut_off_no_other_is_taken_until_a_restart() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    bench.engine.hang_adopt.set(true);
    let controller = Rc::clone(&bench.controller);
    let resize = |gib: u64| {
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(gib << 30).unwrap();
        Edit::Apply { set, prune: false }
    };
    let wanted = resize(2);
    let core = bench.node.core(0);
    let cut = async move {
        let mut edit = Box::pin(controller.edit(&wanted, How::default()));
        let mut end = core.sleep_until(core.now().after(Duration::from_secs(1)));
        let ended = std::future::poll_fn(|cx| {
            assert!(edit.as_mut().poll(cx).is_pending(), "it hangs");
            end.as_mut().poll(cx)
        });
        ended.await;
    };
    bench.ask(cut);
    bench.engine.hang_adopt.set(false);
    let refused = bench.edit(resize(3), How::default()).unwrap_err();
    assert_eq!(refused.code, Code::Internal);
    assert!(refused.hint.starts_with("restart the daemon"), "{refused}");
    let controller = Rc::clone(&bench.controller);
    let status = bench.ask(async move { controller.status().await });
    assert_eq!(status.health, Health::Degraded);
    assert!(
        status.problems[0].contains("cut off"),
        "{:?}",
        status.problems
    );
    let bench = bench.reboot();
    assert_eq!(
        bench.controller.objects().luns["l"].size.bytes(),
        2 << 30,
        "what was stored"
    );
    bench.edit(resize(3), How::default()).unwrap();
}

#[test]
fn giving_up_the_data_of_a_large_lun_is_a_job_that_says_whose_it_is() {
    let bench = Bench::new();
    let mut set = lab();
    let mut small = set.lun[0].clone();
    (small.name, small.size) = ("small".to_owned(), Size::from_bytes(1 << 20).unwrap());
    set.lun.push(small);
    let forced = How {
        force: true,
        dry_run: false,
    };
    bench
        .edit(Edit::Apply { set, prune: false }, forced)
        .unwrap();
    for name in ["l", "small"] {
        let subject = format!("lun={name}").parse().unwrap();
        bench.edit(Edit::Remove(subject), forced).unwrap();
        bench.edit(Edit::Purge(name.to_owned()), forced).unwrap();
    }
    let jobs = bench.controller.jobs();
    let said = jobs.iter().map(|job| {
        let state = job.state == manifest::job::JobState::Finished;
        (job.kind.as_str(), job.object.as_str(), state)
    });
    assert_eq!(said.collect::<Vec<_>>(), [("lun_purge", "l", true)]);
}

#[test]
fn what_takes_long_is_a_job_that_outlives_the_daemon_as_interrupted() {
    use manifest::job::JobState;
    let bench = Bench::new();
    let mut thick = lab();
    thick.lun[0].thin = Some(false);
    bench.engine.refuse_prepare.set(true);
    let edit = Edit::Apply {
        set: thick.clone(),
        prune: false,
    };
    assert!(bench.edit(edit.clone(), How::default()).is_err());
    bench.engine.refuse_prepare.set(false);
    assert!(bench.edit(edit.clone(), How::default()).is_ok());
    let states = |bench: &Bench| -> Vec<(u64, JobState)> {
        let jobs = bench.controller.jobs();
        jobs.iter().rev().map(|job| (job.id, job.state)).collect()
    };
    assert_eq!(
        states(&bench),
        [(1, JobState::Failed), (2, JobState::Finished)]
    );
    assert_eq!(
        bench.controller.job(1).unwrap().reason.as_deref(),
        Some("no")
    );
    let problem = bench.ask({
        let controller = Rc::clone(&bench.controller);
        async move { controller.cancel_job(2, "eve").await }
    });
    assert_eq!(problem.unwrap_err().code, Code::JobOver);
    // One that goes on for ever, and a power cut.
    bench.engine.hang_adopt.set(true);
    thick.lun[0].size = Size::from_bytes(5 << 30).unwrap();
    let (controller, set) = (Rc::clone(&bench.controller), thick);
    bench.node.core(0).spawn(Box::pin(async move {
        let edit = Edit::Apply { set, prune: false };
        drop(controller.edit(&edit, How::default()).await);
    }));
    let core = bench.node.core(0);
    bench.ask(async move {
        let later = core.now().after(Duration::from_secs(20));
        core.sleep_until(later).await;
    });
    assert_eq!(states(&bench)[2], (3, JobState::Running));
    let problem = bench.ask({
        let controller = Rc::clone(&bench.controller);
        async move { controller.cancel_job(3, "eve").await }
    });
    assert_eq!(
        problem.unwrap_err().code,
        Code::JobOver,
        "the engine makes nothing now"
    );
    let bench = bench.reboot();
    assert_eq!(states(&bench)[2], (3, JobState::Interrupted));
    let log = bench.controller.job(3).unwrap().log;
    let log: Vec<&str> = log.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(log[0], "begun by the node");
    assert_eq!(log.last(), Some(&"interrupted: the daemon ended"));
}

#[test]
fn a_guest_reaches_the_engine_and_no_object_and_goes_again() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    let controller = Rc::clone(&bench.controller);
    let found = bench.ask(async move { controller.inspect_for_guest("l").await });
    let found = found.unwrap();
    assert_eq!(found.portals, ["127.0.0.1:3260".parse().unwrap()]);
    assert_eq!(found.granted.map(|(_, number)| number), Some(0));
    let guest = Guest {
        lun: "l".to_owned(),
        initiator: "iqn.2026-11.io.causeway:g".to_owned(),
        target: "iqn.2026-11.io.causeway:gt".to_owned(),
        portal_group: found.portal_group,
        user: "bench".to_owned(),
        secret: manifest::secret::Secret::new(b"a secret of many".to_vec()),
        read_only: true,
    };
    let (before, generation) = (
        bench.controller.export().unwrap(),
        bench.controller.generation(),
    );
    let controller = Rc::clone(&bench.controller);
    bench
        .ask(async move { controller.admit(guest).await })
        .unwrap();
    let is_in = || {
        let published = Rc::clone(&bench.engine.published.borrow());
        let grants = published.grants.iter();
        let mut own = grants.filter(|(key, _)| key.host == GUEST && key.lun == "l");
        own.next().map(|(_, grant)| grant.read_only)
    };
    assert_eq!(is_in(), Some(true), "it may only read");
    assert_eq!(bench.controller.export().unwrap(), before);
    assert_eq!(bench.controller.generation(), generation);
    // It stays over a change of objects, and goes with its LUN.
    let more = ObjectSet {
        lun: vec![LunSpec::new("m", Size::from_bytes(1 << 20).unwrap())],
        ..ObjectSet::default()
    };
    bench.apply(more).unwrap();
    assert_eq!(is_in(), Some(true));
    let controller = Rc::clone(&bench.controller);
    bench.ask(async move { controller.dismiss("iqn.2026-11.io.causeway:gt").await });
    assert_eq!(is_in(), None);
    let controller = Rc::clone(&bench.controller);
    let nowhere = bench.ask(async move { controller.inspect_for_guest("none").await });
    assert_eq!(nowhere.unwrap_err().code, Code::NotFound);
}

#[test]
fn of_two_ends_at_once_none_takes_the_path_that_the_other_one_left() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    let second = |id| manifest::facts::SessionFacts {
        from: "10.0.1.9:1234".to_owned(),
        ..session(id)
    };
    let together = |forced: [bool; 2]| {
        *bench.engine.sessions.borrow_mut() = vec![session(1), second(2)];
        let controller = Rc::clone(&bench.controller);
        let [first, other] = forced.map(|force| How {
            force,
            dry_run: false,
        });
        let ended = bench.ask(async move {
            tokio::join!(
                controller.end_session(1, 0, first),
                controller.end_session(2, 0, other)
            )
        });
        let codes = [ended.0, ended.1].map(|it| it.err().map(|problem| problem.code));
        (codes, bench.engine.sessions.borrow().len())
    };
    let refused = Some(Code::InUse);
    assert_eq!(together([false, false]), ([None, refused], 1));
    assert_eq!(together([true, false]), ([None, refused], 1));
    assert_eq!(together([false, true]), ([None, None], 0), "meant");
    // What ended is forgotten, and each may end alone.
    assert!(bench.controller.leaving.try_lock().unwrap().is_empty());
    *bench.engine.sessions.borrow_mut() = vec![session(1), second(2)];
    let controller = Rc::clone(&bench.controller);
    let alone = bench.ask(async move { controller.end_session(2, 0, How::default()).await });
    assert!(alone.unwrap().changed);
}
