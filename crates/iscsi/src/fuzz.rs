//! Entry points for fuzzing, each with an oracle. They take any bytes and panic only if we are
//! wrong.

use crate::bhs::{self, Bhs, LoginRequest, NopIn, Opcode, StageBits};
use crate::chap::{ChapAlgorithm, Secret};
use crate::extension_keys;
use crate::ids::{Cid, Isid, Itt, Tsih};
use crate::negotiation::{Negotiation, find};
use crate::parameters::{LENGTH_MAX, Offer};
use crate::receive::Want;
use crate::serial::{CmdSn, StatSn};
use crate::target_side::{
    Authentication, ChapTerms, LoginAsk, LoginPolicy, LoginRefusal, LoginTerms, LogoutAnswer,
    ReferencedTask, Response, TargetConfig, TargetConnection, TargetEvent, TaskManagementAnswer,
    UNAUTHENTICATED_BYTES_MAX,
};
use crate::text;
use units::{BufMut, Now};

mod seeds;

pub use seeds::seeds;

struct Policy(Authentication);

impl LoginPolicy for Policy {
    fn admit(&mut self, _: &LoginAsk<'_>) -> Result<LoginTerms, LoginRefusal> {
        Ok(LoginTerms {
            authentication: self.0.clone(),
            target_alias: None,
            portal_group_tag: 1,
            offer: Offer::default(),
        })
    }

    fn random(&mut self, bytes: &mut [u8]) {
        bytes.fill(0x5A);
    }
}

/// Hands bytes in until they are used up or the connection ends, and gives what it sends to `sent`.
/// Payload goes in, and answers come out, in pieces of as many bytes as `piece` says (at least
/// one). Until somebody is let in, memory is checked before each piece.
fn drive(
    target: &mut TargetConnection,
    mut bytes: &[u8],
    piece: &mut dyn FnMut() -> usize,
    owner: &mut dyn FnMut(&mut TargetConnection, TargetEvent),
    sent: &mut dyn FnMut(&[u8]),
) {
    let mut admitted = false;
    loop {
        assert!(
            admitted || target.held_bytes() <= UNAUTHENTICATED_BYTES_MAX,
            "memory is bounded"
        );
        let wanted = match target.want() {
            Want::Header { bytes } | Want::Trailer { bytes } => bytes,
            Want::Data { bytes: left } => {
                let most = target.data_chunk().len().min(left).min(bytes.len());
                most.min(piece()).max(1)
            }
            Want::Nothing => break,
        };
        assert!(wanted > 0, "a wish is never empty");
        let Some((now, rest)) = bytes.split_at_checked(wanted) else {
            break;
        };
        bytes = rest;
        match target.want() {
            Want::Header { .. } => drop(target.receive_header(Now::ZERO, now)),
            Want::Trailer { .. } => drop(target.receive_trailer(Now::ZERO, now)),
            Want::Data { .. } => {
                let chunk = target.data_chunk().get_mut(..wanted);
                chunk.expect("a wish is never empty").copy_from_slice(now);
                target.data_filled(wanted);
            }
            Want::Nothing => {}
        }
        while let Some(event) = target.poll_event() {
            admitted |= matches!(event, TargetEvent::LoginReady(_));
            owner(target, event);
        }
        while !target.transmit().is_empty() {
            let queued = target.transmit().pieces().flatten().copied();
            let out: Vec<u8> = queued.take(piece().max(1)).collect();
            target.sent(out.len());
            sent(&out);
        }
    }
    while let Some(event) = target.poll_event() {
        owner(target, event);
    }
}

/// As much as there is.
fn whole() -> usize {
    usize::MAX
}

/// A peer that knows no secret talks to a target that requires CHAP: it never gets in, and never
/// holds more memory than is stated.
///
/// # Panics
/// If it does.
pub fn login_stream(bytes: &[u8]) {
    let terms = ChapTerms {
        algorithms: ChapAlgorithm::ALL.to_vec(),
        user: "user".into(),
        secret: Secret::new(b"a secret that no input has"),
        mutual: None,
    };
    let policy = Policy(Authentication::Chap(terms));
    let mut target = TargetConnection::new(Now::ZERO, &TargetConfig::default(), Box::new(policy));
    let owner = &mut |_: &mut TargetConnection, event| {
        assert!(
            !matches!(event, TargetEvent::LoginReady(_)),
            "nobody gets in unproved"
        );
    };
    drive(&mut target, bytes, &mut whole, owner, &mut |_| {});
    assert!(
        target.held_bytes() <= UNAUTHENTICATED_BYTES_MAX,
        "memory is bounded"
    );
}

