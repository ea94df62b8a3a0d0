//! Tokens: what programs send instead of a password.

use manifest::secret::Secret;
use sha2::{Digest, Sha256};
use units::hex;

/// What a token begins with, so that scanners of source code find one that was left there.
const PREFIX: &str = "cwy_";

/// A token that was just made.
pub struct NewToken {
    /// Its identifier, by which it is listed and deleted.
    pub id: String,
    /// What its holder sends; shown once, and kept by nobody.
    pub secret: Secret,
    /// What is kept of it.
    pub hash: String,
}

/// Makes a token of 32 random bytes.
#[must_use]
pub fn new_token(random: &mut dyn FnMut(&mut [u8])) -> NewToken {
    let (mut id, mut bytes) = ([0; 8], [0; 32]);
    random(&mut id);
    random(&mut bytes);
    let secret = Secret::new(format!("{PREFIX}{}", hex(&bytes)).into_bytes());
    NewToken {
        id: hex(&id),
        hash: digest(&secret),
        secret,
    }
}

/// What is kept of a secret that is random: SHA-256 is enough, nobody guesses 256 bits.
pub(crate) fn digest(secret: &Secret) -> String {
    hex(&Sha256::digest(secret.reveal()))
}
