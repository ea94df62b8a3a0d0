//! The file of a map, as one core has it open.

use checksums::{PAGE, PageId};
use env::{CoreHandle, Durable, File, FileDone, FileOp};
use std::rc::Rc;
use units::{Buf, BufMut};

/// It, with the core that reads and writes it.
#[derive(Clone)]
pub(super) struct MapFile {
    pub(super) core: CoreHandle,
    pub(super) file: Rc<dyn File>,
}

impl MapFile {
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> env::FileFuture {
        let data = payload(&self.core, bytes);
        let durable = Durable::No;
        self.file.submit(FileOp::Write {
            offset,
            data,
            durable,
        })
    }
}

/// Both places of any page.
pub(super) async fn read_pair(
    core: &CoreHandle,
    file: &Rc<dyn File>,
    place: PageId,
) -> std::io::Result<Vec<u8>> {
    let offset = place.pair_at();
    read_at(core, file, offset, 2 * PAGE).await
}

pub(super) async fn read_at(
    core: &CoreHandle,
    file: &Rc<dyn File>,
    offset: u64,
    bytes: usize,
) -> std::io::Result<Vec<u8>> {
    let into = core
        .pool()
        .alloc(bytes)
        .unwrap_or_else(|_| BufMut::zeroed(bytes));
    match file.submit(FileOp::Read { offset, into }).await? {
        FileDone::Read(data) => Ok(data.freeze().to_vec()),
        FileDone::Nothing | FileDone::Extents(_) | FileDone::Len(_) => {
            unreachable!("a read answers data")
        }
    }
}

/// Bytes in memory of the core's pool, if there is some.
fn payload(core: &CoreHandle, bytes: &[u8]) -> Buf {
    let memory = core.pool().alloc(bytes.len());
    let mut memory = memory.unwrap_or_else(|_| BufMut::zeroed(bytes.len()));
    memory.copy_at(0, bytes);
    memory.freeze()
}
