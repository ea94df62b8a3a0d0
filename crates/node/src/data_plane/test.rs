//! The controller with the real engine, on a simulated machine that loses its power.

use super::*;
use ::units::{BlockCount, Lba, LbaRange};
use controller::test_support::{config, lab};
use controller::{Controller, How};
use env::sim::{World, WorldConfig};
use manifest::objects::ObjectSet;
use manifest::plan::{Edit, Section, Subject};
use manifest::size::Size;
use std::path::Path;
use std::sync::Arc;
use volume::{Durability, Io, Op, Origin};

const LIMIT: Duration = Duration::from_secs(600);

async fn start(core: CoreHandle) -> Result<Rc<Controller>, Problem> {
    let node = Node::new(Rc::clone(&core), config(), Box::new(Vec::new));
    Controller::start(core, config(), Rc::new(node)).await
}

fn begin(world: &World, node: &env::sim::Node) -> Rc<Controller> {
    world
        .block_on(node, LIMIT, start(node.core(0)))
        .unwrap()
        .unwrap()
}

pub(crate) fn apply(set: ObjectSet) -> Edit {
    Edit::Apply { set, prune: false }
}

fn states(
    world: &World,
    node: &env::sim::Node,
    controller: &Rc<Controller>,
) -> Vec<(String, String, u64)> {
    let controller = Rc::clone(controller);
    let luns = world
        .block_on(node, LIMIT, async move { controller.luns(false).await })
        .unwrap();
    luns.into_iter()
        .map(|lun| (lun.name, lun.state, lun.size.bytes()))
        .collect()
}

/// What loses data is meant.
const FORCED: How = How {
    force: true,
    dry_run: false,
};

pub(crate) fn edit(
    world: &World,
    node: &env::sim::Node,
    controller: &Rc<Controller>,
    edit: Edit,
) -> Result<(), Problem> {
    let controller = Rc::clone(controller);
    let run = async move { controller.edit(&edit, FORCED).await.map(|_| ()) };
    world.block_on(node, LIMIT, run).unwrap()
}

/// What the pool's directory holds that is not the pool's own.
fn left_of_luns(world: &World, node: &env::sim::Node) -> Vec<String> {
    let core = node.core(0);
    let pool = async move { core.files().list(Path::new("/c/pool")).await };
    let entries = world.block_on(node, LIMIT, pool).unwrap().unwrap();
    let names = entries.iter().map(|it| it.name.display().to_string());
    names
        .filter(|name| !["pool.toml", "saved.json"].contains(&name.as_str()))
        .collect()
}

/// Cuts the power every few steps of an apply that makes one LUN and grows another.
#[test]
fn a_power_cut_during_an_apply_leaves_every_stored_lun_online() {
    let (mut old_seen, mut new_seen) = (0, 0);
    for steps in (0..).step_by(3) {
        let world = World::new(11, WorldConfig::default());
        let node = world.node("a");
        let controller = begin(&world, &node);
        edit(&world, &node, &controller, apply(lab())).unwrap();
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(3 << 30).unwrap();
        set.lun.push(manifest::objects::LunSpec::new(
            "new",
            Size::from_bytes(1 << 20).unwrap(),
        ));
        let done = Rc::new(Cell::new(false));
        let (reported, running) = (Rc::clone(&done), Rc::clone(&controller));
        node.core(0).spawn(Box::pin(async move {
            running.edit(&apply(set), How::default()).await.unwrap();
            reported.set(true);
        }));
        let moved = (0..steps).all(|_| world.step());
        let acknowledged = done.get();
        drop(controller);
        node.crash();
        node.restart();
        let controller = begin(&world, &node);
        let found = states(&world, &node, &controller);
        let online = |name: &str, bytes: u64| (name.to_owned(), "online".to_owned(), bytes);
        let old = vec![online("l", 1 << 30)];
        let new = vec![online("l", 3 << 30), online("new", 1 << 20)];
        assert!(
            found == new || (found == old && !acknowledged),
            "after {steps} steps: {found:?}"
        );
        old_seen += u32::from(found == old);
        new_seen += u32::from(found == new);
        if acknowledged || !moved {
            break;
        }
    }
    assert!(
        old_seen > 3 && new_seen > 0,
        "{old_seen} old, {new_seen} new"
    );
}

#[test]
fn a_full_pool_refuses_a_new_lun_and_leaves_nothing_behind() {
    let world = World::new(12, WorldConfig::default());
    let node = world.node("a");
    let controller = begin(&world, &node);
    node.disk().set_capacity(1 << 20);
    let mut set = lab();
    set.lun[0].thin = Some(false);
    let refused = edit(&world, &node, &controller, apply(set)).unwrap_err();
    assert_eq!(refused.code, Code::PoolFull, "{refused}");
    assert!(states(&world, &node, &controller).is_empty());
    assert_eq!(left_of_luns(&world, &node), [""; 0]);
}

