//! What hosts do. Whether it has to wait, and goes around the log, the machine decides, and each
//! decision is compared with what the world knows.

use super::super::changes::overlap;
use super::*;

impl World {
    /// Changes of the volume have to wait, or (`changes`: `false`) all that is asked of it.
    pub(super) fn must_wait(&self, slot: Slot, changes: bool) -> bool {
        let is_held = changes && self.cut == 1;
        let is_exchanged = (1..=3).contains(&self.exchange);
        slot == Slot(0) && (is_held || is_exchanged)
    }

    /// Somebody was woken: who need not wait any more goes on.
    pub(super) fn hosts_try_again(&mut self) {
        for host in &mut self.hosts {
            let changes = host.program.front().is_some_and(|it| it.changes());
            host.waits &= self.machine.volume(host.slot).makes_wait(changes);
        }
    }

    pub(super) fn host(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let slot = host.slot;
        let op = host.program.pop_front().unwrap();
        let stamp = self.stamp();
        let unit = self.places.sectors;
        let sectors = |from, to| from * unit..to * unit;
        let mut around = MayGoAround::default();
        match op {
            Op::Write(from, to) => self.change(number, op, (sectors(from, to), stamp), around),
            Op::Zero(from, to) => self.change(number, op, (sectors(from, to), ZEROED), around),
            Op::Around(from, to) => {
                around.stable = true;
                self.change(number, op, (sectors(from, to), stamp), around);
            }
            Op::Volatile(from, to) => {
                around.volatile = true;
                self.change(number, op, (sectors(from, to), stamp), around);
            }
            Op::Read(from, to) => self.read(number, op, &sectors(from, to)),
            Op::Flush => self.flush(number, op),
            Op::Fence => {
                self.epochs[number] += 1;
                self.hosts[number].fence.epoch += 1;
                let id = VolumeId(slot.0.into());
                let (facts, history) = (FACTS, None);
                self.apply(Event::Open { id, facts, history });
            }
        }
    }

    /// The machine has a host wait with this.
    fn has_wait(&mut self, number: usize, op: Op) {
        self.hosts[number].waits = true;
        self.hosts[number].program.push_front(op);
    }

    fn flush(&mut self, number: usize, op: Op) {
        let slot = self.hosts[number].slot;
        let end = Token(self.answered + self.pending.len() as u64);
        let (must_wait, awaits) = (self.must_wait(slot, false), self.flush_waits(slot));
        let replies = self.apply(Event::Flush(slot));
        match replies.first() {
            Some(Effect::Waits) => {
                assert!(must_wait, "nothing keeps it from going on");
                return self.has_wait(number, op);
            }
            Some(Effect::Refused(error)) => assert!(self.failed, "{error:?}"),
            Some(Effect::AwaitsSyncPoint) => {
                assert!(awaits, "the log has nothing to wait for");
                self.sync_points.push((slot, end));
            }
            None => assert!(!self.failed && !awaits, "it is no flush"),
            other => panic!("{other:?} is no answer"),
        }
        assert!(!must_wait, "it had to wait");
    }

    fn read(&mut self, number: usize, op: Op, sectors: &Range<u64>) {
        let slot = self.hosts[number].slot;
        let must_wait = self.must_wait(slot, false);
        let found = self.machine.read(slot, range(sectors));
        let extents = self.machine.extents(slot, range(sectors), 1).err();
        let changed = self.machine.reports_changes(slot).err();
        let waits = must_wait.then_some(NotNow::Later);
        assert_eq!([extents, changed], [waits, waits], "as other questions");
        let places = match found {
            Ok(places) => places,
            Err(NotNow::Later) => {
                assert!(must_wait, "nothing keeps it from going on");
                return self.has_wait(number, op);
            }
            Err(NotNow::Refused(error)) => panic!("{error:?}"),
        };
        assert!(!must_wait, "it had to wait");
        let sources: Vec<(u64, Source)> = match places {
            Found::Backing => sectors.clone().map(|at| (at, Source::Backing)).collect(),
            Found::Pieces(pieces) => pieces.iter().flat_map(sources).collect(),
        };
        assert!(sources.iter().map(|it| it.0).eq(sectors.clone()));
        for (at, source) in &sources {
            self.check_source(slot, *at, *source);
        }
        if sources.iter().any(|it| it.1 == Source::Backing) {
            self.hosts[number].reads = Some(self.readers);
        }
    }

