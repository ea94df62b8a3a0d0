//! A log that takes nothing more: why, and whether it would again.
//!
//! **Full.** On a file system that copies on write, a thin device or a file with holes, a log that
//! was made whole can find no space for a write. Then nothing is broken: hosts are told that there
//! is no space, and once there is, opening the journal anew makes it serve again.

use crate::journal_file::Journal;
use crate::shard::Shard;
use env::file::{is_no_space, read};
use env::{CoreHandle, Durable, FileOp};
use std::io;
use units::{Buf, Lba};
use volume::IoError;

/// Why a log has failed.
#[derive(Debug)]
pub(crate) struct Failure {
    why: String,
    /// The write that found no space.
    refused: Option<Extent>,
}

/// Bytes of the journal's file or device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl Shard {
    /// Keeps why the log has failed: the first reason is the one to tell.
    pub(crate) fn has_failed(&self, write: Extent, error: &io::Error) {
        let mut failure = self.failure.borrow_mut();
        if failure.is_none() {
            *failure = Some(Failure {
                why: format!("a write to it failed: {error}"),
                refused: is_no_space(error).then_some(write),
            });
        }
    }

    /// Why it has failed, in words.
    pub(crate) fn why_failed(&self) -> String {
        let failure = self.failure.borrow();
        failure
            .as_ref()
            .map_or_else(String::new, |it| it.why.clone())
    }

    /// It has failed because its file or device had no space.
    pub(crate) fn is_full(&self) -> bool {
        let failure = self.failure.borrow();
        failure.as_ref().is_some_and(|it| it.refused.is_some())
    }

    /// What a write is told whose log has failed while it waited.
    pub(crate) fn lost_write(&self, lba: Lba) -> IoError {
        if self.is_full() {
            IoError::SpaceExhausted
        } else {
            IoError::MediumError { lba }
        }
    }

    /// What a write is told that comes after the log has failed: nothing of it was tried.
    pub(crate) fn refused_write(&self) -> IoError {
        if self.is_full() {
            IoError::SpaceExhausted
        } else {
            IoError::WriteProtected
        }
    }

    /// Whether what was refused for want of space would be taken now. What lies there is written
    /// again as it is: nothing else uses that place any more, and what a crash leaves of it is what
    /// was there.
    async fn takes_writes_again(&self) -> bool {
        let refused = self.failure.borrow().as_ref().and_then(|it| it.refused);
        let Some(Extent { offset, len }) = refused else {
            return false;
        };
        let Ok(there) = read(&self.file, offset, len).await else {
            return false;
        };
        let again = self.file.submit(FileOp::Write {
            offset,
            data: Buf::from(there),
            durable: Durable::Yes,
        });
        again.await.is_ok()
    }
}

impl Journal {
    /// All that has failed of it has failed for want of space, and there is space again: opened
    /// anew, it serves.
    pub async fn has_space_again(&self, core: &CoreHandle) -> bool {
        let rings = self.on_rings(core, |_, shard| {
            Box::pin(async move {
                if !shard.state.borrow().log.ring().has_failed() {
                    return true;
                }
                shard.takes_writes_again().await
            })
        });
        rings.await.into_iter().all(|would| would)
    }
}
