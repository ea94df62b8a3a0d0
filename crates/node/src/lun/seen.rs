//! What a LUN did until it was asked last, so that one that did nothing since is not read anew:
//! figures of each second, and documents while somebody watches.

use layers::Brief;
use manifest::activity::LunActivity;
use std::sync::Arc;

/// What the figures of the last second said of a LUN.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Its name then, which others hold as well.
    pub(crate) name: Arc<str>,
    /// What its storage had done.
    pub(crate) count: Brief,
}

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
