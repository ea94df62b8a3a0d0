//! Superblocks by bytes and by crashes, tables by counting, assembly by stories.

mod assemblies;
mod blocks;
mod tables;

use crate::superblock::{Layout, LunId, Member, MemberId, PoolId, Superblock};
use std::collections::BTreeMap;

pub(super) const CHUNK: u64 = 1 << 20;

pub(super) fn lun(number: u8) -> LunId {
    LunId([number; 16])
}

pub(super) fn pool(layout: Layout, chunks: &[u32]) -> Superblock {
    let members = (1_u8..).zip(chunks).map(|(number, chunks)| Member {
        id: MemberId([number; 16]),
        chunks: *chunks,
        last_event: 1,
        before: 0,
    });
    Superblock {
        pool: PoolId([9; 16]),
        event: 1,
        member: 0,
        layout,
        chunk_bytes: CHUNK,
        physical_block_bytes: 4096,
        has_journal: false,
        members: members.collect(),
        luns: BTreeMap::new(),
        records: BTreeMap::new(),
    }
}

pub(super) const STRIPE: Layout = Layout::Stripe {
    unit_bytes: 64 << 10,
};
