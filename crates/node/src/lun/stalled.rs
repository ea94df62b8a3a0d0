//! What was seen of LUNs whose storage may have stopped answering.

use layers::meter::Progress;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Now;

/// After so long without an answer a LUN needs attention.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The same where operations wait for a limit or for their share, which may take its time.
pub(crate) const PATIENCE_LIMITED: Duration = Duration::from_secs(60);

/// What was seen of one LUN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) progress: Progress,
    /// The last check at which something had ended, or nothing was under way.
    pub(crate) moved: Now,
    pub(crate) patience: Duration,
    /// Once for each time that it stops answering.
    pub(crate) is_logged: bool,
}

impl Seen {
    pub(crate) fn new(progress: Progress, now: Now) -> Self {
        Self {
            progress,
            moved: now,
            patience: PATIENCE,
            is_logged: false,
        }
    }

    pub(crate) fn update(&mut self, progress: Progress, now: Now) {
        if progress.ended != self.progress.ended || progress.under_way() == 0 {
            self.moved = now;
        }
        self.progress = progress;
    }

    /// For how long nothing was answered, where that is too long.
    pub(crate) fn stalled(&self, now: Now) -> Option<Duration> {
        let quiet = now.since(self.moved);
        (self.progress.under_way() > 0 && quiet >= self.patience).then_some(quiet)
    }
}

/// Of every LUN, by NAA identifier, and when the last check was.
#[derive(Default)]
pub(crate) struct Stalls(pub(crate) RefCell<(BTreeMap<String, Seen>, Option<Now>)>);
