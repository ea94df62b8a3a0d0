//! Operational negotiation: one table of every key, and what each side makes of an offer.
//!
//! **Contract.** [`Negotiation`] serves both roles. The responder gives every key that needs an
//! answer exactly one. The offering side takes only answers that the key's result function allows.
//!
//! Spec: RFC 7143 6.2 "Text Mode Negotiation", 13 "Login/Text Operational Text Keys".

use crate::parameters::{DigestChoice, LENGTH_MAX, Offer, Parameters};
use crate::text;
use crate::violation::{Violation, ViolationKind};

/// When a key may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Security negotiation only.
    Security,
    /// During login (LO, IO).
    Login,
    /// In the full feature phase only (FFPO).
    FullFeature,
    /// Any time (ALL).
    Any,
}

/// Who may send a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sender {
    /// Either side.
    Both,
    /// Initiator.
    Initiator,
    /// Target.
    Target,
}

/// What a key's value belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One connection (CO).
    Connection,
    /// The session (SW).
    Session,
}

/// How the result of two values is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Yes if both say Yes.
    And,
    /// Yes if one says Yes.
    Or,
    /// The smaller number.
    Smaller,
    /// The larger number.
    Larger,
}

/// What a key's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A list, of which the responder takes its first choice: `None`, `CRC32C`.
    Digest,
    /// A list with these values; the first of them is all that we take.
    List(&'static [&'static str]),
    /// `Yes` or `No`.
    Boolean(Rule),
    /// A number from `min` to `max`.
    Number {
        /// Smallest that may be offered.
        min: u32,
        /// Largest that may be offered.
        max: u32,
        /// Result function.
        rule: Rule,
    },
    /// A number that is declared, not negotiated.
    DeclaredNumber {
        /// Smallest that may be declared.
        min: u32,
        /// Largest that may be declared.
        max: u32,
    },
    /// A text that is declared, not negotiated.
    DeclaredText,
    /// A key of RFC 3720 that RFC 7143 took away; answered with this constant, never NotUnderstood.
    Obsolete(&'static str),
    /// Handled by the security stage or by SendTargets.
    Elsewhere,
}

/// One key of the standard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The key's number in this program's tables.
    pub id: KeyId,
    /// As it stands in a text segment, before the `=`.
    pub name: &'static str,
    /// What the value belongs to.
    pub scope: Scope,
    /// When it may be used.
    pub phase: Phase,
    /// Who may send it.
    pub sender: Sender,
    /// What its value is.
    pub kind: Kind,
    /// Has a meaning in a discovery session.
    pub discovery: bool,
    /// Value in force without negotiation.
    pub default: &'static str,
    /// Clause of RFC 7143 (or the RFC named).
    pub clause: &'static str,
}

macro_rules! keys {
    ($($id:ident: $name:literal, $scope:ident, $phase:ident, $sender:ident, $kind:expr, $discovery:literal, $default:literal, $clause:literal;)*) => {
        /// Keys by name.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum KeyId { $(#[doc = $name] $id,)* }

        /// Every key.
        pub const KEYS: &[Key] = &[$(Key {
            id: KeyId::$id, name: $name, scope: Scope::$scope, phase: Phase::$phase,
            sender: Sender::$sender, kind: $kind, discovery: $discovery, default: $default,
            clause: $clause,
        },)*];
    };
}

const LENGTH: Kind = Kind::Number {
    min: 512,
    max: LENGTH_MAX,
    rule: Rule::Smaller,
};
const AND: Kind = Kind::Boolean(Rule::And);
const OR: Kind = Kind::Boolean(Rule::Or);

