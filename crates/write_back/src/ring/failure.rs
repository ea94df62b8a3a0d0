//! A log that takes nothing more: why, and whether it would again.
//!
//! **Full.** On a file system that copies on write, a thin device or a file with holes, a log that
//! was made whole can find no space for a write. Then nothing is broken: the sense data says that
//! there is no space, and once there is, opening the journal anew makes it serve again.

use super::driver::Ring;
use super::event::Extent;
use env::file::read;
use env::{Durable, FileOp};
use units::Buf;

impl Ring {
    /// Whether it takes writes, or what was refused for want of space would be taken now. What lies
    /// there is written again as it is: nothing else uses that place any more, and what a crash
    /// leaves of it is what was there.
    pub(crate) async fn takes_writes(&self) -> bool {
        if !self.machine().ring().has_failed() {
            return true;
        }
        let refused = self.machine().refused_extent();
        let Some(Extent { offset, len }) = refused else {
            return false;
        };
        let Ok(there) = read(&self.device.file, offset, len).await else {
            return false;
        };
        let again = self.device.file.submit(FileOp::Write {
            offset,
            data: Buf::from(there),
            durable: Durable::Yes,
        });
        again.await.is_ok()
    }
}
