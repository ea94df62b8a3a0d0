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
            if host.reads.is_some() {
                steps.push(Step::ReadEnds(number));
                continue;
            }
            let Some(op) = host.program.front() else {
                continue;
            };
            // Whether a request has to wait the machine says; a new right is none.
            let opens = matches!(op, Op::Fence) && !self.must_wait(host.slot, false);
            if !host.waits && (opens || !matches!(op, Op::Fence)) {
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
        let is_known = !self.pending.contains_key(&around.token);
        is_known || (around.is_volatile() && around.begun && !around.done)
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
                3 => self.reads().all(|since| since >= self.readers),
                _ => false,
            };
        if exchanges {
            steps.push(Step::Exchange);
        }
        if self.has(With::Close) && !self.closed {
            steps.push(Step::Close);
        }
        if self.has(With::Raise) && !self.raised {
            steps.push(Step::Raise);
        }
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Host(number) => self.host(number),
            Step::Around(number) => self.go_on(number),
            Step::ReadEnds(number) => self.hosts[number].reads = None,
            Step::Writer => {
                let epochs = self.epochs;
                let replies = self.apply(Event::WriteNext(&|_, fence| is_current(epochs, fence)));
                assert!(!self.closed || replies.is_empty(), "nothing new is begun");
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
            Step::Raise => {
                self.raised = true;
                self.epochs[0] += 1;
            }
        }
    }

    /// A writer that is woken and finds no change that waits does that at once: it keeps nobody
    /// from anything, and when it does makes no difference.
    pub(super) fn writer_polls_in_vain(&mut self) {
        let waits = self.pending.values().any(|it| it.batch.is_none());
        if self.writer_is_woken && !waits {
            self.step(Step::Writer);
        }
    }

    fn exchange_backing(&mut self) {
        let slot = Slot(0);
        let step = self.exchange;
        self.exchange += 1;
        match step {
            0 => drop(self.apply(Event::Wait(slot, Wait::BeginExchange))),
            1 => drop(self.apply(Event::Wait(slot, Wait::Pause))),
            2 => self.readers += 1,
            _ => {
                let mut arounds = self.hosts.iter().filter(|it| it.slot == slot);
                assert!(arounds.all(|it| it.around.is_none()), "one is under way");
                assert!(matches!(self.round, Round::None), "a round is under way");
                assert_eq!(self.reads().count(), 0, "somebody reads from it");
                // All that the one did is stable; the other has the same.
                self.unflushed.retain(|at, _| at.0 != slot);
                self.apply(Event::Wait(slot, Wait::EndExchange(Some(FACTS))));
                assert!(!self.machine.destaging().is_paused(), "it goes on");
            }
        }
    }
}