keys! {
    HeaderDigest: "HeaderDigest", Connection, Login, Both, Kind::Digest, true, "None", "13.1";
    DataDigest: "DataDigest", Connection, Login, Both, Kind::Digest, true, "None", "13.1";
    MaxConnections: "MaxConnections", Session, Login, Both, Kind::Number { min: 1, max: 65535, rule: Rule::Smaller }, false, "1", "13.2";
    SendTargets: "SendTargets", Session, FullFeature, Initiator, Kind::Elsewhere, true, "", "13.3";
    TargetName: "TargetName", Session, Login, Both, Kind::DeclaredText, true, "", "13.4";
    InitiatorName: "InitiatorName", Session, Login, Initiator, Kind::DeclaredText, true, "", "13.5";
    TargetAlias: "TargetAlias", Session, Any, Target, Kind::DeclaredText, true, "", "13.6";
    InitiatorAlias: "InitiatorAlias", Session, Any, Initiator, Kind::DeclaredText, true, "", "13.7";
    TargetAddress: "TargetAddress", Session, Any, Target, Kind::DeclaredText, true, "", "13.8";
    TargetPortalGroupTag: "TargetPortalGroupTag", Session, Login, Target, Kind::DeclaredNumber { min: 0, max: 65535 }, true, "", "13.9";
    InitialR2T: "InitialR2T", Session, Login, Both, OR, false, "Yes", "13.10";
    ImmediateData: "ImmediateData", Session, Login, Both, AND, false, "Yes", "13.11";
    MaxRecvDataSegmentLength: "MaxRecvDataSegmentLength", Connection, Any, Both, Kind::DeclaredNumber { min: 512, max: LENGTH_MAX }, true, "8192", "13.12";
    MaxBurstLength: "MaxBurstLength", Session, Login, Both, LENGTH, false, "262144", "13.13";
    FirstBurstLength: "FirstBurstLength", Session, Login, Both, LENGTH, false, "65536", "13.14";
    DefaultTime2Wait: "DefaultTime2Wait", Session, Login, Both, Kind::Number { min: 0, max: 3600, rule: Rule::Larger }, true, "2", "13.15";
    DefaultTime2Retain: "DefaultTime2Retain", Session, Login, Both, Kind::Number { min: 0, max: 3600, rule: Rule::Smaller }, true, "20", "13.16";
    MaxOutstandingR2T: "MaxOutstandingR2T", Session, Login, Both, Kind::Number { min: 1, max: 65535, rule: Rule::Smaller }, false, "1", "13.17";
    DataPduInOrder: "DataPDUInOrder", Session, Login, Both, OR, false, "Yes", "13.18";
    DataSequenceInOrder: "DataSequenceInOrder", Session, Login, Both, OR, false, "Yes", "13.19";
    ErrorRecoveryLevel: "ErrorRecoveryLevel", Session, Login, Both, Kind::Number { min: 0, max: 2, rule: Rule::Smaller }, true, "0", "13.20";
    SessionType: "SessionType", Session, Login, Initiator, Kind::DeclaredText, true, "Normal", "13.21";
    TaskReporting: "TaskReporting", Session, Login, Both, Kind::List(&["RFC3720", "ResponseFence", "FastAbort"]), false, "RFC3720", "13.23";
    IfMarker: "IFMarker", Connection, Login, Both, Kind::Obsolete("No"), true, "No", "13.25";
    OfMarker: "OFMarker", Connection, Login, Both, Kind::Obsolete("No"), true, "No", "13.25";
    IfMarkInt: "IFMarkInt", Connection, Login, Both, Kind::Obsolete("Irrelevant"), true, "", "13.25";
    OfMarkInt: "OFMarkInt", Connection, Login, Both, Kind::Obsolete("Irrelevant"), true, "", "13.25";
    NodeArchitecture: "X#NodeArchitecture", Session, Login, Both, Kind::DeclaredText, true, "", "13.24";
    ProtocolLevel: "iSCSIProtocolLevel", Session, Login, Both, Kind::Number { min: 0, max: 31, rule: Rule::Smaller }, false, "1", "RFC 7144 7.1";
    AuthMethod: "AuthMethod", Connection, Security, Both, Kind::Elsewhere, true, "None", "12.1";
    ChapA: "CHAP_A", Connection, Security, Both, Kind::Elsewhere, true, "", "12.1.3";
    ChapI: "CHAP_I", Connection, Security, Both, Kind::Elsewhere, true, "", "12.1.3";
    ChapC: "CHAP_C", Connection, Security, Both, Kind::Elsewhere, true, "", "12.1.3";
    ChapN: "CHAP_N", Connection, Security, Both, Kind::Elsewhere, true, "", "12.1.3";
    ChapR: "CHAP_R", Connection, Security, Both, Kind::Elsewhere, true, "", "12.1.3";
}

/// The key of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Which side of the connection we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// We answer offers.
    Target,
    /// We make offers.
    Initiator,
}

/// What we say to an offer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Nothing: the key was a declaration.
    Silent,
    /// This value.
    Value(String),
}

const REJECT: &str = "Reject";
const IRRELEVANT: &str = "Irrelevant";
const NOT_UNDERSTOOD: &str = "NotUnderstood";

