//! What stands in the way of a command before it touches anything.
//!
//! In this order (SAM-5, SPC-4 "Command processing"): unit attention, backing, access state,
//! reservation, and then what `scsi::admission` checks: fields, blocks, lengths, write protection.

use super::Request;
use crate::outcome::Refusal;
use crate::share::nexus::Nexus;
use crate::state::UnitState;
use scsi::admission::{self, WriteProtection};
use scsi::alua::Denial;
use scsi::opcode::{Attention, Opcode};
use scsi::unit_attention::Meeting;
use scsi::{AdditionalSense, Command, Sense, Status};

/// The bytes of data that the command wants, or why it is not done, with those bytes all the same
/// (for the residual).
pub(super) fn arrival(
    nexus: &Nexus,
    state: &UnitState,
    request: Request<'_>,
    command: &Command,
    row: &Opcode,
) -> Result<u64, (Refusal, u64)> {
    let block_size = state.description.block_size;
    let data_out = command
        .data_out_bytes(block_size)
        .map_or(0, |bytes| bytes.0);
    if nexus.is_guest() && !state.is_served() {
        // Another node serves from now on: the one that sent it is to hear of that first.
        return Err((Refusal::Status(Status::Busy), data_out));
    }
    if nexus.forwards(state, row, command) {
        // Reservations, and what is on the medium, are the owner's to say. What is longer than a
        // unit takes, or not allowed to this host, does not go there: hosts share the way.
        let checked = attention(nexus, row)
            .and_then(|()| admissible((nexus, state), (command, row), WriteProtection::None))
            .and_then(|()| length_of_data(command, data_out, request.data_out));
        return checked
            .map(|()| data_out)
            .map_err(|refusal| (refusal, data_out));
    }
    let checked = attention(nexus, row)
        .and_then(|()| ready(nexus, state, (command, row)))
        .and_then(|()| access_state(state, row))
        .and_then(|()| reservation(nexus, command, row))
        .and_then(|()| admissible((nexus, state), (command, row), protection(state)))
        .and_then(|()| length_of_data(command, data_out, request.data_out));
    checked
        .map(|()| data_out)
        .map_err(|refusal| (refusal, data_out))
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

fn ready(
    nexus: &Nexus,
    state: &UnitState,
    (command, row): (&Command, &Opcode),
) -> Result<(), Refusal> {
    if state.offline.is_none() {
        return Ok(());
    }
    let is_blind = || nexus.unit().shared().unreadable().is_some();
    if row.needs_ready || (needs_what_is_stored(command) && is_blind()) {
        return Err(Refusal::offline());
    }
    Ok(())
}

/// It reports or changes what a unit keeps. Where that cannot be read, nobody can say who has
/// registered; and what a host registers, or saves, would take the place of what may still be
/// brought back: those that were shut out would be let in.
fn needs_what_is_stored(command: &Command) -> bool {
    matches!(
        command,
        Command::PersistentReserveIn { .. }
            | Command::PersistentReserveOut(_)
            | Command::Reserve
            | Command::Release
            | Command::ModeSelect(_)
    )
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

fn admissible(
    (nexus, state): (&Nexus, &UnitState),
    (command, row): (&Command, &Opcode),
    protection: WriteProtection,
) -> Result<(), Refusal> {
    admission::check(command, row, &state.description, protection)?;
    if nexus.is_read_only() && row.writes_medium {
        return Err(Refusal::write_protected());
    }
    Ok(())
}

pub(super) fn protection(state: &UnitState) -> WriteProtection {
    if state.modes.current.software_write_protect {
        WriteProtection::Software
    } else {
        WriteProtection::None
    }
}

/// Data that has a form (a pattern, two halves, a parameter list) cannot be used in part. Plain
/// writes take what the host announced, and the residual reports the rest (RFC 7143 11.4.5.1).
fn length_of_data(command: &Command, wanted: u64, announced: u64) -> Result<(), Refusal> {
    let exact = matches!(command, Command::WriteSame(_));
    let whole = matches!(
        command,
        Command::Unmap { .. }
            | Command::ModeSelect(_)
            | Command::PersistentReserveOut(_)
            | Command::ExtendedCopy { .. }
            | Command::Verify { .. }
            | Command::WriteAtomic { .. }
    );
    if matches!(command, Command::CompareAndWrite(_)) && announced != wanted {
        // The two halves give the length twice, so it is the CDB's that is wrong.
        return Err(Sense::invalid_field_in_cdb(13, None).into());
    }
    if (exact && announced != wanted) || (whole && announced < wanted) {
        let code = AdditionalSense::INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT;
        return Err(Sense::illegal_request(code).into());
    }
    Ok(())
}
