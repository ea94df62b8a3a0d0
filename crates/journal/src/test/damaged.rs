//! What waits for other copies and was relocated, in a log where some of its places are damaged:
//! what is right somewhere is found, and what is right nowhere is lost, and never something else.

use super::world::{Pending, Target, World};
use crate::*;
use std::ops::Range;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

const COPIES: VolumeId = VolumeId(0);
const ALONE: VolumeId = VolumeId(1);

/// Sectors of the change that is relocated.
const SECTORS: Range<u64> = 16..24;

const FIRST_HALF: Range<u64> = 16..20;
const SECOND_HALF: Range<u64> = 20..24;

/// What is done to the place of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    None,
    /// A bit of its data is another one.
    Data,
    /// A bit of its batch's header.
    Header,
}

impl Harm {
    const ALL: [Self; 3] = [Self::None, Self::Data, Self::Header];
}

/// A place of a part of the change.
struct Place {
    sectors: Range<u64>,
    batch_at: u64,
    data_at: u64,
    harm: Harm,
}

struct Bed {
    world: World,
    log: Log,
    places: Vec<Place>,
}

/// What each sector of the change has: eight bytes that say which one it is.
fn stamp(sector: u64) -> u64 {
    0x5EED_0000_0000_0000 | sector
}

fn data(sectors: &Range<u64>) -> Buf {
    let bytes: Vec<u8> = sectors
        .clone()
        .flat_map(|sector| stamp(sector).to_le_bytes().repeat(64))
        .collect();
    Buf::copy_of(&bytes)
}

fn range(sectors: &Range<u64>) -> LbaRange {
    let blocks = BlockCount(sectors.end - sectors.start);
    LbaRange::new(Lba(sectors.start), blocks).unwrap()
}

impl Bed {
    /// The change is stable and held.
    fn new() -> Self {
        let mut world = World::new(1, 600);
        let mut ring = world.open();
        world.settle(&mut ring);
        let mut bed = Self {
            world,
            log: Log::new(ring),
            places: Vec::new(),
        };
        bed.serve(0);
        bed.submit(COPIES, &SECTORS);
        let write = bed.step();
        bed.is_at(&write, SECTORS);
        bed.submit(ALONE, &(0..3));
        bed.step();
        bed
    }

    fn serve(&mut self, next: u64) {
        self.log.serve(ALONE, Sequence(9));
        self.log.serve(COPIES, Sequence(next));
        self.log.commits(COPIES, Commit::Later);
    }

    fn submit(&mut self, volume: VolumeId, sectors: &Range<u64>) {
        let wanted = Wanted {
            volume,
            range: range(sectors),
            block_size: BlockSize::B512,
            kind: Kind::Write,
            data: data(sectors),
        };
        self.log.submit(Token(1), wanted).unwrap();
    }

    /// The next batch is stable.
    fn step(&mut self) -> BatchWrite {
        loop {
            match self.log.next_step() {
                Some(Next::Write(write)) => {
                    self.is_written(&write);
                    return write;
                }
                Some(Next::Checkpoint(write)) => self.checkpoint(&write),
                other => panic!("{other:?}"),
            }
        }
    }

    fn checkpoint(&mut self, write: &CheckpointWrite) {
        let slot = Target::Slot(write.slot.into());
        self.world.put(&slot, &write.bytes, |_| true);
        self.log.checkpoint_written(true);
    }

    fn is_written(&mut self, write: &BatchWrite) {
        let target = Target::Log(write.at);
        self.world.put(&target, &write.bytes.to_vec(), |_| true);
        self.log.written(write.number, true);
    }

    fn is_at(&mut self, write: &BatchWrite, sectors: Range<u64>) {
        self.places.push(Place {
            sectors,
            batch_at: write.at,
            data_at: write.at + u64::from(write.data_at[0]),
            harm: Harm::None,
        });
    }

    /// These sectors of it are relocated, by themselves.
    fn relocate(&mut self, sectors: &Range<u64>) {
        let held = self.log.held_as(COPIES, Sequence(0));
        let change = held[0].change;
        let change = Change {
            range: range(sectors),
            ..change
        };
        let write = self.log.relocate(&[(change, data(sectors))]).unwrap();
        self.is_written(&write);
        self.is_at(&write, sectors.clone());
    }

    fn flip(&mut self) {
        for place in &self.places {
            let at = match place.harm {
                Harm::None => continue,
                Harm::Data => place.data_at + 9,
                Harm::Header => place.batch_at + 60,
            };
            self.world.log[usize::try_from(at).unwrap()] ^= 4;
        }
    }

