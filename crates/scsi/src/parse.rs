//! From the bytes of a CDB to a command, by the row of the table that knows how.

use crate::bytes::is_set;
use crate::cdb::{CdbError, Command};
use crate::opcode::{self, Opcode};

impl Command {
    /// The command of a CDB; bytes after it are padding.
    ///
    /// # Errors
    /// [`CdbError`] says which field is wrong.
    pub fn parse(cdb: &[u8]) -> Result<Self, CdbError> {
        Self::parse_with_opcode(cdb).map(|(command, _)| command)
    }

    /// The command together with its row of the table.
    ///
    /// # Errors
    /// [`CdbError`] says which field is wrong.
    pub fn parse_with_opcode(cdb: &[u8]) -> Result<(Self, &'static Opcode), CdbError> {
        let row = opcode::lookup(cdb)?;
        let control_at = row.cdb_length().saturating_sub(1);
        let control = cdb.get(control_at).ok_or(CdbError::Truncated)?;
        // spec: SAM-5 5.2 "Command descriptor block (CDB)": NACA one without NORMACA is refused.
        if is_set(*control, 2) {
            return Err(CdbError::field(u16::try_from(control_at).unwrap_or(0), 2));
        }
        Ok(((row.decode)(cdb)?, row))
    }
}
