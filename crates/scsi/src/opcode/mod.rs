//! The one table of commands: what dispatches is what REPORT SUPPORTED OPERATION CODES reports.
//!
//! **Contract.** A command exists if and only if it has a row here. [`lookup`] finds the row of a
//! CDB; [`crate::cdb::Command::parse`] calls the row's decoder; reservations, ALUA states, unit
//! attentions and write protection ask the row, never a list of operation codes of their own.
//!
//! **Invariants.** I1: rows are sorted by operation code, then service action. I2: an operation
//! code has either one row without a service action or rows that all have one. I3: no row repeats
//! another. All three are checked when the crate is compiled.
//!
//! Spec: SPC-4 6.35 "REPORT SUPPORTED OPERATION CODES command", 5.9.1 "Persistent reservations
//! overview" (table of commands allowed in the presence of reservations), SBC-3 4.15
//! "Reservations".

mod report;
mod table;
#[cfg(test)]
mod test;

pub use report::report_supported_operation_codes;
pub use table::TABLE;

use crate::cdb::{CdbError, Command};

/// How a reservation held by another I_T nexus bears on a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Conflict {
    /// Allowed whatever is reserved.
    Never,
    /// Allowed with every persistent reservation, but not with an SPC-2 RESERVE.
    OnlySpc2,
    /// Does not change the medium: allowed where a write-exclusive type leaves others read.
    Reads,
    /// Changes the medium or the unit: allowed only to holders and, where the type says so,
    /// registrants.
    Writes,
    /// PERSISTENT RESERVE IN and OUT: conflict with any SPC-2 reservation, even one's own; beyond
    /// that the reservation machine decides.
    PersistentReserve,
    /// RESERVE and RELEASE of SPC-2: the reservation machine decides.
    Spc2Reserve,
}

/// In which asymmetric access states a command is served (SPC-4 5.15.2.4 "Target port asymmetric
/// access states").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Accessible {
    /// Active/optimized and active/non-optimized.
    Active,
    /// Also standby.
    Standby,
    /// Also unavailable, offline and transitioning.
    Always,
}

/// How a command meets a pending unit attention (SAM-5 5.14 "Unit attention conditions").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Attention {
    /// Reports the attention with CHECK CONDITION and is not done.
    Reports,
    /// Is done; the attention stays pending (INQUIRY, REPORT LUNS).
    Ignores,
    /// Is done and returns the attention as its data (REQUEST SENSE).
    Returns,
}

/// CDB USAGE DATA: a one for every bit that is evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Usage {
    bytes: [u8; 16],
    len: u8,
}

impl Usage {
    /// The mask, as long as the CDB.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.len))
            .unwrap_or(&self.bytes)
    }
}

/// One command.
#[derive(Clone, Copy, Debug)]
pub struct Opcode {
    /// OPERATION CODE.
    pub opcode: u8,
    /// SERVICE ACTION, for operation codes that have them.
    pub service_action: Option<u16>,
    /// The standard's name.
    pub name: &'static str,
    /// CDB USAGE DATA; its length is the CDB's.
    pub usage: Usage,
    /// How reservations bear on it.
    pub conflict: Conflict,
    /// In which asymmetric access states it is served.
    pub accessible: Accessible,
    /// How it meets a unit attention.
    pub attention: Attention,
    /// Needs a unit that is ready: started, its backing present.
    pub needs_ready: bool,
    /// Changes the medium, so write protection refuses it.
    pub writes_medium: bool,
    /// RECOMMENDED COMMAND TIMEOUT in seconds.
    pub timeout_seconds: u32,
    pub(crate) decode: fn(&[u8]) -> Result<Command, CdbError>,
}

impl Opcode {
    /// Bytes in the CDB.
    #[must_use]
    pub const fn cdb_length(&self) -> usize {
        self.usage.len as usize
    }
}

/// Rows of one operation code: where they start and how many there are.
const INDEX: [(u8, u8); 256] = {
    let mut index = [(0u8, 0u8); 256];
    let mut at = 0;
    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "evaluated at compile time, where a fault stops the build"
    )]
    while at < TABLE.len() {
        let slot = &mut index[TABLE[at].opcode as usize];
        if slot.1 == 0 {
            slot.0 = at as u8;
        }
        slot.1 += 1;
        at += 1;
    }
    index
};

