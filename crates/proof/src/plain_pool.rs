//! A pool as tests want it: a directory with a journal, and nothing else.

use env::CoreHandle;
use std::path::Path;
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
