//! What is compared after each step.

use super::*;

const SECTORS_OF_BLOCK: u64 = UnverifiedBlocks::BLOCK / SECTOR;

/// The blocks that have some of these sectors.
fn blocks(sectors: &Range<u64>) -> Range<u64> {
    if sectors.is_empty() {
        return 0..0;
    }
    sectors.start / SECTORS_OF_BLOCK..sectors.end.div_ceil(SECTORS_OF_BLOCK)
}

/// How a life of the ring ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    PowerCut,
    /// What the backing volume has in its cache stays.
    Kill,
}

impl InBatch {
    /// The log has the whole block with it, and needs no other.
    fn has_whole(&self, block: u64) -> bool {
        let mut sectors = block * SECTORS_OF_BLOCK..(block + 1) * SECTORS_OF_BLOCK;
        self.kind != Kind::WriteAround && sectors.all(|it| self.range.contains(&it))
    }
}

impl World {
    pub(super) fn check(&self) {
        self.check_room();
        for slot in (0..2).map(Slot) {
            for place in 0..self.places.count {
                let at = place * self.places.sectors;
                self.check_read(slot, at);
                self.check_lies(slot, at);
                self.check_after_end(slot, at, End::PowerCut);
                if !self.failed {
                    self.check_after_end(slot, at, End::Kill);
                }
            }
        }
        self.check_unverified();
    }

    fn check_room(&self) {
        let released = self.machine.ring().released().number;
        let in_use = || self.batches.range(released..).map(|(_, it)| it);
        let blocks = |it: &Batch| (it.bytes.len() / BLOCK) as u64;
        let all: u64 = in_use().map(blocks).sum();
        assert_eq!(self.machine.ring().unreleased_blocks(), all);
        let relocated: u64 = in_use().filter(|it| it.is_relocated).map(blocks).sum();
        assert_eq!(self.machine.relocated_blocks(), relocated);
    }

    /// Stamps that are under way at a place: they may be found already, or not yet.
    fn under_way(&self, slot: Slot, at: u64) -> impl Iterator<Item = u64> {
        let arounds = self.hosts.iter().filter(move |it| it.slot == slot);
        let arounds = arounds.filter_map(move |host| {
            let around = host.around.as_ref()?;
            let hit = around.range.contains(&at) && !around.acknowledged;
            (hit && around.begun).then_some(around.stamp)
        });
        arounds.collect::<Vec<u64>>().into_iter()
    }

    fn check_read(&self, slot: Slot, at: u64) {
        let pieces = self.machine.index().find(slot, at..at + 1);
        self.check_source(slot, at, pieces[0].source);
    }

    /// Whoever reads this sector there finds what he may.
    pub(super) fn check_source(&self, slot: Slot, at: u64, source: Source) {
        let found = match source {
            Source::Log(sector) => self.logged(sector),
            Source::Backing => self.backing[&(slot, at)],
            Source::Zeroes(_) => ZEROED,
            Source::Lost => {
                assert!(self.failed, "nothing is lost before the log fails");
                assert!(self.unknown.contains(&(slot, at)), "nobody changed it");
                return;
            }
        };
        let acknowledged = self.acknowledged[&(slot, at)];
        assert!(!self.unknown.contains(&(slot, at)), "a replay may find it");
        let right = found == acknowledged || self.under_way(slot, at).any(|it| it == found);
        assert!(right, "{slot:?} {at}: {found} for {acknowledged}");
    }

    /// What is in the index is held by a batch that was not given up.
    fn check_lies(&self, slot: Slot, at: u64) {
        let kind = match self.machine.index().find(slot, at..at + 1)[0].source {
            Source::Log(_) => Kind::Write,
            Source::Zeroes(kind) => kind,
            Source::Backing | Source::Lost => return,
        };
        let released = self.machine.ring().released().number;
        let held = self.in_batches.iter().any(|it| {
            let same = it.slot == slot && it.kind == kind && it.range.contains(&at);
            same && it.batch >= released
        });
        assert!(held, "{slot:?} {at} has nothing in the log");
    }

    /// Whoever opens the log anew finds its stable batches, and those on their way in order or
    /// none. What was acknowledged from a cache is lost with power only.
    fn check_after_end(&self, slot: Slot, at: u64, end: End) {
        let volume = VolumeId(slot.0.into());
        let tail = self.machine.ring().tail().number;
        let stable = self.machine.ring().stable();
        let acknowledged = self.acknowledged[&(slot, at)];
        let mut allowed: BTreeSet<u64> = self.under_way(slot, at).collect();
        allowed.insert(acknowledged);
        let cached = self.cached.get(&(slot, at)).into_iter().flatten();
        allowed.extend(cached.filter(|_| end == End::PowerCut));
        let pending = self.pending.values().filter(|it| it.slot == slot);
        let pending = pending.filter(|it| it.range.contains(&at));
        allowed.extend(pending.filter_map(|it| it.stamp));
        let mut newest: Option<(u64, Option<u64>)> = None;
        let mut states = Vec::new();
        for (number, batch) in self.batches.range(tail..) {
            if *number == stable + 1 {
                states.push(newest);
            }
            for record in &batch.header.records {
                let change = record.change;
                if change.volume != volume || !change.sectors().contains(&at) {
                    continue;
                }
                // As they were made, wherever they lie.
                let by = change.sequence.0;
                if newest.is_some_and(|(newest, _)| newest > by) {
                    continue;
                }
                let stamp = if change.kind == Kind::Write {
                    let ahead = (at - change.sectors().start) * SECTOR;
                    let from = usize::try_from(u64::from(record.data_at) + ahead).unwrap();
                    Some(stamp_of(&batch.bytes.slice(from..from + 8).to_vec()))
                } else {
                    (change.kind == Kind::Deallocate).then_some(ZEROED)
                };
                newest = Some((by, stamp));
            }
            if *number > stable {
                states.push(newest);
            }
        }
        states.push(newest);
        for state in states {
            let found = state.and_then(|(_, stamp)| stamp);
            let backing = std::iter::once(self.backing[&(slot, at)]);
            let older = self
                .unflushed
                .get(&(slot, at))
                .into_iter()
                .flatten()
                .copied();
            let older = older.filter(|_| end == End::PowerCut);
            let found: Vec<u64> = match found {
                Some(stamp) => vec![stamp],
                None => backing.chain(older).collect(),
            };
            for found in found {
                assert!(
                    allowed.contains(&found),
                    "{slot:?} {at} after {end:?}: {found} of {allowed:?}"
                );
            }
        }
    }

