//! WRITE SAME, UNMAP, GET LBA STATUS.

use super::block::{pieces, yield_turn};
use crate::outcome::Refusal;
use crate::task::Task;
use scsi::Sense;
use scsi::cdb::{BlockRange, WriteSame};
use scsi::provisioning::{ProvisioningStatus, lba_status, unmap_ranges};
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, ExtentKind, Op, Provision, Support, Zeroing};

/// Bytes of a repeated pattern that are written at once.
const PATTERN_BYTES: usize = 1 << 20;

/// Times that one GET LBA STATUS asks the volume at most, each of which is bounded work there: the
/// descriptors that were found until then are its answer, and the host asks for the rest (SBC-3
/// 5.4: as many as there are, or fewer).
pub const LBA_STATUS_STEPS_MAX: usize = 64;

impl Task {
    /// spec: SBC-3 5.46 "WRITE SAME (10) command", 5.47 "WRITE SAME (16) command".
    pub(super) async fn write_same(&self, same: WriteSame, data: Buf) -> Result<Buf, Refusal> {
        let range = self.named_by(same)?;
        let Some(blocks) = self.blocks(range)? else {
            return Ok(Buf::empty());
        };
        let block_bytes = self.block_bytes();
        if !same.no_data_out && data.len() < block_bytes {
            return Ok(Buf::empty());
        }
        self.admit(Some(blocks)).await?;
        let durability = self.durability(false);
        let block = if same.no_data_out {
            Buf::zeroes(block_bytes)
        } else {
            data.slice(0..block_bytes)
        };
        if block.is_zero() && self.takes_zeroes() {
            let zeroing = if same.unmap {
                Zeroing::MayUnmap
            } else {
                Zeroing::KeepAllocated
            };
            let op = Op::WriteZeroes {
                range: blocks,
                zeroing,
                durability,
            };
            self.submit_in_pieces(op).await?;
            return Ok(Buf::empty());
        }
        let pattern = block.repeat_to(PATTERN_BYTES);
        let most = (PATTERN_BYTES / block_bytes) as u64;
        for piece in pieces(blocks, self.piece_blocks().min(most)) {
            yield_turn(piece != blocks).await;
            self.write_blocks(piece, &pattern, durability).await?;
        }
        Ok(Buf::empty())
    }

    /// The blocks of a WRITE SAME. WSNZ is zero: no blocks means up to the last one, and how many
    /// these are is looked up again, as the unit may have grown since the command came, past what
    /// one command may write.
    fn named_by(&self, same: WriteSame) -> Result<BlockRange, Refusal> {
        if same.range.blocks != BlockCount(0) {
            return Ok(same.range);
        }
        let state = self.unit().state();
        let rest = state.block_count().0.saturating_sub(same.range.lba.0);
        let most = state.description.limits.write_same_blocks_max;
        if most != 0 && rest > most {
            let length_at = if same.sixteen { 10 } else { 7 };
            return Err(Sense::invalid_field_in_cdb(length_at, None).into());
        }
        Ok(BlockRange {
            blocks: BlockCount(rest),
            ..same.range
        })
    }

    fn takes_zeroes(&self) -> bool {
        let shape = self.unit().with_state(|state| state.shape);
        shape.is_some_and(|shape| shape.caps.write_zeroes != Support::Absent)
    }

    /// spec: SBC-3 5.28 "UNMAP command". Where unmapped blocks are promised to read as zeroes
    /// (LBPRZ) every block of the list does, also in granules that are not named whole.
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
        let zeroed = provisioning.reads_zero && !anchor;
        for (number, range) in ranges.into_iter().enumerate() {
            yield_turn(number > 0).await;
            let op = unmap_op(range, zeroed, anchor, durability);
            self.submit_in_pieces(op).await?;
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
                .is_some_and(|shape| shape.caps.extents != Support::Absent);
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
        if !known {
            descriptors.push((rest, ProvisioningStatus::Mapped));
            rest = LbaRange::between(rest.end(), rest.end()).unwrap_or(rest);
        }
        for step in 0..LBA_STATUS_STEPS_MAX {
            if descriptors.len() >= most || rest.is_empty() {
                break;
            }
            yield_turn(step > 0).await;
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
