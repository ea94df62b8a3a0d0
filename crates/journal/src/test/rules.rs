//! Rules of what waits for other copies, each of which a test breaks to see that it is needed.

use super::{damaged, relocated, uncommitted};
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

impl Rule {
    pub(super) const ALL: [Self; 11] = [
        Self::LaterPlaceWins,
        Self::UnlessItIsDamaged,
        Self::MarkStaysBeforeTheOldPlace,
        Self::UntilNeitherCheckpointLeadsThere,
        Self::GivenOutByNumber,
        Self::AChangeIsCommittedAsAWhole,
        Self::RelocatedEpochHasItsOwnKind,
        Self::NotBehindAnEpochOnItsWay,
        Self::WhatIsOvertakenIsRelocated,
        Self::WhatLiesBehindIsFound,
        Self::OneCopyCommitsWhatIsBefore,
    ];
}

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

pub(crate) fn is_broken(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}

/// Whether `run` panics where a rule is broken.
pub(super) fn is_found(rule: Rule, run: impl FnOnce()) -> bool {
    BROKEN.set(Some(rule));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    BROKEN.set(None);
    result.is_err()
}

#[test]
fn each_rule_of_what_waits_for_other_copies_is_needed() {
    for rule in Rule::ALL {
        let by_damage = is_found(rule, || {
            damaged::found_after_every_harm();
        });
        let by_checkpoint = is_found(rule, damaged::found_by_the_checkpoint_before);
        let by_parts = is_found(rule, damaged::found_in_parts);
        let by_order = is_found(rule, damaged::found_in_order);
        let by_one_copy = is_found(rule, uncommitted::one_copy_after_several);
        let by_others = by_damage || by_checkpoint || by_parts || by_order || by_one_copy;
        let in_life = |seed: &u64| {
            is_found(rule, || {
                relocated::lives(*seed);
            })
        };
        let in_life = (1..=50).find(|seed| !by_others && in_life(seed));
        println!(
            "{rule:?}: damage {by_damage}, checkpoint {by_checkpoint}, parts {by_parts}, order {by_order}, one copy \
             {by_one_copy}, life {in_life:?}"
        );
        assert!(
            by_others || in_life.is_some(),
            "{rule:?} makes no difference"
        );
    }
}
