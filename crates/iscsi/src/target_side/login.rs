//! The target's half of a login: stages, names, CHAP, operational negotiation.
//!
//! ```text
//!   first request (names) --admit--> security --CHAP--> operational negotiation --> ready
//!                        \___ CSG=1, only where no authentication is asked for ___/
//! ```
//!
//! **Invariants.** I1: `ready` is reached only when `Proof` is `Done`; nothing else sets it but a
//! verified response, or terms that ask for none. I2: text of a request chain is at most
//! [`LOGIN_TEXT_BYTES_MAX`].
//!
//! **Failure.** Every refusal carries its exact status and a reason for people; nothing fails open.
//!
//! Spec: RFC 7143 6.3 "Login Phase", 11.12 "Login Request", 11.13 "Login Response", 12 "iSCSI
//! Security Text Keys and Authentication Methods".

use super::event::{LoginOutcome, SessionType};
use super::policy::{Authentication, ChapTerms, LoginAsk, LoginPolicy, LoginRefusal, LoginTerms};
use crate::bhs::{LoginRequest, StageBits};
use crate::chap::{CHALLENGE_BYTES, CHALLENGE_BYTES_MAX, ChapAlgorithm};
use crate::extension_keys::nic::{NIC, NicRecord};
use crate::ids::{Cid, Isid, Tsih};
use crate::login_status::LoginStatus;
use crate::negotiation::{KeyId, Kind, Negotiation, find};
use crate::text::{self, TextBuffer};
use crate::violation::Violation;
use subtle::ConstantTimeEq;

/// Most text of one chain of login requests, in bytes.
pub(crate) const LOGIN_TEXT_BYTES_MAX: usize = 16 << 10;
/// Longest data segment of a login PDU, either way, in bytes.
pub(crate) const LOGIN_SEGMENT_BYTES_MAX: usize = 8192;
/// Requests that one login may take.
const REQUESTS_MAX: u32 = 64;
/// Longest iSCSI name, in bytes.
const NAME_BYTES_MAX: usize = 223;

/// What the connection does after a request.
#[derive(Debug)]
pub(crate) enum LoginStep {
    /// Send this.
    Respond(Answer),
    /// The login may be completed; send this then.
    Ready(Answer, Box<LoginOutcome>),
}

/// The variable parts of a Login Response.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) stage: u8,
    /// Stage to go to: sets the T bit.
    pub(crate) transit: Option<u8>,
    pub(crate) continues: bool,
    pub(crate) text: Vec<u8>,
}

/// How far the initiator has proved itself.
enum Proof {
    /// Names are not known yet.
    Unknown,
    /// AuthMethod is expected.
    Method(ChapTerms),
    /// CHAP_A is expected.
    Algorithm(ChapTerms),
    /// CHAP_N and CHAP_R are expected.
    Response {
        terms: ChapTerms,
        algorithm: ChapAlgorithm,
        identifier: u8,
        challenge: [u8; CHALLENGE_BYTES],
    },
    /// Nothing more is asked for.
    Done { user: Option<String>, mutual: bool },
}

/// One login.
pub(crate) struct LoginTarget {
    identity: Option<(Isid, Tsih, Cid)>,
    stage: u8,
    requests: u32,
    incoming: TextBuffer,
    outgoing: Vec<u8>,
    transit: Option<u8>,
    proof: Proof,
    names: Option<Names>,
    negotiation: Option<Negotiation>,
    /// TargetPortalGroupTag and TargetAlias that are still to be declared.
    group_tag: Option<u16>,
    alias: Option<String>,
    declared_length: bool,
    nic: Option<Box<NicRecord>>,
}

/// What the first text says.
#[derive(Clone)]
pub(crate) struct Names {
    pub(crate) initiator: String,
    pub(crate) initiator_alias: Option<String>,
    pub(crate) session_type: SessionType,
    pub(crate) target: Option<String>,
}

fn refuse(status: LoginStatus, reason: impl Into<String>) -> LoginRefusal {
    LoginRefusal::new(status, reason)
}

fn initiator_error(violation: Violation) -> LoginRefusal {
    refuse(LoginStatus::InitiatorError, violation.to_string())
}

fn unproved(reason: impl Into<String>) -> LoginRefusal {
    refuse(LoginStatus::AuthenticationFailure, reason)
}

