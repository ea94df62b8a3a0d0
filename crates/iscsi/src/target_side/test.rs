//! The target alone, fed with PDUs made by hand.

use super::*;
use crate::bhs::*;
use crate::chap::{ChapAlgorithm, Secret};
use crate::*;
use units::{BufMut, Now};

pub(crate) struct Policy {
    pub(crate) authentication: Authentication,
    pub(crate) offer: Offer,
    pub(crate) random: u8,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            authentication: Authentication::NotRequired,
            offer: Offer::default(),
            random: 1,
        }
    }
}

impl LoginPolicy for Policy {
    fn admit(&mut self, ask: &LoginAsk<'_>) -> Result<LoginTerms, LoginRefusal> {
        match ask.target_name {
            Some("moved") => Err(LoginRefusal {
                status: LoginStatus::TargetMovedTemporarily,
                reason: "maintenance".into(),
                redirect: Some("192.0.2.9:3260,1".into()),
            }),
            Some(name) if name.starts_with("iqn.test:status-") => {
                let code = u16::from_str_radix(name.trim_start_matches("iqn.test:status-"), 16);
                let [class, detail] = code.unwrap().to_be_bytes();
                let status = LoginStatus::from_code(class, detail);
                Err(LoginRefusal::new(status, "as the test wants it"))
            }
            Some("nothing") => Err(LoginRefusal::new(LoginStatus::NotFound, "no such target")),
            _ => Ok(LoginTerms {
                authentication: self.authentication.clone(),
                target_alias: Some("alias".into()),
                portal_group_tag: 7,
                offer: self.offer.clone(),
            }),
        }
    }

    fn random(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.random = self.random.wrapping_mul(31).wrapping_add(17);
            *byte = self.random;
        }
    }
}

pub(crate) fn chap(mutual: Option<bool>) -> Authentication {
    Authentication::Chap(ChapTerms {
        algorithms: ChapAlgorithm::ALL.to_vec(),
        user: "user".into(),
        secret: Secret::new(b"the initiator's secret"),
        mutual: mutual.map(|required| MutualChap {
            user: "san".into(),
            secret: Secret::new(b"the target's secret"),
            required,
        }),
    })
}

/// Hands all of `bytes` in, in pieces of at most `step`.
pub(crate) fn feed(target: &mut TargetConnection, now: Now, bytes: &[u8], step: usize) {
    let mut rest = bytes;
    while !rest.is_empty() {
        match target.want() {
            Want::Header { bytes } if rest.len() >= bytes => {
                let _ = target.receive_header(now, &rest[..bytes]);
                rest = &rest[bytes..];
            }
            Want::Trailer { bytes } if rest.len() >= bytes => {
                let _ = target.receive_trailer(now, &rest[..bytes]);
                rest = &rest[bytes..];
            }
            Want::Data { bytes } => {
                let chunk = target.data_chunk();
                assert!(!chunk.is_empty() && chunk.len() <= bytes);
                let n = chunk.len().min(rest.len()).min(step);
                chunk[..n].copy_from_slice(&rest[..n]);
                target.data_filled(n);
                rest = &rest[n..];
            }
            Want::Header { .. } | Want::Trailer { .. } | Want::Nothing => return,
        }
    }
}

/// Everything that the target has to send, as PDUs without digests.
pub(crate) fn drain(target: &mut TargetConnection) -> Vec<(Bhs, Vec<u8>)> {
    let bytes: Vec<u8> = target.transmit().pieces().flatten().copied().collect();
    assert_eq!(bytes.len(), target.transmit().bytes());
    target.sent(bytes.len());
    let (mut out, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let header: Bhs = rest[..48].try_into().unwrap();
        let length = data_segment_length(&header) as usize;
        out.push((header, rest[48..48 + length].to_vec()));
        rest = &rest[48 + length.next_multiple_of(4)..];
    }
    out
}

