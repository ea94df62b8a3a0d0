//! Every decision of a login that is not the protocol's: who may log in where, and how it proves
//! itself.
//!
//! **Contract.** The policy is asked at most once a login ([`LoginPolicy::admit`]), before anything
//! is revealed, and answers from what it holds. [`LoginPolicy::random`] is the only source of
//! unpredictability. What needs time (session limits, reinstatement) comes later, with
//! `Event::LoginReady`.

use super::event::SessionType;
use crate::chap::{ChapAlgorithm, Secret};
use crate::ids::{Cid, Isid, Tsih};
use crate::login_status::LoginStatus;
use crate::parameters::Offer;

/// The owner's decisions in a login.
pub trait LoginPolicy {
    /// The names are known. Says whether this initiator may log in, and on what terms.
    ///
    /// # Errors
    /// The refusal, with exact status, human reason, and address where it is a redirection.
    fn admit(&mut self, ask: &LoginAsk<'_>) -> Result<LoginTerms, LoginRefusal>;

    /// Fills `bytes` from the system's random source.
    fn random(&mut self, bytes: &mut [u8]);
}

/// Who asks for what.
#[derive(Clone, Copy, Debug)]
pub struct LoginAsk<'a> {
    /// The name that it claims; it is proved later, if at all.
    pub initiator_name: &'a str,
    /// InitiatorAlias, if given.
    pub initiator_alias: Option<&'a str>,
    /// Discovery, or normal with a target.
    pub session_type: SessionType,
    /// TargetName: always there in a normal session.
    pub target_name: Option<&'a str>,
    /// Initiator part of the session identifier.
    pub isid: Isid,
    /// Session to continue, or 0.
    pub tsih: Tsih,
    /// Connection.
    pub cid: Cid,
}

/// What a login must prove, and what it is offered.
#[derive(Clone, Debug)]
pub struct LoginTerms {
    /// How the initiator must prove itself.
    pub authentication: Authentication,
    /// TargetAlias, if the target has one.
    pub target_alias: Option<String>,
    /// TargetPortalGroupTag of the portal, for a normal session.
    pub portal_group_tag: u16,
    /// What we offer and accept.
    pub offer: Offer,
}

/// How an initiator must prove itself.
#[derive(Clone, Debug)]
pub enum Authentication {
    /// Not at all.
    NotRequired,
    /// By CHAP; nothing else opens the session.
    Chap(ChapTerms),
}

/// Credentials of a CHAP login.
#[derive(Clone, Debug)]
pub struct ChapTerms {
    /// Algorithms that we take, best first.
    pub algorithms: Vec<ChapAlgorithm>,
    /// Name that the initiator must give.
    pub user: String,
    /// What the initiator's response is computed from; never on the wire.
    pub secret: Secret,
    /// How we prove ourselves when asked; `None`: a login that asks for it is refused.
    pub mutual: Option<MutualChap>,
}

/// Our own credentials.
#[derive(Clone, Debug)]
pub struct MutualChap {
    /// Name that we give.
    pub user: String,
    /// Our secret; must differ from the initiator's.
    pub secret: Secret,
    /// A login that does not ask us to prove ourselves is refused.
    pub required: bool,
}

/// A login is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoginRefusal {
    /// What the initiator is answered.
    pub status: LoginStatus,
    /// Why, for log and `session` output; never sent.
    pub reason: String,
    /// TargetAddress (`host:port` or `host:port,tag`) of a redirection.
    pub redirect: Option<String>,
}

impl LoginRefusal {
    /// A refusal without redirection.
    #[must_use]
    pub fn new(status: LoginStatus, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            redirect: None,
        }
    }
}
