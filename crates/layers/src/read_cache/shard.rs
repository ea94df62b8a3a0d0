//! A part of a read cache's pages: where each one lies, and which one leaves.
//!
//! ```text
//!   page -> run of 8 pages: their frames, and which were read since the last report to the policy
//!   policy: which pages are here, and which leaves for the next one
//! ```
//!
//! A hit reads one entry, that of the run, which its neighbours share. The policy's own entries lie
//! elsewhere, and it needs to know what was read only when it has to choose: they are reported to
//! it then.
//!
//! **Invariants.** I1: the policy knows exactly the pages that have a frame. I2: a page with its
//! bit set in `touched` is in `unreported`. I3: `unreported` is no longer than twice as many pages
//! as there may be, however seldom the policy chooses.

use super::frames::{Frame, Frames};
use hashbrown::HashTable;
use quick_cache::UnitWeighter;
use quick_cache::unsync::Cache;
use smallvec::SmallVec;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use units::Buf;

/// Pages in a run.
const RUN: usize = 8;

/// The same.
pub(super) const RUN_PAGES: u64 = RUN as u64;

/// Of how many pages the policy is notified at most before it chooses one that leaves.
const REPORTED_MAX: usize = 64;

/// No frame.
const NONE: Frame = Frame::MAX;

/// Spreads page numbers in the same way on every machine and in every run.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Spread {
    pub(super) fn of(number: u64) -> u64 {
        let mut spread = Self::default();
        spread.write_u64(number);
        spread.finish()
    }
}

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Notes the pages that the policy lets go.
struct Leaving;

impl quick_cache::Lifecycle<u64, ()> for Leaving {
    type RequestState = SmallVec<[u64; 2]>;

    fn on_evict(&self, state: &mut Self::RequestState, page: u64, (): ()) {
        state.push(page);
    }
}

type Policy = Cache<u64, (), UnitWeighter, BuildHasherDefault<Spread>, Leaving>;

struct Run {
    number: u64,
    frames: [Frame; RUN],
    /// A bit for each page.
    touched: u8,
}

impl Run {
    fn frame(&self, page: u64) -> Option<Frame> {
        Some(self.frames[within(page)]).filter(|&frame| frame != NONE)
    }

    fn is_empty(&self) -> bool {
        self.frames.iter().all(|&frame| frame == NONE)
    }
}

/// The page's place in its run.
fn within(page: u64) -> usize {
    usize::try_from(page % RUN_PAGES).expect("a small number")
}

pub(super) struct Shard {
    runs: HashTable<Run>,
    policy: Policy,
    frames: Frames,
    /// Pages that were read since the last report to the policy.
    unreported: Vec<u64>,
}

impl Shard {
    /// Room for `count` pages (not 0), or nearly so: a few frames stay free, as readers hold some.
    pub(super) fn new(count: usize) -> Self {
        let frames = Frames::new(count);
        let kept = frames.max() - frames.max() / 64;
        let weight = u64::try_from(kept).expect("a usize fits");
        Self {
            runs: HashTable::new(),
            policy: Cache::with(
                kept,
                weight,
                UnitWeighter,
                BuildHasherDefault::default(),
                Leaving,
            ),
            frames,
            unreported: Vec::new(),
        }
    }

    /// The page is here.
    pub(super) fn holds(&self, page: u64) -> bool {
        let number = page / RUN_PAGES;
        let found = self
            .runs
            .find(Spread::of(number), |run| run.number == number);
        found.is_some_and(|run| run.frame(page).is_some())
    }

    /// How many pages are here.
    pub(super) fn len(&self) -> usize {
        self.policy.len()
    }

    /// Adds these pages, which are of one run, to `all`. False where one is not here.
    pub(super) fn read(&mut self, pages: Range<u64>, all: &mut Buf) -> bool {
        let number = pages.start / RUN_PAGES;
        let found = self
            .runs
            .find_mut(Spread::of(number), |run| run.number == number);
        let Some(run) = found else { return false };
        for page in pages {
            let Some(frame) = run.frame(page) else {
                return false;
            };
            let bit = 1 << within(page);
            if run.touched & bit == 0 {
                run.touched |= bit;
                self.unreported.push(page);
            }
            all.append_owned(self.frames.share(frame));
        }
        true
    }

