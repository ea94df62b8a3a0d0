//! Where the work of destaging stands, and what its rounds say.

use journal::{Kind, Run, Sequence, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::volumes::DestageError;

/// Why the oldest part of the log stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocked {
    /// Some of it cannot be destaged, and relocating it in the log would win nothing.
    Backing,
    /// There was no room to relocate it: less of it will find some.
    Room,
    /// It cannot be read, or the log takes nothing any more.
    Log,
}

/// What the destager does.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Phase {
    /// It waits for its time, or looks for work.
    #[default]
    Waits,
    /// There is nothing to destage.
    Rests,
    /// Something is being destaged.
    InRound,
}

/// Where the work stands.
#[derive(Clone, Default)]
pub(crate) struct Destaging {
    phase: Phase,
    /// Why the last round left the oldest part of the log where it is.
    blocked: Option<Blocked>,
    /// Rounds that have ended, well or not.
    rounds: u64,
    /// Those who wait until all is destaged.
    drains: u32,
    /// While there are some, nothing is destaged: other volumes are about to take the place of
    /// theirs.
    paused: BTreeSet<Slot>,
}

impl Destaging {
    pub(crate) fn rest(&mut self, rests: bool) {
        assert_ne!(self.phase, Phase::InRound, "a round ends before it rests");
        self.phase = if rests { Phase::Rests } else { Phase::Waits };
    }

    /// # Panics
    /// If one is under way, or it is paused.
    pub(crate) fn begin_round(&mut self) {
        assert_eq!(self.phase, Phase::Waits, "one round at a time");
        assert!(
            self.paused.is_empty(),
            "nothing is destaged while it is paused"
        );
        self.phase = Phase::InRound;
    }

    /// # Panics
    /// If none is under way.
    pub(crate) fn end_round(&mut self, blocked: Option<Blocked>) {
        assert_eq!(self.phase, Phase::InRound, "a round ends once");
        self.phase = Phase::Waits;
        self.rounds += 1;
        self.blocked = blocked;
    }

    pub(crate) fn begin_drain(&mut self) {
        self.drains += 1;
    }

    pub(crate) fn end_drain(&mut self) {
        self.drains = self.drains.checked_sub(1).expect("a drain ends once");
    }

    pub(crate) fn pause(&mut self, slot: Slot) {
        self.paused.insert(slot);
    }

    pub(crate) fn go_on(&mut self, slot: Slot) {
        self.paused.remove(&slot);
    }

    pub(crate) fn rests(&self) -> bool {
        self.phase == Phase::Rests
    }

    pub(crate) fn is_in_round(&self) -> bool {
        self.phase == Phase::InRound
    }

    pub(crate) fn is_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    pub(crate) const fn is_drained_for(&self) -> bool {
        self.drains > 0
    }

    pub(crate) const fn blocked(&self) -> Option<Blocked> {
        self.blocked
    }

    pub(crate) const fn rounds(&self) -> u64 {
        self.rounds
    }
}

/// A change without data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BareChange {
    pub(crate) slot: Slot,
    pub(crate) sectors: Range<u64>,
    pub(crate) by: Sequence,
    pub(crate) kind: Kind,
}

/// What is written at once.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    Run(Run),
    Bare(BareChange),
}

impl Job {
    pub(crate) const fn slot(&self) -> Slot {
        match self {
            Self::Run(run) => run.slot,
            Self::Bare(bare) => bare.slot,
        }
    }

    pub(crate) fn sectors(&self) -> Range<u64> {
        match self {
            Self::Run(run) => run.sectors.clone(),
            Self::Bare(bare) => bare.sectors.clone(),
        }
    }
}

/// How the writes of a round ended.
#[derive(Clone, Default, Debug)]
pub(crate) struct Outcome {
    pub(crate) jobs: Vec<Job>,
    /// Jobs whose writes failed, by their places in `jobs`.
    pub(crate) failed: BTreeSet<usize>,
    /// Volumes that something was written to.
    pub(crate) touched: BTreeSet<Slot>,
    /// Those of them of which nothing is stable.
    pub(crate) unstable: BTreeSet<Slot>,
    /// Volumes whose history was saved.
    pub(crate) saved: BTreeSet<Slot>,
    /// Why, by volume.
    pub(crate) errors: BTreeMap<Slot, DestageError>,
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn rounds_are_counted_and_pauses_are_by_volume() {
        let mut destaging = Destaging::default();
        destaging.begin_round();
        assert!(destaging.is_in_round());
        destaging.pause(Slot(1));
        destaging.pause(Slot(2));
        destaging.end_round(Some(Blocked::Room));
        assert_eq!(
            (destaging.rounds(), destaging.blocked()),
            (1, Some(Blocked::Room))
        );
        destaging.go_on(Slot(1));
        assert!(destaging.is_paused());
        destaging.go_on(Slot(2));
        destaging.begin_round();
        destaging.end_round(None);
        assert_eq!((destaging.rounds(), destaging.blocked()), (2, None));
    }

    #[test]
    #[should_panic(expected = "nothing is destaged while it is paused")]
    fn no_round_begins_in_a_pause() {
        let mut destaging = Destaging::default();
        destaging.pause(Slot(0));
        destaging.begin_round();
    }
}
