//! Carries the oldest changes home, in the order of addresses, and gives up their room in the log.
//!
//! A round reads a stretch of the log, writes home what still is the newest of it, flushes, and only then
//! lets the index forget it and the log use the room again. So no place at home is written twice between two flushes, and at
//! any moment what is not stable at home is stable in the log.

use super::pace::{Pace, Pressure, REST, pace};
use super::parts::{blocks, chunks, next_piece, sectors};
use super::shard::{OpenHome, Shard};
use env::{FileDone, FileOp};
use futures_util::future::select;
use journal::{Kind, Lying, Run, Sequence, Slot, Stretch, runs};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use units::{Buf, Lba, LbaRange, Reserve};
use volume::{
    Durability, Io, IoError, IoFuture, Lane, Op, Origin, Provision, Shape, Support, Zeroing,
};

/// Blocks of the log in one round: enough that neighbours meet, and little enough for the memory that is kept for it.
const ROUND_BLOCKS: u64 = 1024;

/// Sectors in one write home.
const RUN_SECTORS_MAX: u64 = 2048;

/// Writes home at once.
const WRITES_MAX: usize = 32;

/// When to try again what could not be carried.
const AGAIN: Duration = Duration::from_secs(1);

/// Runs as long as the shard is open.
pub(super) async fn carry(shard: Rc<Shard>) {
    let mut took = Duration::ZERO;
    while !shard.closing.get() {
        let stretch = shard.state.borrow().log.ring().oldest(ROUND_BLOCKS);
        let Some(stretch) = stretch else {
            rest(&shard).await;
            continue;
        };
        if !is_time(&shard, took).await {
            continue;
        }
        let begin = shard.core.now();
        let carried = round(&shard, stretch).await;
        took = shard.core.now().since(begin);
        shard.rounds.set(shard.rounds.get() + 1);
        shard.moved.notify_waiters();
        if carried.is_err() {
            wait(&shard, AGAIN).await;
        }
    }
}

/// There is nothing to carry: the last batch is sealed when nothing has come for a while.
async fn rest(shard: &Rc<Shard>) {
    let quiet = shard.core.now().since(shard.state.borrow().changed_at);
    if shard.state.borrow().log.ring().wants_seal() && quiet < REST {
        return wait(shard, REST - quiet).await;
    }
    shard.seal();
    shard.moved.notify_waiters();
    shard.carrier_rests.set(true);
    shard.carry.notified().await;
    shard.carrier_rests.set(false);
}

/// Waits as the pace says; `true`: carry now.
async fn is_time(shard: &Rc<Shard>, round: Duration) -> bool {
    let (quiet, full) = {
        let state = shard.state.borrow();
        (shard.core.now().since(state.changed_at), state.full)
    };
    let fill = if full || shard.hurry.get() > 0 {
        1.0
    } else {
        shard.fill()
    };
    match pace(Pressure { fill, quiet, round }) {
        Pace::Go => true,
        Pace::Look(time) => {
            wait(shard, time).await;
            false
        }
        Pace::Pause(time) => {
            wait(shard, time).await;
            true
        }
    }
}

/// For so long, or until somebody asks.
async fn wait(shard: &Rc<Shard>, time: Duration) {
    let timer = shard.core.sleep_until(shard.core.now().after(time));
    select(timer, pin!(shard.carry.notified())).await;
}

/// Why nothing of a volume is carried home that nobody has opened.
const AWAY: &str = "it is not there";

/// Something could not be carried; it stays in the log.
struct Held;

/// A change without data that has to be done at home.
struct BareChange {
    slot: Slot,
    sectors: Range<u64>,
    by: Sequence,
    kind: Kind,
}

/// What a stretch holds.
#[derive(Default)]
struct Contents {
    lying: Vec<Lying>,
    bare: Vec<BareChange>,
    /// Whose writes went home past the log.
    direct: BTreeSet<Slot>,
}

