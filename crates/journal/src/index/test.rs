use super::*;

/// Where each sector of two volumes lies.
type Model = BTreeMap<(u16, u64), Source>;

/// Where the sector so many after the first one is.
fn behind(source: Source, offset: u32) -> Source {
    match source {
        Source::Log(at) => Source::Log(at + offset),
        Source::Backing | Source::Zeroes(_) | Source::Lost => source,
    }
}

fn is_bare(source: &Source) -> bool {
    matches!(source, Source::Zeroes(_) | Source::Lost)
}

fn found_in(index: &Index, slot: u16, sectors: Range<u64>) -> Vec<(u64, Source)> {
    let mut all = Vec::new();
    let found = index.find(Slot(slot), sectors.clone());
    assert!(
        found
            .windows(2)
            .all(|two| two[0].sectors.end == two[1].sectors.start),
        "no gap"
    );
    for piece in found {
        for (offset, sector) in (0..).zip(piece.sectors) {
            all.push((sector, behind(piece.source, offset)));
        }
    }
    assert!(all.iter().map(|(sector, _)| *sector).eq(sectors));
    all
}

/// What [`Index::settle`] does.
fn forget(model: &mut Model, slot: u16, sectors: Range<u64>, at: u32) {
    for (offset, sector) in (0..).zip(sectors) {
        if model.get(&(slot, sector)) == Some(&Source::Log(at + offset)) {
            model.remove(&(slot, sector));
        }
    }
}

struct World {
    random: u64,
    index: Index,
    model: Model,
    /// Where the next data lies.
    log: u32,
    puts: Vec<(u16, Range<u64>, u32)>,
    /// Changes without data, and which of them a sector is by.
    bare: Vec<(u16, Range<u64>, Sequence)>,
    makers: BTreeMap<(u16, u64), Sequence>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            index: Index::default(),
            model: Model::new(),
            log: 8,
            puts: Vec::new(),
            bare: Vec::new(),
            makers: BTreeMap::new(),
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % limit
    }

    fn one_of(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap()
    }

    fn step(&mut self) {
        let slot = u16::try_from(self.below(2)).unwrap();
        // Whole pages, or any sectors, of a small volume.
        let whole = self.below(2) == 0;
        let unit = if whole { 8 } else { 1 };
        let from = self.below(400 / unit) * unit;
        let range = from..from + (1 + self.below(40 / unit)) * unit;
        match self.below(10) {
            8 => self.relocate(),
            9 if self.below(20) == 0 => self.damage(slot),
            0 => {
                let range = match self.below(10) {
                    0 => range.start..range.start + 4000,
                    _ => range,
                };
                self.index.remove(Slot(slot), range.clone());
                self.model
                    .retain(|(of, sector), _| *of != slot || !range.contains(sector));
            }
            1 if !self.puts.is_empty() => self.settle(),
            2 => self.make_bare(slot, range),
            3 if !self.bare.is_empty() => self.settle_bare(),
            _ => self.put(slot, range),
        }
    }

    fn put(&mut self, slot: u16, range: Range<u64>) {
        self.index.put(Slot(slot), range.clone(), self.log);
        for (at, sector) in (self.log..).zip(range.clone()) {
            self.model.insert((slot, sector), Source::Log(at));
        }
        self.puts.push((slot, range.clone(), self.log));
        self.log += u32::try_from(range.end - range.start).unwrap() + 8;
    }

    fn settle(&mut self) {
        let which = self.one_of(self.puts.len());
        let (slot, range, at) = self.puts.swap_remove(which);
        self.index.settle(Slot(slot), range.clone(), at);
        forget(&mut self.model, slot, range, at);
    }

    fn relocate(&mut self) {
        if self.puts.is_empty() {
            return;
        }
        let which = self.one_of(self.puts.len());
        let (slot, range, at) = self.puts[which].clone();
        let to = self.log;
        self.index.relocate(Slot(slot), range.clone(), at, to);
        for (offset, sector) in (0..).zip(range.clone()) {
            if let Some(source) = self.model.get_mut(&(slot, sector))
                && *source == Source::Log(at + offset)
            {
                *source = Source::Log(to + offset);
            }
        }
        self.log += u32::try_from(range.end - range.start).unwrap() + 8;
        self.puts[which].2 = to;
    }

    /// A segment of the log is damaged, or a volume is gone.
    fn damage(&mut self, slot: u16) {
        if self.below(2) == 0 {
            self.index.forget(Slot(slot));
            self.model.retain(|(of, _), _| *of != slot);
            return;
        }
        let from = u32::try_from(self.below(u64::from(self.log))).unwrap();
        let (lying, by) = (from..from + 60, Sequence(1 << 40));
        let lost = self.index.lose_at(&lying, |_| by);
        let mut found_in: Vec<(u16, u64)> = Vec::new();
        for (of, sectors) in lost {
            found_in.extend(sectors.map(|sector| (of.0, sector)));
        }
        let lies = |source: &Source| matches!(source, Source::Log(at) if lying.contains(at));
        let model = self.model.iter_mut();
        let hit = model
            .filter(|(_, source)| lies(source))
            .map(|(of, source)| {
                *source = Source::Lost;
                self.makers.insert(*of, by);
                *of
            });
        assert!(hit.eq(found_in), "what lay there, and nothing else");
    }

    fn make_bare(&mut self, slot: u16, range: Range<u64>) {
        let by = Sequence(self.bare.len() as u64);
        let source = if self.below(4) == 0 {
            self.index.lose(Slot(slot), range.clone(), by);
            Source::Lost
        } else {
            self.index.zero(Slot(slot), range.clone(), by, Kind::Anchor);
            Source::Zeroes(Kind::Anchor)
        };
        for sector in range.clone() {
            self.model.insert((slot, sector), source);
            self.makers.insert((slot, sector), by);
        }
        self.bare.push((slot, range, by));
    }

    fn settle_bare(&mut self) {
        let which = self.one_of(self.bare.len());
        let (slot, range, by) = self.bare[which].clone();
        let still = |sector: &u64| {
            let of = (slot, *sector);
            self.model.get(&of).is_some_and(is_bare) && self.makers[&of] == by
        };
        let wanted: Vec<u64> = range.clone().filter(still).collect();
        let left = self.index.bare(Slot(slot), range.clone(), by);
        assert!(left.into_iter().flatten().eq(wanted.iter().copied()));
        self.index.settle_bare(Slot(slot), range, by);
        self.model
            .retain(|(of, sector), _| *of != slot || !wanted.contains(sector));
    }

    fn check(&mut self) {
        let slot = u16::try_from(self.below(2)).unwrap();
        let from = self.below(420);
        let asked = match self.below(8) {
            // Far more than there is of anything.
            0 => from..from + 4000,
            _ => from..from + 1 + self.below(60),
        };
        let found = found_in(&self.index, slot, asked.clone());
        for (sector, source) in &found {
            let wanted = self.model.get(&(slot, *sector)).copied();
            assert_eq!(*source, wanted.unwrap_or(Source::Backing), "{sector}");
        }
        let clear = found.iter().all(|(_, source)| *source == Source::Backing);
        assert_eq!(self.index.is_clear(Slot(slot), asked.clone()), clear);
        let few = self.index.with_few_bare(Slot(slot), asked.clone(), 3);
        assert!(few.start == asked.start && few.end > few.start && few.end <= asked.end);
        assert!(self.index.bare_in(Slot(slot), &few).count() <= 3);
        let one_more = few.start..few.end + 1;
        let more = self.index.bare_in(Slot(slot), &one_more).count();
        assert!(few == asked || more == 4, "as many as may be");
    }
}

