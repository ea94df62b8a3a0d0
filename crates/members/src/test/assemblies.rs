//! Pools whose members come, go, crash, and come back as copies.

use super::{CHUNK, STRIPE, lun, pool};
use crate::assembly::{Assembly, Refused, Seen, State, Unreadable, assemble};
use crate::superblock::{DATA_OFFSET, Found, Layout, Superblock, find, offset_of};

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

    fn inspect(&self, present: &[usize]) -> Vec<Seen> {
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
        let assembly = assemble(&self.inspect(present)).unwrap();
        for (place, block) in assembly.next(change).into_iter().take(reaches) {
            assert_eq!(block.check(), Ok(()));
            self.0[present[place]] = block;
        }
        assembly
    }

    /// As a node that opens the pool: before it touches data, two events, and three to whoever
    /// lagged.
    fn open(&mut self, present: &[usize]) {
        let found = assemble(&self.inspect(present)).unwrap().table.event;
        while !(assemble(&self.inspect(present)).unwrap()).has_gone_on_since(found) {
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
                let after = assemble(&disks.inspect(&order)).unwrap();
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
    let two = assemble(&disks.inspect(&[0, 2])).unwrap();
    assert_eq!(two.states[1], State::Absent);
    assert!(!two.is_complete());
    assert_eq!(two.missing_for(lun(1)), []);
    assert_eq!(two.missing_for(lun(2)), [1]);
    // The others are used without it, as often as anybody likes; nothing of its own has changed
    // meanwhile.
    for _ in 0..5 {
        disks.open(&[0, 2]);
    }
    let three = assemble(&disks.inspect(&ALL)).unwrap();
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
        let found = assemble(&mixed.inspect(&ALL)).unwrap();
        assert_eq!(found.states[1], State::Stale { seen: 1, event: 3 });
        assert!(!found.is_complete());
        // Also where it is the majority that is old.
        mixed.0[2] = old.0[2].clone();
        let found = assemble(&mixed.inspect(&ALL)).unwrap();
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
        let found = assemble(&forked.inspect(&ALL)).unwrap();
        assert_eq!(found.states[0], State::Diverged { seen: 0, event: 5 });
    }
}

#[test]
fn what_is_seen_twice_or_has_shrunk_or_has_other_blocks_is_not_used() {
    let mut disks = Disks::new(STRIPE);
    disks.open(&ALL);
    let mut all = disks.inspect(&[0, 1, 2, 1]);
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
    let mut all = disks.inspect(&[0, 1]);
    all.extend(other.inspect(&[2]));
    assert_eq!(assemble(&all), Err(Refused::SeveralPools(0, 2)));
    assert_eq!(assemble(&[missing("x")]), Err(Refused::NoMember));
    let mut forked = Disks::new(STRIPE);
    forked.0[1].resize(lun(3), CHUNK).unwrap();
    assert!(matches!(
        assemble(&forked.inspect(&ALL)),
        Err(Refused::Contradiction(..))
    ));
}

/// What a power cut makes of the write that it meets.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Cut {
    /// It never came.
    Nothing,
    /// It came half.
    Torn,
    /// It is stable.
    Whole,
    /// Its sync fails, and what the system says of it until the power goes is not on the disk.
    Lie,
}

/// A member with its two places, on the disk and as the system has them.
#[derive(Clone)]
struct Places {
    disk: [Vec<u8>; 2],
    cache: [Vec<u8>; 2],
}

impl Places {
    fn inspect(&self, number: usize) -> Seen {
        let [even, odd] = &self.cache;
        Seen {
            found: find(even, odd).map_err(Unreadable::Damaged),
            ..seen(&format!("/dev/{number}"), &pool(STRIPE, &[1]))
        }
    }