#[test]
fn a_removed_lun_comes_back_with_its_file_and_a_purged_one_does_not() {
    let world = World::new(13, WorldConfig::default());
    let node = world.node("a");
    let controller = begin(&world, &node);
    edit(&world, &node, &controller, apply(lab())).unwrap();
    let remove = Edit::Remove(Subject {
        section: Section::Lun,
        name: "l".to_owned(),
    });
    edit(&world, &node, &controller, remove.clone()).unwrap();
    assert!(states(&world, &node, &controller).is_empty());
    edit(&world, &node, &controller, Edit::Restore("l".to_owned())).unwrap();
    assert_eq!(states(&world, &node, &controller)[0].1, "online");
    edit(&world, &node, &controller, remove).unwrap();
    edit(&world, &node, &controller, Edit::Purge("l".to_owned())).unwrap();
    assert_eq!(left_of_luns(&world, &node), [""; 0]);
}

#[test]
fn what_a_lun_takes_in_its_pool_is_reported_and_a_rename_reaches_its_unit() {
    let world = World::new(14, WorldConfig::default());
    let node = world.node("a");
    let engine = Node::new(node.core(0), config(), Box::new(Vec::new));
    let shared: Rc<dyn Engine> = Rc::new(engine.clone());
    let begun = Controller::start(node.core(0), config(), shared);
    let controller = world.block_on(&node, LIMIT, begun).unwrap().unwrap();
    let mut set = lab();
    set.lun[0].size = Size::from_bytes(1 << 20).unwrap();
    set.lun[0].thin = Some(false);
    edit(&world, &node, &controller, apply(set)).unwrap();
    let asked = Rc::clone(&controller);
    let luns = world.block_on(&node, LIMIT, async move { asked.luns(false).await });
    assert_eq!(luns.unwrap()[0].allocated, Some(1 << 20));

    let rename = Edit::Rename {
        subject: Subject {
            section: Section::Lun,
            name: "l".to_owned(),
        },
        to: "m".to_owned(),
    };
    edit(&world, &node, &controller, rename).unwrap();
    let units = engine.0.units.borrow();
    let names: Vec<_> = units.values().map(|unit| unit.name()).collect();
    assert_eq!(names, [Arc::from("m")]);
}

#[test]
fn live_settings_reach_portals_hosts_and_the_schedule() {
    let world = World::new(17, WorldConfig::default());
    let node = world.node("a");
    let (controller, engine) = begin_with(&world, &node, config);
    edit(&world, &node, &controller, apply(lab())).unwrap();
    let before = controller.objects();
    let mut wanted = config();
    let at = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    wanted.portal_groups[0].listen = vec![Listen::Address(at(3271)), Listen::Address(at(3272))];
    wanted.session.data = Duration::from_secs(77);
    wanted.scrub_every_days = Some(3);
    let configured = Rc::clone(&controller);
    let done = async move { configured.configure(wanted).await };
    world.block_on(&node, LIMIT, done).unwrap();
    wait(&world, &node, Duration::from_secs(1));
    let server = engine.0.server().unwrap();
    let listens: Vec<_> = server
        .portals()
        .into_iter()
        .map(|it| (it.address, it.error))
        .collect();
    assert_eq!(listens, [(at(3271), None), (at(3272), None)]);
    let export = server.export();
    assert_eq!(export.settings.data_timeout, Duration::from_secs(77));
    assert_eq!(export.targets.len(), before.targets.len());
    assert_eq!(
        engine.0.scrubs.every(),
        Some(Duration::from_secs(3 * 86_400))
    );
    // A change of objects that comes later keeps them.
    let mut set = lab();
    set.lun[0].name = "second".to_owned();
    edit(&world, &node, &controller, apply(set)).unwrap();
    let export = engine.0.server().unwrap().export();
    assert_eq!(export.settings.data_timeout, Duration::from_secs(77));
    assert_eq!(export.portal_groups[0].listens.len(), 2);
}

