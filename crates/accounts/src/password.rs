//! Passwords: their rules and their hashes.
//!
//! **Spec.** RFC 9106 "Argon2", variant Argon2id, with the least parameters of OWASP's "Password
//! Storage Cheat Sheet": 19 MiB, two passes, one lane. NIST SP 800-63B: length counts, and nothing
//! is asked of the kinds of characters.

use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The shortest password, in characters.
pub const CHARACTERS_MIN: usize = 12;

/// The longest password, in bytes: hashing more takes longer for nothing.
pub const BYTES_MAX: usize = 1024;

/// How many random bytes a hash is salted with.
pub const SALT_BYTES: usize = 16;

const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// What is verified where there is no such user, so that it takes as long as where there is one.
/// Nobody knows a password for it.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$Y2F1c2V3YXktbm9ib2R5IQ\
                       $AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

/// The hash of a password in the form `$argon2id$v=19$m=...$SALT$HASH`. It does not print itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// One that no password fits.
    #[must_use]
    pub fn of_nobody() -> Self {
        Self(NOBODYS.to_owned())
    }

    /// Whether it is of the kind that this version makes and verifies.
    pub(crate) fn is_whole(&self) -> bool {
        let fields: Vec<&str> = self.0.split('$').collect();
        let is_text = |field: &str| field.len() >= 16 && field.is_ascii();
        matches!(fields.as_slice(), ["", "argon2id", "v=19", parameters, salt, hash]
            if parameters.starts_with("m=") && is_text(salt) && is_text(hash))
    }

    /// What decides how long it takes to verify it.
    #[cfg(test)]
    pub(crate) fn cost(&self) -> String {
        let fields: Vec<&str> = self.0.split('$').collect();
        let lengths: Vec<usize> = fields.iter().skip(4).map(|field| field.len()).collect();
        format!("{} {:?}", fields[1..4].join(" "), lengths)
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

/// Whether `password` may be the password of the user `name`.
///
/// # Errors
/// The rule that it breaks. The password itself is not in it.
pub fn check(name: &str, password: &Secret) -> Result<(), Problem> {
    let refuse = |why: &str| Err(Problem::new(Code::PasswordRule, why));
    let Some(text) = password.reveal_text() else {
        return refuse("the password is not text in UTF-8");
    };
    if text.chars().count() < CHARACTERS_MIN {
        return refuse("the password has fewer than 12 characters");
    }
    if text.len() > BYTES_MAX {
        return refuse("the password has more than 1024 bytes");
    }
    let (lower, name) = (text.to_lowercase(), name.to_lowercase());
    if lower == name || (!name.is_empty() && lower.replace(&name, "").is_empty()) {
        return refuse("the password is the user's name");
    }
    let mut different: Vec<char> = lower.chars().collect();
    different.sort_unstable();
    different.dedup();
    if different.len() < 4 {
        return refuse("the password has fewer than 4 different characters");
    }
    Ok(())
}

/// Hashes a password. It takes some 30 ms of a processor and 19 MiB: on a thread that may block.
///
/// # Errors
/// The library refuses, which it does not for salts of this length.
pub fn hash(password: &Secret, salt: [u8; SALT_BYTES]) -> Result<PasswordHash, Problem> {
    let failed = |why: String| Problem::new(Code::Internal, format!("hashing a password: {why}"));
    let parameters = Params::new(MEMORY_KIB, PASSES, LANES, None);
    let parameters = parameters.map_err(|error| failed(error.to_string()))?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
    let made = argon2.hash_password_with_salt(password.reveal(), &salt);
    made.map(|hash| PasswordHash(hash.to_string()))
        .map_err(|error| failed(error.to_string()))
}

/// Whether `password` is the one that was hashed. As costly as [`hash`].
#[must_use]
pub fn verify(password: &Secret, hash: &PasswordHash) -> bool {
    if password.len() > BYTES_MAX {
        // As long as for any other one.
        let _ = Argon2::default().verify_password(b"", hash.0.as_str());
        return false;
    }
    Argon2::default()
        .verify_password(password.reveal(), hash.0.as_str())
        .is_ok()
}

/// A password that a person can type: 24 characters that cannot be taken for each other, of 32
/// kinds each: 120 bits.
#[must_use]
pub fn random(random: &mut dyn FnMut(&mut [u8])) -> Secret {
    const KINDS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 24];
    random(&mut bytes);
    let mut text = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 && at % 6 == 0 {
            text.push(b'-');
        }
        text.push(KINDS[usize::from(byte % 32)]);
    }
    Secret::new(text)
}