    /// `false`: it ends here.
    fn write(&mut self, block: &Superblock, cut: Cut) -> bool {
        assert_eq!(block.check(), Ok(()));
        let place = usize::from(offset_of(block.event) != 0);
        let bytes = block.encode().unwrap();
        let torn = || {
            let same = bytes == self.disk[place];
            if same { bytes.clone() } else { vec![7; 4096] }
        };
        match cut {
            Cut::Nothing => {}
            Cut::Torn => (self.disk[place], self.cache[place]) = (torn(), torn()),
            Cut::Whole => (self.disk[place], self.cache[place]) = (bytes.clone(), bytes),
            Cut::Lie => self.cache[place] = bytes,
        }
        cut == Cut::Whole
    }
}

/// An opening whose write number `at` meets this; how many writes there were.
fn opening(disks: &mut [Places], there: &[usize], at: usize, cut: Cut) -> usize {
    let seen: Vec<Seen> = there.iter().map(|it| disks[*it].inspect(*it)).collect();
    let mut assembly = assemble(&seen).unwrap();
    for (which, state) in there.iter().zip(&assembly.states) {
        let place = assembly.place_of(u16::try_from(*which).unwrap());
        assert!(place.is_some(), "{which} of {there:?}: {state:?}");
    }
    let found = assembly.table.event;
    let mut writes = 0;
    let mut write = |blocks: &[(usize, Superblock)]| {
        blocks.iter().all(|(place, block)| {
            let meets = if writes == at { cut } else { Cut::Whole };
            writes += 1;
            disks[there[*place]].write(block, meets)
        })
    };
    let mut goes_on = write(&assembly.again(&seen));
    while goes_on && !assembly.has_gone_on_since(found) {
        let blocks = assembly.next(|_| ());
        assert!(!blocks.is_empty());
        goes_on = write(&blocks);
        assembly = assembly.after(&blocks);
    }
    writes
}

const CUTS: [Cut; 4] = [Cut::Nothing, Cut::Torn, Cut::Lie, Cut::Whole];

/// All openings that are cut one after the other, to this depth, with a member away from some of
/// them: nobody is lost.
fn open_on(disks: &[Places], depth: usize, openings: &mut usize) {
    *openings += 1;
    let writes = opening(&mut disks.to_vec(), &ALL, usize::MAX, Cut::Whole);
    assert!(writes <= 12, "{writes}");
    if depth == 0 {
        return;
    }
    for there in [&ALL[..], &[1, 2]] {
        let all = opening(&mut disks.to_vec(), there, usize::MAX, Cut::Whole);
        for (at, cut) in (0..=all).flat_map(|at| CUTS.map(|cut| (at, cut))) {
            let mut next = disks.to_vec();
            opening(&mut next, there, at, cut);
            if cut == Cut::Lie {
                killed(&next, there, depth, openings);
            }
            power_goes(&mut next);
            open_on(&next, depth - 1, openings);
        }
    }
}

/// The process that got the error is killed: the next opening finds what is not on the disk, and
/// may be cut off as well.
fn killed(disks: &[Places], there: &[usize], depth: usize, openings: &mut usize) {
    let mut whole = disks.to_vec();
    let all = opening(&mut whole, there, usize::MAX, Cut::Whole);
    open_on(&whole, depth - 1, openings);
    for at in 0..all {
        let mut torn = disks.to_vec();
        opening(&mut torn, there, at, Cut::Torn);
        power_goes(&mut torn);
        open_on(&torn, 0, openings);
    }
}

fn power_goes(disks: &mut [Places]) {
    for disk in disks {
        disk.cache = disk.disk.clone();
    }
}

#[test]
fn openings_that_power_cuts_end_one_after_the_other_lose_no_member() {
    let mut disks = Vec::new();
    for block in Disks::new(Layout::Span).0 {
        let nothing = [Vec::new(), Vec::new()];
        let mut places = Places {
            disk: nothing.clone(),
            cache: nothing,
        };
        places.write(&block, Cut::Whole);
        disks.push(places);
    }
    opening(&mut disks, &ALL, usize::MAX, Cut::Whole);
    let mut openings = 0;
    open_on(&disks, 2, &mut openings);
    assert!(openings > 10_000, "{openings}");
}
