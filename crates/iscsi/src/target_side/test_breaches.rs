//! What a target answers to initiators that do it wrong, and to requests that are rare.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "any other event fails the test"
)]

use super::test::*;
use super::*;
use crate::bhs::*;
use crate::*;
use core::time::Duration;
use units::{BufMut, Now};

const NOW: Now = Now::ZERO;

/// Status, and whether the connection is over, after these login PDUs.
fn login_fate(bytes: &[u8]) -> (Option<LoginStatus>, bool) {
    let policy = Policy::default();
    let mut target = TargetConnection::new(NOW, &TargetConfig::default(), Box::new(policy));
    feed(&mut target, NOW, bytes, 99);
    let mut status = None;
    while let Some(event) = target.poll_event() {
        if let TargetEvent::LoginRefused {
            status: refused,
            reason,
            ..
        } = event
        {
            assert!(!reason.is_empty());
            status = Some(refused);
        }
    }
    let sent = drain(&mut target);
    if let Some(expected) = status {
        let last = LoginResponse::parse(&sent.last().unwrap().0).unwrap();
        assert_eq!((last.status_class, last.status_detail), expected.code());
        assert!(!last.transit);
    }
    assert!(target.held_bytes() <= UNAUTHENTICATED_BYTES_MAX);
    (status, target.want() == Want::Nothing)
}

// spec: RFC 7143 11.13 "Login Response", 11.13.5 "Status-Class and Status-Detail".
#[test]
fn every_refusal_of_a_login_has_its_exact_status() {
    use LoginStatus::*;
    let name = "InitiatorName=i\0";
    let version = {
        let mut bytes = login(1, Some(3), NAMES);
        bytes[2..4].copy_from_slice(&[9, 9]);
        bytes
    };
    let cases = [
        (login(1, Some(3), "TargetName=t\0"), MissingParameter),
        (login(1, Some(3), name), MissingParameter),
        (
            login(1, Some(3), "InitiatorName=i\0SessionType=Odd\0"),
            SessionTypeNotSupported,
        ),
        (
            login(1, Some(3), "InitiatorName=i\0TargetName=nothing\0"),
            NotFound,
        ),
        (
            login(1, Some(3), "InitiatorName=i\0TargetName=moved\0"),
            TargetMovedTemporarily,
        ),
        (login(1, Some(3), "no pair"), InitiatorError),
        (
            login(
                1,
                Some(3),
                &format!("{NAMES}MaxBurstLength=512\0MaxBurstLength=512\0"),
            ),
            InitiatorError,
        ),
        (
            login(1, Some(3), &format!("{NAMES}CHAP_A=5\0")),
            InitiatorError,
        ),
        (
            login(1, Some(3), &format!("{NAMES}TargetAlias=x\0")),
            InitiatorError,
        ),
        (
            login(0, Some(1), &format!("{NAMES}MaxBurstLength=512\0")),
            InitiatorError,
        ),
        (login(2, Some(3), NAMES), InitiatorError),
        (login(1, Some(1), NAMES), InitiatorError),
        (login(0, Some(2), NAMES), InitiatorError),
        (
            login_with(1, Some(3), true, NAMES.as_bytes()),
            InitiatorError,
        ),
        (
            login(0, Some(1), &format!("{NAMES}AuthMethod=KRB5\0")),
            AuthenticationFailure,
        ),
        (version, UnsupportedVersion),
    ];
    for (bytes, status) in cases {
        assert_eq!(login_fate(&bytes), (Some(status), true), "{status}");
    }
    let mut then_nop = login(0, None, NAMES);
    then_nop.extend_from_slice(&[0; 48]);
    assert_eq!(
        login_fate(&then_nop),
        (Some(InvalidRequestDuringLogin), true)
    );
}

