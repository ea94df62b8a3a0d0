//! Commands as CDBs: the inverse of parsing, for initiators and for tests.
//!
//! A command that exists in several lengths is written in the longest one that we serve.

use super::{
    BlockRange, ByteCheck, Command, CopyResults, DefectList, LogSense, ModeForm, ModeSelect,
    ModeSense, PageControl, PrInAction, PrOut, PrOutAction, ReportLunsSelect, ReportedCommands,
    StartStop, WriteSame,
};
use crate::bytes::flag;

/// A CDB padded with zeros to what iSCSI carries.
type Bytes = [u8; 16];

impl Command {
    /// The CDB, padded with zeros to 16 bytes; `None` if a field does not fit (a value that was
    /// parsed always fits).
    #[must_use]
    pub fn to_cdb(&self) -> Option<Bytes> {
        Some(match self {
            Self::TestUnitReady
            | Self::RequestSense { .. }
            | Self::Inquiry { .. }
            | Self::StartStopUnit(_)
            | Self::PreventAllowMediumRemoval { .. }
            | Self::ReceiveDiagnosticResults { .. }
            | Self::SendDiagnostic { .. } => short(self)?,
            Self::Reserve => ten(0x56, 0, [0; 5], 0),
            Self::Release => ten(0x57, 0, [0; 5], 0),
            Self::ReadCapacity10 => ten(0x25, 0, [0; 5], 0),
            Self::ReadDefectData10(list) => {
                let length = u16::try_from(list.allocation_length).ok()?;
                ten(0x37, 0, [defects(list), 0, 0, 0, 0], length)
            }
            Self::ReadDefectData12(list) => {
                twelve(0xb7, defects(list), [0; 4], list.allocation_length)
            }
            Self::Unmap {
                anchor,
                parameter_list_length,
            } => ten(0x42, flag(*anchor, 0), [0; 5], *parameter_list_length),
            Self::ModeSense(sense) => mode_sense(sense)?,
            Self::ModeSelect(select) => mode_select(select)?,
            Self::LogSense(sense) => log_sense(sense),
            Self::PersistentReserveIn {
                action,
                allocation_length,
            } => ten(0x5e, pr_in(*action), [0; 5], *allocation_length),
            Self::PersistentReserveOut(out) => pr_out(out),
            Self::GetLbaStatus {
                starting_lba,
                allocation_length,
            } => sixteen(0x9e, 0x12, *starting_lba, *allocation_length),
            Self::ReadCapacity16 { allocation_length } => {
                sixteen(0x9e, 0x10, 0, *allocation_length)
            }
            Self::ExtendedCopy {
                parameter_list_length,
            } => sixteen(0x83, 0, 0, *parameter_list_length),
            Self::ReceiveCopyResults {
                action,
                list_identifier,
                allocation_length,
            } => {
                let list = u64::from_be_bytes([*list_identifier, 0, 0, 0, 0, 0, 0, 0]);
                sixteen(0x84, copy_results(*action), list, *allocation_length)
            }
            Self::ReportLuns { .. }
            | Self::ReportSupportedOperationCodes { .. }
            | Self::ReportSupportedTaskManagementFunctions { .. }
            | Self::ReportTargetPortGroups { .. } => report(self)?,
            Self::Read(_)
            | Self::Write(_)
            | Self::WriteAtomic { .. }
            | Self::WriteAndVerify { .. }
            | Self::Verify { .. }
            | Self::WriteSame(_)
            | Self::OrWrite(_)
            | Self::CompareAndWrite(_)
            | Self::SynchronizeCache { .. }
            | Self::PreFetch { .. } => return block(self),
        })
    }
}