#[test]
fn a_thick_lun_has_the_space_of_its_checksums_before_it_is_written_or_is_not_made() {
    let world = World::new(15, WorldConfig::default());
    let node = world.node("a");
    let controller = begin_journaled(&world, &node);
    let mut set = lab();
    set.lun[0].size = Size::from_bytes(64 << 20).unwrap();
    set.lun[0].thin = Some(false);
    set.lun[0].storage.integrity = Some(true);
    // 64 MiB have 17 pages of checksums, each at two places, two pages above them, and two
    // superblocks.
    let map_bytes = (17 + 2 + 1) * 8192_u64;
    let mut refused = 0;
    // The journal and the blocks, and a little more each time.
    for more in (0_u64..).step_by(32 << 10) {
        node.disk().set_capacity((16 << 20) + (64 << 20) + more);
        let Err(problem) = edit(&world, &node, &controller, apply(set.clone())) else {
            break;
        };
        let full = [Code::PoolFull, Code::StateNotSaved].contains(&problem.code);
        assert!(full, "{problem}");
        assert_eq!(left_of_luns(&world, &node), [""; 0]);
        refused += 1;
    }
    assert!(refused > 3, "{refused}");
    let allocated = |world: &World| {
        let core = node.core(0);
        let listed = async move { core.files().list(Path::new("/c/pool")).await };
        let all = world.block_on(&node, LIMIT, listed).unwrap().unwrap();
        let map = all
            .iter()
            .find(|it| it.name.extension().is_some_and(|it| it == "checksums"));
        map.unwrap().allocated
    };
    assert!(allocated(&world) >= map_bytes, "{}", allocated(&world));
    node.disk().set_capacity(1 << 30);
    set.lun[0].size = Size::from_bytes(128 << 20).unwrap();
    edit(&world, &node, &controller, apply(set)).unwrap();
    assert!(allocated(&world) >= (33 + 2 + 1) * 8192);
}

/// Moves what the pool has of this kind, from one directory to the other.
fn move_all(
    world: &World,
    node: &env::sim::Node,
    kind: &'static str,
    (from, to): (&'static str, &'static str),
) -> usize {
    let core = node.core(0);
    let moved = async move {
        let files = core.files();
        let entries = files.list(Path::new(from)).await.unwrap();
        let names = entries.into_iter().map(|it| it.name);
        let mut moved = 0;
        for name in names.filter(|name| name.extension().is_some_and(|it| it == kind)) {
            let (from, to) = (Path::new(from).join(&name), Path::new(to).join(&name));
            files.rename(&from, &to).await.unwrap();
            moved += 1;
        }
        moved
    };
    world.block_on(node, LIMIT, moved).unwrap()
}

fn begin_journaled(world: &World, node: &env::sim::Node) -> Rc<Controller> {
    begin_with(world, node, crate::journal::monitor_test::with_journal).0
}

/// The engine, too.
pub(crate) fn begin_with(
    world: &World,
    node: &env::sim::Node,
    config: fn() -> Config,
) -> (Rc<Controller>, Node) {
    let engine = Node::new(node.core(0), config(), Box::new(Vec::new));
    let begun = Controller::start(node.core(0), config(), Rc::new(engine.clone()));
    (world.block_on(node, LIMIT, begun).unwrap().unwrap(), engine)
}

pub(crate) fn wait(world: &World, node: &env::sim::Node, time: Duration) {
    let core = node.core(0);
    let over = async move { core.sleep_until(core.now().after(time)).await };
    world.block_on(node, LIMIT, over).unwrap();
}

#[test]
fn a_lun_that_could_not_be_opened_is_online_soon_after_it_can_be() {
    const TIME: Duration = Duration::from_secs(15);
    for (kind, stops) in [("lun", false), ("checksums", false), ("lun", true)] {
        // A journal that was closed is away, and its LUNs are not tried at all.
        let begun = if stops { begin } else { begin_journaled };
        let world = World::new(16, WorldConfig::default());
        let node = world.node("a");
        let controller = begun(&world, &node);
        let mut set = lab();
        set.lun[0].storage.integrity = Some(!stops);
        edit(&world, &node, &controller, apply(set)).unwrap();
        drop(controller);
        node.crash();
        node.restart();
        assert_eq!(
            move_all(&world, &node, kind, ("/c/pool", "/c")),
            1,
            "{kind}"
        );
        let controller = begun(&world, &node);
        wait(&world, &node, TIME);
        assert_eq!(states(&world, &node, &controller)[0].1, "offline", "{kind}");
        assert_eq!(
            move_all(&world, &node, kind, ("/c", "/c/pool")),
            1,
            "{kind}"
        );
        if stops {
            let stopping = Rc::clone(&controller);
            let stopped = async move { stopping.stop().await };
            world.block_on(&node, LIMIT, stopped).unwrap();
        }
        wait(&world, &node, TIME);
        let state = &states(&world, &node, &controller)[0].1;
        let expected = if stops { "offline" } else { "online" };
        assert_eq!(state, expected, "{kind}");
    }
}

