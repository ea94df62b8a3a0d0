//! UNMAP parameter lists and GET LBA STATUS data.
//!
//! Spec: SBC-3 5.27.2 "UNMAP parameter list", 5.5.2 "GET LBA STATUS parameter data".

use alloc::vec::Vec;
use units::{BlockCount, Lba, LbaRange};

use crate::bytes::{Reader, Writer};
use crate::description::UnitDescription;
use crate::sense::Sense;

/// The ranges that an UNMAP parameter list names, in its order; empty ones are left out.
///
/// # Errors
/// PARAMETER LIST LENGTH ERROR for a list that ends early; INVALID FIELD IN PARAMETER LIST above
/// the limits of page B0h; LOGICAL BLOCK ADDRESS OUT OF RANGE. Nothing is to be unmapped then.
pub fn unmap_ranges(
    list: &[u8],
    parameter_list_length: u16,
    unit: &UnitDescription,
) -> Result<Vec<LbaRange>, Sense> {
    if parameter_list_length == 0 {
        return Ok(Vec::new());
    }
    let short = Sense::parameter_list_length_error;
    let list = list
        .get(..usize::from(parameter_list_length))
        .ok_or_else(short)?;
    let mut reader = Reader::new(list);
    let [_, _, high, low, _, _, _, _] = reader.array().ok_or_else(short)?;
    let length = u16::from_be_bytes([high, low]);
    let descriptors = reader.take(usize::from(length)).ok_or_else(short)?;
    // spec: a last descriptor that is not whole is ignored.
    let mut reader = Reader::new(descriptors);
    let mut ranges = Vec::new();
    let mut descriptor_count = 0u32;
    let mut total = 0u64;
    while let Some(descriptor) = reader.array::<16>() {
        descriptor_count = descriptor_count.saturating_add(1);
        if descriptor_count > unit.limits.unmap_descriptors_max {
            return Err(Sense::invalid_field_in_parameter_list(2, None));
        }
        let range = descriptor_range(&descriptor, unit)?;
        total = total.saturating_add(range.len().0);
        let limit = unit.limits.unmap_blocks_max;
        if limit != u32::MAX && total > u64::from(limit) {
            let at = u16::try_from(descriptor_count).unwrap_or(u16::MAX);
            // The NUMBER OF LOGICAL BLOCKS field of this descriptor.
            return Err(Sense::invalid_field_in_parameter_list(
                at.saturating_mul(16),
                None,
            ));
        }
        if !range.is_empty() {
            ranges.push(range);
        }
    }
    Ok(ranges)
}

fn descriptor_range(descriptor: &[u8; 16], unit: &UnitDescription) -> Result<LbaRange, Sense> {
    let mut reader = Reader::new(descriptor);
    let lba = reader.be64().unwrap_or(0);
    let blocks = reader.be32().unwrap_or(0);
    let capacity = unit.block_count.0;
    LbaRange::new(Lba(lba), BlockCount(blocks.into()))
        .filter(|range| range.end().0 <= capacity)
        .ok_or(Sense::lba_out_of_range(lba.max(capacity)))
}

/// Whether blocks have media behind them (SBC-3 5.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProvisioningStatus {
    /// 0h: mapped, or not known.
    Mapped,
    /// 1h: deallocated.
    Deallocated,
    /// 2h: anchored.
    Anchored,
}

/// GET LBA STATUS parameter data, before it is cut to the allocation length. Ranges longer than a
/// descriptor can say become several; `descriptors_max` bounds the answer.
#[must_use]
pub fn lba_status(extents: &[(LbaRange, ProvisioningStatus)], descriptors_max: usize) -> Vec<u8> {
    let mut out = Writer::new();
    out.counted32(|out| {
        out.be32(0);
        let descriptors = extents.iter().flat_map(|extent| split(*extent));
        for (start, blocks, status) in descriptors.take(descriptors_max) {
            out.be64(start).be32(blocks);
            out.u8(match status {
                ProvisioningStatus::Mapped => 0,
                ProvisioningStatus::Deallocated => 1,
                ProvisioningStatus::Anchored => 2,
            });
            out.zeros(3);
        }
    });
    out.finish()
}

fn split(
    (range, status): (LbaRange, ProvisioningStatus),
) -> impl Iterator<Item = (u64, u32, ProvisioningStatus)> {
    let mut next = range.start().0;
    core::iter::from_fn(move || {
        let left = range.end().0.saturating_sub(next);
        if left == 0 {
            return None;
        }
        let start = next;
        let blocks = u32::try_from(left).unwrap_or(u32::MAX);
        next = next.saturating_add(blocks.into());
        Some((start, blocks, status))
    })
}

