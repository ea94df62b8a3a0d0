//! Text in full feature phase: SendTargets, keys of our own, and declarations that may change.
//!
//! One exchange at a time, as the standard has it; text in both directions may be a chain of PDUs.
//!
//! Spec: RFC 7143 11.10 "Text Request", 11.11 "Text Response", appendix C "SendTargets Operation".

use super::event::{SendTargets, SessionType, TargetEvent};
use super::output::Output;
use super::state::{ExchangeKind, FullFeature, TextExchange};
use crate::bhs::{TextRequest, TextResponse};
use crate::discovery::{self, TargetRecord};
use crate::extension_keys::{self, port};
use crate::ids::{Isid, Itt, Tsih};
use crate::negotiation::{Negotiation, Phase, Reply, find};
use crate::parameters::Offer;
use crate::text::{self, TextBuffer};
use crate::violation::{RejectReason, Violation, ViolationKind};
use units::Buf;

/// Most text of one chain of requests in full feature phase, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// What only the owner can answer.
enum Asked {
    SendTargets(SendTargets),
    Fence(Isid, Tsih),
    Ports,
}

impl Asked {
    fn event(self, itt: Itt) -> TargetEvent {
        match self {
            Self::SendTargets(scope) => TargetEvent::SendTargets { itt, scope },
            Self::Fence(isid, tsih) => TargetEvent::Fence { itt, isid, tsih },
            Self::Ports => TargetEvent::Ports { itt },
        }
    }
}

impl FullFeature {
    /// One Text Request, in its turn.
    pub(super) fn text_request(
        &mut self,
        request: &TextRequest,
        segment: &[u8],
        output: &mut Output,
    ) {
        self.open_exchange(request.itt, ExchangeKind::Text, request.immediate);
        let fresh = match (&self.text, request.ttt) {
            (Some(exchange), Some(ttt)) => exchange.ttt != ttt,
            (None, _) | (Some(_), None) => true,
        };
        let mut exchange = match self.text.take() {
            Some(exchange) if !fresh => exchange,
            Some(_) | None => TextExchange {
                ttt: self.new_ttt(),
                lun: request.lun,
                incoming: TextBuffer::new(TEXT_BYTES_MAX),
                outgoing: Vec::new(),
                last: false,
            },
        };
        exchange.last = request.last;
        if !exchange.outgoing.is_empty() && segment.is_empty() {
            self.say(request.itt, exchange, output);
            return;
        }
        exchange.outgoing.clear();
        if let Err(violation) = exchange.incoming.append(segment) {
            self.reject_text(request, violation, output);
            return;
        }
        if request.continues {
            self.send_text(request.itt, &exchange, Vec::new(), false, false, output);
            self.text = Some(exchange);
            return;
        }
        let text = exchange.incoming.take();
        match self.answer_text(&text, &mut exchange.outgoing, output) {
            Ok(Some(asked)) => {
                self.text = Some(exchange);
                output.event(asked.event(request.itt));
            }
            Ok(None) => self.say(request.itt, exchange, output),
            Err(violation) => self.reject_text(request, violation, output),
        }
    }

    /// Ends the exchange with a Reject PDU: clients that do not know a text answer drop the
    /// connection over it, while a Reject fails the one request.
    fn reject_text(&mut self, request: &TextRequest, violation: Violation, output: &mut Output) {
        self.close_exchange(request.itt, ExchangeKind::Text);
        let window = self.window();
        output.reject(
            RejectReason::ProtocolError,
            violation,
            &request.write(),
            window,
        );
    }

