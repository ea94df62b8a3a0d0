//! Who may do something, and what that does.

use super::*;

impl World {
    /// Who may do something now.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (number, host) in self.hosts.iter().enumerate() {
            if let Some(around) = &host.around {
                if self.may_go_on(around) {
                    steps.push(Step::Around(number));
                }
                continue;
            }
            let Some(op) = host.program.front() else {
                continue;
            };
            let changes = !matches!(op, Op::Flush | Op::Fence);
            if self.machine.volume(host.slot).admits(changes) == Admission::Now {
                steps.push(Step::Host(number));
            }
        }
        if self.writer_is_woken {
            steps.push(Step::Writer);
        }
        for (number, batch) in &self.batches {
            if !batch.ended {
                steps.push(Step::Batch(*number));
                if self.has(With::LogFails) && !self.failed {
                    steps.push(Step::BatchFails(*number));
                }
            }
        }
        if self.checkpoint_on_its_way && !self.failed {
            steps.push(Step::Checkpoint);
        }
        self.add_others(&mut steps);
        steps
    }

    fn may_go_on(&self, around: &Around) -> bool {
        let is_known = around
            .token
            .is_none_or(|it| !self.pending.contains_key(&it));
        is_known || (around.is_volatile && !around.done)
    }

    fn add_others(&self, steps: &mut Vec<Step>) {
        let may_destage = match &self.round {
            Round::None => {
                let paused = self.machine.destaging().is_paused();
                !paused && self.rounds_left() > 0 && self.machine.oldest(1).is_some()
            }
            Round::Begun(_, Some(newest)) => !self.machine.write_arounds().are_until(*newest),
            Round::Begun(_, None) | Round::Written(..) => true,
            Round::Relocating(_, number, _) => {
                self.machine.ring().has_failed() || self.machine.ring().stable() >= *number
            }
        };
        if may_destage && !self.closed {
            steps.push(Step::Destager);
            if self.has(With::BackingFails) && matches!(self.round, Round::Begun(..)) {
                steps.push(Step::DestagerFails);
            }
        }
        let rests = |slot| !self.machine.write_arounds().are_of(slot);
        let cuts = self.has(With::Cut)
            && match self.cut {
                0 => true,
                1 => rests(Slot(0)),
                _ => false,
            };
        if cuts {
            steps.push(Step::Cut);
        }
        let exchanges = self.has(With::Exchange)
            && match self.exchange {
                0 => true,
                1 => rests(Slot(0)),
                2 => !self.machine.destaging().is_in_round(),
                _ => false,
            };
        if exchanges {
            steps.push(Step::Exchange);
        }
        if self.has(With::Close) && !self.closed {
            steps.push(Step::Close);
        }
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Host(number) => self.host(number),
            Step::Around(number) => self.go_on(number),
            Step::Writer => {
                let replies = self.apply(Event::WriteNext);
                let mut goes_on = false;
                for reply in replies {
                    if let Effect::WriteBatch(write) = &reply {
                        self.put_together(write.number);
                    }
                    goes_on = true;
                }
                self.writer_is_woken = goes_on;
            }
            Step::Batch(number) => {
                let batch = self.batches.get_mut(&number).unwrap();
                (batch.written, batch.ended) = (true, true);
                let result = Ok(());
                self.apply(Event::BatchEnded { number, result });
            }
            Step::BatchFails(number) => {
                self.failed = true;
                self.batches.get_mut(&number).unwrap().ended = true;
                let result = Err(Failure {
                    why: "it fails".to_owned(),
                    refused: None::<Extent>,
                });
                self.apply(Event::BatchEnded { number, result });
            }
            Step::Checkpoint => {
                self.checkpoint_on_its_way = false;
                self.apply(Event::CheckpointEnded(Ok(())));
            }
            Step::Destager => self.destage(false),
            Step::DestagerFails => self.destage(true),
            Step::Cut => self.make_cut(),
            Step::Exchange => self.exchange_backing(),
            Step::Close => {
                self.closed = true;
                self.apply(Event::Close);
            }
        }
    }

    /// A writer that is woken and finds no change that waits does that at once: it keeps nobody
    /// from anything, and when it does makes no difference.
    pub(super) fn writer_looks_in_vain(&mut self) {
        let waits = self.pending.values().any(|it| it.batch.is_none());
        if self.writer_is_woken && !waits {
            self.step(Step::Writer);
        }
    }

    fn host(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let (slot, fence) = (host.slot, host.fence);
        let op = host.program.pop_front().unwrap();
        let stamp = self.stamp();
        match op {
            Op::Write(from, to) => {
                let submitted = self.submit((slot, from..to), Kind::Write, Some(stamp), fence);
                assert_eq!(submitted.is_err(), self.failed);
            }
            Op::Zero(from, to) => {
                let zeroed = Some(ZEROED);
                let submitted = self.submit((slot, from..to), Kind::Deallocate, zeroed, fence);
                assert_eq!(submitted.is_err(), self.failed);
            }
            Op::Around(from, to) | Op::Volatile(from, to) => {
                let is_volatile = matches!(op, Op::Volatile(..));
                let may = self.machine.may_write_around(slot, &(from..to));
                if !may || (is_volatile && self.failed) {
                    let _ = self.submit((slot, from..to), Kind::Write, Some(stamp), fence);
                    return;
                }
                self.begin_around(number, from..to, stamp, is_volatile);
            }
            Op::Flush => {
                let end = Token(self.answered + self.pending.len() as u64);
                let replies = self.apply(Event::Flush(slot));
                if matches!(replies.first(), Some(Effect::Waits)) {
                    self.sync_points.push_back(end);
                }
            }
            Op::Fence => {
                self.epochs[number] += 1;
                self.hosts[number].fence.epoch += 1;
                let id = VolumeId(slot.0.into());
                let facts = self.facts();
                let history = None;
                self.apply(Event::Open { id, facts, history });
            }
        }
    }

    fn begin_around(&mut self, number: usize, range: Range<u64>, stamp: u64, is_volatile: bool) {
        let (slot, fence) = (self.hosts[number].slot, self.hosts[number].fence);
        let begun = self.apply(Event::BeginWriteAround {
            slot,
            sectors: range.clone(),
            is_volatile,
        });
        let Some(Effect::Begun(id)) = begun.first() else {
            panic!("{begun:?} is no number")
        };
        let id = *id;
        let submitted = self.submit((slot, range.clone()), Kind::WriteAround, None, fence);
        self.hosts[number].around = Some(Around {
            id,
            token: submitted.ok(),
            range,
            stamp,
            is_volatile,
            brings_back: self.machine.may_bring_back(),
            begun: is_volatile,
            done: false,
            acknowledged: false,
            overtaken: BTreeSet::new(),
        });
    }

    /// The next half of a write around the log.
    fn go_on(&mut self, number: usize) {
        let slot = self.hosts[number].slot;
        let mut around = self.hosts[number].around.take().unwrap();
        let token = around.token;
        let is_known = token.is_none_or(|it| !self.pending.contains_key(&it));
        let stable = token.is_some_and(|it| self.newest_acknowledged >= Some(it));
        if !around.done && (around.is_volatile || stable) {
            if !around.begun {
                // It is half-way now: the log has to say so until it has ended.
                around.begun = true;
                self.hosts[number].around = Some(around);
                return;
            }
            for at in around.range.clone() {
                let before = self.backing.insert((slot, at), around.stamp).unwrap();
                if around.is_volatile {
                    self.unflushed.entry((slot, at)).or_default().insert(before);
                } else {
                    self.unflushed.remove(&(slot, at));
                }
            }
            around.done = true;
            if around.is_volatile && !around.brings_back {
                self.acknowledge_around(slot, &mut around);
            }
            if !is_known {
                self.hosts[number].around = Some(around);
                return;
            }
        }
        // One that is answered with an error is there all the same, once the backing volume has it.
        if around.done && !around.acknowledged {
            self.acknowledge_around(slot, &mut around);
        }
        self.apply(Event::EndWriteAround(around.id));
    }

    fn acknowledge_around(&mut self, slot: Slot, around: &mut Around) {
        around.acknowledged = true;
        for at in around.range.clone() {
            if !around.overtaken.contains(&at) {
                self.acknowledge((slot, at), around.stamp, around.is_volatile);
            }
        }
    }

    fn make_cut(&mut self) {
        let slot = Slot(0);
        if self.cut == 0 {
            self.apply(Event::Wait(slot, Wait::Hold));
        } else {
            assert!(self.machine.volume(slot).is_held);
            let fence = Fence::default();
            let cut = self.submit((slot, 5..5), Kind::Cut, None, fence);
            assert_eq!(cut.is_err(), self.failed);
            self.apply(Event::Wait(slot, Wait::EndHold));
        }
        self.cut += 1;
    }

    fn exchange_backing(&mut self) {
        let slot = Slot(0);
        match self.exchange {
            0 => self.apply(Event::Wait(slot, Wait::BeginExchange)),
            1 => self.apply(Event::Wait(slot, Wait::Pause)),
            _ => {
                let mut arounds = self.hosts.iter().filter(|it| it.slot == slot);
                assert!(arounds.all(|it| it.around.is_none()), "one is under way");
                assert!(matches!(self.round, Round::None), "a round is under way");
                // All that the one did is stable; the other has the same.
                self.unflushed.retain(|at, _| at.0 != slot);
                let facts = self.facts();
                self.apply(Event::Wait(slot, Wait::EndExchange(Some(facts))))
            }
        };
        self.exchange += 1;
    }
}
