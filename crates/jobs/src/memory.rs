//! What is remembered of work that is seen.

use manifest::time::rfc3339;
use std::collections::BTreeMap;
use units::WallClock;

/// Kind and key.
pub(crate) type Name = (String, String);

/// What is remembered of work that is seen.
#[derive(Default, Debug)]
pub(crate) struct Seen {
    /// Who wants work to begin that is seen later.
    pub(crate) wanted: BTreeMap<Name, String>,
    /// When the work began that was seen last.
    pub(crate) started: BTreeMap<Name, String>,
    /// When this registry began (RFC 3339): work that ended before it is history.
    pub(crate) since: String,
}

impl Seen {
    /// From now on.
    pub(crate) fn since(now: WallClock) -> Self {
        Self {
            since: rfc3339(now),
            ..Self::default()
        }
    }
}
