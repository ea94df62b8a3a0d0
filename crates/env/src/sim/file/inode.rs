//! One file in two states: what reads see, and what a power cut leaves.
//!
//! Every change is applied to the volatile state and remembered until it is on the medium. Changes
//! have numbers in the order in which they took effect. One that reaches the medium takes its place
//! away from all older ones that are still remembered: they may then no longer write there
//! (`live`), in whatever order a power cut replays them.

use super::super::fault::Fault;
use super::super::random::Rng;
use super::content::Content;
use crate::FileKind;
use std::ops::Range;
use units::Buf;

/// Remembered changes of one file at most; the oldest reach the medium by themselves, as by
/// write-back.
const PENDING_MAX: usize = 4096;

/// A change of a file's contents.
#[derive(Clone)]
pub(super) enum Change {
    Write { offset: u64, data: Buf },
    Zero { range: Range<u64>, keep: bool },
    SetLen { len: u64 },
    Allocate { range: Range<u64> },
}

impl Change {
    /// The bytes whose contents it decides.
    fn range(&self) -> Range<u64> {
        match self {
            Self::Write { offset, data } => *offset..*offset + data.len() as u64,
            Self::Zero { range, .. } => range.clone(),
            Self::SetLen { len } => *len..u64::MAX,
            Self::Allocate { .. } => 0..0,
        }
    }

    /// The bytes that it takes space for.
    pub(super) fn takes(&self) -> Range<u64> {
        match self {
            Self::Write { .. } => self.range(),
            Self::Zero { range, keep: true } | Self::Allocate { range } => range.clone(),
            Self::Zero { keep: false, .. } | Self::SetLen { .. } => 0..0,
        }
    }

    /// The part in front of a sector boundary near `at` of its length, and the rest.
    pub(super) fn split(self, at: u64, sector: u64) -> (Self, Option<Self>) {
        let Self::Write { offset, data } = self else {
            return (self, None);
        };
        let cut = (offset + at) / sector * sector;
        if cut <= offset || cut >= offset + data.len() as u64 {
            return (Self::Write { offset, data }, None);
        }
        let first = super::content::index(cut - offset);
        let head = data.slice(0..first);
        let tail = data.slice(first..data.len());
        let rest = Self::Write {
            offset: cut,
            data: tail,
        };
        (Self::Write { offset, data: head }, Some(rest))
    }

    /// Applies the parts in `live` to `content`.
    fn apply(&self, content: &mut Content, live: &[Range<u64>]) {
        match self {
            Self::Write { offset, data } => {
                for part in live {
                    let inside = part.start - offset..part.end - offset;
                    let inside =
                        super::content::index(inside.start)..super::content::index(inside.end);
                    let mut at = part.start;
                    for piece in data.slice(inside).segments() {
                        content.write(at, piece);
                        at += piece.len() as u64;
                    }
                }
            }
            Self::Zero { keep, .. } => {
                for part in live {
                    content.zero(part.clone(), *keep);
                }
            }
            Self::SetLen { .. } => {
                for part in live {
                    content.zero(part.clone(), false);
                }
            }
            Self::Allocate { range } => content.allocate(range.clone()),
        }
    }
}

/// A change that is not yet known to be on the medium.
struct Pending {
    number: u64,
    operation: u64,
    /// The operation that it belongs to has completed.
    completed: bool,
    change: Change,
    /// Where it may still write.
    live: Vec<Range<u64>>,
    /// The length below which a change of length may not go any more; `None` where it may not
    /// change the length at all.
    len_floor: Option<u64>,
}

impl Pending {
    fn apply(&self, content: &mut Content, live: &[Range<u64>]) {
        self.change.apply(content, live);
        if let (Change::SetLen { len }, Some(floor)) = (&self.change, self.len_floor) {
            content.set_len((*len).max(floor));
        }
    }

    /// Takes away its right to write where a newer change has reached the medium.
    fn yield_to(&mut self, newer: &Self) {
        let taken = newer.change.range();
        let live = std::mem::take(&mut self.live);
        for part in live {
            let before = part.start..part.end.min(taken.start);
            let after = part.start.max(taken.end)..part.end;
            let rest = [before, after].into_iter().filter(|it| it.start < it.end);
            self.live.extend(rest);
        }
        match newer.change {
            Change::SetLen { .. } => self.len_floor = None,
            Change::Write { .. } => {
                self.len_floor = self.len_floor.map(|floor| floor.max(taken.end));
            }
            Change::Zero { .. } | Change::Allocate { .. } => {}
        }
    }
}

/// A file, whatever its names.
pub(super) struct Inode {
    pub(super) kind: FileKind,
    pub(super) logical_block_bytes: u32,
    pub(super) physical_block_bytes: u32,
    pub(super) discard_granularity: u32,
    /// The handle that has the lock.
    pub(super) locked_by: Option<u64>,
    pub(super) volatile: Content,
    durable: Content,
    pending: Vec<Pending>,
    next_number: u64,
}

impl Inode {
    pub(super) fn regular() -> Self {
        Self {
            kind: FileKind::Regular,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
            discard_granularity: 4096,
            locked_by: None,
            volatile: Content::default(),
            durable: Content::default(),
            pending: Vec::new(),
            next_number: 0,
        }
    }

    pub(super) fn block(bytes: u64, logical: u32, physical: u32, discard: u32) -> Self {
        Self {
            kind: FileKind::Block,
            logical_block_bytes: logical,
            physical_block_bytes: physical,
            discard_granularity: discard,
            volatile: Content::of_len(bytes),
            durable: Content::of_len(bytes),
            ..Self::regular()
        }
    }

