//! A READ and a WRITE of 4 KiB through the target's protocol machine: header in, event, answer,
//! pieces out. The payload is not copied; that is the driver's and the kernel's business.

use iscsi::bhs::{Attribute, Bhs, ScsiCommand};
use iscsi::initiator_side::{self, InitiatorConfig, InitiatorConnection};
use iscsi::target_side::{
    Authentication, LoginAsk, LoginPolicy, LoginRefusal, LoginTerms, Response, TargetConfig,
    TargetConnection, TargetEvent,
};
use iscsi::{CmdSn, DigestChoice, Isid, Itt, Lun, Offer, StatSn, Tsih, Want};
use std::hint::black_box;
use units::{Buf, Now, Pool};

const BYTES: u32 = 4096;

/// Lets everyone in.
struct Open;

impl LoginPolicy for Open {
    fn admit(&mut self, _: &LoginAsk<'_>) -> Result<LoginTerms, LoginRefusal> {
        Ok(LoginTerms {
            authentication: Authentication::NotRequired,
            target_alias: None,
            portal_group_tag: 1,
            offer: Offer::default(),
        })
    }

    fn random(&mut self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// Hands what one side sends to the other.
macro_rules! pass {
    ($from:expr, $to:expr) => {
        let bytes: Vec<u8> = $from.transmit().pieces().flatten().copied().collect();
        $from.sent(bytes.len());
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let n = match $to.want() {
                Want::Header { bytes } => {
                    $to.receive_header(Now::ZERO, &rest[..bytes])
                        .expect("a right header");
                    bytes
                }
                Want::Trailer { bytes } => {
                    $to.receive_trailer(Now::ZERO, &rest[..bytes])
                        .expect("a right trailer");
                    bytes
                }
                Want::Data { bytes } => {
                    let n = bytes.min($to.data_chunk().len());
                    $to.data_chunk()[..n].copy_from_slice(&rest[..n]);
                    $to.data_filled(n);
                    n
                }
                Want::Nothing => panic!("the login fails"),
            };
            rest = &rest[n..];
        }
    };
}

/// A target in full feature phase, and the next numbers of its initiator.
fn logged_in() -> (TargetConnection, CmdSn, StatSn) {
    let mut target = TargetConnection::new(Now::ZERO, &TargetConfig::default(), Box::new(Open));
    let isid = Isid([0x80, 0, 0, 1, 0, 0]);
    let mut config =
        InitiatorConfig::new("iqn.2026-11.example:i", Some("iqn.2026-11.example:t"), isid);
    config.offer = Offer {
        header_digest: DigestChoice::Never,
        data_digest: DigestChoice::Never,
        ..Offer::default()
    };
    let mut initiator = InitiatorConnection::new(Now::ZERO, &config);
    for _ in 0..10 {
        pass!(initiator, target);
        while let Some(event) = target.poll_event() {
            if let TargetEvent::LoginReady(_) = event {
                target.complete_login(Tsih(1));
            }
        }
        pass!(target, initiator);
        if let Some(initiator_side::InitiatorEvent::LoggedIn { .. }) = initiator.poll_event() {
            return (target, CmdSn(1), StatSn(0));
        }
    }
    panic!("the login does not end");
}

fn command(tag: u64, write: bool, cmd_sn: CmdSn, exp_stat_sn: StatSn) -> Bhs {
    let tag = u32::try_from(tag).expect("few commands");
    let mut cdb = [0; 16];
    cdb[0] = if write { 0x2a } else { 0x28 };
    cdb[8] = 8;
    let mut bhs = ScsiCommand {
        immediate: false,
        last: true,
        reads: !write,
        writes: write,
        attribute: Attribute::Simple,
        total_ahs_length: 0,
        data_segment_length: 0,
        lun: Lun::default(),
        itt: Itt::from_wire(tag).expect("not the reserved tag"),
        expected_data_transfer_length: BYTES,
        cmd_sn,
        exp_stat_sn,
        cdb,
    }
    .write();
    if write {
        bhs[5..8].copy_from_slice(&BYTES.to_be_bytes()[1..]);
    }
    bhs
}

/// Thirty-two commands come in together, as they do at depth 32; their answers leave together.
fn batches(count: u64, mut one: impl FnMut(&mut TargetConnection, u64, CmdSn)) {
    let (mut target, mut cmd_sn, _) = logged_in();
    for tag in 0..count {
        one(&mut target, tag, cmd_sn);
        cmd_sn = cmd_sn.next();
        if tag % 32 == 31 || tag + 1 == count {
            let bytes = target
                .transmit()
                .pieces()
                .map(|piece| black_box(piece).len())
                .sum();
            target.sent(bytes);
        }
    }
    assert_eq!(target.in_progress(), 0, "every command was answered");
}

fn only_command(target: &mut TargetConnection) -> Itt {
    match target.poll_event() {
        Some(TargetEvent::Command(command)) => black_box(command).itt,
        other => panic!("{other:?} where a command was sent"),
    }
}

pub(super) fn read(count: u64) {
    let data = Buf::zeroes(BYTES as usize);
    batches(count, |target, tag, cmd_sn| {
        let header = command(tag, false, cmd_sn, StatSn(0));
        target
            .receive_header(Now::ZERO, &header)
            .expect("a right header");
        let itt = only_command(target);
        let response = Response {
            data_in: data.clone(),
            ..Response::default()
        };
        target.respond(itt, response);
    });
}

pub(super) fn write(count: u64) {
    let pool = Pool::new(1 << 20);
    batches(count, |target, tag, cmd_sn| {
        let header = command(tag, true, cmd_sn, StatSn(0));
        target
            .receive_header(Now::ZERO, &header)
            .expect("a right header");
        let itt = only_command(target);
        let buffer = pool.alloc(BYTES as usize).expect("enough memory");
        target.accept_data(itt, BYTES, buffer);
        let chunk = target.data_chunk().len();
        target.data_filled(chunk);
        match target.poll_event() {
            Some(TargetEvent::DataOut { data, .. }) => drop(black_box(data)),
            other => panic!("{other:?} where data was sent"),
        }
        let response = Response {
            data_out_wanted: BYTES.into(),
            ..Response::default()
        };
        target.respond(itt, response);
    });
}

/// As [`write`], where the data was received together with its command and is lent.
pub(super) fn write_at_hand(count: u64) {
    let data = [0; BYTES as usize];
    batches(count, |target, tag, cmd_sn| {
        let header = command(tag, true, cmd_sn, StatSn(0));
        target
            .receive_header(Now::ZERO, &header)
            .expect("a right header");
        let itt = only_command(target);
        let taken = target.take_immediate(itt, BYTES, &data);
        assert_eq!(taken, Some(data.len()), "it is at hand");
        let response = Response {
            data_out_wanted: BYTES.into(),
            ..Response::default()
        };
        target.respond(itt, response);
    });
}
