//! What to destage from the oldest batches, in the order of addresses.
//!
//! ```text
//!   oldest batches:  A 8-16 at 100 | B 0-8 at 140 | A 16-24 at 160 | A 8-12 at 190
//!   the index says:  A 8-12 lies elsewhere by now
//!   destaged:         A 12-24 (from 104 and 160), B 0-8 (from 140)
//! ```
//!
//! **Contract.** Only what still is the newest is destaged. When all of it is in the backing volume
//! and flushed there, [`Index::settle`] each part, then release the batches: what was written
//! meanwhile stays in the index, and what is in the backing volume is never older than what a
//! replay would find. Between two rounds lies a flush, so that no place in the backing volume is
//! written twice within one flush window.

use crate::index::{Index, Slot};
use std::ops::Range;

/// Sectors of a volume as a batch holds them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lying {
    /// The volume's place in the index.
    pub slot: Slot,
    /// Sectors of 512 bytes of the volume.
    pub sectors: Range<u64>,
    /// The sector of the ring's log where the first one lies.
    pub at: u32,
}

/// Sectors that lie together in the backing volume, to be written there in one piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// The volume's place in the index.
    pub slot: Slot,
    /// Sectors of 512 bytes of the volume.
    pub sectors: Range<u64>,
    /// Where their data lies in the log, in the order of sectors, without a gap.
    pub parts: Vec<Lying>,
}

impl Run {
    /// The same in pieces that end at multiples of so many sectors.
    ///
    /// # Panics
    /// If that is 0.
    #[must_use]
    pub fn pieces(&self, sectors: u64) -> Vec<Self> {
        let mut pieces: Vec<Self> = Vec::new();
        for part in &self.parts {
            let mut part = part.clone();
            while !part.sectors.is_empty() {
                let most = sectors - part.sectors.start % sectors;
                let rest = cut(&mut part, most);
                match pieces.last_mut() {
                    Some(last)
                        if last.sectors.end == part.sectors.start
                            && !last.sectors.end.is_multiple_of(sectors) =>
                    {
                        last.sectors.end = part.sectors.end;
                        last.parts.push(part);
                    }
                    _ => pieces.push(Self {
                        slot: self.slot,
                        sectors: part.sectors.clone(),
                        parts: vec![part],
                    }),
                }
                part = rest;
            }
        }
        pieces
    }
}

/// The runs that destage what is the newest of `oldest`, by volume and address, none longer than
/// `sectors_max`.
///
/// # Panics
/// If `sectors_max` is 0.
#[must_use]
pub fn runs(index: &Index, oldest: &[Lying], sectors_max: u64) -> Vec<Run> {
    assert!(sectors_max > 0, "a run has a sector at least");
    let mut live: Vec<Lying> = oldest.iter().flat_map(|it| newest(index, it)).collect();
    live.sort_by_key(|it| (it.slot, it.sectors.start));
    let mut runs: Vec<Run> = Vec::new();
    for mut part in live {
        while !part.sectors.is_empty() {
            let room = room_after(runs.last(), &part, sectors_max);
            let rest = if room == 0 {
                let rest = cut(&mut part, sectors_max);
                runs.push(Run {
                    slot: part.slot,
                    sectors: part.sectors.clone(),
                    parts: vec![part],
                });
                rest
            } else {
                let rest = cut(&mut part, room);
                let last = runs.last_mut().expect("it has room");
                last.sectors.end = part.sectors.end;
                last.parts.push(part);
                rest
            };
            part = rest;
        }
    }
    runs
}

/// How many sectors of `part` the run takes, if it goes on right there.
fn room_after(run: Option<&Run>, part: &Lying, sectors_max: u64) -> u64 {
    let fits = run.filter(|it| it.slot == part.slot && it.sectors.end == part.sectors.start);
    fits.map_or(0, |it| sectors_max - (it.sectors.end - it.sectors.start))
}

/// Keeps the first sectors, and gives the rest.
fn cut(part: &mut Lying, sectors: u64) -> Lying {
    let keep = sectors.min(part.sectors.end - part.sectors.start);
    let middle = part.sectors.start + keep;
    let rest = Lying {
        slot: part.slot,
        sectors: middle..part.sectors.end,
        at: part.at + u32::try_from(keep).expect("a record is short"),
    };
    part.sectors.end = middle;
    rest
}