/// The offset of the first byte that differs, for MISCOMPARE: of two buffers of the same length.
#[must_use]
pub fn first_difference(expected: &[u8], found: &[u8]) -> Option<u64> {
    // Whole 64-byte pieces are compared at once; only the one that differs is searched.
    let pieces = expected.chunks(64).zip(found.chunks(64)).enumerate();
    for (number, (a, b)) in pieces {
        if a != b {
            let within = a.iter().zip(b).position(|(a, b)| a != b)?;
            let at = number.saturating_mul(64).saturating_add(within);
            return u64::try_from(at).ok();
        }
    }
    None
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::description::UnitLimits;
    use crate::sense::AdditionalSense;
    use proptest::prelude::*;
    use std::vec;

    fn unit() -> UnitDescription {
        UnitDescription {
            block_count: BlockCount(1000),
            limits: UnitLimits {
                unmap_blocks_max: 500,
                unmap_descriptors_max: 3,
                ..UnitLimits::default()
            },
            ..crate::vpd::test_unit()
        }
    }

    fn list(descriptors: &[(u64, u32)]) -> Vec<u8> {
        let len = u16::try_from(descriptors.len() * 16).unwrap();
        let mut list = (len + 6).to_be_bytes().to_vec();
        list.extend(len.to_be_bytes());
        list.extend([0; 4]);
        for (lba, blocks) in descriptors {
            list.extend(lba.to_be_bytes());
            list.extend(blocks.to_be_bytes());
            list.extend([0; 4]);
        }
        list
    }

    fn parse(list: &[u8]) -> Result<Vec<(u64, u64)>, Sense> {
        let length = u16::try_from(list.len()).unwrap();
        let ranges = unmap_ranges(list, length, &unit())?;
        Ok(ranges.iter().map(|r| (r.start().0, r.len().0)).collect())
    }

    #[test]
    fn ranges_come_in_order_and_empty_ones_are_left_out() {
        let ranges = parse(&list(&[(900, 100), (5, 0), (0, 8)]));
        assert_eq!(ranges, Ok(vec![(900, 100), (0, 8)]));
        assert_eq!(unmap_ranges(&[], 0, &unit()), Ok(vec![]));
    }

    #[test]
    fn limits_and_capacity_are_enforced() {
        let refused = |descriptors: &[(u64, u32)]| parse(&list(descriptors)).unwrap_err();
        let parameter = AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST;
        assert_eq!(refused(&[(0, 1); 4]).code, parameter);
        assert_eq!(refused(&[(0, 300), (500, 201)]).code, parameter);
        assert_eq!(refused(&[(999, 2)]), Sense::lba_out_of_range(1000));
        assert_eq!(refused(&[(u64::MAX, 2)]), Sense::lba_out_of_range(u64::MAX));
        assert!(parse(&list(&[(0, 300), (500, 200)])).is_ok());
    }

    #[test]
    fn a_list_that_ends_early_is_a_length_error() {
        let whole = list(&[(0, 1), (8, 1)]);
        for len in 1..whole.len() {
            assert_eq!(
                parse(&whole[..len]),
                Err(Sense::parameter_list_length_error())
            );
        }
    }

    // spec: SBC-3 5.4 "GET LBA STATUS command".
    #[test]
    fn lba_status_has_the_golden_bytes_and_splits_long_ranges() {
        let range = |start, len| LbaRange::new(Lba(start), BlockCount(len)).unwrap();
        let data = lba_status(&[(range(8, 16), ProvisioningStatus::Deallocated)], 9);
        let expected = [
            0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 16, 1, 0, 0, 0,
        ];
        assert_eq!(data, expected);
        let long = [(range(0, 1 << 33), ProvisioningStatus::Mapped)];
        assert_eq!(lba_status(&long, 9).len(), 8 + 3 * 16);
        assert_eq!(lba_status(&long, 1).len(), 8 + 16);
    }

    proptest! {
        // spec: SBC-3 5.28 "UNMAP command".
        #[test]
        fn any_unmap_list_names_only_blocks_of_the_medium(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            for (lba, blocks) in parse(&bytes).unwrap_or_default() {
                prop_assert!(lba + blocks <= 1000);
            }
        }

        #[test]
        fn the_first_difference_is_the_first(
            data in proptest::collection::vec(0u8..4, 1..400), at in 0usize..400, other in 0usize..400,
        ) {
            let mut changed = data.clone();
            prop_assert_eq!(first_difference(&data, &changed), None);
            let (at, other) = (at % data.len(), other % data.len());
            changed[at] ^= 0x80;
            changed[other] |= 0x80;
            let first = u64::try_from(at.min(other)).unwrap();
            prop_assert_eq!(first_difference(&data, &changed), Some(first));
        }
    }
}
