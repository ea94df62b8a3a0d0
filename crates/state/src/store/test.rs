use super::*;
use env::sim::{Fault, FaultPlan, Node, World, WorldConfig};
use manifest::objects::{Chap, Host, MutualChap, Target};
use std::time::Duration;

const DIR: &str = "/state";

fn world(seed: u64) -> World {
    World::new(seed, WorldConfig::default())
}

fn with_target(objects: &Objects, name: &str) -> Objects {
    let mut objects = objects.clone();
    let id = objects.new_id();
    let target = Target {
        id,
        relative_port: 1,
        iqn: manifest::name::derived_iqn(name),
        portal_group: "default".to_owned(),
        redirect: None,
        maintenance_grace_seconds: 30,
        maintenance: false,
    };
    objects.targets.insert(name.to_owned(), target);
    objects
}

fn with_host(objects: &Objects, secret: &str) -> Objects {
    let mut objects = objects.clone();
    let chap = Chap {
        user: "u".to_owned(),
        secret: Secret::new(secret.as_bytes().to_vec()),
        mutual: Some(MutualChap {
            user: "m".to_owned(),
            secret: Secret::new(format!("mutual {secret}").into_bytes()),
        }),
    };
    let id = objects.new_id();
    let iqn = vec!["*".to_owned()];
    objects.hosts.insert(
        "h".to_owned(),
        Host {
            id,
            iqn,
            chap: Some(chap),
            bytes_in_flight_max: None,
        },
    );
    objects
}

fn block_on<T: 'static>(
    world: &World,
    node: &Node,
    make: impl FnOnce(CoreHandle) -> env::LocalFuture<T>,
) -> T {
    let core = node.core(0);
    let work = make(Rc::clone(&core));
    world
        .block_on(node, Duration::from_secs(3600), work)
        .unwrap()
}

fn open(world: &World, node: &Node) -> Opened {
    block_on(world, node, |core| {
        Box::pin(async move { Store::open(&core, Path::new(DIR)).await })
    })
    .unwrap()
}

fn save(
    world: &World,
    node: &Node,
    opened: Opened,
    objects: &Objects,
) -> (Opened, Result<u64, Problem>) {
    let objects = objects.clone();
    let mut opened = opened;
    block_on(world, node, |core| {
        Box::pin(async move {
            let saved = opened.store.save(&objects, core.wall_clock(), false).await;
            opened.objects = objects;
            (opened, saved)
        })
    })
}

fn restart(node: &Node) {
    node.crash();
    node.restart();
}

#[test]
fn what_was_saved_is_there_after_a_power_cut_with_its_secrets() {
    let world = world(1);
    let node = world.node("a");
    let first = open(&world, &node);
    let id = first.store.node_id().to_owned();
    assert_eq!((first.store.generation(), id.len()), (1, 32));
    let objects = with_host(&with_target(&first.objects, "t"), "a long secret");
    let (opened, saved) = save(&world, &node, first, &objects);
    assert_eq!(saved, Ok(2));
    drop(opened);
    restart(&node);
    let again = open(&world, &node);
    assert_eq!(again.store.node_id(), id);
    assert_eq!(again.store.damage(), None);
    assert_eq!(again.objects, objects);
}

#[test]
fn objects_files_never_hold_a_secret() {
    let world = world(2);
    let node = world.node("a");
    let objects = with_host(&Objects::default(), "a long secret");
    let first = open(&world, &node);
    let (_opened, saved) = save(&world, &node, first, &objects);
    let number = saved.unwrap();
    let path = PathBuf::from(DIR).join(format!("objects-{number:010}.json"));
    let text = String::from_utf8(node.disk().durable(&path).unwrap()).unwrap();
    assert!(text.contains("\"mutual\""), "{text}");
    assert!(!text.contains("a long secret"), "{text}");
}

#[test]
fn a_power_cut_at_any_moment_of_a_save_leaves_the_old_set_or_the_new_one() {
    cut_at_any_moment(false);
}

#[test]
fn a_power_cut_at_any_moment_of_a_save_in_spare_room_leaves_the_old_set_or_the_new_one() {
    cut_at_any_moment(true);
}

