//! WRITE SAME, UNMAP, GET LBA STATUS.

use super::block::pieces;
use crate::outcome::Refusal;
use crate::task::Task;
use scsi::Sense;
use scsi::cdb::WriteSame;
use scsi::provisioning::{ProvisioningStatus, lba_status, unmap_ranges};
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, ExtentKind, Op, Provision, Zeroing};

/// Bytes of a repeated pattern that are written at once.
const PATTERN_BYTES: usize = 1 << 20;

impl Task {
    /// spec: SBC-3 5.46 "WRITE SAME (10) command", 5.47 "WRITE SAME (16) command".
    pub(super) async fn write_same(&self, same: WriteSame, data: Buf) -> Result<Buf, Refusal> {
        let count = self.unit().with_state(|state| state.block_count());
        let rest = BlockCount(count.0.saturating_sub(same.range.lba.0));
        let range = match same.range.blocks {
            // WSNZ is zero: no blocks means up to the last one.
            BlockCount(0) => scsi::cdb::BlockRange {
                blocks: rest,
                ..same.range
            },
            BlockCount(_) => same.range,
        };
        let Some(blocks) = self.blocks(range)? else {
            return Ok(Buf::empty());
        };
        let block_bytes = self.block_bytes();
        let zero = same.no_data_out || data.is_zero();
        if !same.no_data_out && data.len() < block_bytes {
            return Ok(Buf::empty());
        }
        self.admit(Some(blocks)).await?;
        let durability = self.durability(false);
        if zero {
            let zeroing = if same.unmap {
                Zeroing::MayUnmap
            } else {
                Zeroing::KeepAllocated
            };
            return self.write_zeroes(blocks, zeroing, durability).await;
        }
        let pattern = data.slice(0..block_bytes).repeat_to(PATTERN_BYTES);
        for piece in pieces(
            blocks,
            self.piece_blocks()
                .min((PATTERN_BYTES / block_bytes) as u64),
        ) {
            self.write_blocks(piece, &pattern, durability).await?;
        }
        Ok(Buf::empty())
    }

    async fn write_zeroes(
        &self,
        blocks: LbaRange,
        zeroing: Zeroing,
        durability: Durability,
    ) -> Result<Buf, Refusal> {
        let limit = self.unit().with_state(|state| {
            state
                .shape
                .map(|shape| shape.limits.write_zeroes_blocks_max.0)
        });
        for piece in pieces(blocks, limit.filter(|most| *most > 0).unwrap_or(1 << 16)) {
            self.submit(Op::WriteZeroes {
                range: piece,
                zeroing,
                durability,
            })
            .await?;
        }
        Ok(Buf::empty())
    }

    /// spec: SBC-3 5.28 "UNMAP command". Where unmapped blocks are promised to read as zeroes (LBPRZ) every
    /// block of the list does, also in granules that are not named whole.
    pub(super) async fn unmap(
        &self,
        anchor: bool,
        length: u16,
        list: &Buf,
    ) -> Result<Buf, Refusal> {
        let state = self.unit().state();
        let provisioning = state.description.provisioning;
        let ranges = unmap_ranges(&list.to_vec(), length, &state.description)?;
        let Some(all) = hull(&ranges) else {
            return Ok(Buf::empty());
        };
        self.admit(Some(all)).await?;
        let durability = self.durability(false);
        let most = state
            .shape
            .map_or(0, |shape| shape.limits.discard_blocks_max.0);
        let most = if most > 0 { most } else { 1 << 16 };
        for piece in ranges.into_iter().flat_map(|range| pieces(range, most)) {
            let zeroed = provisioning.reads_zero && !anchor;
            self.submit(unmap_op(piece, zeroed, anchor, durability))
                .await?;
        }
        Ok(Buf::empty())
    }

    /// spec: SBC-3 5.4 "GET LBA STATUS command".
    pub(super) async fn get_lba_status(
        &self,
        starting_lba: u64,
        allocation_length: u32,
    ) -> Result<Buf, Refusal> {
        let (count, known) = self.unit().with_state(|state| {
            let known = state
                .shape
                .is_some_and(|shape| shape.caps.extents != volume::Support::Absent);
            (
                state.block_count(),
                known && state.description.provisioning.thin,
            )
        });
        let Some(mut rest) =
            LbaRange::between(Lba(starting_lba), Lba(count.0)).filter(|rest| !rest.is_empty())
        else {
            return Err(Sense::lba_out_of_range(starting_lba).into());
        };
        self.admit(None).await?;
        let most = (usize::try_from(allocation_length)
            .unwrap_or(usize::MAX)
            .saturating_sub(8)
            / 16)
            .clamp(1, 1024);
        let mut descriptors: Vec<(LbaRange, ProvisioningStatus)> = Vec::new();
        while descriptors.len() < most && !rest.is_empty() {
            if !known {
                descriptors.push((rest, ProvisioningStatus::Mapped));
                break;
            }
            let Done::Extents(extents) = self
                .submit(Op::Extents {
                    range: rest,
                    since: None,
                })
                .await?
            else {
                break;
            };
            for extent in &extents {
                add(&mut descriptors, extent.range, status(extent.kind));
            }
            let end = extents
                .last()
                .map_or(rest.end(), |extent| extent.range.end());
            rest = LbaRange::between(end, rest.end()).unwrap_or(rest);
        }
        Ok(super::cut(
            lba_status(&descriptors, most),
            allocation_length,
        ))
    }
}

fn add(
    descriptors: &mut Vec<(LbaRange, ProvisioningStatus)>,
    range: LbaRange,
    kind: ProvisioningStatus,
) {
    if let Some((last, known)) = descriptors.last_mut()
        && *known == kind
        && let Some(joined) = LbaRange::between(last.start(), range.end())
    {
        *last = joined;
        return;
    }
    descriptors.push((range, kind));
}

/// The smallest range with all of `ranges` in it.
fn hull(ranges: &[LbaRange]) -> Option<LbaRange> {
    let start = ranges.iter().map(|range| range.start()).min()?;
    let end = ranges.iter().map(|range| range.end()).max()?;
    LbaRange::between(start, end)
}

fn unmap_op(range: LbaRange, zeroed: bool, anchor: bool, durability: Durability) -> Op {
    match (zeroed, anchor) {
        (true, _) => Op::WriteZeroes {
            range,
            zeroing: Zeroing::MayUnmap,
            durability,
        },
        (false, true) => Op::Discard {
            range,
            to: Provision::Anchored,
            durability,
        },
        (false, false) => Op::Discard {
            range,
            to: Provision::Deallocated,
            durability,
        },
    }
}

const fn status(kind: ExtentKind) -> ProvisioningStatus {
    match kind {
        ExtentKind::Mapped => ProvisioningStatus::Mapped,
        ExtentKind::Deallocated => ProvisioningStatus::Deallocated,
        ExtentKind::Anchored => ProvisioningStatus::Anchored,
    }
}
