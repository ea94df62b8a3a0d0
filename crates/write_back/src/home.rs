//! Writes changes at their volumes.

use crate::contents::{BareChange, Contents};
use crate::parts::{blocks, chunks, next_piece};
use crate::shard::{OpenHome, Shard, Stuck};
use env::file::is_no_space;
use journal::{Kind, Lying, Run, Segment, Sequence, Slot, newest};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use units::{Buf, Lba, LbaRange};
use volume::{
    Durability, Io, IoError, IoFuture, Lane, Op, Origin, Provision, Shape, Support, Zeroing,
};

/// Why nothing of a volume is destaged that nobody has opened.
pub(crate) const AWAY: &str = "it is not there";

/// Writes home at once.
const WRITES_MAX: usize = 32;

/// Sectors of what is tried alone when a longer write fails: a page, so that it is a block of any
/// size.
const PIECE_SECTORS: u64 = 8;

/// When to try a volume again that could not be written.
const AGAIN: Duration = Duration::from_secs(1);

/// What is written at once.
enum Job {
    Run(Run),
    Bare(BareChange),
}

impl Job {
    const fn slot(&self) -> Slot {
        match self {
            Self::Run(run) => run.slot,
            Self::Bare(bare) => bare.slot,
        }
    }

    fn sectors(&self) -> Range<u64> {
        match self {
            Self::Run(run) => run.sectors.clone(),
            Self::Bare(bare) => bare.sectors.clone(),
        }
    }
}

/// What is written in a round, and how that ended.
#[derive(Default)]
pub(crate) struct Going {
    jobs: Vec<Job>,
    /// Which of them.
    failed: BTreeSet<usize>,
    /// Volumes that something was written to. Their lanes are kept: a volume may leave meanwhile.
    touched: BTreeMap<Slot, Rc<dyn Lane>>,
    /// Volumes whose history was saved.
    saved: BTreeSet<Slot>,
    /// Why, by volume.
    errors: BTreeMap<Slot, Stuck>,
    flying: VecDeque<(usize, Slot, IoFuture)>,
}

impl Going {
    pub(crate) fn new(runs: Vec<Run>, bare: Vec<BareChange>) -> Self {
        let runs = runs.into_iter().map(Job::Run);
        Self {
            jobs: runs.chain(bare.into_iter().map(Job::Bare)).collect(),
            ..Self::default()
        }
    }

    /// Writes it all, flushes, saves the histories of the volumes, and lets the index forget what
    /// is at home then. Answers whose history could not be saved.
    pub(crate) async fn go(
        mut self,
        shard: &Rc<Shard>,
        segment: &Segment,
        data: &Buf,
        contents: &Contents,
    ) -> BTreeSet<Slot> {
        self.reads_end(shard).await;
        self.write(0, shard, segment, data).await;
        let pieces = self.pieces_of_failed();
        if !pieces.is_empty() {
            let first = self.jobs.len();
            self.jobs.extend(pieces.into_iter().map(Job::Run));
            self.write(first, shard, segment, data).await;
        }
        let told: BTreeSet<Slot> = contents.told.iter().map(|it| it.slot).collect();
        self.touch(shard, &told);
        let mut unstable = self.flush(shard).await;
        let mut unsaved = self.save(shard, &contents.next).await;
        unsaved.extend(unstable.intersection(&told));
        unstable.extend(&unsaved);
        let slots = self.jobs.iter().map(Job::slot).enumerate();
        let not_there = slots.filter(|(_, slot)| unstable.contains(slot));
        self.failed.extend(not_there.map(|(which, _)| which));
        self.settle(shard, &unstable);
        unsaved
    }

    /// What a layer below keeps beside the data of writes past the log is flushed before the log
    /// forgets them.
    fn touch(&mut self, shard: &Rc<Shard>, told: &BTreeSet<Slot>) {
        let state = shard.state.borrow();
        for slot in told {
            let home = state.home(*slot).open.as_ref();
            if let Some(home) = home.filter(|home| home.modes.tells_first()) {
                self.touched.insert(*slot, Rc::clone(&home.lane));
            }
        }
    }

    async fn save(&mut self, shard: &Rc<Shard>, next: &BTreeMap<Slot, Sequence>) -> BTreeSet<Slot> {
        let mut unsaved = BTreeSet::new();
        for (slot, next) in next {
            let kept = shard.state.borrow().home(*slot).kept.clone();
            let Some(kept) = kept else { continue };
            if let Err(error) = kept.save(*next).await {
                let why = format!("its history cannot be written: {error}");
                let again = shard.core.now().after(AGAIN);
                // A full disk is told as one: it ends by itself.
                let is_full = is_no_space(&error);
                let told = if is_full {
                    IoError::SpaceExhausted
                } else {
                    IoError::Unavailable
                };
                let stuck = Stuck::new(told, &why, again);
                let of_history = true;
                self.errors.insert(
                    *slot,
                    Stuck {
                        of_history,
                        ..stuck
                    },
                );
                unsaved.insert(*slot);
            } else {
                self.saved.insert(*slot);
            }
        }
        unsaved
    }

