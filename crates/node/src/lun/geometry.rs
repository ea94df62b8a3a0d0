//! What a stored LUN says of its blocks.

use backends::Provisioning;
use manifest::objects::Lun;
use manifest::size::Size;
use units::BlockSize;

/// Its logical block.
pub(crate) fn block_size(lun: &Lun) -> BlockSize {
    BlockSize::from_bytes(u64::from(lun.block_size)).expect("stored LUNs have 512 or 4096")
}

/// Logical blocks in this size.
pub(crate) fn blocks(size: Size, block_size: BlockSize) -> u64 {
    size.bytes() / u64::from(block_size.bytes())
}

/// How many logical blocks it has.
pub(crate) fn block_count(lun: &Lun) -> u64 {
    blocks(lun.size, block_size(lun))
}

/// Logical blocks in a physical one, as a power of two.
pub(crate) fn exponent(lun: &Lun) -> u8 {
    let ratio = (lun.physical_block_size / lun.block_size).max(1);
    u8::try_from(ratio.ilog2()).expect("at most 3")
}

/// When it takes its space.
pub(crate) fn provisioning(lun: &Lun) -> Provisioning {
    if lun.thin {
        Provisioning::Thin
    } else {
        Provisioning::Thick
    }
}

/// The number that its NAA identifier is, as 16 bytes.
pub(crate) fn naa_bytes(lun: &Lun) -> [u8; 16] {
    let number = u128::from_str_radix(&lun.naa, 16);
    number
        .expect("stored LUNs have 32 hexadecimal digits")
        .to_be_bytes()
}
