//! Why a node is not let in, or another one is not believed.

use manifest::code::Code;
use manifest::problem::Problem;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of refusal it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The token is damaged, unknown, spent, ended or another cluster's.
    Token,
    /// The clocks differ by more than is allowed, or a certificate is not of this time.
    Clock,
    /// The versions of the two have nothing in common.
    Version,
    /// It is in the cluster, or in another one.
    Member,
    /// What it has does not fit: ring counts, LUNs with the same identity.
    Unfit,
    /// Two with one node's keys run at once.
    Twice,
    /// It is not who it says, or no node of this cluster.
    Stranger,
    /// What it said is none of the protocol.
    Garbled,
    /// Nobody answers there.
    Unreachable,
    /// The arbiter does not answer, or is not to be believed.
    Arbiter,
    /// The cluster has had as many nodes as it may ever have.
    Full,
}

/// A refusal, its cause, and what somebody can do.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Refusal {
    /// For whoever decides by it.
    pub kind: RefusalKind,
    /// What is wrong, with both sides of it.
    pub cause: String,
    /// What somebody can do.
    pub next_step: String,
}

impl Refusal {
    /// A refusal of this kind.
    #[must_use]
    pub fn new(kind: RefusalKind, cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self {
            kind,
            cause: cause.into(),
            next_step: next_step.into(),
        }
    }

    /// As the command line shows it.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let code = match self.kind {
            RefusalKind::Token => Code::ClusterToken,
            RefusalKind::Arbiter => Code::ClusterArbiter,
            RefusalKind::Unreachable
            | RefusalKind::Garbled
            | RefusalKind::Twice
            | RefusalKind::Stranger => Code::ClusterPeer,
            RefusalKind::Member => Code::ClusterMember,
            RefusalKind::Clock | RefusalKind::Version | RefusalKind::Unfit | RefusalKind::Full => {
                Code::ClusterJoinRefused
            }
        };
        Problem::new(code, &self.cause).hint(&self.next_step)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; next step: {}", self.cause, self.next_step)
    }
}

impl std::error::Error for Refusal {}
