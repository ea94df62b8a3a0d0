//! Inputs that reach deep, to start a corpus with.

use super::login_bytes;
use crate::bhs::{
    Attribute, DataOut, LoginRequest, LogoutRequest, NopOut, ScsiCommand, StageBits,
    TaskManagementRequest, TextRequest,
};
use crate::ids::{Cid, Isid, Itt, Lun, Tsih, Ttt};
use crate::negotiation::KEYS;
use crate::serial::{CmdSn, DataSn, StatSn};
use crate::text;

fn itt(tag: u32) -> Itt {
    Itt::from_wire(tag).expect("seeds use small tags")
}

fn pdu(header: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = [header, data].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn length(data: &[u8]) -> u32 {
    u32::try_from(data.len()).expect("seeds are short")
}

fn keys(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in pairs {
        text::push(&mut out, key, value);
    }
    out
}

/// A request of a login that stays in its stage.
fn login(stage: StageBits, next: Option<StageBits>, pairs: &[(&str, &str)]) -> Vec<u8> {
    let data = keys(pairs);
    let request = LoginRequest {
        immediate: true,
        transit: next.is_some(),
        continues: false,
        stage,
        next_stage: next.unwrap_or(StageBits::SECURITY),
        version_max: 0,
        version_min: 0,
        data_segment_length: length(&data),
        isid: Isid::random([1, 2, 3], 4),
        tsih: Tsih(0),
        itt: itt(0),
        cid: Cid(0),
        cmd_sn: CmdSn(0),
        exp_stat_sn: StatSn(0),
    };
    pdu(&request.write(), &data)
}

/// A login with CHAP as far as one gets without the secret.
fn chap_login() -> Vec<u8> {
    let security = |pairs| login(StageBits::SECURITY, None, pairs);
    [
        security(&[
            ("InitiatorName", "iqn.a"),
            ("TargetName", "iqn.t"),
            ("SessionType", "Normal"),
            ("AuthMethod", "CHAP,None"),
        ]),
        security(&[("CHAP_A", "7,5,8,6")]),
        login(
            StageBits::SECURITY,
            Some(StageBits::OPERATIONAL),
            &[
                ("CHAP_N", "user"),
                ("CHAP_R", "0x00112233445566778899aabbccddeeff"),
                ("CHAP_I", "1"),
                ("CHAP_C", "0bAAECAwQFBgcICQoLDA0ODw=="),
            ],
        ),
        login(
            StageBits::OPERATIONAL,
            Some(StageBits::FULL_FEATURE),
            &[("HeaderDigest", "CRC32C,None"), ("MaxBurstLength", "512")],
        ),
    ]
    .concat()
}

/// The first byte of the CDB says what the fuzzers' owner does with it.
fn command(tag: u32, cmd_sn: u32, cdb_0: u8, edtl: u32, data: &[u8]) -> Vec<u8> {
    let mut cdb = [0; 16];
    if let Some(first) = cdb.first_mut() {
        *first = cdb_0;
    }
    let writes = cdb_0 & 3 == 1;
    let command = ScsiCommand {
        immediate: false,
        last: true,
        reads: !writes,
        writes,
        attribute: Attribute::Simple,
        total_ahs_length: 0,
        data_segment_length: length(data),
        lun: Lun([0; 8]),
        itt: itt(tag),
        expected_data_transfer_length: edtl,
        cmd_sn: CmdSn(cmd_sn),
        exp_stat_sn: StatSn(1),
        cdb,
    };
    pdu(&command.write(), data)
}

fn data_out(tag: u32, ttt: Option<u32>, data_sn: u32, offset: u32, data: &[u8]) -> Vec<u8> {
    let data_out = DataOut {
        last: true,
        data_segment_length: length(data),
        lun: Lun([0; 8]),
        itt: itt(tag),
        ttt: ttt.and_then(Ttt::from_wire),
        exp_stat_sn: StatSn(1),
        data_sn: DataSn(data_sn),
        buffer_offset: offset,
    };
    pdu(&data_out.write(), data)
}

/// What a session does after its login: reads, writes with immediate and solicited data, text, NOP,
/// functions.
fn requests() -> Vec<u8> {
    let text = keys(&[("SendTargets", "All")]);
    let ask = TextRequest {
        immediate: false,
        last: true,
        continues: false,
        data_segment_length: length(&text),
        lun: Lun([0; 8]),
        itt: itt(4),
        ttt: None,
        cmd_sn: CmdSn(3),
        exp_stat_sn: StatSn(1),
    };
    let nop = NopOut {
        immediate: true,
        data_segment_length: 4,
        lun: Lun([0; 8]),
        itt: Some(itt(5)),
        ttt: None,
        cmd_sn: CmdSn(4),
        exp_stat_sn: StatSn(1),
    };
    let abort = TaskManagementRequest {
        immediate: true,
        function: 1,
        lun: Lun([0; 8]),
        itt: itt(6),
        referenced_itt: Some(itt(3)),
        cmd_sn: CmdSn(4),
        exp_stat_sn: StatSn(1),
        ref_cmd_sn: CmdSn(2),
        exp_data_sn: 0,
    };
    let logout = LogoutRequest {
        immediate: false,
        reason: 0,
        itt: itt(7),
        cid: Cid(0),
        cmd_sn: CmdSn(4),
        exp_stat_sn: StatSn(1),
    };
    [
        command(1, 0, 3, 512, &[]),
        command(2, 1, 1, 24, &[0xA5; 8]),
        data_out(2, Some(1), 0, 8, &[0x5A; 16]),
        command(3, 2, 0, 0, &[]),
        pdu(&ask.write(), &text),
        pdu(&nop.write(), b"ping"),
        pdu(&abort.write(), &[]),
        pdu(&logout.write(), &[]),
    ]
    .concat()
}

/// Name and bytes: `login_stream` for one that must not get in, `pdu_stream` for what follows a
/// login, `session` for both at once, `text_keys` for one text.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    for key in KEYS {
        for value in ["Yes", "No", "512", "65536", "None,CRC32C", "?"] {
            text::push(&mut all, key.name, value);
        }
    }
    let some = keys(&[
        ("HeaderDigest", "CRC32C,None"),
        ("InitialR2T", "No"),
        ("FirstBurstLength", "65536"),
        ("MaxBurstLength", "0x40000"),
        ("X-com.example.key", "1"),
        (
            "X-org.causeway.Nic",
            "eth2,card:0000:03:00,speed:1000000000",
        ),
    ]);
    vec![
        ("login_stream", chap_login()),
        ("login_stream", login_bytes()),
        ("pdu_stream", requests()),
        ("session", [login_bytes(), requests()].concat()),
        ("text_keys", all),
        ("text_keys", some),
    ]
}
