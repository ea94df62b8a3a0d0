//! What a unit can do, and the volume's shape that follows.
//!
//! Spec: SBC-3 5.16.2 "READ CAPACITY (16) parameter data", 6.5.3 "Block Limits VPD page", 6.5.4
//! "Logical Block Provisioning VPD page", 6.4.5 "Caching mode page"; SPC-4 6.4.2 "Standard INQUIRY
//! data".

use super::identity::Identity;
use units::{BlockCount, BlockSize};
use volume::{Caps, Epoch, Limits, Shape, Support};

/// The longest transfer that is asked of a unit that names no limit, in bytes.
const TRANSFER_BYTES_USUAL: u32 = 1 << 20;
/// The longest transfer at all, in bytes.
const TRANSFER_BYTES_MAX: u32 = 8 << 20;
/// The longest transfer of a volume: longer ones than the unit takes are cut, in bytes.
const VOLUME_BYTES_MAX: u64 = 32 << 20;
/// Commands in flight on one lane.
const IN_FLIGHT_MAX: u32 = 1024;

/// Size and form of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Logical block.
    pub block_size: BlockSize,
    /// Logical blocks.
    pub block_count: BlockCount,
    /// Logical blocks in a physical one, as a power of two.
    pub physical_block_exponent: u8,
    /// LBPME: it can be unmapped.
    pub provisioned: bool,
    /// LBPRZ: unmapped blocks read as zeroes.
    pub reads_zero: bool,
}

/// How much one command may do, in blocks; 0: nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CommandLimits {
    pub(super) transfer: u32,
    pub(super) unmap: u32,
    pub(super) write_same: u32,
    pub(super) compare_and_write: u8,
}

/// What its commands are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Features {
    /// It may not be written.
    pub(super) read_only: bool,
    /// WCE: a volatile write cache is on.
    pub(super) write_cache: bool,
    /// DPOFUA: writes may go through the cache.
    pub(super) fua: bool,
    /// The unit takes UNMAP commands (LBPU).
    pub(super) unmap: bool,
    /// WRITE SAME (16) is there.
    pub(super) write_same: bool,
    /// WRITE SAME (16) may unmap.
    pub(super) write_same_unmaps: bool,
    /// ANC_SUP.
    pub(super) anchor: bool,
    /// SYNCHRONIZE CACHE (16), not only (10).
    pub(super) synchronize_16: bool,
    /// It reports which blocks are mapped (SBC-3 5.4).
    pub(super) lba_status: bool,
}

/// Everything that is known of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitFacts {
    /// What names it, and how large it is.
    pub identity: Identity,
    /// What is said of it: vendor, product, revision.
    pub description: String,
    /// It is a unit of this software's own target.
    pub ours: bool,
    pub(super) limits: CommandLimits,
    pub(super) features: Features,
    pub(super) capacity: Capacity,
    discard_granularity: u32,
    discard_alignment: u32,
    atomic_blocks: u32,
}

/// What the pages say, as they came; those that the unit does not have are empty.
pub(super) struct Pages<'a> {
    pub(super) inquiry: &'a [u8],
    pub(super) block_limits: &'a [u8],
    pub(super) provisioning: &'a [u8],
    pub(super) mode: &'a [u8],
}

/// What was found by asking for it.
#[derive(Clone, Copy)]
pub(super) struct Tried {
    /// WRITE SAME (16) is in the list of commands; `None`: there is no such list.
    pub(super) write_same: Option<bool>,
    pub(super) synchronize_16: bool,
    pub(super) lba_status: bool,
}

fn be16(page: &[u8], at: usize) -> Option<u16> {
    page.get(at..)?
        .first_chunk()
        .map(|it| u16::from_be_bytes(*it))
}

fn be32(page: &[u8], at: usize) -> Option<u32> {
    page.get(at..)?
        .first_chunk()
        .map(|it| u32::from_be_bytes(*it))
}

fn be64(page: &[u8], at: usize) -> Option<u64> {
    page.get(at..)?
        .first_chunk()
        .map(|it| u64::from_be_bytes(*it))
}

fn bit(page: &[u8], at: usize, bit: u8) -> bool {
    page.get(at).is_some_and(|byte| byte >> bit & 1 == 1)
}

