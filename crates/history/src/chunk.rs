//! Sixty points of each metric of an object, as one row of the file has them.

use crate::column::{put, put_varint, take, take_varint};
use crate::metric::{Behaviour, Metric};
use crate::point::Packed;
use crate::tier::{POINTS, Tier};
use formats::crc32c;

const VERSION: u8 = 1;

/// The points of one metric.
pub(crate) type Points = [Packed; POINTS];

/// The points of an object over a chunk's time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    pub(crate) tier: Tier,
    pub(crate) number: u64,
    pub(crate) metrics: Vec<(Metric, Box<Points>)>,
}

/// A row of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// Where it lies.
    pub(crate) key: i64,
    /// A chunk.
    pub(crate) bytes: Vec<u8>,
}

impl Chunk {
    pub(crate) fn new(tier: Tier, number: u64) -> Self {
        Self {
            tier,
            number,
            metrics: Vec::new(),
        }
    }

    /// The points of a metric, gaps where it has none yet.
    pub(crate) fn points_mut(&mut self, metric: Metric) -> &mut Points {
        self.points_from(&mut 0, metric)
    }

    /// The same for whoever asks for one metric after the other, in their order: begins at `at`,
    /// where the one before was found.
    pub(crate) fn points_from(&mut self, at: &mut usize, metric: Metric) -> &mut Points {
        let is_before = |(known, _): &(Metric, Box<Points>)| *known < metric;
        while self.metrics.get(*at).is_some_and(is_before) {
            *at += 1;
        }
        if self
            .metrics
            .get(*at)
            .is_none_or(|(known, _)| *known != metric)
        {
            let gaps = Box::new([Packed::default(); POINTS]);
            self.metrics.insert(*at, (metric, gaps));
        }
        &mut self.metrics[*at].1
    }

    pub(crate) fn points(&self, metric: Metric) -> Option<&Points> {
        let found = self
            .metrics
            .binary_search_by_key(&metric, |(known, _)| *known);
        Some(&self.metrics[found.ok()?].1)
    }

    /// As the row of an object.
    pub(crate) fn row(&self, object: u32) -> Row {
        Row {
            key: self.tier.key(self.number, object),
            bytes: self.encode(),
        }
    }

    /// As a file has it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        out.push(VERSION);
        for (metric, points) in &self.metrics {
            if points.iter().all(|point| point.seconds == 0) {
                continue;
            }
            out.push(metric.number());
            put(&mut out, points.iter().map(|point| point.seconds));
            let known = || points.iter().filter(|point| point.seconds > 0);
            put(&mut out, known().map(|point| point.middle));
            if has_ends(*metric, self.tier) {
                put(&mut out, known().map(|point| point.min));
                put(&mut out, known().map(|point| point.max));
            }
        }
        // The end.
        put_varint(&mut out, 0);
        let sum = crc32c(&out[4..]).to_le_bytes();
        out[..4].copy_from_slice(&sum);
        out
    }

    /// As it was encoded; `None` where the bytes are none of ours or are damaged.
    pub(crate) fn decode(tier: Tier, number: u64, bytes: &[u8]) -> Option<Self> {
        let (sum, mut rest) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*sum) != crc32c(rest) {
            return None;
        }
        let mut chunk = Self::new(tier, number);
        let rest = &mut rest;
        if take_varint(rest)? != u32::from(VERSION) {
            return None;
        }
        loop {
            let metric = match take_varint(rest)? {
                0 => break,
                metric => Metric::numbered(u8::try_from(metric).ok()?)?,
            };
            let seconds = take(rest, POINTS)?;
            let points = chunk.points_mut(metric);
            for (point, seconds) in points.iter_mut().zip(seconds) {
                point.seconds = seconds;
            }
            let known = points.iter().filter(|point| point.seconds > 0).count();
            let middle = take(rest, known)?;
            let (min, max) = match has_ends(metric, tier) {
                true => (take(rest, known)?, take(rest, known)?),
                false => (middle.clone(), middle.clone()),
            };
            let known = points.iter_mut().filter(|point| point.seconds > 0);
            for (point, at) in known.zip(0..) {
                (point.middle, point.min, point.max) = (middle[at], min[at], max[at]);
            }
        }
        rest.is_empty().then_some(chunk)
    }
}

/// A file has the sum or the mean of each point; of a gauge in a point of several seconds the least
/// and the most as well.
fn has_ends(metric: Metric, tier: Tier) -> bool {
    metric.behaviour() == Behaviour::Gauge && tier.step > 1
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::metric::METRICS;
    use crate::point::Point;
    use crate::tier::TIERS;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn figures() -> impl Strategy<Value = Vec<Option<(u64, u64)>>> {
        vec(
            proptest::option::of((0..3_000_u64, 0..u64::MAX / 600)),
            POINTS,
        )
    }

    fn chunk(tier: Tier, all: &[Vec<Option<(u64, u64)>>]) -> Chunk {
        let mut chunk = Chunk::new(tier, 5);
        for (metric, figures) in METRICS.into_iter().zip(all) {
            let points = chunk.points_mut(metric);
            for (point, figures) in points.iter_mut().zip(figures) {
                let Some((small, large)) = *figures else {
                    continue;
                };
                let mut known = Point::one(large);
                if tier.step > 1 {
                    known.add(&Point::one(small));
                }
                *point = Packed::of(metric, &known);
                if metric.behaviour() != Behaviour::Gauge {
                    (point.min, point.max) = (point.middle, point.middle);
                }
            }
        }
        let has = |points: &Points| points.iter().any(|point| point.seconds > 0);
        chunk.metrics.retain(|(_, points)| has(points));
        chunk
    }

    proptest! {
        #[test]
        fn a_chunk_comes_back(all in vec(figures(), 0..10), tier in 0..3_usize) {
            let chunk = chunk(TIERS[tier], &all);
            let back = Chunk::decode(TIERS[tier], 5, &chunk.encode());
            prop_assert_eq!(back, Some(chunk));
        }

        #[test]
        fn a_chunk_with_any_other_byte_is_none(all in vec(figures(), 1..4), at: usize, xor in 1..=255_u8) {
            let mut bytes = chunk(TIERS[1], &all).encode();
            let length = bytes.len();
            bytes[at % length] ^= xor;
            prop_assert_eq!(Chunk::decode(TIERS[1], 5, &bytes), None);
        }

        #[test]
        fn any_bytes_with_their_checksum_are_a_chunk_or_none(bytes in vec(any::<u8>(), 0..200)) {
            let mut all = crc32c(&bytes).to_le_bytes().to_vec();
            all.extend(bytes);
            let _ = Chunk::decode(TIERS[0], 5, &all);
        }
    }
}