#[test]
fn a_try_that_waited_long_for_its_turn_is_followed_by_the_next_as_soon_as_any_other() {
    const HELD: Duration = Duration::from_secs(60);
    let world = World::new(18, WorldConfig::default());
    let node = world.node("a");
    let controller = begin_journaled(&world, &node);
    let mut set = lab();
    set.lun[0].storage.integrity = Some(true);
    edit(&world, &node, &controller, apply(set)).unwrap();
    drop(controller);
    node.crash();
    node.restart();
    assert_eq!(move_all(&world, &node, "checksums", ("/c/pool", "/c")), 1);
    let (controller, engine) =
        begin_with(&world, &node, crate::journal::monitor_test::with_journal);
    // As one that destages a journal, or makes a large LUN.
    let core = node.core(0);
    node.core(0).spawn(Box::pin(async move {
        let _turn = engine.0.turn.lock().await;
        core.sleep_until(core.now().after(HELD)).await;
    }));
    wait(&world, &node, HELD + Duration::from_secs(5));
    assert_eq!(states(&world, &node, &controller)[0].1, "offline");
    assert_eq!(move_all(&world, &node, "checksums", ("/c", "/c/pool")), 1);
    wait(&world, &node, Duration::from_secs(15));
    assert_eq!(states(&world, &node, &controller)[0].1, "online");
}

#[test]
fn a_lun_that_is_offline_keeps_its_size_and_says_why() {
    let world = World::new(22, WorldConfig::default());
    let node = world.node("a");
    let controller = begin(&world, &node);
    edit(&world, &node, &controller, apply(lab())).unwrap();
    drop(controller);
    node.crash();
    node.restart();
    assert_eq!(move_all(&world, &node, "lun", ("/c/pool", "/c")), 1);
    let controller = begin(&world, &node);
    for (bytes, dry_run) in [(2 << 30, false), (1 << 20, false), (2 << 30, true)] {
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(bytes).unwrap();
        let (asked, force) = (Rc::clone(&controller), true);
        let refused = world.block_on(&node, LIMIT, async move {
            let how = How { force, dry_run };
            asked.edit(&apply(set), how).await.map(|_| ())
        });
        let problem = refused.unwrap().unwrap_err();
        assert_eq!(problem.code, Code::LunOffline, "{problem}");
        let fault = &problem.faults[0];
        assert_eq!((&*fault.object, &*fault.key), ("l", "size"));
        assert!(fault.message.contains("does not exist"), "{fault:?}");
    }
    // What does not change its size is taken.
    let mut set = lab();
    set.lun[0].storage.read_cache = Some(Size::from_bytes(1 << 20).unwrap());
    edit(&world, &node, &controller, apply(set)).unwrap();
    assert_eq!(move_all(&world, &node, "lun", ("/c", "/c/pool")), 1);
    wait(&world, &node, Duration::from_secs(15));
    let online = ("l".to_owned(), "online".to_owned(), 1 << 30);
    assert_eq!(states(&world, &node, &controller), [online]);
}

/// One command of a host, below its logical unit.
fn submit(world: &World, node: &env::sim::Node, engine: &Node, op: Op) -> volume::IoResult {
    let (core, units) = (node.core(0), engine.0.units.borrow());
    let volume = units.values().next().unwrap().volume().unwrap();
    drop(units);
    let done = async move {
        let lane = volume.open(&core).await.unwrap();
        lane.submit(Io::new(op, Origin::default())).await
    };
    world.block_on(node, LIMIT, done).unwrap()
}

