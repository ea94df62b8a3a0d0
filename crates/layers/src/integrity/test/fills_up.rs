//! A disk that has room for a part of the map only: whatever page is the first without, nothing is
//! lost, and it ends by itself.

use super::disk::{
    DATA, Findings, KINDS, Kind, ask, flush, make, on_file, open_raw, open_with, range, raw_write,
    read, write,
};
use crate::integrity::{Blank, Finding, Integrity, IntegrityLane};
use env::CoreHandle;
use env::sim::{Node, World, WorldConfig};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::Buf;
use volume::{Durability, IoError, Op};

/// Blocks with a checksum each: five pages of them.
const SPACE: u64 = 5 * 1008;
const ROOM: u64 = 1 << 40;
const MINUTE: Duration = Duration::from_secs(60);
/// Blocks on three pages.
const WRITTEN: [u64; 3] = [1, 1009, 4000];

async fn sleep(core: &CoreHandle, seconds: u64) {
    let until = core.now().after(Duration::from_secs(seconds));
    core.sleep_until(until).await;
}

fn contents(kind: Kind, version: u8) -> Vec<u8> {
    vec![version; usize::try_from(kind.bytes()).unwrap()]
}

/// A map of blocks that are all on the disk.
async fn made(core: &CoreHandle, kind: Kind) {
    make(core, &on_file(kind, SPACE * kind.unit()), Blank::Zeroes).await;
    for block in 0..SPACE {
        raw_write(core, DATA, block * kind.bytes(), &contents(kind, 0)).await;
    }
}

async fn opened(
    core: &CoreHandle,
    kind: Kind,
    covered: bool,
) -> (Arc<Integrity>, Rc<IntegrityLane>, Findings) {
    let below = on_file(kind, SPACE * kind.unit());
    let (volume, findings) = open_with(core, &below, |options| options.covered = covered).await;
    let lane = volume.lane(core).await.unwrap();
    (volume, lane, findings)
}

/// What was reported but that there is no room, or room again.
fn damage(findings: &Findings) -> usize {
    let findings = findings.lock().unwrap();
    let is_damage = |it: &&Finding| !matches!(it, Finding::MapFull { .. } | Finding::MapHasRoom);
    findings.iter().filter(is_damage).count()
}

/// Room for so many pages more than are used, while the map is written again and again.
async fn fill(
    core: &CoreHandle,
    node: &Node,
    kind: Kind,
    pages: u64,
) -> (Arc<Integrity>, Rc<IntegrityLane>, Findings) {
    let at = |block: u64| range(block * kind.unit(), kind.unit());
    made(core, kind).await;
    let (volume, lane, findings) = opened(core, kind, true).await;
    write(&lane, at(1), &contents(kind, 1)).await.unwrap();
    flush(&lane).await;
    // Until there is nothing to write any more.
    sleep(core, 10).await;
    let used = core.files().space(Path::new("/pool")).await.unwrap().used;
    node.disk().set_capacity(used + pages * 4096);
    for version in 2..5 {
        for block in WRITTEN {
            write(&lane, at(block), &contents(kind, version))
                .await
                .unwrap();
        }
        let flushed = ask(&lane, Op::Flush).await.err();
        assert!(
            [None, Some(IoError::SpaceExhausted)].contains(&flushed),
            "{flushed:?}"
        );
        sleep(core, 3).await;
        for block in WRITTEN {
            assert_eq!(read(&lane, at(block)).await, Ok(contents(kind, version)));
        }
    }
    assert_eq!(damage(&findings), 0);
    (volume, lane, findings)
}

async fn ends_by_itself(core: CoreHandle, node: Node, kind: Kind, pages: u64) -> bool {
    let at = |block: u64| range(block * kind.unit(), kind.unit());
    let (volume, lane, findings) = fill(&core, &node, kind, pages).await;
    let was_full = !findings.lock().unwrap().is_empty();
    node.disk().set_capacity(ROOM);
    // Nobody writes.
    sleep(&core, 10).await;
    let rounds = volume.counts().rounds;
    sleep(&core, 10).await;
    assert_eq!(volume.counts().rounds, rounds, "nothing is left to write");
    let room = |it: &Finding| matches!(it, Finding::MapHasRoom);
    let reported = findings.lock().unwrap().last().is_none_or(room);
    assert!(reported, "{pages} pages: {findings:?}");
    flush(&lane).await;
    write(&lane, at(2), &contents(kind, 9)).await.unwrap();
    flush(&lane).await;
    drop(lane);
    volume.close(&core).await.unwrap();
    drop(volume);
    let (_volume, lane, findings) = opened(&core, kind, true).await;
    for (block, version) in [(1, 4), (2, 9), (3, 0), (1009, 4), (4000, 4)] {
        assert_eq!(read(&lane, at(block)).await, Ok(contents(kind, version)));
    }
    assert_eq!(damage(&findings), 0, "{pages} pages: {findings:?}");
    was_full
}

