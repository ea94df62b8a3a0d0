//! What units did since they were probed last, made where it is counted.
//!
//! **Contract.** One probes, again and again: what one has seen is no news for another. Each core
//! goes through its own histograms, and hands out of each what came in between: a few counts, and
//! no copy of all. A unit that is probed for the first time has no news.

use crate::times::{StageTimes, Times, Transfer};
use units::Histogram;
use units::histogram::{Glance, quantiles_of};

/// What the commands of one kind did, of one unit over all cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Did {
    /// How many there were, since the unit came up.
    pub count: u64,
    /// Nanoseconds that they waited for bytes to come or to go.
    pub network_nanos: u64,
    /// Nanoseconds that they waited for their turn.
    pub queue_nanos: u64,
    /// p50 and p99 in microseconds of those that came since the last probe; `None` where none did.
    pub took: Option<[u64; 2]>,
}

/// What some units did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct News {
    /// Their reads and their writes, in the order in which they were asked for.
    pub units: Vec<[Did; 2]>,
    /// How long the reads and the writes of all of them took that came since the last probe. The
    /// sums are not known.
    pub together: [Histogram; 2],
}

/// What a core has seen of one kind of a unit's commands.
#[derive(Debug, Default)]
struct Seen {
    glance: Glance,
    count: u64,
    nanos: u64,
}

/// What a core has seen of a unit.
#[derive(Debug, Default)]
pub(crate) struct Probed([Seen; 2]);

/// What one core says of one kind of a unit's commands.
#[derive(Clone, Copy, Default)]
struct Part {
    did: Did,
    /// How many of [`Here::counts`] are its own.
    counts: usize,
}

/// What one core says.
#[derive(Default)]
pub(crate) struct Here {
    parts: Vec<[Part; 2]>,
    /// One part after the other.
    counts: Vec<(u8, u32)>,
}

impl Here {
    /// With room for so many units.
    pub(crate) fn of(units: usize) -> Self {
        Self {
            parts: Vec::with_capacity(units),
            counts: Vec::with_capacity(units * 8),
        }
    }

    /// A unit that is not up here.
    pub(crate) fn nothing(&mut self) {
        self.parts.push([Part::default(); 2]);
    }

    /// Probes a unit. `may_have_news`: it may have counted something although no time passed.
    pub(crate) fn probe(
        &mut self,
        probed: &mut Option<Box<Probed>>,
        times: &StageTimes,
        may_have_news: bool,
    ) {
        let is_first = probed.is_none();
        let Probed(seen) = &mut **probed.get_or_insert_default();
        let kinds = [Transfer::Read, Transfer::Write].map(|kind| times.get(kind));
        let mut parts = [Part::default(); 2];
        for ((seen, times), part) in seen.iter_mut().zip(kinds).zip(&mut parts) {
            let had = self.counts.len();
            if may_have_news || is_first || seen.nanos != times.total.sum_nanos() {
                seen.count += seen.glance.probe(&times.total, &mut self.counts);
                seen.nanos = times.total.sum_nanos();
            }
            if is_first {
                self.counts.truncate(had);
            }
            *part = Part {
                did: seen.did(times),
                counts: self.counts.len() - had,
            };
        }
        self.parts.push(parts);
    }
}

impl Seen {
    fn did(&self, times: &Times) -> Did {
        Did {
            count: self.count,
            network_nanos: times.network.sum_nanos(),
            queue_nanos: times.queue.sum_nanos(),
            took: None,
        }
    }
}