#[test]
fn every_sector_is_found_where_it_was_put_last() {
    for seed in 1..=40_u64 {
        let mut world = World::new(seed);
        for _ in 0..1500 {
            world.step();
            world.check();
        }
        let data = world.model.iter();
        let data = data.filter(|(_, source)| !is_bare(source));
        let pages: std::collections::BTreeSet<(u16, u64)> = data
            .map(|((slot, sector), _)| (*slot, sector / 8))
            .collect();
        let mut index = world.index;
        assert_eq!(index.pages(), pages.len());
        for of in 0..2 {
            let wanted = pages.iter().filter(|(slot, _)| *slot == of).count();
            assert_eq!(index.pages_of(Slot(of)) as usize, wanted);
        }
        index.remove(Slot(0), 0..500);
        index.remove(Slot(1), 0..500);
        assert_eq!((index.pages(), index.fragments()), (0, 0));
        assert!(index.is_clear(Slot(0), 0..500) && index.is_clear(Slot(1), 0..500));
    }
}

#[test]
fn a_range_far_larger_than_the_log_takes_no_longer_than_the_log() {
    let mut index = Index::default();
    let (slot, all) = (Slot(3), 0..1_u64 << 50);
    for page in [1_u64, 1 << 20, 1 << 40] {
        index.put(slot, page * 8..page * 8 + 8, 800);
    }
    // Page by page each of these would take years.
    assert_eq!(index.find(slot, all.clone()).len(), 7);
    assert_eq!(index.find(Slot(4), all.clone()).len(), 1);
    assert!(!index.is_clear(slot, all.clone()) && index.is_clear(Slot(4), all.clone()));
    index.zero(slot, 8..1 << 49, Sequence(9), Kind::Deallocate);
    assert_eq!(index.find(slot, all.clone()).len(), 3);
    index.remove(slot, all.clone());
    assert!(index.is_clear(slot, all));
    assert_eq!(index.pages(), 0);
}

#[test]
fn what_lies_together_is_reported_as_one_piece() {
    let mut index = Index::default();
    let slot = Slot(7);
    index.put(slot, 16..528, 1000);
    assert_eq!(
        index.find(slot, 0..600),
        [
            Piece {
                sectors: 0..16,
                source: Source::Backing
            },
            Piece {
                sectors: 16..528,
                source: Source::Log(1000)
            },
            Piece {
                sectors: 528..600,
                source: Source::Backing
            },
        ]
    );
    index.put(slot, 100..101, 3000);
    let found = index.find(slot, 16..528);
    let places: Vec<(u64, Option<u32>)> = found
        .iter()
        .map(|it| (it.sectors.start, it.log_at()))
        .collect();
    assert_eq!(
        places,
        [(16, Some(1000)), (100, Some(3000)), (101, Some(1085))]
    );
    assert_eq!(index.fragments(), 1);
    assert!(index.is_clear(Slot(6), 16..24), "another volume's");
}
