//! How a ring is, and what it has done.

use super::counts::RingCounts;
use super::driver::Ring;
use super::machine::Machine;
use journal::{Source, VolumeId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// What waits for a ring's log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RingWaiting {
    /// Changes that wait now ...
    pub changes: u64,
    /// ... and the bytes of their data.
    pub bytes: u64,
    /// Changes that were throttled since the ring was opened, because as many as may waited
    /// already.
    pub throttled: u64,
}

/// How a ring is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RingStatus {
    /// The number of the ring.
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
    /// What it has done since it was opened.
    pub counts: RingCounts,
    /// What waits for its log.
    pub waiting: RingWaiting,
    /// How often it was opened.
    pub openings: u64,
    /// The last batch that is stable.
    pub stable: u64,
    /// How long the oldest change has been in the log that is not destaged; of what was found when
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

/// Ranges of lost sectors that are reported.
pub const LOST_MAX: usize = 100;

impl Ring {
    /// The ring's counts and gauges now; `number`: which one of the journal it is.
    pub(crate) fn status(&self, number: u32) -> RingStatus {
        let (machine, counts) = (self.machine(), *self.counts.borrow());
        let (now, admitted) = (self.core.now(), self.permits.used());
        let ring = machine.ring();
        let oldest = machine.oldest(1);
        let oldest = oldest.and_then(|it| self.ages.borrow_mut().of(it.first(), now));
        let errors = machine.volumes().iter();
        let errors = errors.filter_map(|(_, it)| Some((it.id, it.destage_error.as_ref()?)));
        let (lost, lost_sectors) = lost(&machine);
        let backings = self.backings();
        let histories = backings.histories();
        let history_bytes = histories.map(|it| it.history.borrow().bytes() as u64).sum();
        RingStatus {
            ring: number,
            blocks: ring.blocks(),
            used_blocks: ring.used_blocks(),
            pages: machine.index().pages() as u64,
            index_bytes: (machine.index().bytes() + ring.checksums_bytes()) as u64,
            history_bytes,
            counts,
            waiting: RingWaiting {
                changes: admitted.jobs as u64,
                bytes: admitted.bytes as u64,
                throttled: self.permits.waited(),
            },
            openings: ring.openings(),
            stable: ring.stable(),
            oldest,
            failed: machine.why_failed().map(str::to_owned),
            full: machine.why_failed().is_some() && machine.refused_extent().is_some(),
            destage_errors: errors.map(|(id, it)| (id, it.why.clone())).collect(),
            lost,
            lost_sectors,
        }
    }
}

impl Ring {
    /// Pages of 4096 bytes of each volume whose newest data is in the log, of those that have some.
    pub(crate) fn pages(&self) -> Vec<(VolumeId, u64)> {
        let machine = self.machine();
        let all = machine.volumes().iter();
        let all = all.map(|(slot, it)| (it.id, u64::from(machine.index().pages_of(slot))));
        all.filter(|(_, pages)| *pages > 0).collect()
    }
}

type LostRanges = Vec<(VolumeId, Range<u64>)>;

/// What is lost: the first ranges, and how many sectors of each volume.
fn lost(machine: &Machine) -> (LostRanges, BTreeMap<VolumeId, u64>) {
    let (mut ranges, mut sectors) = (Vec::new(), BTreeMap::new());
    for (slot, range, ..) in machine.index().all_bare().filter(|it| it.3 == Source::Lost) {
        let volume = machine.volume(slot).id;
        *sectors.entry(volume).or_default() += range.end - range.start;
        if ranges.len() < LOST_MAX {
            ranges.push((volume, range));
        }
    }
    (ranges, sectors)
}