impl LoginTarget {
    pub(crate) fn new() -> Self {
        Self {
            identity: None,
            stage: StageBits::SECURITY.0,
            requests: 0,
            incoming: TextBuffer::new(LOGIN_TEXT_BYTES_MAX),
            outgoing: Vec::new(),
            transit: None,
            proof: Proof::Unknown,
            names: None,
            negotiation: None,
            group_tag: None,
            alias: None,
            declared_length: false,
            nic: None,
        }
    }

    /// Names that the initiator gave, once it has.
    pub(crate) fn names(&self) -> Option<&Names> {
        self.names.as_ref()
    }

    /// One request with its data segment.
    pub(crate) fn request(
        &mut self,
        request: &LoginRequest,
        segment: &[u8],
        policy: &mut dyn LoginPolicy,
    ) -> Result<LoginStep, LoginRefusal> {
        self.check(request)?;
        if !self.outgoing.is_empty() {
            // Our answer is a chain, and this asks for its next part.
            if !segment.is_empty() {
                return Err(refuse(
                    LoginStatus::InitiatorError,
                    "text in a request that only continues our answer",
                ));
            }
            return Ok(self.answer());
        }
        self.incoming.append(segment).map_err(initiator_error)?;
        if request.continues {
            return Ok(LoginStep::Respond(Answer {
                stage: self.stage,
                ..Answer::default()
            }));
        }
        let text = self.incoming.take();
        let pairs = text::pairs(&text).map_err(initiator_error)?;
        if self.names.is_none() {
            self.admit(&pairs, policy)?;
        }
        if self.stage == StageBits::SECURITY.0 {
            self.security(&pairs, policy)?;
            if request.transit && matches!(self.proof, Proof::Method(_)) {
                return Err(unproved(
                    "CHAP is required and the initiator offers no method",
                ));
            }
        } else {
            self.operational(&pairs)?;
        }
        self.transit = None;
        if request.transit && matches!(self.proof, Proof::Done { .. }) {
            self.transit = Some(request.next_stage.0);
        }
        Ok(self.answer())
    }

    /// The header's fields against this login.
    fn check(&mut self, request: &LoginRequest) -> Result<(), LoginRefusal> {
        let wrong = |what: &str| Err(refuse(LoginStatus::InitiatorError, what));
        self.requests = self.requests.saturating_add(1);
        if self.requests > REQUESTS_MAX {
            return wrong("the login takes too many requests");
        }
        let identity = (request.isid, request.tsih, request.cid);
        if self.identity.is_none() {
            if request.version_min > 0 {
                return Err(refuse(
                    LoginStatus::UnsupportedVersion,
                    format!(
                        "protocol version {} and up is asked for",
                        request.version_min
                    ),
                ));
            }
            if ![StageBits::SECURITY, StageBits::OPERATIONAL].contains(&request.stage) {
                return wrong("the login starts in a stage that does not exist");
            }
            self.stage = request.stage.0;
            self.identity = Some(identity);
        }
        if self.identity != Some(identity) {
            return wrong("ISID, TSIH or CID changes within the login");
        }
        if request.stage.0 != self.stage {
            return wrong("a request of another stage than the login is in");
        }
        if request.transit && request.continues {
            return wrong("T and C bits in one request");
        }
        let forward = request.next_stage == StageBits::FULL_FEATURE
            || (request.next_stage == StageBits::OPERATIONAL && self.stage == 0);
        if request.transit && !forward {
            return wrong("a next stage that does not follow this one");
        }
        Ok(())
    }

