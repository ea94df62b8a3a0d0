//! Writes changes to their backing volumes.

use super::contents::Contents;
use crate::addresses::{blocks, chunks, next_piece};
use crate::ring::{BareChange, Destage, DestageError, Event, Job, OpenBacking, Outcome, Ring};
use env::file::is_no_space;
use journal::{Kind, Lying, Run, Segment, Sequence, Slot, newest};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use units::{Buf, Lba, LbaRange};
use volume::{
    Durability, Io, IoError, IoFuture, Lane, Op, Origin, Provision, Shape, Support, Zeroing,
};

/// Why nothing of a volume is destaged that nobody has opened.
const AWAY: &str = "it is not there";

/// Writes to backing volumes at once.
const WRITES_MAX: usize = 32;

/// Sectors of what is tried alone when a longer write fails: a page, so that it is a block of any
/// size.
const PIECE_SECTORS: u64 = 8;

/// When to try a volume again that could not be written.
const AGAIN: Duration = Duration::from_secs(1);

/// What is written in a round, and how that ends.
#[derive(Default)]
pub(super) struct Writes {
    outcome: Outcome,
    /// Lanes of the volumes that something was written to. They are kept: a volume may leave
    /// meanwhile.
    lanes: BTreeMap<Slot, Rc<dyn Lane>>,
    in_flight: VecDeque<(usize, Slot, IoFuture)>,
}

impl Writes {
    pub(super) fn new(runs: Vec<Run>, bare: Vec<BareChange>) -> Self {
        let runs = runs.into_iter().map(Job::Run);
        let outcome = Outcome {
            jobs: runs.chain(bare.into_iter().map(Job::Bare)).collect(),
            ..Outcome::default()
        };
        Self {
            outcome,
            ..Self::default()
        }
    }

    /// Writes it all, flushes, saves the histories of the volumes, and lets the index forget what
    /// is in the backing volumes then. Answers whose history could not be saved.
    pub(super) async fn run(
        mut self,
        ring: &Rc<Ring>,
        segment: &Segment,
        data: &Buf,
        contents: &Contents,
    ) -> BTreeSet<Slot> {
        self.reads_end(ring).await;
        self.write(0, ring, segment, data).await;
        let pieces = self.pieces_of_failed();
        if !pieces.is_empty() {
            let first = self.outcome.jobs.len();
            self.outcome.jobs.extend(pieces.into_iter().map(Job::Run));
            self.write(first, ring, segment, data).await;
        }
        let noted: BTreeSet<Slot> = contents.notes.iter().map(|it| it.slot).collect();
        self.touch(ring, &noted);
        let mut unstable = self.flush(ring).await;
        let mut unsaved = self.save(ring, &contents.next).await;
        unsaved.extend(unstable.intersection(&noted));
        unstable.extend(&unsaved);
        let mut outcome = self.outcome;
        let slots = outcome.jobs.iter().map(Job::slot).enumerate();
        let not_there = slots.filter(|(_, slot)| unstable.contains(slot));
        outcome.failed.extend(not_there.map(|(which, _)| which));
        (outcome.touched, outcome.unstable) = (self.lanes.into_keys().collect(), unstable);
        ring.apply(Event::Destage(Destage::Written(&outcome)));
        unsaved
    }

    /// What a layer below keeps of writes around the log, such as checksums, is flushed before the
    /// log forgets them.
    fn touch(&mut self, ring: &Rc<Ring>, noted: &BTreeSet<Slot>) {
        let backings = ring.backings();
        for slot in noted {
            let backing = backings.of(*slot).open.as_ref();
            if let Some(backing) = backing.filter(|it| it.modes.logs_first()) {
                self.lanes.insert(*slot, Rc::clone(&backing.lane));
            }
        }
    }

    async fn save(&mut self, ring: &Rc<Ring>, next: &BTreeMap<Slot, Sequence>) -> BTreeSet<Slot> {
        let mut unsaved = BTreeSet::new();
        for (slot, next) in next {
            let history = ring.backings().of(*slot).history.clone();
            let Some(history) = history else { continue };
            if let Err(error) = history.save(*next).await {
                let why = format!("its history cannot be written: {error}");
                let again = ring.core.now().after(AGAIN);
                // A full disk is reported as one: it ends by itself.
                let reported = if is_no_space(&error) {
                    IoError::SpaceExhausted
                } else {
                    IoError::Unavailable
                };
                let error = DestageError {
                    of_history: true,
                    ..DestageError::new(reported, &why, again)
                };
                self.outcome.errors.insert(*slot, error);
                unsaved.insert(*slot);
            } else {
                self.outcome.saved.insert(*slot);
            }
        }
        unsaved
    }

    /// A read of the backing volume may have begun before the log had anything of its blocks, and
    /// must not see them half written. Later ones go to the log.
    async fn reads_end(&self, ring: &Rc<Ring>) {
        let slots: BTreeSet<Slot> = self.outcome.jobs.iter().map(Job::slot).collect();
        for slot in slots {
            ring.backing_reads_end(slot).await;
        }
    }

    /// Writes what was added from the first of these on.
    async fn write(&mut self, first: usize, ring: &Rc<Ring>, segment: &Segment, data: &Buf) {
        for which in first..self.outcome.jobs.len() {
            let slot = self.outcome.jobs[which].slot();
            let Some(backing) = self.open(ring, slot) else {
                self.outcome.failed.insert(which);
                continue;
            };
            let whole = match &self.outcome.jobs[which] {
                Job::Run(run) => {
                    let write = write_of(ring, &backing, segment, data, run);
                    if let Some(Op::Write { range, data, .. }) = &write {
                        offer(ring, &backing, run, *range, data);
                    }
                    write.into_iter().collect()
                }
                Job::Bare(bare) => bare_ops(&backing, bare),
            };
            let shape = backing.shape;
            let pieces = whole.into_iter().flat_map(|op| within_limits(op, &shape));
            for op in pieces {
                if self.in_flight.len() >= WRITES_MAX {
                    self.one_ends(ring).await;
                }
                let io = Io::new(op, Origin::default());
                self.in_flight
                    .push_back((which, slot, backing.lane.submit(io)));
            }
            self.lanes.insert(slot, backing.lane);
        }
        while !self.in_flight.is_empty() {
            self.one_ends(ring).await;
        }
    }