/// Field lesson 47: the parser that anybody can reach.
// spec: RFC 7143 6.3 "Login Phase".
#[test]
fn odd_login_pdus_are_answered_or_dropped_and_never_kept_without_bound() {
    // C bit and no data, for ever: given up after a bounded number.
    let endless: Vec<u8> = (0..100)
        .flat_map(|_| login_with(0, None, true, b""))
        .collect();
    assert_eq!(
        login_fate(&endless),
        (Some(LoginStatus::InitiatorError), true)
    );
    // A chain that is too long.
    let long: Vec<u8> = (0..4)
        .flat_map(|_| login_with(0, None, true, &[b'x'; 8000]))
        .collect();
    assert_eq!(login_fate(&long), (Some(LoginStatus::InitiatorError), true));
    // A data segment that is too long, and a PDU that never ends.
    assert_eq!(login_fate(&login(0, None, &"x".repeat(9000))), (None, true));
    assert_eq!(login_fate(&login(0, None, NAMES)[..60]), (None, false));
    // A pair that is cut in two by the C bit, and no zero byte at the end.
    let (front, back) = NAMES.split_at(20);
    let mut chain = login_with(1, None, true, front.as_bytes());
    chain.extend(login(1, Some(3), back.trim_end_matches('\0')));
    assert_eq!(login_fate(&chain), (None, false));
    // Something that is not a login at all.
    assert_eq!(login_fate(&[0; 48]), (None, true));
}

#[test]
fn a_login_that_dawdles_and_a_silent_initiator_are_closed() {
    let config = TargetConfig::default();
    let policy = Box::new(Policy::default());
    let mut target = TargetConnection::new(NOW, &config, policy);
    feed(&mut target, NOW, &login(0, None, NAMES), 99);
    let deadline = target.next_tick().unwrap();
    assert_eq!(deadline, NOW.after(config.login_timeout));
    target.tick(deadline);
    assert_eq!(target.want(), Want::Nothing);

    let mut target = logged_in(&config, Offer::default(), "");
    let ping = target.next_tick().unwrap();
    target.tick(ping);
    let sent = drain(&mut target);
    let nop = NopIn::parse(&sent[0].0);
    assert!(nop.itt.is_none() && nop.ttt.is_some());
    target.tick(ping.after(config.ping_timeout - Duration::from_nanos(1)));
    assert_ne!(target.want(), Want::Nothing);
    target.tick(ping.after(config.ping_timeout));
    assert!(matches!(
        target.poll_event(),
        Some(TargetEvent::Closed(CloseReason::KeepaliveTimedOut))
    ));
}

fn write(tag: u32, cmd_sn: u32, length: u32, last: bool) -> ScsiCommand {
    ScsiCommand {
        writes: true,
        last,
        expected_data_transfer_length: length,
        ..command(tag, cmd_sn)
    }
}

fn data(tag: u32, ttt: Option<Ttt>, sn: u32, offset: u32, length: usize, last: bool) -> Vec<u8> {
    let header = DataOut {
        last,
        data_segment_length: 0,
        lun: Lun([0; 8]),
        itt: itt(tag),
        ttt,
        exp_stat_sn: StatSn(0),
        data_sn: DataSn(sn),
        buffer_offset: offset,
    };
    pdu(header.write(), &vec![7; length])
}

const UNSOLICITED: &str = "InitialR2T=No\0FirstBurstLength=1024\0MaxBurstLength=2048\0";