    /// The names are known: asks the policy.
    fn admit(
        &mut self,
        pairs: &[(&str, &str)],
        policy: &mut dyn LoginPolicy,
    ) -> Result<(), LoginRefusal> {
        let value = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, v)| *v);
        let missing = |name| {
            refuse(
                LoginStatus::MissingParameter,
                format!("no {name} was given"),
            )
        };
        let initiator = value("InitiatorName").ok_or_else(|| missing("InitiatorName"))?;
        let session_type = match value("SessionType") {
            None | Some("Normal") => SessionType::Normal,
            Some("Discovery") => SessionType::Discovery,
            Some(other) => {
                let reason = format!("session type {other:?}");
                return Err(refuse(LoginStatus::SessionTypeNotSupported, reason));
            }
        };
        let target = value("TargetName");
        if target.is_none() && session_type == SessionType::Normal {
            return Err(missing("TargetName"));
        }
        for name in [Some(initiator), target].into_iter().flatten() {
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                return Err(refuse(
                    LoginStatus::InitiatorError,
                    "an iSCSI name of wrong length",
                ));
            }
        }
        let initiator_alias = value("InitiatorAlias");
        // Kept before the policy speaks, so that a refusal can be logged with them.
        self.names = Some(Names {
            initiator: initiator.into(),
            initiator_alias: initiator_alias.map(Into::into),
            session_type,
            target: target.map(Into::into),
        });
        let (isid, tsih, cid) = self
            .identity
            .expect("taken from the first request of the login");
        let ask = LoginAsk {
            initiator_name: initiator,
            initiator_alias,
            session_type,
            target_name: target,
            isid,
            tsih,
            cid,
        };
        let terms: LoginTerms = policy.admit(&ask)?;
        let discovery = session_type == SessionType::Discovery;
        self.negotiation = Some(Negotiation::new(terms.offer, discovery));
        self.group_tag = target.is_some().then_some(terms.portal_group_tag);
        self.alias = terms.target_alias;
        self.proof = match terms.authentication {
            Authentication::NotRequired => Proof::Done {
                user: None,
                mutual: false,
            },
            Authentication::Chap(chap) => Proof::Method(chap),
        };
        Ok(())
    }

    fn security(
        &mut self,
        pairs: &[(&str, &str)],
        policy: &mut dyn LoginPolicy,
    ) -> Result<(), LoginRefusal> {
        for (name, value) in pairs {
            let allowed = find(name).is_none_or(|key| {
                key.kind == Kind::DeclaredText || key.id == KeyId::MaxRecvDataSegmentLength
            });
            let security = *name == "AuthMethod" || name.starts_with("CHAP_");
            if allowed && !security {
                self.negotiate(&[(*name, *value)])?;
            } else if !security {
                let reason = format!("{name} in the security stage");
                return Err(refuse(LoginStatus::InitiatorError, reason));
            }
        }
        let keys = SecurityKeys::of(pairs)?;
        let proof = core::mem::replace(&mut self.proof, Proof::Unknown);
        self.proof = self.prove(proof, &keys, policy)?;
        Ok(())
    }

    /// One step of the authentication.
    fn prove(
        &mut self,
        proof: Proof,
        keys: &SecurityKeys<'_>,
        policy: &mut dyn LoginPolicy,
    ) -> Result<Proof, LoginRefusal> {
        let lists = |list: &str, wanted: &str| list.split(',').any(|offered| offered == wanted);
        match proof {
            Proof::Unknown => Err(unproved("authentication before the names are known")),
            Proof::Done { user, mutual } => {
                match keys.method {
                    Some(offered) if user.is_none() && lists(offered, "None") => {
                        text::push(&mut self.outgoing, "AuthMethod", "None");
                    }
                    Some(_) => {
                        return Err(unproved(
                            "the initiator insists on authentication, and none is configured for it",
                        ));
                    }
                    None if keys.any_chap() => {
                        return Err(unproved("CHAP keys where none are expected"));
                    }
                    None => {}
                }
                Ok(Proof::Done { user, mutual })
            }
            Proof::Method(terms) => match keys.method {
                None if keys.any_chap() => Err(unproved("CHAP keys before AuthMethod")),
                None => Ok(Proof::Method(terms)),
                Some(offered) if lists(offered, "CHAP") => {
                    text::push(&mut self.outgoing, "AuthMethod", "CHAP");
                    // Some initiators send CHAP_A at once.
                    match keys.algorithms {
                        Some(_) => self.challenge(terms, keys, policy),
                        None => Ok(Proof::Algorithm(terms)),
                    }
                }
                Some(_) => Err(unproved(
                    "CHAP is required and the initiator does not offer it",
                )),
            },
            Proof::Algorithm(terms) => self.challenge(terms, keys, policy),
            Proof::Response {
                terms,
                algorithm,
                identifier,
                challenge,
            } => {
                let own = Challenge {
                    algorithm,
                    identifier,
                    challenge,
                };
                self.verify(&terms, &own, keys)
            }
        }
    }

    /// CHAP_A is here: answers with a fresh challenge.
    fn challenge(
        &mut self,
        terms: ChapTerms,
        keys: &SecurityKeys<'_>,
        policy: &mut dyn LoginPolicy,
    ) -> Result<Proof, LoginRefusal> {
        let Some(offered) = keys.algorithms else {
            return Err(unproved("CHAP_A is missing"));
        };
        let algorithm = offered
            .split(',')
            .filter_map(|code| ChapAlgorithm::from_code(text::number(code)?))
            .find(|algorithm| terms.algorithms.contains(algorithm))
            .ok_or_else(|| unproved(format!("no CHAP algorithm of {offered} is allowed")))?;
        let mut random = [0; CHALLENGE_BYTES.saturating_add(1)];
        policy.random(&mut random);
        let [identifier, challenge @ ..] = random;
        let out = &mut self.outgoing;
        text::push(out, "CHAP_A", &(algorithm as u8).to_string());
        text::push(out, "CHAP_I", &identifier.to_string());
        text::push(out, "CHAP_C", &text::hexadecimal(&challenge));
        Ok(Proof::Response {
            terms,
            algorithm,
            identifier,
            challenge,
        })
    }

    /// CHAP_N and CHAP_R are here: the one place where an initiator becomes authenticated.
    fn verify(
        &mut self,
        terms: &ChapTerms,
        own: &Challenge,
        keys: &SecurityKeys<'_>,
    ) -> Result<Proof, LoginRefusal> {
        let (Some(user), Some(response)) = (keys.name, keys.response) else {
            return Err(unproved("CHAP_N or CHAP_R is missing"));
        };
        let response = text::binary(response, CHALLENGE_BYTES_MAX)
            .ok_or_else(|| unproved("CHAP_R is not a binary value"))?;
        let Challenge {
            algorithm,
            identifier,
            challenge,
        } = own;
        let right = algorithm.verify(*identifier, &terms.secret, challenge, &response);
        let named = bool::from(user.as_bytes().ct_eq(terms.user.as_bytes()));
        if !(right && named) {
            return Err(unproved(if named {
                "wrong CHAP secret"
            } else {
                "wrong CHAP name"
            }));
        }
        let mutual = self.prove_ourselves(terms, own, keys)?;
        Ok(Proof::Done {
            user: Some(terms.user.clone()),
            mutual,
        })
    }

    /// Answers the initiator's own challenge, if it sent one.
    fn prove_ourselves(
        &mut self,
        terms: &ChapTerms,
        own: &Challenge,
        keys: &SecurityKeys<'_>,
    ) -> Result<bool, LoginRefusal> {
        let (identifier, challenge) = match (keys.identifier, keys.challenge) {
            (None, None) => {
                return match &terms.mutual {
                    Some(mutual) if mutual.required => Err(unproved(
                        "mutual CHAP is required and the initiator does not ask for it",
                    )),
                    Some(_) | None => Ok(false),
                };
            }
            (Some(identifier), Some(challenge)) => (identifier, challenge),
            (Some(_), None) | (None, Some(_)) => {
                return Err(unproved("CHAP_I and CHAP_C go together"));
            }
        };
        let Some(mutual) = &terms.mutual else {
            return Err(unproved("mutual CHAP is asked for and not configured"));
        };
        let identifier = text::number(identifier)
            .and_then(|identifier| u8::try_from(identifier).ok())
            .ok_or_else(|| unproved("CHAP_I is not a number from 0 to 255"))?;
        let challenge = text::binary(challenge, CHALLENGE_BYTES_MAX)
            .ok_or_else(|| unproved("CHAP_C is not a binary value of at most 1024 bytes"))?;
        // RFC 7143 9.2.1 "CHAP Considerations": our own challenge comes back, or a secret serves
        // both directions.
        if challenge == own.challenge {
            return Err(unproved("the initiator reflects our challenge"));
        }
        if mutual.secret.same_as(&terms.secret) {
            return Err(unproved(
                "both directions of CHAP are configured with one secret",
            ));
        }
        let response = own
            .algorithm
            .response(identifier, &mutual.secret, &challenge);
        text::push(&mut self.outgoing, "CHAP_N", &mutual.user);
        text::push(&mut self.outgoing, "CHAP_R", &text::hexadecimal(&response));
        Ok(true)
    }

    fn operational(&mut self, pairs: &[(&str, &str)]) -> Result<(), LoginRefusal> {
        if !matches!(self.proof, Proof::Done { .. }) {
            return Err(unproved(
                "the initiator skips the security stage, and CHAP is required",
            ));
        }
        // A declaration: it has no answer, and nonsense is as if nothing had been said.
        let said = pairs.iter().find(|(key, _)| *key == NIC);
        if let Some((_, value)) = said.filter(|_| self.nic.is_none()) {
            self.nic = NicRecord::parse(value).map(Box::new);
        }
        let others: Vec<(&str, &str)> = pairs.iter().copied().filter(|it| it.0 != NIC).collect();
        self.negotiate(&others)
    }

    fn negotiate(&mut self, pairs: &[(&str, &str)]) -> Result<(), LoginRefusal> {
        match &mut self.negotiation {
            Some(negotiation) => negotiation
                .answer_all(pairs, &mut self.outgoing)
                .map_err(initiator_error),
            None => Err(refuse(
                LoginStatus::TargetError,
                "negotiation before admission",
            )),
        }
    }

    /// The next response.
    fn answer(&mut self) -> LoginStep {
        self.declare();
        if self.outgoing.len() > LOGIN_SEGMENT_BYTES_MAX {
            let rest = self.outgoing.split_off(LOGIN_SEGMENT_BYTES_MAX);
            let text = core::mem::replace(&mut self.outgoing, rest);
            return LoginStep::Respond(Answer {
                stage: self.stage,
                transit: None,
                continues: true,
                text,
            });
        }
        let text = core::mem::take(&mut self.outgoing);
        let (stage, transit) = (self.stage, self.transit.take());
        let answer = Answer {
            stage,
            transit,
            continues: false,
            text,
        };
        match transit {
            Some(next) if next == StageBits::FULL_FEATURE.0 => match self.outcome() {
                Some(outcome) => LoginStep::Ready(answer, Box::new(outcome)),
                None => LoginStep::Respond(Answer {
                    transit: None,
                    ..answer
                }),
            },
            Some(next) => {
                self.stage = next;
                LoginStep::Respond(answer)
            }
            None => LoginStep::Respond(answer),
        }
    }

    /// What we declare without being asked.
    fn declare(&mut self) {
        if let Some(tag) = self.group_tag.take() {
            text::push(&mut self.outgoing, "TargetPortalGroupTag", &tag.to_string());
        }
        if self.stage != StageBits::OPERATIONAL.0 {
            return;
        }
        if let Some(alias) = self.alias.take() {
            text::push(&mut self.outgoing, "TargetAlias", &alias);
        }
        if let Some(negotiation) = &self.negotiation
            && !self.declared_length
        {
            self.declared_length = true;
            let length = negotiation.offer().max_recv_data_segment_length.to_string();
            text::push(&mut self.outgoing, "MaxRecvDataSegmentLength", &length);
        }
    }

    /// The result. `None` if anything is missing: then there is no full feature phase (I1).
    fn outcome(&self) -> Option<LoginOutcome> {
        let (isid, tsih, cid) = self.identity?;
        let names = self.names.clone()?;
        let Proof::Done { user, mutual } = &self.proof else {
            return None;
        };
        let mut parameters = self.negotiation.as_ref()?.parameters();
        if !self.declared_length {
            parameters.own_max_recv_data_segment_length = 8192;
        }
        Some(LoginOutcome {
            initiator_name: names.initiator,
            initiator_alias: names.initiator_alias,
            session_type: names.session_type,
            target_name: names.target,
            isid,
            tsih,
            cid,
            chap_user: user.clone(),
            mutual: *mutual,
            parameters,
            nic: self.nic.clone(),
        })
    }

    /// Bytes of text that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.incoming
            .capacity()
            .saturating_add(self.outgoing.capacity())
    }

    /// A digest that the target must have was not agreed upon.
    pub(crate) fn missing_digest(&self) -> bool {
        self.negotiation
            .as_ref()
            .is_some_and(Negotiation::missing_digest)
    }
}