    pub(super) fn durable(&self) -> &Content {
        &self.durable
    }

    /// It holds this, on the medium and in the cache.
    pub(super) fn holds(&mut self, content: &Content) {
        self.pending.clear();
        self.volatile = content.clone();
        self.durable = content.clone();
    }

    /// Makes a change take effect, for an operation.
    pub(super) fn change(&mut self, operation: u64, change: Change) {
        let range = change.range();
        let live: Vec<Range<u64>> = (range.start < range.end)
            .then_some(range)
            .into_iter()
            .collect();
        let pending = Pending {
            number: self.next_number,
            operation,
            completed: false,
            change,
            live,
            len_floor: Some(0),
        };
        self.next_number += 1;
        pending.apply(&mut self.volatile, &pending.live);
        self.pending.push(pending);
        if self.pending.len() > PENDING_MAX {
            let oldest = self.pending[0].number;
            self.commit(&[oldest]);
        }
    }

    /// The operation has completed: a later sync covers it.
    pub(super) fn complete(&mut self, operation: u64) {
        for pending in &mut self.pending {
            pending.completed |= pending.operation == operation;
        }
    }

    /// What a sync that is submitted now covers.
    pub(super) fn completed(&self) -> Vec<u64> {
        let done = self.pending.iter().filter(|it| it.completed);
        done.map(|it| it.number).collect()
    }

    /// What one operation changed.
    pub(super) fn changes_of(&self, operation: u64) -> Vec<u64> {
        let of = self.pending.iter().filter(|it| it.operation == operation);
        of.map(|it| it.number).collect()
    }

    /// These changes are on the medium now.
    pub(super) fn commit(&mut self, numbers: &[u64]) {
        let all = std::mem::take(&mut self.pending);
        let (reached, rest) = (all.into_iter()).partition(|it| numbers.contains(&it.number));
        self.pending = rest;
        let reached: Vec<Pending> = reached;
        for change in reached {
            change.apply(&mut self.durable, &change.live);
            let older = self.pending.iter_mut();
            older
                .filter(|it| it.number < change.number)
                .for_each(|it| it.yield_to(&change));
        }
    }

    /// A sync of these changes failed: each one is on the medium, or never will be by itself; reads
    /// may go on seeing it.
    pub(super) fn fail_sync(&mut self, numbers: &[u64], rng: &mut Rng) {
        let reached: Vec<u64> = (numbers.iter().copied())
            .filter(|_| rng.below(2) == 0)
            .collect();
        self.commit(&reached);
        self.pending.retain(|it| !numbers.contains(&it.number));
        if rng.below(2) == 0 && self.pending.is_empty() {
            // The page cache was dropped: what was lost is seen to be lost.
            self.volatile = self.durable.clone();
        }
    }

    /// Settles what was not flushed: each change is dropped, kept, torn between sectors or replaced
    /// by what was written there last, as `rng` says. Nobody holds the file's lock any more.
    pub(super) fn power_cut(&mut self, sector: u64, rng: &mut Rng, hit: &mut impl FnMut(Fault)) {
        let mut pending = std::mem::take(&mut self.pending);
        rng.shuffle(&mut pending);
        for change in pending {
            match rng.below(4) {
                0 => hit(Fault::CutDropped),
                1 => {
                    change.apply(&mut self.durable, &change.live);
                    hit(Fault::CutKept);
                }
                2 => self.tear(&change, sector, rng, hit),
                _ => self.replace(&change, hit),
            }
        }
        self.volatile = self.durable.clone();
        self.locked_by = None;
    }

    /// Keeps any of the sectors of a change.
    fn tear(&mut self, change: &Pending, sector: u64, rng: &mut Rng, hit: &mut impl FnMut(Fault)) {
        let one_piece = match &change.change {
            Change::Write { .. } | Change::Zero { .. } => false,
            Change::SetLen { .. } | Change::Allocate { .. } => true,
        };
        if one_piece {
            change.apply(&mut self.durable, &change.live);
            return;
        }
        let (mut kept, mut lost) = (Vec::new(), 0_u64);
        for part in &change.live {
            let mut at = part.start;
            while at < part.end {
                let end = ((at / sector + 1) * sector).min(part.end);
                if rng.below(2) == 0 {
                    kept.push(at..end);
                } else {
                    lost += 1;
                }
                at = end;
            }
        }
        if !kept.is_empty() && lost > 0 {
            hit(Fault::CutTorn);
        }
        change.apply(&mut self.durable, &kept);
    }

    /// Puts what was there last in the place of a change.
    fn replace(&mut self, change: &Pending, hit: &mut impl FnMut(Fault)) {
        let Change::Write { .. } = &change.change else {
            change.apply(&mut self.durable, &change.live);
            return;
        };
        for part in &change.live {
            let end = part.end.min(self.volatile.len());
            if part.start >= end {
                continue;
            }
            let mut last = vec![0; super::content::index(end - part.start)];
            self.volatile.read(part.start, &mut last);
            self.durable.write(part.start, &last);
            hit(Fault::CutReplaced);
        }
    }

    /// Rots one byte, in both states.
    pub(super) fn rot(&mut self, offset: u64) {
        for content in [&mut self.volatile, &mut self.durable] {
            let mut byte = [0];
            content.read(offset, &mut byte);
            content.write(offset, &[byte[0] ^ 0x5A]);
        }
    }
}
