//! Entry points for fuzzers: arbitrary bytes in, and a panic if an oracle is broken.

use crate::superblock::{
    Layout, LunId, Member, MemberId, PoolId, SidecarKind, Superblock, VERSION, find,
};
use formats::crc32c_of;
use std::collections::BTreeMap;

/// Two places of a superblock, one half each: as they are, and with checksums that fit, as a writer
/// with a fault would leave them. Oracles: what is read is written again to the same bytes, keeps
/// the rules, and stands where it belongs; a bit that is changed in it is found; no chunk is
/// counted twice.
///
/// # Panics
/// If not.
pub fn superblocks(bytes: &[u8]) {
    let (even, odd) = bytes.split_at(bytes.len() / 2);
    check(even, odd);
    check(&sealed(even), &sealed(odd));
}

fn check(even: &[u8], odd: &[u8]) {
    let Ok(found) = find(even, odd) else {
        return;
    };
    let block = &found.superblock;
    assert_eq!(block.check(), Ok(()), "read against the rules");
    let place = if block.event.is_multiple_of(2) {
        even
    } else {
        odd
    };
    let written = block.encode().expect("it fitted");
    if is_older(place, &written) {
        let again = Superblock::decode(&written);
        assert_eq!(again.as_ref(), Ok(block), "written as something else");
    } else {
        assert!(place.starts_with(&written), "written differently");
    }
    let mut damaged = written;
    let at = usize::try_from(block.event).unwrap_or(0) % damaged.len();
    if let Some(byte) = damaged.get_mut(at) {
        *byte ^= 1;
    }
    let read = Superblock::decode(&damaged);
    assert!(read.is_err(), "a flipped bit was not seen");
    let extents = block.luns.keys().filter_map(|lun| block.extents(*lun));
    let taken = extents.flatten().fold(0_u64, |sum, extent| {
        let members = u64::try_from(extent.members.len()).unwrap_or(u64::MAX);
        sum.saturating_add(extent.bytes.saturating_mul(members))
    });
    let (all, free) = block.room();
    assert_eq!(taken, all - free, "what is taken");
}

/// An earlier program wrote it, which gave sidecars no version of their own. It is
/// read, and written as version 2.
fn is_older(place: &[u8], written: &[u8]) -> bool {
    let version = |bytes: &[u8]| bytes.get(16..).and_then(|rest| rest.first_chunk().copied());
    let was = version(place).map(u32::from_le_bytes);
    let is = version(written).map(u32::from_le_bytes);
    (was, is) == (Some(1), Some(VERSION))
}

/// The same with a checksum that fits, where the length says what it covers.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let length = bytes.get(12..).and_then(|rest| rest.first_chunk::<4>());
    let covered = length.and_then(|length| {
        let end = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        Some((length, bytes.get(16..end)?))
    });
    if let Some((length, covered)) = covered {
        let sum = crc32c_of([&length[..], covered]).to_le_bytes();
        out.splice(8..12, sum);
    }
    out
}

/// Inputs to start from, by the names of their targets.
///
/// # Panics
/// Never: what is made keeps the rules.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let member = |number: u8| Member {
        id: MemberId([number; 16]),
        chunks: 64,
        last_event: 4,
        before: 3 - u64::from(number == 2),
    };
    let mut block = Superblock {
        pool: PoolId([7; 16]),
        event: 4,
        member: 1,
        layout: Layout::Stripe {
            unit_bytes: 64 << 10,
        },
        chunk_bytes: 1 << 20,
        physical_block_bytes: 4096,
        has_journal: false,
        members: (1..4).map(member).collect(),
        luns: BTreeMap::new(),
        records: BTreeMap::new(),
    };
    let mut seeds = Vec::new();
    for layout in [block.layout, Layout::Span] {
        block.layout = layout;
        for number in 1..4 {
            block
                .resize(LunId([number; 16]), u64::from(number) << 22)
                .expect("there is room");
        }
        for records in [0_u8, 3] {
            block.records = (0..records)
                .map(|number| (LunId([number; 16]), vec![number; 40]))
                .collect();
            let mut both = block.encode().expect("it fits");
            both.resize(both.len() * 2, 0);
            seeds.push(("pool_superblocks", both));
        }
        block.records.clear();
        block.luns.clear();
    }
    seeds.push(("pool_superblocks", older(block)));
    seeds
}

/// As an earlier program wrote a sidecar: in version 1, without the eight bytes of no
/// records.
fn older(mut block: Superblock) -> Vec<u8> {
    let lun = LunId([0x66; 16]);
    let sidecar = lun.sidecar(SidecarKind::Checksums).expect("one of ours");
    for id in [lun, sidecar] {
        block.resize(id, 1 << 22).expect("there is room");
    }
    let mut bytes = block.encode().expect("it fits");
    bytes.truncate(bytes.len() - 8);
    let length = u32::try_from(bytes.len()).expect("it fitted");
    bytes.splice(12..20, [length, 1].map(u32::to_le_bytes).concat());
    let mut both = sealed(&bytes);
    assert!(Superblock::decode(&both).is_ok(), "it is read");
    both.resize(both.len() * 2, 0);
    both
}
