//! What can be asked of a volume, and what can come back.

use crate::fence::Fence;
use smallvec::SmallVec;
use units::{Buf, BufMut, ByteCount, Lba, LbaRange, Now};

/// Whether an operation is on stable media when it completes (C2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// It may sit in a volatile cache.
    Cached,
    /// It is on stable media.
    Stable,
}

/// What a write of zeroes may do to the allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zeroing {
    /// The blocks may be deallocated if they then read as zeroes.
    MayUnmap,
    /// The blocks stay, or become, allocated.
    KeepAllocated,
}

/// What a discarded range becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provision {
    /// No space is kept for it.
    Deallocated,
    /// Space is kept for it, contents are given up.
    Anchored,
}

/// A moment in a volume's history of changes; compare only cuts of one volume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cut(pub u64);

/// An operation. Ranges count blocks of the volume's own block size.
#[derive(Debug)]
pub enum Op {
    /// Answers [`Done::Data`] with exactly the range's bytes.
    Read {
        /// Which blocks.
        range: LbaRange,
        /// Memory to fill instead of memory of the volume's choice, for guests that share theirs.
        into: Option<BufMut>,
    },
    /// Replaces the range's contents.
    Write {
        /// Which blocks.
        range: LbaRange,
        /// Exactly as many bytes as the range has.
        data: Buf,
        /// Whether it is stable when complete.
        durability: Durability,
    },
    /// Makes the range read as zeroes.
    WriteZeroes {
        /// Which blocks.
        range: LbaRange,
        /// What may happen to the allocation.
        zeroing: Zeroing,
        /// Whether it is stable when complete.
        durability: Durability,
    },
    /// Gives up the range's contents. It is advice in units of `Limits::discard_granularity`: parts
    /// of units at the ends may be left as they are. What it did not leave reads as zeroes where
    /// `Caps::discard_reads_zero`, as anything stable where not.
    Discard {
        /// Which blocks.
        range: LbaRange,
        /// Whether space is kept.
        to: Provision,
        /// Whether it is stable when complete.
        durability: Durability,
    },
    /// Replaces the range by `data` if it holds `expected`, atomically against every other
    /// operation; else [`IoError::Miscompare`].
    CompareAndWrite {
        /// Which blocks.
        range: LbaRange,
        /// What it must hold.
        expected: Buf,
        /// What it will hold.
        data: Buf,
        /// Whether it is stable when complete.
        durability: Durability,
    },
    /// The allocation of the range ([`Done::Extents`]), at least for its first part; with `since`,
    /// only what changed after that cut counts as [`ExtentKind::Mapped`].
    Extents {
        /// Which blocks.
        range: LbaRange,
        /// Since when; `None` asks for allocation.
        since: Option<Cut>,
    },
    /// Makes every completed operation stable (C2).
    Flush,
}

impl Op {
    /// The blocks that it touches; none for a flush.
    #[must_use]
    pub fn range(&self) -> Option<LbaRange> {
        match self {
            Self::Read { range, .. }
            | Self::Write { range, .. }
            | Self::WriteZeroes { range, .. }
            | Self::Discard { range, .. }
            | Self::CompareAndWrite { range, .. }
            | Self::Extents { range, .. } => Some(*range),
            Self::Flush => None,
        }
    }

    /// The blocks that it touches, for layers that move them.
    pub fn range_mut(&mut self) -> Option<&mut LbaRange> {
        match self {
            Self::Read { range, .. }
            | Self::Write { range, .. }
            | Self::WriteZeroes { range, .. }
            | Self::Discard { range, .. }
            | Self::CompareAndWrite { range, .. }
            | Self::Extents { range, .. } => Some(range),
            Self::Flush => None,
        }
    }

    /// It changes what the volume holds or where.
    #[must_use]
    pub fn mutates(&self) -> bool {
        match self {
            Self::Write { .. }
            | Self::WriteZeroes { .. }
            | Self::Discard { .. }
            | Self::CompareAndWrite { .. } => true,
            Self::Read { .. } | Self::Extents { .. } | Self::Flush => false,
        }
    }

