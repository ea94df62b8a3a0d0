//! CHAP: challenge and response with MD5, SHA-1, SHA-256 and SHA3-256.
//!
//! Challenges are handed in by the caller, who has the random source. Responses are compared in
//! constant time. Nothing here decides who may log in: it fails closed by answering only "this
//! response is right".
//!
//! Spec: RFC 7143 12.1.3 "Challenge Handshake Authentication Protocol (CHAP)", RFC 1994, RFC 8018
//! of the IANA registry "PPP Authentication Algorithms": 5 MD5, 6 SHA-1, 7 SHA-256, 8 SHA3-256.

use core::fmt;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::Sha256;
use sha3::Sha3_256;
use subtle::ConstantTimeEq;

/// Bytes of the challenges that we send.
pub const CHALLENGE_BYTES: usize = 32;
/// Longest challenge that we answer, in bytes (RFC 7143 12.1.3: up to 1024).
pub const CHALLENGE_BYTES_MAX: usize = 1024;

/// A hash function by its number in CHAP_A (RFC 7143 12.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ChapAlgorithm {
    /// 5: MD5. Every initiator has it.
    Md5 = 5,
    /// 6: SHA-1.
    Sha1 = 6,
    /// 7: SHA-256.
    Sha256 = 7,
    /// 8: SHA3-256.
    Sha3 = 8,
}

impl ChapAlgorithm {
    /// All of them, best first.
    pub const ALL: [Self; 4] = [Self::Sha3, Self::Sha256, Self::Sha1, Self::Md5];

    /// The algorithm of this number.
    #[must_use]
    pub const fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            5 => Self::Md5,
            6 => Self::Sha1,
            7 => Self::Sha256,
            8 => Self::Sha3,
            _ => return None,
        })
    }

    /// Response to `challenge` with `identifier`: the hash of identifier, secret and challenge.
    #[must_use]
    pub fn response(self, identifier: u8, secret: &Secret, challenge: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => hash::<Md5>(identifier, secret, challenge),
            Self::Sha1 => hash::<Sha1>(identifier, secret, challenge),
            Self::Sha256 => hash::<Sha256>(identifier, secret, challenge),
            Self::Sha3 => hash::<Sha3_256>(identifier, secret, challenge),
        }
    }

    /// `response` is right; compared in constant time.
    #[must_use]
    pub fn verify(
        self,
        identifier: u8,
        secret: &Secret,
        challenge: &[u8],
        response: &[u8],
    ) -> bool {
        let expected = self.response(identifier, secret, challenge);
        // A length that differs is public: the algorithm fixes it.
        !secret.0.is_empty() && bool::from(expected.as_slice().ct_eq(response))
    }
}

fn hash<D: Digest>(identifier: u8, secret: &Secret, challenge: &[u8]) -> Vec<u8> {
    let mut hash = D::new();
    hash.update([identifier]);
    hash.update(&secret.0);
    hash.update(challenge);
    hash.finalize().to_vec()
}

/// A CHAP secret. Never printed. An empty one opens nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// The secret of these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// Both secrets are the same; compared in constant time.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        bool::from(self.0.ct_eq(&other.0))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The hash of "abc": identifier 'a', secret "b", challenge "c".
    // spec: RFC 7143 12.1.3 "Challenge Handshake Authentication Protocol (CHAP)".
    #[test]
    fn each_algorithm_is_the_hash_of_identifier_secret_and_challenge() {
        let cases = [
            (ChapAlgorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
            (
                ChapAlgorithm::Sha1,
                "a9993e364706816aba3e25717850c26c9cd0d89d",
            ),
            (
                ChapAlgorithm::Sha256,
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                ChapAlgorithm::Sha3,
                "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
            ),
        ];
        for (algorithm, expected) in cases {
            let secret = Secret::new(b"b");
            let response = algorithm.response(b'a', &secret, b"c");
            assert_eq!(hex(&response), expected);
            assert!(algorithm.verify(b'a', &secret, b"c", &response));
            assert!(!algorithm.verify(b'b', &secret, b"c", &response));
            assert!(!algorithm.verify(b'a', &secret, b"d", &response));
            assert!(!algorithm.verify(b'a', &Secret::new(b"x"), b"c", &response));
            for cut in 0..response.len() {
                assert!(!algorithm.verify(b'a', &secret, b"c", &response[..cut]));
            }
        }
    }

    #[test]
    fn an_empty_secret_opens_nothing() {
        let secret = Secret::new(b"");
        let response = ChapAlgorithm::Md5.response(1, &secret, b"challenge");
        assert!(!ChapAlgorithm::Md5.verify(1, &secret, b"challenge", &response));
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