/// READ CAPACITY data of either form; `Err` says why no such unit can be used.
pub(super) fn capacity(data: &[u8], sixteen: bool) -> Result<Capacity, String> {
    let (last, block_bytes) = if sixteen {
        (be64(data, 0), be32(data, 8))
    } else {
        (be32(data, 0).map(u64::from), be32(data, 4))
    };
    let (Some(last), Some(block_bytes)) = (last, block_bytes) else {
        return Err("READ CAPACITY returned too little".to_owned());
    };
    let block_size = BlockSize::from_bytes(block_bytes.into()).ok_or_else(|| {
        format!("its blocks have {block_bytes} bytes; 512 and 4096 are supported")
    })?;
    let block_count = last
        .checked_add(1)
        .filter(|blocks| BlockCount(*blocks).bytes(block_size).is_some())
        .map(BlockCount)
        .ok_or_else(|| format!("its size of {last} blocks cannot be"))?;
    if data.get(12).is_some_and(|byte| byte & 1 == 1) && sixteen {
        return Err(
            "it is formatted with protection information, which is not supported".to_owned(),
        );
    }
    let provisioned = sixteen && bit(data, 14, 7);
    Ok(Capacity {
        block_size,
        block_count,
        physical_block_exponent: if sixteen {
            data.get(13).map_or(0, |byte| byte & 0x0f)
        } else {
            0
        },
        provisioned,
        reads_zero: provisioned && bit(data, 14, 6),
    })
}

/// The text of standard INQUIRY data, tidied.
fn description(inquiry: &[u8]) -> String {
    let field = |from: usize, to: usize| {
        let bytes = inquiry.get(from..to.min(inquiry.len())).unwrap_or_default();
        let text: String = String::from_utf8_lossy(bytes)
            .chars()
            .filter(|it| !it.is_control())
            .collect();
        text.trim().to_owned()
    };
    format!("{} {} {}", field(8, 16), field(16, 32), field(32, 36))
        .trim()
        .to_owned()
}

/// TPGS of standard INQUIRY data: it reports target port groups.
pub(super) fn has_port_groups(inquiry: &[u8]) -> bool {
    inquiry.get(5).is_some_and(|byte| byte >> 4 & 0x03 != 0)
}

impl UnitFacts {
    pub(super) fn new(
        identity: Identity,
        capacity: Capacity,
        pages: &Pages<'_>,
        tried: Tried,
    ) -> Self {
        let block = capacity.block_size.bytes();
        let limits = pages.block_limits;
        let reported = be32(limits, 8).filter(|it| *it > 0);
        let usual = TRANSFER_BYTES_USUAL / block;
        let transfer = reported
            .unwrap_or(usual)
            .min(TRANSFER_BYTES_MAX / block)
            .max(1);
        // Page B2h byte 5: LBPU, LBPWS, LBPWS10, LBPRZ, ANC_SUP.
        let lbp = pages.provisioning;
        let same_max = be64(limits, 36).filter(|it| *it > 0);
        let write_same_unmaps = capacity.provisioned && bit(lbp, 5, 6);
        let write_same = tried
            .write_same
            .unwrap_or(same_max.is_some() || write_same_unmaps);
        let unmap = capacity.provisioned && bit(lbp, 5, 7);
        let (mode_parameter, caching) = mode_page(pages.mode);
        let clamp = |blocks: u64| u32::try_from(blocks).unwrap_or(u32::MAX);
        Self {
            description: description(pages.inquiry),
            ours: pages.inquiry.get(8..16) == Some(b"CAUSEWAY"),
            limits: CommandLimits {
                transfer,
                unmap: if unmap {
                    be32(limits, 20).unwrap_or(0)
                } else {
                    0
                },
                // Without a limit a command should still end in seconds.
                write_same: if write_same {
                    same_max.map_or(usual.saturating_mul(32), clamp)
                } else {
                    0
                },
                compare_and_write: limits.get(5).copied().unwrap_or(0),
            },
            features: Features {
                read_only: mode_parameter & 0x80 != 0,
                write_cache: caching & 0x04 != 0,
                fua: mode_parameter & 0x10 != 0,
                unmap,
                write_same,
                write_same_unmaps,
                anchor: bit(lbp, 5, 1),
                synchronize_16: tried.synchronize_16,
                lba_status: tried.lba_status,
            },
            discard_granularity: be32(limits, 28).unwrap_or(0).max(1),
            discard_alignment: be32(limits, 32)
                .filter(|it| it >> 31 == 1)
                .map_or(0, |it| it & 0x7fff_ffff),
            atomic_blocks: be32(limits, 44).unwrap_or(0),
            identity,
            capacity,
        }
    }