    /// The blocks whose contents are read or written; none where no payload moves.
    #[must_use]
    pub fn carries(&self) -> Option<LbaRange> {
        match self {
            Self::Read { range, .. }
            | Self::Write { range, .. }
            | Self::CompareAndWrite { range, .. } => Some(*range),
            Self::WriteZeroes { .. }
            | Self::Discard { .. }
            | Self::Extents { .. }
            | Self::Flush => None,
        }
    }

    /// What a write writes.
    #[must_use]
    pub fn payload(&self) -> Option<&Buf> {
        match self {
            Self::Write { data, .. } => Some(data),
            Self::Read { .. }
            | Self::WriteZeroes { .. }
            | Self::Discard { .. }
            | Self::CompareAndWrite { .. }
            | Self::Extents { .. }
            | Self::Flush => None,
        }
    }

    /// Takes out the memory that a read was to fill.
    pub fn take_into(&mut self) -> Option<BufMut> {
        match self {
            Self::Read { into, .. } => into.take(),
            Self::Write { .. }
            | Self::WriteZeroes { .. }
            | Self::Discard { .. }
            | Self::CompareAndWrite { .. }
            | Self::Extents { .. }
            | Self::Flush => None,
        }
    }

    /// The durability that it asks for; `None` where the question does not arise.
    pub fn durability_mut(&mut self) -> Option<&mut Durability> {
        match self {
            Self::Write { durability, .. }
            | Self::WriteZeroes { durability, .. }
            | Self::Discard { durability, .. }
            | Self::CompareAndWrite { durability, .. } => Some(durability),
            Self::Read { .. } | Self::Extents { .. } | Self::Flush => None,
        }
    }

    /// The same operation once more (payload by reference); a read's own destination stays behind.
    #[must_use]
    pub fn again(&self) -> Self {
        match self {
            Self::Read { range, .. } => Self::Read {
                range: *range,
                into: None,
            },
            Self::Write {
                range,
                data,
                durability,
            } => Self::Write {
                range: *range,
                data: data.clone(),
                durability: *durability,
            },
            Self::WriteZeroes {
                range,
                zeroing,
                durability,
            } => Self::WriteZeroes {
                range: *range,
                zeroing: *zeroing,
                durability: *durability,
            },
            Self::Discard {
                range,
                to,
                durability,
            } => Self::Discard {
                range: *range,
                to: *to,
                durability: *durability,
            },
            Self::CompareAndWrite {
                range,
                expected,
                data,
                durability,
            } => Self::CompareAndWrite {
                range: *range,
                expected: expected.clone(),
                data: data.clone(),
                durability: *durability,
            },
            Self::Extents { range, since } => Self::Extents {
                range: *range,
                since: *since,
            },
            Self::Flush => Self::Flush,
        }
    }
}

/// Names one request through all layers, in logs and traces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TraceId(pub u64);

/// The moment after which the answer is of no use to whoever asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Deadline(pub Now);

/// What the request is for; layers that queue serve lower classes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Class {
    /// A host waits for it.
    #[default]
    Foreground,
    /// It restores redundancy that is lost.
    Repair,
    /// It brings a second copy up to date.
    Resynchronisation,
    /// It looks for damage.
    Scrub,
}

/// Who asked, until when, what for, and by which right. Carried by layers, interpreted by those
/// that queue (class, deadline) and by those that write (fence).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The request's name.
    pub trace: TraceId,
    /// When the answer loses its use.
    pub deadline: Option<Deadline>,
    /// For a host, a repair, a resynchronisation or a scrub: layers that queue serve them in that
    /// order.
    pub class: Class,
    /// The writer's right.
    pub fence: Fence,
}

/// One owned request, one pointer wide: moved down the stack, never copied.
#[derive(Debug)]
pub struct Io(Box<IoInner>);

#[derive(Debug)]
struct IoInner {
    op: Op,
    origin: Origin,
}

impl Io {
    /// A request.
    #[must_use]
    pub fn new(op: Op, origin: Origin) -> Self {
        Self(Box::new(IoInner { op, origin }))
    }

    /// What is asked.
    #[must_use]
    pub fn op(&self) -> &Op {
        &self.0.op
    }

