//! Small worlds of the machine, in every order of what can happen in them.
//!
//! A world has a log, two volumes of three or four places each, and a few who act: hosts, the
//! writer of batches, the device of the log, the destager, somebody who makes a cut, who exchanges
//! a backing volume, who takes a writer's right. Each order of their steps is gone through, and
//! after each step the world is compared with what hosts know:
//!
//! - Who reads finds what was acknowledged last, or what is under way.
//! - So does who reads after a crash, whichever batches that are under way it finds; and where
//!   power stayed, what a cache has is not lost for what the log still holds.
//! - What the index has is in a batch that was not given up.
//! - Two writes around the log that are under way have no blocks in common.
//! - Nothing is acknowledged before its batch and all before it are stable; acknowledgements come
//!   in the order of their changes; each change is answered once.
//! - What is acknowledged is known to the volume's history before, also what the log does not know
//!   yet.
//! - A sync point is passed when all before it are answered, and not before.
//! - Nothing is under way around the log while a cut is made or a backing volume is exchanged, and
//!   nothing is read from that then.
//! - Whether a request has to wait, or is refused, is as its host can know.
//! - What was on its way when the log failed cannot be read: nobody sees the old and then the new.
//! - Whoever opens the log after a crash gets as unverified exactly those blocks of which it holds
//!   a part, or that a write around it names; whatever may be half-way is among these or is in the
//!   log as a whole.
//! - No change gets into a batch whose writer has lost its right, and none is answered so whose
//!   writer has it.
//! - The room that the log has in use is that of its batches.
//! - When something that somebody may wait for becomes so, who waits is woken.

mod check;
mod copies;
mod hosts;
mod orders;
mod replica;
mod rounds;
mod steps;

use super::destaging::{BareChange, Blocked, Job, Outcome};
use super::event::{
    self, Destage, Effect, Effects, Event, Extent, Failure, HostChange, KnownByHistory,
    MayGoAround, Note, Wait,
};
use super::machine::{Machine, ReadFrom as Found};
use super::volumes::{DestageError, NotNow, OpenFacts};
use super::waiting::Condition;
use super::write_arounds::WriteAroundId;
use crate::replay;
use journal::{
    Again, BLOCK, BatchWrite, Change, Checkpoint, Commit, Header, Index, JournalId, Kind, Log,
    Lying, Piece, RING_BLOCKS_MIN, Replay, SECTOR, Segment, Sequence, Slot, Source,
    Step as ReplayStep, Token, VolumeId, newest, runs,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use units::{BlockSize, Buf, Lba, LbaRange, Now};
use volume::{Fence, FenceSlot, IoError, UnverifiedBlocks};

const OF: (JournalId, u32) = (JournalId([7; 16]), 0);

/// The places of a volume: what hosts write is whole ones.
#[derive(Clone, Copy)]
struct Places {
    count: u64,
    /// Sectors of one place.
    sectors: u64,
}

/// A volume of three sectors.
const SECTORS: Places = Places {
    count: 3,
    sectors: 1,
};

/// A volume of two blocks of those that may be half-way, two places each.
const HALVES: Places = Places {
    count: 4,
    sectors: UnverifiedBlocks::BLOCK / SECTOR / 2,
};

/// What the machine knows of each volume.
const FACTS: OpenFacts = OpenFacts {
    block_size: BlockSize::B512,
    commit: Commit::AtOnce,
};

/// What a sector holds at first.
const NEVER_WRITTEN: u64 = 1;

/// What it holds after zeroes were written.
const ZEROED: u64 = 0;

/// What a host does.
#[derive(Clone, Copy, Debug)]
enum Op {
    Write(u64, u64),
    Zero(u64, u64),
    /// Around the log where it may, and stable.
    Around(u64, u64),
    /// Around the log where it may, into a cache.
    Volatile(u64, u64),
    Read(u64, u64),
    Flush,
    /// The writer loses its right, and has a new one.
    Fence,
}

/// Who acts beside hosts, writer and device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum With {
    /// Rounds of the destager.
    Rounds(u32),
    /// So many of the writes of a round may fail.
    BackingFails,
    /// A write to the log may fail.
    LogFails,
    Cut,
    Exchange,
    Close,
    /// The writer of the first host loses its right, and gets no new one.
    Raise,
}

/// A sector of a volume.
type At = (Slot, u64);