/// Makes the spare files, and leaves the disk no room but them.
fn fill_disk(world: &World, node: &Node, opened: Opened) -> Opened {
    let opened = block_on(world, node, |_| {
        Box::pin(async move {
            opened.store.keep_spares().await.unwrap();
            opened
        })
    });
    node.disk().set_capacity(node.disk().used_bytes());
    opened
}

/// Cuts the power after every single step of the world during a save that changes objects and
/// secrets.
fn cut_at_any_moment(full: bool) {
    let (mut old_seen, mut new_seen) = (0, 0);
    for steps in 0.. {
        let world = world(3);
        let node = world.node("a");
        let first = open(&world, &node);
        let old = with_host(&with_target(&first.objects, "old"), "the old secret");
        let (opened, saved) = save(&world, &node, first, &old);
        saved.unwrap();
        let opened = match full {
            true => fill_disk(&world, &node, opened),
            false => opened,
        };
        let new = with_host(&with_target(&old, "new"), "the new secret");
        let core = node.core(0);
        let (mut store, wanted) = (opened.store, new.clone());
        let done = Rc::new(std::cell::Cell::new(false));
        let saved = Rc::clone(&done);
        let on = Rc::clone(&core);
        core.spawn(Box::pin(async move {
            store.save(&wanted, on.wall_clock(), full).await.unwrap();
            saved.set(true);
        }));
        let mut moved = true;
        for _ in 0..steps {
            moved = moved && world.step();
        }
        let acknowledged = done.get();
        drop(core);
        restart(&node);
        node.disk().set_capacity(1 << 30);
        let again = open(&world, &node);
        assert_eq!(again.store.damage(), None, "after {steps} steps");
        let is_new = again.objects == new;
        assert!(
            is_new || again.objects == old,
            "after {steps} steps: {:?}",
            again.objects
        );
        assert!(is_new || !acknowledged, "after {steps} steps");
        old_seen += u32::from(!is_new);
        new_seen += u32::from(is_new);
        // It can go on from either.
        let next = with_target(&again.objects, "next");
        let (_, saved) = save(&world, &node, again, &next);
        saved.unwrap();
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
fn changes_that_make_room_are_stored_on_a_full_disk_as_often_as_there_are_spare_files() {
    let world = World::new(
        8,
        WorldConfig {
            faults: FaultPlan::none(),
            ..WorldConfig::default()
        },
    );
    let node = world.node("a");
    let first = open(&world, &node);
    let mut opened = fill_disk(&world, &node, first);
    let mut objects = with_target(&opened.objects, "t");
    let (next, refused) = save(&world, &node, opened, &objects);
    assert_eq!(refused.unwrap_err().code, Code::StateNotSaved);
    opened = next;
    for number in 0..8 {
        objects = with_target(&objects, &format!("t{number}"));
        let wanted = objects.clone();
        opened = block_on(&world, &node, |core| {
            Box::pin(async move {
                let saved = opened.store.save(&wanted, core.wall_clock(), true).await;
                assert!(saved.is_ok(), "{number}: {saved:?}");
                opened
            })
        });
        // Whoever shares the disk takes what became free.
        node.disk().set_capacity(node.disk().used_bytes());
        drop(opened);
        restart(&node);
        opened = open(&world, &node);
        assert_eq!(opened.objects, objects);
    }
    let wanted = with_target(&objects, "one more");
    opened = block_on(&world, &node, |core| {
        Box::pin(async move {
            let refused = opened.store.save(&wanted, core.wall_clock(), true).await;
            assert_eq!(refused.unwrap_err().code, Code::StateNotSaved);
            assert!(opened.store.keep_spares().await.is_err());
            opened
        })
    });
    node.disk().set_capacity(1 << 30);
    drop(fill_disk(&world, &node, opened));
}

#[test]
fn twenty_generations_are_kept_and_secrets_as_long_as_one_needs_them() {
    let world = world(4);
    let node = world.node("a");
    let mut opened = open(&world, &node);
    let mut objects = with_host(&Objects::default(), "the first secret");
    for n in 0..30 {
        objects = with_target(&objects, &format!("t{n}"));
        if n == 15 {
            objects = with_host(&objects, "the second secret");
        }
        let (next, saved) = save(&world, &node, opened, &objects);
        saved.unwrap();
        opened = next;
    }
    let files = block_on(&world, &node, |core| {
        Box::pin(async move { core.files().list(Path::new(DIR)).await })
    })
    .unwrap();
    let names = || files.iter().map(|entry| entry.name.as_path());
    assert_eq!(numbers(names(), OBJECTS), (12..=31).collect::<Vec<u64>>());
    assert_eq!(numbers(names(), SECRETS), [2, 17]);
}

#[test]
fn a_damaged_generation_is_named_and_never_saved_over() {
    let world = world(5);
    let node = world.node("a");
    let first = open(&world, &node);
    let objects = with_target(&first.objects, "t");
    let (opened, saved) = save(&world, &node, first, &objects);
    saved.unwrap();
    drop(opened);
    restart(&node);
    let path = PathBuf::from(DIR).join("objects-0000000002.json");
    for _ in 0..3 {
        let _ = node.disk().rot(&path, 100);
    }
    let damaged = open(&world, &node);
    let problem = damaged.store.damage().unwrap().clone();
    assert_eq!(problem.code, Code::StateDamaged);
    assert!(
        problem.detail.contains("objects-0000000002.json"),
        "{problem}"
    );
    assert!(problem.hint.contains("move"), "{problem}");
    assert_eq!(damaged.objects, Objects::default());
    let (damaged, refused) = save(&world, &node, damaged, &objects);
    assert_eq!(refused.unwrap_err().code, Code::StateDamaged);
    drop(damaged);
    // As the hint says: without the damaged file the generation before is in force.
    block_on(&world, &node, |core| {
        Box::pin(async move {
            core.files()
                .rename(
                    Path::new("/state/objects-0000000002.json"),
                    Path::new("/kept"),
                )
                .await
        })
    })
    .unwrap();
    let back = open(&world, &node);
    assert_eq!((back.store.damage(), back.store.generation()), (None, 1));
}

#[test]
fn a_full_disk_leaves_the_old_generation_in_force_and_saving_works_again_later() {
    let world = world(7);
    let node = world.node("a");
    let first = open(&world, &node);
    let old = with_target(&first.objects, "old");
    let (opened, saved) = save(&world, &node, first, &old);
    saved.unwrap();
    node.disk().set_capacity(1);
    let new = with_target(&old, "new");
    let (opened, failed) = save(&world, &node, opened, &new);
    assert_eq!(failed.unwrap_err().code, Code::StateNotSaved);
    node.disk().set_capacity(1 << 30);
    let (opened, saved) = save(&world, &node, opened, &new);
    saved.unwrap();
    drop(opened);
    restart(&node);
    assert_eq!(open(&world, &node).objects, new);
}

/// Whatever calls fail: what was answered with success is there, and nothing else is made up.
#[test]
fn failing_disks_lose_no_generation_that_was_answered() {
    let mut failures = 0;
    for seed in 0..40 {
        let world = world(seed);
        let node = world.node("a");
        let mut opened = open(&world, &node);
        let mut good = opened.objects.clone();
        let mut tried = vec![good.clone()];
        let faults = FaultPlan::none()
            .with(Fault::FileWriteError, 200_000)
            .with(Fault::FileSyncError, 200_000);
        world.set_faults(faults);
        for n in 0..6 {
            let next = with_target(&good, &format!("t{n}"));
            let (after, saved) = save(&world, &node, opened, &next);
            opened = after;
            tried.push(next.clone());
            match saved {
                Ok(_) => {
                    good = next;
                    tried = vec![good.clone()];
                }
                Err(_) => failures += 1,
            }
        }
        drop(opened);
        world.set_faults(FaultPlan::none());
        restart(&node);
        let again = open(&world, &node);
        assert_eq!(again.store.damage(), None, "seed {seed}");
        assert!(tried.contains(&again.objects), "seed {seed}");
    }
    assert!(failures > 10, "{failures}");
}