/// A logged-in peer sends anything: what goes back is whole PDUs with StatSN in order, and data
/// that was accepted comes whole.
///
/// # Panics
/// If not.
pub fn pdu_stream(bytes: &[u8]) {
    let policy = Policy(Authentication::NotRequired);
    let mut target = TargetConnection::new(Now::ZERO, &TargetConfig::default(), Box::new(policy));
    let login = login_bytes();
    let mut expected = StatSn(0);
    let mut stream = Vec::new();
    let mut check = |out: &[u8]| {
        stream.extend_from_slice(out);
        let mut rest = &stream[..];
        while let Some((header, after)) = rest.split_first_chunk::<{ bhs::BHS_BYTES }>() {
            let length = bhs::data_segment_length(header) as usize;
            let Some(next) = after.get(length.next_multiple_of(4)..) else {
                break;
            };
            rest = next;
            check_status(header, &mut expected);
        }
        let rest = rest.len();
        stream.drain(..stream.len().saturating_sub(rest));
    };
    let all: Vec<u8> = login.into_iter().chain(bytes.iter().copied()).collect();
    let mut accepted: Vec<(Itt, usize)> = Vec::new();
    let owner = &mut |target: &mut TargetConnection, event| owner(target, event, &mut accepted);
    drive(&mut target, &all, &mut whole, owner, &mut check);
}

/// What a peer and an owner saw of a connection.
#[derive(PartialEq, Eq, Debug)]
struct Seen {
    sent: Vec<u8>,
    written: Vec<u8>,
    events: usize,
    open: bool,
}

/// The first eight bytes choose how the rest, a stream from its first byte on, comes in pieces and
/// goes out in pieces: nobody sees a difference to whole ones, nor to single bytes.
///
/// # Panics
/// If somebody does.
pub fn any_split(bytes: &[u8]) {
    let Some((choice, stream)) = bytes.split_first_chunk::<8>() else {
        return;
    };
    let mut state = u64::from_le_bytes(*choice) | 1;
    let mut by_choice = || {
        // xorshift: any spread of lengths will do.
        state ^= state.wrapping_shl(13);
        state ^= state.wrapping_shr(7);
        state ^= state.wrapping_shl(17);
        (state & 63) as usize
    };
    let once = seen_by(stream, &mut whole);
    assert_eq!(seen_by(stream, &mut by_choice), once, "pieces differ");
    assert_eq!(seen_by(stream, &mut || 1), once, "bytes differ");
}

fn seen_by(stream: &[u8], piece: &mut dyn FnMut() -> usize) -> Seen {
    let policy = Policy(Authentication::NotRequired);
    let mut target = TargetConnection::new(Now::ZERO, &TargetConfig::default(), Box::new(policy));
    let (mut sent, mut written, mut events) = (Vec::new(), Vec::new(), 0_usize);
    let mut accepted: Vec<(Itt, usize)> = Vec::new();
    let owner = &mut |target: &mut TargetConnection, event| {
        events = events.saturating_add(1);
        if let TargetEvent::DataOut { data, .. } = &event {
            written.extend_from_slice(&data.to_vec());
        }
        owner(target, event, &mut accepted);
    };
    drive(&mut target, stream, piece, owner, &mut |out| {
        sent.extend_from_slice(out);
    });
    Seen {
        sent,
        written,
        events,
        open: target.want() != Want::Nothing,
    }
}

/// StatSN advances by one with each status and never otherwise.
fn check_status(header: &Bhs, expected: &mut StatSn) {
    let stat_sn = NopIn::parse(header).numbers.stat_sn;
    assert_eq!(stat_sn, *expected, "StatSN in order");
    let advances = match Opcode::of(header[0]) {
        Some(Opcode::DataIn) => header[1] & 1 != 0,
        Some(Opcode::ReadyToTransfer) => false,
        Some(_) => true,
        None => panic!("we sent an opcode that does not exist"),
    };
    if advances {
        *expected = expected.next();
    }
}