/// I1, I2, I3.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a fault stops the build"
)]
const _: () = {
    assert!(TABLE.len() < 256);
    let mut at = 1;
    while at < TABLE.len() {
        let (before, row) = (&TABLE[at - 1], &TABLE[at]);
        assert!(before.opcode <= row.opcode);
        if before.opcode == row.opcode {
            match (before.service_action, row.service_action) {
                (Some(a), Some(b)) => assert!(a < b),
                _ => panic!("an operation code with and without service actions"),
            }
        }
        at += 1;
    }
};

/// All rows of an operation code; empty if it is not supported.
#[must_use]
pub fn rows(opcode: u8) -> &'static [Opcode] {
    let (start, count) = INDEX.get(usize::from(opcode)).copied().unwrap_or((0, 0));
    let (start, count) = (usize::from(start), usize::from(count));
    TABLE
        .get(start..start.saturating_add(count))
        .unwrap_or_default()
}

/// The row of a CDB.
///
/// # Errors
/// INVALID COMMAND OPERATION CODE; INVALID FIELD IN CDB for an unknown service action; truncated.
pub fn lookup(cdb: &[u8]) -> Result<&'static Opcode, CdbError> {
    let opcode = *cdb.first().ok_or(CdbError::Truncated)?;
    let rows = rows(opcode);
    let first = rows.first().ok_or(CdbError::InvalidOperationCode)?;
    let row = if first.service_action.is_some() {
        // Every service action of ours stands in the low five bits of byte 1.
        let action = u16::from(cdb.get(1).ok_or(CdbError::Truncated)? & 0x1f);
        rows.iter()
            .find(|row| row.service_action == Some(action))
            .ok_or(CdbError::field(1, 4))?
    } else {
        first
    };
    if cdb.len() < row.cdb_length() {
        return Err(CdbError::Truncated);
    }
    Ok(row)
}

impl Command {
    /// How reservations bear on this command: its row's class, save for the two commands where the
    /// CDB decides (SBC-3 table of commands allowed in the presence of reservations).
    #[must_use]
    pub fn conflict(&self, row: &Opcode) -> Conflict {
        match self {
            Self::StartStopUnit(start) if start.start && start.power_condition == 0 => {
                Conflict::Never
            }
            Self::PreventAllowMediumRemoval { prevent: false } => Conflict::Never,
            Self::StartStopUnit(_)
            | Self::PreventAllowMediumRemoval { .. }
            | Self::TestUnitReady
            | Self::RequestSense { .. }
            | Self::Inquiry { .. }
            | Self::ReportLuns { .. }
            | Self::Read(_)
            | Self::Write(_)
            | Self::WriteAtomic { .. }
            | Self::WriteAndVerify { .. }
            | Self::Verify { .. }
            | Self::WriteSame(_)
            | Self::OrWrite(_)
            | Self::CompareAndWrite(_)
            | Self::Unmap { .. }
            | Self::SynchronizeCache { .. }
            | Self::PreFetch { .. }
            | Self::GetLbaStatus { .. }
            | Self::ReadCapacity10
            | Self::ReadCapacity16 { .. }
            | Self::ReadDefectData10(_)
            | Self::ReadDefectData12(_)
            | Self::ExtendedCopy { .. }
            | Self::ReceiveCopyResults { .. }
            | Self::ModeSense(_)
            | Self::ModeSelect(_)
            | Self::LogSense(_)
            | Self::ReportSupportedOperationCodes { .. }
            | Self::ReportSupportedTaskManagementFunctions { .. }
            | Self::ReportTargetPortGroups { .. }
            | Self::ReceiveDiagnosticResults { .. }
            | Self::SendDiagnostic { .. }
            | Self::PersistentReserveIn { .. }
            | Self::PersistentReserveOut(_)
            | Self::Reserve
            | Self::Release => row.conflict,
        }
    }
}
