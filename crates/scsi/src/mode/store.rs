//! Saved mode parameters as they are kept through power loss.
//!
//! Four bytes: version, flags, the complement of the flags, zero. See
//! `docs/formats/mode-parameters.md`.

use super::{ModeParameters, TaskSetType};
use crate::bytes::{flag, is_set};

/// TAS is one, whatever the flags say: programs for which zero was the default have saved it beside
/// what was meant.
const VERSION_TAS_ONE: u8 = 1;
/// TAS is what the flags say, and zero: somebody wanted it.
const VERSION_TAS_ZERO: u8 = 2;

impl ModeParameters {
    /// The stored form.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; 4] {
        let per_nexus = matches!(self.task_set_type, TaskSetType::PerNexus);
        let flags = flag(self.write_cache_enabled, 0)
            | flag(self.descriptor_sense, 1)
            | flag(self.software_write_protect, 2)
            | flag(per_nexus, 3)
            | flag(self.task_aborted_status, 4);
        let version = if self.task_aborted_status {
            VERSION_TAS_ONE
        } else {
            VERSION_TAS_ZERO
        };
        [version, flags, !flags, 0]
    }

    /// Reads the stored form; `None` if it is damaged or of an unknown version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [version, flags, complement, zero] = *bytes.first_chunk()?;
        let task_aborted_status = match version {
            VERSION_TAS_ONE => true,
            VERSION_TAS_ZERO if !is_set(flags, 4) => false,
            _ => return None,
        };
        let sound = flags == !complement && zero == 0 && flags & 0xe0 == 0;
        if !sound || bytes.len() != 4 {
            return None;
        }
        Some(Self {
            write_cache_enabled: is_set(flags, 0),
            descriptor_sense: is_set(flags, 1),
            software_write_protect: is_set(flags, 2),
            task_set_type: if is_set(flags, 3) {
                TaskSetType::PerNexus
            } else {
                TaskSetType::Shared
            },
            task_aborted_status,
        })
    }
}
