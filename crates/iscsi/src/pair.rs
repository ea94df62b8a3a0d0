//! Initiator and target over a virtual wire, with a model disk behind the target.

use crate::bhs::Attribute;
use crate::data_sequence::Residual;
use crate::extension_keys::nic::NicRecord;
use crate::initiator_side::{
    self, InitiatorChap, InitiatorConfig, InitiatorConnection, TargetProof,
};
use crate::target_side::test::{Policy, chap};
use crate::target_side::{self, Authentication, Response, TargetConfig, TargetConnection};
use crate::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use units::{Buf, BufMut, Now};

/// Hands as much of `wire` in as fits together, payload in pieces of at most `step`.
macro_rules! feed {
    ($machine:expr, $now:expr, $wire:expr, $step:expr) => {{
        let (machine, wire): (_, &mut Vec<u8>) = (&mut $machine, &mut $wire);
        let mut at = 0;
        loop {
            let rest = &wire[at..];
            match machine.want() {
                Want::Header { bytes } if rest.len() >= bytes => {
                    let _ = machine.receive_header($now, &rest[..bytes]);
                    at += bytes;
                }
                Want::Trailer { bytes } if rest.len() >= bytes => {
                    let _ = machine.receive_trailer($now, &rest[..bytes]);
                    at += bytes;
                }
                Want::Data { bytes } if !rest.is_empty() => {
                    let chunk = machine.data_chunk();
                    assert!(!chunk.is_empty() && chunk.len() <= bytes);
                    let n = chunk.len().min(rest.len()).min($step);
                    chunk[..n].copy_from_slice(&rest[..n]);
                    machine.data_filled(n);
                    at += n;
                }
                Want::Nothing => break wire.clear(),
                Want::Header { .. } | Want::Trailer { .. } | Want::Data { .. } => {
                    wire.drain(..at);
                    break;
                }
            }
        }
    }};
}

/// What the model's commands are: first CDB byte, then offset.
const WRITE: u8 = 1;
const READ: u8 = 2;
const FAIL: u8 = 3;

struct Pair {
    initiator: InitiatorConnection,
    target: TargetConnection,
    to_target: Vec<u8>,
    to_initiator: Vec<u8>,
    disk: Vec<u8>,
    /// Offset and length of writes under way.
    writes: BTreeMap<u32, (usize, u32)>,
    /// Accepts of data that the owner puts off.
    late: Vec<(Itt, u32)>,
    put_off: bool,
    completions: BTreeMap<u32, initiator_side::Completion>,
    notes: Vec<String>,
    target_closed: bool,
    /// What the target heard of the initiator's NIC.
    nic: Option<NicRecord>,
    /// The target is of others: it knows our keys under no name.
    foreign: bool,
}

/// The same text, with keys of our own under another name, or back.
fn renamed(wire: &mut [u8], from: &[u8], to: &[u8]) -> usize {
    let found = |wire: &[u8]| wire.windows(from.len()).position(|it| it == from);
    let mut count = 0;
    while let Some(at) = found(wire) {
        wire[at..at + to.len()].copy_from_slice(to);
        count += 1;
    }
    count
}

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| ((i * 31 + seed * 7 + i / 251) & 0xFF).to_le_bytes()[0])
        .collect()
}

impl Pair {
    fn new(config: &InitiatorConfig, offer: Offer, authentication: Authentication) -> Self {
        let policy = Policy {
            authentication,
            offer,
            random: 5,
        };
        Self {
            initiator: InitiatorConnection::new(Now::ZERO, config),
            target: TargetConnection::new(Now::ZERO, &TargetConfig::default(), Box::new(policy)),
            to_target: Vec::new(),
            to_initiator: Vec::new(),
            disk: vec![0; 1 << 20],
            writes: BTreeMap::new(),
            late: Vec::new(),
            put_off: false,
            completions: BTreeMap::new(),
            notes: Vec::new(),
            target_closed: false,
            nic: None,
            foreign: false,
        }
    }