    /// The power fails, and somebody opens what there is.
    fn crash(&mut self) {
        let seal = self.log.seal().expect("nothing says yet that it is stable");
        self.is_written(&seal);
        self.flip();
        let (found, ring) = self.world.replay();
        let mut ring = ring.unwrap();
        let mut uncommitted = Uncommitted::default();
        for batch in &found {
            let committed = uncommitted.found(batch, self.world.blocks);
            let is_of_copies = |it: &Stable| it.change.volume == COPIES;
            assert!(!committed.iter().any(is_of_copies), "nobody said so");
        }
        let opening = ring.opening().unwrap();
        self.world.pending.push(Pending {
            target: Target::Slot(opening.slot.into()),
            bytes: opening.bytes,
            number: None,
        });
        self.world.settle(&mut ring);
        self.log = Log::with_uncommitted(ring, uncommitted);
        self.serve(1);
    }

    /// All that is held is relocated once more, what is lost as such, and what was there is given
    /// up.
    fn leaves(&mut self) {
        let held = self.log.held_as(COPIES, Sequence(0));
        let again = held.iter().map(|it| {
            let mut change = it.change;
            if it.is_damaged {
                change.kind = Kind::Lost;
                return (change, Buf::empty());
            }
            (change, self.lies(it))
        });
        let again: Vec<(Change, Buf)> = again.collect();
        let write = self.log.relocate(&again).unwrap();
        self.is_written(&write);
        self.leave(write.number);
    }

    /// What is before this batch is given up, and no checkpoint leads there.
    fn leave(&mut self, number: u64) {
        self.log.release(number);
        for _ in 0..2 {
            let Some(Next::Checkpoint(write)) = self.log.next_step() else {
                panic!("one in each slot")
            };
            self.checkpoint(&write);
        }
    }

    /// A part of the first change is relocated once more, and all below a number is committed
    /// before that is stable: what a replay gives out that finds it, and the header behind it.
    fn committed_on_its_way(
        &mut self,
        (part, sectors): (usize, Range<u64>),
        below: u64,
    ) -> Vec<Stable> {
        let change = self.log.held_as(COPIES, Sequence(0))[part].change;
        let on_its_way = self.log.relocate(&[(change, data(&sectors))]).unwrap();
        let committed = self.log.commit(COPIES, (0, Sequence(below)));
        assert_eq!(committed.len(), 2);
        self.submit(ALONE, &(0..3));
        let Some(Next::Write(next)) = self.log.next_step() else {
            panic!("there is room")
        };
        for write in [on_its_way, next] {
            let target = Target::Log(write.at);
            self.world.put(&target, &write.bytes.to_vec(), |_| true);
        }
        let (found, _) = self.world.replay();
        let mut uncommitted = Uncommitted::default();
        let given = found
            .iter()
            .flat_map(|batch| uncommitted.found(batch, self.world.blocks));
        given.filter(|it| it.change.volume == COPIES).collect()
    }

    fn lies(&self, it: &Stable) -> Buf {
        let sectors = it.change.sectors();
        let len = usize::try_from(sectors.end - sectors.start).unwrap() * 512;
        let at = usize::try_from(it.data_at).unwrap();
        Buf::copy_of(&self.world.log[at..at + len])
    }

    /// Commits it: what of it is right somewhere is given out so, and the rest as lost.
    fn check(&mut self, when: &str) {
        let committed = self.log.commit(COPIES, (0, Sequence(1)));
        let mut seen = SECTORS.start;
        for it in &committed {
            let sectors = it.change.sectors();
            assert_eq!(sectors.start, seen, "{when}: each sector once, in order");
            seen = sectors.end;
            let is_lost = it.is_damaged || it.change.kind == Kind::Lost;
            for sector in sectors.clone() {
                let is_right = |it: &Place| it.harm == Harm::None && it.sectors.contains(&sector);
                assert_eq!(
                    !is_lost,
                    self.places.iter().any(is_right),
                    "{when}: {sector}"
                );
            }
            if !is_lost {
                assert_eq!(self.lies(it).to_vec(), data(&sectors).to_vec(), "{when}");
            }
        }
        assert_eq!(seen, SECTORS.end, "{when}: all of it");
    }
}

/// What is relocated, one batch each.
const RELOCATED: [&[Range<u64>]; 6] = [
    &[SECTORS],
    &[SECTORS, SECTORS],
    &[16..20, 20..24],
    &[FIRST_HALF],
    &[18..22, 16..18, 22..24],
    &[16..20, 20..24, 16..24],
];