    /// Whoever opens the log anew gets exactly the blocks that it cannot vouch for, whichever
    /// batches that are on their way he finds.
    fn check_unverified(&self) {
        let tail = self.machine.ring().tail().number;
        let mut found = replay::Found::default();
        for (number, batch) in self.batches.range(tail..) {
            if *number > self.machine.ring().stable() {
                self.check_found(&found, tail..*number);
            }
            let header = &batch.header;
            let batch = journal::Found {
                place: header.place,
                records: header.records.clone(),
                damaged: Vec::new(),
                committed: header.committed,
            };
            found.take(&batch, RING_BLOCKS_MIN).unwrap();
        }
        self.check_found(&found, tail..u64::MAX);
    }

    fn check_found(&self, found: &replay::Found, batches: Range<u64>) {
        for slot in (0..2).map(Slot) {
            let said = found.replayed.unverified.get(&VolumeId(slot.0.into()));
            let said: BTreeSet<u64> = said
                .into_iter()
                .flat_map(UnverifiedBlocks::ranges)
                .flatten()
                .collect();
            let changes = self.in_batches.iter();
            let changes = changes.filter(|it| it.slot == slot && batches.contains(&it.batch));
            let changes = changes.flat_map(|it| blocks(&it.range).map(move |block| (block, it)));
            let (whole, parts): (Vec<_>, Vec<_>) =
                changes.partition(|(block, it)| it.has_whole(*block));
            let [whole, named] =
                [whole, parts].map(|all| all.into_iter().map(|it| it.0).collect::<BTreeSet<u64>>());
            assert_eq!(said, named, "{slot:?}: neither more nor less");
            for block in self.half_way(slot) {
                assert!(
                    said.contains(&block) || whole.contains(&block),
                    "block {block} of {slot:?} may be half-way, and nothing says so"
                );
            }
        }
    }

    /// Blocks of the backing volume that a crash may leave between old and new. What is written to
    /// its cache by a host is not among them: whoever has checksums goes through the log.
    fn half_way(&self, slot: Slot) -> BTreeSet<u64> {
        let hosts = self.hosts.iter().filter(|it| it.slot == slot);
        let arounds = hosts.filter_map(|it| it.around.as_ref());
        let arounds = arounds.filter(|it| it.begun && !it.done && !it.is_volatile());
        let mut all: BTreeSet<u64> = arounds.flat_map(|it| blocks(&it.range)).collect();
        let destaged = self.half_destaged.iter().filter(|it| it.0 == slot);
        all.extend(destaged.map(|it| it.1 / SECTORS_OF_BLOCK));
        all
    }

    /// What somebody may wait for now. (Room and what is drained come with the end of a round.)
    pub(super) fn unmet(&self) -> Vec<Condition> {
        let mut all = vec![Condition::NoRound];
        for (slot, _) in self.machine.volumes().iter() {
            let goes_on = [true, false].map(|changes| Condition::GoesOn { slot, changes });
            all.extend(goes_on);
            all.extend([Condition::IsNotHeld(slot), Condition::NoWriteAround(slot)]);
        }
        let newest = self.machine.newest_write_around();
        all.extend(newest.map(Condition::NoWriteAroundUntil));
        all.retain(|it| !it.is_met(&self.machine));
        all
    }

    pub(super) fn check_woken(&self, before: &[Condition], effects: &Effects) {
        let woken = effects.iter().any(|it| matches!(it, Effect::WakeOthers));
        let met = before.iter().find(|it| it.is_met(&self.machine));
        assert!(woken || met.is_none(), "{met:?}, and nobody is woken");
    }

    /// Nobody can do anything any more.
    pub(super) fn check_end(&self) {
        let in_batches = self.pending.values().filter(|it| it.batch.is_some());
        assert_eq!(in_batches.count(), 0, "those in batches are answered");
        if !self.closed || self.failed {
            assert!(
                self.pending.is_empty(),
                "{:?} are not answered",
                self.pending
            );
            assert!(self.sync_points.is_empty(), "somebody still flushes");
            assert!(self.hosts.iter().all(|it| it.around.is_none()));
            let programs = self.hosts.iter().map(|it| it.program.len());
            assert_eq!(programs.sum::<usize>(), 0, "somebody waits for ever");
        }
    }
}
