//! Rules of what waits for other copies, each of which a test breaks to see that it is needed.

use std::cell::Cell;

/// A rule of [`crate::Log`] and [`crate::Uncommitted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// A replay that finds a change twice takes the later place.
    LaterPlaceWins,
    /// Where that is damaged, it takes the one before.
    UnlessItIsDamaged,
    /// The committed mark stays before a place that was left.
    MarkStaysBeforeTheOldPlace,
    /// It does so until neither checkpoint leads there.
    UntilNeitherCheckpointLeadsThere,
    /// What is held is given out by number, not by place.
    GivenOutByNumber,
    /// A part of a change is committed with all others of it.
    AChangeIsCommittedAsAWhole,
    /// An epoch that was relocated has a kind of its own.
    RelocatedEpochHasItsOwnKind,
    /// What an epoch on its way makes void is not relocated behind it.
    NotBehindAnEpochOnItsWay,
    /// What has an older change of its blocks behind it is relocated.
    WhatIsOvertakenIsRelocated,
    /// What lies behind newer changes is known after a crash, too.
    WhatLiesBehindIsFound,
    /// What has one copy commits all that its volume holds from before.
    OneCopyCommitsWhatIsBefore,
}

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

pub(crate) fn is_broken(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}
