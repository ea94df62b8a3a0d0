//! The initiator's half of a login.
//!
//! **Invariant.** I1: with a [`TargetProof`](super::TargetProof) configured, nothing is `Done`
//! before the target has proved itself.
//!
//! Spec: RFC 7143 6.3 "Login Phase", 12.1.3 "Challenge Handshake Authentication Protocol (CHAP)".

use super::event::{InitiatorChap, InitiatorConfig};
use crate::bhs::{LoginResponse, StageBits};
use crate::chap::{CHALLENGE_BYTES_MAX, ChapAlgorithm};
use crate::extension_keys::nic::{NIC, NicRecord};
use crate::ids::Tsih;
use crate::login_status::LoginStatus;
use crate::negotiation::Negotiation;
use crate::parameters::Parameters;
use crate::text::{self, TextBuffer};

const TEXT_BYTES_MAX: usize = 64 << 10;
const EXCHANGES_MAX: u32 = 64;

/// The variable parts of a Login Request.
#[derive(Debug)]
pub(super) struct Say {
    pub(super) stage: u8,
    pub(super) transit: Option<u8>,
    pub(super) text: Vec<u8>,
}

/// What follows from a response.
#[derive(Debug)]
pub(super) enum Step {
    Say(Say),
    Done {
        tsih: Tsih,
        parameters: Box<Parameters>,
        portal_group_tag: Option<u16>,
    },
}

/// Why a login fails.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: Option<LoginStatus>,
    pub(super) reason: String,
    pub(super) redirect: Option<String>,
}

