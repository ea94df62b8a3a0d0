//! COMPARE AND WRITE and ORWRITE: read, decide, write, with nobody between.
//!
//! The blocks are held on every core, so no read, write, scrub or destage of them runs meanwhile,
//! and hosts that compete for one block take turns without holding up the rest of the unit.

use super::block::compare;
use crate::admission::HoldKind;
use crate::outcome::Refusal;
use crate::task::Task;
use scsi::cdb::BlockRange;
use units::{Buf, BufMut};

impl Task {
    /// spec: SBC-3 5.2 "COMPARE AND WRITE command".
    pub(super) async fn compare_and_write(
        &self,
        range: BlockRange,
        data: Buf,
    ) -> Result<Buf, Refusal> {
        let Some(blocks) = self.blocks(range)? else {
            return Ok(Buf::empty());
        };
        let half = self.bytes(blocks);
        if data.len() < 2 * half {
            return Err(scsi::Sense::parameter_list_length_error().into());
        }
        let _held = self.hold(HoldKind::Range(blocks)).await?;
        self.admit(Some(blocks)).await?;
        let medium = self.read_blocks(blocks).await?;
        compare(&medium, &data.slice(0..half))?;
        self.write_blocks(
            blocks,
            &data.slice(half..2 * half),
            self.durability(range.fua),
        )
        .await?;
        Ok(Buf::empty())
    }

    /// spec: SBC-3 5.6 "ORWRITE (16) command".
    pub(super) async fn or_write(&self, range: BlockRange, data: Buf) -> Result<Buf, Refusal> {
        let Some(blocks) = self.blocks_with_data(range, &data)? else {
            return Ok(Buf::empty());
        };
        let _held = self.hold(HoldKind::Range(blocks)).await?;
        self.admit(Some(blocks)).await?;
        let medium = self.read_blocks(blocks).await?;
        let mut merged = BufMut::zeroed(medium.len());
        merged.copy_all(&medium);
        let mut at = 0;
        for segment in data.slice(0..medium.len()).segments() {
            for (into, byte) in merged.chunk_mut(at).iter_mut().zip(segment) {
                *into |= byte;
            }
            at += segment.len();
        }
        self.write_blocks(blocks, &merged.freeze(), self.durability(range.fua))
            .await?;
        Ok(Buf::empty())
    }
}
