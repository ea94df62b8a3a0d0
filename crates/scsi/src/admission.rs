//! Whether a command that was parsed can be done by this unit, before anything is done.
//!
//! **Contract.** Checks in the order in which the standards' errors take precedence: is the command
//! there, are its fields within what the unit has, are its blocks on the medium, is the medium
//! writable. Reservations, ALUA and unit attentions come before (the table of commands says how),
//! parameter lists after.
//!
//! Spec: SBC-3 4.5 "Logical blocks" and the commands' clauses; page B0h for the limits.

use units::{BlockCount, Lba, LbaRange};

use crate::cdb::{BlockRange, ByteCheck, CdbError, Command, WriteSame};
use crate::description::UnitDescription;
use crate::opcode::Opcode;
use crate::sense::{AdditionalSense, Sense, SenseKey};

/// Why writing is not possible, beside the description's own `read_only`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteProtection {
    /// It is possible.
    None,
    /// SWP of the control mode page.
    Software,
}

/// Longest parameter list in bytes that is taken into memory: more than any that this unit could
/// follow has.
pub const PARAMETER_LIST_BYTES_MAX: u32 = 1 << 20;

/// The blocks that a command touches: empty for commands without blocks, and with zero blocks
/// resolved to the rest of the medium where the command means that.
///
/// # Errors
/// The sense data to end the command with: INVALID COMMAND OPERATION CODE, INVALID FIELD IN CDB,
/// LOGICAL BLOCK ADDRESS OUT OF RANGE, or DATA PROTECT.
pub fn check(
    command: &Command,
    row: &Opcode,
    unit: &UnitDescription,
    protection: WriteProtection,
) -> Result<LbaRange, Sense> {
    if !unit.supports(row) {
        return Err(CdbError::InvalidOperationCode.sense());
    }
    fields(command, unit).map_err(CdbError::sense)?;
    // The lists of EXTENDED COPY and PERSISTENT RESERVE OUT may have 4 GiB by their CDBs; a host
    // would get memory for all of it.
    if command.parameter_list_length() > PARAMETER_LIST_BYTES_MAX {
        return Err(Sense::parameter_list_length_error());
    }
    let range = match command.blocks() {
        Some((blocks, _)) => resolve(&blocks, command.zero_means_rest(), unit)?,
        None => empty(),
    };
    if let Command::GetLbaStatus { starting_lba, .. } = command
        && *starting_lba >= unit.block_count.0
    {
        return Err(Sense::lba_out_of_range(*starting_lba));
    }
    lengths(command, row, range.len().0, unit).map_err(CdbError::sense)?;
    // EXTENDED COPY writes to its destinations, which are checked on their own.
    if row.writes_medium && !matches!(command, Command::ExtendedCopy { .. }) {
        writable(unit, protection)?;
    }
    Ok(range)
}

/// The medium of this unit may be written.
///
/// # Errors
/// DATA PROTECT.
pub const fn writable(unit: &UnitDescription, protection: WriteProtection) -> Result<(), Sense> {
    let code = match protection {
        WriteProtection::Software => AdditionalSense::LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED,
        WriteProtection::None if unit.read_only => AdditionalSense::WRITE_PROTECTED,
        WriteProtection::None => return Ok(()),
    };
    Err(Sense::new(SenseKey::DataProtect, code))
}

fn empty() -> LbaRange {
    LbaRange::new(Lba(0), BlockCount(0)).expect("zero plus zero does not overflow")
}

fn resolve(
    blocks: &BlockRange,
    zero_means_rest: bool,
    unit: &UnitDescription,
) -> Result<LbaRange, Sense> {
    let capacity = unit.block_count.0;
    let start = blocks.lba.0;
    // spec: SBC-3: the LBA after the last one is out of range unless no block is asked for there.
    let out_of_range = Sense::lba_out_of_range(start.max(capacity));
    let left = capacity.checked_sub(start).ok_or(out_of_range)?;
    let count = if blocks.blocks.0 == 0 && zero_means_rest {
        left
    } else {
        blocks.blocks.0
    };
    if count > left {
        return Err(out_of_range);
    }
    LbaRange::new(blocks.lba, BlockCount(count)).ok_or(out_of_range)
}