#[test]
fn a_lun_that_a_change_cannot_open_again_is_offline_everywhere_and_comes_back() {
    let range = LbaRange::new(Lba(0), BlockCount(8)).unwrap();
    let changes: [fn(&mut manifest::objects::LunSpec); 3] = [
        |lun| lun.storage.read_cache = Some(Size::from_bytes(1 << 20).unwrap()),
        |lun| lun.size = Size::from_bytes(1 << 19).unwrap(),
        |lun| lun.storage.integrity = Some(true),
    ];
    for (number, change) in changes.iter().enumerate() {
        let config = crate::journal::monitor_test::with_journal;
        let world = World::new(23, WorldConfig::default());
        let node = world.node("a");
        let (controller, engine) = begin_with(&world, &node, config);
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(1 << 20).unwrap();
        edit(&world, &node, &controller, apply(set.clone())).unwrap();
        let write = Op::Write {
            range,
            data: units::Buf::copy_of(&[7; 4096]),
            durability: Durability::Stable,
        };
        submit(&world, &node, &engine, write).unwrap();
        assert_eq!(move_all(&world, &node, "lun", ("/c/pool", "/c")), 1);
        change(&mut set.lun[0]);
        let problem = edit(&world, &node, &controller, apply(set)).unwrap_err();
        // Checksums open the file before anything is taken from hosts.
        let (code, state) = [
            (Code::PartlyDone, "offline"),
            (Code::PartlyDone, "offline"),
            (Code::BackingFailed, "online"),
        ][number];
        assert_eq!(problem.code, code, "{problem}");
        let is = |wanted: &str| {
            let shown = states(&world, &node, &controller)[0].1.clone();
            assert_eq!(shown, wanted, "{number}");
            let unit = Rc::clone(engine.0.units.borrow().values().next().unwrap());
            assert_eq!(unit.went_offline(&node.core(0)), None, "{number}");
        };
        is(state);
        wait(&world, &node, Duration::from_secs(30));
        is(state);
        assert_eq!(move_all(&world, &node, "lun", ("/c", "/c/pool")), 1);
        wait(&world, &node, Duration::from_secs(15));
        is("online");
        let into = None;
        let read = submit(&world, &node, &engine, Op::Read { range, into });
        let Ok(volume::Done::Data(data)) = read else {
            panic!("{number}: {read:?}")
        };
        assert_eq!(*data.to_vec(), [7; 4096], "{number}");
    }
}

#[test]
fn a_lun_whose_stored_reservations_are_back_is_online_soon_after() {
    // Gone; damaged; gone while its file is away as well.
    for (gone, away) in [(true, false), (false, false), (true, true)] {
        let world = World::new(24, WorldConfig::default());
        let node = world.node("a");
        let controller = begin_journaled(&world, &node);
        edit(&world, &node, &controller, apply(lab())).unwrap();
        let naa = controller.objects().luns["l"].naa.clone();
        drop(controller);
        node.crash();
        node.restart();
        let put = |directory: &str, bytes: Vec<u8>| {
            let path = format!("/c/state/{directory}/{naa}.reservations");
            let core = node.core(0);
            let done = async move {
                let (files, path) = (core.files(), Path::new(&path));
                env::durable::make_dir(&*files, path.parent().unwrap()).await?;
                env::durable::replace_file(&*files, path, &bytes).await
            };
            world.block_on(&node, LIMIT, done).unwrap().unwrap();
        };
        put("units.kept", Vec::new());
        if !gone {
            put("units", vec![7; 64]);
        }
        if away {
            assert_eq!(move_all(&world, &node, "lun", ("/c/pool", "/c")), 1);
        }
        let controller = begin_journaled(&world, &node);
        wait(&world, &node, Duration::from_secs(15));
        let lun = || {
            let asked = Rc::clone(&controller);
            let luns = world.block_on(&node, LIMIT, async move { asked.luns(false).await });
            let lun = luns.unwrap().remove(0);
            (lun.state, lun.reason.unwrap_or_default())
        };
        let (state, reason) = lun();
        assert_eq!(state, "offline");
        let reported = [
            "the stored reservations cannot be used",
            "comes online by itself",
        ];
        assert!(reported.iter().all(|it| reason.contains(it)), "{reason}");
        put("units", scsi::reservation::Reservations::new().to_bytes());
        wait(&world, &node, Duration::from_secs(15));
        if away {
            let (state, reason) = lun();
            assert_eq!(state, "offline");
            assert!(reason.contains("does not exist"), "{reason}");
            assert_eq!(move_all(&world, &node, "lun", ("/c", "/c/pool")), 1);
            wait(&world, &node, Duration::from_secs(15));
        }
        assert_eq!(lun().0, "online", "{gone} {away}");
    }
}

