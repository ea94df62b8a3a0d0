//! SHA-256 of a certificate or a key.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;

/// SHA-256 of bytes; written as openssl(1) shows it: `AB:CD:...`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads it as it is written, with or without the colons; `None`: it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text.bytes().filter(|it| *it != b':').collect();
        let (pairs, rest) = digits.as_chunks::<2>();
        if !rest.is_empty() || pairs.len() != 32 {
            return None;
        }
        let mut out = [0; 32];
        for (to, pair) in out.iter_mut().zip(pairs) {
            let digit = |it: u8| char::from(it).to_digit(16);
            let value = digit(pair[0])? * 16 + digit(pair[1])?;
            *to = u8::try_from(value).ok()?;
        }
        Some(Self(out))
    }

    /// As SHA-256 gives it, the first octet first.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("no SHA-256 fingerprint"))
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn it_is_written_as_openssl_does_and_read_back() {
        let it = Fingerprint::of(b"abc");
        let text = it.to_string();
        assert!(text.starts_with("BA:78:16:BF:8F:01:CF:EA"), "{text}");
        for text in [
            text.clone(),
            text.replace(':', ""),
            text.to_ascii_lowercase(),
        ] {
            assert_eq!(Fingerprint::parse(&text), Some(it));
        }
        for bad in ["", "BA", &text[..93], &text.replace('B', "G")] {
            assert_eq!(Fingerprint::parse(bad), None, "{bad}");
        }
    }
}
