//! How long the stages of a session's commands took, of as many of them as make percentiles.
//!
//! ```text
//!   commands since it was taken   ... 128 | ... 384  | ... 896  | ... 1920 | ... 8064 | more
//!   in the sample is              each    | one of 2 | one of 4 | one of 8 | 16, 32   | one of 64
//! ```
//!
//! **Contract.** Which of so many it is is left to chance, and it stands for all of them: counts
//! add up to the commands, and no pattern of a host's commands hides from the sample. A command
//! that is not in it costs a comparison and a subtraction. What is counted is memory of the own
//! core until it is taken: 1.5 KiB for reads and 1.5 KiB for writes; a session that does nothing
//! has none.

use logical_unit::{Sampled, Storage, Transfer};
use std::cell::{Cell, RefCell};
use units::histogram::BUCKETS;

/// After so many in the sample, only one of twice as many is.
const BEFORE_TWICE: u32 = 128;

/// In the end it is one of so many.
const OF_MOST: u8 = 64;

/// Commands by how long each stage took: network, queue, journal and backend.
pub type StageCounts = [[u32; BUCKETS]; 4];

/// Of reads and of writes; nothing where there were none.
pub type SampledStages = [Option<Box<StageCounts>>; 2];

/// The sample of a session.
pub(crate) struct StageSample {
    /// Commands that pass before the next one that is in it.
    left: Cell<u32>,
    choice: RefCell<Choice>,
    counts: RefCell<SampledStages>,
}

/// Which commands are in the sample.
struct Choice {
    /// One of so many: a power of two.
    of: u8,
    /// How many were chosen of so many.
    chosen: u32,
    /// Those that the last one stands for as well and that come after it.
    after: u32,
    random: u32,
}

impl StageSample {
    /// The sample of a session of this number.
    pub(crate) fn new(session: u64) -> Self {
        let seed = u32::try_from(session & 0xffff_ffff).unwrap_or(0);
        Self {
            left: Cell::new(0),
            choice: RefCell::new(Choice {
                of: 1,
                chosen: 0,
                after: 0,
                random: seed.wrapping_mul(0x9e37_79b9) | 1,
            }),
            counts: RefCell::default(),
        }
    }

    /// A command arrives. Answers for how many it stands; 0: it is not in the sample.
    pub(crate) fn next(&self) -> u8 {
        let left = self.left.get();
        if left > 0 {
            self.left.set(left - 1);
            return 0;
        }
        let mut choice = self.choice.borrow_mut();
        let of = choice.of;
        self.left.set(choice.choose());
        of
    }

    /// One of those that are in it has ended.
    pub(crate) fn count(&self, sampled: &Sampled) {
        let mut counts = self.counts.borrow_mut();
        let counts = match sampled.transfer {
            Transfer::Read => &mut counts[0],
            Transfer::Write => &mut counts[1],
        };
        let [network, queue, journal, backend] =
            &mut **counts.get_or_insert_with(|| Box::new([[0; BUCKETS]; 4]));
        let in_storage = sampled.storage.map(|(storage, took)| match storage {
            Storage::Journal => (journal, took),
            Storage::Backend => (backend, took),
        });
        let ours = [(network, sampled.network), (queue, sampled.queue)];
        for (stage, took) in ours.into_iter().chain(in_storage) {
            let count = &mut stage[took.bucket()];
            *count = count.saturating_add(u32::from(sampled.stands_for));
        }
    }

    /// What was counted since this was called last; nothing where nothing was. Each command is in
    /// the sample again from here on.
    pub(crate) fn take(&self) -> Option<SampledStages> {
        self.left.set(0);
        let mut choice = self.choice.borrow_mut();
        (choice.of, choice.chosen, choice.after) = (1, 0, 0);
        let counts = self.counts.take();
        counts.iter().any(Option::is_some).then_some(counts)
    }

    /// Goes on with what was counted elsewhere.
    pub(crate) fn put(&self, counts: SampledStages) {
        self.counts.replace(counts);
    }
}