/// What a LUN lacks comes back between the two halves of a change: it is opened by the objects that
/// are in force afterwards.
#[test]
fn a_lun_that_comes_back_while_it_gets_checksums_has_them_afterwards() {
    for (back, adopted) in [("journal", true), ("lun", true), ("lun", false)] {
        let config = crate::journal::monitor_test::with_journal;
        let world = World::new(25, WorldConfig::default());
        let node = world.node("a");
        let (controller, engine) = begin_with(&world, &node, config);
        edit(&world, &node, &controller, apply(lab())).unwrap();
        let stopping = Rc::clone(&controller);
        let stopped = async move { stopping.stop().await };
        world.block_on(&node, LIMIT, stopped).unwrap();
        drop((controller, engine));
        node.crash();
        node.restart();
        let rename = |from: &'static str, to: &'static str| {
            let core = node.core(0);
            let moved = async move { core.files().rename(Path::new(from), Path::new(to)).await };
            world.block_on(&node, LIMIT, moved).unwrap().unwrap();
        };
        let moves = |away: bool| match (back, away) {
            ("lun", true) => drop(move_all(&world, &node, "lun", ("/c/pool", "/c"))),
            ("lun", false) => drop(move_all(&world, &node, "lun", ("/c", "/c/pool"))),
            (_, true) => rename("/c/journal", "/c/aside"),
            (_, false) => rename("/c/aside", "/c/journal"),
        };
        moves(true);
        let (controller, engine) = begin_with(&world, &node, config);
        assert_eq!(states(&world, &node, &controller)[0].1, "offline", "{back}");
        let before = controller.objects();
        let mut after = Objects::clone(&before);
        after.luns.get_mut("l").unwrap().storage.integrity = Some(true);
        let changes = Rc::new(manifest::plan::lun_changes(&before, &after));
        let prepared = engine.prepare(Rc::clone(&changes));
        world.block_on(&node, LIMIT, prepared).unwrap().unwrap();
        moves(false);
        // The objects are stored meanwhile, on a slow disk.
        wait(&world, &node, Duration::from_secs(30));
        if adopted {
            let done = engine.adopt(Rc::new(after), changes);
            world.block_on(&node, LIMIT, done).unwrap().unwrap();
        } else {
            let done = engine.abandon(changes);
            world.block_on(&node, LIMIT, done).unwrap();
        }
        let facts = world.block_on(&node, LIMIT, engine.luns()).unwrap();
        let (_, lun) = facts.into_iter().next().unwrap();
        assert_eq!(lun.state, manifest::facts::LunState::Online, "{back}");
        assert_eq!(lun.layers.checksums.is_some(), adopted, "{back}");
        let checksums = move_all(&world, &node, "checksums", ("/c/pool", "/c"));
        assert_eq!(checksums, usize::from(adopted), "{back}");
    }
}

#[test]
fn checksums_are_not_made_where_the_pools_file_system_is_not_mounted() {
    let world = World::new(26, WorldConfig::default());
    let node = world.node("a");
    let controller = begin_journaled(&world, &node);
    edit(&world, &node, &controller, apply(lab())).unwrap();
    for kind in ["lun", "changes", "record", "toml", "json"] {
        let moved = move_all(&world, &node, kind, ("/c/pool", "/c"));
        assert!(moved > 0, "{kind}");
    }
    wait(&world, &node, Duration::from_secs(5));
    assert_eq!(states(&world, &node, &controller)[0].1, "offline");
    let mut set = lab();
    set.lun[0].storage.integrity = Some(true);
    let refused = edit(&world, &node, &controller, apply(set)).unwrap_err();
    assert_eq!(refused.code, Code::PoolMissing, "{refused}");
    assert_eq!(left_of_luns(&world, &node), [""; 0]);
}

/// Two pools: `default` in /c/pool, `p1` in /c/p1.
fn two_pools() -> Config {
    let text = "[node]\nname = \"n\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
                listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"default\"\npath = \"pool\"\n[[pool]]\n\
                name = \"p1\"\npath = \"p1\"\n[api]\nlisten = [\"unix:api.sock\"]\n";
    manifest::config::parse(Path::new("/c/node.toml"), text).unwrap()
}

#[test]
fn a_pool_whose_directory_hangs_at_the_start_holds_up_no_other_and_comes_back() {
    let world = World::new(28, WorldConfig::default());
    let node = world.node("a");
    let (controller, engine) = begin_with(&world, &node, two_pools);
    let mut set = lab();
    // Of fixed size: what it takes is asked at the start.
    set.lun[0].thin = Some(false);
    set.lun[0].size = Size::from_bytes(1 << 20).unwrap();
    set.lun[0].pool = Some("default".to_owned());
    let size = Size::from_bytes(1 << 20).unwrap();
    let mut other = manifest::objects::LunSpec::new("m", size);
    other.pool = Some("p1".to_owned());
    set.lun.push(other);
    edit(&world, &node, &controller, apply(set)).unwrap();
    drop((controller, engine));
    node.crash();
    node.restart();
    node.disk().hang_directory(Path::new("/c/pool"));
    let engine = Node::new(node.core(0), two_pools(), Box::new(Vec::new));
    let begun = Controller::start(node.core(0), two_pools(), Rc::new(engine.clone()));
    let soon = Duration::from_secs(30);
    let controller = world
        .block_on(&node, soon, begun)
        .expect("the start hangs")
        .unwrap();
    let states = || {
        let all = states(&world, &node, &controller);
        all.into_iter()
            .map(|(_, state, _)| state)
            .collect::<Vec<_>>()
    };
    wait(&world, &node, Duration::from_secs(60));
    assert_eq!(states(), ["offline", "online"]);
    node.disk().release();
    wait(&world, &node, Duration::from_secs(60));
    assert_eq!(states(), ["online", "online"]);
}