    /// A read from home may have begun before the log had anything of its blocks, and must not see
    /// them half written. Later ones go to the log.
    async fn reads_end(&self, shard: &Rc<Shard>) {
        let slots: BTreeSet<Slot> = self.jobs.iter().map(Job::slot).collect();
        for slot in slots {
            let reads = Rc::clone(&shard.state.borrow().home(slot).reads);
            reads.wait().await;
        }
    }

    /// Writes what was added from the first of these on.
    async fn write(&mut self, first: usize, shard: &Rc<Shard>, segment: &Segment, data: &Buf) {
        for which in first..self.jobs.len() {
            let slot = self.jobs[which].slot();
            let Some(home) = self.open(shard, slot) else {
                self.failed.insert(which);
                continue;
            };
            let whole = match &self.jobs[which] {
                Job::Run(run) => {
                    let write = write_of(shard, &home, segment, data, run);
                    if let Some(Op::Write { range, data, .. }) = &write {
                        offer(shard, &home, run, *range, data);
                    }
                    write.into_iter().collect()
                }
                Job::Bare(bare) => bare_ops(&home, bare),
            };
            let shape = home.shape;
            let pieces = whole.into_iter().flat_map(|op| within_limits(op, &shape));
            for op in pieces {
                if self.flying.len() >= WRITES_MAX {
                    self.one_ends(shard).await;
                }
                let io = Io::new(op, Origin::default());
                self.flying.push_back((which, slot, home.lane.submit(io)));
            }
            self.touched.insert(slot, home.lane);
        }
        while !self.flying.is_empty() {
            self.one_ends(shard).await;
        }
    }

    /// Of long writes that met a place without room, or one that is broken: the rest of them may be
    /// written.
    fn pieces_of_failed(&mut self) -> Vec<Run> {
        let mut pieces = Vec::new();
        let mut whole: BTreeSet<Slot> = BTreeSet::new();
        for &which in &self.failed {
            let slot = self.jobs[which].slot();
            let error = self.errors.get(&slot).map(|it| it.error);
            let there = self.touched.contains_key(&slot) && error.is_some_and(is_of_place);
            match &self.jobs[which] {
                Job::Run(run) if there && run.sectors.end - run.sectors.start > PIECE_SECTORS => {
                    pieces.extend(run.pieces(PIECE_SECTORS));
                }
                Job::Run(_) | Job::Bare(_) => {
                    whole.insert(slot);
                }
            }
        }
        // Now the pieces say how it is.
        self.errors.retain(|slot, _| {
            whole.contains(slot) || !pieces.iter().any(|it: &Run| it.slot == *slot)
        });
        pieces
    }

    fn open(&mut self, shard: &Rc<Shard>, slot: Slot) -> Option<OpenHome> {
        let now = shard.core.now();
        let state = shard.state.borrow();
        let home = state.home(slot);
        // Not tried again for each part of the log.
        if let Some(stuck) = home.stuck.as_ref().filter(|it| now < it.again) {
            self.errors.insert(slot, stuck.clone());
            return None;
        }
        if home.open.is_none() {
            let stuck = Stuck::new(IoError::Unavailable, AWAY, now);
            self.errors.insert(slot, stuck);
        }
        home.open.clone()
    }

    async fn one_ends(&mut self, shard: &Rc<Shard>) {
        let Some((which, slot, answer)) = self.flying.pop_front() else {
            return;
        };
        if let Err(error) = answer.await {
            // Another place may be well; a volume that does not answer is left alone for a while.
            let now = shard.core.now();
            let again = if is_of_place(error) {
                now
            } else {
                now.after(AGAIN)
            };
            let stuck = Stuck::new(error, &reason(error), again);
            self.errors.insert(slot, stuck);
            self.failed.insert(which);
        }
    }

    async fn flush(&mut self, shard: &Rc<Shard>) -> BTreeSet<Slot> {
        let mut unstable = BTreeSet::new();
        for (slot, lane) in &self.touched {
            let flushed = lane.submit(Io::new(Op::Flush, Origin::default()));
            if let Err(error) = flushed.await {
                let stuck = Stuck::new(error, &reason(error), shard.core.now().after(AGAIN));
                self.errors.insert(*slot, stuck);
                unstable.insert(*slot);
            }
        }
        unstable
    }