fn failure(reason: impl Into<String>) -> Failure {
    Failure {
        status: None,
        reason: reason.into(),
        redirect: None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// AuthMethod was offered.
    Method,
    /// CHAP_A was offered.
    Algorithm,
    /// CHAP_R was sent; the target's own is awaited if it must prove itself.
    Response(ChapAlgorithm),
    /// Nothing to prove any more.
    Done,
}

pub struct LoginInitiator {
    config: InitiatorConfig,
    stage: u8,
    proof: Proof,
    negotiation: Negotiation,
    offered: bool,
    exchanges: u32,
    incoming: TextBuffer,
    portal_group_tag: Option<u16>,
}

impl LoginInitiator {
    pub(super) fn new(config: &InitiatorConfig) -> Self {
        Self {
            config: config.clone(),
            stage: 0,
            proof: Proof::Method,
            negotiation: Negotiation::new(config.offer.clone(), config.target_name.is_none()),
            offered: false,
            exchanges: 0,
            incoming: TextBuffer::new(TEXT_BYTES_MAX),
            portal_group_tag: None,
        }
    }

    /// The first request.
    pub(super) fn first(&mut self) -> Say {
        let mut text = Vec::new();
        text::push(&mut text, "InitiatorName", &self.config.initiator_name);
        if let Some(alias) = &self.config.initiator_alias {
            text::push(&mut text, "InitiatorAlias", alias);
        }
        match &self.config.target_name {
            Some(name) => {
                text::push(&mut text, "TargetName", name);
                text::push(&mut text, "SessionType", "Normal");
            }
            None => text::push(&mut text, "SessionType", "Discovery"),
        }
        let (method, transit) = match &self.config.chap {
            None => ("None", Some(1)),
            Some(InitiatorChap { target: None, .. }) => ("CHAP,None", None),
            Some(InitiatorChap {
                target: Some(_), ..
            }) => ("CHAP", None),
        };
        text::push(&mut text, "AuthMethod", method);
        Say {
            stage: 0,
            transit,
            text,
        }
    }

    pub(super) fn response(
        &mut self,
        response: &LoginResponse,
        segment: &[u8],
    ) -> Result<Step, Failure> {
        self.exchanges = self.exchanges.saturating_add(1);
        if self.exchanges > EXCHANGES_MAX {
            return Err(failure("the login takes too many exchanges"));
        }
        self.incoming
            .append(segment)
            .map_err(|violation| failure(violation.to_string()))?;
        if response.continues {
            return Ok(Step::Say(Say {
                stage: self.stage,
                transit: None,
                text: Vec::new(),
            }));
        }
        let text = self.incoming.take();
        let pairs = text::pairs(&text).map_err(|violation| failure(violation.to_string()))?;
        let status = LoginStatus::from_code(response.status_class, response.status_detail);
        if status != LoginStatus::Success {
            let address = pairs.iter().find(|(key, _)| *key == "TargetAddress");
            return Err(Failure {
                status: Some(status),
                reason: status.to_string(),
                redirect: address.map(|(_, address)| (*address).into()),
            });
        }
        if response.stage.0 != self.stage {
            return Err(failure("the target answers for another stage"));
        }
        let mut out = Vec::new();
        let wants = if self.stage == 0 {
            self.security(&pairs, &mut out)?
        } else {
            self.conclude(&pairs)?;
            Some(StageBits::FULL_FEATURE.0)
        };
        if response.transit {
            return self.transit(response);
        }
        Ok(Step::Say(Say {
            stage: self.stage,
            transit: wants,
            text: out,
        }))
    }

    /// The target changes the stage, as we asked it to.
    fn transit(&mut self, response: &LoginResponse) -> Result<Step, Failure> {
        if self.proof != Proof::Done {
            return Err(failure(
                "the target leaves the security stage without its proof",
            ));
        }
        match (self.stage, response.next_stage) {
            (0, StageBits::OPERATIONAL) if !self.offered => {
                self.stage = 1;
                self.offered = true;
                let mut text = Vec::new();
                for (name, value) in self.negotiation.offers() {
                    text::push(&mut text, name, &value);
                }
                // Others answer that they do not know the key, and `conclude` passes that over.
                if let Some(value) = self.config.nic.as_ref().and_then(NicRecord::value) {
                    text::push(&mut text, NIC, &value);
                }
                let transit = Some(StageBits::FULL_FEATURE.0);
                Ok(Step::Say(Say {
                    stage: 1,
                    transit,
                    text,
                }))
            }
            (1, StageBits::FULL_FEATURE) => {
                if self.negotiation.missing_digest() {
                    return Err(failure("a digest is required and was not agreed upon"));
                }
                Ok(Step::Done {
                    tsih: response.tsih,
                    parameters: Box::new(self.negotiation.parameters()),
                    portal_group_tag: self.portal_group_tag,
                })
            }
            _ => Err(failure("the target goes to a stage that was not asked for")),
        }
    }

    fn conclude(&mut self, pairs: &[(&str, &str)]) -> Result<(), Failure> {
        for (name, value) in pairs {
            if *name == "TargetPortalGroupTag" {
                self.portal_group_tag = text::number(value).and_then(|tag| u16::try_from(tag).ok());
                continue;
            }
            self.negotiation
                .conclude(name, value)
                .map_err(|violation| failure(format!("{name}={value}: {violation}")))?;
        }
        Ok(())
    }

    /// One step of the security stage; answers the stage that we want next.
    fn security(
        &mut self,
        pairs: &[(&str, &str)],
        out: &mut Vec<u8>,
    ) -> Result<Option<u8>, Failure> {
        let value = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, v)| *v);
        if let Some(tag) = value("TargetPortalGroupTag") {
            self.portal_group_tag = text::number(tag).and_then(|tag| u16::try_from(tag).ok());
        }
        let next = Some(StageBits::OPERATIONAL.0);
        let Some(chap) = self.config.chap.clone() else {
            return match value("AuthMethod") {
                Some("None") | None => {
                    self.proof = Proof::Done;
                    Ok(next)
                }
                Some(_) => Err(failure("the target asks for authentication")),
            };
        };
        match self.proof {
            Proof::Method => match value("AuthMethod") {
                Some("CHAP") => {
                    let codes: Vec<String> = chap
                        .algorithms
                        .iter()
                        .map(|code| (*code as u8).to_string())
                        .collect();
                    text::push(out, "CHAP_A", &codes.join(","));
                    self.proof = Proof::Algorithm;
                    Ok(None)
                }
                Some("None") if chap.target.is_none() => {
                    self.proof = Proof::Done;
                    Ok(next)
                }
                Some(_) => Err(failure(
                    "the target does not take the authentication offered",
                )),
                None => Ok(None),
            },
            Proof::Algorithm => {
                let algorithm = value("CHAP_A")
                    .and_then(text::number)
                    .and_then(ChapAlgorithm::from_code)
                    .filter(|chosen| chap.algorithms.contains(chosen))
                    .ok_or_else(|| failure("the target chose no CHAP algorithm of ours"))?;
                let identifier = value("CHAP_I")
                    .and_then(text::number)
                    .and_then(|identifier| u8::try_from(identifier).ok())
                    .ok_or_else(|| failure("CHAP_I of the target is missing or wrong"))?;
                let challenge = value("CHAP_C")
                    .and_then(|challenge| text::binary(challenge, CHALLENGE_BYTES_MAX))
                    .ok_or_else(|| failure("CHAP_C of the target is missing or wrong"))?;
                self.prove(&chap, algorithm, identifier, &challenge, out)?;
                Ok(next)
            }
            Proof::Response(algorithm) => {
                let Some(target) = &chap.target else {
                    self.proof = Proof::Done;
                    return Ok(next);
                };
                let named = target.user.is_none() || target.user.as_deref() == value("CHAP_N");
                let response = value("CHAP_R")
                    .and_then(|response| text::binary(response, CHALLENGE_BYTES_MAX))
                    .ok_or_else(|| failure("the target does not prove itself"))?;
                let (identifier, challenge) = (target.identifier, &target.challenge);
                if !named || !algorithm.verify(identifier, &target.secret, challenge, &response) {
                    return Err(failure("the target's proof is wrong"));
                }
                self.proof = Proof::Done;
                Ok(next)
            }
            Proof::Done => Ok(next),
        }
    }

    fn prove(
        &mut self,
        chap: &InitiatorChap,
        algorithm: ChapAlgorithm,
        identifier: u8,
        challenge: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if let Some(target) = &chap.target {
            if challenge == target.challenge {
                return Err(failure("the target reflects our challenge"));
            }
            if target.secret.same_as(&chap.secret) {
                return Err(failure(
                    "both directions of CHAP are configured with one secret",
                ));
            }
            text::push(out, "CHAP_I", &target.identifier.to_string());
            text::push(out, "CHAP_C", &text::hexadecimal(&target.challenge));
        }
        let response = algorithm.response(identifier, &chap.secret, challenge);
        text::push(out, "CHAP_N", &chap.user);
        text::push(out, "CHAP_R", &text::hexadecimal(&response));
        self.proof = Proof::Response(algorithm);
        Ok(())
    }
}
