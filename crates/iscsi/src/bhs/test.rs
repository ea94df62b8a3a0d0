//! Golden bytes, and every header read back.

use super::*;
use crate::ids::{Lun, Ttt};
use crate::serial::DataSn;
use proptest::prelude::*;

// spec: RFC 7143 11.3 "SCSI Command".
#[test]
fn a_scsi_command_is_these_bytes() {
    let command = ScsiCommand {
        immediate: true,
        last: true,
        reads: true,
        writes: false,
        attribute: Attribute::Ordered,
        total_ahs_length: 0,
        data_segment_length: 0x01_02_03,
        lun: Lun([0, 5, 0, 0, 0, 0, 0, 0]),
        itt: Itt::from_wire(0x1122_3344).unwrap(),
        expected_data_transfer_length: 0x200,
        cmd_sn: CmdSn(7),
        exp_stat_sn: StatSn(9),
        cdb: [0x28; 16],
    };
    let mut expected = vec![0x41, 0xC2, 0, 0, 0, 1, 2, 3, 0, 5, 0, 0, 0, 0, 0, 0];
    expected.extend([0x11, 0x22, 0x33, 0x44, 0, 0, 2, 0, 0, 0, 0, 7, 0, 0, 0, 9]);
    expected.extend([0x28; 16]);
    assert_eq!(command.write().to_vec(), expected);
    assert_eq!(ScsiCommand::parse(&command.write()), Ok(command));
}

// spec: RFC 7143 11.7 "SCSI Data-Out and SCSI Data-In".
#[test]
fn a_data_in_with_status_is_these_bytes() {
    let pdu = DataIn {
        last: true,
        acknowledge: false,
        overflow: false,
        underflow: true,
        has_status: true,
        status: 8,
        data_segment_length: 16,
        lun: Lun([0; 8]),
        itt: Itt::from_wire(1).unwrap(),
        ttt: None,
        numbers: Numbers {
            stat_sn: StatSn(2),
            exp_cmd_sn: CmdSn(3),
            max_cmd_sn: CmdSn(4),
        },
        data_sn: DataSn(5),
        buffer_offset: 6,
        residual_count: 7,
    };
    let mut expected = vec![
        0x25, 0x83, 0, 8, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    ];
    expected.extend([0xFF; 4]);
    for number in 2..8u8 {
        expected.extend([0, 0, 0, number]);
    }
    assert_eq!(pdu.write().to_vec(), expected);
}

// spec: RFC 7143 11.12 "Login Request".
#[test]
fn a_login_request_is_these_bytes() {
    let bytes = crate::target_side::test::login(0, Some(1), "");
    let mut expected = vec![0x43, 0x81, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 1, 0, 0];
    expected.extend([0, 0, 0, 77, 0, 1, 0, 0, 0, 0, 0, 100, 0, 0, 0, 5]);
    expected.extend([0; 16]);
    assert_eq!(bytes, expected);
}

// spec: RFC 7143 11.8 "Ready To Transfer (R2T)".
#[test]
fn an_r2t_is_these_bytes() {
    let pdu = ReadyToTransfer {
        lun: Lun([0; 8]),
        itt: Itt::from_wire(1).unwrap(),
        ttt: Ttt::from_wire(2),
        numbers: Numbers {
            stat_sn: StatSn(3),
            exp_cmd_sn: CmdSn(4),
            max_cmd_sn: CmdSn(5),
        },
        r2t_sn: crate::serial::R2tSn(6),
        buffer_offset: 7,
        desired_data_transfer_length: 8,
    };
    let mut expected = vec![0x31, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for number in 1..9u8 {
        expected.extend([0, 0, 0, number]);
    }
    assert_eq!(pdu.write().to_vec(), expected);
}

/// Reading, writing and reading again changes nothing.
macro_rules! stable {
    ($bytes:ident: $($fallible:ident),*; $($sure:ident),*) => {{
        $(if let Ok(first) = $fallible::parse(&$bytes) {
            prop_assert_eq!($fallible::parse(&first.write()), Ok(first));
            prop_assert_eq!(first.write()[0] & 0x3F, Opcode::$fallible as u8);
        })*
        $(let first = $sure::parse(&$bytes);
        prop_assert_eq!($sure::parse(&first.write()), first);)*
    }};
}

proptest! {
    // spec: RFC 7143 11.2 "PDU Template, Header, and Opcodes".
    #[test]
    fn every_header_reads_back_as_itself(bytes in proptest::array::uniform32(any::<u8>()), more in proptest::array::uniform16(any::<u8>())) {
        let mut header = [0; 48];
        header[..32].copy_from_slice(&bytes);
        header[32..].copy_from_slice(&more);
        stable!(header: ScsiCommand, ScsiResponse, TaskManagementRequest, TaskManagementResponse,
            DataOut, DataIn, ReadyToTransfer, TextRequest, TextResponse, LoginRequest, LoginResponse,
            LogoutRequest, LogoutResponse; NopOut, NopIn, Reject, AsyncMessage);
    }
}