#[test]
fn a_pool_whose_directory_hangs_holds_up_no_change_of_another() {
    let world = World::new(27, WorldConfig::default());
    let node = world.node("a");
    let (controller, _) = begin_with(&world, &node, two_pools);
    let mut set = lab();
    set.lun[0].pool = Some("default".to_owned());
    edit(&world, &node, &controller, apply(set.clone())).unwrap();
    node.disk().hang_directory(Path::new("/c/pool"));
    wait(&world, &node, Duration::from_secs(5));
    let with = |set: &ObjectSet, name: &str, pool: &str| {
        let mut set = set.clone();
        let size = Size::from_bytes(1 << 20).unwrap();
        let mut spec = manifest::objects::LunSpec::new(name, size);
        spec.pool = Some(pool.to_owned());
        set.lun.push(spec);
        apply(set)
    };
    let soon = |change: Edit| {
        let asked = Rc::clone(&controller);
        let run = async move { asked.edit(&change, FORCED).await.map(|_| ()) };
        let limit = Duration::from_secs(30);
        world.block_on(&node, limit, run).expect("the change hangs")
    };
    soon(with(&set, "m", "p1")).unwrap();
    // The LUN's record is late.
    set.lun[0].bytes_in_flight_max = Some(Size::from_bytes(1 << 20).unwrap());
    soon(apply(set.clone())).unwrap();
    wait(&world, &node, Duration::from_secs(30));
    let with = |name: &str, pool: &str| with(&set, name, pool);
    soon(with("n", "p1")).unwrap();
    let refused = soon(with("o", "default")).unwrap_err();
    assert_eq!(refused.code, Code::PoolMissing, "{refused}");
    let problems = || {
        let asked = Rc::clone(&controller);
        let status = world.block_on(&node, LIMIT, async move { asked.status().await });
        status.unwrap().problems.join("\n")
    };
    let reported = problems();
    assert!(
        reported.contains("pool default does not answer"),
        "{reported}"
    );
    node.disk().release();
    wait(&world, &node, Duration::from_secs(30));
    let reported = problems();
    assert!(!reported.contains("does not answer"), "{reported}");
    soon(with("p", "default")).unwrap();
}

/// Every answer in this is there within so long.
const SOON: Duration = Duration::from_secs(100);

/// Two LUNs whose files were away at the start and are back, and that of the first hangs.
struct Hanging {
    world: World,
    node: env::sim::Node,
    controller: Rc<Controller>,
    engine: Node,
    set: ObjectSet,
}

impl Hanging {
    fn new(seed: u64) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let node = world.node("a");
        let controller = begin(&world, &node);
        let mut set = lab();
        let size = Size::from_bytes(1 << 20).unwrap();
        set.lun.push(manifest::objects::LunSpec::new("m", size));
        edit(&world, &node, &controller, apply(set.clone())).unwrap();
        drop(controller);
        node.crash();
        node.restart();
        assert_eq!(move_all(&world, &node, "lun", ("/c/pool", "/c")), 2);
        let (controller, engine) = begin_with(&world, &node, config);
        assert_eq!(move_all(&world, &node, "lun", ("/c", "/c/pool")), 2);
        let naa = controller.objects().luns["l"].naa.clone();
        let file = format!("/c/pool/{naa}.lun");
        assert!(node.disk().hang_file(Path::new(&file)));
        Self {
            world,
            node,
            controller,
            engine,
            set,
        }
    }

    fn states(&self) -> Vec<String> {
        let all = states(&self.world, &self.node, &self.controller);
        all.into_iter().map(|(_, state, _)| state).collect()
    }

    fn wait(&self, time: Duration) {
        wait(&self.world, &self.node, time);
    }

    /// Whether that ends in time.
    fn ends(&self, work: impl Future<Output = ()> + 'static) -> bool {
        self.world.block_on(&self.node, SOON, work).is_ok()
    }
}