struct Challenge {
    algorithm: ChapAlgorithm,
    identifier: u8,
    challenge: [u8; CHALLENGE_BYTES],
}

/// The security keys of one text; each at most once.
#[derive(Default)]
struct SecurityKeys<'a> {
    method: Option<&'a str>,
    algorithms: Option<&'a str>,
    identifier: Option<&'a str>,
    challenge: Option<&'a str>,
    name: Option<&'a str>,
    response: Option<&'a str>,
}

impl<'a> SecurityKeys<'a> {
    fn of(pairs: &[(&'a str, &'a str)]) -> Result<Self, LoginRefusal> {
        let mut keys = Self::default();
        for (name, value) in pairs {
            let place = match *name {
                "AuthMethod" => &mut keys.method,
                "CHAP_A" => &mut keys.algorithms,
                "CHAP_I" => &mut keys.identifier,
                "CHAP_C" => &mut keys.challenge,
                "CHAP_N" => &mut keys.name,
                "CHAP_R" => &mut keys.response,
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(refuse(
                    LoginStatus::InitiatorError,
                    format!("{name} is sent twice"),
                ));
            }
        }
        Ok(keys)
    }

    fn any_chap(&self) -> bool {
        [
            self.algorithms,
            self.identifier,
            self.challenge,
            self.name,
            self.response,
        ]
        .iter()
        .any(Option::is_some)
    }
}
