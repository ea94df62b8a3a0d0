//! A history on a file that tears and forgets, against a list of all that was marked.

use super::*;
use crate::layout::JournalId;
use std::collections::BTreeMap;

const PARTS_MAX: u64 = 3 * PARTS as u64;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

const fn id(ring: u32) -> HistoryId {
    HistoryId {
        journal: JournalId([3; 16]),
        volume: VolumeId(77),
        ring,
        rings: 2,
    }
}

/// A file, and what was marked: those that a crash must bring back are in the log besides.
struct World {
    random: Random,
    file: Vec<u8>,
    history: History,
    /// After which cut a part changed last.
    model: BTreeMap<u64, u64>,
    /// Marks and cuts whose records are still in the log.
    log: Vec<(u64, Option<u64>)>,
    next: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            file: Vec::new(),
            history: History::open(id(1), &vec![0; 4 * BLOCK], 1000).unwrap(),
            model: BTreeMap::new(),
            log: Vec::new(),
            next: 0,
        }
    }

    fn bytes(&self, (at, len): (u64, usize)) -> Vec<u8> {
        let at = usize::try_from(at).unwrap();
        let mut bytes = vec![0; len];
        let have = self.file.len().saturating_sub(at).min(len);
        if have > 0 {
            bytes[..have].copy_from_slice(&self.file[at..at + have]);
        }
        bytes
    }

    fn put(&mut self, write: &HistoryWrite, sectors: impl Fn(usize) -> bool) {
        let at = usize::try_from(write.at).unwrap();
        if self.file.len() < at + write.bytes.len() {
            self.file.resize(at + write.bytes.len(), 0);
        }
        for (sector, part) in write.bytes.chunks(512).enumerate() {
            if sectors(sector) {
                self.file[at + sector * 512..][..512].copy_from_slice(part);
            }
        }
    }

    fn mark(&mut self) {
        let part = self.random.below(PARTS_MAX);
        let cut = self.history.cut();
        let start = part * PART_BYTES + self.random.below(PART_BYTES / 512) * 512;
        self.history.mark(&(start..start + 512), cut);
        self.model.insert(part, cut);
        self.log.push((self.next, Some(part)));
        self.next += 1;
    }

    fn cut(&mut self) {
        let cut = self.history.cut() + 1;
        self.history.begin_cut(cut, Sequence(self.next));
        self.log.push((self.next, None));
        self.next += 1;
    }

    /// Writes what differs, of which all, a part, or nothing arrives; `true`: it is stable, and the
    /// log may forget.
    fn save(&mut self) -> bool {
        for page in self.history.unknown(None) {
            let bytes = self.bytes(self.history.page_at(page));
            self.history.fill(page, &bytes).unwrap();
        }
        let writes = self.history.writes(Sequence(self.next));
        let fate = self.random.below(6);
        for write in &writes {
            let seed = self.random.below(u64::MAX);
            match fate {
                0 => self.put(write, |sector| seed >> (sector % 60) & 1 == 1),
                1 if seed & 1 == 0 => {}
                _ => self.put(write, |_| true),
            }
        }
        self.history.written(fate > 1);
        if fate > 1 {
            self.log.clear();
        }
        fate > 1
    }

    /// What is in memory is gone: it is read again, and gets what the log still has.
    fn crash(&mut self) {
        let bytes = self.bytes(History::header_at(1));
        self.history = History::open(id(1), &bytes, 1000).unwrap();
        for (sequence, part) in self.log.clone() {
            match part {
                None => {
                    let cut = self.history.cut_of(Sequence(sequence)) + 1;
                    self.history.begin_cut(cut, Sequence(sequence));
                }
                Some(part) => {
                    let cut = self.history.cut_of(Sequence(sequence));
                    self.history
                        .mark(&(part * PART_BYTES..part * PART_BYTES + 1), cut);
                }
            }
        }
        assert!(self.history.next().0 <= self.next);
        assert!(
            self.history.next().0 + self.log.len() as u64 >= self.next,
            "no number is given twice"
        );
    }

    fn changed(&mut self, cut: u64) -> Vec<u64> {
        let all = 0..PARTS_MAX * PART_BYTES;
        for page in self.history.unknown(Some(all.clone())) {
            let bytes = self.bytes(self.history.page_at(page));
            self.history.fill(page, &bytes).unwrap();
        }
        let ranges = self.history.changed_since(cut, &all);
        assert!(ranges.windows(2).all(|two| two[0].end < two[1].start));
        let parts = ranges
            .into_iter()
            .flat_map(|it| it.start / PART_BYTES..it.end / PART_BYTES);
        parts.collect()
    }
}