#[test]
fn a_lun_whose_file_hangs_holds_up_no_other_no_change_and_no_stop() {
    let bench = Hanging::new(19);
    bench.wait(Duration::from_secs(25));
    assert_eq!(bench.states(), ["offline", "online"]);
    // As long as it hangs, and more often than there are threads.
    bench.wait(Duration::from_secs(400));
    assert_eq!(bench.node.disk().in_flight(), 1);
    let mut set = bench.set.clone();
    set.lun.push(manifest::objects::LunSpec::new(
        "n",
        Size::from_bytes(1 << 20).unwrap(),
    ));
    let asked = Rc::clone(&bench.controller);
    let applied = async move { drop(asked.edit(&apply(set), FORCED).await.unwrap()) };
    assert!(bench.ends(applied), "the change hangs");
    assert_eq!(bench.states(), ["offline", "online", "online"]);
    bench.node.disk().release();
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.states(), ["online", "online", "online"]);
}

#[test]
fn a_stop_waits_for_no_file_that_hangs_and_for_no_change_that_does() {
    for turn_hangs in [false, true] {
        let bench = Hanging::new(20);
        bench.wait(Duration::from_secs(25));
        if turn_hangs {
            let engine = bench.engine.clone();
            bench.node.core(0).spawn(Box::pin(async move {
                let _turn = engine.0.turn.lock().await;
                std::future::pending::<()>().await;
            }));
            let (asked, set) = (Rc::clone(&bench.controller), lab());
            bench.node.core(0).spawn(Box::pin(async move {
                let prune = true;
                drop(asked.edit(&Edit::Apply { set, prune }, FORCED).await);
            }));
            bench.wait(Duration::from_secs(1));
        }
        let stopping = Rc::clone(&bench.controller);
        let stops = async move { stopping.stop().await };
        assert!(bench.ends(stops), "{turn_hangs}");
    }
}

#[test]
fn a_file_that_hangs_at_the_start_leaves_its_lun_offline_until_it_answers() {
    let world = World::new(21, WorldConfig::default());
    let node = world.node("a");
    let controller = begin(&world, &node);
    edit(&world, &node, &controller, apply(lab())).unwrap();
    let naa = controller.objects().luns["l"].naa.clone();
    drop(controller);
    node.crash();
    let file = format!("/c/pool/{naa}.lun");
    assert!(node.disk().hang_file(Path::new(&file)));
    node.restart();
    let begun = world.block_on(&node, SOON, start(node.core(0)));
    let controller = begun.expect("the start hangs").unwrap();
    let lun = |world: &World| {
        let asked = Rc::clone(&controller);
        let luns = world.block_on(&node, LIMIT, async move { asked.luns(false).await });
        luns.unwrap().remove(0)
    };
    let (state, reason) = (lun(&world).state, lun(&world).reason.unwrap_or_default());
    assert_eq!(state, "offline");
    assert!(reason.contains("has not answered for 30 s"), "{reason}");
    node.disk().release();
    wait(&world, &node, Duration::from_secs(15));
    assert_eq!(lun(&world).state, "online");
}

/// Openings write before hosts do: a journal its rings, and a LUN that was closed in order the
/// superblock of its checksums.
#[test]
fn luns_on_a_full_file_system_that_copies_on_write_are_online_soon_after_there_is_room() {
    for kind in ["journal", ".checksums"] {
        let world = World::new(17, WorldConfig::default());
        let node = world.node("a");
        let controller = begin_journaled(&world, &node);
        let mut set = lab();
        set.lun[0].storage.integrity = Some(true);
        edit(&world, &node, &controller, apply(set)).unwrap();
        let mut files = left_of_luns(&world, &node);
        files.push("../journal".to_owned());
        let file = files.iter().find(|name| name.ends_with(kind)).unwrap();
        assert!(node.disk().copy_on_write(&Path::new("/c/pool").join(file)));
        let stopping = Rc::clone(&controller);
        let stopped = async move { stopping.stop().await };
        world.block_on(&node, LIMIT, stopped).unwrap();
        drop(controller);
        node.crash();
        node.restart();
        node.disk().set_capacity(0);
        let controller = begin_journaled(&world, &node);
        wait(&world, &node, Duration::from_secs(15));
        let lun = || {
            let asked = Rc::clone(&controller);
            let luns = world.block_on(&node, LIMIT, async move { asked.luns(false).await });
            luns.unwrap().remove(0)
        };
        let (state, reason) = (lun().state, lun().reason.unwrap_or_default());
        assert_eq!(state, "offline", "{kind}");
        assert!(reason.contains("make room"), "{kind}: {reason}");
        node.disk().set_capacity(1 << 40);
        // It is opened again after 10 s, or 20 times what opening it took: a disk may be slow.
        wait(&world, &node, Duration::from_secs(60));
        assert_eq!(lun().state, "online", "{kind}: {:?}", lun().reason);
    }
}

/// A number below `limit`, the next one of a story's seed (xorshift).
pub(crate) fn below(seed: &mut u64, limit: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 11) % limit
}
