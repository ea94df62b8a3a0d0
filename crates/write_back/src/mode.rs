//! What an acknowledged write has behind it.

use journal::Commit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use volume::Copies;

/// From so many bytes on a write may go around the log: its transfer takes longer than a second
/// flush.
const WRITE_AROUND_FROM: usize = 256 << 10;

/// How a volume's writes are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// They are stable in the backing volume, and the log knew of them before. What the log still
    /// has of their blocks has them go there instead.
    WriteThrough,
    /// They are stable in the log, and destaged later; large ones as in write-through.
    WriteBack,
    /// They may sit in a volatile cache below until a flush; what asks to be stable is stable in
    /// the log.
    Volatile,
}

/// The mode of a volume, shared by its lanes and rings.
pub(crate) struct Modes {
    mode: AtomicU8,
    /// The log knows of what goes to the backing volume before, whatever the mode.
    logs_first: AtomicBool,
    write_around_from: AtomicUsize,
    /// Other nodes have copies of the volume: changes are committed when they have them.
    has_copies: AtomicBool,
    /// One of them may miss what is in the log.
    keeps_log: AtomicBool,
    /// Counts what went to the backing volume and only a flush below makes stable.
    volatile: AtomicU64,
    /// So much of it was flushed.
    flushed: AtomicU64,
    /// What is destaged is offered to it.
    copies: OnceLock<Box<dyn Copies>>,
}

impl Modes {
    pub(crate) fn new(mode: Mode) -> Self {
        Self {
            mode: AtomicU8::new(mode as u8),
            logs_first: AtomicBool::new(false),
            write_around_from: AtomicUsize::new(WRITE_AROUND_FROM),
            has_copies: AtomicBool::new(false),
            keeps_log: AtomicBool::new(false),
            // What a killed process left there can be read, and lies in a cache perhaps: the
            // first flush covers it.
            volatile: AtomicU64::new(1),
            flushed: AtomicU64::new(0),
            copies: OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Mode {
        let mode = self.mode.load(Ordering::Acquire);
        let all = [Mode::WriteThrough, Mode::WriteBack, Mode::Volatile];
        all[usize::from(mode)]
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Release);
    }

    /// Whether the volume below must be able to learn from the log, after a crash, what was on its
    /// way to it.
    pub(crate) fn log_first(&self, first: bool) {
        self.logs_first.store(first, Ordering::Release);
    }

    /// What need not be stable goes to the backing volume at once, while the log gets to know of
    /// it.
    pub(crate) fn is_volatile(&self) -> bool {
        self.get() == Mode::Volatile && !self.logs_first()
    }

    /// See [`Modes::log_first`].
    pub(crate) fn logs_first(&self) -> bool {
        self.logs_first.load(Ordering::Acquire)
    }

    /// From so many bytes on writes go around the log where they may.
    pub(crate) fn write_around_from(&self) -> usize {
        match self.get() {
            Mode::WriteThrough => 0,
            Mode::WriteBack | Mode::Volatile => self.write_around_from.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set_write_around_from(&self, bytes: usize) {
        self.write_around_from.store(bytes, Ordering::Relaxed);
    }

    /// See [`crate::WriteBack::has_copies`].
    pub(crate) fn set_copies(&self) {
        self.has_copies.store(true, Ordering::Release);
    }

    /// See [`crate::WriteBack::keep_log`].
    pub(crate) fn keep_log(&self, keeps: bool) {
        self.keeps_log.store(keeps, Ordering::Release);
    }

    pub(crate) fn keeps_log(&self) -> bool {
        self.keeps_log.load(Ordering::Acquire)
    }

    /// When changes are committed.
    pub(crate) fn commit(&self) -> Commit {
        if self.has_copies.load(Ordering::Acquire) {
            Commit::Later
        } else {
            Commit::AtOnce
        }
    }

    /// See [`crate::WriteBack::fills`]; the first one stays.
    pub(crate) fn offer_to(&self, copies: Box<dyn Copies>) {
        let _first = self.copies.set(copies);
    }

    pub(crate) fn copies(&self) -> Option<&dyn Copies> {
        self.copies.get().map(|it| &**it)
    }

    /// Something goes to the backing volume that is not stable there.
    pub(crate) fn leave_volatile(&self) {
        self.volatile.fetch_add(1, Ordering::AcqRel);
    }

    /// What a flush below has to cover; `None`: nothing that is not covered.
    pub(crate) fn to_flush(&self) -> Option<u64> {
        let volatile = self.volatile.load(Ordering::Acquire);
        (self.flushed.load(Ordering::Acquire) < volatile).then_some(volatile)
    }

    /// A flush that was begun after so much has succeeded.
    pub(crate) fn flushed(&self, volatile: u64) {
        self.flushed.fetch_max(volatile, Ordering::AcqRel);
    }
}
