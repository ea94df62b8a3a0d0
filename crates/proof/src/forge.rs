//! Makes a file what it is after a write that a kill or a failed sync has left in a cache only.

use env::{Access, CoreHandle, Create, Durable, File, FileDone, FileOp, OpenHow};
use std::path::Path;
use std::rc::Rc;

const BLOCK: usize = 4096;

/// Puts `bytes` into a file, block by block, where they differ from what it has.
///
/// # Panics
/// If it cannot be read or written.
pub async fn put(core: &CoreHandle, path: &Path, bytes: &[u8], durable: Durable) {
    let file = opened(core, path).await;
    for (at, block) in bytes.chunks(BLOCK).enumerate() {
        let offset = (at * BLOCK) as u64;
        let into = units::BufMut::zeroed(block.len());
        let read = file.submit(FileOp::Read { offset, into }).await;
        let Ok(FileDone::Read(had)) = read else {
            panic!("it can be read")
        };
        if had.freeze().to_vec() != block {
            let op = FileOp::Write {
                offset,
                data: units::Buf::copy_of(block),
                durable,
            };
            file.submit(op).await.expect("it can be written");
        }
    }
}

/// Asks for a sync, which fails.
///
/// # Panics
/// If it does not.
pub async fn sync_fails(core: &CoreHandle, path: &Path) {
    let file = opened(core, path).await;
    let synced = file.submit(FileOp::Sync).await;
    assert!(synced.is_err(), "it was to fail");
}

async fn opened(core: &CoreHandle, path: &Path) -> Rc<dyn File> {
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::No,
        direct: false,
        lock: false,
    };
    core.files().open(path, how).await.expect("it is there")
}