/// An owner that answers everything, in a way that the CDB chooses.
fn owner(target: &mut TargetConnection, event: TargetEvent, accepted: &mut Vec<(Itt, usize)>) {
    match event {
        TargetEvent::LoginReady(_) => target.complete_login(Tsih(1)),
        TargetEvent::Command(command) => {
            let bytes = command.expected_data_transfer_length.min(1 << 16);
            match command.cdb[0] & 3 {
                0 => {}
                1 if command.writes => {
                    accepted.push((command.itt, bytes as usize));
                    target.accept_data(command.itt, bytes, BufMut::zeroed(bytes as usize));
                }
                2 => target.forget(command.itt),
                _ => {
                    let data_in = units::Buf::zeroes(bytes as usize);
                    target.respond(
                        command.itt,
                        Response {
                            data_in,
                            ..Response::default()
                        },
                    );
                }
            }
        }
        TargetEvent::DataOut { itt, data } => {
            let place = accepted.iter().position(|(open, _)| *open == itt);
            let (_, bytes) = accepted.swap_remove(place.expect("only accepted data comes"));
            assert_eq!(data.len(), bytes, "exactly what was accepted");
            target.respond(itt, Response::default());
        }
        TargetEvent::DataFault { itt, .. } => {
            accepted.retain(|(open, _)| *open != itt);
            target.respond(
                itt,
                Response {
                    status: 2,
                    ..Response::default()
                },
            );
        }
        TargetEvent::TaskManagement(request) => {
            if let ReferencedTask::Here(itt) = request.referenced {
                accepted.retain(|(open, _)| *open != itt);
                target.forget(itt);
            }
            target.task_management_response(request.itt, TaskManagementAnswer::Complete);
        }
        TargetEvent::SendTargets { itt, .. } => target.send_targets_response(itt, &[]),
        TargetEvent::Fence { itt, tsih, .. } => target.fence_response(itt, tsih.0 % 2 == 0),
        TargetEvent::Ports { itt } => target.ports_response(itt, &[]),
        TargetEvent::Logout { itt, .. } => target.logout_response(itt, LogoutAnswer::CleanupFailed),
        TargetEvent::LoginRefused { .. }
        | TargetEvent::Rejected { .. }
        | TargetEvent::ParametersChanged
        | TargetEvent::Closed(_) => {}
    }
}

