//! A disk that forgets, tears and loses, with a map on it.

use crate::*;
use std::collections::BTreeMap;
use units::BlockSize;

const OF: MapId = MapId([5; 16]);

/// A generator of numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// A map of three groups, its disk, and what was issued and reported.
struct World {
    random: Random,
    disk: BTreeMap<u64, Vec<u8>>,
    pending: Vec<(u64, Vec<u8>)>,
    superblock: Superblock,
    tree: Tree,
    /// Each page's newest generation, in memory.
    pages: BTreeMap<u64, Page>,
    /// What was reported as stable.
    reported: BTreeMap<u64, Page>,
    /// All that was ever handed to the disk.
    issued: BTreeMap<(u64, u64), Page>,
}

fn place(index: u64) -> PageId {
    let level = Level::Checksums;
    PageId { level, index }
}

impl World {
    fn new(seed: u64) -> Self {
        let superblock = Superblock {
            map: OF,
            volume: [1; 16],
            block_size: BlockSize::B4096,
            covers: BlockSize::B4096,
            blocks: (2 * FAN * FAN + 5) as u64,
            blank: Blank::Zeroes,
            clean: true,
            count: 0,
            regions: Box::new([0; REGIONS_MAX]),
            with_checksum: 0,
        };
        let disk = BTreeMap::from([(0, superblock.write())]);
        let tree = Tree::new(&superblock);
        Self {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            disk,
            pending: Vec::new(),
            superblock,
            tree,
            pages: BTreeMap::new(),
            reported: BTreeMap::new(),
            issued: BTreeMap::new(),
        }
    }

    fn slots(&self, at: u64) -> [Vec<u8>; 2] {
        [at, at + PAGE as u64].map(|at| self.disk.get(&at).cloned().unwrap_or(vec![0; PAGE]))
    }

    fn judge(&self, index: u64) -> Result<Found, Unfit> {
        let recorded = self.tree.recorded(place(index));
        if recorded.is_absent() {
            return Ok(Found::Absent);
        }
        let [first, second] = self.slots(place(index).pair_at());
        judge(recorded, place(index), OF, [&first, &second])
    }

    fn superblock(&mut self, clean: bool) {
        self.superblock.count += 1;
        self.superblock.clean = clean;
        self.superblock.regions = self.tree.roots();
        let at = SUPERBLOCKS_AT[self.superblock.slot()];
        self.pending.push((at, self.superblock.write()));
    }

    /// Everything handed over is stable.
    fn sync(&mut self) {
        for (at, bytes) in std::mem::take(&mut self.pending) {
            self.disk.insert(at, bytes);
        }
    }

    /// One round: some pages, perhaps what stands above, and a sync, unless the power fails first.
    fn round(&mut self, above: bool, sync: bool) {
        let mut written = Vec::new();
        for _ in 0..self.random.below(4) {
            let index = [0, 1, 700, FAN as u64, 2 * FAN as u64]
                [usize::try_from(self.random.below(5)).unwrap()];
            if written.contains(&index) {
                continue;
            }
            let fresh = || Page {
                level: Level::Checksums,
                index,
                generation: Generation(0),
                entries: Box::new([0; FAN]),
            };
            let mut page = self.pages.get(&index).cloned().unwrap_or_else(fresh);
            page.generation = page.generation.next();
            page.entries[7] = u32::try_from(self.random.below(1 << 30)).unwrap();
            self.pending
                .push((place(index).at(page.generation), page.write(OF)));
            self.issued.insert((index, page.generation.0), page.clone());
            self.pages.insert(index, page);
            written.push(index);
        }
        let nodes = if above {
            self.tree.to_write()
        } else {
            Vec::new()
        };
        let of_nodes = nodes.iter().map(|node| (node.at, node.bytes.clone()));
        self.pending.extend(of_nodes);
        if above && self.tree.roots_to_write().is_some() {
            self.superblock(false);
        }
        if !sync {
            return;
        }
        self.sync();
        for index in written {
            let page = &self.pages[&index];
            self.tree.stable(index, page.generation);
            self.reported.insert(index, page.clone());
        }
        for node in nodes {
            self.tree.node_stable(node.place, node.generation);
        }
    }

    fn crash(&mut self) {
        for (at, bytes) in std::mem::take(&mut self.pending) {
            let old = self.disk.get(&at).cloned().unwrap_or(vec![0; PAGE]);
            let kept: Vec<u8> = match self.random.below(3) {
                0 => continue,
                1 => bytes,
                _ => (bytes.chunks(512).zip(old.chunks(512)))
                    .flat_map(|(new, old)| if self.random.below(2) == 0 { new } else { old })
                    .copied()
                    .collect(),
            };
            self.disk.insert(at, kept);
        }
    }

