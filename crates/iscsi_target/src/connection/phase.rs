//! What a connection has in its phase, and in no other.
//!
//! ```text
//!   Login --negotiation done--> Login { entering } --entered--> FullFeature { Normal | Discovery }
//! ```

use super::awaited::Awaited;
use super::commands::Commands;
use super::departure::Going;
use super::memory::Memory;
use super::units::SessionUnits;
use crate::directory::Claim;
use crate::login_places::LoginPermit;
use crate::session::{EnteringGuard, Session, SessionNumber};
use env::LocalFuture;
use iscsi::target_side::LoginOutcome;
use std::rc::Rc;

/// Where a connection stands.
#[expect(
    clippy::large_enum_variant,
    reason = "a connection has one, which is large for nearly all of its life"
)]
pub(super) enum Phase {
    Login(Login),
    FullFeature(FullFeature),
}

/// The initiator logs in.
#[derive(Default)]
pub(super) struct Login {
    /// Its place among logins; `None` once a newer one has it.
    pub(super) permit: Option<LoginPermit>,
    /// Negotiation is done.
    pub(super) entering: Option<Entering>,
}

/// A login that waits to be entered in the directory.
pub(super) struct Entering {
    /// What another login of the same port would find of it.
    pub(super) guard: EnteringGuard,
    pub(super) number: SessionNumber,
    /// The session's place in the directory; a discovery session has none.
    pub(super) claim: Option<Claim>,
    pub(super) outcome: Box<LoginOutcome>,
}

/// There is a session.
pub(super) struct FullFeature {
    pub(super) session: Rc<Session>,
    /// Its part of what hosts may announce.
    pub(super) awaited: Rc<Awaited>,
    pub(super) kind: Kind,
    pub(super) commands: Commands,
    pub(super) memory: Memory,
}

impl FullFeature {
    /// One that has nothing in progress.
    pub(super) fn new(session: Rc<Session>, awaited: Rc<Awaited>, kind: Kind) -> Self {
        let mut memory = Memory::default();
        let most = session.info.borrow().bytes_in_flight_max;
        memory.share.limit(most);
        Self {
            session,
            awaited,
            kind,
            commands: Commands::default(),
            memory,
        }
    }
}

/// What a session is for.
pub(super) enum Kind {
    /// It asks for targets, and keeps the place that it logged in with until a newer login has it.
    Discovery(Option<LoginPermit>),
    /// It has a target.
    Normal(Normal),
}

/// What only a session with a target has.
pub(super) struct Normal {
    /// What it sees.
    pub(super) units: Rc<SessionUnits>,
    /// Its place in the directory.
    pub(super) claim: Claim,
    /// When it is ended because its target is in maintenance.
    pub(super) leave: Option<LocalFuture<()>>,
    /// It was asked to go to another core.
    pub(super) going: Option<Going>,
}

impl Normal {
    pub(super) fn new(units: Rc<SessionUnits>, claim: Claim) -> Self {
        Self {
            units,
            claim,
            leave: None,
            going: None,
        }
    }
}

impl Default for Phase {
    fn default() -> Self {
        Self::Login(Login::default())
    }
}

impl Phase {
    pub(super) fn full_feature(&self) -> Option<&FullFeature> {
        match self {
            Self::FullFeature(full) => Some(full),
            Self::Login(_) => None,
        }
    }

    pub(super) fn full_feature_mut(&mut self) -> Option<&mut FullFeature> {
        match self {
            Self::FullFeature(full) => Some(full),
            Self::Login(_) => None,
        }
    }

    pub(super) fn session(&self) -> Option<&Rc<Session>> {
        self.full_feature().map(|full| &full.session)
    }

    pub(super) fn awaited(&self) -> Option<&Rc<Awaited>> {
        self.full_feature().map(|full| &full.awaited)
    }

    pub(super) fn normal(&self) -> Option<&Normal> {
        match &self.full_feature()?.kind {
            Kind::Normal(normal) => Some(normal),
            Kind::Discovery(_) => None,
        }
    }

    pub(super) fn normal_mut(&mut self) -> Option<&mut Normal> {
        match &mut self.full_feature_mut()?.kind {
            Kind::Normal(normal) => Some(normal),
            Kind::Discovery(_) => None,
        }
    }

    pub(super) fn units(&self) -> Option<&Rc<SessionUnits>> {
        self.normal().map(|normal| &normal.units)
    }

    /// The login that waits to be entered in the directory.
    pub(super) fn take_entering(&mut self) -> Option<Entering> {
        match self {
            Self::Login(login) => login.entering.take(),
            Self::FullFeature(_) => None,
        }
    }

    /// Its place among those that have not logged in, or only ask for targets.
    pub(super) fn permit(&self) -> Option<&LoginPermit> {
        match self {
            Self::Login(login) => login.permit.as_ref(),
            Self::FullFeature(full) => match &full.kind {
                Kind::Discovery(permit) => permit.as_ref(),
                Kind::Normal(_) => None,
            },
        }
    }

    /// Takes that place out.
    pub(super) fn take_permit(&mut self) -> Option<LoginPermit> {
        match self {
            Self::Login(login) => login.permit.take(),
            Self::FullFeature(full) => match &mut full.kind {
                Kind::Discovery(permit) => permit.take(),
                Kind::Normal(_) => None,
            },
        }
    }
}
