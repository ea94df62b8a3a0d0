//! A volume that other nodes have copies of: what is stable here is not read, destaged or
//! acknowledged before it is committed.

use super::super::changes::{Changes, Waiting};
use super::super::event::BeginEpoch;
use super::super::waiting::{Condition, Waiters};
use super::*;
use crate::carrier::RingOrder;
use journal::{Epoch, EpochRefused, Role};
use std::cell::RefCell;
use std::pin::pin;
use std::task::{Context, Waker};

pub(super) const MIRRORED: Slot = Slot(0);
pub(super) const ALONE: Slot = Slot(1);

/// A machine with two volumes, the first one of several copies and owned here since epoch 1, whose
/// record has number 0 and is destaged.
pub(super) struct Ring {
    pub(super) machine: Machine,
    /// All that the log was handed.
    batches: Vec<BatchWrite>,
}

impl Ring {
    pub(super) fn new() -> Self {
        let mut machine = World::new(SECTORS, &[], &[]).machine;
        let open = Event::Open {
            id: VolumeId(0),
            facts: OpenFacts {
                commit: Commit::Later,
                ..FACTS
            },
            history: None,
        };
        machine.apply(open, &mut Effects::new());
        let mut ring = Self {
            machine,
            batches: Vec::new(),
        };
        ring.begin(1, 0);
        ring.batch();
        ring.commit_of(1, 1);
        ring.apply(Event::Destage(Destage::Release(2)));
        for _ in 0..2 {
            let effects = ring.apply(Event::WriteNext(&|_, _| true));
            assert!(matches!(effects[..], [Effect::WriteCheckpoint(_)]));
            ring.apply(Event::CheckpointEnded(Ok(())));
        }
        ring
    }

    pub(super) fn apply(&mut self, event: Event<'_>) -> Effects {
        let mut effects = Effects::new();
        self.machine.apply(event, &mut effects);
        effects
    }

    pub(super) fn write(&mut self, slot: Slot, sectors: Range<u64>, stamp: u64) -> Token {
        let effects = self.apply(Event::Change(HostChange {
            slot,
            range: range(&sectors),
            kind: Kind::Write,
            data: data(&sectors, stamp),
            // Where the volume has several copies all goes into the log.
            around: MayGoAround {
                stable: slot == MIRRORED,
                volatile: slot == MIRRORED,
            },
            fence: Fence::default(),
            is_current: true,
            now: Now(7),
        }));
        let [Effect::Submitted { token, .. }, Effect::WakeWriter] = effects[..] else {
            panic!("{effects:?} is no record")
        };
        token
    }

    /// All that waits goes into one batch, which is stable.
    pub(super) fn batch(&mut self) -> Effects {
        let mut effects = self.apply(Event::WriteNext(&|_, _| true));
        let Some(Effect::WriteBatch(write)) = effects.pop() else {
            panic!("something waits")
        };
        let number = write.number;
        self.batches.push(write);
        let result = Ok(());
        self.apply(Event::BatchEnded { number, result })
    }

    /// A batch that says what is committed by now.
    fn seal(&mut self) {
        let mut effects = self.apply(Event::Seal);
        let Some(Effect::WriteBatch(write)) = effects.pop() else {
            panic!("nothing says it yet")
        };
        self.batches.push(write);
    }

    /// So many changes of the first epoch, beside its own record.
    fn commit(&mut self, changes: u64) -> Effects {
        self.commit_of(1, changes + 1)
    }

    pub(super) fn commit_of(&mut self, epoch: u64, below: u64) -> Effects {
        self.apply(Event::Commit {
            slot: MIRRORED,
            epoch,
            below: Sequence(below),
        })
    }

    pub(super) fn begin(&mut self, epoch: u64, first: u64) -> Effects {
        self.apply(Event::BeginEpoch(BeginEpoch {
            slot: MIRRORED,
            epoch,
            first: Sequence(first),
            now: Now(8),
        }))
    }

    /// Opens the volume again, with so many copies.
    fn open(&mut self, commit: Commit) -> Effects {
        let facts = OpenFacts { commit, ..FACTS };
        self.apply(Event::Open {
            id: VolumeId(0),
            facts,
            history: None,
        })
    }

    /// Whether the log has the newest of these sectors.
    pub(super) fn reads_log(&self, slot: Slot, sectors: &Range<u64>) -> bool {
        let found = self.machine.read(slot, range(sectors)).unwrap();
        matches!(found, Found::Pieces(_))
    }

    /// What somebody finds who opens the log now.
    fn found(&self) -> replay::Found {
        let mut found = replay::Found::default();
        for write in &self.batches {
            let header = Header::read(&write.bytes.to_vec(), OF.0, OF.1).unwrap();
            let batch = journal::Found {
                place: header.place,
                records: header.records.clone(),
                damaged: Vec::new(),
                committed: header.committed,
            };
            found.take(&batch, RING_BLOCKS_MIN).unwrap();
        }
        found
    }
}

