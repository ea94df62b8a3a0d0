//! A LUN of fixed size that is made or made larger can be stopped, and is then as it was.

use crate::data_plane::Node;
use crate::data_plane::test::{apply, begin_with, edit, wait};
use crate::pool::members::test::{config as members_config, make_members};
use controller::test_support::{config, lab};
use controller::{Asked, Controller, How};
use engine::Engine;
use env::sim::{World, WorldConfig};
use manifest::code::Code;
use manifest::job::{JobState, JobView};
use manifest::objects::ObjectSet;
use manifest::size::Size;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);

struct Bench {
    world: World,
    machine: env::sim::Node,
    controller: Rc<Controller>,
    engine: Node,
}

fn thick(bytes: u64) -> ObjectSet {
    let mut set = lab();
    set.lun[0].thin = Some(false);
    set.lun[0].size = Size::from_bytes(bytes).unwrap();
    set
}

impl Bench {
    fn new() -> Self {
        let world = World::new(5, WorldConfig::default());
        let machine = world.node("a");
        machine.disk().set_capacity(1 << 40);
        let (controller, engine) = begin_with(&world, &machine, config);
        Self {
            world,
            machine,
            controller,
            engine,
        }
    }

    /// Begins a change, and stops what it makes when some of it is done.
    fn stopped(&self, set: ObjectSet) -> Code {
        let ended = Rc::new(RefCell::new(None));
        let (reported, running) = (Rc::clone(&ended), Rc::clone(&self.controller));
        self.machine.core(0).spawn(Box::pin(async move {
            let change = apply(set);
            let asked = running.edit_if(&change, How::default(), Asked::by("eve"));
            *reported.borrow_mut() = Some(asked.await);
        }));
        let mut cancelled = false;
        while ended.borrow().is_none() {
            assert!(self.world.step(), "it goes on");
            let jobs = self.controller.jobs();
            let running = jobs.iter().find(|job| job.state == JobState::Running);
            if let Some(job) = running.filter(|job| job.done > 0 && !cancelled) {
                let (controller, id) = (Rc::clone(&self.controller), job.id);
                assert!(job.done < job.total && job.by == "eve");
                let cancel = async move { controller.cancel_job(id, "kim").await };
                let job = self.world.block_on(&self.machine, LIMIT, cancel);
                assert!(
                    job.unwrap()
                        .unwrap()
                        .log
                        .iter()
                        .any(|it| it.text == "kim cancels it")
                );
                cancelled = true;
            }
        }
        let ended = ended.borrow_mut().take().expect("it has ended");
        ended.expect_err("it was stopped").code
    }

    fn size(&self) -> Option<u64> {
        let controller = Rc::clone(&self.controller);
        let luns = async move { controller.luns(false).await };
        let luns = self.world.block_on(&self.machine, LIMIT, luns).unwrap();
        luns.first().map(|lun| lun.size.bytes())
    }
}

#[test]
fn a_part_of_a_pool_that_was_to_grow_is_as_large_as_before() {
    let world = World::new(7, WorldConfig::default());
    let machine = world.node("a");
    make_members(&world, &machine);
    let (controller, engine) = begin_with(&world, &machine, members_config);
    let sized = |bytes: u64| {
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(bytes).unwrap();
        apply(set)
    };
    edit(&world, &machine, &controller, sized(16 << 20)).unwrap();
    let allocated = || {
        let controller = Rc::clone(&controller);
        let luns = async move { controller.luns(false).await };
        world.block_on(&machine, LIMIT, luns).unwrap()[0].allocated
    };
    let (before, naa) = (allocated(), controller.objects().luns["l"].naa.clone());
    let (ended, running) = (Rc::new(RefCell::new(None)), Rc::clone(&controller));
    let reported = Rc::clone(&ended);
    machine.core(0).spawn(Box::pin(async move {
        let done = running.edit(&sized(90 << 20), How::default()).await;
        *reported.borrow_mut() = Some(done);
    }));
    while ended.borrow().is_none() {
        assert!(world.step(), "it goes on");
        // Before anything of it is made zeroes.
        engine.stop_work(&naa);
    }
    let ended = ended.borrow_mut().take().expect("it has ended");
    assert_eq!(ended.unwrap_err().code, Code::JobCancelled);
    assert_eq!(allocated(), before, "what it was given is given back");
    edit(&world, &machine, &controller, sized(90 << 20)).unwrap();
    assert!(allocated() > before);
}

/// Where nothing was given back the disk would be fuller by what was made.
#[test]
fn a_power_cut_in_the_middle_leaves_the_old_size_and_the_space_of_it() {
    let bench = Bench::new();
    let grow = apply(thick(2 << 30));
    edit(&bench.world, &bench.machine, &bench.controller, grow).unwrap();
    let before = bench.machine.disk().used_bytes();
    let running = Rc::clone(&bench.controller);
    bench.machine.core(0).spawn(Box::pin(async move {
        drop(running.edit(&apply(thick(16 << 30)), How::default()).await);
    }));
    let is_half = |jobs: Vec<JobView>| jobs[0].done > 0 && jobs[0].done < jobs[0].total;
    while !is_half(bench.controller.jobs()) {
        assert!(bench.world.step(), "it goes on");
    }
    let Bench { world, machine, .. } = bench;
    assert!(machine.disk().used_bytes() > before + (1 << 29));
    machine.crash();
    machine.restart();
    let (controller, engine) = begin_with(&world, &machine, config);
    let bench = Bench {
        world,
        machine,
        controller,
        engine,
    };
    wait(&bench.world, &bench.machine, Duration::from_secs(20));
    assert_eq!(bench.size(), Some(2 << 30));
    assert!(bench.machine.disk().used_bytes() < before + (1 << 20));
    assert_eq!(bench.controller.jobs()[0].state, JobState::Interrupted);
}

#[test]
fn what_is_cancelled_is_undone_and_its_job_says_by_whom() {
    let bench = Bench::new();
    let empty = bench.machine.disk().used_bytes();
    assert_eq!(bench.stopped(thick(16 << 30)), Code::JobCancelled);
    assert_eq!(bench.size(), None);
    wait(&bench.world, &bench.machine, Duration::from_secs(20));
    let used = bench.machine.disk().used_bytes();
    assert!(
        used < empty + (1 << 20),
        "{used}: what was taken is given back"
    );
    edit(
        &bench.world,
        &bench.machine,
        &bench.controller,
        apply(thick(2 << 30)),
    )
    .unwrap();
    let before = bench.machine.disk().used_bytes();
    assert_eq!(bench.stopped(thick(16 << 30)), Code::JobCancelled);
    assert_eq!(bench.size(), Some(2 << 30));
    wait(&bench.world, &bench.machine, Duration::from_secs(20));
    assert!(bench.machine.disk().used_bytes() < before + (1 << 20));
    edit(
        &bench.world,
        &bench.machine,
        &bench.controller,
        apply(thick(4 << 30)),
    )
    .unwrap();
    let jobs = bench.controller.jobs();
    let seen: Vec<(&str, JobState, u64)> = jobs
        .iter()
        .rev()
        .map(|job| (job.kind.as_str(), job.state, job.total >> 30))
        .collect();
    let expected = [
        ("lun_create", JobState::Cancelled, 16),
        ("lun_create", JobState::Finished, 2),
        ("lun_grow", JobState::Cancelled, 14),
        ("lun_grow", JobState::Finished, 2),
    ];
    assert_eq!(seen, expected);
    assert!(jobs.iter().all(|job| job.object == "l"));
    assert!(bench.engine.progress("nobody").is_none() && !bench.engine.stop_work("nobody"));
}