async fn round(shard: &Rc<Shard>, stretch: Stretch) -> Result<(), Held> {
    let data = read(shard, &stretch).await?;
    let contents = contents(shard, &stretch, &data)?;
    directs_end(shard).await;
    let mut failed = awaited(shard, &contents.direct);
    let runs = runs(
        &shard.state.borrow().index,
        &contents.lying,
        RUN_SECTORS_MAX,
    );
    let bare = live_bare(shard, &contents.bare);
    let touched = write_home(shard, &stretch, &data, (&runs, &bare), &mut failed).await;
    for (slot, lane) in touched {
        if failed.contains_key(&slot) {
            continue;
        }
        let flushed = lane.submit(Io::new(Op::Flush, Origin::default()));
        if let Err(error) = flushed.await {
            failed.insert(slot, reason(error));
        }
    }
    settle(shard, &runs, &bare, &failed);
    let nothing_held = failed.is_empty();
    {
        let mut state = shard.state.borrow_mut();
        for home in &mut state.homes {
            home.stuck = None;
        }
        for (slot, why) in failed {
            state.home_mut(slot).stuck = Some(why);
        }
    }
    if !nothing_held {
        return Err(Held);
    }
    shard.grace.wait().await;
    shard.counts.borrow_mut().rounds += 1;
    shard.state.borrow_mut().log.release(stretch.end());
    shard.pump.notify_one();
    Ok(())
}

/// The bytes of a stretch of the log.
async fn read(shard: &Rc<Shard>, stretch: &Stretch) -> Result<Buf, Held> {
    let pool = shard.core.pool().reserve(Reserve::WriteBack);
    let mut data = Buf::empty();
    for (at, bytes) in stretch.reads() {
        let into = pool.alloc(bytes).map_err(|units::Exhausted| Held)?;
        let offset = shard.log_at + at;
        match shard.file.submit(FileOp::Read { offset, into }).await {
            Ok(FileDone::Read(read)) => data.append_owned(read.freeze()),
            Ok(other) => unreachable!("{other:?} is no data"),
            Err(_) => return Err(Held),
        }
    }
    Ok(data)
}

/// What the stretch says. What is damaged in it is lost from now on, if nothing newer is known.
fn contents(shard: &Rc<Shard>, stretch: &Stretch, data: &Buf) -> Result<Contents, Held> {
    let mut state = shard.state.borrow_mut();
    let Ok(batches) = stretch.batches(data) else {
        shard.has_failed("a record in it is damaged");
        // Opened anew, the ring tells by name what is lost: the batch after this one repeats what it changed.
        state.log.fail();
        state.give_up();
        return Err(Held);
    };
    let mut contents = Contents::default();
    for batch in &batches {
        for record in &batch.records {
            let change = record.change;
            let slot = state.slots[&change.volume];
            let sectors = sectors(change.range, change.block_size);
            match change.kind {
                Kind::Write => contents.lying.push(Lying {
                    slot,
                    sectors,
                    at: stretch.sector_of(batch.place, record),
                }),
                Kind::Zeroes | Kind::Deallocate | Kind::Anchor => contents.bare.push(BareChange {
                    slot,
                    sectors,
                    by: change.sequence,
                    kind: change.kind,
                }),
                Kind::Direct => {
                    contents.direct.insert(slot);
                }
            }
        }
        if !batch.damaged.is_empty() {
            shard.has_failed("a record in it is damaged");
            state.log.fail();
            state.give_up();
            return Err(Held);
        }
    }
    Ok(contents)
}

/// What goes home past the log may touch what is to be carried, and must be there before.
async fn directs_end(shard: &Rc<Shard>) {
    let Some(newest) = shard.state.borrow().newest_direct() else {
        return;
    };
    loop {
        let moved = shard.moved.notified();
        if !shard.state.borrow().has_direct_until(newest) {
            return;
        }
        moved.await;
    }
}

/// Volumes that must be opened before what the log says of them is forgotten: a layer below has to know which blocks were on their
/// way home when the power failed. Where the log is full, others do not wait for a volume that is away.
fn awaited(shard: &Rc<Shard>, direct: &BTreeSet<Slot>) -> BTreeMap<Slot, String> {
    let state = shard.state.borrow();
    let away = direct.iter().filter(|slot| state.home(**slot).in_doubt);
    let away = away.filter(|_| !state.full);
    away.map(|slot| (*slot, AWAY.to_owned())).collect()
}