/// A login that needs no authentication, as bytes.
fn login_bytes() -> Vec<u8> {
    let mut text = Vec::new();
    text::push(&mut text, "InitiatorName", "i");
    text::push(&mut text, "TargetName", "t");
    text::push(&mut text, "InitialR2T", "No");
    let request = LoginRequest {
        immediate: true,
        transit: true,
        continues: false,
        stage: StageBits::OPERATIONAL,
        next_stage: StageBits::FULL_FEATURE,
        version_max: 0,
        version_min: 0,
        data_segment_length: u32::try_from(text.len()).unwrap_or(0),
        isid: Isid::random([1, 2, 3], 4),
        tsih: Tsih(0),
        itt: Itt::from_wire(0).expect("0 is a tag"),
        cid: Cid(0),
        cmd_sn: CmdSn(0),
        exp_stat_sn: StatSn(0),
    };
    let mut out = request.write().to_vec();
    out.extend_from_slice(&text);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// Any text is negotiated: answers are pairs, at most one a key and each for a key that was sent;
/// the result is within the standard's ranges.
///
/// # Panics
/// If not.
pub fn text_keys(bytes: &[u8]) {
    let said = extension_keys::port::decode(bytes);
    for what in said.into_iter().flat_map(|reported| reported.wrong) {
        assert!(
            !what.contains(char::is_control),
            "a peer writes to a terminal"
        );
    }
    let Ok(pairs) = text::pairs(bytes) else {
        return;
    };
    for (_, value) in &pairs {
        // Readers of values take anything.
        let _ = (text::number(value), text::binary(value, 1024));
        let nic = extension_keys::nic::NicRecord::parse(value);
        let said = nic.as_ref().and_then(extension_keys::nic::NicRecord::value);
        assert!(said.is_none_or(|it| it.len() <= 255), "longer than a value");
    }
    let mut negotiation = Negotiation::new(Offer::default(), bytes.len() % 2 == 1);
    let mut out = Vec::new();
    let answered = negotiation.answer_all(&pairs, &mut out);
    let answers = text::pairs(&out).expect("our answers are pairs");
    for (at, (key, _)) in answers.iter().enumerate() {
        assert!(
            pairs.iter().any(|(sent, _)| sent == key),
            "an answer to nothing"
        );
        let again = answers
            .iter()
            .skip(at.saturating_add(1))
            .any(|(other, _)| other == key);
        assert!(!again || find(key).is_none(), "a key answered twice");
    }
    let result = negotiation.parameters();
    assert!(
        result.first_burst_length <= result.max_burst_length,
        "13.14"
    );
    assert!(
        (512..=LENGTH_MAX).contains(&result.max_burst_length),
        "13.13"
    );
    assert!(
        (512..=LENGTH_MAX).contains(&result.peer_max_recv_data_segment_length),
        "13.12"
    );
    assert!(
        result.max_connections == 1 && result.error_recovery_level == 0,
        "what we built"
    );
    // A repeated key is an error, so all that was answered before it stands.
    let _ = answered;
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;

    /// A stream that looks like PDUs: headers with plausible fields, and noise.
    fn pdus() -> impl Strategy<Value = Vec<u8>> {
        let opcode = prop::sample::select(vec![
            0u8, 0x40, 1, 0x41, 2, 0x42, 4, 0x44, 5, 5, 5, 6, 0x10, 3, 0x43, 0x3f,
        ]);
        let pdu = (
            opcode,
            any::<u8>(),
            0u8..40,
            0u32..4,
            0u32..12,
            0u32..3000,
            any::<[u8; 4]>(),
        )
            .prop_map(|(opcode, flags, length, tag, sn, edtl, noise)| {
                let mut header = [0u8; 48];
                header[0] = opcode;
                header[1] = flags;
                header[4] = u8::from(noise[0] > 250);
                header[7] = length;
                header[19] = tag.to_le_bytes()[0];
                header[20..24].copy_from_slice(&edtl.to_be_bytes());
                if opcode & 0x3f == 5 {
                    let ttt = if noise[1] & 1 == 0 {
                        u32::MAX
                    } else {
                        u32::from(noise[1] >> 5)
                    };
                    header[20..24].copy_from_slice(&ttt.to_be_bytes());
                    header[39] = noise[2] & 1;
                    header[42..44].copy_from_slice(&(edtl & 0xff).to_be_bytes()[2..]);
                }
                header[27] = sn.to_le_bytes()[0];
                header[32] = noise[3];
                let mut out = header.to_vec();
                let ahs = usize::from(header[4]) * 4;
                out.extend(std::iter::repeat_n(noise[2], ahs + usize::from(length)));
                out.resize(out.len().next_multiple_of(4), 0);
                out
            });
        proptest::collection::vec(pdu, 0..40).prop_map(|pdus| pdus.concat())
    }

    #[test]
    fn the_seed_of_a_session_reaches_every_kind_of_request() {
        let (_, session) = seeds()
            .into_iter()
            .find(|(name, _)| *name == "session")
            .unwrap();
        let seen = seen_by(&session, &mut whole);
        // Login, three commands, data, SendTargets, function, logout; NOP-Out is answered by the
        // machine.
        assert_eq!((seen.written.len(), seen.events), (24, 8), "{seen:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            login_stream(&bytes);
            pdu_stream(&bytes);
            text_keys(&bytes);
            any_split(&bytes);
        }

        #[test]
        fn a_session_is_the_same_however_its_bytes_are_cut(choice in any::<[u8; 8]>(), noise in pdus()) {
            for (name, bytes) in seeds() {
                if name == "session" {
                    any_split(&[&choice[..], &bytes, &noise].concat());
                }
            }
        }

        #[test]
        fn plausible_pdus_keep_every_promise(bytes in pdus()) {
            login_stream(&bytes);
            pdu_stream(&bytes);
        }

        #[test]
        fn a_login_with_a_few_bytes_changed_never_gets_in(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)
        ) {
            let mut bytes = login_bytes();
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            login_stream(&bytes);
        }

        #[test]
        fn any_values_of_known_keys_are_answered_within_range(
            picks in proptest::collection::vec((any::<prop::sample::Index>(), "[A-Za-z0-9,x-]{0,9}|Yes|No|None|CRC32C|[0-9]{1,9}"), 0..12)
        ) {
            let keys = crate::negotiation::KEYS;
            let mut bytes = Vec::new();
            for (pick, value) in picks {
                text::push(&mut bytes, keys[pick.index(keys.len())].name, &value);
            }
            text_keys(&bytes);
        }
    }
}