pub(super) fn answered(effects: &[Effect]) -> Vec<(Token, bool)> {
    let mut answers = Vec::new();
    for effect in effects {
        if let Effect::Answer { token, result } = effect {
            answers.push((*token, result.is_ok()));
        }
    }
    answers
}

pub(super) fn stable(effects: &[Effect]) -> Option<(Slot, Sequence)> {
    for effect in effects {
        if let Effect::Stable { slot, below } = effect {
            return Some((*slot, *below));
        }
    }
    None
}

#[test]
fn what_a_damaged_batch_held_is_lost_by_a_number_that_is_committed() {
    let mut ring = Ring::new();
    ring.write(MIRRORED, 0..8, 1);
    ring.batch();
    ring.commit(1);
    for stamp in 2..6 {
        ring.write(MIRRORED, 8..16, stamp);
    }
    ring.batch();
    ring.apply(Event::BatchLost(&(0..u32::MAX)));
    let lost = ring.machine.all_bare();
    let numbers: Vec<Sequence> = lost.iter().map(|it| it.by).collect();
    assert_eq!(numbers, [Sequence(1)], "{lost:?}");
}

#[test]
fn what_is_stable_is_read_destaged_and_acknowledged_when_it_is_committed() {
    let mut ring = Ring::new();
    let first = ring.write(MIRRORED, 0..1, 11);
    let second = ring.write(MIRRORED, 1..2, 12);
    let alone = ring.write(ALONE, 0..1, 13);
    let effects = ring.batch();
    assert_eq!(answered(&effects), [(alone, true)], "it has one copy");
    assert_eq!(stable(&effects), Some((MIRRORED, Sequence(3))));
    assert!(!ring.reads_log(MIRRORED, &(0..2)) && ring.reads_log(ALONE, &(0..1)));
    assert!(ring.machine.oldest(1000).is_none(), "nothing is destaged");
    let order = ring.machine.order(MIRRORED);
    let known = [order.next, order.stable, order.committed].map(|it| it.0);
    assert_eq!((known, order.epochs.len()), ([3, 3, 1], 1));
    assert_eq!(order.role, Role::Owner { epoch: 1 });

    let effects = ring.commit(1);
    assert_eq!(answered(&effects), [(first, true)]);
    assert!(ring.reads_log(MIRRORED, &(0..1)) && !ring.reads_log(MIRRORED, &(1..2)));
    assert!(ring.machine.oldest(1000).is_none(), "a part of it is not");
    let effects = ring.commit(2);
    assert_eq!(answered(&effects), [(second, true)]);
    assert_eq!(ring.machine.oldest(1000).map(|it| it.end()), Some(3));
}

#[test]
fn whoever_opens_the_log_finds_what_it_says_is_committed_and_keeps_the_rest() {
    let mut ring = Ring::new();
    ring.write(MIRRORED, 0..1, 11);
    ring.batch();
    let pages = |found: &replay::Found| found.index().pages();
    assert_eq!(pages(&ring.found()), 0, "nobody knows who has it");
    ring.commit(1);
    ring.write(MIRRORED, 0..1, 12);
    ring.batch();
    let found = ring.found();
    assert_eq!(
        pages(&found),
        1,
        "the second batch says it of the first one"
    );
    let at = (ring.batches[1].at + u64::from(ring.batches[1].data_at[0])) / SECTOR;
    let lies = found.index().find(Slot(0), 0..1);
    assert_eq!(lies[0].source, Source::Log(u32::try_from(at).unwrap()));
}

#[test]
fn what_a_later_epoch_makes_void_is_answered_as_unknown_and_never_found() {
    let mut ring = Ring::new();
    let first = ring.write(MIRRORED, 0..1, 11);
    let second = ring.write(MIRRORED, 1..2, 12);
    ring.batch();
    assert_eq!(answered(&ring.commit(1)), [(first, true)]);
    let effects = ring.begin(5, 2);
    assert!(
        matches!(effects[0], Effect::Submitted { .. }),
        "{effects:?}"
    );
    let effects = ring.batch();
    assert_eq!(answered(&effects), [(second, false)]);
    assert_eq!(stable(&effects), Some((MIRRORED, Sequence(3))));
    let begins = |epoch, first| Epoch {
        epoch,
        first: Sequence(first),
    };
    let wanted = RingOrder {
        next: Sequence(3),
        stable: Sequence(3),
        committed: Sequence(2),
        epochs: vec![begins(1, 0), begins(5, 2)],
        role: Role::Owner { epoch: 5 },
    };
    assert_eq!(ring.machine.order(MIRRORED), wanted);
    ring.commit(2);
    let still = ring.machine.order(MIRRORED).committed;
    assert_eq!(still, Sequence(2), "the owner before says it");
    ring.commit_of(5, 3);
    assert!(!ring.reads_log(MIRRORED, &(1..2)), "it is void");
    ring.seal();
    let found = ring.found();
    assert_eq!(found.index().pages(), 1);
    assert!(found.index().is_clear(Slot(0), 1..2));
}