/// What still holds of changes without data.
fn live_bare(shard: &Rc<Shard>, all: &[BareChange]) -> Vec<BareChange> {
    let state = shard.state.borrow();
    let live = all.iter().flat_map(|it| {
        let ranges = state.index.bare(it.slot, it.sectors.clone(), it.by);
        ranges.into_iter().map(|sectors| BareChange {
            slot: it.slot,
            sectors,
            by: it.by,
            kind: it.kind,
        })
    });
    live.collect()
}

/// Writes it all, and answers which volumes were touched. Their lanes are kept: a volume may leave meanwhile.
async fn write_home(
    shard: &Rc<Shard>,
    stretch: &Stretch,
    data: &Buf,
    (runs, bare): (&[Run], &[BareChange]),
    failed: &mut BTreeMap<Slot, String>,
) -> BTreeMap<Slot, Rc<dyn Lane>> {
    let mut flying: VecDeque<(Slot, IoFuture)> = VecDeque::new();
    let mut touched: BTreeMap<Slot, Rc<dyn Lane>> = BTreeMap::new();
    let mut ops: Vec<(Slot, Op)> = Vec::new();
    for run in runs {
        if let Some(home) = open_home(shard, run.slot, failed) {
            let whole = write_of(shard, &home, stretch, data, run);
            let parts = whole
                .into_iter()
                .flat_map(|op| within_limits(op, &home.shape));
            ops.extend(parts.map(|op| (run.slot, op)));
            touched.insert(run.slot, home.lane);
        }
    }
    for it in bare {
        if let Some(home) = open_home(shard, it.slot, failed) {
            let whole = bare_ops(&home, it).into_iter();
            let parts = whole.flat_map(|op| within_limits(op, &home.shape));
            ops.extend(parts.map(|op| (it.slot, op)));
            touched.insert(it.slot, home.lane);
        }
    }
    for (slot, op) in ops {
        if flying.len() >= WRITES_MAX {
            one_ends(&mut flying, failed).await;
        }
        let io = Io::new(op, Origin::default());
        flying.push_back((slot, touched[&slot].submit(io)));
    }
    while !flying.is_empty() {
        one_ends(&mut flying, failed).await;
    }
    touched
}

async fn one_ends(flying: &mut VecDeque<(Slot, IoFuture)>, failed: &mut BTreeMap<Slot, String>) {
    let Some((slot, answer)) = flying.pop_front() else {
        return;
    };
    if let Err(error) = answer.await {
        failed.insert(slot, reason(error));
    }
}

fn open_home(
    shard: &Rc<Shard>,
    slot: Slot,
    failed: &mut BTreeMap<Slot, String>,
) -> Option<OpenHome> {
    let open = shard.state.borrow().home(slot).open.clone();
    if open.is_none() {
        failed.insert(slot, AWAY.to_owned());
    }
    open
}

/// What of the blocks the volume has; it may be smaller than when they were written.
fn inside(home: &OpenHome, range: LbaRange) -> Option<LbaRange> {
    let end = range.end().0.min(home.volume.shape().block_count.0);
    LbaRange::between(range.start(), Lba(end)).filter(|it| !it.is_empty())
}

fn write_of(
    shard: &Rc<Shard>,
    home: &OpenHome,
    stretch: &Stretch,
    data: &Buf,
    run: &Run,
) -> Option<Op> {
    let range = inside(home, blocks(&run.sectors, home.shape.block_size))?;
    let mut bytes = Buf::empty();
    for part in &run.parts {
        let from = stretch.sector_at(part.at);
        let count = part.sectors.end - part.sectors.start;
        let len = usize::try_from(count * journal::SECTOR).expect("a part is in memory");
        bytes.append_owned(data.slice(from..from + len));
    }
    let len = home.shape.bytes_in(range);
    shard.counts.borrow_mut().carried_bytes += len as u64;
    Some(Op::Write {
        range,
        data: if len < bytes.len() {
            bytes.slice(0..len)
        } else {
            bytes
        },
        durability: Durability::Cached,
    })
}

