//! What stands in the way of a command before it touches anything.
//!
//! In this order (SAM-5, SPC-4 "Command processing"): unit attention, backing, reservation, write
//! protection, and then the blocks that it names.

use crate::nexus::Nexus;
use crate::outcome::Refusal;
use crate::state::UnitState;
use scsi::alua::Denial;
use scsi::cdb::Access;
use scsi::opcode::{Attention, Opcode};
use scsi::unit_attention::Meeting;
use scsi::{AdditionalSense, Command, Sense, SenseKey, Status};
use units::BlockCount;

/// The bytes of data that the command wants, or why it is not done, with those bytes all the same (for the
/// residual).
pub(super) fn arrival(
    nexus: &Nexus,
    state: &UnitState,
    command: &Command,
    row: &Opcode,
) -> Result<u64, (Refusal, u64)> {
    let block_size = state.description.block_size;
    let Some(data_out) = command.data_out_bytes(block_size) else {
        return Err((out_of_range(command).into(), 0));
    };
    let checked = attention(nexus, row)
        .and_then(|()| ready(state, row))
        .and_then(|()| supported(state, row))
        .and_then(|()| access_state(state, row))
        .and_then(|()| reservation(nexus, command, row))
        .and_then(|()| write_protection(nexus, state, row))
        .and_then(|()| blocks(state, command));
    checked
        .map(|()| data_out.0)
        .map_err(|refusal| (refusal, data_out.0))
}

fn attention(nexus: &Nexus, row: &Opcode) -> Result<(), Refusal> {
    if row.attention == Attention::Returns {
        // REQUEST SENSE takes it when it runs.
        return Ok(());
    }
    match nexus.attentions.borrow_mut().meet(row.attention) {
        Meeting::Report(sense) => Err(sense.into()),
        Meeting::Proceed | Meeting::Return(_) => Ok(()),
    }
}

fn ready(state: &UnitState, row: &Opcode) -> Result<(), Refusal> {
    if row.needs_ready && state.offline.is_some() {
        return Err(Refusal::offline(state));
    }
    Ok(())
}

fn access_state(state: &UnitState, row: &Opcode) -> Result<(), Refusal> {
    state
        .access_state
        .admits(row.accessible)
        .map_err(|denial| match denial {
            Denial::Busy => Refusal::Status(Status::Busy),
            Denial::Check(sense) => sense.into(),
        })
}

fn reservation(nexus: &Nexus, command: &Command, row: &Opcode) -> Result<(), Refusal> {
    if nexus.rights().permits(command.conflict(row)) {
        return Ok(());
    }
    Err(Refusal::Status(Status::ReservationConflict))
}

fn supported(state: &UnitState, row: &Opcode) -> Result<(), Refusal> {
    if state.description.supports(row) {
        return Ok(());
    }
    Err(Sense::illegal_request(AdditionalSense::INVALID_COMMAND_OPERATION_CODE).into())
}

fn write_protection(nexus: &Nexus, state: &UnitState, row: &Opcode) -> Result<(), Refusal> {
    let protected = nexus.is_read_only()
        || state.description.read_only
        || state.modes.current.software_write_protect;
    if row.writes_medium && protected {
        return Err(Sense::new(SenseKey::DataProtect, AdditionalSense::WRITE_PROTECTED).into());
    }
    Ok(())
}

/// The blocks are there, and not more of them than the unit takes at once.
fn blocks(state: &UnitState, command: &Command) -> Result<(), Refusal> {
    let Some((range, access)) = command.blocks() else {
        return Ok(());
    };
    let inside = range
        .range()
        .is_some_and(|range| range.end().0 <= state.block_count().0);
    if !inside {
        return Err(Sense::lba_out_of_range(range.lba.0).into());
    }
    let limits = &state.description.limits;
    let most = match (command, access) {
        (Command::WriteSame(_), _) => limits.write_same_blocks_max,
        (Command::CompareAndWrite(_), _) => u64::from(limits.compare_and_write_blocks_max),
        (Command::Verify { .. }, _)
            if command
                .data_out_bytes(state.description.block_size)
                .is_some_and(|bytes| bytes.0 == 0) =>
        {
            u64::MAX
        }
        (_, Access::Read | Access::Write) => u64::from(limits.transfer_blocks_max),
        (_, Access::Hint) => u64::MAX,
    };
    if range.blocks > BlockCount(most) {
        return Err(Sense::invalid_field_in_cdb(length_byte(command), None).into());
    }
    Ok(())
}

/// Where the length stands, for the field pointer.
fn length_byte(command: &Command) -> u16 {
    if matches!(command, Command::CompareAndWrite(_)) {
        13
    } else {
        10
    }
}

fn out_of_range(command: &Command) -> Sense {
    Sense::lba_out_of_range(command.blocks().map_or(0, |(range, _)| range.lba.0))
}