#[test]
fn where_the_log_fails_nobody_waits_for_a_commit() {
    let mut ring = Ring::new();
    let first = ring.write(MIRRORED, 0..1, 11);
    ring.batch();
    let second = ring.write(MIRRORED, 1..2, 12);
    let mut effects = ring.apply(Event::WriteNext(&|_, _| true));
    let Some(Effect::WriteBatch(write)) = effects.pop() else {
        panic!("something waits")
    };
    let failure = Failure {
        why: "it is gone".to_owned(),
        refused: None,
    };
    let (number, result) = (write.number, Err(failure));
    let effects = ring.apply(Event::BatchEnded { number, result });
    assert_eq!(answered(&effects), [(first, false), (second, false)]);
    assert!(answered(&ring.commit(2)).is_empty(), "each once");
}

#[test]
fn what_waits_when_an_epoch_begins_is_answered_as_unknown_and_gets_into_no_batch() {
    let mut ring = Ring::new();
    let own = ring.write(MIRRORED, 0..1, 11);
    let other = ring.write(ALONE, 0..1, 12);
    let effects = ring.begin(3, 1);
    assert_eq!(answered(&effects), [(own, false)]);
    let refused = |effects: &Effects| match effects[..] {
        [Effect::EpochRefused(refused)] => Some(refused),
        _ => None,
    };
    let second = ring.begin(4, 1);
    assert_eq!(refused(&second), Some(EpochRefused::Begins));
    let late = ring.write(MIRRORED, 1..2, 13);
    // First the epoch by itself, then the others.
    let woken = ring.batch();
    assert!(woken.iter().any(|it| matches!(it, Effect::WakeOthers)));
    assert_eq!(answered(&ring.commit_of(3, 2)).len(), 1);
    assert_eq!(answered(&ring.batch()), [(other, true)]);
    assert_eq!(answered(&ring.commit_of(3, 3)), [(late, true)]);
    let newest = Some(EpochRefused::Late { newest: 3 });
    assert_eq!(refused(&ring.begin(3, 9)), newest);
    let below = Sequence(3);
    let committed = Some(EpochRefused::Committed { below });
    assert_eq!(refused(&ring.begin(4, 2)), committed);
}

#[test]
fn what_waits_for_other_copies_holds_up_no_neighbour_and_ends_a_drain() {
    let mut ring = Ring::new();
    let token = ring.write(MIRRORED, 0..1, 11);
    let effects = ring.batch();
    let held = effects
        .iter()
        .any(|it| matches!(it, Effect::Held(held) if *held == token));
    assert!(held, "it takes nothing from who waits for the log");
    assert!(ring.machine.is_drained(0), "what is left waits for others");
    // A flush waits for what is of its volume.
    let mut changes = Changes::default();
    let waiting = |slot| Waiting {
        slot,
        sectors: 0..1,
        fence: Fence::default(),
        bytes: 0,
    };
    changes.push(waiting(MIRRORED));
    assert!(!changes.add_sync_point(ALONE) && changes.add_sync_point(MIRRORED));
    for at in 1..2048 {
        ring.write(MIRRORED, at % 3..at % 3 + 1, at);
        if at % 64 == 0 {
            ring.batch();
        }
    }
    ring.batch();
    assert!(!ring.machine.has_share(MIRRORED) && ring.machine.has_share(ALONE));
    let effects = ring.commit(1);
    assert!(effects.iter().any(|it| matches!(it, Effect::WakeOthers)));
    assert!(!ring.machine.has_share(MIRRORED), "few, and too large");
    ring.commit(2000);
    assert!(ring.machine.has_share(MIRRORED));
    assert!(!ring.machine.is_drained(0), "some are to be destaged");
}

