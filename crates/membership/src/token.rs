//! A token: what somebody carries to a node that is to join.

use crate::fingerprint::Fingerprint;
use crate::records::{TokenRecord, UsedBy};
use crate::refusal::{Refusal, RefusalKind};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use subtle::ConstantTimeEq;
use units::WallClock;
use units::rfc3339::{about, rfc3339};

/// What its text begins with.
const HEAD: &str = "causeway-join-1.";

/// Longest text of one, in bytes.
pub const TEXT_BYTES_MAX: usize = 8 << 10;

/// So many random bytes are more than anybody guesses before it ends.
pub const SECRET_BYTES: usize = 32;

/// Digits of the sum at its end.
const SUM_DIGITS: usize = 8;

/// What a token says. It is used once, and shown once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The cluster's identifier.
    pub cluster: String,
    /// Its name, for people.
    pub name: String,
    /// Who may be asked, one after the other.
    pub addresses: Vec<SocketAddr>,
    /// SHA-256 of the certificate of the authority: who is asked must have one that it signed.
    pub authority: Fingerprint,
    /// Its own identifier.
    pub id: String,
    /// 256 random bits, as digits.
    pub secret: String,
    /// Until when, in seconds since 1970.
    pub expires: u64,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Token");
        shown.field("id", &self.id).finish_non_exhaustive()
    }
}

impl Token {
    /// One line of text.
    ///
    /// # Panics
    /// Never: a token is plain data.
    #[must_use]
    pub fn text(&self) -> String {
        let body = serde_json::to_vec(self).expect("a token is plain data");
        let body = units::base64::encode(&body);
        let sum = sum(&body);
        format!("{HEAD}{body}.{sum}")
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is none, or a part of it is missing.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let bad = |why: &str| {
            Refusal::new(
                RefusalKind::Token,
                format!("this is no token of a cluster: {why}"),
                "write the whole line that `causeway cluster token` printed into a file, and nothing else",
            )
        };
        let text = text.trim();
        let rest = text.strip_prefix(HEAD);
        let rest = rest.ok_or_else(|| bad("it does not begin as one"))?;
        let (body, end) = rest
            .rsplit_once('.')
            .ok_or_else(|| bad("its end is missing"))?;
        if sum(body) != end {
            return Err(bad("a part of it is missing or was changed"));
        }
        let body = units::base64::decode(body).ok_or_else(|| bad("it cannot be read"))?;
        serde_json::from_slice(&body)
            .map_err(|error| bad(&format!("another version made it: {error}")))
    }
}

fn sum(body: &str) -> String {
    let mut digits = units::hex(Fingerprint::of(body.as_bytes()).bytes());
    digits.truncate(SUM_DIGITS);
    digits
}

/// Whether a secret is the one of a record; the time that it takes says nothing of it.
#[must_use]
pub fn is_secret_of(record: &TokenRecord, secret: &str) -> bool {
    let said = Fingerprint::of(secret.as_bytes());
    said.bytes().ct_eq(record.secret.bytes()).into()
}

/// What becomes of a token that a node comes with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Use {
    /// It is to be marked as used: this is to stand there.
    First(TokenRecord),
    /// The same node used it for the same key before, and the answer was lost.
    Again,
}

/// Whether `by` may use a token, `now` by this node's clock.
///
/// # Errors
/// It was used by somebody else, or has ended.
pub fn use_of(record: &TokenRecord, by: UsedBy, now: WallClock) -> Result<Use, Refusal> {
    let refused = |cause: String| {
        let next = "have another one made by `causeway cluster token` on a node of the cluster";
        Err(Refusal::new(RefusalKind::Token, cause, next))
    };
    match &record.used_by {
        Some(used) if *used == by => return Ok(Use::Again),
        Some(used) => {
            return refused(format!(
                "the token was used already, by the node {}",
                used.node
            ));
        }
        None => {}
    }
    let seconds = crate::authority::seconds(now);
    if record.expires <= seconds {
        let ago = about(seconds - record.expires);
        return refused(format!(
            "the token has ended {ago} ago, by the clock of the node that was asked ({})",
            rfc3339(now)
        ));
    }
    Ok(Use::First(TokenRecord {
        used_by: Some(by),
        ..record.clone()
    }))
}

/// Nobody knows this token, or its secret is another one. Both are said alike.
#[must_use]
pub fn unknown() -> Refusal {
    Refusal::new(
        RefusalKind::Token,
        "the cluster does not know this token",
        "have another one made by `causeway cluster token` on a node of the cluster",
    )
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;

    fn token() -> Token {
        Token {
            cluster: "c".repeat(32),
            name: "home".to_owned(),
            addresses: vec!["10.0.0.1:7420".parse().unwrap()],
            authority: Fingerprint::of(b"authority"),
            id: "00ff".to_owned(),
            secret: "5".repeat(64),
            expires: 1000,
        }
    }

    #[test]
    fn a_token_is_one_line_and_any_part_of_it_is_none() {
        let text = token().text();
        assert!(!text.contains(char::is_whitespace), "{text}");
        assert_eq!(Token::parse(&format!("\n{text}\r\n")), Ok(token()));
        for end in 0..text.len() {
            assert!(Token::parse(&text[..end]).is_err(), "{end}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(Token::parse(&changed).is_err(), "{at}");
        }
        assert!(!format!("{:?}", token()).contains("555"), "never shown");
    }

    #[test]
    fn it_is_used_once_until_its_end_and_again_by_the_same_node_and_key_alone() {
        let at = |seconds: u64| WallClock(seconds * 1_000_000_000);
        let by = |node: &str, key: &[u8]| UsedBy {
            node: node.to_owned(),
            key: Fingerprint::of(key),
        };
        let fresh = fixture::token_record("secret", 1000);
        let Ok(Use::First(used)) = use_of(&fresh, by("a", b"1"), at(999)) else {
            panic!("it is fresh");
        };
        assert_eq!(used.used_by, Some(by("a", b"1")));
        // Its end does not count for who has used it: the answer was lost.
        assert_eq!(use_of(&used, by("a", b"1"), at(5000)), Ok(Use::Again));
        for other in [by("b", b"1"), by("a", b"2")] {
            let refusal = use_of(&used, other, at(999)).unwrap_err();
            assert!(refusal.cause.contains("used already"), "{refusal}");
        }
        let refusal = use_of(&fresh, by("a", b"1"), at(1000)).unwrap_err();
        assert!(refusal.cause.contains("1970-01-01T00:16:40"), "{refusal}");
        assert!(is_secret_of(&fresh, "secret") && !is_secret_of(&fresh, "Secret"));
    }
}