/// A write around the log, as its host sees it.
#[derive(Clone, Debug)]
struct Around {
    id: WriteAroundId,
    token: Token,
    range: Range<u64>,
    stamp: u64,
    how: event::Around,
    /// It may be half-way.
    begun: bool,
    /// The backing volume has it.
    done: bool,
    acknowledged: bool,
    /// Places that a later change has, which was acknowledged before.
    overtaken: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
struct Host {
    slot: Slot,
    program: VecDeque<Op>,
    around: Option<Around>,
    fence: Fence,
    /// The machine has it wait with what it does next.
    waits: bool,
    /// It reads from the backing volume, since that generation of readers.
    reads: Option<u32>,
}

/// A change that was submitted and not answered.
#[derive(Clone, Debug)]
struct Pending {
    slot: Slot,
    range: Range<u64>,
    kind: Kind,
    fence: Fence,
    /// `None`: it changes nothing by itself.
    stamp: Option<u64>,
    /// Its batch, once it is in one.
    batch: Option<u64>,
}

/// A batch that was handed to the device.
#[derive(Clone)]
struct Batch {
    at: u64,
    bytes: Buf,
    header: Header,
    written: bool,
    /// Its write has ended, well or not.
    ended: bool,
    /// It holds what was relocated, or nothing.
    is_relocated: bool,
}

/// A change that is in a batch, as whoever made it knows it.
#[derive(Clone, Debug)]
struct InBatch {
    batch: u64,
    slot: Slot,
    range: Range<u64>,
    kind: Kind,
}

/// Where the destager is.
#[derive(Clone)]
enum Round {
    None,
    Begun(Segment, Option<WriteAroundId>),
    /// Written to the backing volume, and not flushed.
    Written(Segment, Outcome),
    /// What failed is on its way to another place: its batch, and what lies where then.
    Relocating(Segment, u64, Vec<(Lying, u32)>),
}

/// What somebody does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Host(usize),
    /// The second half of a write around the log.
    Around(usize),
    ReadEnds(usize),
    Writer,
    Batch(u64),
    BatchFails(u64),
    Checkpoint,
    Destager,
    DestagerFails,
    Cut,
    Exchange,
    Close,
    Raise,
}

#[derive(Clone)]
struct World {
    places: Places,
    machine: Machine,
    hosts: Vec<Host>,
    /// How often each host lost its right.
    epochs: [u64; 2],
    with: Vec<With>,
    stamps: u64,
    /// What the log's device holds, in batches that are whole.
    batches: BTreeMap<u64, Batch>,
    in_batches: Vec<InBatch>,
    checkpoint_on_its_way: bool,
    writer_is_woken: bool,
    pending: BTreeMap<Token, Pending>,
    answered: u64,
    newest_acknowledged: Option<Token>,
    /// Those that were answered with an error.
    not_done: BTreeSet<Token>,
    sync_points: Vec<(Slot, Token)>,
    backing: BTreeMap<At, u64>,
    /// What the backing volume may hold instead after a crash.
    unflushed: BTreeMap<At, BTreeSet<u64>>,
    /// What is being destaged, or was in vain: the backing volume may have a part of it.
    half_destaged: BTreeSet<At>,
    /// What the histories of the volumes know to have changed.
    in_history: BTreeSet<At>,
    /// What was acknowledged last.
    acknowledged: BTreeMap<At, u64>,
    /// What may be found after a crash beside that: it was acknowledged from a cache.
    cached: BTreeMap<At, BTreeSet<u64>>,
    /// Places of changes that were on their way when the log failed.
    unknown: BTreeSet<At>,
    round: Round,
    failed: bool,
    closed: bool,
    /// How far whoever makes a cut is, or exchanges.
    cut: u32,
    exchange: u32,
    /// Who exchanges waits for readers that are older.
    readers: u32,
    raised: bool,
}

fn range(sectors: &Range<u64>) -> LbaRange {
    LbaRange::between(Lba(sectors.start), Lba(sectors.end)).unwrap()
}

