//! Reads again what a journal holds, while it is in use: damage that nobody reads is found before
//! it is needed.

use crate::journal_file::Journal;
use crate::shard::Shard;
use env::file::read;
use env::{CoreHandle, LocalFuture};
use journal::{Again, BLOCK, Checkpoint, JournalId, Segment, Superblock, VolumeId};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use units::{Buf, BufMut, Now};

/// Blocks that are read at once.
const PART_BLOCKS: u64 = 256;

/// Between two reads it rests so many times as long as the last one took ...
const REST: u32 = 4;
/// ... but not longer than this.
const REST_MAX: Duration = Duration::from_millis(100);

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
    /// Reads all that it holds and is not at home, both superblocks, and both checkpoints of each
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
        let number = self.number();
        let checkpoints = move |ring, shard| -> LocalFuture<io::Result<u64>> {
            Box::pin(damaged_checkpoints(number, ring, shard))
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
        let of_ring = move |_ring, shard: Rc<Shard>| -> LocalFuture<io::Result<u64>> {
            let kept = {
                let state = shard.state.borrow();
                let slot = state.slots.get(&volume);
                slot.and_then(|slot| state.home(*slot).kept.clone())
            };
            Box::pin(async move {
                match kept {
                    Some(kept) => kept.verify(&shard.core).await,
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
        let (file, bytes) = self.looked(core).await?;
        let mut damaged = 0;
        for at in [0, BLOCK as u64] {
            let block = read(&file, at, BLOCK).await?;
            damaged += u64::from(Superblock::read(&block, bytes).is_err());
        }
        Ok(damaged)
    }
}

fn ring_verified(_ring: u32, shard: Rc<Shard>) -> LocalFuture<io::Result<Verified>> {
    Box::pin(async move {
        let all = shard.state.borrow().log.ring().oldest(u64::MAX);
        let mut verified = Verified::default();
        for part in all.iter().flat_map(|all| all.parts(PART_BLOCKS)) {
            if is_given_up(&shard, &part) {
                continue;
            }
            let begun = shard.core.now();
            let data = part_read(&shard, &part).await?;
            let looked = looked_at(&part, &data);
            // Its room may have been written again while it was read.
            if !is_given_up(&shard, &part) {
                verified.add(looked);
            }
            rest(&shard.core, begun).await;
        }
        Ok(verified)
    })
}

/// Leaves the disk to others after a read that began then.
pub(crate) async fn rest(core: &CoreHandle, begun: Now) {
    let now = core.now();
    let rest = (now.since(begun) * REST).min(REST_MAX);
    core.sleep_until(now.after(rest)).await;
}

/// Of both checkpoints of a ring. One that is written while it is read is looked at again.
async fn damaged_checkpoints(journal: JournalId, ring: u32, shard: Rc<Shard>) -> io::Result<u64> {
    let mut damaged = 0;
    for at in shard.checkpoints_at {
        let mut seen: Option<Vec<u8>> = None;
        loop {
            let block = read(&shard.file, at, BLOCK).await?;
            let blank = block.iter().all(|&byte| byte == 0);
            if blank || Checkpoint::read(&block, journal, ring).is_ok() {
                break;
            }
            if seen.as_ref() == Some(&block) {
                damaged += 1;
                break;
            }
            seen = Some(block);
            shard
                .core
                .sleep_until(shard.core.now().after(REST_MAX))
                .await;
        }
    }
    Ok(damaged)
}

/// Some of it is at home, and its room is not needed any more.
fn is_given_up(shard: &Shard, part: &Segment) -> bool {
    shard.state.borrow().log.ring().released().number > part.first()
}

pub(crate) async fn part_read(shard: &Shard, part: &Segment) -> io::Result<Buf> {
    let mut data = Buf::empty();
    for (at, bytes) in part.reads() {
        let offset = shard.log_at + at;
        let into = BufMut::zeroed(bytes);
        let op = env::FileOp::Read { offset, into };
        let env::FileDone::Read(read) = shard.file.submit(op).await? else {
            unreachable!("a read answers data")
        };
        data.append_owned(read.freeze());
    }
    Ok(data)
}

fn looked_at(part: &Segment, data: &Buf) -> Verified {
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