/// The operational negotiation of one login.
#[derive(Clone, Debug)]
pub struct Negotiation {
    offer: Offer,
    discovery: bool,
    /// One bit for each key of [`KEYS`] that the peer has sent.
    seen: u64,
    parameters: Parameters,
}

impl Negotiation {
    /// Nothing negotiated yet: the standard's defaults hold.
    #[must_use]
    pub fn new(offer: Offer, discovery: bool) -> Self {
        let parameters = Parameters {
            own_max_recv_data_segment_length: offer.max_recv_data_segment_length,
            ..Parameters::default()
        };
        Self {
            offer,
            discovery,
            seen: 0,
            parameters,
        }
    }

    /// What we offer.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// The result so far, made consistent.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        let mut parameters = self.parameters.clone();
        // 13.14: FirstBurstLength MUST NOT exceed MaxBurstLength, be it by default.
        parameters.first_burst_length = parameters
            .first_burst_length
            .min(parameters.max_burst_length);
        parameters
    }

    /// A digest that we must have was not agreed upon.
    #[must_use]
    pub fn missing_digest(&self) -> bool {
        let missing = |choice, agreed: bool| choice == DigestChoice::Required && !agreed;
        missing(self.offer.header_digest, self.parameters.header_digest)
            || missing(self.offer.data_digest, self.parameters.data_digest)
    }

    /// Answers all pairs of one text of the initiator into `out`.
    ///
    /// # Errors
    /// A key that the initiator may not send (now), or sends twice.
    pub fn answer_all(
        &mut self,
        pairs: &[(&str, &str)],
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        // FirstBurstLength depends on the results of others (13.14): it comes last.
        let first_burst = |name: &str| name == "FirstBurstLength";
        let others = pairs.iter().filter(|(name, _)| !first_burst(name));
        for (name, value) in others.chain(pairs.iter().filter(|(name, _)| first_burst(name))) {
            if let Reply::Value(reply) = self.answer(name, value)? {
                text::push(out, name, &reply);
            }
        }
        Ok(())
    }

    /// Answers one pair of the initiator, in the operational stage of the login.
    ///
    /// # Errors
    /// As [`Negotiation::answer_all`].
    pub fn answer(&mut self, name: &str, value: &str) -> Result<Reply, Violation> {
        let Some(key) = find(name) else {
            // An answer to an offer that we did not make needs none itself.
            let reply = [REJECT, IRRELEVANT, NOT_UNDERSTOOD].contains(&value);
            return Ok(if reply {
                Reply::Silent
            } else {
                Reply::Value(NOT_UNDERSTOOD.into())
            });
        };
        let clause = key.clause;
        let broken = |what| Violation::new(ViolationKind::BadText, clause, what);
        if key.sender == Sender::Target {
            return Err(broken("a key that only a target may send"));
        }
        if matches!(key.phase, Phase::Security | Phase::FullFeature) {
            return Err(broken("a key that this stage does not have"));
        }
        self.mark(key).map_err(|()| broken("a key sent twice"))?;
        if !key.discovery && self.discovery {
            return Ok(Reply::Value(IRRELEVANT.into()));
        }
        Ok(self.result(key, value))
    }

    fn mark(&mut self, key: &Key) -> Result<(), ()> {
        let bit = 1u64.wrapping_shl(key.id as u32);
        if self.seen & bit != 0 {
            return Err(());
        }
        self.seen |= bit;
        Ok(())
    }

    /// The responder's result function.
    fn result(&mut self, key: &Key, value: &str) -> Reply {
        let reject = || Reply::Value(REJECT.into());
        match key.kind {
            Kind::Digest => match self.choose_digest(key.id, value) {
                Some(on) => {
                    self.set_boolean(key.id, on);
                    Reply::Value(if on { "CRC32C" } else { "None" }.into())
                }
                None => reject(),
            },
            Kind::List(ours) => match ours.first() {
                Some(first) if value.split(',').any(|offered| offered == *first) => {
                    Reply::Value((*first).into())
                }
                Some(_) | None => reject(),
            },
            Kind::Boolean(rule) => match yes_or_no(value) {
                Some(theirs) => {
                    let ours = self.own_boolean(key.id);
                    let result = if rule == Rule::And {
                        ours && theirs
                    } else {
                        ours || theirs
                    };
                    self.set_boolean(key.id, result);
                    Reply::Value(if result { "Yes" } else { "No" }.into())
                }
                None => reject(),
            },
            Kind::Number { min, max, rule } => match in_range(value, min, max) {
                Some(theirs) => self.number_result(key.id, rule, theirs),
                None => reject(),
            },
            Kind::DeclaredNumber { min, max } => match in_range(value, min, max) {
                Some(theirs) => {
                    self.set_number(key.id, theirs);
                    Reply::Silent
                }
                None => reject(),
            },
            Kind::DeclaredText | Kind::Elsewhere => Reply::Silent,
            Kind::Obsolete(constant) => Reply::Value(constant.into()),
        }
    }

    fn number_result(&mut self, id: KeyId, rule: Rule, theirs: u32) -> Reply {
        let ours = self.own_number(id);
        let mut result = if rule == Rule::Larger {
            ours.max(theirs)
        } else {
            ours.min(theirs)
        };
        if id == KeyId::FirstBurstLength {
            if self.parameters.initial_r2t && !self.parameters.immediate_data {
                return Reply::Value(IRRELEVANT.into());
            }
            result = result.min(self.parameters.max_burst_length);
        }
        self.set_number(id, result);
        Reply::Value(result.to_string())
    }

    fn choose_digest(&self, id: KeyId, value: &str) -> Option<bool> {
        let (mut none, mut crc, mut crc_first) = (false, false, false);
        for offered in value.split(',') {
            match offered {
                "None" => none = true,
                "CRC32C" => {
                    crc_first = !none;
                    crc = true;
                }
                _ => {}
            }
        }
        let choice = self.digest_choice(id);
        match choice {
            DigestChoice::Never => none.then_some(false),
            DigestChoice::Allowed if crc && crc_first => Some(true),
            DigestChoice::Allowed => none.then_some(false),
            DigestChoice::Preferred if crc => Some(true),
            DigestChoice::Preferred => none.then_some(false),
            DigestChoice::Required => crc.then_some(true),
        }
    }

    /// The offers of an initiator, in order.
    #[must_use]
    pub fn offers(&self) -> Vec<(&'static str, String)> {
        let mut out = Vec::new();
        for key in KEYS {
            if key.sender != Sender::Both || (self.discovery && !key.discovery) {
                continue;
            }
            if !matches!(key.phase, Phase::Login | Phase::Any) {
                continue;
            }
            let value = match key.kind {
                Kind::Digest => self.digest_offer(key.id).into(),
                Kind::Boolean(_) if self.own_boolean(key.id) => "Yes".into(),
                Kind::Boolean(_) => "No".into(),
                Kind::Number { .. } if key.id == KeyId::ProtocolLevel => continue,
                Kind::Number { .. } | Kind::DeclaredNumber { .. } => {
                    self.own_number(key.id).to_string()
                }
                Kind::List(_) | Kind::DeclaredText | Kind::Obsolete(_) | Kind::Elsewhere => {
                    continue;
                }
            };
            out.push((key.name, value));
        }
        out
    }

    fn digest_choice(&self, id: KeyId) -> DigestChoice {
        if id == KeyId::HeaderDigest {
            self.offer.header_digest
        } else {
            self.offer.data_digest
        }
    }

    fn digest_offer(&self, id: KeyId) -> &'static str {
        let choice = self.digest_choice(id);
        match choice {
            DigestChoice::Never => "None",
            DigestChoice::Allowed => "None,CRC32C",
            DigestChoice::Preferred => "CRC32C,None",
            DigestChoice::Required => "CRC32C",
        }
    }

    /// Takes the target's answer (or declaration).
    ///
    /// # Errors
    /// An answer that the key's result function does not allow.
    pub fn conclude(&mut self, name: &str, value: &str) -> Result<(), Violation> {
        let Some(key) = find(name) else {
            return Ok(());
        };
        let clause = key.clause;
        let broken = |what| Violation::new(ViolationKind::BadText, clause, what);
        if key.sender == Sender::Initiator {
            return Err(broken("a key that only an initiator may send"));
        }
        if key.kind == Kind::DeclaredText {
            return Ok(());
        }
        self.mark(key).map_err(|()| broken("a key sent twice"))?;
        if [REJECT, IRRELEVANT, NOT_UNDERSTOOD].contains(&value) {
            return Ok(());
        }
        let wrong = broken("an answer that the offer does not allow");
        match key.kind {
            Kind::Digest => {
                let on = match value {
                    "None" => false,
                    "CRC32C" => true,
                    _ => return Err(wrong),
                };
                if !self
                    .digest_offer(key.id)
                    .split(',')
                    .any(|ours| ours == value)
                {
                    return Err(wrong);
                }
                self.set_boolean(key.id, on);
            }
            Kind::Boolean(rule) => {
                let answer = yes_or_no(value).ok_or(wrong)?;
                let ours = self.own_boolean(key.id);
                if (rule == Rule::And && answer && !ours) || (rule == Rule::Or && !answer && ours) {
                    return Err(wrong);
                }
                self.set_boolean(key.id, answer);
            }
            Kind::Number { min, max, rule } => {
                let answer = in_range(value, min, max).ok_or(wrong)?;
                let ours = self.own_number(key.id);
                if (rule == Rule::Larger && answer < ours)
                    || (rule == Rule::Smaller && answer > ours)
                {
                    return Err(wrong);
                }
                self.set_number(key.id, answer);
            }
            Kind::DeclaredNumber { min, max } => {
                self.set_number(key.id, in_range(value, min, max).ok_or(wrong)?);
            }
            Kind::List(_) | Kind::DeclaredText | Kind::Obsolete(_) | Kind::Elsewhere => {}
        }
        Ok(())
    }

    fn own_boolean(&self, id: KeyId) -> bool {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "only the keys of kind Boolean get here"
        )]
        match id {
            KeyId::InitialR2T => self.offer.initial_r2t,
            KeyId::ImmediateData => self.offer.immediate_data,
            KeyId::DataPduInOrder => self.offer.data_pdu_in_order,
            KeyId::DataSequenceInOrder => self.offer.data_sequence_in_order,
            _ => false,
        }
    }

    fn set_boolean(&mut self, id: KeyId, on: bool) {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "only keys with two values get here"
        )]
        match id {
            KeyId::HeaderDigest => self.parameters.header_digest = on,
            KeyId::DataDigest => self.parameters.data_digest = on,
            KeyId::InitialR2T => self.parameters.initial_r2t = on,
            KeyId::ImmediateData => self.parameters.immediate_data = on,
            KeyId::DataPduInOrder => self.parameters.data_pdu_in_order = on,
            KeyId::DataSequenceInOrder => self.parameters.data_sequence_in_order = on,
            _ => {}
        }
    }

    fn own_number(&self, id: KeyId) -> u32 {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "only the keys of kind Number get here"
        )]
        match id {
            KeyId::MaxConnections => self.offer.max_connections.into(),
            KeyId::MaxRecvDataSegmentLength => self.offer.max_recv_data_segment_length,
            KeyId::MaxBurstLength => self.offer.max_burst_length,
            KeyId::FirstBurstLength => self
                .offer
                .first_burst_length
                .min(self.offer.max_burst_length),
            KeyId::DefaultTime2Wait => self.offer.default_time2wait.into(),
            KeyId::DefaultTime2Retain => self.offer.default_time2retain.into(),
            KeyId::MaxOutstandingR2T => self.offer.max_outstanding_r2t.into(),
            KeyId::ErrorRecoveryLevel => self.offer.error_recovery_level.into(),
            KeyId::ProtocolLevel => 1,
            _ => 0,
        }
    }

    fn set_number(&mut self, id: KeyId, value: u32) {
        let short = u16::try_from(value).unwrap_or(u16::MAX);
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "only keys with numbers get here"
        )]
        match id {
            KeyId::MaxConnections => self.parameters.max_connections = short,
            KeyId::MaxRecvDataSegmentLength => {
                self.parameters.peer_max_recv_data_segment_length = value;
            }
            KeyId::MaxBurstLength => self.parameters.max_burst_length = value,
            KeyId::FirstBurstLength => self.parameters.first_burst_length = value,
            KeyId::DefaultTime2Wait => self.parameters.default_time2wait = short,
            KeyId::DefaultTime2Retain => self.parameters.default_time2retain = short,
            KeyId::MaxOutstandingR2T => self.parameters.max_outstanding_r2t = short,
            KeyId::ErrorRecoveryLevel => {
                self.parameters.error_recovery_level = u8::try_from(value).unwrap_or(u8::MAX);
            }
            _ => {}
        }
    }
}

fn yes_or_no(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

fn in_range(value: &str, min: u32, max: u32) -> Option<u32> {
    let number = u32::try_from(text::number(value)?).ok()?;
    (min..=max).contains(&number).then_some(number)
}

#[cfg(test)]
mod test;