/// The parts of what lies there that are the newest.
#[must_use]
pub fn newest(index: &Index, lying: &Lying) -> Vec<Lying> {
    let found = index.find(lying.slot, lying.sectors.clone());
    let same = found.into_iter().filter_map(|piece| {
        let by = piece.sectors.start - lying.sectors.start;
        let here = u64::from(lying.at) + by;
        (piece.log_at().map(u64::from) == Some(here)).then_some(Lying {
            slot: lying.slot,
            at: piece.log_at()?,
            sectors: piece.sectors,
        })
    });
    same.collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeMap;

    /// What a sector of a volume holds: the number of the write that it came with.
    type Contents = BTreeMap<(u16, u64), u64>;

    struct World {
        random: u64,
        index: Index,
        /// What lies at each sector of the log.
        log: BTreeMap<u32, u64>,
        /// What was written and is not released, oldest first.
        written: Vec<Lying>,
        backing: Contents,
        newest: Contents,
        head: u32,
        stamp: u64,
    }

    impl World {
        fn below(&mut self, limit: u64) -> u64 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (self.random >> 20) % limit
        }

        fn write(&mut self) {
            let slot = u16::try_from(self.below(2)).unwrap();
            let from = self.below(300);
            let sectors = from..from + 1 + self.below(30);
            self.stamp += 1;
            for (by, sector) in (0..).zip(sectors.clone()) {
                self.log.insert(self.head + by, self.stamp);
                self.newest.insert((slot, sector), self.stamp);
            }
            let (slot, at) = (Slot(slot), self.head);
            self.head += u32::try_from(sectors.end - sectors.start).unwrap();
            self.index.put(slot, sectors.clone(), at);
            self.written.push(Lying { slot, sectors, at });
        }

        /// Every sector is read from the log or from the backing volume as it was written last.
        fn check(&self) {
            for slot in 0..2 {
                let pieces = self.index.find(Slot(slot), 0..340);
                let sectors = pieces.into_iter().flat_map(|piece| {
                    let at = piece.log_at();
                    let places = (0..).map(move |by| at.map(|at| at + by));
                    piece.sectors.zip(places)
                });
                for (sector, at) in sectors {
                    let backing = self.backing.get(&(slot, sector)).copied();
                    let read = at.map_or(backing, |at| self.log.get(&at).copied());
                    assert_eq!(read, self.newest.get(&(slot, sector)).copied());
                }
            }
        }

        /// Writes a part in the backing volume.
        fn write_part(&mut self, part: &Lying) {
            for (at, sector) in (part.at..).zip(part.sectors.clone()) {
                let data = self.log[&at];
                let before = self.backing.insert((part.slot.0, sector), data);
                assert!(before < Some(data), "the backing volume never goes back");
            }
        }

        /// Destages the oldest, with writes in between, and forgets them.
        fn destage(&mut self) {
            let count = usize::try_from(self.below(20))
                .unwrap()
                .min(self.written.len());
            let longest = 1 + self.below(40);
            let runs = runs(&self.index, &self.written[..count], longest);
            let order = |it: &Run| (it.slot, it.sectors.start);
            assert!(runs.is_sorted_by_key(order));
            for run in &runs {
                assert!(run.sectors.end - run.sectors.start <= longest);
                let mut next = run.sectors.start;
                for part in &run.parts {
                    assert_eq!((part.slot, part.sectors.start), (run.slot, next));
                    next = part.sectors.end;
                    self.write_part(part);
                }
                assert_eq!(next, run.sectors.end);
            }
            // Runs that could be one are one, unless that would be too long.
            for two in runs.windows(2) {
                let joined =
                    two[0].slot == two[1].slot && two[0].sectors.end == two[1].sectors.start;
                let length = two[0].sectors.end - two[0].sectors.start;
                assert!(!joined || length == longest);
            }
            for _ in 0..self.below(4) {
                self.write();
            }
            self.check();
            for part in runs.into_iter().flat_map(|it| it.parts) {
                self.index.settle(part.slot, part.sectors, part.at);
            }
            for gone in self.written.drain(..count) {
                for at in gone.at..gone.at + u32::try_from(gone.sectors.count()).unwrap() {
                    self.log.remove(&at);
                }
            }
            self.check();
        }
    }

    #[test]
    fn what_is_destaged_is_the_newest_and_nothing_needs_the_log_after_it() {
        for seed in 1..=60 {
            let mut world = World {
                random: seed,
                index: Index::default(),
                log: BTreeMap::new(),
                written: Vec::new(),
                backing: Contents::new(),
                newest: Contents::new(),
                head: 8,
                stamp: 0,
            };
            for _ in 0..150 {
                match world.below(3) {
                    0 => world.destage(),
                    _ => world.write(),
                }
            }
            assert!(world.stamp > 60, "something was written");
            world.check();
        }
    }

    #[test]
    fn a_run_in_pieces_is_the_same_run() {
        let lying = |sectors, at| Lying {
            slot: Slot(3),
            sectors,
            at,
        };
        let run = Run {
            slot: Slot(3),
            sectors: 5..30,
            parts: vec![lying(5..6, 90), lying(6..10, 20), lying(10..30, 40)],
        };
        let pieces = run.pieces(8);
        let ranges: Vec<Range<u64>> = pieces.iter().map(|it| it.sectors.clone()).collect();
        assert_eq!(ranges, [5..8, 8..16, 16..24, 24..30]);
        let places = |parts: &[Lying]| -> Vec<(u64, u32)> {
            let each = parts.iter().flat_map(|it| it.sectors.clone().zip(it.at..));
            each.collect()
        };
        let all: Vec<Lying> = pieces.into_iter().flat_map(|it| it.parts).collect();
        assert_eq!(places(&all), places(&run.parts));
    }

    #[test]
    fn runs_go_by_address_and_leave_out_what_is_newer_elsewhere() {
        let mut index = Index::default();
        let (a, b) = (Slot(1), Slot(2));
        let lying = |slot, sectors, at| Lying { slot, sectors, at };
        let oldest = [
            lying(a, 8..16, 100),
            lying(b, 0..8, 140),
            lying(a, 16..24, 160),
        ];
        for it in &oldest {
            index.put(it.slot, it.sectors.clone(), it.at);
        }
        index.put(a, 8..12, 190);
        let found = runs(&index, &oldest, 2048);
        assert_eq!(
            found,
            [
                Run {
                    slot: a,
                    sectors: 12..24,
                    parts: vec![lying(a, 12..16, 104), lying(a, 16..24, 160)],
                },
                Run {
                    slot: b,
                    sectors: 0..8,
                    parts: vec![lying(b, 0..8, 140)],
                },
            ]
        );
    }
}
