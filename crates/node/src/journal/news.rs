//! What is new of a journal since it was checked last: LUNs that it cannot destage, and blocks
//! that are damaged in it.

use std::collections::BTreeMap;
use write_back::{RingStatus, VolumeId};

/// Something new of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// What the journal holds of it cannot be destaged.
    DestageError(String),
    /// It can be again.
    Destages,
    /// Acknowledged data of it is damaged in the journal: so many sectors of 512 bytes by now, the
    /// first of them here.
    Lost { sectors: u64, first: u64 },
    /// All of that was written again.
    Mended,
}

/// What was known when a journal was checked last.
#[derive(Default)]
pub(crate) struct Reported {
    errors: BTreeMap<VolumeId, String>,
    lost: BTreeMap<VolumeId, u64>,
}

impl Reported {
    /// Compares with what was known.
    pub(crate) fn update(&mut self, rings: &[RingStatus]) -> Vec<(VolumeId, News)> {
        let errors = rings
            .iter()
            .flat_map(|ring| ring.destage_errors.iter().cloned());
        let errors: BTreeMap<VolumeId, String> = errors.collect();
        let mut lost: BTreeMap<VolumeId, u64> = BTreeMap::new();
        for (volume, sectors) in rings.iter().flat_map(|ring| &ring.lost_sectors) {
            *lost.entry(*volume).or_default() += sectors;
        }
        let mut news = self.of_errors(&errors);
        news.extend(self.of_lost(&lost, rings));
        (self.errors, self.lost) = (errors, lost);
        news
    }

    fn of_errors(&self, now: &BTreeMap<VolumeId, String>) -> Vec<(VolumeId, News)> {
        let new = now.iter().filter(|(lun, _)| !self.errors.contains_key(lun));
        let new = new.map(|(lun, why)| (*lun, News::DestageError(why.clone())));
        let gone = self.errors.keys().filter(|lun| !now.contains_key(lun));
        new.chain(gone.map(|lun| (*lun, News::Destages))).collect()
    }

    fn of_lost(
        &self,
        now: &BTreeMap<VolumeId, u64>,
        rings: &[RingStatus],
    ) -> Vec<(VolumeId, News)> {
        let more = |(volume, sectors): &(&VolumeId, &u64)| {
            **sectors > self.lost.get(volume).copied().unwrap_or(0)
        };
        let more = now.iter().filter(more).map(|(volume, sectors)| {
            let places = rings.iter().flat_map(|ring| &ring.lost);
            let of_it = places.filter(|(lun, _)| lun == volume);
            let first = of_it.map(|(_, range)| range.start).min().unwrap_or(0);
            let sectors = *sectors;
            (*volume, News::Lost { sectors, first })
        });
        let gone = self.lost.keys().filter(|lun| !now.contains_key(lun));
        more.chain(gone.map(|lun| (*lun, News::Mended))).collect()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn rings(errors: &[u64], lost: &[(u64, u64, u64)]) -> [RingStatus; 2] {
        let errors = errors
            .iter()
            .map(|lun| (VolumeId(*lun), format!("why {lun}")));
        let mut lossy = RingStatus::default();
        for (lun, from, to) in lost {
            lossy.lost.push((VolumeId(*lun), *from..*to));
            *lossy.lost_sectors.entry(VolumeId(*lun)).or_default() += to - from;
        }
        let errors = RingStatus {
            destage_errors: errors.collect(),
            ..RingStatus::default()
        };
        [errors, lossy]
    }

    #[test]
    fn what_cannot_be_destaged_is_reported_once_and_so_is_its_end() {
        let mut known = Reported::default();
        let errors = |lun: u64| (VolumeId(lun), News::DestageError(format!("why {lun}")));
        assert_eq!(known.update(&rings(&[1], &[])), [errors(1)]);
        assert_eq!(known.update(&rings(&[1], &[])), []);
        assert_eq!(known.update(&rings(&[1, 2], &[])), [errors(2)]);
        assert_eq!(
            known.update(&rings(&[], &[])),
            [(VolumeId(1), News::Destages), (VolumeId(2), News::Destages)]
        );
    }

    #[test]
    fn damage_in_the_log_is_reported_when_there_is_more_of_it_and_when_there_is_none_any_more() {
        let mut known = Reported::default();
        let lost = |sectors: u64, first: u64| (VolumeId(7), News::Lost { sectors, first });
        assert_eq!(known.update(&rings(&[], &[(7, 16, 24)])), [lost(8, 16)]);
        assert_eq!(known.update(&rings(&[], &[(7, 16, 24)])), []);
        let more = [(7, 80, 96), (7, 16, 24)];
        assert_eq!(known.update(&rings(&[], &more)), [lost(24, 16)]);
        // Some of it was written again: nothing that an administrator has to know.
        assert_eq!(known.update(&rings(&[], &[(7, 80, 96)])), []);
        assert_eq!(
            known.update(&rings(&[], &[])),
            [(VolumeId(7), News::Mended)]
        );
    }
}
