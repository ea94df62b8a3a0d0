//! Line rates as people and `tc` write them.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rate(u64);

impl Rate {
    /// 1 Gb/s.
    pub const GIGABIT: Self = Self(1_000_000_000);

    /// So many Mb/s.
    #[must_use]
    pub const fn megabits(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// What it carries at most, in MB/s, headers included.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn megabytes(self) -> f64 {
        self.0 as f64 / 8e6
    }
}

impl FromStr for Rate {
    type Err = String;

    /// `1G`, `100M`, `2500Mb/s`: from 1 Mb/s to 100 Gb/s.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is no rate: write it like 1Gb/s or 100M, from 1M to 100G");
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let factor = match unit.trim().trim_end_matches("b/s") {
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            _ => return Err(bad()),
        };
        let bits = number
            .parse::<u64>()
            .ok()
            .and_then(|it| it.checked_mul(factor));
        let fits = bits.filter(|it| (1_000_000..=100_000_000_000).contains(it));
        fits.map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1_000_000_000) {
            write!(f, "{} Gb/s", self.0 / 1_000_000_000)
        } else {
            write!(f, "{} Mb/s", self.0 / 1_000_000)
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them_and_nothing_else_is() {
        let read = |text: &str| text.parse::<Rate>().ok();
        assert_eq!(read("1Gb/s"), Some(Rate::GIGABIT));
        assert_eq!(read("100M"), Some(Rate::megabits(100)));
        assert_eq!(Rate::megabits(2500).to_string(), "2500 Mb/s");
        for bad in ["", "0M", "1", "1K", "200G", "fast", "-1G"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
