//! The machine in a world that loses, delays and crashes: every order of events within bounds.
//!
//! One block of one LUN, on two nodes or three. Each write has a value of its own; reads are
//! instantaneous. The arbiter answers late, does what it was asked after nobody waits for it any
//! more, or loses answers. Time passes whenever it likes: a node that does not notice is a paused
//! one.

mod arbiter;
mod bounds;
mod copies;
#[cfg(test)]
mod copies_test;
mod explore;
mod forget;
mod linear;
#[cfg(test)]
mod lost_test;
mod renewal;
#[cfg(test)]
mod test;
mod world;

pub use arbiter::{ArbiterModel, Ask, Held, Request, Said};
pub use bounds::Bounds;
pub use explore::{Explored, explore, walk};
pub use world::World;

/// A rule of the machine that the model can break, to see that it is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// A change is acknowledged when all in sync have it.
    AllInSyncHaveIt,
    /// Readers see what is committed, not what is stable here.
    ReadersSeeCommitted,
    /// The owner reads only while the others' promises hold.
    OwnerReadsByPromise,
    /// A member waits before it takes over.
    Patience,
    /// A member waits after its own start.
    PatienceAfterStart,
    /// Who is removed is removed by a swap.
    RemovalAsksTheArbiter,
    /// A removal waits until no granted read is left.
    RemovalWaitsForReads,
    /// A replica reads only if its log has nothing that may not be committed.
    ReplicaShowsCommitted,
    /// An owner reads only after all that its log held is committed.
    NoReadsWhileOpening,
    /// Who claims stops accepting older epochs first.
    PromiseBeforeSwap,
    /// Who claims ends connections, so that the others hear what it promised.
    PromisesAreHeardAnew,
    /// Who is added to those in sync is waited for before.
    WhoIsAddedIsWaitedFor,
    /// A member's patience is longer than the owner's right to read.
    PatienceIsLonger,
    /// Who has notified another one to take over reads no more.
    WhoYieldsStopsReading,
    /// A store that has forgotten what is known is not believed.
    WhatWasForgottenStands,
    /// An owner reads no more once somebody has promised to accept a later epoch.
    WhoPromisedLaterIsNotCounted,
    /// Who is being added to those in sync has to have promised, too: its swap may be done, and
    /// known to it, before the owner knows.
    WhoIsAddedPromises,
    /// Who is made anew is so durably before its log goes on elsewhere.
    NotWholeBeforeItsLogGoesOn,
    /// Who is not whole is not added before everything was written again.
    WhoIsNotWholeIsCopied,
    /// Who is in sync and shall have no copy is removed from those in sync before.
    WhoIsInSyncIsRemovedFirst,
    /// A copy that is added to a LUN with contents is not whole.
    WhoIsAddedIsNotWhole,
    /// An owner beside whom too few are left begins a new epoch.
    WhoFallsShortBeginsAnew,
    /// What a copy had when it was whole last is known until it is whole again.
    WhatItHadStaysUntilItIsWhole,
    /// Who comes back with less than it had acknowledged is made anew.
    WhoLostSomeIsMadeAnew,
    /// Who knows that more was committed than an owner has does not follow it.
    WhoKnowsMoreDoesNotFollow,
}

impl Rule {
    /// Each is needed but [`Rule::PromiseBeforeSwap`] and [`Rule::WhoYieldsStopsReading`], and why
    /// not say their tests.
    pub const ALL: [Self; 25] = [
        Self::AllInSyncHaveIt,
        Self::ReadersSeeCommitted,
        Self::OwnerReadsByPromise,
        Self::Patience,
        Self::PatienceAfterStart,
        Self::RemovalAsksTheArbiter,
        Self::RemovalWaitsForReads,
        Self::ReplicaShowsCommitted,
        Self::NoReadsWhileOpening,
        Self::PromiseBeforeSwap,
        Self::PromisesAreHeardAnew,
        Self::WhoIsAddedIsWaitedFor,
        Self::PatienceIsLonger,
        Self::WhoYieldsStopsReading,
        Self::WhatWasForgottenStands,
        Self::WhoPromisedLaterIsNotCounted,
        Self::WhoIsAddedPromises,
        Self::NotWholeBeforeItsLogGoesOn,
        Self::WhoIsNotWholeIsCopied,
        Self::WhoIsInSyncIsRemovedFirst,
        Self::WhoIsAddedIsNotWhole,
        Self::WhoFallsShortBeginsAnew,
        Self::WhatItHadStaysUntilItIsWhole,
        Self::WhoLostSomeIsMadeAnew,
        Self::WhoKnowsMoreDoesNotFollow,
    ];
}