#[test]
fn whatever_page_of_the_map_is_the_first_without_room_all_is_written_when_there_is_some() {
    let (mut full, mut roomy) = (0, 0);
    for pages in 0..16 {
        for (seed, kind) in (0..).zip(KINDS) {
            let world = World::new(100 + seed, WorldConfig::default());
            let node = world.node("node");
            let done = ends_by_itself(node.core(0), node.clone(), kind, pages);
            let was_full = world.block_on(&node, MINUTE * 10, done).unwrap();
            *(if was_full { &mut full } else { &mut roomy }) += 1;
        }
    }
    assert!(full > 6 && roomy > 6, "{full} were full, {roomy} not");
}

/// The same with a crash in that time: what was flushed before is whole, and what was not is
/// unverified and can be read.
#[test]
fn whatever_page_of_the_map_is_the_first_without_room_a_crash_takes_nothing_that_was_stable() {
    for pages in 0..16 {
        for (seed, kind) in (0..).zip(KINDS) {
            let world = World::new(200 + seed, WorldConfig::default());
            let node = world.node("node");
            let (core, on) = (node.core(0), node.clone());
            let filled = async move { drop(fill(&core, &on, kind, pages).await) };
            world.block_on(&node, MINUTE * 10, filled).unwrap();
            node.crash();
            node.restart();
            node.disk().set_capacity(ROOM);
            let core = node.core(0);
            let served = async move {
                let at = |block: u64| range(block * kind.unit(), kind.unit());
                drop(open_raw(&core, DATA).await);
                let (volume, lane, findings) = opened(&core, kind, true).await;
                let per = 4096 / kind.bytes();
                let unverified = WRITTEN.map(|block| block / per..block / per + 1);
                volume
                    .mark_unverified(&core, unverified.into_iter())
                    .await
                    .unwrap();
                volume.replayed();
                for block in [1, 1009, 4000, 3, 2500] {
                    assert!(read(&lane, at(block)).await.is_ok(), "{pages} pages");
                }
                flush(&lane).await;
                assert_eq!(damage(&findings), 0, "{pages} pages: {findings:?}");
                drop(lane);
                volume.close(&core).await.unwrap();
            };
            world.block_on(&node, MINUTE * 10, served).unwrap();
        }
    }
}

#[test]
fn a_map_that_was_just_made_opens_without_room() {
    for kind in KINDS {
        let world = World::new(7, WorldConfig::default());
        let node = world.node("node");
        let (core, on) = (node.core(0), node.clone());
        let done = async move {
            made(&core, kind).await;
            on.disk().set_capacity(0);
            let (_volume, lane, _findings) = opened(&core, kind, true).await;
            let at = range(0, kind.unit());
            assert_eq!(read(&lane, at).await, Ok(contents(kind, 0)));
        };
        world.block_on(&node, MINUTE, done).unwrap();
    }
}

/// Without a journal above that names it after a crash, a stable write waits for its checksum.
#[test]
fn a_stable_write_without_room_for_its_checksum_is_refused_for_want_of_space() {
    let world = World::new(8, WorldConfig::default());
    let node = world.node("node");
    let (core, on) = (node.core(0), node.clone());
    let done = async move {
        let kind = KINDS[2];
        made(&core, kind).await;
        let (_volume, lane, _findings) = opened(&core, kind, false).await;
        on.disk().set_capacity(0);
        let stable = Op::Write {
            range: range(0, kind.unit()),
            data: Buf::copy_of(&contents(kind, 3)),
            durability: Durability::Stable,
        };
        let refused = ask(&lane, stable).await.err();
        assert_eq!(refused, Some(IoError::SpaceExhausted));
    };
    world.block_on(&node, MINUTE, done).unwrap();
}