impl Choice {
    /// Chooses the next one: how many pass before it.
    #[cold]
    fn choose(&mut self) -> u32 {
        self.chosen += 1;
        let rest = self.after;
        if self.chosen == BEFORE_TWICE && self.of < OF_MOST {
            (self.of, self.chosen) = (2 * self.of, 0);
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let last = u32::from(self.of) - 1;
        let before = (self.random >> 16) & last;
        self.after = last - before;
        rest + before
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use units::Histogram;
    use units::histogram::Bin;

    const BACKEND: usize = 3;

    fn micros(micros: u64) -> Bin {
        Bin::of_nanos(micros * 1_000)
    }

    /// Reads that took so long at the storage: what the sample has of them.
    fn sampled(sample: &StageSample, took: impl Iterator<Item = u64>) -> Box<StageCounts> {
        for took in took {
            let stands_for = sample.next();
            if stands_for > 0 {
                sample.count(&Sampled {
                    transfer: Transfer::Read,
                    stands_for,
                    network: micros(1),
                    queue: micros(1),
                    storage: Some((Storage::Backend, micros(took))),
                });
            }
        }
        let [reads, writes] = sample.take().expect("there were some");
        assert_eq!(writes, None);
        reads.expect("reads")
    }

    fn histogram(of: &[u32; BUCKETS]) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.add_each(of);
        histogram
    }

    #[test]
    fn few_commands_are_all_in_the_sample_and_a_part_of_many_stands_for_all() {
        let sample = StageSample::new(7);
        assert_eq!(sample.take(), None);
        for round in 0..3 {
            let few = sampled(&sample, 1..=120);
            let mut wanted = Histogram::default();
            (1..=120).for_each(|took| wanted.count_at(micros(took)));
            let counted = histogram(&few[BACKEND]);
            assert_eq!(counted.buckets(), wanted.buckets(), "round {round}");
        }
        for commands in [129, 1_000, 5_000, 100_000] {
            let many = sampled(&sample, 0..commands);
            for stage in [0, 1, BACKEND] {
                let counted = histogram(&many[stage]).total();
                assert!(counted.abs_diff(commands) < 64, "{counted} of {commands}");
            }
        }
        assert_eq!(sample.take(), None);
    }

    #[test]
    fn percentiles_are_those_of_all_also_where_each_so_many_is_slow() {
        let sample = StageSample::new(3);
        for (commands, every) in [(20_000, 16), (20_000, 32), (3_000, 16), (200_000, 64)] {
            let took = |n: u64| if n % every == 5 { 3_000 } else { 80 + n % 7 };
            let mut exact = Histogram::default();
            (0..commands).for_each(|n| exact.count_at(micros(took(n))));
            let counts = sampled(&sample, (0..commands).map(took));
            let counted = histogram(&counts[BACKEND]);
            let both = [&counted, &exact].map(|it| it.quantiles([500, 990]));
            assert_eq!(both[0], both[1], "one of {every}");
            let slow = u64::from(counts[BACKEND][micros(3_000).bucket()]);
            let wanted = commands / every;
            assert!(slow.abs_diff(wanted) <= wanted / 2, "{slow} for {wanted}");
        }
    }

    #[test]
    fn the_sample_of_a_busy_session_is_small() {
        let sample = StageSample::new(5);
        let in_it = (0..1_000_000).filter(|_| sample.next() > 0).count();
        let most = 6 * 128 + 1_000_000 / 64;
        assert!((most - 200..=most).contains(&in_it), "{in_it}");
    }

    #[test]
    fn what_a_journal_answers_is_its_stage_and_what_nobody_was_given_is_of_no_storage() {
        let sample = StageSample::new(1);
        for storage in [Some((Storage::Journal, micros(370))), None] {
            sample.count(&Sampled {
                transfer: Transfer::Write,
                stands_for: 1,
                network: micros(100),
                queue: micros(30),
                storage,
            });
        }
        let [reads, writes] = sample.take().expect("there were some");
        assert_eq!(reads, None);
        let writes = writes.expect("writes");
        let stages = writes.map(|it| histogram(&it));
        let stages = stages.map(|it| (it.total(), it.quantiles([990])));
        let took = |count, micros| (count, Some([micros]));
        assert_eq!(stages, [took(2, 112), took(2, 32), took(1, 384), (0, None)]);
    }
}
