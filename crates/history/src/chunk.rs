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
        let found = self
            .metrics
            .binary_search_by_key(&metric, |(known, _)| *known);
        let at = found.unwrap_or_else(|at| {
            let gaps = Box::new([Packed::default(); POINTS]);
            self.metrics.insert(at, (metric, gaps));
            at
        });
        &mut self.metrics[at].1
    }

    pub(crate) fn points(&self, metric: Metric) -> Option<&Points> {
        let found = self
            .metrics
            .binary_search_by_key(&metric, |(known, _)| *known);
        Some(&self.metrics[found.ok()?].1)
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
            for field in fields(*metric, self.tier) {
                let known = points.iter().filter(|point| point.seconds > 0);
                put(&mut out, known.map(|point| *field(&mut { *point })));
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
            for field in fields(metric, tier) {
                let codes = take(rest, known)?;
                let known = points.iter_mut().filter(|point| point.seconds > 0);
                for (point, code) in known.zip(codes) {
                    *field(point) = code;
                }
            }
            complete(metric, tier, points);
        }
        rest.is_empty().then_some(chunk)
    }
}

type Field = fn(&mut Packed) -> &mut u16;

/// What a file has of a metric's points: the sum or the mean, of a gauge in a point of several
/// seconds the least and the most as well.
fn fields(metric: Metric, tier: Tier) -> &'static [Field] {
    const ALL: [Field; 3] = [
        |point| &mut point.middle,
        |point| &mut point.min,
        |point| &mut point.max,
    ];
    if metric.behaviour() != Behaviour::Gauge || tier.step == 1 {
        return &ALL[..1];
    }
    &ALL
}

/// The fields that a file does not have.
fn complete(metric: Metric, tier: Tier, points: &mut Points) {
    if fields(metric, tier).len() > 1 {
        return;
    }
    for point in points.iter_mut().filter(|point| point.seconds > 0) {
        (point.min, point.max) = (point.middle, point.middle);
    }
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
