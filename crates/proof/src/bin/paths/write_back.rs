//! A WRITE of 4 KiB through write-back, from the issuer's submit to its answer: into a batch of the
//! ring's log, over a file in memory, stable, into the index, acknowledged. Nothing is destaged
//! meanwhile, and the volume behind it stands in memory.

use env::CoreHandle;
use env::sim::{FaultPlan, World, WorldConfig};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{Durability, Fences, Io, Op, Origin, Volume};
use write_back::{Journal, JournalSpec, Mode, VolumeId, WriteBack};

const BLOCKS: u64 = 1 << 16;

/// Writes that come together: they go into one batch, as they do at this depth.
const TOGETHER: usize = 32;

const JOURNAL: &str = "/pool/journal";
const NUMBER: [u8; 16] = [9; 16];

/// Room for all that is written, four times over: below a quarter of it nothing is destaged while
/// writes come.
const RING_BYTES: u64 = 256 << 20;

async fn opened(core: &CoreHandle) -> (Arc<Journal>, Arc<WriteBack>) {
    let files = core.files();
    let made = files.create_dir(Path::new("/pool")).await;
    made.expect("an empty disk has room");
    let spec = JournalSpec {
        path: JOURNAL.into(),
        bytes: RING_BYTES,
        rings: 1,
        pool: NUMBER,
        shard_bytes: 1 << 30,
    };
    let made = Journal::create(core, &spec).await;
    made.expect("an empty disk has room");
    let journal = Journal::open(core, Path::new(JOURNAL), NUMBER).await;
    let journal = journal.expect("it was just made");
    let fences = Fences::new(1);
    let memory =
        backends::MemoryVolume::new(BlockSize::B512, BlockCount(BLOCKS * 8), 3, fences.clone());
    let on = Arc::clone(&journal);
    let volume = WriteBack::new(on, VolumeId(1), memory, fences, Mode::WriteBack);
    (journal, volume)
}

fn io(data: &Buf, number: u64) -> Io {
    let at = number.wrapping_mul(2_654_435_761) % BLOCKS;
    let range = LbaRange::new(Lba(at * 8), BlockCount(8)).expect("a small address");
    let op = Op::Write {
        range,
        data: data.clone(),
        durability: Durability::Cached,
    };
    Io::new(op, Origin::default())
}

async fn writes(core: CoreHandle, count: u64) {
    let (journal, volume) = opened(&core).await;
    let lane = volume.open(&core).await;
    let lane = lane.expect("memory comes up");
    let data = Buf::copy_of(&[0xA5; 4096]);
    let numbers: Vec<u64> = (0..count).collect();
    for numbers in numbers.chunks(TOGETHER) {
        let answers: Vec<_> = numbers
            .iter()
            .map(|it| lane.submit(io(&data, *it)))
            .collect();
        for answer in answers {
            black_box(answer.await).expect("the log has room");
        }
    }
    let status = journal.status(&core).await;
    let destaged: u64 = status.iter().map(|it| it.counts.destaged_bytes).sum();
    assert_eq!(destaged, 0, "only writes are counted here");
}

pub(super) fn write(count: u64) {
    let config = WorldConfig {
        faults: FaultPlan::none(),
        ..WorldConfig::default()
    };
    let world = World::new(1, config);
    let node = world.node("node");
    let core = node.core(0);
    let done = world.block_on(&node, Duration::from_secs(100), writes(core, count));
    done.expect("it ends");
}