#[test]
fn a_mirror_that_is_removed_gives_out_what_was_held_and_a_volume_that_is_gone_gives_it_up() {
    for gone in [false, true] {
        let mut ring = Ring::new();
        let first = ring.write(MIRRORED, 0..1, 11);
        ring.batch();
        let second = ring.write(MIRRORED, 1..2, 12);
        if gone {
            let note = Note {
                slot: MIRRORED,
                range: range(&(0..0)),
                kind: Kind::Gone,
                now: Now(9),
            };
            ring.apply(Event::Note(note));
            let effects = ring.batch();
            let answers = answered(&effects);
            assert!(answers.contains(&(first, false)) && answers.contains(&(second, false)));
            assert_eq!(answers.len(), 3, "{answers:?}");
            assert_eq!(ring.machine.oldest(1000).map(|it| it.end()), Some(4));
            continue;
        }
        ring.batch();
        let effects = ring.open(Commit::AtOnce);
        assert_eq!(answered(&effects), [(first, true), (second, true)]);
        assert!(ring.reads_log(MIRRORED, &(0..2)));
        let third = ring.write(MIRRORED, 0..1, 13);
        assert_eq!(answered(&ring.batch()), [(third, true)]);
    }
}

#[test]
fn what_waits_for_other_copies_is_relocated_where_room_is_scarce_and_read_at_its_new_place() {
    let mut ring = Ring::new();
    let token = ring.write(MIRRORED, 0..1, 11);
    ring.batch();
    for stamp in 0..3 {
        assert!(ring.machine.oldest(1000).is_none(), "there is room");
        ring.write(ALONE, 0..1024, 20 + stamp);
        ring.batch();
    }
    let segment = ring.machine.oldest(1).expect("it keeps room from others");
    let held = ring.machine.held_in(&segment);
    assert_eq!((segment.first(), held.len()), (2, 1));
    let relocated = [(held[0].change.relocated(), data(&(0..1), 11))];
    let mut effects = ring.apply(Event::Relocate(&relocated));
    let Some(Effect::WriteBatch(write)) = effects.pop() else {
        panic!("there is room for it")
    };
    let to = u32::try_from((write.at + u64::from(write.data_at[0])) / SECTOR).unwrap();
    let number = write.number;
    let result = Ok(());
    assert_eq!(
        ring.machine.held_there(&held[0]).len(),
        1,
        "until it is stable"
    );
    ring.apply(Event::BatchEnded { number, result });
    assert_eq!(ring.machine.held_there(&held[0]), []);
    let order = ring.machine.order(MIRRORED);
    assert_eq!((order.stable, order.committed), (Sequence(2), Sequence(1)));
    // The neighbour's batches behind it may be destaged now.
    ring.apply(Event::Destage(Destage::Release(3)));
    assert_eq!(ring.machine.oldest(1000).map(|it| it.end()), Some(6));
    assert!(!ring.reads_log(MIRRORED, &(0..1)));
    assert_eq!(answered(&ring.commit(1)), [(token, true)]);
    let lies = ring.machine.index().find(MIRRORED, 0..1);
    assert_eq!(lies[0].source, Source::Log(to));
}

#[test]
fn an_epoch_that_only_the_history_knows_makes_older_ones_late() {
    let mut ring = Ring::new();
    let (commit, first) = (Commit::Later, Sequence(3));
    let effects = ring.apply(Event::Open {
        id: VolumeId(9),
        facts: OpenFacts { commit, ..FACTS },
        history: Some(KnownByHistory {
            next: Sequence(5),
            epoch: Some(Epoch { epoch: 7, first }),
        }),
    });
    let Some(Effect::Opened(slot)) = effects.first() else {
        panic!("{effects:?}")
    };
    let slot = *slot;
    let begin = |ring: &mut Ring, epoch| {
        ring.apply(Event::BeginEpoch(BeginEpoch {
            slot,
            epoch,
            first: Sequence(5),
            now: Now(8),
        }))
    };
    for late in [6, 7] {
        let effects = begin(&mut ring, late);
        let newest = EpochRefused::Late { newest: 7 };
        assert!(matches!(effects[..], [Effect::EpochRefused(it)] if it == newest));
    }
    let effects = begin(&mut ring, 8);
    assert!(
        matches!(effects[0], Effect::Submitted { .. }),
        "{effects:?}"
    );
    assert_eq!(ring.machine.order(slot).epochs.len(), 1, "it is not stable");
}

/// Whether one who waits until all is destaged, and it is not, wakes the destager.
fn drain_wakes(rests: bool) -> bool {
    let mut ring = Ring::new();
    ring.write(ALONE, 0..1, 5);
    ring.apply(Event::Destage(Destage::Rest(rests)));
    let (machine, waiters) = (RefCell::new(ring.machine), Waiters::default());
    let mut cx = Context::from_waker(Waker::noop());
    let drained = pin!(waiters.until(&machine, Condition::IsDrained { rounds: 9 }));
    assert!(drained.poll(&mut cx).is_pending());
    pin!(waiters.destager_is_woken()).poll(&mut cx).is_ready()
}

#[test]
fn who_waits_until_all_is_destaged_leaves_a_destager_alone_that_rests() {
    assert!(drain_wakes(false));
    // That it rests wakes whoever waits: they would wake each other for ever.
    assert!(!drain_wakes(true));
}