/// Bytes 1 to 4.
const fn six(opcode: u8, [b1, b2, b3, b4]: [u8; 4]) -> Bytes {
    [opcode, b1, b2, b3, b4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// Byte 1, bytes 2 to 6, and the length in bytes 7 and 8.
const fn ten(opcode: u8, byte1: u8, [b2, b3, b4, b5, b6]: [u8; 5], length: u16) -> Bytes {
    let [b7, b8] = length.to_be_bytes();
    [
        opcode, byte1, b2, b3, b4, b5, b6, b7, b8, 0, 0, 0, 0, 0, 0, 0,
    ]
}

/// Byte 1, bytes 2 to 5, and the length in bytes 6 to 9.
const fn twelve(opcode: u8, byte1: u8, [b2, b3, b4, b5]: [u8; 4], length: u32) -> Bytes {
    let [b6, b7, b8, b9] = length.to_be_bytes();
    [
        opcode, byte1, b2, b3, b4, b5, b6, b7, b8, b9, 0, 0, 0, 0, 0, 0,
    ]
}

/// Byte 1, the LBA in bytes 2 to 9, and the length in bytes 10 to 13.
const fn sixteen(opcode: u8, byte1: u8, lba: u64, length: u32) -> Bytes {
    let [a, b, c, d, e, f, g, h] = lba.to_be_bytes();
    let [i, j, k, l] = length.to_be_bytes();
    [opcode, byte1, a, b, c, d, e, f, g, h, i, j, k, l, 0, 0]
}

fn cached(range: &BlockRange) -> u8 {
    flag(range.dpo, 4) | flag(range.fua, 3)
}

fn ranged(opcode: u8, byte1: u8, range: &BlockRange) -> Option<Bytes> {
    let blocks = u32::try_from(range.blocks.0).ok()?;
    Some(sixteen(opcode, byte1, range.lba.0, blocks))
}

fn checked(range: &BlockRange, check: ByteCheck) -> u8 {
    let check = match check {
        ByteCheck::Skip => 0x00,
        ByteCheck::Compare => 0x02,
        ByteCheck::CompareOneBlock => 0x06,
    };
    flag(range.dpo, 4) | check
}

/// Commands that only have a 6-byte form; `None` for all others.
fn short(command: &Command) -> Option<Bytes> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "to_cdb() lists every command and sends only these here"
    )]
    Some(match command {
        Command::TestUnitReady => six(0x00, [0; 4]),
        Command::RequestSense {
            descriptor,
            allocation_length,
        } => six(0x03, [flag(*descriptor, 0), 0, 0, *allocation_length]),
        Command::Inquiry {
            page,
            allocation_length,
        } => {
            let [high, low] = allocation_length.to_be_bytes();
            let evpd = flag(page.is_some(), 0);
            six(0x12, [evpd, page.unwrap_or(0), high, low])
        }
        Command::StartStopUnit(start) => start_stop(start),
        Command::PreventAllowMediumRemoval { prevent } => six(0x1e, [0, 0, 0, flag(*prevent, 0)]),
        Command::ReceiveDiagnosticResults {
            page,
            allocation_length,
        } => {
            let [high, low] = allocation_length.to_be_bytes();
            let page_code_valid = flag(page.is_some(), 0);
            six(0x1c, [page_code_valid, page.unwrap_or(0), high, low])
        }
        Command::SendDiagnostic {
            self_test,
            parameter_list_length,
        } => {
            let [high, low] = parameter_list_length.to_be_bytes();
            six(0x1d, [flag(*self_test, 2), 0, high, low])
        }
        _ => return None,
    })
}

/// Commands that name blocks; `None` for all others.
fn block(command: &Command) -> Option<Bytes> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "to_cdb() lists every command and sends only these here"
    )]
    match command {
        Command::Read(range) => ranged(0x88, cached(range), range),
        Command::Write(range) => ranged(0x8a, cached(range), range),
        Command::OrWrite(range) => ranged(0x8b, cached(range), range),
        Command::CompareAndWrite(range) => {
            let blocks = u8::try_from(range.blocks.0).ok()?;
            Some(sixteen(0x89, cached(range), range.lba.0, blocks.into()))
        }
        Command::WriteAtomic { range, boundary } => {
            let [b0, b1] = boundary.to_be_bytes();
            let [n0, n1] = u16::try_from(range.blocks.0).ok()?.to_be_bytes();
            let lengths = u32::from_be_bytes([b0, b1, n0, n1]);
            Some(sixteen(0x9c, cached(range), range.lba.0, lengths))
        }
        Command::WriteAndVerify { range, check } => ranged(0x8e, checked(range, *check), range),
        Command::Verify { range, check } => ranged(0x8f, checked(range, *check), range),
        Command::WriteSame(same) => write_same(same),
        Command::SynchronizeCache { range, immediate } => ranged(0x91, flag(*immediate, 1), range),
        Command::PreFetch { range, immediate } => ranged(0x90, flag(*immediate, 1), range),
        _ => None,
    }
}

fn write_same(same: &WriteSame) -> Option<Bytes> {
    let byte1 = flag(same.anchor, 4) | flag(same.unmap, 3);
    if same.sixteen {
        return ranged(0x93, byte1 | flag(same.no_data_out, 0), &same.range);
    }
    let [a, b, c, d] = u32::try_from(same.range.lba.0).ok()?.to_be_bytes();
    let blocks = u16::try_from(same.range.blocks.0).ok()?;
    Some(ten(0x41, byte1, [a, b, c, d, 0], blocks))
}

fn start_stop(start: &StartStop) -> Bytes {
    let condition = (start.power_condition & 0x0f) << 4;
    let bits = flag(start.no_flush, 2) | flag(start.load_eject, 1) | flag(start.start, 0);
    six(0x1b, [flag(start.immediate, 0), 0, 0, condition | bits])
}

const fn defects(list: &DefectList) -> u8 {
    flag(list.primary, 4) | flag(list.grown, 3) | (list.format & 0x07)
}