    /// Those who read from the backing volume that may be exchanged, since when.
    pub(super) fn reads(&self) -> impl Iterator<Item = u32> {
        let hosts = self.hosts.iter().filter(|it| it.slot == Slot(0));
        hosts.filter_map(|it| it.reads)
    }

    fn change(
        &mut self,
        number: usize,
        op: Op,
        (sectors, stamp): (Range<u64>, u64),
        around: MayGoAround,
    ) {
        let (slot, fence) = (self.hosts[number].slot, self.hosts[number].fence);
        let (kind, bytes) = if matches!(op, Op::Zero(..)) {
            (Kind::Deallocate, Buf::empty())
        } else {
            (Kind::Write, data(&sectors, stamp))
        };
        let must_wait = self.must_wait(slot, true);
        let lost = !self.is_current(fence);
        let refused = self.failed || lost;
        let goes_around = self.goes_around(slot, &sectors, around);
        let replies = self.apply(Event::Change(HostChange {
            slot,
            range: range(&sectors),
            kind,
            data: bytes,
            around,
            fence,
            is_current: !lost,
            now: Now(0),
        }));
        match replies.first() {
            Some(Effect::Waits) => {
                assert!(must_wait, "nothing keeps it from going on");
                return self.has_wait(number, op);
            }
            Some(Effect::Begun(id, how)) => {
                assert!(goes_around, "the log has something there, or will");
                let token = self.pend(&replies[1], (slot, &sectors), Kind::WriteAround, fence);
                let is_volatile = *how != event::Around::Stable;
                assert_eq!(is_volatile, around.volatile, "as it was asked for");
                self.hosts[number].around = Some(Around {
                    id: *id,
                    token,
                    range: sectors,
                    stamp,
                    how: *how,
                    begun: is_volatile,
                    done: false,
                    acknowledged: false,
                    overtaken: BTreeSet::new(),
                });
            }
            Some(put @ Effect::Submitted { .. }) => {
                assert!(!goes_around, "nothing keeps it from going around the log");
                let token = self.pend(put, (slot, &sectors), kind, fence);
                self.pending.get_mut(&token).unwrap().stamp = Some(stamp);
            }
            Some(Effect::Refused(error)) => {
                assert!(refused, "{error:?}");
                assert_eq!(*error == IoError::Fenced, lost, "{error:?}");
            }
            other => panic!("{other:?} is no answer"),
        }
        assert!(!must_wait, "it had to wait");
        assert_eq!(refused, matches!(replies[0], Effect::Refused(_)));
    }

    /// The log has nothing of these sectors, nothing waits for it that does, and nothing is under
    /// way around it there.
    fn goes_around(&self, slot: Slot, sectors: &Range<u64>, around: MayGoAround) -> bool {
        let mut pending = self.pending.values();
        let waits = pending.any(|it| it.slot == slot && overlap(&it.range, sectors));
        let mut hosts = self.hosts.iter().filter(|it| it.slot == slot);
        let is_there = hosts.any(|it| {
            let around = it.around.as_ref();
            around.is_some_and(|it| overlap(&it.range, sectors))
        });
        let is_in_log = !self.machine.index().is_clear(slot, sectors.clone());
        (around.stable || around.volatile) && !waits && !is_there && !is_in_log
    }