/// Every harm to every place.
fn with_every_harm(relocated: &[Range<u64>], mut then: impl FnMut(Bed, &str)) {
    let places = u32::try_from(relocated.len()).unwrap() + 1;
    for case in 0..3_usize.pow(places) {
        let mut bed = Bed::new();
        relocated.iter().for_each(|it| bed.relocate(it));
        let mut rest = case;
        for place in &mut bed.places {
            place.harm = Harm::ALL[rest % 3];
            rest /= 3;
        }
        let harms: Vec<Harm> = bed.places.iter().map(|it| it.harm).collect();
        // Nobody knows any more whose a batch was of which two headers in a row are gone.
        let is_gone = harms.windows(2).any(|two| two == [Harm::Header; 2]);
        if !is_gone || relocated.is_empty() {
            then(bed, &format!("{relocated:?} with {harms:?}"));
        }
    }
}

#[test]
fn of_what_was_relocated_the_newest_place_that_is_right_counts_and_what_is_right_nowhere_is_lost() {
    let cases = found_after_every_harm();
    println!("{cases} cases");
    assert!(cases > 100, "{cases}");
}

pub(super) fn found_after_every_harm() -> usize {
    let mut cases = 0;
    for relocated in RELOCATED {
        with_every_harm(relocated, |mut bed, case| {
            bed.crash();
            bed.check(case);
            cases += 1;
        });
    }
    cases
}

/// What was relocated is damaged, and so is the checkpoint that leaves out where it was before: the
/// one before that leads there, and no header behind it says that it is committed.
pub(super) fn found_by_the_checkpoint_before() {
    let mut bed = Bed::new();
    bed.relocate(&SECTORS);
    let number = bed.log.ring().next_number() - 1;
    bed.log.release(number);
    let Some(Next::Checkpoint(first)) = bed.log.next_step() else {
        panic!("something was released")
    };
    bed.checkpoint(&first);
    let Some(Next::Checkpoint(_)) = bed.log.next_step() else {
        panic!("the other slot")
    };
    bed.submit(ALONE, &(0..3));
    bed.step();
    bed.places[1].harm = Harm::Data;
    bed.world.slots[usize::from(first.slot)][40] ^= 4;
    bed.crash();
    bed.check("by the checkpoint before");
}

/// A change lies in two parts, and the second one is on its way to another place when all of it is
/// committed: the next header says so of the first part's batch, and not of the second one's.
pub(super) fn found_in_parts() {
    let mut bed = Bed::new();
    bed.relocate(&FIRST_HALF);
    bed.relocate(&SECOND_HALF);
    bed.leave(bed.log.ring().next_number() - 2);
    let given = bed.committed_on_its_way((1, SECOND_HALF), 1);
    let sectors = given.iter().map(|it| it.change.sectors());
    let sectors: Vec<Range<u64>> = sectors.collect();
    assert_eq!(sectors, [FIRST_HALF, SECOND_HALF], "all of it");
}

/// Of two changes of the same blocks the older one is on its way behind the newer one when both are
/// committed.
pub(super) fn found_in_order() {
    let mut bed = Bed::new();
    bed.submit(COPIES, &SECTORS);
    bed.step();
    let given = bed.committed_on_its_way((0, SECTORS), 2);
    let numbers = given.iter().map(|it| it.change.sequence.0);
    assert_eq!(numbers.collect::<Vec<u64>>(), [0, 1], "the newer one last");
}

#[test]
fn what_is_relocated_is_given_out_by_number_and_not_by_place() {
    found_in_order();
}

#[test]
fn a_change_in_parts_is_committed_as_a_whole() {
    found_in_parts();
}

#[test]
fn a_place_that_was_left_is_found_by_the_checkpoint_before_and_is_not_taken_for_committed() {
    found_by_the_checkpoint_before();
}

#[test]
fn what_is_lost_stays_so_when_it_is_relocated_and_found_again() {
    for relocated in RELOCATED {
        with_every_harm(relocated, |mut bed, case| {
            bed.crash();
            bed.leaves();
            let harms: Vec<Harm> = bed.places.iter().map(|it| it.harm).collect();
            for place in &mut bed.places {
                place.harm = Harm::None;
            }
            bed.crash();
            for (place, harm) in bed.places.iter_mut().zip(harms) {
                place.harm = harm;
            }
            bed.check(case);
        });
    }
}
