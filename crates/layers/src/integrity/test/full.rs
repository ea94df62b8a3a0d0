//! A disk without room for the map: nothing is broken, and it ends by itself.

use super::disk::{
    DATA, Findings, KINDS, Kind, ask, flush, make, on_file, open_raw, open_with, range, raw_write,
    read, write,
};
use crate::integrity::{Blank, Finding, Integrity, IntegrityLane};
use env::CoreHandle;
use env::sim::{Node, World, WorldConfig};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volume::{IoError, Op};

/// Blocks with a checksum each: five pages of them.
const SPACE: u64 = 5 * 1008;
const ROOM: u64 = 1 << 40;
const MINUTE: Duration = Duration::from_secs(60);

async fn sleep(core: &CoreHandle, seconds: u64) {
    let until = core.now().after(Duration::from_secs(seconds));
    core.sleep_until(until).await;
}

fn contents(kind: Kind, version: u8) -> Vec<u8> {
    vec![version; usize::try_from(kind.bytes()).unwrap()]
}

async fn opened(core: &CoreHandle, kind: Kind) -> (Arc<Integrity>, Rc<IntegrityLane>, Findings) {
    let below = on_file(kind, SPACE * kind.unit());
    let (volume, findings) = open_with(core, &below, |options| {
        options.covered = true;
    })
    .await;
    let lane = volume.lane(core).await.unwrap();
    (volume, lane, findings)
}

fn reported(findings: &Findings) -> Vec<&'static str> {
    let name = |finding: &Finding| match finding {
        Finding::MapFull { .. } => "full",
        Finding::MapHasRoom => "room",
        Finding::MapBroken { .. } => "broken",
        Finding::Mismatch(_)
        | Finding::Repaired(_)
        | Finding::Rewritten(_)
        | Finding::MapDamaged { .. }
        | Finding::MapWeakened { .. } => "damage",
    };
    findings.lock().unwrap().iter().map(name).collect()
}

/// Blocks of each page are written while there is no room for any of them; what becomes of the
/// writer then is the caller's.
async fn fill(core: &CoreHandle, node: &Node, kind: Kind) -> (Rc<IntegrityLane>, Arc<Integrity>) {
    let unit = kind.unit();
    let at = |block: u64| range(block * unit, unit);
    let below = on_file(kind, SPACE * unit);
    make(core, &below, Blank::Zeroes).await;
    // The data has its room.
    for block in 0..SPACE {
        raw_write(core, DATA, block * kind.bytes(), &contents(kind, 0)).await;
    }
    let (volume, lane, findings) = opened(core, kind).await;
    write(&lane, at(1), &contents(kind, 1)).await.unwrap();
    flush(&lane).await;
    node.disk().set_capacity(0);
    for version in 2..5 {
        for block in [1, 1009, 4000] {
            let written = write(&lane, at(block), &contents(kind, version)).await;
            assert_eq!(written, Ok(()), "data has its room, and checksums are kept");
        }
        for _ in 0..2 {
            let flushed = ask(&lane, Op::Flush).await;
            assert_eq!(flushed.err(), Some(IoError::SpaceExhausted));
        }
        sleep(core, 3).await;
        assert_eq!(
            reported(&findings),
            ["full"],
            "once, however often it is tried"
        );
        for block in [1, 1009, 4000] {
            assert_eq!(read(&lane, at(block)).await, Ok(contents(kind, version)));
        }
    }
    (lane, volume)
}

async fn ends_by_itself(core: CoreHandle, node: Node, kind: Kind) {
    let (lane, volume) = fill(&core, &node, kind).await;
    let at = |block: u64| range(block * kind.unit(), kind.unit());
    node.disk().set_capacity(ROOM);
    flush(&lane).await;
    write(&lane, at(2), &contents(kind, 9)).await.unwrap();
    drop(lane);
    volume.close(&core).await.unwrap();
    drop(volume);
    let (_volume, lane, findings) = opened(&core, kind).await;
    for (block, version) in [(1, 4), (2, 9), (3, 0), (1009, 4), (4000, 4)] {
        assert_eq!(read(&lane, at(block)).await, Ok(contents(kind, version)));
    }
    assert_eq!(reported(&findings), Vec::<&str>::new());
}

#[test]
fn a_map_without_room_is_written_when_there_is_room_again() {
    for kind in KINDS {
        let world = World::new(3, WorldConfig::default());
        let node = world.node("node");
        let done = ends_by_itself(node.core(0), node.clone(), kind);
        world.block_on(&node, MINUTE * 10, done).unwrap();
    }
}

#[test]
fn nobody_needs_to_write_for_it_to_end() {
    let world = World::new(4, WorldConfig::default());
    let node = world.node("node");
    let (core, on) = (node.core(0), node.clone());
    let done = async move {
        let (_lane, volume) = fill(&core, &on, KINDS[2]).await;
        on.disk().set_capacity(ROOM);
        // Pages, those above them, and the superblock, each a second later.
        sleep(&core, 10).await;
        let rounds = volume.counts().rounds;
        sleep(&core, 10).await;
        assert_eq!(volume.counts().rounds, rounds, "nothing is left to write");
        assert!(rounds > 1);
    };
    world.block_on(&node, MINUTE * 10, done).unwrap();
}

/// A crash in that time, and an opening while there still is no room.
#[test]
fn it_opens_without_room_and_serves() {
    for seed in 0..40 {
        for kind in KINDS {
            let world = World::new(seed, WorldConfig::default());
            let node = world.node("node");
            let (core, on) = (node.core(0), node.clone());
            let filled = async move {
                drop(fill(&core, &on, kind).await);
            };
            world.block_on(&node, MINUTE * 10, filled).unwrap();
            node.crash();
            node.restart();
            let (core, on) = (node.core(0), node.clone());
            let served = async move {
                let at = |block: u64| range(block * kind.unit(), kind.unit());
                drop(open_raw(&core, DATA).await);
                let (volume, lane, findings) = opened(&core, kind).await;
                // What no flush has covered is unverified, as a journal says.
                let per = 4096 / kind.bytes();
                let unverified = [1, 1009, 4000].map(|block| block / per..block / per + 1);
                volume
                    .mark_unverified(&core, unverified.into_iter())
                    .await
                    .unwrap();
                volume.replayed();
                for block in [1, 1009, 4000, 3] {
                    assert!(read(&lane, at(block)).await.is_ok(), "seed {seed}");
                }
                assert_eq!(
                    ask(&lane, Op::Flush).await.err(),
                    Some(IoError::SpaceExhausted),
                    "seed {seed}"
                );
                on.disk().set_capacity(ROOM);
                sleep(&core, 3).await;
                assert_eq!(reported(&findings), ["full", "room"], "seed {seed}");
                write(&lane, at(4000), &contents(kind, 7)).await.unwrap();
                flush(&lane).await;
                assert_eq!(read(&lane, at(4000)).await, Ok(contents(kind, 7)));
                drop(lane);
                volume.close(&core).await.unwrap();
            };
            world.block_on(&node, MINUTE * 10, served).unwrap();
        }
    }
}
