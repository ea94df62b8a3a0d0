//! Text: key=value pairs, each ended by a zero byte, in one data segment or a chain of them.
//!
//! **Contract.** What a peer sends is bounded by the limit that [`TextBuffer`] was made with. A
//! last pair without its zero byte is read as if it had one: the segment's end is known, nothing is
//! over-read, and some firmware forgets it (field lesson 47).
//!
//! Spec: RFC 7143 6.1 "Text Format", 6.2 "Text Mode Negotiation".

use crate::violation::{Violation, ViolationKind};
use units::base64;

/// Longest key name, in bytes.
pub const KEY_BYTES_MAX: usize = 63;

const CLAUSE: &str = "6.1 \"Text Format\"";

/// The text of a chain of PDUs (C bit) while it comes in.
pub(crate) struct TextBuffer {
    bytes: Vec<u8>,
    limit: usize,
}

impl TextBuffer {
    /// An empty chain that never grows past `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
        }
    }

    /// Adds the data segment of one PDU.
    pub(crate) fn append(&mut self, segment: &[u8]) -> Result<(), Violation> {
        if self.bytes.len().saturating_add(segment.len()) > self.limit {
            return Err(Violation::new(
                ViolationKind::BadText,
                "6.2 \"Text Mode Negotiation\"",
                "more text than is held",
            ));
        }
        self.bytes.extend_from_slice(segment);
        Ok(())
    }

    /// Memory that the chain takes, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The whole text; the buffer is empty afterwards.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }
}

/// The pairs of a whole text, in order. Empty pairs (extra zero bytes) are passed over.
///
/// # Errors
/// Text that is not UTF-8, a pair without `=`, or a key name that is empty or too long.
pub fn pairs(text: &[u8]) -> Result<Vec<(&str, &str)>, Violation> {
    let bad = |what| Violation::new(ViolationKind::BadText, CLAUSE, what);
    let text = core::str::from_utf8(text).map_err(|_| bad("text is not UTF-8"))?;
    text.split('\0')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or(bad("a pair without '='"))?;
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return Err(bad("a key name of wrong length"));
            }
            Ok((key, value))
        })
        .collect()
}

/// Adds `key=value` and its zero byte.
pub(crate) fn push(text: &mut Vec<u8>, key: &str, value: &str) {
    text.extend_from_slice(key.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value.as_bytes());
    text.push(0);
}

/// A number: decimal, or hexadecimal after `0x`.
#[must_use]
pub fn number(value: &str) -> Option<u64> {
    let hexadecimal = value
        .strip_prefix("0x")
        .or_else(|| value.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((value, 10), |digits| (digits, 16));
    // `from_str_radix` would take a sign.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// Binary value: hexadecimal after `0x`, base64 after `0b`; at most `limit` bytes.
#[must_use]
pub fn binary(value: &str, limit: usize) -> Option<Vec<u8>> {
    let (encoding, digits) = value.split_at_checked(2)?;
    let bytes = match encoding {
        "0x" | "0X" => from_hexadecimal(digits)?,
        "0b" | "0B" => base64::decode(digits).filter(|it| !it.is_empty())?,
        _ => return None,
    };
    (bytes.len() <= limit).then_some(bytes)
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    if digits.is_empty() {
        return None;
    }
    let nibbles: Option<Vec<u8>> = digits
        .chars()
        .map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    let nibbles = nibbles?;
    // An odd first digit is a byte of its own, as in a number.
    let (first, rest) = nibbles.split_at(nibbles.len() & 1);
    let pair = |pair: &[u8]| pair.iter().fold(0u8, |byte, nibble| byte << 4 | nibble);
    Some(
        first
            .iter()
            .copied()
            .chain(rest.chunks(2).map(pair))
            .collect(),
    )
}

/// `bytes` as a binary value in hexadecimal.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let mut out = String::from("0x");
    for byte in bytes {
        for nibble in [byte >> 4, byte & 0x0F] {
            out.push(DIGITS.get(usize::from(nibble)).copied().unwrap_or('0'));
        }
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;

    // spec: RFC 7143 6.1 "Text Format".
    #[test]
    fn pairs_are_read_with_and_without_the_last_zero_byte() {
        for text in [&b"A=1\0B=\0"[..], b"A=1\0B=", b"A=1\0\0\0B=\0\0"] {
            assert_eq!(pairs(text).unwrap(), [("A", "1"), ("B", "")]);
        }
        assert_eq!(pairs(b"A=x=y\0").unwrap(), [("A", "x=y")]);
        assert!(pairs(b"").unwrap().is_empty());
    }

    #[test]
    fn text_that_is_not_pairs_is_refused() {
        for text in [&b"A\0"[..], b"=1\0", b"\xff=1\0", b"A=1\0B"] {
            assert_eq!(pairs(text).unwrap_err().kind, ViolationKind::BadText);
        }
        let long = format!("{}=1\0", "k".repeat(64));
        assert!(pairs(long.as_bytes()).is_err());
        assert!(pairs(&long.as_bytes()[1..]).is_ok());
    }

    // spec: RFC 7143 6.1 "Text Format".
    #[test]
    fn numbers_are_decimal_or_hexadecimal_and_never_signed() {
        assert_eq!(number("262144"), Some(262_144));
        assert_eq!(number("0x40000"), Some(0x4_0000));
        for bad in [
            "",
            "0x",
            "-1",
            "+1",
            "1 ",
            "12a",
            "99999999999999999999",
            "0x-1",
        ] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_chain_never_grows_past_its_limit() {
        let mut chain = TextBuffer::new(10);
        chain.append(b"123456").unwrap();
        assert!(chain.append(b"12345").is_err());
        chain.append(b"7890").unwrap();
        assert_eq!(chain.take(), b"1234567890");
    }

    #[test]
    fn base64_matches_known_values() {
        // RFC 4648 10 "Test Vectors".
        for (text, bytes) in [
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(binary(&format!("0b{text}"), 99).unwrap(), bytes.as_bytes());
        }
        for bad in ["0b", "0bA", "0b*A==", "0x", "0xg0", "0", "", "0é", "zz11"] {
            assert_eq!(binary(bad, 99), None, "{bad}");
        }
        assert_eq!(binary("0x123", 9).unwrap(), [1, 0x23]);
        assert_eq!(binary("0x1234", 1), None);
    }

    proptest! {
        #[test]
        fn hexadecimal_reads_back(bytes in proptest::collection::vec(any::<u8>(), 1..80)) {
            prop_assert_eq!(binary(&hexadecimal(&bytes), 80).unwrap(), bytes);
        }
    }
}
