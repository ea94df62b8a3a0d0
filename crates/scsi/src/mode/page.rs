//! The pages, as bytes.
//!
//! Spec: SPC-4 7.5.8 "Control mode page", 7.5.9 "Control Extension mode page", 7.5.10
//! "Disconnect-Reconnect mode page", 7.5.13 "Power Condition mode page"; SBC-3 6.4.5 "Caching mode
//! page", 6.4.6 "Informational Exceptions Control mode page", 6.4.8 "Read-Write Error Recovery mode
//! page".

use alloc::vec::Vec;

use super::{ModeParameters, ModeUnit, TaskSetType};
use crate::bytes::{Writer, flag, is_set};

/// PS: the page can be saved.
const SAVEABLE: u8 = 0x80;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Page {
    ErrorRecovery,
    DisconnectReconnect,
    Caching,
    Control,
    ControlExtension,
    PowerCondition,
    InformationalExceptions,
}

impl Page {
    /// Ascending by page code and subpage code, as MODE SENSE returns them.
    pub(super) const ALL: [Self; 7] = [
        Self::ErrorRecovery,
        Self::DisconnectReconnect,
        Self::Caching,
        Self::Control,
        Self::ControlExtension,
        Self::PowerCondition,
        Self::InformationalExceptions,
    ];

    /// Page code and subpage code.
    pub(super) const fn code(self) -> (u8, u8) {
        match self {
            Self::ErrorRecovery => (0x01, 0),
            Self::DisconnectReconnect => (0x02, 0),
            Self::Caching => (0x08, 0),
            Self::Control => (0x0a, 0),
            Self::ControlExtension => (0x0a, 1),
            Self::PowerCondition => (0x1a, 0),
            Self::InformationalExceptions => (0x1c, 0),
        }
    }

    /// Page 3Fh means all pages, subpage FFh all subpages.
    pub(super) fn matching(page: u8, subpage: u8) -> Vec<Self> {
        let wanted = |candidate: &Self| {
            let (own_page, own_subpage) = candidate.code();
            (page == 0x3f || page == own_page) && (subpage == 0xff || subpage == own_subpage)
        };
        // 3Fh takes no subpage but 00h and FFh.
        if page == 0x3f && subpage != 0 && subpage != 0xff {
            return Vec::new();
        }
        Self::ALL.into_iter().filter(wanted).collect()
    }

    /// The page with these values.
    pub(super) fn bytes(self, values: &ModeParameters) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            // AWRE, ARRE: the medium below repairs itself.
            Self::ErrorRecovery => out.u8(0x01).u8(0x0a).u8(0xc0).pad_to(12),
            Self::DisconnectReconnect => out.u8(0x02).u8(0x0e).pad_to(16),
            Self::Caching => {
                out.u8(SAVEABLE | 0x08).u8(0x12);
                out.u8(flag(values.write_cache_enabled, 2)).pad_to(20)
            }
            Self::Control => {
                out.u8(SAVEABLE | 0x0a).u8(0x0a);
                let task_set = match values.task_set_type {
                    TaskSetType::Shared => 0x00,
                    TaskSetType::PerNexus => 0x20,
                };
                // GLTSD: log parameters are not saved.
                out.u8(task_set | flag(values.descriptor_sense, 2) | 0x02);
                // QUEUE ALGORITHM MODIFIER 1h: SIMPLE tasks may be reordered.
                out.u8(0x10).u8(flag(values.software_write_protect, 3));
                // BUSY TIMEOUT PERIOD: unlimited.
                let aborted = flag(values.task_aborted_status, 6);
                out.u8(aborted).be16(0).be16(0xffff).pad_to(12)
            }
            // IALUAE: implicit ALUA is enabled.
            Self::ControlExtension => out.u8(0x4a).u8(0x01).be16(0x1c).u8(0x01).pad_to(32),
            Self::PowerCondition => out.u8(0x1a).u8(0x26).pad_to(40),
            // DEXCPT: no informational exceptions are reported.
            Self::InformationalExceptions => out.u8(0x1c).u8(0x0a).u8(0x08).pad_to(12),
        };
        out.finish()
    }

    /// The page with a one for every bit that MODE SELECT may change.
    pub(super) fn changeable(self, unit: &ModeUnit) -> Vec<u8> {
        let mut bytes = self.bytes(&ModeParameters::default());
        let (_, subpage) = self.code();
        let header = if subpage == 0 { 2 } else { 4 };
        for byte in bytes.iter_mut().skip(header) {
            *byte = 0;
        }
        match self {
            Self::Caching => set(&mut bytes, 2, flag(unit.write_cache_changeable, 2)),
            Self::Control => {
                let task_set = if unit.task_set_changeable { 0x20 } else { 0 };
                set(&mut bytes, 2, task_set | 0x04);
                set(&mut bytes, 4, 0x08);
                set(&mut bytes, 5, flag(unit.task_aborted_changeable, 6));
            }
            Self::ErrorRecovery
            | Self::DisconnectReconnect
            | Self::ControlExtension
            | Self::PowerCondition
            | Self::InformationalExceptions => {}
        }
        bytes
    }

    /// Takes over the values of a page whose bytes have been validated.
    pub(super) fn adopt(self, bytes: &[u8], values: &mut ModeParameters) {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        match self {
            Self::Caching => values.write_cache_enabled = is_set(byte(2), 2),
            Self::Control => {
                values.task_set_type = if byte(2) & 0xe0 == 0 {
                    TaskSetType::Shared
                } else {
                    TaskSetType::PerNexus
                };
                values.descriptor_sense = is_set(byte(2), 2);
                values.software_write_protect = is_set(byte(4), 3);
                values.task_aborted_status = is_set(byte(5), 6);
            }
            Self::ErrorRecovery
            | Self::DisconnectReconnect
            | Self::ControlExtension
            | Self::PowerCondition
            | Self::InformationalExceptions => {}
        }
    }
}

fn set(bytes: &mut [u8], at: usize, value: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
}
