//! What is remembered of disks and bays: [the file](../../docs/formats/disks.md).

use crate::trend::DAY;
use manifest::disks::{DiskFacts, DiskIdentity};
use manifest::document::{self, DocumentError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind in the first line of its file.
pub const KIND: &str = "disks";

/// The most disks that are remembered.
const DISKS_MAX: usize = 1024;

/// Samples of the last weeks are a day apart, older ones a week.
const DAILY: u64 = 30 * DAY;
const WEEK: u64 = 7 * DAY;

/// Older samples say nothing of now.
const OLDEST: u64 = 730 * DAY;

/// The figures of a disk at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Seconds since 1970.
    pub at: u64,
    /// Percent of its endurance that is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<u64>,
    /// Percent of its spare blocks that are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<u64>,
    /// Sectors that spare ones stand for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reallocated: Option<u64>,
    /// Sectors that cannot be read, and wait for a write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
    /// Errors that it could not correct; of NVMe, media and data integrity errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncorrected: Option<u64>,
    /// Entries of the grown defect list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grown: Option<u64>,
    /// Damaged transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc: Option<u64>,
    /// Degrees Celsius; below zero counts as zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<u64>,
}

impl Sample {
    /// What is kept of the facts.
    #[must_use]
    pub fn of(facts: &DiskFacts, at: u64) -> Self {
        Self {
            at,
            wear: facts.wear_percent,
            spare: facts.spare_percent,
            reallocated: facts.reallocated_sectors,
            pending: facts.pending_sectors,
            uncorrected: facts.media_errors.or(facts.uncorrected_errors),
            grown: facts.grown_defects,
            crc: facts.crc_errors,
            temperature: facts
                .temperature_celsius
                .map(|it| u64::try_from(it).unwrap_or(0)),
        }
    }
}

/// What outlives restarts, and the disk itself.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownDisk {
    /// For its label, and for `disk forget`.
    pub(crate) identity: DiskIdentity,
    /// Seconds since 1970, a day old at most while the disk is there.
    pub(crate) last_seen: u64,
    /// Where it was, by the name of its slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bay: Option<String>,
    /// What lay on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) used_by: Vec<String>,
    /// What it said last, for the time in which it sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) facts: Option<DiskFacts>,
    /// Oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) samples: Vec<Sample>,
}

/// What was in a bay.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownBay {
    /// The disk, as [`Memory::disks`] has it.
    pub(crate) disk: String,
    /// Its serial number, for the label.
    pub(crate) serial: String,
    /// Vendor and model.
    pub(crate) model: String,
    /// Seconds since 1970.
    pub(crate) last_seen: u64,
}

/// What is remembered.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// By world-wide name, or serial number.
    pub(crate) disks: BTreeMap<String, KnownDisk>,
    /// By `ENCLOSURE/SLOT`.
    pub(crate) bays: BTreeMap<String, KnownBay>,
}

impl Memory {
    /// As its file has it.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(bytes: &[u8]) -> Result<Self, DocumentError> {
        document::parse(KIND, bytes)
    }

    /// As a file.
    ///
    /// # Panics
    /// Never: it is plain data.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("plain data is JSON");
        document::write(KIND, &body)
    }

    /// Forgets those that were gone first, where there are too many.
    pub(crate) fn bound(&mut self) {
        while self.disks.len() > DISKS_MAX {
            let oldest = self.disks.iter().min_by_key(|(_, disk)| disk.last_seen);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.disks.remove(&key);
        }
        while self.bays.len() > DISKS_MAX {
            let oldest = self.bays.iter().min_by_key(|(_, bay)| bay.last_seen);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.bays.remove(&key);
        }
    }
}

impl KnownDisk {
    /// Keeps a sample, where the last one is a day old; whether it did.
    pub(crate) fn keep(&mut self, sample: Sample) -> bool {
        let day = |at: u64| at / DAY;
        if let Some(last) = self.samples.last()
            && day(last.at) >= day(sample.at)
        {
            // A clock that was wrong for a while leaves samples of the future: they go.
            let is_future = day(last.at) > day(sample.at) + 1;
            if !is_future {
                return false;
            }
            self.samples.retain(|it| day(it.at) < day(sample.at));
        }
        self.samples.push(sample);
        self.thin(sample.at);
        true
    }

    /// Leaves a sample a week of those that are old.
    fn thin(&mut self, now: u64) {
        let mut kept_week = None;
        self.samples.retain(|it| {
            let age = now.saturating_sub(it.at);
            if age > OLDEST {
                return false;
            }
            if age <= DAILY {
                return true;
            }
            let week = it.at / WEEK;
            let is_first = kept_week != Some(week);
            kept_week = Some(week);
            is_first
        });
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn samples_are_a_day_apart_then_a_week_and_end_after_two_years() {
        let mut disk = KnownDisk::default();
        let start = 1_700_000_000;
        for hour in 0..24 * 800 {
            let at = start + hour * 3600;
            disk.keep(Sample {
                at,
                ..Sample::default()
            });
        }
        let now = start + (24 * 800 - 1) * 3600;
        let young = disk.samples.iter().filter(|it| now - it.at <= DAILY);
        assert!((29..=31).contains(&young.count()));
        assert!((30 + 99..=30 + 102).contains(&disk.samples.len()));
        let first = disk.samples.first().unwrap();
        assert!(now - first.at <= OLDEST + DAY);
        assert!(disk.samples.is_sorted_by_key(|it| it.at));
    }

    #[test]
    fn a_clock_that_was_wrong_leaves_no_samples_of_the_future() {
        let mut disk = KnownDisk::default();
        let at = |at| Sample {
            at,
            ..Sample::default()
        };
        assert!(disk.keep(at(10 * DAY)));
        assert!(disk.keep(at(400 * DAY)));
        assert!(disk.keep(at(11 * DAY)));
        let days: Vec<u64> = disk.samples.iter().map(|it| it.at / DAY).collect();
        assert_eq!(days, [10, 11]);
    }

    #[test]
    fn a_file_goes_round_and_a_damaged_one_is_refused() {
        let mut memory = Memory::default();
        memory.disks.insert("a".to_owned(), KnownDisk::default());
        let bytes = memory.write();
        assert_eq!(Memory::read(&bytes), Ok(memory));
        for end in 0..bytes.len() {
            assert!(Memory::read(&bytes[..end]).unwrap_err().is_damage());
        }
        let unknown = document::write(KIND, br#"{"disks":{},"bays":{},"lamps":{}}"#);
        assert!(!Memory::read(&unknown).unwrap_err().is_damage());
    }
}