/// Fields that depend on what the unit can do.
fn fields(command: &Command, unit: &UnitDescription) -> Result<(), CdbError> {
    let provisioning = &unit.provisioning;
    if let Command::WriteSame(same) = command {
        let may_unmap = if same.sixteen {
            provisioning.write_same_16
        } else {
            provisioning.write_same_10
        };
        if same.anchor && !provisioning.anchor {
            return Err(CdbError::field(1, 4));
        }
        if same.unmap && !may_unmap {
            return Err(CdbError::field(1, 3));
        }
    }
    if let Command::Unmap { anchor: true, .. } = command
        && !provisioning.anchor
    {
        return Err(CdbError::field(1, 0));
    }
    if let Command::WriteAtomic { range, boundary } = command {
        atomic(range, *boundary, unit)?;
    }
    Ok(())
}

/// SBC-4 "WRITE ATOMIC (16) command".
fn atomic(range: &BlockRange, boundary: u16, unit: &UnitDescription) -> Result<(), CdbError> {
    const LBA_AT: u16 = 2;
    const BOUNDARY_AT: u16 = 10;
    const LENGTH_AT: u16 = 12;
    let limits = &unit.limits.atomic;
    let aligned = |value: u64, unit: u32| value.checked_rem(unit.into()).unwrap_or(0) == 0;
    if u32::from(boundary) > limits.boundary_max {
        return Err(CdbError::bytes(BOUNDARY_AT));
    }
    let longest = if boundary == 0 {
        limits.blocks_max
    } else {
        limits.with_boundary_blocks_max
    };
    if range.blocks.0 > u64::from(longest) || !aligned(range.blocks.0, limits.granularity) {
        return Err(CdbError::bytes(LENGTH_AT));
    }
    if !aligned(range.lba.0, limits.alignment) {
        return Err(CdbError::bytes(LBA_AT));
    }
    Ok(())
}

/// Where the length field of a block command stands.
const fn length_at(row: &Opcode) -> u16 {
    match row.cdb_length() {
        6 => 4,
        10 => 7,
        12 => 6,
        _ => 10,
    }
}

