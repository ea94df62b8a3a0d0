//! Makes a pool of members that are all blank.

use super::MemberPool;
use super::inspect::{Inspected, take_room, write};
use env::{CoreHandle, FileKind};
use manifest::config::Layout;
use members::{DATA_OFFSET, Member, MemberId, PoolId, Seen, Superblock};
use std::collections::BTreeMap;
use volume::{OpenError, OpenErrorKind};

/// Bytes of a chunk of a large pool.
const CHUNK_BYTES: u64 = 16 << 20;

/// Bytes of a chunk of the smallest.
const CHUNK_BYTES_MIN: u64 = 1 << 20;

/// A member has so many chunks at least, or smaller ones.
const CHUNKS_MIN: u64 = 256;

/// Bytes of a stripe unit: most requests are one piece, and a large one is on all members at once.
const UNIT_BYTES: u32 = 64 << 10;

/// Bytes of a physical block where no member is a device that reports it.
const PHYSICAL_BYTES: u32 = 4096;

impl MemberPool {
    /// Writes the first event to members that are all blank.
    pub(crate) async fn make(
        &self,
        core: &CoreHandle,
        inspected: &[Inspected],
    ) -> Result<(), OpenError> {
        let physical_block_bytes = physical_block_bytes(inspected)?;
        let smallest = inspected.iter().map(|it| it.seen.bytes).min().unwrap_or(0);
        let mut chunk_bytes = CHUNK_BYTES;
        while chunk_bytes > CHUNK_BYTES_MIN && smallest / chunk_bytes < CHUNKS_MIN {
            chunk_bytes /= 2;
        }
        let mut members = Vec::new();
        for it in inspected {
            members.push(member(core, &it.seen, chunk_bytes)?);
        }
        let mut pool = [0; 16];
        core.fill_random(&mut pool);
        let first = Superblock {
            pool: PoolId(pool),
            event: 1,
            member: 0,
            layout: match self.layout {
                Layout::Span => members::Layout::Span,
                Layout::Stripe => members::Layout::Stripe {
                    unit_bytes: UNIT_BYTES,
                },
            },
            chunk_bytes,
            physical_block_bytes,
            has_journal: false,
            members,
            luns: BTreeMap::new(),
            records: BTreeMap::new(),
        };
        first.check().map_err(|rule| OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!("pool {} cannot be made: {rule}", self.name),
            next_step: "name other members".to_owned(),
        })?;
        let own = |(member, _): (u16, &Inspected)| {
            let own = Superblock {
                member,
                ..first.clone()
            };
            (usize::from(member), own)
        };
        let blocks: Vec<(usize, Superblock)> = (0_u16..).zip(inspected).map(own).collect();
        tracing::info!(
            pool = self.name,
            members = inspected.len(),
            "making the pool"
        );
        take_room(inspected).await?;
        Ok(write(inspected, &blocks).await?)
    }
}

fn member(core: &CoreHandle, seen: &Seen, chunk_bytes: u64) -> Result<Member, OpenError> {
    let chunks = seen.bytes.saturating_sub(DATA_OFFSET) / chunk_bytes;
    if chunks == 0 {
        return Err(OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!(
                "{} has {} bytes, too few for a member",
                seen.path, seen.bytes
            ),
            next_step: "a member has 3 MiB at least".to_owned(),
        });
    }
    let mut id = [0; 16];
    core.fill_random(&mut id);
    Ok(Member {
        id: MemberId(id),
        chunks: u32::try_from(chunks).unwrap_or(u32::MAX),
        last_event: 1,
        before: 0,
    })
}

/// Of all members: those of devices must be of one size, and files have the same.
fn physical_block_bytes(inspected: &[Inspected]) -> Result<u32, OpenError> {
    let mut known: Option<&Seen> = None;
    for it in inspected
        .iter()
        .filter(|it| it.kind == Some(FileKind::Block))
    {
        let seen = &it.seen;
        if let Some(first) = known
            && first.physical_block_bytes != seen.physical_block_bytes
        {
            return Err(OpenError {
                kind: OpenErrorKind::Unsupported,
                cause: format!(
                    "{} has physical blocks of {} bytes, and {} of {}",
                    first.path, first.physical_block_bytes, seen.path, seen.physical_block_bytes
                ),
                next_step: "name members with physical blocks of one size".to_owned(),
            });
        }
        known = Some(seen);
    }
    Ok(known.map_or(PHYSICAL_BYTES, |seen| seen.physical_block_bytes))
}
