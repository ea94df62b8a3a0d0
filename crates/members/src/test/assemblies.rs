//! Pools whose members come, go, crash, and come back as copies.

use super::{CHUNK, STRIPE, lun, pool};
use crate::assembly::{Assembly, Refused, Seen, State, Unreadable, assemble};
use crate::superblock::{DATA_OFFSET, Found, Layout, Superblock};

fn seen(path: &str, block: &Superblock) -> Seen {
    Seen {
        path: path.to_owned(),
        serial: Some(format!("serial of {path}")),
        bytes: DATA_OFFSET + 10 * CHUNK,
        physical_block_bytes: 4096,
        found: Ok(Found {
            superblock: block.clone(),
            other: None,
        }),
    }
}

fn missing(path: &str) -> Seen {
    Seen {
        found: Err(Unreadable::Missing("No such file or directory".to_owned())),
        ..seen(path, &pool(STRIPE, &[1]))
    }
}

/// Disks of a pool: what stands on each.
#[derive(Clone)]
struct Disks(Vec<Superblock>);

impl Disks {
    fn new(layout: Layout) -> Self {
        let first = pool(layout, &[10, 10, 10]);
        let of = |member| Superblock {
            member,
            ..first.clone()
        };
        Self((0..3).map(of).collect())
    }

    fn look(&self, present: &[usize]) -> Vec<Seen> {
        let seen_of = |at: &usize| seen(&format!("/dev/{at}"), &self.0[*at]);
        present.iter().map(seen_of).collect()
    }

    /// One event, written to the first `reaches` of the members that are there.
    fn write(
        &mut self,
        present: &[usize],
        reaches: usize,
        change: impl FnOnce(&mut Superblock),
    ) -> Assembly {
        let assembly = assemble(&self.look(present)).unwrap();
        for (place, block) in assembly.next(change).into_iter().take(reaches) {
            assert_eq!(block.check(), Ok(()));
            self.0[present[place]] = block;
        }
        assembly
    }

    /// As a node that opens the pool: two events before it touches data.
    fn open(&mut self, present: &[usize]) {
        for _ in 0..2 {
            self.write(present, present.len(), |_| ());
        }
    }
}

const ALL: [usize; 3] = [0, 1, 2];

#[test]
fn a_crash_at_any_write_leaves_a_pool_that_is_complete() {
    for layout in [STRIPE, Layout::Span] {
        for reaches in 0..=3 {
            let mut disks = Disks::new(layout);
            disks.open(&ALL);
            disks.write(&ALL, reaches, |block| {
                block.resize(lun(1), 2 * CHUNK).unwrap();
            });
            // Whoever comes next finds old or new, in any order of the disks.
            for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
                let after = assemble(&disks.look(&order)).unwrap();
                assert!(after.is_complete(), "{reaches}: {:?}", after.states);
                assert_eq!(after.table.luns.len(), usize::from(reaches > 0));
            }
            disks.open(&ALL);
            assert!(disks.0.iter().all(|block| block.event == disks.0[0].event));
        }
    }
}

#[test]
fn a_member_that_is_away_is_named_and_is_taken_back_when_it_comes() {
    let mut disks = Disks::new(Layout::Span);
    disks.open(&ALL);
    disks.write(&ALL, 3, |block| {
        block.resize(lun(1), 4 * CHUNK).unwrap();
        block.resize(lun(2), 12 * CHUNK).unwrap();
    });
    let two = assemble(&disks.look(&[0, 2])).unwrap();
    assert_eq!(two.states[1], State::Absent);
    assert!(!two.is_complete());
    assert_eq!(two.missing_for(lun(1)), []);
    assert_eq!(two.missing_for(lun(2)), [1]);
    // The others are used without it, as often as anybody likes; nothing of its own has changed meanwhile.
    for _ in 0..5 {
        disks.open(&[0, 2]);
    }
    let three = assemble(&disks.look(&ALL)).unwrap();
    assert!(three.is_complete(), "{:?}", three.states);
}

#[test]
fn an_old_copy_of_a_member_is_stale_and_never_used() {
    for layout in [STRIPE, Layout::Span] {
        let mut disks = Disks::new(layout);
        disks.open(&ALL);
        let old = disks.clone();
        disks.open(&ALL);
        let mut mixed = disks.clone();
        mixed.0[1] = old.0[1].clone();
        let found = assemble(&mixed.look(&ALL)).unwrap();
        assert_eq!(found.states[1], State::Stale { seen: 1, event: 3 });
        assert!(!found.is_complete());
        // Also where it is the majority that is old.
        mixed.0[2] = old.0[2].clone();
        let found = assemble(&mixed.look(&ALL)).unwrap();
        assert_eq!(found.table.event, 5);
        assert!(matches!(found.states[2], State::Stale { .. }));
        // Used alone for a while, the copy is the one that went on; then the others are old.
        let mut alone = old;
        for _ in 0..3 {
            alone.open(&[1]);
        }
        let forked = Disks(vec![
            disks.0[0].clone(),
            alone.0[1].clone(),
            disks.0[2].clone(),
        ]);
        let found = assemble(&forked.look(&ALL)).unwrap();
        assert_eq!(found.states[0], State::Diverged { seen: 0, event: 5 });
    }
}

#[test]
fn what_is_seen_twice_or_has_shrunk_or_has_other_blocks_is_not_used() {
    let mut disks = Disks::new(STRIPE);
    disks.open(&ALL);
    let mut all = disks.look(&[0, 1, 2, 1]);
    let found = assemble(&all).unwrap();
    assert_eq!(found.states[1], State::Twice(1, 3));
    all.pop();
    all[2].bytes -= 1;
    all[1].physical_block_bytes = 512;
    let found = assemble(&all).unwrap();
    let wanted = [State::Present(0), State::OtherBlocks(1), State::TooSmall(2)];
    assert_eq!(found.states, wanted);
    all.push(missing("/dev/gone"));
    let found = assemble(&all).unwrap();
    assert_eq!(
        found.strangers,
        [(3, "No such file or directory".to_owned())]
    );
}

#[test]
fn members_of_two_pools_or_of_none_are_refused() {
    let disks = Disks::new(STRIPE);
    let mut other = Disks::new(STRIPE);
    for block in &mut other.0 {
        block.pool.0[0] ^= 1;
    }
    let mut all = disks.look(&[0, 1]);
    all.extend(other.look(&[2]));
    assert_eq!(assemble(&all), Err(Refused::SeveralPools(0, 2)));
    assert_eq!(assemble(&[missing("x")]), Err(Refused::NoMember));
    let mut forked = Disks::new(STRIPE);
    forked.0[1].resize(lun(3), CHUNK).unwrap();
    assert!(matches!(
        assemble(&forked.look(&ALL)),
        Err(Refused::Contradiction(..))
    ));
}