    /// Answers what can be answered here; what is the owner's is returned.
    fn answer_text(
        &mut self,
        text: &[u8],
        out: &mut Vec<u8>,
        output: &mut Output,
    ) -> Result<Option<Asked>, Violation> {
        let bad = |what| Violation::new(ViolationKind::BadText, "6.1 \"Text Format\"", what);
        let pairs = text::pairs(text)?;
        let discovery = self.session.session_type == SessionType::Discovery;
        let mut negotiation = Negotiation::new(Offer::default(), discovery);
        let mut asked = None;
        for (name, value) in pairs {
            if name == "SendTargets" {
                let scope = self.send_targets_scope(value);
                let scope = scope.ok_or(bad("SendTargets for what this session may not ask"))?;
                asked = Some(Asked::SendTargets(scope));
                continue;
            }
            if name == extension_keys::FENCE && !discovery {
                let session = extension_keys::parse_fence(value);
                let (isid, tsih) = session.ok_or(bad("a fence around no session"))?;
                if asked.is_some() {
                    return Err(bad("a fence together with another request"));
                }
                asked = Some(Asked::Fence(isid, tsih));
                continue;
            }
            if name == port::PORTS {
                if value != port::ASK || asked.is_some() {
                    return Err(bad("a question for ports that is none"));
                }
                asked = Some(Asked::Ports);
                continue;
            }
            let known = find(name);
            // Only keys of extensions may be unknown; they are answered NotUnderstood.
            if known.is_none() && !name.starts_with("X-") && !name.starts_with("X#") {
                return Err(bad("a key that no standard has"));
            }
            if known.is_some_and(|key| key.phase != Phase::Any) {
                text::push(out, name, "Reject");
                continue;
            }
            match negotiation.answer(name, value) {
                Ok(Reply::Silent) if name == "MaxRecvDataSegmentLength" => {
                    self.parameters.peer_max_recv_data_segment_length =
                        negotiation.parameters().peer_max_recv_data_segment_length;
                    output.event(TargetEvent::ParametersChanged);
                }
                Ok(Reply::Silent) => {}
                Ok(Reply::Value(reply)) => text::push(out, name, &reply),
                Err(_) => text::push(out, name, "Reject"),
            }
        }
        Ok(asked)
    }

    /// What SendTargets may ask for in this session.
    fn send_targets_scope(&self, value: &str) -> Option<SendTargets> {
        match (self.session.session_type, value) {
            (SessionType::Discovery, "All") => Some(SendTargets::All),
            (SessionType::Discovery, "") => None,
            (SessionType::Discovery, name) => Some(SendTargets::One(name.into())),
            (SessionType::Normal, value) => {
                let own = self.session.target_name.as_ref()?;
                // Appendix C keeps All for discovery sessions. Clients ask it in normal ones
                // nevertheless; they learn of their own target only.
                (value.is_empty() || value.eq_ignore_ascii_case(own) || value == "All")
                    .then(|| SendTargets::One(own.clone()))
            }
        }
    }

    pub(super) fn send_targets_response(
        &mut self,
        itt: Itt,
        targets: &[TargetRecord],
        output: &mut Output,
    ) {
        self.answer_asked(itt, &discovery::encode(targets), output);
    }

    pub(super) fn fence_response(&mut self, itt: Itt, fenced: bool, output: &mut Output) {
        let mut answer = Vec::new();
        let value = if fenced {
            extension_keys::FENCED
        } else {
            extension_keys::NOT_FENCED
        };
        text::push(&mut answer, extension_keys::FENCE, value);
        self.answer_asked(itt, &answer, output);
    }

    pub(super) fn ports_response(
        &mut self,
        itt: Itt,
        ports: &[port::PortRecord],
        output: &mut Output,
    ) {
        self.answer_asked(itt, &port::encode(ports), output);
    }

    /// The owner's part of an answer.
    fn answer_asked(&mut self, itt: Itt, answer: &[u8], output: &mut Output) {
        let waits = self
            .exchanges
            .iter()
            .any(|open| open.itt == itt && open.kind == ExchangeKind::Text);
        if !waits {
            return;
        }
        if let Some(mut exchange) = self.text.take() {
            exchange.outgoing.extend_from_slice(answer);
            self.say(itt, exchange, output);
        }
    }

    /// Sends as much as one PDU holds; the initiator asks for the rest.
    fn say(&mut self, itt: Itt, mut exchange: TextExchange, output: &mut Output) {
        let limit = self.parameters.peer_max_recv_data_segment_length as usize;
        if exchange.outgoing.len() > limit {
            let rest = exchange.outgoing.split_off(limit);
            let part = core::mem::replace(&mut exchange.outgoing, rest);
            self.send_text(itt, &exchange, part, false, true, output);
            self.text = Some(exchange);
            return;
        }
        let part = core::mem::take(&mut exchange.outgoing);
        let last = exchange.last;
        self.send_text(itt, &exchange, part, last, false, output);
        if !last {
            self.text = Some(exchange);
        }
    }

    fn send_text(
        &mut self,
        itt: Itt,
        exchange: &TextExchange,
        part: Vec<u8>,
        last: bool,
        continues: bool,
        output: &mut Output,
    ) {
        self.close_exchange(itt, ExchangeKind::Text);
        let window = self.window();
        let pdu = TextResponse {
            last,
            continues,
            data_segment_length: 0,
            lun: exchange.lun,
            itt,
            ttt: (!last).then_some(exchange.ttt),
            numbers: output.numbers(window),
        };
        output.send(pdu.write(), Buf::from(part));
    }
}