    /// What is asked, for layers that change it.
    pub fn op_mut(&mut self) -> &mut Op {
        &mut self.0.op
    }

    /// Who asks.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// Takes the request apart, for leaves.
    #[must_use]
    pub fn into_parts(self) -> (Op, Origin) {
        let inner = *self.0;
        (inner.op, inner.origin)
    }

    /// A second request with the same payload (by reference, no bytes) and origin.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::new(self.0.op.again(), self.0.origin)
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub enum Done {
    /// It is done.
    Nothing,
    /// A change is done: a journal has it, and it goes later to where it belongs. For whoever asks
    /// it is as [`Done::Nothing`]; how long it took is counted apart.
    Logged,
    /// The bytes that were read.
    Data(Buf),
    /// Adjacent extents from the start of the range on; at least one block.
    Extents(ExtentList),
}

/// Extents in order of address. One has its place in here: every answer is as large as this,
/// whatever it says.
pub type ExtentList = SmallVec<[Extent; 1]>;

/// A run of blocks of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Which blocks.
    pub range: LbaRange,
    /// Whether they have space and contents.
    pub kind: ExtentKind,
}

/// The allocation of a run of blocks (SBC-4, "Logical block provisioning states").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtentKind {
    /// Space and contents.
    Mapped,
    /// Neither.
    Deallocated,
    /// Space, no contents.
    Anchored,
}

/// Operating errors only (C6). Every one may leave a mutating operation done, not done, or done in
/// part by whole blocks, except `Miscompare`, `WriteProtected`, `Fenced` and `Transition`, which
/// leave nothing done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoError {
    /// The medium failed at this block.
    MediumError {
        /// The first block that failed.
        lba: Lba,
    },
    /// The block's contents are not what was written.
    Integrity {
        /// The first such block.
        lba: Lba,
    },
    /// The range does not hold what was expected.
    Miscompare {
        /// Offset of the first byte that differs, from the start of the range.
        at: ByteCount,
    },
    /// No space is left for new blocks.
    SpaceExhausted,
    /// The volume may not be written.
    WriteProtected,
    /// The volume cannot be reached now.
    Unavailable,
    /// It took too long.
    TimedOut,
    /// It was given up on request.
    Aborted,
    /// The writer lost its right (C5): its connection is dropped, and no status is sent.
    Fenced,
    /// The right to serve is moving: answer BUSY.
    Transition,
    /// Memory or queue places ran out: answer BUSY or TASK SET FULL, the host will repeat.
    Busy,
}

impl IoError {
    /// It promises that nothing was done.
    #[must_use]
    pub const fn leaves_nothing_done(self) -> bool {
        match self {
            Self::Miscompare { .. } | Self::WriteProtected | Self::Fenced | Self::Transition => {
                true
            }
            Self::MediumError { .. }
            | Self::Integrity { .. }
            | Self::SpaceExhausted
            | Self::Unavailable
            | Self::TimedOut
            | Self::Aborted
            | Self::Busy => false,
        }
    }

    /// The block that it names, where it names one.
    #[must_use]
    pub const fn lba(self) -> Option<Lba> {
        match self {
            Self::MediumError { lba } | Self::Integrity { lba } => Some(lba),
            Self::Miscompare { .. }
            | Self::SpaceExhausted
            | Self::WriteProtected
            | Self::Unavailable
            | Self::TimedOut
            | Self::Aborted
            | Self::Fenced
            | Self::Transition
            | Self::Busy => None,
        }
    }

    /// The same with another block in place of the one that it names, where it names one.
    #[must_use]
    pub fn map_lba(mut self, there: impl FnOnce(Lba) -> Lba) -> Self {
        if let Self::MediumError { lba } | Self::Integrity { lba } = &mut self {
            *lba = there(*lba);
        }
        self
    }

    /// What is to be reported of an operation with this error of which something may have been done
    /// before, or elsewhere.
    #[must_use]
    pub const fn of_a_part(self) -> Self {
        if self.leaves_nothing_done() {
            Self::Unavailable
        } else {
            self
        }
    }
}