    /// Takes a page out. Whether it was here.
    pub(super) fn remove(&mut self, page: u64) -> bool {
        let was_here = self.let_go(page);
        if was_here {
            self.policy.remove(&page);
        }
        was_here
    }

    /// Takes all pages of a range out, by a search of all that are here.
    pub(super) fn remove_all(&mut self, pages: &Range<u64>) {
        let frames = &mut self.frames;
        self.runs.retain(|run| {
            let first = run.number * RUN_PAGES;
            for (page, frame) in (first..).zip(&mut run.frames) {
                if *frame != NONE && pages.contains(&page) {
                    frames.give(*frame);
                    *frame = NONE;
                    run.touched &= !(1 << within(page));
                }
            }
            !run.is_empty()
        });
        self.policy.retain(|page, ()| !pages.contains(page));
    }

    /// Puts a page in: the one at byte `at` of `data`. It may be left out, where there is no frame
    /// for it now.
    pub(super) fn put(&mut self, page: u64, data: &Buf, at: usize) {
        self.report();
        if !self.let_go(page) {
            let mut leaving = SmallVec::new();
            self.policy.insert_with_lifecycle(page, (), &mut leaving);
            for gone in leaving {
                self.let_go(gone);
            }
        }
        if !self.policy.contains_key(&page) {
            return;
        }
        match self.frames.fill(data, at) {
            Some(frame) => self.place(page, frame),
            None => {
                self.policy.remove(&page);
            }
        }
    }

    /// Reports to the policy what was read.
    fn report(&mut self) {
        if self.unreported.len() > 2 * self.frames.max() {
            self.forget_unreported();
        }
        let kept = self.unreported.len().saturating_sub(REPORTED_MAX);
        for page in self.unreported.drain(kept..) {
            let number = page / RUN_PAGES;
            let found = self
                .runs
                .find_mut(Spread::of(number), |run| run.number == number);
            let bit = 1 << within(page);
            if let Some(run) = found.filter(|run| run.touched & bit != 0) {
                run.touched &= !bit;
                self.policy.get(&page);
            }
        }
    }

    /// Pages that have left are reported nowhere, and so add up where much more is read than is put
    /// in.
    fn forget_unreported(&mut self) {
        self.unreported.clear();
        for run in &mut self.runs {
            run.touched = 0;
        }
    }

    fn place(&mut self, page: u64, frame: Frame) {
        let number = page / RUN_PAGES;
        let run = self.runs.entry(
            Spread::of(number),
            |run| run.number == number,
            |run| Spread::of(run.number),
        );
        let fresh = || Run {
            number,
            frames: [NONE; RUN],
            touched: 0,
        };
        let mut run = run.or_insert_with(fresh);
        run.get_mut().frames[within(page)] = frame;
    }

    /// Frees the page's frame. Whether it had one.
    fn let_go(&mut self, page: u64) -> bool {
        let number = page / RUN_PAGES;
        let found = self
            .runs
            .find_entry(Spread::of(number), |run| run.number == number);
        let Ok(mut entry) = found else { return false };
        let run = entry.get_mut();
        let Some(frame) = run.frame(page) else {
            return false;
        };
        run.frames[within(page)] = NONE;
        run.touched &= !(1 << within(page));
        if run.is_empty() {
            entry.remove();
        }
        self.frames.give(frame);
        true
    }
}

#[cfg(test)]
mod test {
    use super::super::frames::PAGE;
    use super::*;

    #[test]
    fn what_the_policy_was_not_reported_does_not_add_up_where_much_is_read_and_little_put_in() {
        let mut shard = Shard::new(512);
        let data = Buf::zeroes(PAGE);
        for page in 0..5_000 {
            shard.put(page, &data, 0);
            for run in 0..=page / RUN_PAGES {
                let first = run * RUN_PAGES;
                for page in first..first + RUN_PAGES {
                    shard.read(page..page + 1, &mut Buf::empty());
                }
            }
            let unreported = shard.unreported.len();
            assert!(unreported <= 3 * 512, "{unreported} after {page} pages");
        }
        assert!(shard.len() > 400);
    }
}