#[test]
fn what_changed_since_a_cut_is_reported_after_every_crash_and_numbers_go_on() {
    let (mut crashes, mut exact, mut asked) = (0, 0, 0);
    for seed in 1..=40_u64 {
        let mut world = World::new(seed);
        let mut torn = false;
        for _ in 0..400 {
            match world.random.below(12) {
                0 => world.cut(),
                1 => {
                    torn |= !world.save();
                }
                2 => {
                    world.crash();
                    crashes += 1;
                }
                3 => {
                    let newest = world.history.cut();
                    let since = 1000 + world.random.below(newest - 1000 + 1);
                    let reported = world.changed(since);
                    let wanted: Vec<u64> = world
                        .model
                        .iter()
                        .filter(|(_, cut)| **cut >= since)
                        .map(|(part, _)| *part)
                        .collect();
                    assert!(
                        wanted.iter().all(|it| reported.contains(it)),
                        "nothing is left out"
                    );
                    assert!(
                        torn || reported == wanted,
                        "and nothing is added without a reason"
                    );
                    exact += u64::from(reported == wanted);
                    asked += 1;
                }
                _ => world.mark(),
            }
        }
    }
    assert!(
        crashes > 500 && asked > 500 && exact > asked / 4,
        "{crashes} {exact} of {asked}"
    );
}

#[test]
fn many_cuts_are_kept_apart_as_far_as_a_page_can_and_never_report_too_little() {
    let mut history = History::open(id(0), &vec![0; 4 * BLOCK], 5).unwrap();
    for cut in 6..=1005 {
        history.mark(&((cut - 6) * PART_BYTES..(cut - 5) * PART_BYTES), cut - 1);
        history.begin_cut(cut, Sequence(cut));
    }
    assert_eq!(history.cuts().count(), CUTS_KEPT);
    let all = 0..1000 * PART_BYTES;
    for page in history.unknown(Some(all.clone())) {
        history.fill(page, &vec![0; 2 * BLOCK]).unwrap();
    }
    let count = |since| -> u64 {
        let ranges = history.changed_since(since, &all).into_iter();
        ranges.map(|it| (it.end - it.start) / PART_BYTES).sum()
    };
    assert_eq!((count(1005), count(1004), count(905)), (0, 1, 100));
    assert_eq!(count(500), 1000, "older ones are not distinguished");
    assert_eq!(
        (count(4), count(1006)),
        (1000, 1000),
        "nothing is known of these"
    );
}

/// One ring's history may be years older than another's, whose cuts are its cuts as well.
#[test]
fn a_cut_of_any_number_is_reported_after_another_opening() {
    for far in [1, 255, u64::from(u32::MAX) - 1, 1 << 32, 1 << 45] {
        let mut world = World::new(9);
        world.history.mark(&(0..1), 1000);
        world.history.begin_cut(1000 + far, Sequence(1));
        world
            .history
            .mark(&(PART_BYTES..PART_BYTES + 1), 1000 + far);
        while !world.save() {}
        world.crash();
        assert_eq!(world.changed(1000 + far), [1], "{far}");
        assert_eq!(world.changed(1000), [0, 1], "{far}");
    }
}

