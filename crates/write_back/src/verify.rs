//! Reads again what a journal holds, while it is in use: damage that nobody reads is found before
//! it is needed.

use crate::journal_file::Journal;
use crate::rest::{REST_MAX, rest};
use crate::ring::{Ring, read_segment};
use env::file::read;
use env::{CoreHandle, LocalFuture};
use journal::{Again, BLOCK, Checkpoint, JournalId, Segment, Superblock, VolumeId};
use std::io;
use std::rc::Rc;
use units::Buf;

/// Blocks that are read at once.
const PART_BLOCKS: u64 = 256;

/// What a journal holds, as it was read again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Verified {
    /// Batches that were read.
    pub batches: u64,
    /// Changes in them that are right.
    pub changes: u64,
    /// Changes that are damaged; a batch whose header is damaged counts as one.
    pub damaged: u64,
    /// Copies of the superblock that are damaged, of two.
    pub superblocks: u64,
    /// Checkpoints that are damaged, of two for each ring.
    pub checkpoints: u64,
}

impl Verified {
    fn add(&mut self, other: Self) {
        self.batches += other.batches;
        self.changes += other.changes;
        self.damaged += other.damaged;
        self.superblocks += other.superblocks;
        self.checkpoints += other.checkpoints;
    }
}

impl Journal {
    /// Reads all that it holds and is not destaged, both superblocks, and both checkpoints of each
    /// ring.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn verify(&self, core: &CoreHandle) -> io::Result<Verified> {
        let mut all = Verified {
            superblocks: self.damaged_superblocks(core).await?,
            ..Verified::default()
        };
        for ring in self.on_rings(core, ring_verified).await {
            all.add(ring?);
        }
        let journal = self.number();
        let checkpoints = move |number, ring| -> LocalFuture<io::Result<u64>> {
            Box::pin(damaged_checkpoints(journal, number, ring))
        };
        for damaged in self.on_rings(core, checkpoints).await {
            all.checkpoints += damaged?;
        }
        Ok(all)
    }

    /// Reads the history of a volume that it serves, where that is kept: how many of its headers
    /// and pages are lost.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn verify_history(&self, core: &CoreHandle, volume: VolumeId) -> io::Result<u64> {
        let of_ring = move |_number, ring: Rc<Ring>| -> LocalFuture<io::Result<u64>> {
            let slot = ring.slot(volume);
            let history = slot.and_then(|slot| ring.backings().of(slot).history.clone());
            Box::pin(async move {
                match history {
                    Some(history) => history.verify(&ring.core).await,
                    None => Ok(0),
                }
            })
        };
        let mut damaged = 0;
        for ring in self.on_rings(core, of_ring).await {
            damaged += ring?;
        }
        Ok(damaged)
    }

    async fn damaged_superblocks(&self, core: &CoreHandle) -> io::Result<u64> {
        let (file, bytes) = self.file_there(core).await?;
        let mut damaged = 0;
        for at in [0, BLOCK as u64] {
            let block = read(&file, at, BLOCK).await?;
            damaged += u64::from(Superblock::read(&block, bytes).is_err());
        }
        Ok(damaged)
    }
}

fn ring_verified(_number: u32, ring: Rc<Ring>) -> LocalFuture<io::Result<Verified>> {
    Box::pin(async move {
        let all = ring.machine().ring().oldest_stable(u64::MAX);
        let mut verified = Verified::default();
        for part in all.iter().flat_map(|all| all.parts(PART_BLOCKS)) {
            if is_given_up(&ring, &part) {
                continue;
            }
            let begun = ring.core.now();
            let data = read_segment(&ring, &part).await?;
            let found = found_in(&part, &data);
            // Its room may have been written again while it was read.
            if !is_given_up(&ring, &part) {
                verified.add(found);
            }
            rest(&ring.core, begun).await;
        }
        Ok(verified)
    })
}

/// Of both checkpoints of a ring. One that is written while it is read is read again.
async fn damaged_checkpoints(journal: JournalId, number: u32, ring: Rc<Ring>) -> io::Result<u64> {
    let mut damaged = 0;
    for at in ring.device.checkpoints_at {
        let mut seen: Option<Vec<u8>> = None;
        loop {
            let block = read(&ring.device.file, at, BLOCK).await?;
            let blank = block.iter().all(|&byte| byte == 0);
            if blank || Checkpoint::read(&block, journal, number).is_ok() {
                break;
            }
            if seen.as_ref() == Some(&block) {
                damaged += 1;
                break;
            }
            seen = Some(block);
            ring.core.sleep_until(ring.core.now().after(REST_MAX)).await;
        }
    }
    Ok(damaged)
}

/// Some of it is destaged, and its room is not needed any more.
fn is_given_up(ring: &Ring, part: &Segment) -> bool {
    ring.machine().ring().released().number > part.first()
}

fn found_in(part: &Segment, data: &Buf) -> Verified {
    let mut verified = Verified::default();
    for batch in part.batches(data) {
        verified.batches += 1;
        match batch {
            Again::Found {
                records, damaged, ..
            } => {
                verified.changes += records.len() as u64;
                verified.damaged += damaged.len() as u64;
            }
            Again::Damaged { .. } => verified.damaged += 1,
        }
    }
    verified
}
