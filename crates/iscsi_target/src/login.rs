//! Who may log in where: the answers of the current export to the login machine's questions.
//!
//! | situation | status |
//! |---|---|
//! | normal session, no such target at this portal | 0203h not found |
//! | normal session, target granted to others only | 0202h authorization failure |
//! | normal session, target was granted and has been removed since | 0204h target removed |
//! | target in maintenance | 0301h service unavailable |
//! | target moved | 0101h or 0102h with its address |
//! | discovery, no grant anywhere | allowed without authentication, and sees nothing |
//! | too many sessions | 0302h out of resources |

use crate::export::{Export, ExportedTarget, Host};
use crate::shared::Shared;
use env::CoreHandle;
use iscsi::chap::ChapAlgorithm;
use iscsi::target_side::{
    Authentication, ChapTerms, LoginAsk, LoginPolicy, LoginRefusal, LoginTerms, MutualChap,
    SessionType,
};
use iscsi::{LoginStatus, Offer};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Algorithms that are offered, best first.
const ALGORITHMS: [ChapAlgorithm; 4] = [
    ChapAlgorithm::Sha3,
    ChapAlgorithm::Sha256,
    ChapAlgorithm::Sha1,
    ChapAlgorithm::Md5,
];

/// The policy of one connection that is logging in.
pub(crate) struct ExportPolicy {
    /// Unpredictable bytes, drawn when the connection came: what a login needs is derived from
    /// them, so that the policy may move to another core together with its connection.
    seed: [u8; 32],
    draws: u64,
    shared: Arc<Shared>,
    pub(crate) export: Arc<Export>,
    /// The portal group that the connection came in through.
    pub(crate) portal_group_tag: u16,
}

impl ExportPolicy {
    pub(crate) fn new(
        core: &CoreHandle,
        shared: Arc<Shared>,
        export: Arc<Export>,
        portal_group_tag: u16,
    ) -> Self {
        let mut seed = [0; 32];
        core.fill_random(&mut seed);
        Self {
            seed,
            draws: 0,
            shared,
            export,
            portal_group_tag,
        }
    }
}

impl LoginPolicy for ExportPolicy {
    fn admit(&mut self, ask: &LoginAsk<'_>) -> Result<LoginTerms, LoginRefusal> {
        match ask.session_type {
            SessionType::Discovery => Ok(self.discovery(ask)),
            SessionType::Normal => self.normal(ask),
        }
    }

    fn random(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(32) {
            self.draws += 1;
            let digest = Sha256::new()
                .chain_update(self.seed)
                .chain_update(self.draws.to_be_bytes())
                .finalize();
            piece.copy_from_slice(&digest[..piece.len()]);
        }
    }
}

impl ExportPolicy {
    fn discovery(&self, ask: &LoginAsk<'_>) -> LoginTerms {
        let host = self.export.host_of(ask.initiator_name);
        self.terms(host.as_deref(), None)
    }

    fn normal(&self, ask: &LoginAsk<'_>) -> Result<LoginTerms, LoginRefusal> {
        let name = ask.target_name.unwrap_or_default();
        let initiator = ask.initiator_name;
        let here = |target: &&Arc<ExportedTarget>| target.portal_group_tag == self.portal_group_tag;
        let Some(target) = self.export.target(name).filter(here) else {
            let elsewhere = self.export.target(name);
            if elsewhere.is_none() && self.shared.was_removed(name, initiator) {
                let reason = format!("target {name} has been removed");
                return Err(LoginRefusal::new(LoginStatus::TargetRemoved, reason));
            }
            let reason = match elsewhere {
                Some(target) => format!(
                    "target {name} is in portal group {}, not in {}",
                    target.portal_group_tag, self.portal_group_tag
                ),
                None => format!("there is no target {name}"),
            };
            return Err(LoginRefusal::new(LoginStatus::NotFound, reason));
        };
        if self.shared.is_probe(initiator) {
            let reason = format!("target {name} is here");
            return Err(LoginRefusal::new(LoginStatus::AuthorizationFailure, reason));
        }
        let Some(view) = target.view(initiator) else {
            let reason = format!("initiator {initiator} is granted nothing on target {name}");
            return Err(LoginRefusal::new(LoginStatus::AuthorizationFailure, reason));
        };
        if let Some(redirect) = &target.redirect {
            let (status, how) = if redirect.permanent {
                (LoginStatus::TargetMovedPermanently, "for good")
            } else {
                (LoginStatus::TargetMovedTemporarily, "for now")
            };
            let reason = format!("target {name} is {how} at {}", redirect.address);
            return Err(LoginRefusal {
                status,
                reason,
                redirect: Some(redirect.address.clone()),
            });
        }
        if target.maintenance {
            let reason = format!("target {name} is in maintenance");
            return Err(LoginRefusal::new(LoginStatus::ServiceUnavailable, reason));
        }
        Ok(self.terms(Some(&*view.host), target.alias.clone()))
    }

    fn terms(&self, host: Option<&Host>, target_alias: Option<String>) -> LoginTerms {
        let authentication = match host.and_then(|host| host.chap.as_ref()) {
            None => Authentication::NotRequired,
            Some(chap) => Authentication::Chap(ChapTerms {
                algorithms: ALGORITHMS.to_vec(),
                user: chap.user.clone(),
                secret: chap.secret.clone(),
                mutual: chap.mutual.as_ref().map(|(user, secret)| MutualChap {
                    user: user.clone(),
                    secret: secret.clone(),
                    required: false,
                }),
            }),
        };
        LoginTerms {
            authentication,
            target_alias,
            portal_group_tag: self.portal_group_tag,
            // The initiator's word counts (the result is OR): data in any order costs us nothing.
            offer: Offer {
                data_pdu_in_order: false,
                data_sequence_in_order: false,
                ..Offer::default()
            },
        }
    }
}
