//! A volume that another node orders: hosts' changes are not taken, the owner's are with their
//! numbers, and nobody here waits for them.

use super::super::event::{Append, Follow};
use super::copies::{ALONE, MIRRORED, Ring, answered, stable};
use super::*;
use journal::{AppendRefused, EpochRefused, Role};

impl Ring {
    fn follow(&mut self, epoch: u64, from: u64) -> Effects {
        self.apply(Event::Follow(Follow {
            slot: MIRRORED,
            epoch,
            from: Sequence(from),
            anew: false,
            now: Now(8),
        }))
    }

    fn append(&mut self, epoch: u64, number: u64, sectors: Range<u64>, stamp: u64) -> Effects {
        let change = Change {
            volume: VolumeId(0),
            sequence: Sequence(number),
            range: range(&sectors),
            block_size: BlockSize::B512,
            kind: Kind::Write,
            commit: Commit::Later,
        };
        self.apply(Event::Append(Append {
            slot: MIRRORED,
            epoch,
            change,
            data: data(&sectors, stamp),
            now: Now(9),
        }))
    }

    /// What a host's write is answered that is not taken.
    fn refused(&mut self) -> Option<IoError> {
        let effects = self.apply(Event::Change(HostChange {
            slot: MIRRORED,
            range: range(&(0..1)),
            kind: Kind::Write,
            data: data(&(0..1), 99),
            around: MayGoAround::default(),
            fence: Fence::default(),
            is_current: true,
            now: Now(7),
        }));
        match effects[..] {
            [Effect::Refused(error)] => Some(error),
            _ => None,
        }
    }
}

fn token(effects: &Effects) -> Token {
    let Some(Effect::Submitted { token, .. }) = effects.first() else {
        panic!("{effects:?} is not taken")
    };
    *token
}

#[test]
fn hosts_change_a_volume_at_its_owner_alone() {
    let mut ring = Ring::new();
    let moves = Some(IoError::Transition);
    ring.write(MIRRORED, 0..1, 1);
    let effects = ring.apply(Event::Resign(MIRRORED));
    assert_eq!(answered(&effects).len(), 1, "what waits gets into no batch");
    assert_eq!(ring.refused(), moves, "nobody owns it");
    ring.follow(4, 1);
    assert_eq!(ring.refused(), moves, "another one does");
    let cut = ring.apply(Event::Note(Note {
        slot: MIRRORED,
        range: range(&(7..7)),
        kind: Kind::Cut,
        now: Now(9),
    }));
    assert!(matches!(cut[..], [Effect::Refused(IoError::Transition)]));
    ring.write(ALONE, 0..1, 2);
    ring.begin(5, 1);
    assert_eq!(ring.refused(), None);
    let role = ring.machine.order(MIRRORED).role;
    assert_eq!(role, Role::Owner { epoch: 5 });
    // What the owner before sends is late, and what anybody does.
    let late = ring.append(4, 1, 0..1, 3);
    let newest = AppendRefused::Late { newest: 5 };
    assert!(matches!(late[..], [Effect::AppendRefused(it)] if it == newest));
    let late = ring.follow(4, 1);
    let newest = EpochRefused::Late { newest: 5 };
    assert!(
        matches!(late[..], [Effect::EpochRefused(it)] if it == newest)
            || ring.machine.epoch_begins(MIRRORED)
    );
}

#[test]
fn what_comes_with_its_number_is_waited_for_until_it_is_stable_and_shown_when_it_is_committed() {
    let mut ring = Ring::new();
    ring.follow(2, 1);
    let first = token(&ring.append(2, 1, 0..1, 11));
    let gap = ring.append(2, 3, 1..2, 12);
    let next = AppendRefused::Expected { next: Sequence(2) };
    assert!(matches!(gap[..], [Effect::AppendRefused(it)] if it == next));
    let second = token(&ring.append(2, 2, 1..2, 12));
    let effects = ring.batch();
    assert_eq!(answered(&effects), [(first, true), (second, true)]);
    assert_eq!(stable(&effects), Some((MIRRORED, Sequence(3))));
    assert!(!ring.reads_log(MIRRORED, &(0..2)), "it is not committed");
    assert_eq!(ring.machine.order(MIRRORED).next, Sequence(3));
    // Neighbours are answered, and nothing is kept for who nobody is.
    let alone = ring.write(ALONE, 0..1, 13);
    assert_eq!(answered(&ring.batch()), [(alone, true)]);
    ring.commit_of(1, 3);
    assert!(
        !ring.reads_log(MIRRORED, &(0..1)),
        "the owner before says it"
    );
    assert!(answered(&ring.commit_of(2, 2)).is_empty());
    assert!(ring.reads_log(MIRRORED, &(0..1)) && !ring.reads_log(MIRRORED, &(1..2)));
}

#[test]
fn what_was_on_its_way_when_another_owner_was_followed_is_not_counted_as_stable() {
    let mut ring = Ring::new();
    ring.follow(2, 1);
    ring.append(2, 1, 0..1, 11);
    ring.append(2, 2, 1..2, 12);
    let mut effects = ring.apply(Event::WriteNext(&|_, _| true));
    let Some(Effect::WriteBatch(write)) = effects.pop() else {
        panic!("something waits")
    };
    let effects = ring.follow(3, 2);
    let gives_up = token(&effects);
    assert!(matches!(effects[1], Effect::Followed(Sequence(2))));
    let (number, result) = (write.number, Ok(()));
    let effects = ring.apply(Event::BatchEnded { number, result });
    assert_eq!(stable(&effects), Some((MIRRORED, Sequence(2))), "the first");
    assert_eq!(ring.machine.order(MIRRORED).stable, Sequence(2));
    assert!(answered(&ring.commit_of(3, 3)).is_empty());
    // Of this number there is another change now.
    ring.append(3, 2, 2..3, 13);
    assert_eq!(answered(&ring.batch()), [(gives_up, true)]);
    let effects = ring.batch();
    assert_eq!(stable(&effects), Some((MIRRORED, Sequence(3))));
    assert!(ring.reads_log(MIRRORED, &(0..1)) && ring.reads_log(MIRRORED, &(2..3)));
    assert!(!ring.reads_log(MIRRORED, &(1..2)), "it is void");
}
