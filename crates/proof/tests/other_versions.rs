//! What another version of the program has written in a pool: it is refused by name, and nothing is
//! written over it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

use backends::{Provisioning, create_file};
use env::sim::{FaultPlan, Node, World, WorldConfig};
use env::{CoreHandle, Durable};
use proof::forge::put;
use proof::plain_pool::{self, JOURNAL, NUMBER};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, Buf, ByteCount, Lba, LbaRange};
use volume::{Done, Durability, Io, Lane, Op, OpenError, Origin, Volume};
use write_back::{Journal, Mode, VolumeId, WriteBack};

const DAY: Duration = Duration::from_secs(86_400);
const BACKING: &str = "/pool/volume";
const HISTORY: &str = "/pool/volume.changes";
const BLOCK: usize = 4096;

struct Open {
    journal: Arc<Journal>,
    lane: Rc<dyn Lane>,
}

async fn open(core: &CoreHandle) -> Result<Open, OpenError> {
    let journal = Journal::open(core, Path::new(JOURNAL), NUMBER).await?;
    let (backing, fences) = plain_pool::open_thin(core, Path::new(BACKING)).await;
    let (id, with) = (VolumeId(100), (fences, Mode::WriteBack));
    let volume = WriteBack::with_history(Arc::clone(&journal), id, backing, with, HISTORY.into());
    match volume.open(core).await {
        Ok(lane) => Ok(Open { journal, lane }),
        Err(error) => {
            journal.close(core).await;
            Err(error)
        }
    }
}

impl Open {
    async fn write(&self, lba: u64) {
        let op = Op::Write {
            range: LbaRange::new(Lba(lba), BlockCount(1)).unwrap(),
            data: Buf::copy_of(&[7; BLOCK]),
            durability: Durability::Stable,
        };
        let written = self.lane.submit(Io::new(op, Origin::default())).await;
        assert!(matches!(written, Ok(Done::Logged)), "{written:?}");
    }
}

/// A pool whose journal holds writes that were acknowledged and are not destaged, and whose history
/// has been written.
fn made(world: &World) -> Node {
    let node = world.node("node");
    let core = node.core(0);
    let make = async move {
        plain_pool::make(&core, 1, 1 << 30).await;
        let made = create_file(
            &core,
            Path::new(BACKING),
            ByteCount(8 << 20),
            Provisioning::Thin,
        );
        made.await.unwrap();
        let pool = open(&core).await.unwrap();
        pool.write(0).await;
        pool.journal.drain(&core).await;
        for lba in 1..4 {
            pool.write(lba).await;
        }
    };
    world.block_on(&node, DAY, make).unwrap();
    node.crash();
    node
}

fn image(node: &Node, path: &str) -> Vec<u8> {
    node.disk().durable(Path::new(path)).unwrap()
}

/// Every block of a file that begins so.
fn blocks(image: &[u8], magic: &[u8]) -> Vec<usize> {
    let blocks = image.chunks(BLOCK).enumerate();
    let found = blocks.filter(|(_, block)| block.starts_with(magic));
    found.map(|(number, _)| number * BLOCK).collect()
}

/// What is said when this block of a file is of a later version; nothing of the file may have been
/// written then.
fn refused(world: &World, node: &Node, (path, at): (&'static str, usize)) -> OpenError {
    let whole = image(node, path);
    let mut later = whole.clone();
    later[at + 12] = 3;
    formats::seal(&mut later[at..at + BLOCK]);
    let before = later.clone();
    node.restart();
    let core = node.core(0);
    let opens = async move {
        put(&core, Path::new(path), &later, Durable::Yes).await;
        let opened = open(&core).await;
        opened.err().expect("it is of a later version")
    };
    let error = world.block_on(node, DAY, opens).unwrap();
    node.crash();
    assert!(image(node, path) == before, "{path} was written over");
    node.restart();
    let core = node.core(0);
    let again = async move { put(&core, Path::new(path), &whole, Durable::Yes).await };
    world.block_on(node, DAY, again).unwrap();
    node.crash();
    error
}

#[test]
fn any_block_of_a_journal_or_history_of_a_later_version_is_refused_by_name_and_not_written_over() {
    let config = WorldConfig {
        faults: FaultPlan::none(),
        ..WorldConfig::default()
    };
    let world = World::new(5, config);
    let node = made(&world);
    let journal = image(&node, JOURNAL);
    let mut all = Vec::new();
    for (magic, least) in [
        (b"CWJOURNL", 2),
        (b"CWJCHECK", 2),
        // The last one is what no other batch says anything of: it would be taken for a torn end.
        (b"CWJBATCH", 3),
    ] {
        let found = blocks(&journal, magic);
        assert!(found.len() >= least, "{found:?}");
        all.extend(found.into_iter().map(|at| (JOURNAL, at)));
    }
    let history = blocks(&image(&node, HISTORY), b"CWJHISTO");
    assert!(history.len() >= 2, "{history:?}");
    all.extend(history.into_iter().map(|at| (HISTORY, at)));
    for place in all {
        let error = refused(&world, &node, place);
        assert!(error.cause.contains("version 3"), "{place:?}: {error:?}");
        let known = ["reads version 1", "reads version 2"].map(|it| error.cause.contains(it));
        assert!(known.contains(&true), "{error:?}");
        assert!(error.next_step.contains("the version"), "{error:?}");
    }
    // And with everything as it was before, all of it is there.
    node.restart();
    let core = node.core(0);
    let opens = async move { open(&core).await.map(|pool| pool.journal.replayed()) };
    let replayed = world.block_on(&node, DAY, opens).unwrap();
    assert!(replayed.unwrap() >= 3);
}

#[test]
fn a_page_of_a_history_of_a_later_version_is_reported_and_the_log_keeps_what_it_would_say() {
    let config = WorldConfig {
        faults: FaultPlan::none(),
        ..WorldConfig::default()
    };
    let world = World::new(6, config);
    let node = made(&world);
    let mut history = image(&node, HISTORY);
    let pages = blocks(&history, b"CWJPARTS");
    assert!(!pages.is_empty());
    for at in pages {
        history[at + 12] = 2;
        formats::seal(&mut history[at..at + BLOCK]);
    }
    let before = history.clone();
    node.restart();
    let core = node.core(0);
    let inspections = async move {
        put(&core, Path::new(HISTORY), &history, Durable::Yes).await;
        let pool = open(&core).await.unwrap();
        let later = core.now().after(Duration::from_secs(60));
        core.sleep_until(later).await;
        pool.journal.status(&core).await
    };
    let status = world.block_on(&node, DAY, inspections).unwrap();
    let reported = format!("{status:?}");
    assert!(
        reported.contains("page 0 of it: it has version 2"),
        "{reported}"
    );
    node.crash();
    let after = image(&node, HISTORY);
    let pages = blocks(&after, b"CWJPARTS");
    for at in pages {
        assert!(
            after[at..at + BLOCK] == before[at..at + BLOCK],
            "written over"
        );
    }
}