fn data(sectors: &Range<u64>, stamp: u64) -> Buf {
    let mut bytes = Vec::new();
    for _ in sectors.clone() {
        bytes.extend(stamp.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    Buf::copy_of(&bytes)
}

fn stamp_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// Whether a writer has its right, when hosts have lost theirs so often.
fn is_current(epochs: [u64; 2], fence: Fence) -> bool {
    let place = fence.slot.0.checked_sub(1);
    place.is_none_or(|it| fence.epoch >= epochs[it as usize])
}

/// A ring that was just made and opened.
fn new_log() -> Log {
    let mut replay = Replay::new(OF, RING_BLOCKS_MIN, Checkpoint::FIRST);
    loop {
        match replay.step() {
            ReplayStep::Read { at, bytes } => replay.fill(at, Buf::copy_of(&vec![0; bytes])),
            ReplayStep::Found(_) => unreachable!("nothing was written"),
            ReplayStep::End => break,
        }
    }
    let mut ring = replay.into_ring().unwrap();
    ring.opening().unwrap();
    ring.checkpoint_written(true);
    Log::new(ring)
}

impl World {
    fn new(places: Places, programs: &[(u16, &[Op])], with: &[With]) -> Self {
        let machine = Machine::new(
            new_log(),
            Index::default(),
            BTreeMap::new(),
            std::iter::empty(),
            Now(0),
        );
        let sectors = 0..places.count * places.sectors;
        let all = (0..2).flat_map(|slot| sectors.clone().map(move |at| (Slot(slot), at)));
        let backing: BTreeMap<At, u64> = all.map(|at| (at, NEVER_WRITTEN)).collect();
        let mut world = Self {
            places,
            machine,
            hosts: Vec::new(),
            epochs: [0; 2],
            with: with.to_vec(),
            stamps: NEVER_WRITTEN,
            batches: BTreeMap::new(),
            in_batches: Vec::new(),
            checkpoint_on_its_way: false,
            writer_is_woken: false,
            pending: BTreeMap::new(),
            answered: 0,
            newest_acknowledged: None,
            not_done: BTreeSet::new(),
            sync_points: Vec::new(),
            acknowledged: backing.clone(),
            backing,
            unflushed: BTreeMap::new(),
            half_destaged: BTreeSet::new(),
            in_history: BTreeSet::new(),
            cached: BTreeMap::new(),
            unknown: BTreeSet::new(),
            round: Round::None,
            failed: false,
            closed: false,
            cut: 0,
            exchange: 0,
            readers: 0,
            raised: false,
        };
        for id in 0..2 {
            world.apply(Event::Open {
                id: VolumeId(id),
                facts: FACTS,
                history: Some(KnownByHistory::default()),
            });
        }
        for (writer, (slot, program)) in (1..).zip(programs) {
            let fence = Fence {
                slot: FenceSlot(writer),
                epoch: 0,
            };
            world.hosts.push(Host {
                slot: Slot(*slot),
                program: program.iter().copied().collect(),
                around: None,
                fence,
                waits: false,
                reads: None,
            });
        }
        world
    }

    /// The writer still has its right.
    fn is_current(&self, fence: Fence) -> bool {
        is_current(self.epochs, fence)
    }

    fn has(&self, with: With) -> bool {
        self.with.contains(&with)
    }

    fn rounds_left(&self) -> u32 {
        let rounds = self.with.iter().find_map(|it| match it {
            With::Rounds(rounds) => Some(*rounds),
            With::BackingFails
            | With::LogFails
            | With::Cut
            | With::Exchange
            | With::Close
            | With::Raise => None,
        });
        rounds.unwrap_or(0)
    }

    fn stamp(&mut self) -> u64 {
        self.stamps += 1;
        self.stamps
    }

    /// Applies an event, and does what is to be done. Answers what the machine says to who asked.
    fn apply(&mut self, event: Event<'_>) -> Effects {
        let mut effects = Effects::new();
        let before = self.unmet();
        self.machine.apply(event, &mut effects);
        self.check_woken(&before, &effects);
        let mut replies = Effects::new();
        for effect in effects {
            match effect {
                Effect::WriteBatch(write) => {
                    self.hand_over(&write);
                    replies.push(Effect::WriteBatch(write));
                }
                Effect::WriteCheckpoint(write) => {
                    assert!(!self.checkpoint_on_its_way, "one at a time");
                    self.checkpoint_on_its_way = true;
                    replies.push(Effect::WriteCheckpoint(write));
                }
                Effect::Answer { token, result } => self.answer(token, result),
                Effect::PassSyncPoint(place) => {
                    let (slot, before) = self.sync_points.remove(place);
                    // The last one before it is answered right after.
                    let open = self.pending.range(..before);
                    let open = open.filter(|(_, it)| it.slot == slot).count();
                    assert!(open <= 1, "{before:?} is passed before all are answered");
                }
                Effect::Held(_)
                | Effect::EpochRefused(_)
                | Effect::Followed(_)
                | Effect::AppendRefused(_)
                | Effect::Watched(_) => unreachable!("of one copy"),
                Effect::WakeWriter => self.writer_is_woken = true,
                Effect::WakeDestager => {}
                Effect::WakeOthers => self.hosts_try_again(),
                Effect::RecordHistory { slot, change } => self.note_history(slot, change.sectors()),
                Effect::TouchHistory { slot, sectors } => self.note_history(slot, sectors),
                Effect::Stable { .. } => {}
                Effect::ForgetHistory(_) => unreachable!("no volume goes"),
                reply @ (Effect::Submitted { .. }
                | Effect::Refused(_)
                | Effect::Begun(..)
                | Effect::Opened(_)
                | Effect::Waits
                | Effect::AwaitsSyncPoint
                | Effect::Blocked(_)) => replies.push(reply),
            }
        }
        replies
    }

    fn hand_over(&mut self, write: &BatchWrite) {
        let header = Header::read(&write.bytes.to_vec(), OF.0, OF.1).unwrap();
        assert_eq!(header.records.len(), write.data_at.len());
        let batch = Batch {
            at: write.at,
            bytes: write.bytes.clone(),
            header,
            written: false,
            ended: false,
            is_relocated: true,
        };
        assert!(self.batches.insert(write.number, batch).is_none());
    }

    /// The oldest of those that wait are in this batch now.
    fn put_together(&mut self, number: u64) {
        let batch = self.batches.get_mut(&number).unwrap();
        batch.is_relocated = false;
        let waiting = self.pending.values_mut().filter(|it| it.batch.is_none());
        let mut fences = Vec::new();
        for (pending, record) in waiting.zip(&batch.header.records) {
            let sectors = record.change.sectors();
            assert!(sectors.is_empty() || sectors == pending.range, "in order");
            pending.batch = Some(number);
            fences.push(pending.fence);
            self.in_batches.push(InBatch {
                batch: number,
                slot: pending.slot,
                range: pending.range.clone(),
                kind: pending.kind,
            });
        }
        let records = batch.header.records.len();
        assert_eq!(fences.len(), records, "each was submitted");
        for fence in fences {
            assert!(self.is_current(fence), "{fence:?} has lost its right");
        }
    }

    fn answer(&mut self, token: Token, result: Result<(), IoError>) {
        let pending = self.pending.remove(&token).expect("answered once");
        self.answered += 1;
        let Err(error) = result else {
            assert!(self.newest_acknowledged < Some(token), "in order");
            self.newest_acknowledged = Some(token);
            let batch = pending.batch.expect("it was in a batch");
            let mut before = self.batches.range(..=batch);
            assert!(before.all(|(_, it)| it.written), "{token:?} is not stable");
            if let Some(stamp) = pending.stamp {
                for at in pending.range {
                    self.acknowledge((pending.slot, at), stamp, false);
                    self.overtake(pending.slot, at);
                }
            }
            return;
        };
        self.not_done.insert(token);
        let withdrawn = error == IoError::Fenced;
        assert!(withdrawn || self.failed, "{error:?}");
        assert!(
            !withdrawn || !self.is_current(pending.fence),
            "it has its right"
        );
        assert!(!withdrawn || pending.batch.is_none(), "it is in a batch");
        // What was on its way when the log failed may be found by a replay.
        if let (Some(stamp), Some(_)) = (pending.stamp, pending.batch) {
            for at in pending.range {
                let cached = self.cached.entry((pending.slot, at)).or_default();
                cached.insert(stamp);
                self.unknown.insert((pending.slot, at));
            }
        }
    }

    fn note_history(&mut self, slot: Slot, sectors: Range<u64>) {
        self.in_history.extend(sectors.map(|at| (slot, at)));
    }

    fn acknowledge(&mut self, at: At, stamp: u64, is_cached: bool) {
        assert!(self.in_history.contains(&at), "no history has it");
        let before = self.acknowledged.insert(at, stamp).unwrap();
        let cached = self.cached.entry(at).or_default();
        if is_cached {
            cached.insert(before);
        } else if !self.failed {
            cached.clear();
        }
    }

    /// A change that came after a write around the log is acknowledged before it.
    fn overtake(&mut self, slot: Slot, at: u64) {
        let hosts = self.hosts.iter_mut().filter(|it| it.slot == slot);
        for around in hosts.filter_map(|it| it.around.as_mut()) {
            around.overtaken.insert(at);
        }
    }
}
