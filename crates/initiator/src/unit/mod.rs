//! A logical unit of a target through one session: what the multipath layer calls a port.
//!
//! ```text
//!      layers::Multipath
//!        |            |
//!      UnitPort     UnitPort         one for each path: logs in with the path's own ISID, checks who answers
//!        |            |
//!      UnitSession  UnitSession      an operation of the waist in, SCSI commands out, and back
//!        |            |
//!      Session      Session
//!            \       /
//!             Unit                   who the unit is, for all of them
//! ```
//!
//! **Contract.** A port's login is answered only when the unit behind it has shown the same name, serial number, size and block
//! size as on every other path (R8 of the rules against stale writes); so it is again after every unit attention that
//! speaks of a change, while commands wait. A unit that shows another identity ends its session, and the next login says so.
//! A size that the target announces (CAPACITY DATA HAS CHANGED) and that only grows is taken over.
//!
//! A login with the path's ISID reinstates the session before (RFC 7143 6.3.5 "Session Reinstatement, Closure, and Timeout"), so it is
//! the fence for what that session still had.

mod cdb;
mod facts;
mod fence;
mod identity;
mod operation;
mod port;
mod probe;
mod session;

pub use facts::{Capacity, UnitFacts};
pub use identity::{Designator, Difference, Identity};
pub use port::{Counters, LinkStatus, PathConfig, UnitPort, probe};
pub use session::UnitSession;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use iscsi::{Isid, Tsih};
use paths::stale::Nexus;

/// What all paths to a unit know of it.
#[derive(Debug)]
pub struct Unit {
    facts: RefCell<UnitFacts>,
    /// The announced size, where it grew.
    grown: Cell<bool>,
    /// What the target calls the sessions of our nexuses, for fences.
    names: RefCell<BTreeMap<Nexus, SessionName>>,
    attempts: fence::Attempts,
}

/// A session as the target knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SessionName {
    isid: Isid,
    tsih: Tsih,
    /// TargetPortalGroupTag, where the target told it.
    group_tag: Option<u16>,
}

impl Unit {
    /// The unit that has shown these facts.
    #[must_use]
    pub fn new(facts: UnitFacts) -> Rc<Self> {
        Rc::new(Self {
            facts: RefCell::new(facts),
            grown: Cell::new(false),
            names: RefCell::default(),
            attempts: fence::Attempts::default(),
        })
    }

    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> UnitFacts {
        self.facts.borrow().clone()
    }

    /// It has grown since it was made.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.grown.get()
    }

    /// A path's session is called so; those before it are over.
    fn named(&self, nexus: Nexus, name: SessionName) {
        let mut names = self.names.borrow_mut();
        names.retain(|it, _| it.path != nexus.path);
        names.insert(nexus, name);
        self.attempts.forget_before(nexus);
    }

    /// Compares; where a living session has announced a larger size, that is the size from now on.
    fn check(&self, here: &Identity, announced: bool) -> Result<(), Difference> {
        let mut facts = self.facts.borrow_mut();
        match here.difference(&facts.identity) {
            None => Ok(()),
            Some(Difference::Size { here, known }) if announced && here > known => {
                facts.identity.block_count = here;
                facts.capacity.block_count = here;
                self.grown.set(true);
                Ok(())
            }
            Some(difference) => Err(difference),
        }
    }
}
