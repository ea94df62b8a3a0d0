//! Rounds of the destager.

use super::*;

impl World {
    pub(super) fn destage(&mut self, fails: bool) {
        self.round = match std::mem::replace(&mut self.round, Round::None) {
            Round::None => {
                let segment = self.machine.oldest(u64::MAX).unwrap();
                self.apply(Event::Destage(Destage::BeginRound));
                Round::Begun(segment, self.machine.newest_write_around())
            }
            Round::Begun(segment, _) => {
                let outcome = self.write_backing(&segment, fails);
                Round::Written(segment, outcome)
            }
            Round::Written(segment, outcome) => self.flush_backing(segment, &outcome),
            Round::Relocating(segment, _, relocated) => {
                let failed = self.machine.ring().has_failed();
                if failed {
                    self.end_round(Some(Blocked::Log));
                } else {
                    self.apply(Event::Relocated(&relocated));
                    self.release(&segment);
                }
                Round::None
            }
        };
    }

    fn end_round(&mut self, blocked: Option<Blocked>) {
        self.apply(Event::Destage(Destage::EndRound(blocked)));
        for it in &mut self.with {
            if let With::Rounds(rounds) = it {
                *rounds -= 1;
            }
        }
    }

    fn release(&mut self, segment: &Segment) {
        for host in &self.hosts {
            let half = host.around.as_ref().filter(|it| it.begun && !it.done);
            let Some(half) = half.filter(|it| !it.is_volatile()) else {
                continue;
            };
            let record = self.batch_of(host.slot, half);
            assert!(record >= segment.end(), "it may be half-way");
        }
        self.apply(Event::Destage(Destage::Release(segment.end())));
        self.end_round(None);
    }

    /// The batch that says of a write around the log that it may be half-way.
    fn batch_of(&self, slot: Slot, around: &Around) -> u64 {
        let volume = VolumeId(slot.0.into());
        let says = |it: &Batch| {
            let mut records = it.header.records.iter();
            records.any(|it| {
                let change = it.change;
                change.volume == volume
                    && change.kind == Kind::WriteAround
                    && change.sectors() == around.range
            })
        };
        let mut written = self.batches.iter().rev().filter(|(_, it)| it.written);
        let newest = written.find(|(_, it)| says(it));
        *newest.expect("the log says so").0
    }

    fn contents(&self, segment: &Segment) -> (Vec<Lying>, Vec<BareChange>) {
        let mut bytes = Buf::empty();
        for (_, batch) in self.batches.range(segment.first()..segment.end()) {
            bytes.append(&batch.bytes);
        }
        let (mut lying, mut bare) = (Vec::new(), Vec::new());
        for batch in segment.batches(&bytes) {
            let Again::Found {
                place,
                records,
                damaged,
            } = batch
            else {
                panic!("nothing is damaged")
            };
            assert!(damaged.is_empty());
            for record in records {
                let change = record.change;
                if change.kind == Kind::Write {
                    let at = segment.sector_of(place, &record);
                    lying.push(self.machine.lying(&change, at));
                } else if change.kind == Kind::Deallocate {
                    bare.push(BareChange {
                        slot: self.machine.slot(change.volume).unwrap(),
                        sectors: change.sectors(),
                        by: change.sequence,
                        kind: change.kind,
                    });
                }
            }
        }
        (lying, bare)
    }

    /// What still is the newest of a segment goes to the backing volume.
    fn write_backing(&mut self, segment: &Segment, fails: bool) -> Outcome {
        let (lying, bare) = self.contents(segment);
        let jobs = runs(self.machine.index(), &lying, u64::MAX)
            .into_iter()
            .map(Job::Run);
        let bare = self.machine.live_bare(&bare).into_iter().map(Job::Bare);
        let mut outcome = Outcome {
            jobs: jobs.chain(bare).collect(),
            ..Outcome::default()
        };
        for (which, job) in outcome.jobs.iter().enumerate() {
            let slot = job.slot();
            let sectors = job.sectors().clone();
            self.half_destaged.extend(sectors.map(|at| (slot, at)));
            if fails {
                let error = DestageError::new(IoError::SpaceExhausted, "it is full", Now(0));
                outcome.failed.insert(which);
                outcome.errors.insert(slot, error);
                continue;
            }
            outcome.touched.insert(slot);
            let stamps = self.stamps_of(job);
            for (at, stamp) in stamps {
                let before = self.backing.insert((slot, at), stamp).unwrap();
                self.unflushed.entry((slot, at)).or_default().insert(before);
            }
        }
        outcome
    }