pub(crate) fn pdu(mut header: Bhs, data: &[u8]) -> Vec<u8> {
    set_data_segment_length(&mut header, u32::try_from(data.len()).unwrap());
    let mut out = header.to_vec();
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

pub(crate) fn login(stage: u8, next: Option<u8>, text: &str) -> Vec<u8> {
    login_with(stage, next, false, text.as_bytes())
}

pub(crate) fn login_with(stage: u8, next: Option<u8>, continues: bool, text: &[u8]) -> Vec<u8> {
    let request = LoginRequest {
        immediate: true,
        transit: next.is_some(),
        continues,
        stage: StageBits(stage),
        next_stage: StageBits(next.unwrap_or(0)),
        version_max: 0,
        version_min: 0,
        data_segment_length: 0,
        isid: Isid([0x80, 0, 0, 0, 0, 1]),
        tsih: Tsih(0),
        itt: itt(77),
        cid: Cid(1),
        cmd_sn: CmdSn(100),
        exp_stat_sn: StatSn(5),
    };
    pdu(request.write(), text)
}

pub(crate) fn itt(tag: u32) -> Itt {
    Itt::from_wire(tag).unwrap()
}

pub(crate) const NAMES: &str =
    "InitiatorName=iqn.2026-11.test:i\0TargetName=iqn.2026-11.test:t\0SessionType=Normal\0";

/// A target in full feature phase, negotiated by `keys`.
pub(crate) fn logged_in(config: &TargetConfig, offer: Offer, keys: &str) -> TargetConnection {
    let policy = Policy {
        offer,
        ..Policy::default()
    };
    let mut target = TargetConnection::new(Now::ZERO, config, Box::new(policy));
    feed(
        &mut target,
        Now::ZERO,
        &login(1, Some(3), &format!("{NAMES}{keys}")),
        9999,
    );
    assert!(matches!(
        target.poll_event(),
        Some(TargetEvent::LoginReady(_))
    ));
    target.complete_login(Tsih(3));
    let answer = drain(&mut target);
    assert_eq!(answer.len(), 1);
    let response = LoginResponse::parse(&answer[0].0).unwrap();
    assert_eq!(
        (response.status_class, response.transit, response.tsih),
        (0, true, Tsih(3))
    );
    target
}

pub(crate) fn command(tag: u32, cmd_sn: u32) -> ScsiCommand {
    ScsiCommand {
        immediate: false,
        last: true,
        reads: false,
        writes: false,
        attribute: Attribute::Simple,
        total_ahs_length: 0,
        data_segment_length: 0,
        lun: Lun([0; 8]),
        itt: itt(tag),
        expected_data_transfer_length: 0,
        cmd_sn: CmdSn(cmd_sn),
        exp_stat_sn: StatSn(0),
        cdb: [0; 16],
    }
}

fn expect_command(target: &mut TargetConnection) -> TargetCommand {
    match target.poll_event() {
        Some(TargetEvent::Command(command)) => command,
        other => panic!("a command was expected, not {other:?}"),
    }
}

const NOW: Now = Now::ZERO;

// spec: RFC 7143 11.4 "SCSI Response".
#[test]
fn a_read_is_answered_with_data_status_and_residual() {
    let keys = "MaxRecvDataSegmentLength=512\0MaxBurstLength=1024\0";
    let mut target = logged_in(&TargetConfig::default(), Offer::default(), keys);
    let read = ScsiCommand {
        reads: true,
        expected_data_transfer_length: 4096,
        ..command(1, 100)
    };
    feed(&mut target, NOW, &read.write(), 9999);
    let seen = expect_command(&mut target);
    assert_eq!(
        (seen.itt, seen.reads, seen.cmd_sn),
        (itt(1), true, CmdSn(100))
    );
    let data: Vec<u8> = (0..1536u32).map(|i| i.to_le_bytes()[0]).collect();
    target.respond(
        seen.itt,
        Response {
            data_in: data.clone().into(),
            ..Response::default()
        },
    );
    let sent = drain(&mut target);
    assert_eq!(sent.len(), 3, "status comes with the last Data-In");
    let mut got = Vec::new();
    for (number, (header, part)) in (0u32..).zip(&sent) {
        let pdu = DataIn::parse(header).unwrap();
        assert_eq!(pdu.data_sn, DataSn(number));
        assert_eq!(pdu.buffer_offset, number * 512);
        assert_eq!(pdu.last, number >= 1, "a burst is 1024 bytes");
        assert_eq!(pdu.has_status, number == 2);
        assert_eq!(pdu.numbers.exp_cmd_sn, CmdSn(101));
        if number == 2 {
            assert!(pdu.underflow);
            assert_eq!(pdu.residual_count, 4096 - 1536);
        }
        got.extend_from_slice(part);
    }
    assert_eq!(got, data);
}

fn data_out(offset: u32, sn: u32, ttt: Option<Ttt>, last: bool, data: &[u8]) -> Vec<u8> {
    let header = DataOut {
        last,
        data_segment_length: 0,
        lun: Lun([0; 8]),
        itt: itt(9),
        ttt,
        exp_stat_sn: StatSn(0),
        data_sn: DataSn(sn),
        buffer_offset: offset,
    };
    pdu(header.write(), data)
}

// spec: RFC 7143 11.7 "SCSI Data-Out and SCSI Data-In", 13.10 "InitialR2T", 13.11 "ImmediateData".
#[test]
fn a_write_gathers_immediate_unsolicited_and_solicited_data() {
    for accept_at in 0..3 {
        one_write(accept_at);
    }
}

/// The owner takes the data before any has come, after the immediate data, or after all unsolicited
/// data.
fn one_write(accept_at: u32) {
    let keys = "InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=1024\0MaxBurstLength=1024\0\
                MaxOutstandingR2T=2\0";
    let mut target = logged_in(&TargetConfig::default(), Offer::default(), keys);
    let data: Vec<u8> = (0..3000u32).map(|i| (i * 7).to_le_bytes()[0]).collect();
    let expected_data_transfer_length = 3000;
    let write = ScsiCommand {
        writes: true,
        last: false,
        expected_data_transfer_length,
        ..command(9, 100)
    };
    let accept = |target: &mut TargetConnection, step| {
        if step == accept_at {
            target.accept_data(itt(9), 3000, BufMut::zeroed(3000));
        }
    };
    let first = pdu(write.write(), &data[..512]);
    feed(&mut target, NOW, &first[..48], 9999);
    assert_eq!(expect_command(&mut target).itt, itt(9), "before its data");
    accept(&mut target, 0);
    feed(&mut target, NOW, &first[48..], 100);
    accept(&mut target, 1);
    feed(
        &mut target,
        NOW,
        &data_out(512, 0, None, true, &data[512..1024]),
        7,
    );
    accept(&mut target, 2);
    let asked = drain(&mut target);
    assert_eq!(asked.len(), 2, "two R2Ts may be outstanding");
    let mut next = 1024usize;
    for (header, _) in asked {
        let r2t = ReadyToTransfer::parse(&header).unwrap();
        let (offset, ttt) = (r2t.buffer_offset, r2t.ttt);
        let part = &data[next..next + r2t.desired_data_transfer_length as usize];
        assert_eq!(offset as usize, next);
        next += part.len();
        assert!(target.poll_event().is_none());
        feed(
            &mut target,
            NOW,
            &data_out(offset, 0, ttt, false, &part[..500]),
            33,
        );
        feed(
            &mut target,
            NOW,
            &data_out(offset + 500, 1, ttt, true, &part[500..]),
            9999,
        );
    }
    let Some(TargetEvent::DataOut { data: got, .. }) = target.poll_event() else {
        panic!()
    };
    assert_eq!(got.to_vec(), data);
    target.respond(
        itt(9),
        Response {
            data_out_wanted: 3000,
            ..Response::default()
        },
    );
    let sent = drain(&mut target);
    let response = ScsiResponse::parse(&sent[0].0).unwrap();
    assert_eq!(
        (response.exp_data_sn, response.overflow, response.underflow),
        (2, false, false)
    );
    assert_eq!(target.in_progress(), 0);
}

#[test]
fn data_that_comes_with_its_command_is_not_asked_for_again() {
    let mut target = logged_in(
        &TargetConfig::default(),
        Offer::default(),
        "ImmediateData=Yes\0",
    );
    let data = [7; 1024];
    let write = ScsiCommand {
        writes: true,
        expected_data_transfer_length: 1024,
        ..command(9, 100)
    };
    let whole = pdu(write.write(), &data);
    feed(&mut target, NOW, &whole[..48], 9999);
    expect_command(&mut target);
    // The owner gives the buffer as soon as it has seen the header.
    target.accept_data(itt(9), 1024, BufMut::zeroed(1024));
    feed(&mut target, NOW, &whole[48..], 100);
    let Some(TargetEvent::DataOut { data: got, .. }) = target.poll_event() else {
        panic!("the data is whole")
    };
    assert_eq!(got.to_vec(), data);
    assert!(drain(&mut target).is_empty(), "no R2T");
}

#[test]
fn an_initiator_that_never_advances_exp_stat_sn_works_at_depth_512() {
    let config = TargetConfig {
        command_depth: 512,
        ..TargetConfig::default()
    };
    let mut target = logged_in(&config, Offer::default(), "");
    let (mut next, mut done) = (100u32, 0);
    while done < 5000 {
        let mut batch = Vec::new();
        for _ in 0..512 {
            batch.extend_from_slice(&command(next, next).write());
            next += 1;
        }
        feed(&mut target, NOW, &batch, 9999);
        while let Some(event) = target.poll_event() {
            let TargetEvent::Command(command) = event else {
                panic!("{event:?}")
            };
            target.respond(
                command.itt,
                Response {
                    status: 2,
                    ..Response::default()
                },
            );
            done += 1;
        }
        assert_eq!(drain(&mut target).len(), 512);
    }
}

/// Logs in with these offers; what the initiator proves with is `secret`.
fn try_login(
    authentication: Authentication,
    method: Option<&str>,
    secret: &[u8],
    mutual: bool,
) -> Option<TargetEvent> {
    let policy = Policy {
        authentication,
        ..Policy::default()
    };
    let mut target = TargetConnection::new(NOW, &TargetConfig::default(), Box::new(policy));
    let first = method.map_or(String::new(), |method| format!("AuthMethod={method}\0"));
    feed(
        &mut target,
        NOW,
        &login(0, Some(1), &format!("{NAMES}{first}")),
        9999,
    );
    let mut stage = 0;
    for (header, text) in drain(&mut target) {
        let response = LoginResponse::parse(&header).unwrap();
        if response.transit {
            stage = 1;
        } else if String::from_utf8_lossy(&text).contains("AuthMethod=CHAP") {
            feed(&mut target, NOW, &login(0, None, "CHAP_A=5,7\0"), 9999);
        }
    }
    for (_, text) in drain(&mut target) {
        let pairs = crate::text::pairs(&text).unwrap();
        let value = |key: &str| pairs.iter().find(|pair| pair.0 == key).unwrap().1;
        assert_eq!(value("CHAP_A"), "5", "the initiator's first choice");
        let identifier: u8 = value("CHAP_I").parse().unwrap();
        let challenge = crate::text::binary(value("CHAP_C"), 1024).unwrap();
        let response = ChapAlgorithm::Md5.response(identifier, &Secret::new(secret), &challenge);
        let mut answer = format!(
            "CHAP_N=user\0CHAP_R={}\0",
            crate::text::hexadecimal(&response)
        );
        if mutual {
            answer += "CHAP_I=9\0CHAP_C=0x0102030405060708\0";
        }
        feed(&mut target, NOW, &login(0, Some(1), &answer), 9999);
        stage = 1;
    }
    drain(&mut target);
    feed(&mut target, NOW, &login(stage, Some(3), ""), 9999);
    target.poll_event()
}

/// Field lesson 48: every configured against every offered way to authenticate.
#[test]
fn nobody_reaches_full_feature_phase_without_the_proof_that_is_configured() {
    let right: &[u8] = b"the initiator's secret";
    let configured = [
        (Authentication::NotRequired, false, false, false),
        (chap(None), true, false, false),
        (chap(Some(false)), true, true, false),
        (chap(Some(true)), true, true, true),
    ];
    let methods = [
        None,
        Some("None"),
        Some("CHAP"),
        Some("CHAP,None"),
        Some("None,CHAP"),
        Some("KRB5"),
    ];
    for (authentication, required, mutual_configured, mutual_required) in configured {
        for method in methods {
            for (secret, mutual) in [
                (right, false),
                (right, true),
                (b"wrong", false),
                (b"wrong", true),
            ] {
                let offers = |wanted| method.is_some_and(|list: &str| list.contains(wanted));
                let proves = offers("CHAP")
                    && secret == right
                    && (mutual_configured || !mutual)
                    && (mutual || !mutual_required);
                let expected = if required {
                    proves
                } else {
                    method.is_none() || offers("None")
                };
                let event = try_login(authentication.clone(), method, secret, mutual);
                let what = format!("{authentication:?} {method:?} {mutual} {event:?}");
                match event {
                    Some(TargetEvent::LoginReady(outcome)) => {
                        assert!(expected, "{what}");
                        assert_eq!(outcome.chap_user.is_some(), required);
                        assert_eq!(outcome.mutual, required && mutual);
                    }
                    Some(TargetEvent::LoginRefused { status, .. }) => {
                        assert!(!expected, "{what}");
                        assert_eq!(status, LoginStatus::AuthenticationFailure, "{what}");
                    }
                    _ => panic!("{what}"),
                }
            }
        }
    }
}

/// Nothing of a NIC is kept before the security stage is over, and nonsense is as if nothing had
/// been said: it neither ends the login nor is answered.
#[test]
fn a_nic_is_heard_of_in_the_operational_stage_only_and_nonsense_of_it_is_passed_over() {
    let key = "X-org.causeway.Nic";
    let mut target =
        TargetConnection::new(NOW, &TargetConfig::default(), Box::new(Policy::default()));
    let early = format!("{NAMES}AuthMethod=None\0{key}=early\0");
    feed(&mut target, NOW, &login(0, Some(1), &early), 9999);
    let answered = drain(&mut target);
    let text = String::from_utf8_lossy(&answered[0].1).into_owned();
    assert!(text.contains(&format!("{key}=NotUnderstood\0")), "{text}");
    feed(&mut target, NOW, &login(1, Some(3), ""), 9999);
    match target.poll_event() {
        Some(TargetEvent::LoginReady(outcome)) => assert_eq!(outcome.nic, None),
        other => panic!("{other:?}"),
    }
    for (said, heard) in [
        ("eth2,card:1", Some("eth2")),
        ("<script>alert(1)</script>", None),
        ("\u{1b}[2J", None),
        ("", None),
        ("NotUnderstood", Some("NotUnderstood")),
    ] {
        let policy = Box::new(Policy::default());
        let mut target = TargetConnection::new(NOW, &TargetConfig::default(), policy);
        let text = format!("{NAMES}{key}={said}\0{key}=again\0");
        feed(&mut target, NOW, &login(1, Some(3), &text), 9999);
        match target.poll_event() {
            Some(TargetEvent::LoginReady(outcome)) => {
                let name = outcome.nic.map(|nic| nic.name);
                assert_eq!(name.as_deref(), heard, "{said:?}");
            }
            other => panic!("{said:?}: {other:?}"),
        }
    }
}

/// What the owner wants, what comes with the command, what was handed in before it asked, and what
/// of the PDU is there: it is taken only where all that is wanted comes next, and its digest is
/// there and right.
#[test]
fn immediate_data_that_is_at_hand_is_taken_whole_or_not_at_all() {
    let digests = "DataDigest=CRC32C\0ImmediateData=Yes\0";
    for (keys, wanted, sent, before, there, taken) in [
        ("ImmediateData=Yes\0", 512, 512, 0, 600, true),
        ("ImmediateData=Yes\0", 512, 512, 0, 511, false),
        ("ImmediateData=Yes\0", 512, 512, 4, 600, false),
        ("ImmediateData=Yes\0", 512, 500, 0, 600, false),
        ("ImmediateData=Yes\0", 500, 512, 0, 600, false),
        ("InitialR2T=No\0ImmediateData=Yes\0", 512, 512, 0, 600, true),
        (digests, 512, 512, 0, 516, true),
        (digests, 512, 512, 0, 600, true),
        (digests, 512, 512, 0, 515, false),
        (digests, 512, 512, 0, 512, false),
    ] {
        let mut target = logged_in(&TargetConfig::default(), Offer::default(), keys);
        let digest = target.parameters().data_digest;
        let write = ScsiCommand {
            writes: true,
            last: true,
            expected_data_transfer_length: 512,
            ..command(9, 100)
        };
        let data = vec![7; sent];
        let mut whole = pdu(write.write(), &data);
        if digest {
            whole.extend_from_slice(&crate::digest::crc32c(&data));
        }
        let mut received = whole[48 + before..].to_vec();
        received.resize(there, 0xEE);
        feed(&mut target, NOW, &whole[..48], 9999);
        expect_command(&mut target);
        feed(&mut target, NOW, &whole[48..48 + before], 9999);
        let mut wrong = received.clone();
        wrong[0] ^= 1;
        if digest {
            assert_eq!(
                target.take_immediate(itt(9), wanted, &wrong),
                None,
                "damaged"
            );
        }
        let other = target.take_immediate(itt(8), wanted, &received);
        assert_eq!(other, None, "of another task");
        let own = target.take_immediate(itt(9), wanted, &received);
        let length = if digest { sent + 4 } else { sent };
        assert_eq!(own, taken.then_some(length), "{keys} {there}");
        let rest = if taken { 48 + length } else { 48 + before };
        if !taken {
            target.accept_data(itt(9), 512, BufMut::zeroed(512));
        }
        feed(&mut target, NOW, &whole[rest..], 100);
        match target.poll_event() {
            None if taken => {}
            None => assert!(sent < 512, "{keys}: the data"),
            Some(TargetEvent::DataOut { data, .. }) => {
                assert!(!taken && data.to_vec() == [7; 512], "{keys}");
            }
            Some(other) => panic!("{other:?}"),
        }
        assert_eq!(drain(&mut target).len(), usize::from(sent < 512), "R2T");
        // The stream goes on with the next PDU.
        feed(&mut target, NOW, &pdu(command(10, 101).write(), &[]), 9999);
        assert_eq!(expect_command(&mut target).itt, itt(10));
    }
}

#[test]
fn a_command_accepted_before_its_immediate_data_is_here_is_not_asked_for_that_data() {
    for (keys, sent) in [
        ("InitialR2T=Yes\0ImmediateData=Yes\0", 512),
        ("InitialR2T=Yes\0ImmediateData=Yes\0", 200),
        ("InitialR2T=No\0ImmediateData=Yes\0", 512),
    ] {
        let mut target = logged_in(&TargetConfig::default(), Offer::default(), keys);
        let write = ScsiCommand {
            writes: true,
            last: true,
            expected_data_transfer_length: 512,
            ..command(9, 100)
        };
        let whole = pdu(write.write(), &[7; 512][..sent]);
        feed(&mut target, NOW, &whole[..48], 9999);
        assert_eq!(expect_command(&mut target).itt, itt(9));
        target.accept_data(itt(9), 512, BufMut::zeroed(512));
        assert!(drain(&mut target).is_empty(), "it is on its way");
        feed(&mut target, NOW, &whole[48..], 100);
        let asked = drain(&mut target);
        if sent == 512 {
            assert!(asked.is_empty());
            assert!(
                matches!(target.poll_event(), Some(TargetEvent::DataOut { data, .. }) if data.to_vec() == [7; 512])
            );
        } else {
            let r2t = ReadyToTransfer::parse(&asked[0].0).unwrap();
            assert_eq!(r2t.buffer_offset as usize, sent);
            assert_eq!(r2t.desired_data_transfer_length as usize, 512 - sent);
        }
    }
}