    /// Of long writes that met a place without room, or one that is broken: the rest of them may be
    /// written.
    fn pieces_of_failed(&mut self) -> Vec<Run> {
        let mut pieces = Vec::new();
        let mut whole: BTreeSet<Slot> = BTreeSet::new();
        let Outcome {
            jobs,
            failed,
            errors,
            ..
        } = &mut self.outcome;
        for &which in failed.iter() {
            let slot = jobs[which].slot();
            let error = errors.get(&slot).map(|it| it.error);
            let there = self.lanes.contains_key(&slot) && error.is_some_and(is_of_place);
            match &jobs[which] {
                Job::Run(run) if there && run.sectors.end - run.sectors.start > PIECE_SECTORS => {
                    pieces.extend(run.pieces(PIECE_SECTORS));
                }
                Job::Run(_) | Job::Bare(_) => {
                    whole.insert(slot);
                }
            }
        }
        // Now the pieces say how it is.
        errors.retain(|slot, _| {
            whole.contains(slot) || !pieces.iter().any(|it: &Run| it.slot == *slot)
        });
        pieces
    }

    fn open(&mut self, ring: &Rc<Ring>, slot: Slot) -> Option<OpenBacking> {
        let now = ring.core.now();
        let machine = ring.machine();
        let error = machine.volume(slot).destage_error.as_ref();
        // Not tried again for each part of the log.
        if let Some(error) = error.filter(|it| now < it.again) {
            self.outcome.errors.insert(slot, error.clone());
            return None;
        }
        let open = ring.backings().of(slot).open.clone();
        if open.is_none() {
            let error = DestageError::new(IoError::Unavailable, AWAY, now);
            self.outcome.errors.insert(slot, error);
        }
        open
    }

    async fn one_ends(&mut self, ring: &Rc<Ring>) {
        let Some((which, slot, answer)) = self.in_flight.pop_front() else {
            return;
        };
        if let Err(error) = answer.await {
            // Another place may be well; a volume that does not answer is left alone for a while.
            let now = ring.core.now();
            let again = if is_of_place(error) {
                now
            } else {
                now.after(AGAIN)
            };
            let reported = DestageError::new(error, &reason(error), again);
            self.outcome.errors.insert(slot, reported);
            self.outcome.failed.insert(which);
        }
    }

    async fn flush(&mut self, ring: &Rc<Ring>) -> BTreeSet<Slot> {
        let mut unstable = BTreeSet::new();
        for (slot, lane) in &self.lanes {
            let flushed = lane.submit(Io::new(Op::Flush, Origin::default()));
            if let Err(error) = flushed.await {
                let again = ring.core.now().after(AGAIN);
                let reported = DestageError::new(error, &reason(error), again);
                self.outcome.errors.insert(*slot, reported);
                unstable.insert(*slot);
            }
        }
        unstable
    }
}

/// What of the blocks the volume has; it may be smaller than when they were written.
fn inside(backing: &OpenBacking, range: LbaRange) -> Option<LbaRange> {
    let end = range.end().0.min(backing.volume.shape().block_count.0);
    LbaRange::between(range.start(), Lba(end)).filter(|it| !it.is_empty())
}

fn write_of(
    ring: &Rc<Ring>,
    backing: &OpenBacking,
    segment: &Segment,
    data: &Buf,
    run: &Run,
) -> Option<Op> {
    let range = inside(backing, blocks(&run.sectors, backing.shape.block_size))?;
    let mut bytes = Buf::empty();
    for part in &run.parts {
        let from = segment.sector_at(part.at);
        let count = part.sectors.end - part.sectors.start;
        let len = usize::try_from(count * journal::SECTOR).expect("a part is in memory");
        bytes.append_owned(data.slice(from..from + len));
    }
    let len = backing.shape.bytes_in(range);
    ring.counts.borrow_mut().destaged_bytes += len as u64;
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

/// Offers what is destaged to who keeps copies above. It still is the newest, where whatever
/// changed it has ended, and the index knows; or it has begun, and who keeps copies does.
fn offer(ring: &Rc<Ring>, backing: &OpenBacking, run: &Run, range: LbaRange, data: &Buf) {
    let Some(copies) = backing.modes.copies() else {
        return;
    };
    let sectors = |lying: &Lying| lying.sectors.end - lying.sectors.start;
    let largest = run.parts.iter().map(sectors).max().unwrap_or(0);
    copies.offer(range, data, largest * journal::SECTOR, &|| {
        let machine = ring.machine();
        let is_newest = |part: &Lying| {
            let newest: u64 = newest(machine.index(), part).iter().map(sectors).sum();
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

/// What makes these blocks of the backing volume zeroes. A discard may leave the ends of the range
/// as they are, and zeroes may not.
fn bare_ops(backing: &OpenBacking, it: &BareChange) -> Vec<Op> {
    let shape = backing.shape;
    let Some(range) = inside(backing, blocks(&it.sectors, shape.block_size)) else {
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
        | Kind::Touched
        | Kind::Epoch
        | Kind::RelocatedEpoch => Provision::Deallocated,
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