fn faults(target: &mut TargetConnection) -> Vec<DataFault> {
    std::iter::from_fn(|| target.poll_event())
        .filter_map(|event| match event {
            TargetEvent::DataFault { fault, .. } => Some(fault),
            TargetEvent::Command(_) => None,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn wrong_data_ends_its_task_and_nothing_else() {
    use DataFault::*;
    let first = |tag, length, last| write(tag, 100, length, last).write().to_vec();
    let cases: Vec<(&str, Vec<Vec<u8>>, DataFault)> = vec![
        (
            "",
            vec![first(1, 4096, true), data(1, None, 0, 0, 512, true)],
            UnexpectedUnsolicitedData,
        ),
        (
            "ImmediateData=No\0",
            vec![pdu(write(1, 100, 512, true).write(), &[1; 512])],
            UnexpectedUnsolicitedData,
        ),
        (
            UNSOLICITED,
            vec![pdu(write(1, 100, 512, true).write(), &[1; 513])],
            UnexpectedUnsolicitedData,
        ),
        (
            UNSOLICITED,
            vec![pdu(write(1, 100, 4096, true).write(), &[1; 1025])],
            UnexpectedUnsolicitedData,
        ),
        (
            UNSOLICITED,
            vec![first(1, 4096, false), data(1, None, 0, 0, 1028, true)],
            UnexpectedUnsolicitedData,
        ),
        (
            UNSOLICITED,
            vec![first(1, 4096, false), data(1, None, 27, 0, 512, true)],
            IncorrectAmountOfData,
        ),
        (
            UNSOLICITED,
            vec![first(1, 4096, false), data(1, None, 0, 512, 512, true)],
            IncorrectAmountOfData,
        ),
        (
            UNSOLICITED,
            vec![
                first(1, 4096, false),
                data(1, None, 0, 0, 256, false),
                data(1, None, 0, 256, 256, true),
            ],
            IncorrectAmountOfData,
        ),
    ];
    for (keys, pdus, fault) in cases {
        let mut target = logged_in(&TargetConfig::default(), Offer::default(), keys);
        feed(&mut target, NOW, &pdus.concat(), 99);
        assert_eq!(faults(&mut target), [fault], "{keys:?}");
        // Late data for it is swallowed, and the next command works.
        feed(&mut target, NOW, &data(1, None, 0, 0, 64, true), 99);
        target.respond(
            itt(1),
            Response {
                status: 2,
                ..Response::default()
            },
        );
        feed(&mut target, NOW, &data(1, None, 0, 0, 64, true), 99);
        feed(&mut target, NOW, &write(2, 101, 0, true).write(), 99);
        assert!(matches!(target.poll_event(), Some(TargetEvent::Command(_))));
        assert!(target.poll_event().is_none());
    }
}

#[test]
fn a_burst_that_ends_early_is_a_fault_and_one_in_any_order_is_not() {
    for in_order in ["Yes", "No"] {
        let offer = Offer {
            data_pdu_in_order: false,
            ..Offer::default()
        };
        let keys = format!("InitialR2T=Yes\0ImmediateData=No\0DataPDUInOrder={in_order}\0");
        let mut target = logged_in(&TargetConfig::default(), offer, &keys);
        feed(&mut target, NOW, &write(1, 100, 1024, true).write(), 99);
        target.accept_data(itt(1), 1024, BufMut::zeroed(1024));
        let sent = drain(&mut target);
        let r2t = ReadyToTransfer::parse(&sent[0].0).unwrap();
        feed(&mut target, NOW, &data(1, r2t.ttt, 0, 512, 512, false), 99);
        feed(&mut target, NOW, &data(1, r2t.ttt, 1, 0, 512, true), 99);
        let events: Vec<TargetEvent> = std::iter::from_fn(|| target.poll_event()).collect();
        let whole = matches!(events.last(), Some(TargetEvent::DataOut { .. }));
        let fault = DataFault::IncorrectAmountOfData;
        let failed = matches!(events.last(), Some(TargetEvent::DataFault { fault: seen, .. }) if *seen == fault);
        assert_eq!(
            (whole, failed),
            (in_order == "No", in_order == "Yes"),
            "{events:?}"
        );
    }
    let mut target = logged_in(
        &TargetConfig::default(),
        Offer::default(),
        "InitialR2T=Yes\0",
    );
    feed(&mut target, NOW, &write(1, 100, 1024, true).write(), 99);
    target.accept_data(itt(1), 1024, BufMut::zeroed(1024));
    let sent = drain(&mut target);
    let r2t = ReadyToTransfer::parse(&sent[0].0).unwrap();
    feed(&mut target, NOW, &data(1, r2t.ttt, 0, 0, 512, true), 99);
    assert_eq!(faults(&mut target), [DataFault::IncorrectAmountOfData]);
}

// spec: RFC 7143 4.2.2.1 "Command Numbering and Acknowledging".
#[test]
fn commands_run_in_order_once_and_inside_the_window() {
    let config = TargetConfig {
        command_depth: 8,
        ..TargetConfig::default()
    };
    let mut target = logged_in(&config, Offer::default(), "");
    for (tag, cmd_sn) in [(2, 101), (1, 100), (1, 100), (9, 109), (3, 102), (8, 99)] {
        feed(&mut target, NOW, &command(tag, cmd_sn).write(), 99);
    }
    let seen: Vec<u32> = std::iter::from_fn(|| target.poll_event())
        .map(|event| match event {
            TargetEvent::Command(command) => command.itt.get(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seen, [1, 2, 3]);
    assert!(
        drain(&mut target).is_empty(),
        "what is outside is ignored in silence"
    );
}

fn abort(tag: u32, cmd_sn: u32, referenced: u32, ref_cmd_sn: u32) -> Vec<u8> {
    let request = TaskManagementRequest {
        immediate: true,
        function: 1,
        lun: Lun([0; 8]),
        itt: itt(tag),
        referenced_itt: Some(itt(referenced)),
        cmd_sn: CmdSn(cmd_sn),
        exp_stat_sn: StatSn(0),
        ref_cmd_sn: CmdSn(ref_cmd_sn),
        exp_data_sn: 0,
    };
    request.write().to_vec()
}

// spec: RFC 7143 11.6.1 "Response".
#[test]
fn abort_task_finds_what_is_here_what_never_came_and_what_never_was() {
    let mut target = logged_in(&TargetConfig::default(), Offer::default(), "");
    feed(&mut target, NOW, &command(1, 100).write(), 99);
    feed(&mut target, NOW, &command(3, 102).write(), 99);
    let referenced = |target: &mut TargetConnection, bytes: &[u8]| {
        feed(target, NOW, bytes, 99);
        std::iter::from_fn(|| target.poll_event())
            .filter_map(|event| match event {
                TargetEvent::TaskManagement(request) => Some(request.referenced),
                _ => None,
            })
            .last()
            .unwrap()
    };
    assert_eq!(
        referenced(&mut target, &abort(50, 103, 1, 100)),
        ReferencedTask::Here(itt(1))
    );
    assert_eq!(
        referenced(&mut target, &abort(51, 103, 8, 90)),
        ReferencedTask::Unknown(Some(itt(8)))
    );
    assert_eq!(
        referenced(&mut target, &abort(52, 103, 9, 103)),
        ReferencedTask::Unknown(Some(itt(9)))
    );
    // 101 has not come: it counts as received now, which frees 102.
    feed(&mut target, NOW, &abort(53, 103, 2, 101), 99);
    let events: Vec<TargetEvent> = std::iter::from_fn(|| target.poll_event()).collect();
    assert!(matches!(&events[0], TargetEvent::Command(command) if command.itt == itt(3)));
    assert!(matches!(&events[1], TargetEvent::TaskManagement(request)
        if request.referenced == ReferencedTask::NeverArrived));
    feed(&mut target, NOW, &command(2, 101).write(), 99);
    assert!(target.poll_event().is_none(), "it never runs");
    for tag in [50, 51, 52, 53] {
        target.task_management_response(itt(tag), TaskManagementAnswer::Complete);
    }
    assert_eq!(drain(&mut target).len(), 4);
    target.forget(itt(1));
    assert_eq!(target.in_progress(), 1);
}

// spec: RFC 7143 11.17 "Reject".
#[test]
fn what_is_rejected_is_sent_back_with_its_reason() {
    let mut snack = [0; 48];
    snack[0] = 0x10;
    let mut unknown = [0; 48];
    unknown[0] = 0x1C;
    let mut attribute = command(1, 100).write();
    attribute[1] |= 7;
    let in_use = [command(1, 100).write(), command(1, 101).write()].concat();
    let cases: [(Vec<u8>, RejectReason); 5] = [
        (snack.to_vec(), RejectReason::SnackReject),
        (unknown.to_vec(), RejectReason::CommandNotSupported),
        (attribute.to_vec(), RejectReason::InvalidPduField),
        (login(1, Some(3), NAMES), RejectReason::ProtocolError),
        (in_use, RejectReason::TaskInProgress),
    ];
    for (bytes, reason) in cases {
        let mut target = logged_in(&TargetConfig::default(), Offer::default(), "");
        feed(&mut target, NOW, &bytes, 99);
        let sent = drain(&mut target);
        let reject = Reject::parse(&sent[0].0);
        assert_eq!(RejectReason::from_code(reject.reason), Some(reason));
        assert_eq!(sent[0].1.len(), 48);
        let second = reason == RejectReason::TaskInProgress;
        assert_eq!(
            sent[0].1,
            if second { &bytes[48..96] } else { &bytes[..48] }
        );
        // The window does not wait for what was rejected.
        assert_ne!(target.want(), Want::Nothing);
    }
}

// spec: RFC 7143 11.18 "NOP-Out", 11.15 "Logout Response".
#[test]
fn a_ping_is_echoed_and_a_logout_ends_the_connection() {
    let mut target = logged_in(&TargetConfig::default(), Offer::default(), "");
    let nop = NopOut {
        immediate: true,
        data_segment_length: 0,
        lun: Lun([0; 8]),
        itt: Some(itt(5)),
        ttt: None,
        cmd_sn: CmdSn(100),
        exp_stat_sn: StatSn(0),
    };
    feed(&mut target, NOW, &pdu(nop.write(), b"hello"), 2);
    let sent = drain(&mut target);
    assert_eq!(
        (NopIn::parse(&sent[0].0).itt, &sent[0].1[..]),
        (Some(itt(5)), &b"hello"[..])
    );
    target.async_message(AsyncEvent::LogoutRequested { seconds: 3 });
    let sent = drain(&mut target);
    let message = AsyncMessage::parse(&sent[0].0);
    assert_eq!((message.event, message.parameter_3), (1, 3));
    for (reason, cid, answer) in [(2, 1, Some(2)), (1, 9, Some(1)), (0, 1, None)] {
        let logout = LogoutRequest {
            immediate: true,
            reason,
            itt: itt(6),
            cid: Cid(cid),
            cmd_sn: CmdSn(100),
            exp_stat_sn: StatSn(0),
        };
        feed(&mut target, NOW, &logout.write(), 99);
        let sent = drain(&mut target);
        let response = sent
            .first()
            .map(|(header, _)| LogoutResponse::parse(header).unwrap().response);
        assert_eq!(response, answer);
    }
    assert!(matches!(
        target.poll_event(),
        Some(TargetEvent::Logout { .. })
    ));
    target.logout_response(itt(6), LogoutAnswer::Closed);
    assert_eq!(drain(&mut target).len(), 1);
    assert!(matches!(
        target.poll_event(),
        Some(TargetEvent::Closed(CloseReason::LoggedOut))
    ));
    assert_eq!(target.want(), Want::Nothing);
}

/// A command with additional header segments: extended CDB, bidirectional length; with and without
/// digests.
// spec: RFC 7143 11.2.1 "Basic Header Segment".
#[test]
fn additional_header_segments_are_read_in_two_parts() {
    for digest in [false, true] {
        let (choice, keys) = match digest {
            true => (
                DigestChoice::Required,
                "HeaderDigest=CRC32C\0DataDigest=CRC32C\0",
            ),
            false => (DigestChoice::Never, ""),
        };
        let offer = Offer {
            header_digest: choice,
            data_digest: choice,
            ..Offer::default()
        };
        for damaged in [false, true] {
            let mut target = logged_in(&TargetConfig::default(), offer.clone(), keys);
            let mut bytes = ScsiCommand {
                reads: true,
                writes: true,
                expected_data_transfer_length: 512,
                total_ahs_length: 7,
                ..command(1, 100)
            }
            .write()
            .to_vec();
            // 16 more CDB bytes: length 17 with the reserved byte, type 1; then type 2, length 5.
            bytes.extend([0, 17, 1, 0]);
            bytes.extend(1..=16u8);
            bytes.extend([0, 5, 2, 0, 0, 0, 16, 0]);
            if digest {
                bytes.extend(digest::crc32c(&bytes));
            }
            if damaged {
                bytes[60] ^= 1;
            }
            feed(&mut target, NOW, &bytes, 99);
            match target.poll_event() {
                Some(TargetEvent::Command(command)) => {
                    assert!(!(digest && damaged));
                    let extension = command.cdb_extension.unwrap();
                    assert_eq!(extension.len(), 16);
                    assert_eq!(extension[15], 16);
                    assert_eq!(command.bidirectional_read_length, Some(4096));
                }
                other => {
                    assert!(digest && damaged, "{other:?}");
                    assert_eq!(
                        target.want(),
                        Want::Nothing,
                        "a damaged header ends the connection"
                    );
                }
            }
        }
    }
}

/// The window counts down with what is in progress and comes back with the answers.
#[test]
fn max_cmd_sn_says_how_much_more_is_taken() {
    let config = TargetConfig {
        command_depth: 4,
        ..TargetConfig::default()
    };
    let mut target = logged_in(&config, Offer::default(), "");
    for number in 0..6 {
        feed(&mut target, NOW, &command(number, 100 + number).write(), 99);
    }
    assert_eq!(target.in_progress(), 4, "two came beyond the window");
    for number in 0..4 {
        target.respond(
            itt(number),
            Response {
                status: 2,
                ..Response::default()
            },
        );
    }
    let windows: Vec<u32> = drain(&mut target)
        .iter()
        .map(|(header, _)| ScsiResponse::parse(header).unwrap().numbers.max_cmd_sn.0)
        .collect();
    assert_eq!(windows, [104, 105, 106, 107]);
}

#[test]
fn a_fence_is_reported_and_answered_and_one_that_makes_no_sense_is_rejected() {
    let mut target = logged_in(&TargetConfig::default(), Offer::default(), "");
    for (text, good) in [
        ("X-org.causeway.Fence=800000000001,0007\0", true),
        ("X-org.causeway.Fence=80000000001,0007\0", false),
        (
            "SendTargets=All\0X-org.causeway.Fence=800000000001,0007\0",
            false,
        ),
    ] {
        let mut bytes = pdu([0; 48], text.as_bytes());
        bytes[..2].copy_from_slice(&[0x44, 0x80]);
        bytes[16..20].copy_from_slice(&[0, 0, 0, 4]);
        bytes[20..24].fill(0xFF);
        feed(&mut target, NOW, &bytes, 99);
        match target.poll_event() {
            Some(TargetEvent::Fence { isid, tsih, .. }) => {
                assert!(good, "{text}");
                assert_eq!((isid.0[5], tsih), (1, Tsih(7)));
                target.fence_response(itt(4), true);
                let sent = drain(&mut target);
                assert_eq!(sent[0].1, b"X-org.causeway.Fence=Fenced\0");
            }
            other => assert!(!good, "{text} {other:?}"),
        }
        drain(&mut target);
        while target.poll_event().is_some() {}
    }
}

/// As clients ask in a normal session: their own target for `All`, a Reject for what makes no
/// sense.
// spec: RFC 7143 11.10 "Text Request", appendix C "SendTargets Operation".
#[test]
fn text_in_a_normal_session_reports_its_own_target_only() {
    let cases = [
        ("SendTargets=All\0", true),
        ("SendTargets=\0", true),
        ("SendTargets=iqn.2026-11.test:t\0", true),
        ("SendTargets=Alle\0", false),
        ("SendTargets=A\0", false),
        ("sENDtARGETS=aLL\0", false),
        ("SendTargetsPlease=All\0", false),
    ];
    let mut target = logged_in(&TargetConfig::default(), Offer::default(), "");
    for (text, good) in cases {
        let request = TextRequest {
            immediate: true,
            continues: false,
            last: true,
            data_segment_length: 0,
            lun: Lun([0; 8]),
            itt: itt(4),
            ttt: None,
            cmd_sn: CmdSn(100),
            exp_stat_sn: StatSn(0),
        };
        feed(&mut target, NOW, &pdu(request.write(), text.as_bytes()), 99);
        match target.poll_event() {
            Some(TargetEvent::SendTargets { scope, .. }) => {
                assert!(good, "{text}");
                assert_eq!(scope, SendTargets::One("iqn.2026-11.test:t".into()));
                target.send_targets_response(itt(4), &[]);
                let sent = drain(&mut target);
                assert_eq!(sent[0].0[..2], [0x24, 0x80]);
            }
            other => {
                assert!(
                    !good && matches!(other, Some(TargetEvent::Rejected { .. })),
                    "{text} {other:?}"
                );
                let sent = drain(&mut target);
                assert_eq!(
                    Reject::parse(&sent[0].0).reason,
                    RejectReason::ProtocolError as u8
                );
                assert_eq!(
                    sent[0].1[16..20],
                    [0, 0, 0, 4],
                    "the initiator finds its request"
                );
            }
        }
        assert_eq!(target.in_progress(), 0);
    }
    let extension = "X-com.example.key=1\0MaxRecvDataSegmentLength=4096\0";
    let mut bytes = pdu([0; 48], extension.as_bytes());
    bytes[..2].copy_from_slice(&[0x44, 0x80]);
    bytes[20..24].fill(0xFF);
    feed(&mut target, NOW, &bytes, 99);
    assert_eq!(
        drain(&mut target)[0].1,
        b"X-com.example.key=NotUnderstood\0"
    );
    assert_eq!(target.parameters().peer_max_recv_data_segment_length, 4096);
}
