//! The writer is stopped at every change, and what it did not sync is lost, torn or out of order.

use super::disk::{Disk, Random};
use super::world::{MIB, created, gather, guids, new, open, range, sector_of};
use crate::{Access, Chain, Error, Kind, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// What sectors may hold after a crash: `None` is zeroes.
#[derive(Clone, Default)]
pub(crate) struct Possible {
    /// What they held when the last flush ended.
    pub(crate) stable: BTreeMap<u64, u64>,
    /// What they got since.
    pub(crate) since: BTreeMap<u64, BTreeSet<Option<u64>>>,
    /// What they hold.
    pub(crate) now: BTreeMap<u64, u64>,
}

impl Possible {
    pub(crate) fn begin(&mut self, at: u64, bytes: u64, write: Option<u64>) {
        for sector in at / 512..(at + bytes) / 512 {
            self.since.entry(sector).or_default().insert(write);
        }
    }

    pub(crate) fn end(&mut self, at: u64, bytes: u64, write: Option<u64>) {
        for sector in at / 512..(at + bytes) / 512 {
            match write {
                Some(write) => self.now.insert(sector, write),
                None => self.now.remove(&sector),
            };
        }
    }

    pub(crate) fn flushed(&mut self) {
        self.stable.clone_from(&self.now);
        self.since.clear();
    }

    pub(crate) fn payload(at: u64, bytes: u64, write: u64) -> Vec<u8> {
        let sectors = at / 512..(at + bytes) / 512;
        sectors
            .flat_map(|sector| sector_of(write, sector, 512))
            .collect()
    }

    /// What was found is possible, and is from now on what is stable.
    pub(crate) fn settle(&mut self, disk: &[u8], said: &str) {
        let of = |write: Option<u64>, sector| match write {
            Some(write) => sector_of(write, sector, 512),
            None => vec![0; 512],
        };
        for (sector, found) in (0..).zip(disk.chunks(512)) {
            let before = self.stable.get(&sector).copied();
            let since = self.since.get(&sector);
            let mut all = std::iter::once(before).chain(since.into_iter().flatten().copied());
            let is = all.find(|write| of(*write, sector) == found);
            let is = is.unwrap_or_else(|| panic!("{said}: sector {sector}, {before:?} {since:?}"));
            match is {
                Some(write) => self.stable.insert(sector, write),
                None => self.stable.remove(&sector),
            };
        }
        self.now.clone_from(&self.stable);
        self.since.clear();
    }
}

fn whole(disk: &mut Disk, chain: &Chain) -> Vec<u8> {
    let bytes = chain.image().geometry().disk_bytes;
    let pieces = disk.run(chain.read(0, bytes)).unwrap();
    gather(disk, &pieces, bytes)
}

/// Some operations; an error where the disk stops answering.
pub(crate) fn live(
    disk: &mut Disk,
    possible: &mut Possible,
    random: &mut Random,
    steps: std::ops::Range<u64>,
) -> Result<(), Error> {
    let access = Access::Write(guids(random.next() as u8));
    let chain = open(disk, &access)?;
    let image = chain.image();
    let geometry = image.geometry();
    for step in steps {
        let (at, bytes) = range(random, &geometry);
        let bytes = if random.below(3) > 0 {
            bytes.min(8192)
        } else {
            bytes
        };
        match random.below(8) {
            0..4 => {
                possible.begin(at, bytes, Some(step));
                let payload = Possible::payload(at, bytes, step);
                disk.run_with(image.write(at, bytes), &payload)?;
                possible.end(at, bytes, Some(step));
            }
            4 => {
                possible.begin(at, bytes, None);
                disk.run(image.write_zeroes(at, bytes))?;
                possible.end(at, bytes, None);
            }
            5 => {
                for (block, within, bytes) in geometry.pieces(at, bytes) {
                    if within == 0 && bytes == geometry.bytes_of(block) {
                        let start = block * geometry.block_bytes;
                        possible.begin(start, bytes, None);
                        disk.run(image.unmap(start, bytes))?;
                        possible.end(start, bytes, None);
                    }
                }
            }
            6 => {
                disk.run(image.close())?;
                possible.flushed();
            }
            _ => {
                disk.run(image.flush())?;
                possible.flushed();
            }
        }
    }
    Ok(())
}

/// After a crash, the image is whole, and holds what it may, read in memory or replayed.
pub(crate) fn survive(disk: &mut Disk, possible: &mut Possible, said: &str) {
    let chain = open(disk, &Access::Read).unwrap_or_else(|error| panic!("{said}: {error}"));
    let in_memory = whole(disk, &chain);
    let report = disk.run(chain.image().check()).unwrap();
    assert!(
        report.worst() <= Some(Severity::Note),
        "{said}: {:?}",
        report.findings
    );
    let chain = open(disk, &Access::Write(guids(99))).unwrap();
    let report = disk.run(chain.image().check()).unwrap();
    assert!(
        report.worst() <= Some(Severity::Note),
        "{said}: {:?}",
        report.findings
    );
    let replayed = whole(disk, &chain);
    assert!(replayed == in_memory, "{said}: with and without replay");
    possible.settle(&replayed, said);
}

#[test]
fn what_was_flushed_is_there_after_a_crash_at_any_change() {
    let mut crashes = 0;
    for seed in 0..3 {
        let disk = created(&new(6 * MIB, MIB, 512, Kind::Dynamic));
        for at in 0.. {
            let (mut disk, mut random) = (disk.clone(), Random(seed));
            let mut possible = Possible::default();
            disk.left = Some(at);
            let ended = live(&mut disk, &mut possible, &mut random, 1..20);
            let mut chance = Random(seed * 1000 + at);
            for second in 0..2 {
                let (mut crashed, mut possible) = (disk.crash(&mut chance), possible.clone());
                let said = format!("seed {seed}, change {at}, crash {second}");
                survive(&mut crashed, &mut possible, &said);
                crashes += 1;
                // And once more, in what the crash left.
                crashed.left = Some(chance.below(30));
                let again = live(&mut crashed, &mut possible, &mut chance, 100..110);
                assert!(again.is_err() || again.is_ok());
                let mut crashed = crashed.crash(&mut chance);
                survive(&mut crashed, &mut possible, &format!("{said}, again"));
            }
            if ended.is_ok() {
                break;
            }
        }
    }
    assert!(crashes > 200, "{crashes}");
}
