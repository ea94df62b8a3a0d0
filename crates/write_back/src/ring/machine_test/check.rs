//! What is compared after each step.

use super::*;

impl World {
    pub(super) fn check(&self) {
        self.check_room();
        for slot in (0..2).map(Slot) {
            for at in 0..SECTORS {
                self.check_read(slot, at);
                self.check_after_crash(slot, at);
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
        let found = match pieces[0].source {
            Source::Log(sector) => self.logged(sector),
            Source::Backing => self.backing[&(slot, at)],
            Source::Zeroes(_) => ZEROED,
            Source::Lost => {
                assert!(self.failed, "nothing is lost before the log fails");
                return;
            }
        };
        let acknowledged = self.acknowledged[&(slot, at)];
        let right = found == acknowledged || self.under_way(slot, at).any(|it| it == found);
        assert!(right, "{slot:?} {at}: {found} for {acknowledged}");
    }

    /// Whoever opens the log anew finds its stable batches, and those on their way in order or
    /// none.
    fn check_after_crash(&self, slot: Slot, at: u64) {
        let volume = VolumeId(slot.0.into());
        let tail = self.machine.ring().tail().number;
        let stable = self.machine.ring().stable();
        let acknowledged = self.acknowledged[&(slot, at)];
        let mut allowed: BTreeSet<u64> = self.under_way(slot, at).collect();
        allowed.insert(acknowledged);
        allowed.extend(self.cached.get(&(slot, at)).into_iter().flatten());
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
            let found: Vec<u64> = match found {
                Some(stamp) => vec![stamp],
                None => backing.chain(older).collect(),
            };
            for found in found {
                assert!(
                    allowed.contains(&found),
                    "{slot:?} {at} after a crash: {found} of {allowed:?}"
                );
            }
        }
    }

    /// What a journal says of blocks that may be half-way is what is under way around the log, and
    /// what it holds in parts.
    fn check_unverified(&self) {
        let tail = self.machine.ring().tail().number;
        let stable = self.machine.ring().stable();
        for host in &self.hosts {
            let half = host.around.as_ref().filter(|it| it.begun && !it.done);
            let Some(half) = half.filter(|it| !it.is_volatile) else {
                continue;
            };
            let volume = VolumeId(host.slot.0.into());
            let mut said = UnverifiedBlocks::default();
            for (_, batch) in self.batches.range(tail..=stable) {
                let records = batch.header.records.iter().map(|it| it.change);
                let records = records.filter(|it| it.volume == volume);
                records.for_each(|it| unverified::add(&mut said, &it));
            }
            let said: Vec<u64> = said.ranges().flatten().collect();
            let bytes = half.range.start * SECTOR..half.range.end * SECTOR;
            let block = bytes.start / UnverifiedBlocks::BLOCK;
            assert!(
                said.contains(&block),
                "{half:?} is half-way, and nothing says so"
            );
        }
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
