//! What an image is as a volume.

use crate::ffi::Facts;
use std::collections::BTreeMap;
use units::{BlockCount, BlockSize};
use volume::{Shape, Support};

/// What a discard frees, at the least.
const DISCARD_BYTES: u32 = 4096;

const MIB: u64 = 1 << 20;

/// The shape of an image; `compares`: it can compare and write a block.
pub(crate) fn shape(facts: &Facts, block_size: BlockSize, exponent: u8, compares: bool) -> Shape {
    let block = u64::from(block_size.bytes());
    let blocks = |bytes: u64| BlockCount(bytes / block);
    let mut shape = Shape::of_memory(block_size, blocks(facts.size));
    shape.physical_block_exponent = exponent;
    let limits = &mut shape.limits;
    limits.transfer_blocks_max = blocks(16 * MIB);
    // Each of its objects is an operation of its own, and all begin at once.
    limits.discard_blocks_max = blocks(1024 * MIB);
    limits.discard_granularity = blocks(DISCARD_BYTES.max(block_size.bytes()).into());
    // They may have to be written.
    limits.write_zeroes_blocks_max = blocks(64 * MIB);
    // An operation of one object, which is atomic there. A block that lies in two has no such
    // operation.
    let compares = compares && facts.stripe_unit.is_multiple_of(block);
    limits.compare_and_write_blocks_max = BlockCount(compares.into());
    limits.in_flight_max = 1024;
    let caps = &mut shape.caps;
    // What is answered has been committed by the OSDs, all copies of it.
    caps.volatile_cache = false;
    caps.compare_and_write = if compares {
        Support::Native
    } else {
        Support::Absent
    };
    shape
}

/// An option of the pool or the image that breaks a promise, with its value. They are stronger than
/// what the connection has set.
pub(crate) fn broken_promise(options: &BTreeMap<String, String>) -> Option<(&'static str, String)> {
    let wanted = [
        ("rbd_cache", "false"),
        ("rbd_skip_partial_discard", "false"),
        ("rbd_blocklist_on_break_lock", "true"),
    ];
    let set = wanted.into_iter().find_map(|(name, wanted)| {
        let value = options.get(name).filter(|it| *it != wanted)?;
        Some((name, value.clone()))
    });
    set.or_else(|| {
        let name = "rbd_persistent_cache_mode";
        let value = options.get(name).filter(|it| *it != "disabled")?;
        Some((name, value.clone()))
    })
}

#[cfg(test)]
mod test {
    use super::*;
    use volume::assert_shape;

    fn facts(size: u64, stripe_unit: u64) -> Facts {
        Facts {
            id: "1".to_owned(),
            size,
            object_size: 4 * MIB,
            stripe_unit,
            features: 61,
        }
    }

    #[test]
    fn what_is_announced_holds_together_at_both_block_sizes() {
        for block_size in [BlockSize::B512, BlockSize::B4096] {
            let shape = shape(&facts(MIB + 100, 4 * MIB), block_size, 0, true);
            assert_shape(&shape);
            assert_eq!(shape.byte_count().0, MIB, "a part of a block is no block");
            assert!(!shape.caps.volatile_cache);
            let unit = shape.limits.discard_granularity.bytes(block_size);
            assert_eq!(unit.unwrap().0, 4096);
        }
    }

    #[test]
    fn a_comparison_is_of_one_block_and_only_where_no_block_lies_in_two_objects() {
        let whole = shape(&facts(MIB, 64 << 10), BlockSize::B4096, 0, true);
        assert_eq!(whole.limits.compare_and_write_blocks_max, BlockCount(1));
        let cut = shape(&facts(MIB, 512), BlockSize::B4096, 0, true);
        let cannot = shape(&facts(MIB, 64 << 10), BlockSize::B4096, 0, false);
        for shape in [cut, cannot] {
            assert_eq!(shape.caps.compare_and_write, Support::Absent);
            assert_shape(&shape);
        }
    }

    #[test]
    fn an_option_of_the_image_that_lets_writes_be_lost_is_found() {
        let of = |name: &str, value: &str| {
            let options = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            broken_promise(&options).map(|(name, _)| name)
        };
        assert_eq!(of("rbd_cache", "true"), Some("rbd_cache"));
        assert_eq!(of("rbd_cache", "false"), None);
        assert_eq!(
            of("rbd_persistent_cache_mode", "rwl"),
            Some("rbd_persistent_cache_mode")
        );
        assert_eq!(of("rbd_persistent_cache_mode", "disabled"), None);
        assert_eq!(of("rbd_balance_reads", "true"), None);
    }
}
