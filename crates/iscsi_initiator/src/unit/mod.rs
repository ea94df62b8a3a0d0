//! A logical unit of a target through one session: what the multipath layer calls a port.
//!
//! ```text
//!      multipath::Multipath
//!        |            |
//!      UnitPort     UnitPort         one for each path: logs in with its ISID, checks who answers
//!        |            |
//!      UnitSession  UnitSession      an operation of the waist in, SCSI commands out, and back
//!        |            |
//!      SharedSession                 one for each path, for all units of the target
//!            \       /
//!             Unit                   who the unit is, for all of its paths
//! ```
//!
//! **Contract.** A port's login is answered only when the unit behind it has shown the same name,
//! serial number, size and block size as on every other path (R8 of the rules against stale
//! writes); so it is again after every unit attention that speaks of a change, while commands wait.
//! A unit that shows another identity ends its session, and the next login says so. A size that the
//! target announces (CAPACITY DATA HAS CHANGED) and that only grows is taken over, and so is one
//! that a login shows, once every other path that answers shows it too ([`growth`]).
//!
//! Where the host has a reservation key, a path registers it before it joins ([`reservation`]).
//!
//! A login with the path's ISID reinstates the session before (RFC 7143 6.3.5 "Session
//! Reinstatement, Closure, and Timeout"), so it is the fence for what that session still had.

mod cdb;
mod facts;
mod fence;
mod growth;
mod identity;
mod login;
mod open;
mod operation;
mod outcome;
mod path;
mod port;
mod probe;
mod quick;
mod quicks;
mod reservation;
mod session;
mod shared_session;
mod within;

pub use facts::{Capacity, UnitFacts};
pub use identity::{Designator, Difference, Identity};
pub use path::{COMMAND_TIMEOUT, Counters, PathConfig};
pub use port::{PortStatus, ProbeError, UnitPort, ask_living, probe};
pub use session::UnitSession;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use login::Login;
use outcome::Outcome;
use paths::stale::Nexus;
use session::Inner;

/// Is called with new facts.
type OnGrowth = Box<dyn Fn(&UnitFacts)>;

/// What all paths to a unit know of it.
pub struct Unit {
    facts: RefCell<UnitFacts>,
    /// Whoever wants to know that it has grown.
    growth: RefCell<Option<OnGrowth>>,
    /// This host's reservation key.
    reservation: Option<reservation::Reservation>,
    /// The sessions of our nexuses, for fences.
    logins: RefCell<BTreeMap<Nexus, Rc<Login>>>,
    /// Nexuses whose sessions we have left, and whether nothing of us is carried out there any
    /// more.
    left: RefCell<BTreeMap<Nexus, Rc<Outcome<bool>>>>,
    /// Sessions that paths have joined.
    living: RefCell<Vec<Weak<Inner>>>,
    /// Larger sizes that logins have shown while none lives.
    claims: RefCell<growth::Claims>,
}

impl Unit {
    /// The unit that has shown these facts.
    #[must_use]
    pub fn new(facts: UnitFacts) -> Rc<Self> {
        Self::with_key(facts, None)
    }

    /// The same, where every path is to register this reservation key before it carries I/O.
    #[must_use]
    pub fn with_key(facts: UnitFacts, key: Option<u64>) -> Rc<Self> {
        Rc::new(Self {
            facts: RefCell::new(facts),
            growth: RefCell::default(),
            reservation: key.map(reservation::Reservation::new),
            logins: RefCell::default(),
            left: RefCell::default(),
            living: RefCell::default(),
            claims: RefCell::default(),
        })
    }

    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> UnitFacts {
        self.facts.borrow().clone()
    }

    /// From now on `notify` is called with the facts at every larger size that the target
    /// announces.
    pub fn on_growth(&self, notify: impl Fn(&UnitFacts) + 'static) {
        self.growth.replace(Some(Box::new(notify)));
    }

    /// Another host has taken this host's reservation key away: nothing is written any more.
    #[must_use]
    pub fn is_preempted(&self) -> bool {
        self.reservation
            .as_ref()
            .is_some_and(|it| it.is_preempted())
    }

    /// A path has joined this session; what it had before is over.
    fn joined(&self, nexus: Nexus, login: &Rc<Login>) {
        let mut logins = self.logins.borrow_mut();
        logins.retain(|it, _| it.path != nexus.path);
        logins.insert(nexus, Rc::clone(login));
        let mut left = self.left.borrow_mut();
        left.retain(|it, _| it.path != nexus.path);
    }

    /// A path has joined by this session.
    fn lives(&self, session: &Rc<Inner>) {
        self.claims.take();
        let mut living = self.living.borrow_mut();
        living.retain(|it| it.strong_count() > 0);
        living.push(Rc::downgrade(session));
    }

    /// The sessions by which it can be asked now.
    fn living(&self) -> Vec<Rc<Inner>> {
        let living = self.living.borrow();
        let all = living.iter().filter_map(Weak::upgrade);
        all.filter(|it| it.is_living()).collect()
    }

    /// Compares; where a larger size was announced, or agreed on by all, that is the size from now
    /// on.
    fn check(&self, here: &Identity, announced: bool) -> Result<(), Difference> {
        let mut facts = self.facts.borrow_mut();
        match here.difference(&facts.identity) {
            None => Ok(()),
            Some(Difference::Size { here, known }) if announced && here > known => {
                facts.identity.block_count = here;
                facts.capacity.block_count = here;
                if let Some(notify) = &*self.growth.borrow() {
                    notify(&facts);
                }
                Ok(())
            }
            Some(difference) => Err(difference),
        }
    }
}
