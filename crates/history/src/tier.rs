//! How long figures are kept, and how coarse.

/// Points of a chunk, in every tier.
pub(crate) const POINTS: usize = 60;

/// A resolution and how long it is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tier {
    /// Its number, which stands in keys; 0 is the finest.
    pub(crate) number: u8,
    /// Seconds of a point.
    pub step: u64,
    /// Seconds that a point is kept.
    pub kept: u64,
    /// Seconds of it that a coarser tier gives way to, where the file is full.
    pub(crate) kept_least: u64,
}

/// The finest first. A chunk of each has whole points of the next one, so that what is under way in
/// a point can be put together again from one chunk of the tier before.
pub const TIERS: [Tier; 3] = [
    Tier {
        number: 0,
        step: 1,
        kept: 3_600,
        kept_least: 600,
    },
    Tier {
        number: 1,
        step: 10,
        kept: 2 * 86_400,
        kept_least: 6 * 3_600,
    },
    Tier {
        number: 2,
        step: 300,
        kept: 365 * 86_400,
        kept_least: 0,
    },
];

/// Objects have numbers below this in keys.
pub(crate) const OBJECTS_MAX: u32 = 1 << 24;

const CHUNK_BITS: u32 = 36;
const OBJECT_BITS: u32 = 24;

impl Tier {
    /// Seconds of a chunk.
    pub(crate) const fn span(self) -> u64 {
        self.step * POINTS as u64
    }

    /// The chunk that a second is in.
    pub(crate) const fn chunk(self, second: u64) -> u64 {
        second / self.span()
    }

    /// The place of a second's point in its chunk.
    pub(crate) fn place(self, second: u64) -> usize {
        usize::try_from(second % self.span() / self.step).unwrap_or(0)
    }

    /// The key of a chunk's row: rows lie by tier, then by time, so that new ones come at the end
    /// of their tier and old ones go in a row.
    pub(crate) fn key(self, chunk: u64, object: u32) -> i64 {
        let chunk = chunk.min((1 << CHUNK_BITS) - 1);
        let key = u64::from(self.number) << (CHUNK_BITS + OBJECT_BITS);
        let key = key | chunk << OBJECT_BITS | u64::from(object.min(OBJECTS_MAX - 1));
        i64::try_from(key).unwrap_or(i64::MAX)
    }
}

/// The object of a key.
pub(crate) fn object_of(key: i64) -> u32 {
    u32::try_from(key & ((1 << OBJECT_BITS) - 1)).unwrap_or(0)
}

/// The chunk of a key.
pub(crate) fn chunk_of(key: i64) -> u64 {
    u64::try_from((key >> OBJECT_BITS) & ((1 << CHUNK_BITS) - 1)).unwrap_or(0)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_tier_time_and_object() {
        let mut last = -1;
        for tier in TIERS {
            for chunk in [0, 1, 29_000_000, (1 << CHUNK_BITS) - 1] {
                for object in [0, 1, 77, OBJECTS_MAX - 1] {
                    let key = tier.key(chunk, object);
                    assert!(key > last);
                    assert_eq!((chunk_of(key), object_of(key)), (chunk, object));
                    last = key;
                }
            }
        }
    }

    #[test]
    fn a_chunk_has_whole_points_of_the_next_tier() {
        for [fine, coarse] in TIERS.array_windows() {
            assert_eq!(fine.span() % coarse.step, 0);
        }
    }
}
