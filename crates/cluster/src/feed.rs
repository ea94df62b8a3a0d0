//! What an owner sends one node of a ring: first what that has missed, out of the log, then all.
//!
//! ```text
//!   Reading --no more is stable, and the rest was heard--> Live
//!      ^ |                                                  |
//!      | +--the log has it no more--> Lags                  |
//!      +------ room again -- Full <-- as much is held as may be
//! ```

use write_back::{Place, Sequence};

/// Why a copy cannot be brought up from the owner's log: it needs a copy of what changed, or of
/// all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lag {
    /// The log begins at a later number than the first one that the copy lacks.
    BeyondLog {
        /// The first number that the log still has.
        begins: u64,
    },
    /// What it lacks is damaged in the log.
    Damaged {
        /// Which number.
        number: u64,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FeedState {
    /// A read of the log is under way.
    Reading,
    /// What gets numbers goes to it at once.
    Live,
    /// Nothing more may be held for it.
    Full,
    Lags(Lag),
}

/// What goes to one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feed {
    /// Reads of an earlier one are late.
    pub(crate) id: u64,
    /// The number that goes next.
    pub(crate) next: u64,
    /// Where the log is read next.
    pub(crate) place: Place,
    pub(crate) state: FeedState,
}

impl Feed {
    pub(crate) const fn from(id: u64, number: u64) -> Self {
        Self {
            id,
            next: number,
            place: Place::of(Sequence(number)),
            state: FeedState::Reading,
        }
    }

    /// Where to read on.
    pub(crate) fn reads_at(&self) -> Place {
        if self.place.number().0 == self.next {
            return self.place;
        }
        Place::of(Sequence(self.next))
    }
}
