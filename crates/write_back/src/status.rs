//! How a shard is, and what it has done.

use crate::shard::{Shard, State};
use journal::{Source, VolumeId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// What a shard has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) batches: u64,
    pub(crate) records: u64,
    pub(crate) written_bytes: u64,
    pub(crate) destaged_bytes: u64,
    pub(crate) write_around_bytes: u64,
    pub(crate) moved_bytes: u64,
    pub(crate) rounds: u64,
    pub(crate) misreads: u64,
}

/// How a shard is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ShardStatus {
    /// The ring.
    pub ring: u32,
    /// Blocks of its log, of 4096 bytes.
    pub blocks: u64,
    /// Blocks in use.
    pub used_blocks: u64,
    /// Pages of 4096 bytes whose newest data is in the log.
    pub pages: u64,
    /// Memory of the index and of the checksums of the log's blocks, in bytes.
    pub index_bytes: u64,
    /// Memory of the histories of its volumes, in bytes: pages stay once they were read or
    /// something in them changed.
    pub history_bytes: u64,
    /// Batches that were written to the log since it was opened.
    pub batches: u64,
    /// Changes in them.
    pub records: u64,
    /// Bytes in them, with their headers.
    pub written_bytes: u64,
    /// Bytes that were destaged.
    pub destaged_bytes: u64,
    /// Bytes that went home past the log.
    pub write_around_bytes: u64,
    /// Bytes that moved on in the log, because they could not be destaged.
    pub moved_bytes: u64,
    /// Changes that wait for the log now ...
    pub waiting_changes: u64,
    /// ... and the bytes of their data.
    pub waiting_bytes: u64,
    /// Changes that were kept back since it was opened, because as many as may waited already.
    pub throttled: u64,
    /// Reads of the log that did not give what was written there at first.
    pub misreads: u64,
    /// How often it was opened.
    pub openings: u64,
    /// The last batch that is stable.
    pub stable: u64,
    /// How long the oldest change has been in the log that is not at home; of what was found when
    /// it was opened, since then.
    pub oldest: Option<Duration>,
    /// Why it takes nothing more until the journal is opened anew, where that is so.
    pub failed: Option<String>,
    /// It has failed because its file or device had no space for a write.
    pub full: bool,
    /// Volumes whose changes cannot be destaged now, and why.
    pub destage_errors: Vec<(VolumeId, String)>,
    /// Sectors of 512 bytes whose data was damaged in the log, the first [`LOST_MAX`] ranges: reads
    /// of them fail until they are written again.
    pub lost: Vec<(VolumeId, Range<u64>)>,
    /// How many sectors of each volume these are, all of them.
    pub lost_sectors: BTreeMap<VolumeId, u64>,
}

/// Ranges of lost sectors that are told.
pub const LOST_MAX: usize = 100;

impl Shard {
    /// How it is.
    pub(crate) fn status(&self, ring: u32) -> ShardStatus {
        let (state, counts) = (self.state.borrow(), *self.counts.borrow());
        let (now, held) = (self.core.now(), self.permits.held());
        let oldest = state.log.ring().oldest(1);
        let oldest = oldest.and_then(|it| self.ages.borrow_mut().of(it.first(), now));
        let failed = state.log.ring().has_failed();
        let stuck = state.homes.iter();
        let stuck = stuck.filter_map(|it| Some((it.id, it.stuck.as_ref()?.why.clone())));
        let (lost, lost_sectors) = lost(&state);
        let histories = state.homes.iter().filter_map(|it| it.kept.as_ref());
        let history_bytes = histories.map(|it| it.history.borrow().bytes() as u64).sum();
        ShardStatus {
            ring,
            blocks: state.log.ring().blocks(),
            used_blocks: state.log.ring().used_blocks(),
            pages: state.index.pages() as u64,
            index_bytes: (state.index.bytes() + state.log.ring().checksums_bytes()) as u64,
            history_bytes,
            batches: counts.batches,
            records: counts.records,
            written_bytes: counts.written_bytes,
            destaged_bytes: counts.destaged_bytes,
            write_around_bytes: counts.write_around_bytes,
            moved_bytes: counts.moved_bytes,
            waiting_changes: held.jobs as u64,
            waiting_bytes: held.bytes as u64,
            throttled: self.permits.waited(),
            misreads: counts.misreads,
            openings: state.log.ring().openings(),
            stable: state.log.ring().stable(),
            oldest,
            failed: failed.then(|| self.why_failed()),
            full: failed && self.is_full(),
            destage_errors: stuck.collect(),
            lost,
            lost_sectors,
        }
    }
}

type LostRanges = Vec<(VolumeId, Range<u64>)>;

/// What is lost: the first ranges, and how many sectors of each volume.
fn lost(state: &State) -> (LostRanges, BTreeMap<VolumeId, u64>) {
    let (mut ranges, mut sectors) = (Vec::new(), BTreeMap::new());
    for (slot, range, ..) in state.index.all_bare().filter(|it| it.3 == Source::Lost) {
        let volume = state.home(slot).id;
        *sectors.entry(volume).or_default() += range.end - range.start;
        if ranges.len() < LOST_MAX {
            ranges.push((volume, range));
        }
    }
    (ranges, sectors)
}