    /// Moves everything that waits, in both directions, until nothing moves any more.
    fn run(&mut self, step: usize) {
        loop {
            let out: Vec<u8> = self
                .initiator
                .transmit()
                .pieces()
                .flatten()
                .copied()
                .collect();
            self.initiator.sent(out.len());
            self.to_target.extend_from_slice(&out);
            let back: Vec<u8> = self.target.transmit().pieces().flatten().copied().collect();
            self.target.sent(back.len());
            self.to_initiator.extend_from_slice(&back);
            if self.foreign {
                let (ours, theirs) = (b"X-org.causeway.Nic", b"X-com.somebody.Key");
                renamed(&mut self.to_target, ours, theirs);
                let unknown = b"X-com.somebody.Key=NotUnderstood";
                if renamed(
                    &mut self.to_initiator,
                    unknown,
                    b"X-org.causeway.Nic=NotUnderstood",
                ) > 0
                {
                    self.notes.push("not understood".into());
                }
            }
            let late = std::mem::take(&mut self.late);
            if out.is_empty() && back.is_empty() && late.is_empty() {
                return;
            }
            feed!(self.target, Now::ZERO, self.to_target, step);
            self.serve();
            for (itt, bytes) in late {
                self.target
                    .accept_data(itt, bytes, BufMut::zeroed(bytes as usize));
            }
            self.serve();
            feed!(self.initiator, Now::ZERO, self.to_initiator, step);
            self.listen();
        }
    }

    fn serve(&mut self) {
        while let Some(event) = self.target.poll_event() {
            match event {
                target_side::TargetEvent::LoginReady(outcome) => {
                    self.nic = outcome.nic.map(|nic| *nic);
                    self.target.complete_login(Tsih(9));
                }
                target_side::TargetEvent::Command(command) => self.command(&command),
                target_side::TargetEvent::DataOut { itt, data } => {
                    let (offset, length) = self.writes.remove(&itt.get()).unwrap();
                    assert_eq!(data.len(), length as usize);
                    data.copy_to(0, &mut self.disk[offset..offset + data.len()]);
                    let data_out_wanted = length.into();
                    self.target.respond(
                        itt,
                        Response {
                            data_out_wanted,
                            ..Response::default()
                        },
                    );
                }
                target_side::TargetEvent::DataFault { itt, fault } => {
                    let (asc, ascq) = fault.additional_sense().unwrap_or_default();
                    let sense = Some(Buf::copy_of(&[0x70, 0, 0x0B, asc, ascq]));
                    self.target.respond(
                        itt,
                        Response {
                            status: 2,
                            sense,
                            ..Response::default()
                        },
                    );
                    self.notes.push(format!("{fault:?}"));
                }
                target_side::TargetEvent::SendTargets { itt, .. } => {
                    let records = records();
                    self.target.send_targets_response(itt, &records);
                }
                target_side::TargetEvent::Fence { itt, .. } => {
                    self.target.fence_response(itt, true);
                }
                target_side::TargetEvent::Ports { itt } => self.target.ports_response(itt, &[]),
                target_side::TargetEvent::TaskManagement(request) => {
                    let answer = target_side::TaskManagementAnswer::Complete;
                    self.target.task_management_response(request.itt, answer);
                }
                target_side::TargetEvent::Logout { itt, .. } => {
                    self.target
                        .logout_response(itt, target_side::LogoutAnswer::Closed);
                }
                target_side::TargetEvent::Closed(_) => self.target_closed = true,
                other @ (target_side::TargetEvent::LoginRefused { .. }
                | target_side::TargetEvent::Rejected { .. }
                | target_side::TargetEvent::ParametersChanged) => {
                    self.notes.push(format!("{other:?}"));
                }
            }
        }
    }

