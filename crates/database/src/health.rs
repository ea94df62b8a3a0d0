//! How a file is, for whoever asks.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a file is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Health {
    /// Why nothing is written now.
    pub failing: Option<String>,
    /// Writes that were dropped since the start.
    pub dropped: u64,
    /// Damaged files that were set aside since the start, each with what was wrong.
    pub set_aside: Vec<(PathBuf, String)>,
    /// Bytes that its contents take.
    pub bytes: u64,
}

/// The health that the owner keeps and others read.
#[derive(Default)]
pub(crate) struct Shared {
    health: Mutex<Health>,
    overrun: Mutex<bool>,
    /// A bound that the owner is still to take.
    bound: Mutex<Option<u64>>,
}

impl Shared {
    pub(crate) fn health(&self) -> Health {
        self.change().clone()
    }

    pub(crate) fn change(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_bound(&self, bytes_max: u64) {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        *bound = Some(bytes_max);
    }

    /// The bound that nobody has taken yet.
    pub(crate) fn bound(&self) -> Option<u64> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.take()
    }

    /// Something came while too much waited.
    pub(crate) fn overrun(&self, is_write: bool) {
        self.change().dropped += u64::from(is_write);
        let mut said = self.overrun.lock().unwrap_or_else(PoisonError::into_inner);
        if !*said {
            *said = true;
            tracing::warn!("the disk is slower than what is recorded: some of it is dropped");
        }
    }

    /// Writes were dropped because of `why`; `true` where nobody has said so yet.
    pub(crate) fn fails(&self, writes: usize, why: &str) -> bool {
        let mut health = self.change();
        health.dropped += u64::try_from(writes).unwrap_or(u64::MAX);
        let first = health.failing.is_none();
        health.failing = Some(why.to_owned());
        first
    }

    /// It works; how much was dropped so far, where it did not work before.
    pub(crate) fn works(&self, bytes: u64) -> Option<u64> {
        let mut health = self.change();
        health.bytes = bytes;
        health.failing.take().map(|_| health.dropped)
    }
}