#[test]
fn a_flipped_bit_makes_parts_count_as_changed_and_no_number_go_back() {
    for seed in 1..=300_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut file = vec![0; 40 * BLOCK];
        let mut history = History::open(id(0), &file[..4 * BLOCK], 10).unwrap();
        for round in 0..3 {
            history.mark(
                &(round * PART_BYTES..(round + 1) * PART_BYTES),
                history.cut(),
            );
            for page in history.unknown(None) {
                let at = usize::try_from(history.page_at(page).0).unwrap();
                history.fill(page, &file[at..at + 2 * BLOCK]).unwrap();
            }
            for write in history.writes(Sequence(round + 1)) {
                let at = usize::try_from(write.at).unwrap();
                file[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
            }
            history.written(true);
            let cut = history.cut() + 1;
            history.begin_cut(cut, Sequence(100 + round));
        }
        for write in history.writes(Sequence(3)) {
            let at = usize::try_from(write.at).unwrap();
            file[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        let at = history.page_at(0).0 + 2 * BLOCK as u64;
        let hit = usize::try_from(random.below(at)).unwrap();
        file[hit] ^= 1 << random.below(8);
        let mut again = History::open(id(0), &file[..4 * BLOCK], 10).unwrap();
        assert_eq!((again.next(), again.cut()), (Sequence(3), 13));
        let (at, len) = again.page_at(0);
        let at = usize::try_from(at).unwrap();
        again.fill(0, &file[at..at + len]).unwrap();
        for (since, wanted) in [(10, 0..3), (11, 1..3), (12, 2..3)] {
            let reported = again.changed_since(since, &(0..PART_BYTES * 3));
            let parts = if hit >= at { 0..3 } else { wanted };
            let bytes = parts.start * PART_BYTES..parts.end * PART_BYTES;
            assert_eq!(reported, vec![bytes]);
        }
    }
}

/// What a scrub says of it: the header and pages that are lost.
fn lost(world: &World) -> usize {
    let header = world.bytes(History::header_at(1));
    let pages = (0..3).filter(|page| {
        let both = world.bytes(world.history.page_at(*page));
        world.history.has_lost_page(*page, &both)
    });
    pages.count() + usize::from(world.history.has_lost_header(&header))
}

#[test]
fn a_scrub_misses_what_was_written_last_and_nothing_that_a_crash_has_torn() {
    let (mut missed, mut harmless) = (0, 0);
    for seed in 1..=400 {
        let mut world = World::new(seed);
        for _ in 0..world.random.below(60) {
            match world.random.below(12) {
                0 => world.crash(),
                1 => world.cut(),
                2 => {
                    world.save();
                }
                _ => world.mark(),
            }
            assert_eq!(lost(&world), 0, "{seed}");
        }
        while !world.save() {}
        // Every place by itself: the other one of both is older, and no substitute.
        let headers = [0, 2].map(|block| (block, 2));
        let page = |page| usize::try_from(world.history.page_at(page).0).unwrap() / BLOCK;
        let pages: Vec<usize> = (0..3).flat_map(|it| [page(it), page(it) + 1]).collect();
        let first = usize::try_from(History::header_at(1).0).unwrap() / BLOCK;
        let headers = headers.map(|(block, blocks)| (first + block, blocks));
        let places = headers
            .into_iter()
            .chain(pages.into_iter().map(|at| (at, 1)));
        for (block, blocks) in places {
            let held = world.file.clone();
            let range = block * BLOCK..((block + blocks) * BLOCK).min(held.len());
            if range.is_empty() || held[range.clone()].iter().all(|&byte| byte == 0) {
                continue;
            }
            for at in range.step_by(BLOCK) {
                world.file[at + 100] ^= 1;
            }
            match lost(&world) {
                0 => harmless += 1,
                1 => missed += 1,
                more => panic!("{seed}: {more}"),
            }
            world.file = held;
        }
    }
    assert!(missed > 400 && harmless > 400, "{missed}, {harmless}");
}

/// The same block, written by a later version of the program.
fn later(block: &mut [u8]) {
    block[12] = 9;
    formats::seal(block);
}

#[test]
fn a_history_of_a_later_version_is_refused_by_name_and_never_begun_anew_over_it() {
    const OF_HEADER: Damage = Damage::Version { found: 9, read: 2 };
    const VERSION: Damage = Damage::Version { found: 9, read: 1 };
    let mut world = World::new(9);
    // Both places of header and page have something.
    for part in 0..2 {
        let start = part * PART_BYTES;
        world.history.mark(&(start..start + 1), 1000);
        world.next += 1;
        while !world.save() {}
    }
    let header = world.bytes(History::header_at(1));
    let page = world.bytes(world.history.page_at(0));
    let opened = || History::open(id(1), &header, 1000).unwrap();
    for place in header.chunks(BLOCK).enumerate().map(|it| it.0 * BLOCK) {
        let mut header = header.clone();
        later(&mut header[place..place + BLOCK]);
        let later = History::open(id(1), &header, 1000);
        assert_eq!(later, Err(OF_HEADER), "{place}");
        header[place + 500] ^= 1;
        let torn = History::open(id(1), &header, 1000);
        assert_eq!(torn.map(|it| it.cut()), Ok(1000), "its checksum is wrong");
    }
    for place in [0, BLOCK] {
        let mut page = page.clone();
        later(&mut page[place..place + BLOCK]);
        let mut history = opened();
        assert_eq!(history.fill(0, &page), Err(VERSION), "{place}");
        history.mark(&(0..1), 1000);
        assert_eq!(
            history.unknown(None),
            [0],
            "it is read before it is written"
        );
        page[place + 500] ^= 1;
        assert_eq!(history.fill(0, &page), Ok(()), "its checksum is wrong");
        assert_eq!(history.unknown(None), []);
    }
}

/// A file of one ring, in which a history was saved so many times: each round marks its own part,
/// and begins a cut.
fn saved(id: HistoryId, file: &mut Vec<u8>, first: u64, rounds: u64) -> History {
    let (at, len) = History::header_at(id.ring);
    let at = usize::try_from(at).unwrap();
    file.resize(40 * BLOCK, 0);
    let mut history = History::open(id, &file[at..at + len], first).unwrap();
    for round in 0..rounds {
        let cut = history.cut();
        history.mark(&(round * PART_BYTES..(round + 1) * PART_BYTES), cut);
        history.begin_cut(cut + 1, Sequence(round));
        for page in history.unknown(None) {
            let (at, len) = history.page_at(page);
            let at = usize::try_from(at).unwrap();
            history.fill(page, &file[at..at + len]).unwrap();
        }
        for write in history.writes(Sequence(round + 1)) {
            let at = usize::try_from(write.at).unwrap();
            file[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        history.written(true);
    }
    history
}

fn opened(id: HistoryId, file: &[u8]) -> History {
    let (at, len) = History::header_at(id.ring);
    let at = usize::try_from(at).unwrap();
    let mut history = History::open(id, &file[at..at + len], 1 << 30).unwrap();
    let (at, len) = history.page_at(0);
    let at = usize::try_from(at).unwrap();
    history.fill(0, &file[at..at + len]).unwrap();
    history
}

#[test]
fn what_follows_another_journals_history_is_found_by_the_next_opening() {
    let mut file = Vec::new();
    let _ = saved(id(1), &mut file, 10, 7);
    let new = HistoryId {
        journal: JournalId([4; 16]),
        ..id(1)
    };
    let history = saved(new, &mut file, 10, 1);
    let again = opened(new, &file);
    assert_eq!((again.next(), again.cut()), (Sequence(1), history.cut()));
}

#[test]
fn a_header_of_another_ring_that_went_astray_is_not_followed() {
    let mut file = Vec::new();
    let history = saved(id(1), &mut file, 10, 3);
    let _ = saved(id(0), &mut file, 10, 8);
    file.copy_within(0..BLOCK, 4 * BLOCK);
    let again = opened(id(1), &file);
    assert_eq!((again.next(), again.cut()), (Sequence(3), history.cut()));
}

#[test]
fn a_place_of_a_page_that_is_lost_or_is_the_other_one_counts_as_changed() {
    let mut file = Vec::new();
    let history = saved(id(1), &mut file, 10, 4);
    let at = usize::try_from(history.page_at(0).0).unwrap();
    let bytes = 0..1000 * PART_BYTES;
    assert_eq!(opened(id(1), &file).changed_since(13, &bytes).len(), 1);
    // The fourth one is at the first place.
    let mut lost = file.clone();
    lost[at..at + BLOCK].fill(0);
    let mut astray = file;
    astray.copy_within(at + BLOCK..at + 2 * BLOCK, at);
    for file in [lost, astray] {
        let reported = opened(id(1), &file).changed_since(13, &bytes);
        assert_eq!(reported, vec![bytes.clone()]);
    }
}

#[test]
fn what_a_failed_sync_left_in_a_cache_is_written_again_with_what_follows_it() {
    let (mut cached, mut disk) = (Vec::new(), vec![0; 40 * BLOCK]);
    // The sync of the first version fails, and the process dies: the next one reads the cache.
    let _ = saved(id(1), &mut cached, 10, 1);
    let mut history = opened(id(1), &cached);
    history.mark(&(PART_BYTES..2 * PART_BYTES), 11);
    let mut writes = history.writes(Sequence(2));
    for page in history.unsure() {
        let (at, len) = history.page_at(page);
        let at = usize::try_from(at).unwrap();
        writes.extend(history.page_again(page, &cached[at..at + len]));
    }
    history.written(true);
    // The power fails: there is what was written since.
    for write in &writes {
        let at = usize::try_from(write.at).unwrap();
        disk[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    let reported = opened(id(1), &disk).changed_since(11, &(0..1000 * PART_BYTES));
    assert_eq!(reported, vec![PART_BYTES..2 * PART_BYTES]);
    // Nothing is written again once it is known to be stable.
    history.mark(&(0..PART_BYTES), 11);
    assert!(!history.writes(Sequence(3)).is_empty());
    assert_eq!(history.unsure(), Vec::<usize>::new());
}

#[test]
fn numbers_that_nobody_can_have_counted_to_are_not_gone_on_with() {
    let mut file = Vec::new();
    let _ = saved(id(1), &mut file, 10, 3);
    let first = 4 * BLOCK;
    for (at, far) in [(48, u64::MAX), (56, u64::MAX), (64, u64::MAX), (72, 0)] {
        let mut forged = file.clone();
        for block in forged[first..first + 4 * BLOCK].chunks_mut(BLOCK) {
            block[at..at + 8].copy_from_slice(&far.to_le_bytes());
            formats::seal(block);
        }
        let mut history = opened(id(1), &forged);
        let cut = history.cut() + 1;
        history.begin_cut(cut, Sequence(0));
        assert_eq!(history.cut_of(Sequence(1)), cut);
        assert!(!history.writes(Sequence(1)).is_empty());
    }
}

#[test]
fn what_a_history_takes_in_memory_is_bounded_by_the_size_of_its_volume() {
    const TIB: u64 = 1 << 40;
    let mut history = History::open(id(0), &vec![0; 4 * BLOCK], 5).unwrap();
    assert_eq!(history.bytes(), 0);
    for page in 0..TIB.div_ceil(PARTS as u64 * PART_BYTES) {
        let at = page * PARTS as u64 * PART_BYTES;
        history.mark(&(at..at + 1), 5);
    }
    // As `docs/performance.md` has it.
    let mib = history.bytes() as f64 / f64::from(1 << 20);
    assert!((16.0..16.25).contains(&mib), "{mib} MiB for each TiB");
}

/// A header that was written before there were epochs is read, and one without an epoch is written
/// as those were.
#[test]
fn the_newest_epoch_survives_every_crash_with_the_cuts_and_volumes_without_one_write_version_1() {
    let (mut kept, mut torn) = (0, 0);
    for seed in 1..=60 {
        let mut world = World::new(seed);
        let version = |world: &World| {
            let header = world.bytes(History::header_at(1));
            let newest = header.chunks(BLOCK).map(|it| it[12]).max();
            newest.unwrap()
        };
        world.cut();
        while !world.save() {}
        assert_eq!((version(&world), world.history.epoch()), (1, None));
        // What is stable, and what was asked for since.
        let (mut stable, mut asked, mut cuts) = (None, Vec::new(), 0);
        for epoch in 1..60 {
            match world.random.below(5) {
                0 => world.cut(),
                1 if world.save() => {
                    (stable, cuts) = (world.history.epoch(), world.history.cut());
                    asked.clear();
                }
                1 => torn += 1,
                2 => {
                    world.crash();
                    let found = world.history.epoch();
                    assert!(found == stable || asked.contains(&found), "{found:?}");
                    assert!(world.history.cut() >= cuts);
                    kept += u64::from(found.is_some());
                    stable = found;
                    // What is found may be written before a crash, and read again after it.
                    asked.clear();
                }
                _ => {
                    let first = Sequence(world.next);
                    let newest = Epoch { epoch, first };
                    world.history.begin_epoch(newest);
                    asked.push(Some(newest));
                    let older = Epoch {
                        epoch: epoch - 1,
                        first,
                    };
                    world.history.begin_epoch(older);
                    assert_eq!(world.history.epoch(), Some(newest), "an older one is none");
                }
            }
        }
        while !world.save() {}
        let wanted = if world.history.epoch().is_some() {
            2
        } else {
            1
        };
        assert_eq!(version(&world), wanted);
    }
    assert!(kept > 200 && torn > 100, "{kept}, {torn}");
}