    /// What is at home and stable there is forgotten here; of the volumes `unstable` nothing is.
    fn settle(self, shard: &Rc<Shard>, unstable: &BTreeSet<Slot>) {
        let mut state = shard.state.borrow_mut();
        let is_home = |which: &usize| !self.failed.contains(which);
        let jobs = self.jobs.iter().enumerate();
        for (_, job) in jobs.filter(|(which, _)| is_home(which)) {
            match job {
                Job::Run(run) => {
                    for part in &run.parts {
                        state.index.settle(part.slot, part.sectors.clone(), part.at);
                    }
                }
                Job::Bare(it) => state.index.settle_bare(it.slot, it.sectors.clone(), it.by),
            }
        }
        for slot in self.touched.into_keys() {
            state.home_mut(slot).stuck = None;
        }
        // Perhaps nothing else is to be carried for it.
        for slot in self.saved {
            let home = state.home_mut(slot);
            home.stuck = home.stuck.take().filter(|it| !it.of_history);
        }
        // What failed may have gone home all the same, as another change of the same blocks.
        let failed = self.failed.iter().map(|which| &self.jobs[*which]);
        let left = failed.filter(|job| !state.index.is_clear(job.slot(), job.sectors()));
        let held: BTreeSet<Slot> = left
            .map(Job::slot)
            .chain(unstable.iter().copied())
            .collect();
        for (slot, stuck) in self.errors {
            state.home_mut(slot).stuck = held.contains(&slot).then_some(stuck);
        }
    }
}

/// What of the blocks the volume has; it may be smaller than when they were written.
fn inside(home: &OpenHome, range: LbaRange) -> Option<LbaRange> {
    let end = range.end().0.min(home.volume.shape().block_count.0);
    LbaRange::between(range.start(), Lba(end)).filter(|it| !it.is_empty())
}

fn write_of(
    shard: &Rc<Shard>,
    home: &OpenHome,
    segment: &Segment,
    data: &Buf,
    run: &Run,
) -> Option<Op> {
    let range = inside(home, blocks(&run.sectors, home.shape.block_size))?;
    let mut bytes = Buf::empty();
    for part in &run.parts {
        let from = segment.sector_at(part.at);
        let count = part.sectors.end - part.sectors.start;
        let len = usize::try_from(count * journal::SECTOR).expect("a part is in memory");
        bytes.append_owned(data.slice(from..from + len));
    }
    let len = home.shape.bytes_in(range);
    shard.counts.borrow_mut().destaged_bytes += len as u64;
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

/// Offers what goes home to who keeps copies above. It still is the newest, where whatever changed
/// it has ended, and the index knows; or it has begun, and who keeps copies does.
fn offer(shard: &Rc<Shard>, home: &OpenHome, run: &Run, range: LbaRange, data: &Buf) {
    let Some(copies) = home.modes.copies() else {
        return;
    };
    let sectors = |lying: &Lying| lying.sectors.end - lying.sectors.start;
    let largest = run.parts.iter().map(sectors).max().unwrap_or(0);
    copies.offer(range, data, largest * journal::SECTOR, &|| {
        let state = shard.state.borrow();
        let is_newest = |part: &Lying| {
            let newest: u64 = newest(&state.index, part).iter().map(sectors).sum();
            newest == sectors(part)
        };
        run.parts.iter().all(is_newest)
    });
}

/// The operation in pieces that the volume takes.
fn within_limits(mut op: Op, shape: &Shape) -> Vec<Op> {
    let most = shape.limits.most_at_once(&op);
    let most = most.expect("only changes are destaged");
    let whole = op.range().expect("changes have a range");
    let pieces = chunks(whole, most.0.max(1));
    let bytes = |range| shape.bytes_in(range);
    pieces
        .map(|range| next_piece(&mut op, range, bytes(range)))
        .collect()
}

/// What makes these blocks zeroes at home. A discard may leave the ends of the range as they are,
/// and zeroes may not.
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
        Kind::Write
        | Kind::Zeroes
        | Kind::Deallocate
        | Kind::WriteAround
        | Kind::Lost
        | Kind::Gone
        | Kind::Cut
        | Kind::Touched => Provision::Deallocated,
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

/// It says something of these blocks only.
const fn is_of_place(error: IoError) -> bool {
    matches!(
        error,
        IoError::SpaceExhausted | IoError::MediumError { .. } | IoError::Integrity { .. }
    )
}

fn reason(error: IoError) -> String {
    match error {
        IoError::SpaceExhausted => "no space is left where it lies".to_owned(),
        IoError::WriteProtected => "it may not be written".to_owned(),
        IoError::Unavailable | IoError::Transition => "it cannot be reached".to_owned(),
        IoError::Integrity { lba } => format!(
            "the 4 KiB around block {} are not what was written, and only a part of them was written again: write them as a whole",
            lba.0
        ),
        IoError::MediumError { .. }
        | IoError::Miscompare { .. }
        | IoError::TimedOut
        | IoError::Aborted
        | IoError::Fenced
        | IoError::Busy => format!("writing it failed: {error:?}"),
    }
}
