//! Which faults happen, how often, and whether they did.

use super::random::Rng;
use std::collections::BTreeMap;

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// A class of faults. What is counted is that it took place, not that it was possible.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Fault { $($(#[doc = $doc])+ $name,)+ }

        impl Fault {
            /// All classes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

faults! {
    /// A send takes only a part.
    NetShortSend = "net_short_send",
    /// A receive gives only a part.
    NetShortReceive = "net_short_receive",
    /// A sent piece arrives in several pieces.
    NetSplit = "net_split",
    /// A piece arrives much later than usual.
    NetSlow = "net_slow",
    /// A connection is reset, at any byte.
    NetReset = "net_reset",
    /// A connection turns into a black hole: nothing arrives any more, and nobody is notified.
    NetHalfOpen = "net_half_open",
    /// A connect is refused although somebody listens.
    NetRefused = "net_refused",
    /// An operation on a file takes up to seconds.
    FileSlow = "file_slow",
    /// An operation hangs until it is released, or some tens of seconds.
    FileHung = "file_hung",
    /// An operation never comes back.
    FileHungForEver = "file_hung_for_ever",
    /// An operation came back before one that was submitted earlier.
    FileReordered = "file_reordered",
    /// A read fails.
    FileReadError = "file_read_error",
    /// A write fails; any part of it may be there.
    FileWriteError = "file_write_error",
    /// A sync fails and loses what was not synced.
    FileSyncError = "file_sync_error",
    /// A sync finds no space, as of file systems that look for places late: it has failed as by
    /// [`Fault::FileSyncError`], and counts as that, too.
    FileSyncNoSpace = "file_sync_no_space",
    /// A write finds no space.
    FileNoSpace = "file_no_space",
    /// A sync or a stable write says yes and does nothing. Only where a test asks for it.
    FileLyingFlush = "file_lying_flush",
    /// A node loses power.
    NodePowerCut = "node_power_cut",
    /// A node's process is killed; its kernel goes on.
    NodeKilled = "node_killed",
    /// At a power cut an un-synced write was kept.
    CutKept = "cut_kept",
    /// At a power cut an un-synced write was lost.
    CutDropped = "cut_dropped",
    /// At a power cut an un-synced write was kept in part.
    CutTorn = "cut_torn",
    /// At a power cut a write was replaced by what was written there later.
    CutReplaced = "cut_replaced",
    /// At a power cut a name that was not synced was lost.
    CutNameDropped = "cut_name_dropped",
    /// A core ran nothing for a while, as where its thread has lost its processor: what became
    /// ready meanwhile is ready at once afterwards, so that one turn finds several things that have
    /// happened.
    CoreStalled = "core_stalled",
    /// A place in the code that asked [`crate::Core::perhaps`] got the answer yes.
    Perhaps = "perhaps",
}

/// How probable each class of faults is at each opportunity, in parts per million.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultPlan(BTreeMap<Fault, u32>);

impl FaultPlan {
    /// No fault at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Only what a healthy network and disk do to a program: pieces of any size, any order.
    #[must_use]
    pub fn benign() -> Self {
        Self::none()
            .with(Fault::NetShortSend, 100_000)
            .with(Fault::NetShortReceive, 100_000)
            .with(Fault::NetSplit, 100_000)
            .with(Fault::NetSlow, 10_000)
            .with(Fault::FileSlow, 5_000)
    }

    /// A plan of the seed's choice: each class is absent, rare or frequent, so that over many seeds
    /// each one is met alone and with every other. Lying flushes are never in it.
    #[must_use]
    pub fn any(rng: &mut Rng) -> Self {
        let mut plan = Self::benign();
        for (fault, frequent) in [
            (Fault::NetShortSend, 300_000),
            (Fault::NetShortReceive, 300_000),
            (Fault::NetSplit, 300_000),
            (Fault::NetSlow, 50_000),
            (Fault::NetReset, 20_000),
            (Fault::NetHalfOpen, 5_000),
            (Fault::NetRefused, 200_000),
            (Fault::FileSlow, 50_000),
            (Fault::FileHung, 10_000),
            (Fault::FileHungForEver, 2_000),
            (Fault::FileReadError, 20_000),
            (Fault::FileWriteError, 20_000),
            (Fault::FileSyncError, 20_000),
            (Fault::FileNoSpace, 20_000),
            (Fault::Perhaps, 100_000),
        ] {
            match rng.below(4) {
                0 | 1 => {}
                2 => plan.set(fault, frequent / 10),
                _ => plan.set(fault, frequent),
            }
        }
        plan
    }

    /// The same plan with cores that stall, rarely or often, and in a third of those with syncs
    /// that find no space, for one in seven seeds. It draws nothing, so that seeds that have failed
    /// once fail again.
    #[must_use]
    pub fn with_stalls_of(self, seed: u64) -> Self {
        if seed % 7 != 1 {
            return self;
        }
        let stalls = if seed % 14 == 1 { 10_000 } else { 100_000 };
        let finds_none = if seed % 21 == 1 { 20_000 } else { 0 };
        self.with(Fault::CoreStalled, stalls)
            .with(Fault::FileSyncNoSpace, finds_none)
    }

    /// The same plan with `fault` as probable as `per_million`.
    #[must_use]
    pub fn with(mut self, fault: Fault, per_million: u32) -> Self {
        self.set(fault, per_million);
        self
    }

    /// The same plan without `fault`.
    #[must_use]
    pub fn without(mut self, fault: Fault) -> Self {
        self.0.remove(&fault);
        self
    }

    /// Makes `fault` as probable as `per_million`.
    pub fn set(&mut self, fault: Fault, per_million: u32) {
        self.0.insert(fault, per_million);
    }

    /// How probable `fault` is.
    #[must_use]
    pub fn per_million(&self, fault: Fault) -> u32 {
        self.0.get(&fault).copied().unwrap_or(0)
    }
}

/// How often each class took place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hits(BTreeMap<Fault, u64>);

impl Hits {
    /// One more.
    pub fn count(&mut self, fault: Fault) {
        *self.0.entry(fault).or_insert(0) += 1;
    }

    /// How often `fault` took place.
    #[must_use]
    pub fn of(&self, fault: Fault) -> u64 {
        self.0.get(&fault).copied().unwrap_or(0)
    }

    /// Adds those of another world.
    pub fn add(&mut self, other: &Self) {
        for (fault, count) in &other.0 {
            *self.0.entry(*fault).or_insert(0) += count;
        }
    }

    /// The classes of `wanted` that never took place.
    #[must_use]
    pub fn missing(&self, wanted: &[Fault]) -> Vec<Fault> {
        let never = |fault: &&Fault| self.of(**fault) == 0;
        wanted.iter().filter(never).copied().collect()
    }
}
