//! Secrets: never printed, overwritten when dropped, compared without haste.

use serde::{Deserialize, Deserializer};
use std::fmt;

/// A CHAP secret or an access token.
///
/// It has no `Serialize`: what leaves the process with it in must say so by calling
/// [`Secret::reveal`].
#[derive(Clone, Default)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes over the bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The secret as a file holds it: one line end at its end does not belong to it.
    #[must_use]
    pub fn from_file(mut bytes: Vec<u8>) -> Self {
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        Self(bytes)
    }

    /// The bytes. Every use is a place to review.
    #[must_use]
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text, where they are.
    #[must_use]
    pub fn reveal_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// No byte at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The time that it takes depends on the lengths only.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let differs = self
            .0
            .iter()
            .zip(&other.0)
            .fold(0_u8, |all, (a, b)| all | (a ^ b));
        self.0.len() == other.0.len() && std::hint::black_box(differs) == 0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // The optimiser may not conclude that nobody reads the zeroes.
        std::hint::black_box(&self.0);
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(from)?.into_bytes()))
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        let secret = Secret::new(b"correct horse".to_vec());
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn secrets_are_equal_only_when_every_byte_is() {
        let a = Secret::new(b"correct horse".to_vec());
        assert_eq!(a, Secret::new(b"correct horse".to_vec()));
        assert_ne!(a, Secret::new(b"correct hors".to_vec()));
        assert_ne!(a, Secret::new(b"correct horsf".to_vec()));
        assert_ne!(a, Secret::default());
    }

    #[test]
    fn one_line_end_is_not_part_of_a_secret_file() {
        let read = |bytes: &[u8]| Secret::from_file(bytes.to_vec());
        assert_eq!(read(b"abc\n").reveal(), b"abc");
        assert_eq!(read(b"abc\r\n").reveal(), b"abc");
        assert_eq!(read(b"abc\n\n").reveal(), b"abc\n");
        assert_eq!(read(b" abc ").reveal(), b" abc ");
    }
}
