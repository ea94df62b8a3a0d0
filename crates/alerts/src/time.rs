//! Time, as it comes in and as it is stored.

use manifest::time::{parse, rfc3339};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use std::time::Duration;
use units::{Now, WallClock};

/// A moment by both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// What spans are measured with.
    pub steady: Now,
    /// What people read, and what outlives the daemon.
    pub wall: WallClock,
}

impl Moment {
    /// How long it is since `before`, by the steady clock.
    #[must_use]
    pub fn since(self, before: Now) -> Duration {
        Duration::from_nanos(self.steady.0.saturating_sub(before.0))
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.wall.0 / 1_000_000_000
    }
}

/// So many seconds after a moment of the wall clock.
pub(crate) fn later(wall: WallClock, seconds: u64) -> WallClock {
    WallClock(wall.0.saturating_add(seconds.saturating_mul(1_000_000_000)))
}

/// For `serde(with)`: a moment as RFC 3339 has it.
pub(crate) mod moment {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(at: &WallClock, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&rfc3339(*at))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<WallClock, D::Error> {
        let text = String::deserialize(from)?;
        parse(&text).ok_or_else(|| D::Error::custom("no time as RFC 3339 has it"))
    }
}

/// The same of a moment that may be missing.
pub(crate) mod moment_or_none {
    use super::*;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(
        at: &Option<WallClock>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => to.serialize_str(&rfc3339(*at)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<WallClock>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let read = |text: String| {
            parse(&text).ok_or_else(|| D::Error::custom("no time as RFC 3339 has it"))
        };
        text.map(read).transpose()
    }
}
