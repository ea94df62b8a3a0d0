//! Sizes as people write them: `10G` and `10GiB` are binary, `10GB` is decimal, a bare number is
//! bytes.

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The largest size that is accepted, in bytes: 8 PiB, the largest power of two up to which every
/// JSON reader keeps integers exact.
pub const SIZE_BYTES_MAX: u64 = 1 << 53;

const UNITS: [(&str, u64); 16] = [
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
    ("p", 1 << 50),
    ("pib", 1 << 50),
    ("pb", 1_000_000_000_000_000),
];

/// A number of bytes, at most [`SIZE_BYTES_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Size(u64);

impl Size {
    /// So many bytes; `None` over the maximum.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        if bytes > SIZE_BYTES_MAX {
            return None;
        }
        Some(Self(bytes))
    }

    /// At most [`SIZE_BYTES_MAX`].
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// For people, in tables: see [`rounded`].
    #[must_use]
    pub fn rounded(self) -> String {
        rounded(self.0)
    }

    /// For people, in sentences: as [`rounded`], with the bytes where that is not all.
    #[must_use]
    pub fn reported(self) -> String {
        let (text, is_exact) = iec(self.0);
        if is_exact {
            return text;
        }
        format!("{text} ({} bytes)", self.0)
    }
}

/// So many bytes as people read them everywhere: in binary units, with up to one digit after the
/// point. What is typed again, in advice and in files, is exact and has no space in it: [`Size`]'s
/// own text.
#[must_use]
pub fn rounded(bytes: u64) -> String {
    iec(bytes).0
}

/// As [`rounded`], and whether it is all of it.
fn iec(bytes: u64) -> (String, bool) {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut shift = 0_u32;
    let mut unit = 0;
    while unit + 1 < units.len() && bytes >> (shift + 10) > 0 {
        shift += 10;
        unit += 1;
    }
    let whole = bytes >> shift;
    let rest = u128::from(bytes - (whole << shift)) * 10;
    let tenths = rest >> shift;
    let is_exact = tenths << shift == rest;
    let unit = units[unit];
    if tenths == 0 {
        return (format!("{whole} {unit}"), is_exact);
    }
    (format!("{whole}.{tenths} {unit}"), is_exact)
}

/// Exact, in the unit with the fewest digits, a binary one where both are as short: what
/// [`Size::from_str`] reads back to the same value.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: [(&str, u64); 8] = [
            ("TiB", 1 << 40),
            ("TB", 1_000_000_000_000),
            ("GiB", 1 << 30),
            ("GB", 1_000_000_000),
            ("MiB", 1 << 20),
            ("MB", 1_000_000),
            ("KiB", 1 << 10),
            ("KB", 1_000),
        ];
        let whole = SHOWN
            .into_iter()
            .filter(|(_, bytes)| self.0 > 0 && self.0.is_multiple_of(*bytes));
        let shortest = whole.min_by_key(|(unit, bytes)| (self.0 / bytes, unit.len() == 2));
        match shortest {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits_end = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits_end);
        let unit = unit.trim().to_ascii_lowercase();
        let unit_bytes = if unit.is_empty() {
            1
        } else {
            UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .map(|(_, bytes)| *bytes)
                .ok_or_else(|| not_a_size(text))?
        };
        let bytes = scaled(number, unit_bytes).ok_or_else(|| not_a_size(text))?;
        Self::from_bytes(bytes).ok_or_else(|| format!("\"{text}\" is over the maximum of 8 PiB"))
    }
}

fn not_a_size(text: &str) -> String {
    format!(
        "\"{text}\" is not a size: write 10G or 10GiB (binary), 10GB (decimal), or a number of bytes; \
         units are K, M, G, T, P"
    )
}

/// `number` (digits with at most one point) times `unit`; `None` where it is no number, no whole
/// number of bytes, or does not fit.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 12 {
        return None;
    }
    let mut bytes = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if !fraction.is_empty() {
        let tens = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        let parts = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit);
        if !parts.is_multiple_of(tens) {
            return None;
        }
        bytes = bytes.checked_add(u64::try_from(parts / tens).ok()?)?;
    }
    Some(bytes)
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes or a size such as \"10GiB\"")
            }
            fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<Size, E> {
                Size::from_bytes(bytes).ok_or_else(|| E::custom("over the maximum of 8 PiB"))
            }
            fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<Size, E> {
                let bytes =
                    u64::try_from(bytes).map_err(|_| E::custom("a size is not negative"))?;
                self.visit_u64(bytes)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_any(Reader).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn bytes(text: &str) -> u64 {
        text.parse::<Size>().unwrap().bytes()
    }

    #[test]
    fn bare_letters_and_ib_are_binary_and_b_is_decimal() {
        assert_eq!(bytes("10G"), 10 << 30);
        assert_eq!(bytes("10GiB"), 10 << 30);
        assert_eq!(bytes("10 gib"), 10 << 30);
        assert_eq!(bytes("10GB"), 10_000_000_000);
        assert_eq!(bytes("1.5T"), 3 << 39);
        assert_eq!(bytes("512"), 512);
        assert_eq!(bytes("4k"), 4096);
        assert_eq!(bytes("1KB"), 1000);
        assert_eq!(bytes("1mib"), 1 << 20);
    }

    #[test]
    fn what_is_no_size_is_refused_with_the_rule() {
        for text in [
            "",
            "G",
            "10X",
            "-1",
            "1.",
            ".5G",
            "0.3",
            "1e9",
            "10G G",
            "99999999999999999999",
        ] {
            let error = text.parse::<Size>().unwrap_err();
            assert!(error.contains("is not a size"), "{text}: {error}");
        }
        assert!("9000T".parse::<Size>().unwrap_err().contains("8 PiB"));
    }

    #[test]
    fn printing_and_reading_give_the_same_size() {
        for exact in [
            0,
            1,
            511,
            512,
            1024,
            1 << 30,
            (1 << 30) + 512,
            3 << 39,
            SIZE_BYTES_MAX,
        ] {
            let size = Size::from_bytes(exact).unwrap();
            assert_eq!(bytes(&size.to_string()), exact);
        }
        for (exact, shown) in [
            (10_000_000_000, "10GB"),
            (10 << 30, "10GiB"),
            (1_500_000_000, "1500MB"),
            (3 << 29, "1536MiB"),
            (16_384_000, "16000KiB"),
            (4096, "4KiB"),
            (511, "511"),
            (0, "0"),
        ] {
            assert_eq!(Size(exact).to_string(), shown);
        }
        assert_eq!(Size(3 << 29).rounded(), "1.5 GiB");
        assert_eq!(Size(0).rounded(), "0 B");
        assert_eq!(Size(SIZE_BYTES_MAX).rounded(), "8 PiB");
        assert_eq!(rounded(u64::MAX), "15.9 EiB");
        for (exact, reported) in [
            (0, "0 B"),
            (4096, "4 KiB"),
            (3 << 29, "1.5 GiB"),
            (10_000_000_000, "9.3 GiB (10000000000 bytes)"),
            ((1 << 30) + 512, "1 GiB (1073742336 bytes)"),
        ] {
            assert_eq!(Size(exact).reported(), reported);
        }
    }
}