/// Puts together what the cores say.
pub(crate) fn together(units: usize, cores: &[Here]) -> News {
    let mut news = News {
        units: Vec::with_capacity(units),
        together: Default::default(),
    };
    let mut rest: Vec<&[(u8, u32)]> = cores.iter().map(|here| &here.counts[..]).collect();
    let mut counts: Vec<(u8, u32)> = Vec::new();
    for unit in 0..units {
        let mut both = [Did::default(); 2];
        for (kind, did) in both.iter_mut().enumerate() {
            counts.clear();
            for (here, rest) in cores.iter().zip(&mut rest) {
                let part = here.parts[unit][kind];
                did.count += part.did.count;
                did.network_nanos += part.did.network_nanos;
                did.queue_nanos += part.did.queue_nanos;
                let (own, others) = rest.split_at(part.counts);
                counts.extend_from_slice(own);
                *rest = others;
            }
            if cores.len() > 1 {
                counts.sort_unstable_by_key(|(bucket, _)| *bucket);
            }
            did.took = quantiles_of(&counts, [500, 990]);
            news.together[kind].add_counts(&counts);
        }
        news.units.push(both);
    }
    news
}

#[cfg(test)]
mod test {
    use super::*;
    use std::time::Duration;

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % end
        }

        fn time(&mut self) -> Duration {
            let power = self.below(26);
            Duration::from_nanos(1 + self.below(2_000 << power))
        }
    }

    /// What a unit counted, as it was copied.
    fn sum(cores: &[Vec<StageTimes>], unit: usize) -> StageTimes {
        let mut sum = StageTimes::default();
        cores.iter().for_each(|here| sum.add(&here[unit]));
        sum
    }

    #[test]
    fn news_are_what_the_difference_of_two_copies_says() {
        const CORES: usize = 3;
        const UNITS: usize = 5;
        let mut random = Random(88_172_645_463_325_252);
        let mut cores = vec![vec![StageTimes::default(); UNITS]; CORES];
        let mut probed: Vec<Vec<Option<Box<Probed>>>> = (0..CORES)
            .map(|_| (0..UNITS).map(|_| None).collect())
            .collect();
        let mut before: Option<Vec<StageTimes>> = None;
        for _ in 0..300 {
            for times in cores.iter_mut().flatten() {
                for _ in 0..random.below(4) {
                    let kind = match random.below(2) {
                        0 => Transfer::Read,
                        _ => Transfer::Write,
                    };
                    times.of(kind).total.count(random.time());
                    times.of(kind).queue.count(random.time());
                    times.of(kind).network.count(random.time());
                }
            }
            let here = cores.iter().zip(&mut probed).map(|(times, probed)| {
                let mut here = Here::of(UNITS);
                for (times, probed) in times.iter().zip(probed) {
                    here.probe(probed, times, false);
                }
                here
            });
            let news = together(UNITS, &here.collect::<Vec<_>>());
            let now: Vec<StageTimes> = (0..UNITS).map(|unit| sum(&cores, unit)).collect();
            let mut all = [Histogram::default(), Histogram::default()];
            for (unit, now) in now.iter().enumerate() {
                for (kind, transfer) in [Transfer::Read, Transfer::Write].into_iter().enumerate() {
                    let now = now.get(transfer);
                    let since = before
                        .as_ref()
                        .map(|before| now.total.since(&before[unit].get(transfer).total));
                    let wanted = Did {
                        count: now.total.total(),
                        network_nanos: now.network.sum_nanos(),
                        queue_nanos: now.queue.sum_nanos(),
                        took: since.as_ref().and_then(|it| it.quantiles([500, 990])),
                    };
                    assert_eq!(news.units[unit][kind], wanted);
                    all[kind].add(&since.unwrap_or_default());
                }
            }
            for (news, wanted) in news.together.iter().zip(&all) {
                assert_eq!(news.buckets(), wanted.buckets());
            }
            before = Some(now);
        }
    }

    #[test]
    fn a_command_that_took_no_time_is_news_where_somebody_says_that_there_may_be_some() {
        let (mut times, mut probed) = (StageTimes::default(), None);
        let mut probe = |times: &StageTimes, may_have_news| {
            let mut here = Here::of(1);
            here.probe(&mut probed, times, may_have_news);
            together(1, &[here]).units[0][0].took
        };
        assert_eq!(probe(&times, false), None);
        times.read.total.count(Duration::ZERO);
        assert_eq!(probe(&times, false), None);
        assert_eq!(probe(&times, true), Some([1, 1]));
        assert_eq!(probe(&times, true), None);
    }
}
