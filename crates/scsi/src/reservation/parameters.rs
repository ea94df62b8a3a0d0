//! PERSISTENT RESERVE OUT parameter lists.
//!
//! Spec: SPC-4 6.16.3 "Basic PERSISTENT RESERVE OUT parameter list", 6.16.4 "Parameter list for the
//! PERSISTENT RESERVE OUT command with REGISTER AND MOVE service action".

use alloc::vec::Vec;

use super::{ReservationType, TransportId};
use crate::bytes::{Reader, is_set};
use crate::cdb::{PrOut, PrOutAction};
use crate::sense::Sense;

/// A whole PERSISTENT RESERVE OUT command, CDB and parameter list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrOutCommand {
    /// REGISTER and REGISTER AND IGNORE EXISTING KEY.
    Register {
        /// REGISTER AND IGNORE EXISTING KEY.
        ignore_existing: bool,
        /// RESERVATION KEY.
        key: u64,
        /// SERVICE ACTION RESERVATION KEY: the new key, zero to unregister.
        new_key: u64,
        /// SPEC_I_PT: other initiator ports to register too.
        others: Option<Vec<TransportId>>,
        /// ALL_TG_PT: through every target port.
        all_target_ports: bool,
        /// APTPL: keep through power loss.
        persist: bool,
    },
    /// RESERVE.
    Reserve {
        /// RESERVATION KEY.
        key: u64,
        /// TYPE.
        kind: ReservationType,
    },
    /// RELEASE.
    Release {
        /// RESERVATION KEY.
        key: u64,
        /// TYPE.
        kind: ReservationType,
    },
    /// CLEAR.
    Clear {
        /// RESERVATION KEY.
        key: u64,
    },
    /// PREEMPT and PREEMPT AND ABORT.
    Preempt {
        /// PREEMPT AND ABORT.
        abort: bool,
        /// RESERVATION KEY.
        key: u64,
        /// SERVICE ACTION RESERVATION KEY: whom to preempt.
        victim: u64,
        /// TYPE, or what is wrong with SCOPE or TYPE; asked for only where a reservation is
        /// preempted.
        kind: Result<ReservationType, Sense>,
    },
    /// REGISTER AND MOVE.
    RegisterAndMove {
        /// RESERVATION KEY.
        key: u64,
        /// SERVICE ACTION RESERVATION KEY: the key of the new holder.
        new_key: u64,
        /// UNREG: the old holder loses its registration.
        unregister: bool,
        /// APTPL.
        persist: bool,
        /// RELATIVE TARGET PORT IDENTIFIER of the new holder.
        target_port: u16,
        /// The new holder's initiator port.
        destination: TransportId,
    },
}

const SCOPE_AT: u16 = 2;
const FLAGS_AT: u16 = 20;
const TRANSPORT_IDS_AT: u16 = 24;

/// LU_SCOPE is the only scope that is not obsolete.
fn whole_unit(command: &PrOut) -> Result<ReservationType, Sense> {
    if command.scope != 0 {
        return Err(Sense::invalid_field_in_cdb(SCOPE_AT, Some(7)));
    }
    ReservationType::from_code(command.kind).ok_or(Sense::invalid_field_in_cdb(SCOPE_AT, Some(3)))
}

impl PrOutCommand {
    /// Reads the parameter list of `command`.
    ///
    /// # Errors
    /// PARAMETER LIST LENGTH ERROR, INVALID FIELD IN PARAMETER LIST, or INVALID FIELD IN CDB for
    /// SCOPE and TYPE.
    pub fn parse(command: &PrOut, list: &[u8]) -> Result<Self, Sense> {
        let length = usize::try_from(command.parameter_list_length)
            .map_err(|_| Sense::parameter_list_length_error())?;
        let list = list
            .get(..length)
            .ok_or(Sense::parameter_list_length_error())?;
        if command.action == PrOutAction::RegisterAndMove {
            return register_and_move(list);
        }
        let mut reader = Reader::new(list);
        let short = Sense::parameter_list_length_error;
        let key = reader.be64().ok_or_else(short)?;
        let service_key = reader.be64().ok_or_else(short)?;
        let [_, _, _, _, flags, _, _, _] = reader.array().ok_or_else(short)?;
        let registers = matches!(
            command.action,
            PrOutAction::Register | PrOutAction::RegisterAndIgnoreExistingKey
        );
        let with_others = registers && is_set(flags, 3);
        // spec: SPC-4 6.16.2: without SPEC_I_PT the list has 24 bytes.
        if !with_others && !reader.rest().is_empty() {
            return Err(short());
        }
        Ok(match command.action {
            PrOutAction::Register | PrOutAction::RegisterAndIgnoreExistingKey => {
                let ignore_existing = command.action == PrOutAction::RegisterAndIgnoreExistingKey;
                // spec: SPEC_I_PT belongs to REGISTER alone.
                if with_others && ignore_existing {
                    return Err(Sense::invalid_field_in_parameter_list(FLAGS_AT, Some(3)));
                }
                Self::Register {
                    ignore_existing,
                    key,
                    new_key: service_key,
                    others: with_others.then(|| others(&mut reader)).transpose()?,
                    all_target_ports: is_set(flags, 2),
                    persist: is_set(flags, 0),
                }
            }
            PrOutAction::Reserve => Self::Reserve {
                key,
                kind: whole_unit(command)?,
            },
            PrOutAction::Release => Self::Release {
                key,
                kind: whole_unit(command)?,
            },
            PrOutAction::Clear => Self::Clear { key },
            PrOutAction::Preempt | PrOutAction::PreemptAndAbort => Self::Preempt {
                abort: command.action == PrOutAction::PreemptAndAbort,
                key,
                victim: service_key,
                kind: whole_unit(command),
            },
            PrOutAction::RegisterAndMove => return register_and_move(list),
        })
    }
}

/// TRANSPORTID PARAMETER DATA LENGTH and the list that it counts.
fn others(reader: &mut Reader<'_>) -> Result<Vec<TransportId>, Sense> {
    let short = Sense::parameter_list_length_error;
    let length = reader.be32().ok_or_else(short)?;
    if usize::try_from(length).ok() != Some(reader.rest().len()) {
        return Err(short());
    }
    let mut list = Vec::new();
    while !reader.rest().is_empty() {
        let id = TransportId::take(reader).ok_or(Sense::invalid_field_in_parameter_list(
            TRANSPORT_IDS_AT,
            None,
        ))?;
        list.push(id);
    }
    Ok(list)
}

fn register_and_move(list: &[u8]) -> Result<PrOutCommand, Sense> {
    let short = Sense::parameter_list_length_error;
    let mut reader = Reader::new(list);
    let key = reader.be64().ok_or_else(short)?;
    let new_key = reader.be64().ok_or_else(short)?;
    let [_, flags, port_high, port_low] = reader.array().ok_or_else(short)?;
    let length = reader.be32().ok_or_else(short)?;
    if usize::try_from(length).ok() != Some(reader.rest().len()) {
        return Err(short());
    }
    let destination = TransportId::parse(reader.rest()).ok_or(
        Sense::invalid_field_in_parameter_list(TRANSPORT_IDS_AT, None),
    )?;
    Ok(PrOutCommand::RegisterAndMove {
        key,
        new_key,
        unregister: is_set(flags, 1),
        persist: is_set(flags, 0),
        target_port: u16::from_be_bytes([port_high, port_low]),
        destination,
    })
}
