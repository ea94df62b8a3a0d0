//! Operations that a limit or the shares of others made wait, as facts.

use layers::limit::Deferred;
use manifest::objects::WaitFacts;

pub(crate) fn facts_of(deferred: &Deferred) -> WaitFacts {
    WaitFacts {
        deferred: deferred.operations,
        waited_us: u64::try_from(deferred.waited.as_micros()).unwrap_or(u64::MAX),
        waiting: u64::try_from(deferred.waiting).unwrap_or(u64::MAX),
    }
}
