//! A pool as tests want it: a directory with a journal, and nothing else; and how tests open what
//! they put into it, and read that.

use backends::{DiskVolume, FileSpec, Provisioning, open_file};
use env::CoreHandle;
use std::path::Path;
use std::sync::Arc;
use units::{BlockCount, BlockSize, Lba, LbaRange};
use volume::{Done, Fences, Io, IoError, Lane, Op, Origin};
use write_back::{Journal, JournalSpec, bytes_min};

/// Its directory.
pub const DIR: &str = "/pool";

/// The file of its journal, inside the directory.
pub const JOURNAL: &str = "/pool/journal";

/// The journal's identifier, the same in every run.
pub const NUMBER: [u8; 16] = [9; 16];

/// Makes it, with rings as small as they may be, which take turns every `shard_bytes` of addresses.
///
/// # Panics
/// If that fails.
pub async fn make(core: &CoreHandle, rings: u32, shard_bytes: u64) {
    let made = core.files().create_dir(Path::new(DIR)).await;
    made.expect("an empty disk has room");
    let synced = core.files().sync_dir(Path::new("/")).await;
    synced.expect("nothing fails yet");
    let spec = JournalSpec {
        path: JOURNAL.into(),
        bytes: bytes_min(rings),
        rings,
        pool: NUMBER,
        shard_bytes,
    };
    let made = Journal::create(core, &spec).await;
    made.expect("an empty disk has room");
}

/// Opens a thin file of 4096-byte blocks, with fences of one writer.
///
/// # Panics
/// If that fails.
pub async fn open_thin(core: &CoreHandle, path: &Path) -> (Arc<DiskVolume>, Fences) {
    let spec = FileSpec {
        path: path.into(),
        block_size: BlockSize::B4096,
        physical_block_exponent: 0,
        provisioning: Provisioning::Thin,
    };
    let fences = Fences::new(1);
    let opened = open_file(core, spec, fences.clone()).await;
    (opened.expect("it was made"), fences)
}

/// So many blocks from this one on.
///
/// # Panics
/// If their end is no address.
#[must_use]
pub fn range(lba: u64, blocks: u64) -> LbaRange {
    LbaRange::new(Lba(lba), BlockCount(blocks)).expect("tests use small addresses")
}

/// What a block holds.
///
/// # Errors
/// As the volume answers.
///
/// # Panics
/// If a read is answered without data.
pub async fn read(lane: &dyn Lane, lba: u64) -> Result<Vec<u8>, IoError> {
    let op = Op::Read {
        range: range(lba, 1),
        into: None,
    };
    let Done::Data(data) = lane.submit(Io::new(op, Origin::default())).await? else {
        panic!("a read gives data")
    };
    Ok(data.to_vec())
}
