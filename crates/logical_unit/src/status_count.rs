//! How often commands ended with something else than GOOD, for metrics.

use scsi::{Sense, Status};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A status, and with CHECK CONDITION its sense key, additional sense code and qualifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ending {
    /// The status byte of the answer (SAM-5 5.3.1).
    pub status: Status,
    /// Key, ASC, ASCQ.
    pub sense: Option<(u8, u8, u8)>,
}

/// One core's counts. There are as many as the unit has reasons to refuse, which is few.
#[derive(Default)]
pub(crate) struct StatusCount(RefCell<BTreeMap<Ending, u64>>);

impl StatusCount {
    pub(crate) fn count(&self, status: Status, sense: Option<&Sense>) {
        let sense = sense.map(|sense| (sense.key.code(), sense.code.asc, sense.code.ascq));
        *self
            .0
            .borrow_mut()
            .entry(Ending { status, sense })
            .or_default() += 1;
    }

    pub(crate) fn read(&self) -> BTreeMap<Ending, u64> {
        self.0.borrow().clone()
    }
}