    /// What a job writes, by its sectors.
    fn stamps_of(&self, job: &Job) -> Vec<(u64, u64)> {
        match job {
            Job::Run(run) => {
                let parts = run.parts.iter();
                let sectors = parts.flat_map(|part| part.sectors.clone().zip(part.at..));
                sectors.map(|(at, lies)| (at, self.logged(lies))).collect()
            }
            Job::Bare(bare) => bare.sectors.clone().map(|at| (at, ZEROED)).collect(),
        }
    }

    /// What lies at a sector of the log.
    pub(super) fn logged(&self, sector: u32) -> u64 {
        let byte = u64::from(sector) * SECTOR;
        let batch = self.batches.values().find(|it| {
            let end = it.at + it.bytes.len() as u64;
            it.at <= byte && byte < end
        });
        let batch = batch.expect("the log has it");
        let from = usize::try_from(byte - batch.at).unwrap();
        stamp_of(&batch.bytes.slice(from..from + 8).to_vec())
    }

    fn flush_backing(&mut self, segment: Segment, outcome: &Outcome) -> Round {
        for slot in &outcome.touched {
            self.unflushed.retain(|at, _| at.0 != *slot);
        }
        let jobs = outcome.jobs.iter().enumerate();
        for (_, job) in jobs.filter(|(which, _)| !outcome.failed.contains(which)) {
            for at in job.sectors().clone() {
                self.half_destaged.remove(&(job.slot(), at));
            }
        }
        self.apply(Event::Destage(Destage::Written(outcome)));
        let (lying, bare) = self.contents(&segment);
        assert!(
            outcome.failed.is_empty() || bare.is_empty(),
            "not in these worlds"
        );
        let mut changes: Vec<(Change, Buf)> = Vec::new();
        let mut pieces: Vec<Lying> = Vec::new();
        for (lying, by) in lying.iter().zip(self.sequences(&segment)) {
            for part in newest(self.machine.index(), lying) {
                let change = Change {
                    volume: self.machine.volume(part.slot).id,
                    sequence: by,
                    range: range(&part.sectors),
                    block_size: BlockSize::B512,
                    kind: Kind::Write,
                    commit: Commit::AtOnce,
                };
                if self.machine.is_on_its_way(&change) {
                    // A later round has it.
                    self.end_round(Some(Blocked::Backing));
                    return Round::None;
                }
                changes.push((change, data(&part.sectors, self.logged(part.at))));
                pieces.push(part);
            }
        }
        if changes.is_empty() {
            self.release(&segment);
            return Round::None;
        }
        let replies = self.apply(Event::Relocate(&changes));
        let Some(Effect::WriteBatch(write)) = replies.first() else {
            assert!(self.failed, "there is room");
            self.end_round(Some(Blocked::Log));
            return Round::None;
        };
        for part in &pieces {
            self.in_batches.push(InBatch {
                batch: write.number,
                slot: part.slot,
                range: part.sectors.clone(),
                kind: Kind::Write,
            });
        }
        let to = |data_at: &u32| u32::try_from((write.at + u64::from(*data_at)) / SECTOR).unwrap();
        let relocated = pieces.into_iter().zip(write.data_at.iter().map(to));
        Round::Relocating(segment, write.number, relocated.collect())
    }

    /// The numbers of the writes of a segment.
    fn sequences(&self, segment: &Segment) -> Vec<journal::Sequence> {
        let batches = self.batches.range(segment.first()..segment.end());
        let records = batches.flat_map(|(_, it)| &it.header.records);
        let writes = records.filter(|it| it.change.kind == Kind::Write);
        writes.map(|it| it.change.sequence).collect()
    }
}
