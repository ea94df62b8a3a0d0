//! What is to be written in the next round of a map, and where its rounds are.

use super::page::Resident;
use checksums::PageId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use units::Now;

/// Pages above checksums are written in every so many rounds ...
const ABOVE_EVERY: u32 = 64;
/// ... and after this long.
pub(super) const ABOVE_AFTER: Duration = Duration::from_secs(1);

/// Something above pages of checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Above {
    /// The newest of both superblocks.
    Superblock,
    /// The newest version of a page.
    Page(PageId),
}

/// Where the rounds are.
#[derive(Default)]
pub(super) struct Rounds {
    pub(super) running: bool,
    pub(super) started: u64,
    pub(super) done: u64,
    pub(super) dirty: Vec<Arc<Resident>>,
    /// What stands above pages of checksums and is no longer in the file.
    pub(super) gone: Vec<Above>,
    pub(super) waiting: Vec<oneshot::Sender<()>>,
    /// Rounds since pages above checksums were written, and when that was.
    pub(super) since_above: u32,
    pub(super) above_at: Option<Now>,
    /// A task waits to write the pages above.
    pub(super) settling: bool,
    /// Rounds for which there was no space.
    pub(super) refused: u64,
}

/// What one round writes.
pub(super) struct Round {
    pub(super) pages: Vec<Arc<Resident>>,
    pub(super) gone: Vec<Above>,
    pub(super) above: bool,
}

impl Rounds {
    /// How many rounds there were, where none runs.
    pub(super) fn at_rest(&self) -> Option<u64> {
        (!self.running).then_some(self.started)
    }

    pub(super) fn begin(&mut self, now: Now, above: bool) -> Round {
        self.running = true;
        self.started += 1;
        self.since_above += 1;
        let late = self.above_at.is_none_or(|at| now >= at.after(ABOVE_AFTER));
        let above = above || late || self.since_above >= ABOVE_EVERY;
        if above {
            self.since_above = 0;
            self.above_at = Some(now);
        }
        Round {
            pages: std::mem::take(&mut self.dirty),
            gone: std::mem::take(&mut self.gone),
            above,
        }
    }
}
