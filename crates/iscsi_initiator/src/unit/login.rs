//! A session as the target knows it.

use super::outcome::Outcome;
use crate::session::Session;
use iscsi::{Isid, Tsih};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A session as the target knows it, and whether it is fenced.
#[derive(Debug)]
pub(super) struct Login {
    pub(super) isid: Isid,
    pub(super) tsih: Tsih,
    /// TargetPortalGroupTag, where the target reported it.
    pub(super) group_tag: Option<u16>,
    pub(super) fencing: Fencing,
}

/// A session that is logged in.
#[derive(Clone)]
pub(super) struct Living {
    pub(super) session: Session,
    pub(super) login: Rc<Login>,
}

/// Who tries to fence a session, and what came of it. All units that had it wait for the same
/// attempts.
#[derive(Debug, Default)]
pub(super) struct Fencing {
    pub(super) done: Outcome<()>,
    /// Attempts that are under way, by the session that they go through.
    pub(super) through: RefCell<BTreeMap<u64, Rc<Outcome<bool>>>>,
}

impl Fencing {
    /// Nothing of the session is carried out any more.
    pub(super) fn succeeded(&self) {
        self.done.set(());
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.get().is_some()
    }
}