    /// Opens the map; gives the pages above that could not be used.
    fn open(&mut self) -> Vec<Unfit> {
        let [first, second] = self.slots(0);
        self.superblock = Superblock::newest([&first, &second]).unwrap();
        self.tree = Tree::new(&self.superblock);
        let mut unfit = Vec::new();
        for node in self.tree.nodes() {
            let [first, second] = self.slots(node.pair_at());
            unfit.extend(self.tree.load(node, [&first, &second]).err());
        }
        unfit
    }

    /// What is found is what was reported, or was issued later.
    fn inspect(&mut self) {
        self.pages.clear();
        for index in [0, 1, 700, FAN as u64, 2 * FAN as u64] {
            let reported = self
                .reported
                .get(&index)
                .map_or(Generation(0), |page| page.generation);
            match self.judge(index).unwrap() {
                Found::Page(page) => {
                    assert!(
                        page.generation >= reported,
                        "{index}: {reported:?} was reported"
                    );
                    assert_eq!(self.issued[&(index, page.generation.0)], page);
                    self.tree.stable(index, page.generation);
                    self.reported.insert(index, page.clone());
                    self.pages.insert(index, page);
                }
                Found::Absent => assert_eq!(reported, Generation(0), "{index} was reported"),
            }
        }
        self.superblock(false);
        self.sync();
    }

    fn close(&mut self) {
        while !self.tree.is_settled() {
            let nodes = self.tree.to_write();
            self.pending
                .extend(nodes.iter().map(|node| (node.at, node.bytes.clone())));
            self.sync();
            for node in nodes {
                self.tree.node_stable(node.place, node.generation);
            }
            self.tree.roots_to_write();
        }
        self.superblock(true);
        self.sync();
    }
}

#[test]
fn a_crash_leaves_each_page_as_it_was_reported_or_later() {
    let mut crashes = 0;
    for seed in 0..600 {
        let mut world = World::new(seed);
        world.superblock(false);
        world.sync();
        for _ in 0..6 {
            for _ in 0..world.random.below(12) {
                let above = world.random.below(3) == 0;
                world.round(above, true);
            }
            world.round(true, false);
            world.crash();
            crashes += 1;
            assert_eq!(world.open(), []);
            world.inspect();
        }
        world.close();
        assert_eq!(world.open(), []);
        assert!(world.superblock.clean);
        world.inspect();
    }
    println!("{crashes} crashes");
}

#[test]
fn a_lost_write_of_a_page_is_known_by_the_page_above() {
    let (mut closed, mut crashed, mut above) = (0, 0, 0);
    for seed in 0..300 {
        let mut world = World::new(seed);
        world.superblock(false);
        world.sync();
        for _ in 0..20 {
            world.round(true, true);
        }
        // Whatever stood there before is there again: zeroes, or the version before the last.
        let lost: Vec<u64> = world.reported.keys().copied().collect();
        let index = lost[usize::try_from(world.random.below(lost.len() as u64)).unwrap()];
        let page = world.reported[&index].clone();
        let lose = |world: &mut World, place: PageId, generation: Generation| {
            world.disk.insert(place.at(generation), vec![0; PAGE]);
        };
        // Known at once while the map is open ...
        let kept = world.disk.clone();
        lose(&mut world, place(index), page.generation);
        assert!(world.judge(index).is_err(), "while open");
        world.disk = kept;
        // ... after a crash once the pages above had their turn ...
        for _ in 0..3 {
            let nodes = world.tree.to_write();
            world
                .pending
                .extend(nodes.iter().map(|node| (node.at, node.bytes.clone())));
            world.sync();
            nodes
                .iter()
                .for_each(|node| world.tree.node_stable(node.place, node.generation));
        }
        world.superblock(false);
        world.sync();
        let kept = world.disk.clone();
        lose(&mut world, place(index), page.generation);
        assert_eq!(world.open(), []);
        assert!(world.judge(index).is_err(), "after a crash");
        crashed += 1;
        // ... and after a stop, as is a page above.
        world.disk = kept;
        assert_eq!(world.open(), []);
        world.close();
        let kept = world.disk.clone();
        lose(&mut world, place(index), page.generation);
        assert_eq!(world.open(), []);
        assert!(world.judge(index).is_err(), "after a stop");
        closed += 1;
        world.disk = kept;
        let (Some(group), _) = place(index).above() else {
            panic!("a page has one above")
        };
        for slot in [Generation(2), Generation(1)] {
            let at = group.at(slot);
            let kept = world.disk.insert(at, vec![0; PAGE]);
            above += world.open().len();
            world.disk.extend(kept.map(|bytes| (at, bytes)));
        }
    }
    assert_eq!(above, 300, "the place that counts, and not the other one");
    println!(
        "lost pages found: {closed} after a stop, {crashed} after a crash, {above} pages above"
    );
}
