//! A disk whose flushes take long, for benches on machines whose disk has fast ones. It is part of
//! every build, so that the program that is measured is the one that is given away
//! (docs/adr/0021-disks-for-tests.md).
//!
//! **Contract.** Each stable write and each sync of the runtime's files, when it is done, waits for
//! a flush of the disk, which does one at a time and joins none with another. What is written
//! without a flush is as fast as ever.

use super::shared::FilesShared;
use crate::Answer;
use crate::file::FileFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The disk of a runtime.
pub(super) struct SlowFlush {
    takes: Duration,
    disk: Mutex<()>,
}

impl SlowFlush {
    pub(super) fn new(takes: Duration) -> Self {
        Self {
            takes,
            disk: Mutex::default(),
        }
    }

    fn flush(&self) {
        let _alone = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        #[expect(
            clippy::disallowed_methods,
            reason = "a worker thread stands for the disk, which takes its time"
        )]
        std::thread::sleep(self.takes);
    }

    /// The answer, and a flush after it.
    pub(super) fn after(
        self: &Arc<Self>,
        answer: FileFuture,
        shared: &Arc<FilesShared>,
    ) -> FileFuture {
        let (disk, shared) = (Arc::clone(self), Arc::clone(shared));
        Answer::wait(async move {
            let done = answer.await?;
            shared.data.call(move || disk.flush()).await;
            Ok(done)
        })
    }
}