/// The operation in pieces that the volume takes.
fn within_limits(mut op: Op, shape: &Shape) -> Vec<Op> {
    let limits = &shape.limits;
    let most = match &op {
        Op::Write { .. } => limits.transfer_blocks_max,
        Op::WriteZeroes { .. } => limits.write_zeroes_blocks_max,
        Op::Discard { .. } => limits.discard_blocks_max,
        Op::Read { .. } | Op::CompareAndWrite { .. } | Op::Extents { .. } | Op::Flush => {
            unreachable!("only changes are carried home")
        }
    };
    let whole = op.range().expect("changes have a range");
    let pieces = chunks(whole, most.0.max(1));
    let bytes = |range| shape.bytes_in(range);
    pieces
        .map(|range| next_piece(&mut op, range, bytes(range)))
        .collect()
}

/// What makes these blocks zeroes at home. A discard may leave the ends of the range as they are, and zeroes may not.
fn bare_ops(home: &OpenHome, it: &BareChange) -> Vec<Op> {
    let shape = home.shape;
    let Some(range) = inside(home, blocks(&it.sectors, shape.block_size)) else {
        return Vec::new();
    };
    let durability = Durability::Cached;
    let zeroes = |range: LbaRange, zeroing| Op::WriteZeroes {
        range,
        zeroing,
        durability,
    };
    let discards = shape.caps.discard != Support::Absent && shape.caps.discard_reads_zero;
    if it.kind == Kind::Zeroes {
        return vec![zeroes(range, Zeroing::KeepAllocated)];
    }
    if !discards {
        return vec![zeroes(range, Zeroing::MayUnmap)];
    }
    let (unit, first) = (
        shape.limits.discard_granularity.0,
        shape.limits.discard_alignment.0,
    );
    let start = range.start().0.saturating_sub(first).next_multiple_of(unit) + first;
    let end = range.end().0.saturating_sub(first) / unit * unit + first;
    let to = match it.kind {
        Kind::Anchor => Provision::Anchored,
        Kind::Write | Kind::Zeroes | Kind::Deallocate | Kind::Direct => Provision::Deallocated,
    };
    if start >= end || start < range.start().0 || end > range.end().0 {
        return vec![zeroes(range, Zeroing::MayUnmap)];
    }
    let between = |from, to| LbaRange::between(Lba(from), Lba(to)).filter(|it| !it.is_empty());
    let middle = between(start, end).map(|range| Op::Discard {
        range,
        to,
        durability,
    });
    let ends = [between(range.start().0, start), between(end, range.end().0)];
    let ends = ends.into_iter().flatten();
    middle
        .into_iter()
        .chain(ends.map(|range| zeroes(range, Zeroing::MayUnmap)))
        .collect()
}

/// What is at home and stable there is forgotten here.
fn settle(shard: &Rc<Shard>, runs: &[Run], bare: &[BareChange], failed: &BTreeMap<Slot, String>) {
    let mut state = shard.state.borrow_mut();
    for part in runs.iter().flat_map(|it| &it.parts) {
        if !failed.contains_key(&part.slot) {
            state.index.settle(part.slot, part.sectors.clone(), part.at);
        }
    }
    for it in bare {
        if !failed.contains_key(&it.slot) {
            state.index.settle_bare(it.slot, it.sectors.clone(), it.by);
        }
    }
}

fn reason(error: IoError) -> String {
    match error {
        IoError::SpaceExhausted => "no space is left where it lies".to_owned(),
        IoError::WriteProtected => "it may not be written".to_owned(),
        IoError::Unavailable | IoError::Transition => "it cannot be reached".to_owned(),
        IoError::MediumError { .. }
        | IoError::Integrity { .. }
        | IoError::Miscompare { .. }
        | IoError::TimedOut
        | IoError::Aborted
        | IoError::Fenced
        | IoError::Busy => format!("writing it failed: {error:?}"),
    }
}