/// Lengths above the limits of page B0h; `blocks` are the resolved ones.
fn lengths(
    command: &Command,
    row: &Opcode,
    blocks: u64,
    unit: &UnitDescription,
) -> Result<(), CdbError> {
    let limits = &unit.limits;
    let too_long = |limit: u64| limit != 0 && blocks > limit;
    let (wrong, at) = match command {
        Command::Read(_)
        | Command::Write(_)
        | Command::WriteAndVerify { .. }
        | Command::OrWrite(_)
        | Command::Verify {
            check: ByteCheck::Compare,
            ..
        } => (too_long(limits.transfer_blocks_max.into()), length_at(row)),
        Command::PreFetch { .. } => (too_long(limits.prefetch_blocks_max.into()), length_at(row)),
        Command::CompareAndWrite(_) => (blocks > limits.compare_and_write_blocks_max.into(), 13),
        Command::WriteSame(WriteSame { range, .. }) => {
            let zero = range.blocks.0 == 0 && limits.write_same_non_zero;
            (
                zero || too_long(limits.write_same_blocks_max),
                length_at(row),
            )
        }
        // Nothing is transferred, but all of it is read.
        Command::Verify { .. } => (too_long(limits.verify_blocks_max), length_at(row)),
        // Nothing is transferred, so nothing limits them; WRITE ATOMIC was checked with its fields.
        Command::WriteAtomic { .. }
        | Command::SynchronizeCache { .. }
        | Command::TestUnitReady
        | Command::RequestSense { .. }
        | Command::Inquiry { .. }
        | Command::ReportLuns { .. }
        | Command::Unmap { .. }
        | Command::GetLbaStatus { .. }
        | Command::ReadCapacity10
        | Command::ReadCapacity16 { .. }
        | Command::ReadDefectData10(_)
        | Command::ReadDefectData12(_)
        | Command::ExtendedCopy { .. }
        | Command::ReceiveCopyResults { .. }
        | Command::ModeSense(_)
        | Command::ModeSelect(_)
        | Command::LogSense(_)
        | Command::ReportSupportedOperationCodes { .. }
        | Command::ReportSupportedTaskManagementFunctions { .. }
        | Command::ReportTargetPortGroups { .. }
        | Command::StartStopUnit(_)
        | Command::PreventAllowMediumRemoval { .. }
        | Command::ReceiveDiagnosticResults { .. }
        | Command::SendDiagnostic { .. }
        | Command::PersistentReserveIn { .. }
        | Command::PersistentReserveOut(_)
        | Command::Reserve
        | Command::Release => (false, 0),
    };
    if wrong {
        Err(CdbError::bytes(at))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::description::{AtomicLimits, Provisioning, UnitLimits};
    use std::vec::Vec;

    fn unit() -> UnitDescription {
        UnitDescription {
            block_count: BlockCount(1000),
            limits: UnitLimits {
                transfer_blocks_max: 100,
                verify_blocks_max: 300,
                write_same_blocks_max: 500,
                compare_and_write_blocks_max: 4,
                atomic: AtomicLimits {
                    blocks_max: 8,
                    alignment: 8,
                    granularity: 8,
                    ..AtomicLimits::default()
                },
                unmap_blocks_max: u32::MAX,
                ..UnitLimits::default()
            },
            ..crate::vpd::test_unit()
        }
    }

    fn ask(cdb: &[u8], unit: &UnitDescription) -> Result<(u64, u64), Sense> {
        let mut padded = [0; 16];
        padded[..cdb.len()].copy_from_slice(cdb);
        let (command, row) = Command::parse_with_opcode(&padded).unwrap();
        check(&command, row, unit, WriteProtection::None).map(|r| (r.start().0, r.len().0))
    }

    fn ten(opcode: u8, byte1: u8, lba: u32, blocks: u16) -> Vec<u8> {
        let mut cdb = [opcode, byte1].to_vec();
        cdb.extend(lba.to_be_bytes());
        cdb.push(0);
        cdb.extend(blocks.to_be_bytes());
        cdb
    }

    #[test]
    fn every_block_is_on_the_medium_or_the_range_is_refused() {
        for opcode in [0x28, 0x2a, 0x2f, 0x34, 0x35, 0x41] {
            assert_eq!(ask(&ten(opcode, 0, 999, 1), &unit()), Ok((999, 1)));
            let past = Err(Sense::lba_out_of_range(1000));
            assert_eq!(ask(&ten(opcode, 0, 999, 2), &unit()), past);
            assert_eq!(ask(&ten(opcode, 0, 1000, 1), &unit()), past);
            let far = Err(Sense::lba_out_of_range(1001));
            assert_eq!(ask(&ten(opcode, 0, 1001, 0), &unit()), far);
        }
        let mut huge = [0xff; 16];
        huge[..2].copy_from_slice(&[0x88, 0]);
        huge[14..].copy_from_slice(&[0, 0]);
        assert_eq!(ask(&huge, &unit()), Err(Sense::lba_out_of_range(u64::MAX)));
    }

    #[test]
    fn zero_blocks_mean_the_rest_only_where_the_standard_says_so() {
        for (opcode, blocks) in [(0x28, 0), (0x2f, 0), (0x34, 400), (0x35, 400), (0x41, 400)] {
            assert_eq!(ask(&ten(opcode, 0, 600, 0), &unit()), Ok((600, blocks)));
        }
        let mut strict = unit();
        strict.limits.write_same_non_zero = true;
        let refused = ask(&ten(0x41, 0, 600, 0), &strict);
        assert_eq!(refused, Err(Sense::invalid_field_in_cdb(7, None)));
        let refused = ask(&ten(0x41, 0, 0, 0), &unit());
        assert_eq!(refused, Err(Sense::invalid_field_in_cdb(7, None)));
    }

    #[test]
    fn lengths_above_the_limits_point_at_the_length() {
        let refused = |at| Err(Sense::invalid_field_in_cdb(at, None));
        assert_eq!(ask(&ten(0x28, 0, 0, 101), &unit()), refused(7));
        assert_eq!(ask(&ten(0x2f, 2, 0, 101), &unit()), refused(7));
        assert_eq!(ask(&ten(0x2f, 0, 0, 300), &unit()), Ok((0, 300)));
        assert_eq!(ask(&ten(0x2f, 0, 0, 301), &unit()), refused(7));
        let mut caw = [0u8; 16];
        caw[0] = 0x89;
        caw[13] = 5;
        assert_eq!(ask(&caw, &unit()), refused(13));
        caw[13] = 4;
        assert_eq!(ask(&caw, &unit()), Ok((0, 4)));
    }

    #[test]
    fn a_parameter_list_that_nothing_could_follow_is_refused_before_it_is_asked_for() {
        for (opcode, at) in [(0x83, 10), (0x5f, 5)] {
            let with = |bytes: u32| {
                let mut cdb = [0_u8; 16];
                cdb[0] = opcode;
                cdb[at..at + 4].copy_from_slice(&bytes.to_be_bytes());
                let cdb = if opcode == 0x83 { &cdb[..] } else { &cdb[..10] };
                ask(cdb, &unit())
            };
            let refused = Err(Sense::parameter_list_length_error());
            assert_eq!(with(u32::MAX), refused, "{opcode:x}");
            assert_eq!(with(PARAMETER_LIST_BYTES_MAX + 1), refused, "{opcode:x}");
            assert_eq!(with(PARAMETER_LIST_BYTES_MAX), Ok((0, 0)), "{opcode:x}");
        }
    }

    #[test]
    fn atomic_writes_are_aligned_and_short() {
        let atomic = |lba: u8, boundary: u8, blocks: u8| {
            ask(
                &[0x9c, 0, 0, 0, 0, 0, 0, 0, 0, lba, 0, boundary, 0, blocks],
                &unit(),
            )
        };
        let refused = |at| Err(Sense::invalid_field_in_cdb(at, None));
        assert_eq!(atomic(8, 0, 8), Ok((8, 8)));
        assert_eq!(atomic(4, 0, 8), refused(2));
        assert_eq!(atomic(0, 0, 4), refused(12));
        assert_eq!(atomic(0, 0, 16), refused(12));
        assert_eq!(atomic(0, 8, 8), refused(10));
    }

    #[test]
    fn what_provisioning_does_not_have_is_refused() {
        let mut thick = unit();
        thick.provisioning = Provisioning::default();
        let no_such = Err(CdbError::InvalidOperationCode.sense());
        assert_eq!(ask(&[0x42], &thick), no_such);
        assert_eq!(ask(&[0x42], &unit()), Ok((0, 0)));
        let refused = |bit| Err(Sense::invalid_field_in_cdb(1, Some(bit)));
        assert_eq!(ask(&ten(0x41, 0x08, 0, 1), &thick), refused(3));
        assert_eq!(ask(&ten(0x41, 0x18, 0, 1), &unit()), refused(4));
        assert_eq!(ask(&[0x42, 1], &unit()), refused(0));
        thick.limits.atomic.blocks_max = 0;
        assert_eq!(ask(&[0x9c], &thick), no_such);
    }

    #[test]
    fn a_protected_medium_refuses_exactly_the_commands_that_write() {
        let protected = UnitDescription {
            read_only: true,
            ..unit()
        };
        for row in crate::opcode::TABLE {
            let mut cdb = [0; 16];
            cdb[0] = row.opcode;
            cdb[1] = row.service_action.map_or(0, |a| u8::try_from(a).unwrap());
            let refused = ask(&cdb, &protected).is_err_and(|s| s.key == SenseKey::DataProtect);
            let copies = row.opcode == 0x83;
            let writes = row.writes_medium && !copies && ask(&cdb, &unit()).is_ok();
            assert_eq!(refused, writes, "{}", row.name);
        }
    }
}