    /// The facts as a volume has them.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let (capacity, features, limits) = (&self.capacity, &self.features, &self.limits);
        let can = |yes: bool| {
            if yes {
                Support::Native
            } else {
                Support::Absent
            }
        };
        let writable = !features.read_only;
        let discards =
            writable && (features.unmap && limits.unmap > 0 || features.write_same_unmaps);
        let most = BlockCount(VOLUME_BYTES_MAX / u64::from(capacity.block_size.bytes()));
        let if_able = |yes: bool| if yes { most } else { BlockCount(0) };
        Shape {
            block_size: capacity.block_size,
            block_count: capacity.block_count,
            physical_block_exponent: capacity.physical_block_exponent,
            limits: Limits {
                transfer_blocks_max: most,
                discard_blocks_max: if discards {
                    BlockCount(u64::from(u32::MAX))
                } else {
                    BlockCount(0)
                },
                discard_granularity: BlockCount(self.discard_granularity.into()),
                discard_alignment: BlockCount(
                    (self.discard_alignment % self.discard_granularity).into(),
                ),
                write_zeroes_blocks_max: if_able(writable && features.write_same),
                compare_and_write_blocks_max: BlockCount(limits.compare_and_write.into()),
                atomic_blocks_max: BlockCount(self.atomic_blocks.into()),
                in_flight_max: IN_FLIGHT_MAX,
                memory_alignment: 1,
                payload_piece_bytes: 0,
            },
            caps: Caps {
                writable,
                volatile_cache: features.write_cache,
                stable_write: if features.fua || !features.write_cache {
                    Support::Native
                } else {
                    Support::Emulated
                },
                discard: can(discards),
                discard_reads_zero: discards && capacity.reads_zero,
                anchor: can(discards && features.anchor),
                write_zeroes: can(writable && features.write_same),
                compare_and_write: can(writable && limits.compare_and_write > 0),
                extents: can(features.lba_status),
                changed_blocks: Support::Absent,
            },
            epoch: Epoch(0),
        }
    }
}

/// The device-specific parameter of the header, and byte 2 of the caching page.
fn mode_page(data: &[u8]) -> (u8, u8) {
    let parameter = data.get(2).copied().unwrap_or(0);
    let descriptors = data.get(3).map_or(0, |it| usize::from(*it));
    let page = data
        .get(4_usize.saturating_add(descriptors)..)
        .unwrap_or_default();
    let is_caching = page.first().is_some_and(|code| code & 0x3f == 0x08);
    let caching = if is_caching {
        page.get(2).copied()
    } else {
        None
    };
    (parameter, caching.unwrap_or(0))
}

/// The access state of a group in REPORT TARGET PORT GROUPS data, as its number; without a known
/// group, the best of all.
pub(super) fn access_of(data: &[u8], group: Option<u16>) -> Option<u8> {
    let length = usize::try_from(be32(data, 0)?).unwrap_or(usize::MAX);
    let mut rest = data.get(4..)?;
    rest = rest.get(..length.min(rest.len()))?;
    let mut found: Option<u8> = None;
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let state = head[0] & 0x0f;
        if be16(head, 2) == group {
            return Some(state);
        }
        if group.is_none() {
            found = Some(found.map_or(state, |best| best.min(state)));
        }
        rest = after
            .get(usize::from(head[7]).saturating_mul(4)..)
            .unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod test {
    use super::*;
    use scsi::alua::{AccessState, PortGroup, report};

    #[test]
    fn the_state_of_the_own_group_is_found_among_several() {
        let group = |group, state| PortGroup {
            group,
            preferred: group == 1,
            state,
            supported: vec![state],
            changed: false,
            ports: vec![1, 2, 3],
        };
        let data = report(
            &[
                group(1, AccessState::ActiveNonOptimized),
                group(2, AccessState::Standby),
            ],
            false,
            0,
        );
        assert_eq!(access_of(&data, Some(2)), Some(AccessState::Standby.code()));
        assert_eq!(access_of(&data, Some(9)), None);
        assert_eq!(access_of(&data, None), Some(1));
        for end in 0..data.len() {
            let _ = access_of(&data[..end], Some(2));
        }
    }

    #[test]
    fn capacities_that_cannot_be_used_are_refused_in_words() {
        let mut data = [0; 32];
        data[7] = 99;
        data[10] = 2;
        let capacity_ok = capacity(&data, true).unwrap();
        assert_eq!(capacity_ok.block_count, BlockCount(100));
        let mut odd = data;
        odd[11] = 8;
        assert!(capacity(&odd, true).unwrap_err().contains("520 bytes"));
        let mut protected = data;
        protected[12] = 1;
        assert!(
            capacity(&protected, true)
                .unwrap_err()
                .contains("protection")
        );
        let mut huge = data;
        huge[..8].fill(0xff);
        assert!(capacity(&huge, true).is_err());
        assert!(capacity(&data[..7], true).is_err());
        let ten = [0, 0, 0, 99, 0, 0, 2, 0];
        assert_eq!(capacity(&ten, false).unwrap().block_count, BlockCount(100));
    }

    #[test]
    fn a_mode_page_after_block_descriptors_is_found() {
        let mut data = vec![0, 0, 0x90, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0x88, 0x12, 0x04];
        assert_eq!(mode_page(&data), (0x90, 0x04));
        data[12] = 0x0a;
        assert_eq!(mode_page(&data), (0x90, 0));
        assert_eq!(mode_page(&[]), (0, 0));
    }
}
