use super::{LIMIT, in_world};
use crate::contract::{self, insist, key, swap};
use crate::{Answer, Arbiter, LocalArbiter, TroubleKind};
use env::CoreId;
use env::real::{Runtime, RuntimeConfig};
use env::sim::{World, WorldConfig};
use replica::Revision;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

const DIR: &str = "/arbiter";

#[test]
fn a_file_keeps_the_contract() {
    let counts = in_world(1, |core, _| {
        Box::pin(async move {
            core.files().create_dir(Path::new(DIR)).await.unwrap();
            let local = LocalArbiter::open(&core, Path::new(DIR)).await;
            let local: Rc<dyn Arbiter> = Rc::new(local.unwrap());
            let rivals = [(); 4].map(|()| Rc::clone(&local));
            contract::holds(&core, &rivals, "t", Duration::from_secs(60)).await
        })
    });
    assert_eq!(counts.unknown, 0, "{counts:?}");
    assert!(counts.swapped > 40 && counts.refused > 40, "{counts:?}");
}

#[test]
fn what_was_answered_outlives_any_power_cut() {
    for seed in 0..60 {
        let world = World::new(seed, WorldConfig::default());
        let node = world.node("a");
        let make = {
            let core = node.core(0);
            async move { env::durable::make_dir(&*core.files(), Path::new(DIR)).await }
        };
        world.block_on(&node, LIMIT, make).unwrap().unwrap();
        let known = Rc::new(std::cell::Cell::new(Revision(0)));
        for cut in 0..4 {
            let (core, shared) = (node.core(0), Rc::clone(&known));
            node.core(0).spawn(Box::pin(async move {
                let local = LocalArbiter::open(&core, Path::new(DIR)).await.unwrap();
                for number in 0..1000 {
                    let text = format!("{cut}.{number}");
                    let swap = swap(&key("t", "a"), shared.get(), text);
                    match insist(&core, &local, vec![swap]).await.pop() {
                        Some(Answer::Swapped(revision)) => shared.set(revision),
                        answer => panic!("{answer:?}"),
                    }
                }
            }));
            world.run_for(Duration::from_micros(3000 + seed * 97));
            node.crash();
            node.restart();
            let core = node.core(0);
            let read = async move {
                let local = LocalArbiter::open(&core, Path::new(DIR)).await.unwrap();
                let changes = local.changes(&crate::Key::new("t").unwrap(), Revision(0));
                changes.await.unwrap()
            };
            let is = world.block_on(&node, LIMIT, read).unwrap();
            let is = is.records.first().map_or(Revision(0), |it| it.1.0);
            let next = Revision(known.get().0.max(1) + 1);
            assert!(is == known.get() || is == next, "{is:?} after {known:?}");
            known.set(is);
        }
        assert!(known.get() > Revision(4), "seed {seed}: {known:?}");
    }
}

#[test]
fn a_damaged_file_is_refused() {
    in_world(3, |core, _| {
        Box::pin(async move {
            let dir = Path::new(DIR);
            core.files().create_dir(dir).await.unwrap();
            let local = LocalArbiter::open(&core, dir).await.unwrap();
            let made = swap(&key("t", "a"), Revision(0), "a");
            insist(&core, &local, vec![made]).await;
            drop(local);
            let file = dir.join("records.json");
            let text = env::durable::read_file(&*core.files(), &file, 1 << 20)
                .await
                .unwrap();
            let damaged = [&text[..text.len() - 1], b" "].concat();
            env::durable::replace_file(&*core.files(), &file, &damaged)
                .await
                .unwrap();
            let local = LocalArbiter::open(&core, dir).await.unwrap();
            let trouble = contract::trouble(&local, &key("t", "a")).await;
            assert_eq!(trouble.kind, TroubleKind::File);
            assert!(trouble.cause.contains("checksum"), "{trouble}");
        })
    });
}

#[test]
fn a_second_one_on_the_same_file_is_refused() {
    let dir = std::env::temp_dir().join(format!("causeway-arbiter-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    // A runtime holds locks as a process does.
    let other = Runtime::start(&RuntimeConfig::default()).unwrap();
    let at = dir.clone();
    other.run(CoreId(0), move |core| {
        Box::pin(async move {
            let first = LocalArbiter::open(&core, &at).await.unwrap();
            core.spawn(Box::pin(async move {
                let _holds = first;
                std::future::pending::<()>().await;
            }));
        })
    });
    let runtime = Runtime::start(&RuntimeConfig::default()).unwrap();
    let at = dir.clone();
    let trouble = runtime.run(CoreId(0), move |core| {
        Box::pin(async move { LocalArbiter::open(&core, &at).await.err().unwrap() })
    });
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(trouble.cause.contains("another process"), "{trouble}");
}