const fn page_control(control: PageControl) -> u8 {
    match control {
        PageControl::Current => 0x00,
        PageControl::Changeable => 0x40,
        PageControl::Default => 0x80,
        PageControl::Saved => 0xc0,
    }
}

fn mode_sense(sense: &ModeSense) -> Option<Bytes> {
    let byte1 = flag(sense.disable_block_descriptors, 3) | flag(sense.long_lba_accepted, 4);
    let page = page_control(sense.page_control) | (sense.page & 0x3f);
    let length = sense.allocation_length;
    Some(match sense.form {
        ModeForm::Six => six(
            0x1a,
            [byte1, page, sense.subpage, u8::try_from(length).ok()?],
        ),
        ModeForm::Ten => ten(0x5a, byte1, [page, sense.subpage, 0, 0, 0], length),
    })
}

fn mode_select(select: &ModeSelect) -> Option<Bytes> {
    let byte1 = flag(select.page_format, 4) | flag(select.save_pages, 0);
    let length = select.parameter_list_length;
    Some(match select.form {
        ModeForm::Six => six(0x15, [byte1, 0, 0, u8::try_from(length).ok()?]),
        ModeForm::Ten => ten(0x55, byte1, [0; 5], length),
    })
}

const fn log_sense(sense: &LogSense) -> Bytes {
    let page = page_control(sense.page_control) | (sense.page & 0x3f);
    let [high, low] = sense.parameter_pointer.to_be_bytes();
    ten(
        0x4d,
        0,
        [page, sense.subpage, 0, high, low],
        sense.allocation_length,
    )
}

const fn pr_in(action: PrInAction) -> u8 {
    match action {
        PrInAction::ReadKeys => 0x00,
        PrInAction::ReadReservation => 0x01,
        PrInAction::ReportCapabilities => 0x02,
        PrInAction::ReadFullStatus => 0x03,
    }
}

const fn pr_out(out: &PrOut) -> Bytes {
    let action = match out.action {
        PrOutAction::Register => 0x00,
        PrOutAction::Reserve => 0x01,
        PrOutAction::Release => 0x02,
        PrOutAction::Clear => 0x03,
        PrOutAction::Preempt => 0x04,
        PrOutAction::PreemptAndAbort => 0x05,
        PrOutAction::RegisterAndIgnoreExistingKey => 0x06,
        PrOutAction::RegisterAndMove => 0x07,
    };
    let scope_and_type = ((out.scope & 0x0f) << 4) | (out.kind & 0x0f);
    let [b5, b6, b7, b8] = out.parameter_list_length.to_be_bytes();
    let length = u16::from_be_bytes([b7, b8]);
    ten(0x5f, action, [scope_and_type, 0, 0, b5, b6], length)
}

const fn copy_results(action: CopyResults) -> u8 {
    match action {
        CopyResults::CopyStatus => 0x00,
        CopyResults::ReceiveData => 0x01,
        CopyResults::OperatingParameters => 0x03,
        CopyResults::FailedSegmentDetails => 0x04,
    }
}

/// REPORT LUNS and the reports of MAINTENANCE IN; `None` for all others.
fn report(command: &Command) -> Option<Bytes> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "to_cdb() lists every command and sends only these here"
    )]
    match command {
        Command::ReportLuns {
            select,
            allocation_length,
        } => {
            let select = match select {
                ReportLunsSelect::Addressable => 0x00,
                ReportLunsSelect::WellKnown => 0x01,
                ReportLunsSelect::All => 0x02,
                ReportLunsSelect::Administrative => 0x10,
                ReportLunsSelect::AllAdministrative => 0x11,
                ReportLunsSelect::Subsidiary => 0x12,
            };
            Some(twelve(0xa0, 0, [select, 0, 0, 0], *allocation_length))
        }
        Command::ReportSupportedOperationCodes {
            which,
            timeouts,
            allocation_length,
        } => {
            let (options, opcode, action) = match which {
                ReportedCommands::All => (0, 0, 0),
                ReportedCommands::Opcode { opcode } => (1, *opcode, 0),
                ReportedCommands::ServiceAction {
                    opcode,
                    service_action,
                } => (2, *opcode, *service_action),
                ReportedCommands::Either {
                    opcode,
                    service_action,
                } => (3, *opcode, *service_action),
            };
            let [high, low] = action.to_be_bytes();
            let fields = [flag(*timeouts, 7) | options, opcode, high, low];
            Some(twelve(0xa3, 0x0c, fields, *allocation_length))
        }
        Command::ReportSupportedTaskManagementFunctions {
            extended,
            allocation_length,
        } => {
            let fields = [flag(*extended, 7), 0, 0, 0];
            Some(twelve(0xa3, 0x0d, fields, *allocation_length))
        }
        Command::ReportTargetPortGroups {
            extended,
            allocation_length,
        } => Some(twelve(
            0xa3,
            flag(*extended, 5) | 0x0a,
            [0; 4],
            *allocation_length,
        )),
        _ => None,
    }
}
