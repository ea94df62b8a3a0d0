//! Mode pages: what MODE SENSE reports and MODE SELECT may change.
//!
//! **Contract.** [`ModePages::sense`] and [`ModePages::select`] are pure; `select` validates the
//! whole list before it returns the new values, so a bad list changes nothing. The caller stores
//! the saved values when they changed and establishes MODE PARAMETERS CHANGED for the other
//! nexuses.
//!
//! Spec: SPC-4 7.5 "Mode parameters", SBC-3 6.4 "Mode parameters".

mod page;
mod select;
mod store;
#[cfg(test)]
mod test;

use alloc::vec::Vec;
use units::{BlockCount, BlockSize};

use crate::bytes::{Writer, flag};
use crate::cdb::{CdbError, ModeForm, ModeSense, PageControl};
use crate::sense::SenseFormat;
use page::Page;

/// TST: whether all nexuses share one task set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TaskSetType {
    /// 000b: one task set for all I_T nexuses.
    #[default]
    Shared,
    /// 001b: one task set for each I_T nexus.
    PerNexus,
}

/// The mode parameters that can change; everything else on the pages is constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ModeParameters {
    /// WCE of the caching page.
    pub write_cache_enabled: bool,
    /// D_SENSE of the control page.
    pub descriptor_sense: bool,
    /// SWP of the control page.
    pub software_write_protect: bool,
    /// TST of the control page.
    pub task_set_type: TaskSetType,
    /// TAS of the control page: a command that another I_T nexus aborted ends with TASK ABORTED,
    /// not without an answer.
    pub task_aborted_status: bool,
}

impl ModeParameters {
    /// The format of sense data that D_SENSE asks for.
    #[must_use]
    pub const fn sense_format(&self) -> SenseFormat {
        if self.descriptor_sense {
            SenseFormat::Descriptor
        } else {
            SenseFormat::Fixed
        }
    }
}

/// What the mode pages have to know of the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModeUnit {
    /// Logical block size.
    pub block_size: BlockSize,
    /// Blocks on the medium.
    pub block_count: BlockCount,
    /// The medium is write protected apart from SWP.
    pub read_only: bool,
    /// WCE may be changed; otherwise it stays at its default.
    pub write_cache_changeable: bool,
    /// TST may be changed.
    pub task_set_changeable: bool,
    /// TAS may be changed; otherwise an administrator has fixed it.
    pub task_aborted_changeable: bool,
    /// The values after manufacture.
    pub default: ModeParameters,
}

/// Current and saved values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModePages {
    /// In effect.
    pub current: ModeParameters,
    /// In effect after the next start.
    pub saved: ModeParameters,
}

impl ModePages {
    /// After a start or reset: the saved values are in effect.
    #[must_use]
    pub const fn from_saved(saved: ModeParameters) -> Self {
        Self {
            current: saved,
            saved,
        }
    }

    /// TAS as an administrator has fixed it, current and saved.
    pub const fn set_task_aborted_status(&mut self, reported: bool) {
        self.current.task_aborted_status = reported;
        self.saved.task_aborted_status = reported;
    }

    /// WCE as the medium has it now, current and saved.
    pub const fn set_write_cache(&mut self, enabled: bool) {
        self.current.write_cache_enabled = enabled;
        self.saved.write_cache_enabled = enabled;
    }

    /// MODE SENSE parameter data, before it is cut to the allocation length.
    ///
    /// # Errors
    /// INVALID FIELD IN CDB for a page or subpage that we do not have.
    pub fn sense(&self, request: &ModeSense, unit: &ModeUnit) -> Result<Vec<u8>, CdbError> {
        let pages = Page::matching(request.page, request.subpage);
        if pages.is_empty() {
            let unknown_page = Page::matching(request.page, 0xff).is_empty();
            return Err(if unknown_page {
                CdbError::field(2, 5)
            } else {
                CdbError::bytes(3)
            });
        }
        let mut body = Writer::new();
        for page in pages {
            body.bytes(&self.page_bytes(page, request.page_control, unit));
        }
        Ok(self.with_header(request, unit, &body.finish()))
    }

    fn page_bytes(&self, page: Page, control: PageControl, unit: &ModeUnit) -> Vec<u8> {
        match control {
            PageControl::Current => page.bytes(&self.current),
            PageControl::Changeable => page.changeable(unit),
            PageControl::Default => page.bytes(&unit.default),
            PageControl::Saved => page.bytes(&self.saved),
        }
    }

    fn with_header(&self, request: &ModeSense, unit: &ModeUnit, pages: &[u8]) -> Vec<u8> {
        let protected = unit.read_only || self.current.software_write_protect;
        // WP and DPOFUA.
        let device_specific = flag(protected, 7) | flag(true, 4);
        let long = request.long_lba_accepted && !request.disable_block_descriptors;
        let descriptor = if request.disable_block_descriptors {
            Vec::new()
        } else {
            block_descriptor(unit, long)
        };
        let mut out = Writer::new();
        match request.form {
            ModeForm::Six => out.counted8(|out| {
                let len = u8::try_from(descriptor.len()).unwrap_or(0);
                out.u8(0).u8(device_specific).u8(len);
                out.bytes(&descriptor).bytes(pages);
            }),
            ModeForm::Ten => out.counted16(|out| {
                let len = u16::try_from(descriptor.len()).unwrap_or(0);
                out.u8(0).u8(device_specific).u8(flag(long, 0)).u8(0);
                out.be16(len).bytes(&descriptor).bytes(pages);
            }),
        };
        out.finish()
    }
}

/// SBC-3 6.4.2 "Mode parameter block descriptors".
fn block_descriptor(unit: &ModeUnit, long: bool) -> Vec<u8> {
    let mut out = Writer::new();
    if long {
        out.be64(unit.block_count.0)
            .be32(0)
            .be32(unit.block_size.bytes());
    } else {
        out.be32(u32::try_from(unit.block_count.0).unwrap_or(u32::MAX));
        // Byte 4 is reserved; the block length has three bytes.
        out.be32(unit.block_size.bytes());
    }
    out.finish()
}
