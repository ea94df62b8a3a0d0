//! Saved mode parameters as they are kept through power loss.
//!
//! Four bytes: version 1, flags, the complement of the flags, zero. See `docs/formats/mode-parameters.md`.

use super::{ModeParameters, TaskSetType};
use crate::bytes::{flag, is_set};

const VERSION: u8 = 1;

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
        [VERSION, flags, !flags, 0]
    }

    /// Reads the stored form; `None` if it is damaged or of an unknown version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [version, flags, complement, zero] = *bytes.first_chunk()?;
        let sound = version == VERSION && flags == !complement && zero == 0 && flags & 0xe0 == 0;
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
            task_aborted_status: is_set(flags, 4),
        })
    }
}
