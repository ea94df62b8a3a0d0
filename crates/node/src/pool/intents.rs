//! LUNs whose making or purging was begun.

use manifest::objects::Lun;
use std::cell::RefCell;
use volume::OpenError;

/// LUNs whose making or purging did not come to its end.
#[derive(Default)]
pub(crate) struct IntentLog {
    pub(crate) luns: RefCell<Vec<Lun>>,
    /// What is written down cannot be read now. It is not written over, so nothing is begun.
    pub(crate) unread: RefCell<Option<OpenError>>,
}

/// Whether what a crash left is given back.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Finishing {
    /// As soon as the objects were compared with what the pools have seen.
    #[default]
    Soon,
    /// It was.
    Done,
    /// A pool has seen newer objects: what these lack need not be left from an
    /// operation that was in flight.
    Not,
}
