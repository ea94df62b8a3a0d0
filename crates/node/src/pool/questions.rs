//! What pools were asked and have not answered.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Questions that are not answered yet.
#[derive(Clone, Default)]
pub(crate) struct Asks(pub(crate) Rc<RefCell<BTreeSet<String>>>);

/// As problems say it.
pub(crate) fn silent(pool: &str) -> String {
    format!("pool {pool} does not answer")
}