    /// What was acknowledged from a cache may not be known to the log yet.
    fn flush_waits(&self, slot: Slot) -> bool {
        let mut hosts = self.hosts.iter().filter(|it| it.slot == slot);
        let is_volatile = |it: &Host| it.around.as_ref().is_some_and(Around::is_volatile);
        hosts.any(is_volatile) && self.pending.values().any(|it| it.slot == slot)
    }

    /// Says something of the ring's own, of no blocks.
    fn note(&mut self, slot: Slot, kind: Kind) {
        let sectors = 5..5;
        let replies = self.apply(Event::Note(Note {
            slot,
            range: range(&sectors),
            kind,
            now: Now(0),
        }));
        let refused = matches!(replies[0], Effect::Refused(_));
        assert_eq!(refused, self.failed);
        if !refused {
            self.pend(&replies[0], (slot, &sectors), kind, Fence::default());
        }
    }

    /// Something waits for the log.
    fn pend(
        &mut self,
        put: &Effect,
        (slot, range): (Slot, &Range<u64>),
        kind: Kind,
        fence: Fence,
    ) -> Token {
        let Effect::Submitted { token, .. } = put else {
            panic!("{put:?} does not wait for the log")
        };
        assert!(self.is_current(fence) && !self.failed, "it is refused");
        let pending = Pending {
            slot,
            range: range.clone(),
            kind,
            fence,
            stamp: None,
            batch: None,
        };
        assert!(self.pending.insert(*token, pending).is_none());
        *token
    }

    /// The next half of a write around the log.
    pub(super) fn go_on(&mut self, number: usize) {
        let slot = self.hosts[number].slot;
        let mut around = self.hosts[number].around.take().unwrap();
        let is_known = !self.pending.contains_key(&around.token);
        let stable = is_known && !self.not_done.contains(&around.token);
        let refused = !around.begun && !self.is_current(self.hosts[number].fence);
        let is_volatile = around.is_volatile();
        if !around.done && !refused && (is_volatile || stable) {
            if !around.begun {
                // It is half-way now: the log has to say so until it has ended.
                around.begun = true;
                self.hosts[number].around = Some(around);
                return;
            }
            for at in around.range.clone() {
                let before = self.backing.insert((slot, at), around.stamp).unwrap();
                if is_volatile {
                    self.unflushed.entry((slot, at)).or_default().insert(before);
                } else {
                    self.unflushed.remove(&(slot, at));
                }
            }
            around.done = true;
            if around.how == (event::Around::Volatile { brings_back: false }) {
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
                self.acknowledge((slot, at), around.stamp, around.is_volatile());
            }
        }
    }

    pub(super) fn make_cut(&mut self) {
        let slot = Slot(0);
        if self.cut == 0 {
            self.cut += 1;
            self.apply(Event::Wait(slot, Wait::Hold));
        } else {
            let mut hosts = self.hosts.iter().filter(|it| it.slot == slot);
            assert!(hosts.all(|it| it.around.is_none()), "one is under way");
            self.note(slot, Kind::Cut);
            self.cut += 1;
            self.apply(Event::Wait(slot, Wait::EndHold));
        }
    }
}

impl Op {
    /// It is refused, or has to wait, as what changes blocks is.
    fn changes(self) -> bool {
        !matches!(self, Self::Read(..) | Self::Flush | Self::Fence)
    }
}

/// Where each sector of a piece is.
fn sources(piece: &Piece) -> impl Iterator<Item = (u64, Source)> {
    let (first, source) = (piece.sectors.start, piece.source);
    let source_at = move |at: u64| match source {
        Source::Log(sector) => Source::Log(sector + u32::try_from(at - first).unwrap()),
        Source::Backing | Source::Zeroes(_) | Source::Lost => source,
    };
    piece.sectors.clone().map(move |at| (at, source_at(at)))
}

impl Around {
    pub(super) fn is_volatile(&self) -> bool {
        self.how != event::Around::Stable
    }
}
