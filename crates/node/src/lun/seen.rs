//! What a LUN did until a document of it was made last, so that one that did nothing since is not
//! read anew.

use layers::Brief;
use manifest::activity::LunActivity;
use std::sync::Arc;

/// By what it is seen that a LUN did something.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// What its storage did.
    pub(crate) count: Brief,
    /// Nanoseconds that its commands took together.
    pub(crate) nanos: u64,
}

/// What a LUN did, and by what that is known.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) mark: Mark,
    pub(crate) activity: Arc<LunActivity>,
}

impl Seen {
    /// Its activity, where that is what would be made of it now.
    pub(crate) fn still(&self, name: &str, online: bool, mark: &Mark) -> Option<Arc<LunActivity>> {
        let known = &self.activity;
        let is = self.mark == *mark && known.name == name && known.online == online;
        is.then(|| Arc::clone(known))
    }
}