    fn command(&mut self, command: &target_side::TargetCommand) {
        let offset = u32::from_be_bytes(command.cdb[4..8].try_into().unwrap()) as usize;
        let length = command.expected_data_transfer_length;
        match command.cdb[0] {
            WRITE => {
                self.writes.insert(command.itt.get(), (offset, length));
                if self.put_off {
                    self.late.push((command.itt, length));
                } else {
                    let buffer = BufMut::zeroed(length as usize);
                    self.target.accept_data(command.itt, length, buffer);
                }
            }
            READ => {
                let data_in = Buf::copy_of(&self.disk[offset..offset + length as usize]);
                self.target.respond(
                    command.itt,
                    Response {
                        data_in,
                        ..Response::default()
                    },
                );
            }
            _ => self.target.respond(
                command.itt,
                Response {
                    status: 2,
                    sense: Some(Buf::copy_of(b"sense")),
                    data_out_wanted: 0,
                    ..Response::default()
                },
            ),
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.initiator.poll_event() {
            match event {
                initiator_side::InitiatorEvent::Response { itt, completion } => {
                    self.completions.insert(itt.get(), completion);
                }
                initiator_side::InitiatorEvent::LoggedIn { tsih, .. } => assert_eq!(tsih, Tsih(9)),
                initiator_side::InitiatorEvent::Text { text, .. } => {
                    assert_eq!(discovery::decode(&text).unwrap(), records());
                    self.notes.push("targets".into());
                }
                other @ (initiator_side::InitiatorEvent::LoginFailed { .. }
                | initiator_side::InitiatorEvent::TaskManagement { .. }
                | initiator_side::InitiatorEvent::LoggedOut { .. }
                | initiator_side::InitiatorEvent::Rejected { .. }
                | initiator_side::InitiatorEvent::Async { .. }
                | initiator_side::InitiatorEvent::Pong { .. }
                | initiator_side::InitiatorEvent::Closed(_)) => {
                    self.notes.push(format!("{other:?}"));
                }
            }
        }
    }

    fn submit(&mut self, code: u8, offset: usize, write: &[u8], read: usize) -> u32 {
        let mut cdb = [0; 16];
        cdb[0] = code;
        cdb[4..8].copy_from_slice(&u32::try_from(offset).unwrap().to_be_bytes());
        let (lun, attribute) = (Lun([0; 8]), Attribute::Simple);
        let command = initiator_side::InitiatorCommand {
            lun,
            cdb,
            attribute,
            immediate: false,
        };
        let room = (read > 0).then(|| BufMut::zeroed(read));
        self.initiator
            .submit(command, Buf::copy_of(write), room)
            .get()
    }
}

fn records() -> Vec<discovery::TargetRecord> {
    let record = |number: u32| discovery::TargetRecord {
        name: format!("iqn.2026-11.test:target-{number}"),
        addresses: vec![discovery::PortalAddress {
            address: "[2001:db8::1]:3260".into(),
            portal_group_tag: 3,
        }],
    };
    (0..1000).map(record).collect()
}

fn config(offer: Offer) -> InitiatorConfig {
    let mut config = InitiatorConfig::new("iqn.test:i", Some("iqn.test:t"), Isid([1; 6]));
    config.offer = offer;
    config
}

fn digests(mut offer: Offer) -> Offer {
    offer.header_digest = DigestChoice::Required;
    offer.data_digest = DigestChoice::Required;
    offer
}

/// Small limits, so that everything is cut into many PDUs.
fn small() -> Offer {
    Offer {
        max_recv_data_segment_length: 512,
        max_burst_length: 1536,
        first_burst_length: 1024,
        max_outstanding_r2t: 2,
        ..Offer::default()
    }
}

#[test]
fn data_survives_every_piecewise_arrival_with_and_without_digests() {
    for offer in [small(), digests(small())] {
        for step in 1..80 {
            for put_off in [false, true] {
                let mut pair = Pair::new(
                    &config(offer.clone()),
                    offer.clone(),
                    Authentication::NotRequired,
                );
                pair.put_off = put_off;
                pair.run(step);
                let data = pattern(step, 5001);
                let write = pair.submit(WRITE, 100, &data, 0);
                pair.run(step);
                let read = pair.submit(READ, 100, &[], 5001);
                pair.run(step);
                assert_eq!(pair.completions[&write].status, 0);
                assert_eq!(pair.completions[&read].data_in.to_vec(), data);
                assert!(pair.notes.is_empty(), "{:?}", pair.notes);
            }
        }
    }
}

/// CHAP in one direction and in both, in one session each; and what must fail does.
// spec: RFC 7143 12.1.3 "Challenge Handshake Authentication Protocol (CHAP)".
#[test]
fn mutual_chap_is_proved_by_both_sides_or_there_is_no_session() {
    let secrets: [(&[u8], &[u8], bool); 3] = [
        (b"the initiator's secret", b"the target's secret", true),
        (b"the initiator's secret", b"another", false),
        (b"another", b"the target's secret", false),
    ];
    for algorithm in chap::ChapAlgorithm::ALL {
        for (own, theirs, good) in secrets {
            let mut config = config(Offer::default());
            config.chap = Some(InitiatorChap {
                algorithms: vec![algorithm],
                user: "user".into(),
                secret: chap::Secret::new(own),
                target: Some(TargetProof {
                    user: Some("san".into()),
                    secret: chap::Secret::new(theirs),
                    challenge: [0xA5; 32],
                    identifier: 77,
                }),
            });
            let mut pair = Pair::new(&config, Offer::default(), chap(Some(true)));
            pair.run(999);
            assert_eq!(
                pair.notes.is_empty(),
                good,
                "{algorithm:?} {:?}",
                pair.notes
            );
            // A target that does not ask for authentication is not trusted either.
            let mut pair = Pair::new(&config, Offer::default(), Authentication::NotRequired);
            pair.run(999);
            assert!(
                pair.notes.iter().any(|note| note.contains("LoginFailed")),
                "{:?}",
                pair.notes
            );
        }
    }
}

/// What our initiator says of a refusal is what the target reported, and "authentication" of that
/// one status only: whoever reads it looks for the mistake in the right place.
// spec: RFC 7143 11.13.5 "Status-Class and Status-Detail".
#[test]
fn every_status_of_a_refusal_has_its_own_words_and_only_0201h_is_about_authentication() {
    let words = [
        (0x0101, "target moved temporarily"),
        (0x0102, "target moved permanently"),
        (0x0200, "initiator error"),
        (0x0201, "authentication failure"),
        (0x0202, "authorization failure"),
        (0x0203, "target not found"),
        (0x0204, "target removed"),
        (0x0205, "unsupported version"),
        (0x0206, "too many connections"),
        (0x0207, "missing parameter"),
        (0x0208, "cannot include in session"),
        (0x0209, "session type not supported"),
        (0x020A, "session does not exist"),
        (0x020B, "invalid request during login"),
        (0x0300, "target error"),
        (0x0301, "service unavailable"),
        (0x0302, "out of resources"),
    ];
    let words = BTreeMap::from(words);
    for code in 0x0100_u16..0x0400 {
        let target = format!("iqn.test:status-{code:04X}");
        let mut config = config(Offer::default());
        config.target_name = Some(target);
        let mut pair = Pair::new(&config, Offer::default(), Authentication::NotRequired);
        pair.run(999);
        let said = words.get(&code).unwrap_or(&"unknown status");
        let wanted = format!("reason: \"{code:04X}h {said}\"");
        let all = pair.notes.join("; ");
        assert!(all.contains("LoginFailed"), "{code:04X}h: {all}");
        assert!(all.contains(&wanted), "{code:04X}h: {all}");
        let blames_proof = all.to_lowercase().contains("authentication");
        assert_eq!(blames_proof, code == 0x0201, "{code:04X}h: {all}");
    }
}

/// A target of ours hears of the NIC, behind CHAP too; another one answers that it does not know
/// the key, and the session works as well.
// spec: RFC 7143 6.2 "Text Mode Negotiation".
#[test]
fn the_nic_is_named_at_the_login_and_a_target_that_does_not_know_the_key_does_no_harm() {
    let nic = NicRecord {
        name: "eth2".into(),
        card: Some("0000:03:00".into()),
        speed: Some(10_000_000_000),
        planned: true,
        ..NicRecord::default()
    };
    let proof = InitiatorChap {
        algorithms: chap::ChapAlgorithm::ALL.to_vec(),
        user: "user".into(),
        secret: chap::Secret::new(b"the initiator's secret"),
        target: None,
    };
    for foreign in [false, true] {
        for with_chap in [false, true] {
            let mut config = config(Offer::default());
            config.nic = Some(nic.clone());
            config.chap = with_chap.then(|| proof.clone());
            let terms = if with_chap {
                chap(None)
            } else {
                Authentication::NotRequired
            };
            let mut pair = Pair::new(&config, Offer::default(), terms);
            pair.foreign = foreign;
            pair.run(999);
            let (heard, notes) = if foreign {
                (None, vec!["not understood".to_owned()])
            } else {
                (Some(nic.clone()), Vec::new())
            };
            assert_eq!((&pair.nic, &pair.notes), (&heard, &notes));
            let written = pair.submit(WRITE, 0, &pattern(3, 4096), 0);
            pair.run(999);
            assert_eq!(pair.completions[&written].status, 0);
        }
    }
}

// spec: RFC 7143 11.11 "Text Response".
#[test]
fn discovery_of_a_thousand_targets_comes_in_chains() {
    let mut config = InitiatorConfig::new("iqn.test:i", None, Isid([1; 6]));
    config.offer.max_recv_data_segment_length = 8192;
    let mut pair = Pair::new(&config, Offer::default(), Authentication::NotRequired);
    pair.run(999);
    pair.initiator.send_targets("All");
    pair.run(999);
    assert_eq!(pair.notes, ["targets"]);
    pair.initiator.logout();
    pair.run(999);
    assert!(pair.target_closed && pair.initiator.want() == Want::Nothing);
}

/// Field lesson 33: a write that fails at once reports all of its bytes as not moved, however they
/// were to come.
#[test]
fn a_failed_write_reports_its_whole_length_as_underflow_for_every_size() {
    for offer in [
        small(),
        Offer {
            initial_r2t: true,
            ..small()
        },
        Offer {
            immediate_data: false,
            ..small()
        },
    ] {
        for length in [1, 511, 512, 513, 1023, 1024, 1025, 1536, 4096] {
            let mut pair = Pair::new(
                &config(offer.clone()),
                offer.clone(),
                Authentication::NotRequired,
            );
            pair.run(999);
            let failed = pair.submit(FAIL, 0, &pattern(1, length), 0);
            let read = pair.submit(FAIL, 0, &[], length);
            let after = pair.submit(WRITE, 0, &pattern(2, length), 0);
            pair.run(77);
            let expected = Residual::Underflow(u32::try_from(length).unwrap());
            for itt in [failed, read] {
                let completion = &pair.completions[&itt];
                assert_eq!((completion.status, completion.residual), (2, expected));
                assert_eq!(completion.sense.to_vec(), b"sense");
            }
            assert_eq!(pair.completions[&after].residual, Residual::None);
            assert_eq!(&pair.disk[..length], &pattern(2, length)[..]);
            assert!(pair.notes.is_empty(), "{:?}", pair.notes);
        }
    }
}

/// One bit flipped at each place of the stream of a write: wrong data never reaches the disk.
// spec: RFC 7143 11.2.3 "Header Digest and Data Digest".
#[test]
fn a_flipped_bit_never_reaches_the_disk() {
    let offer = digests(small());
    let data = pattern(3, 2000);
    let mut place = 0;
    let mut caught = [0; 2];
    loop {
        let mut pair = Pair::new(
            &config(offer.clone()),
            offer.clone(),
            Authentication::NotRequired,
        );
        pair.run(999);
        let itt = pair.submit(WRITE, 0, &data, 0);
        let out: Vec<u8> = pair
            .initiator
            .transmit()
            .pieces()
            .flatten()
            .copied()
            .collect();
        pair.initiator.sent(out.len());
        pair.to_target.extend_from_slice(&out);
        if place >= pair.to_target.len() {
            break;
        }
        pair.to_target[place] ^= 1 << (place % 8);
        feed!(pair.target, Now::ZERO, pair.to_target, 99);
        pair.serve();
        pair.run(99);
        match pair.completions.get(&itt) {
            Some(completion) => {
                assert_eq!(completion.status, 2, "byte {place}");
                assert_eq!(completion.sense.to_vec()[3..], [0x47, 0x05]);
                caught[0] += 1;
            }
            None => {
                assert!(pair.target_closed, "byte {place}");
                caught[1] += 1;
            }
        }
        assert!(pair.disk.iter().all(|byte| *byte == 0));
        place += 1;
    }
    assert!(caught[0] > 1000 && caught[1] > 100, "{caught:?}");
}

/// The wire is cut at each byte: neither side panics, and time ends both.
#[test]
fn a_lost_connection_is_noticed_by_both_sides() {
    for cut in 0..1400 {
        let mut pair = Pair::new(&config(small()), small(), Authentication::NotRequired);
        let mut left = cut;
        loop {
            let out: Vec<u8> = pair
                .initiator
                .transmit()
                .pieces()
                .flatten()
                .copied()
                .collect();
            pair.initiator.sent(out.len());
            let part = out.len().min(left);
            left -= part;
            pair.to_target.extend_from_slice(&out[..part]);
            feed!(pair.target, Now::ZERO, pair.to_target, 50);
            pair.serve();
            let back: Vec<u8> = pair.target.transmit().pieces().flatten().copied().collect();
            pair.target.sent(back.len());
            pair.to_initiator.extend_from_slice(&back);
            feed!(pair.initiator, Now::ZERO, pair.to_initiator, 50);
            pair.listen();
            if out.is_empty() && back.is_empty() {
                break;
            }
            if pair.completions.is_empty()
                && pair.initiator.parameters().max_burst_length == 1536
                && pair.initiator.in_progress() == 0
            {
                pair.submit(WRITE, 0, &pattern(1, 900), 0);
            }
        }
        for _ in 0..3 {
            if let Some(next) = pair.target.next_tick() {
                pair.target.tick(next);
            }
            if let Some(next) = pair.initiator.next_tick() {
                pair.initiator.tick(next);
            }
        }
        pair.serve();
        assert!(
            pair.target_closed && pair.initiator.want() == Want::Nothing,
            "cut at {cut}"
        );
    }
}

fn offers() -> impl Strategy<Value = Offer> {
    (
        512u32..5000,
        512u32..9000,
        512u32..9000,
        1u16..5,
        any::<[bool; 6]>(),
    )
        .prop_map(
            |(segment, burst, first, r2ts, [r2t, immediate, pdu, sequence, header, data])| {
                let digest = |on| {
                    if on {
                        DigestChoice::Preferred
                    } else {
                        DigestChoice::Allowed
                    }
                };
                Offer {
                    header_digest: digest(header),
                    data_digest: digest(data),
                    max_recv_data_segment_length: segment,
                    max_burst_length: burst,
                    first_burst_length: first.min(burst),
                    initial_r2t: r2t,
                    immediate_data: immediate,
                    max_outstanding_r2t: r2ts,
                    data_pdu_in_order: pdu,
                    data_sequence_in_order: sequence,
                    ..Offer::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_two_offers_make_a_session_that_moves_data(
        own in offers(),
        theirs in offers(),
        commands in proptest::collection::vec((any::<bool>(), 0usize..40_000, 1usize..20_000), 1..12),
        step in 1usize..3000,
        put_off in any::<bool>(),
    ) {
        let mut pair = Pair::new(&config(own), theirs, Authentication::NotRequired);
        pair.put_off = put_off;
        pair.run(step);
        let (mut a, b) = (pair.initiator.parameters().clone(), pair.target.parameters().clone());
        std::mem::swap(
            &mut a.own_max_recv_data_segment_length,
            &mut a.peer_max_recv_data_segment_length,
        );
        prop_assert_eq!(a, b, "both sides hold the same values");
        let mut model = vec![0; 1 << 16];
        for (number, (write, offset, length)) in commands.into_iter().enumerate() {
            let itt = if write {
                let data = pattern(number, length);
                model[offset..offset + length].copy_from_slice(&data);
                pair.submit(WRITE, offset, &data, 0)
            } else {
                pair.submit(READ, offset, &[], length)
            };
            pair.run(step);
            let completion = &pair.completions[&itt];
            prop_assert_eq!((completion.status, completion.residual), (0, Residual::None));
            if !write {
                prop_assert_eq!(completion.data_in.to_vec(), &model[offset..offset + length]);
            }
        }
        prop_assert_eq!(&pair.disk[..1 << 16], &model[..]);
        prop_assert!(pair.notes.is_empty(), "{:?}", pair.notes);
    }
}
