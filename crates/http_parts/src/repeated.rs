//! POST requests that are sent again: the same `Idempotency-Key` gets the same answer, and nothing
//! is done twice. A pure core: time comes in.
//!
//! **Contract.** An answer is kept for [`KEPT_TIME`], and [`KEPT_MAX`] of them at the most, with
//! [`KEPT_BYTES_MAX`] together: the oldest goes first. The key belongs to whoever sent it: another
//! token's is another key.

use axum::http::HeaderMap;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long an answer is kept.
const KEPT_TIME: Duration = Duration::from_secs(24 * 3600);

/// How many answers are kept.
const KEPT_MAX: usize = 1_000;

/// How many bytes of answers are kept.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// Where the key stands in a request: the header's name of the draft of the IETF.
pub const KEY_HEADER: &str = "Idempotency-Key";

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// The answer to a POST of this path has a secret, which is kept nowhere: it takes no key.
pub fn is_secret(path: &str) -> bool {
    ["/api/v1/login", "/api/v1/tokens"].contains(&path)
}

/// What identifies a request: a digest of who asks, or of what is asked.
pub type Digest = [u8; 32];

/// An answer as it was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// As it was sent, 2xx or not.
    pub status: u16,
    /// Those that it is sent with again.
    pub headers: HeaderMap,
    /// Whole: an answer that is longer than is kept is kept not at all.
    pub body: Vec<u8>,
}

struct Entry {
    asked: Digest,
    since: Duration,
    /// Absent while it is being answered.
    sent: Option<Sent>,
}

/// What to do with a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is new: carry it out, and say how it went.
    New,
    /// It was answered so.
    Again(Sent),
    /// It is being carried out.
    UnderWay,
    /// The key was another request's.
    Another,
}

/// The keys that are known, each by who sent it.
#[derive(Default)]
pub struct Repeated {
    entries: BTreeMap<(Digest, String), Entry>,
}

impl Repeated {
    /// A request with a key arrives at `now`, a time that only grows.
    pub fn arrive(&mut self, who: Digest, key: &str, asked: Digest, now: Duration) -> Verdict {
        self.entries
            .retain(|_, entry| now.saturating_sub(entry.since) < KEPT_TIME);
        let place = (who, key.to_owned());
        match self.entries.get(&place) {
            Some(entry) if entry.asked != asked => Verdict::Another,
            Some(Entry {
                sent: Some(sent), ..
            }) => Verdict::Again(sent.clone()),
            Some(_) => Verdict::UnderWay,
            None => {
                let entry = Entry {
                    asked,
                    since: now,
                    sent: None,
                };
                self.entries.insert(place, entry);
                self.forget_oldest();
                Verdict::New
            }
        }
    }

    /// It was answered; `None`: as if it had never arrived, because it may go better next time.
    pub fn answered(&mut self, who: Digest, key: &str, sent: Option<Sent>) {
        let place = (who, key.to_owned());
        match (sent, self.entries.get_mut(&place)) {
            (Some(sent), Some(entry)) => {
                entry.sent = Some(sent);
                self.forget_oldest();
            }
            (None, Some(_)) => drop(self.entries.remove(&place)),
            (_, None) => {}
        }
    }

    fn forget_oldest(&mut self) {
        let bytes = |entry: &Entry| entry.sent.as_ref().map_or(0, |sent| sent.body.len());
        let mut all: usize = self.entries.values().map(bytes).sum();
        while self.entries.len() > KEPT_MAX || all > KEPT_BYTES_MAX {
            let answered = self
                .entries
                .iter()
                .filter(|(_, entry)| entry.sent.is_some());
            let oldest = answered.min_by_key(|(_, entry)| entry.since);
            let Some(place) = oldest.map(|(place, _)| place.clone()) else {
                return;
            };
            all -= self.entries.remove(&place).as_ref().map_or(0, bytes);
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const ME: Digest = [1; 32];
    const OTHER: Digest = [2; 32];
    const HOUR: Duration = Duration::from_secs(3600);

    fn sent(bytes: usize) -> Sent {
        Sent {
            status: 200,
            headers: HeaderMap::new(),
            body: vec![b' '; bytes],
        }
    }

    #[test]
    fn the_same_request_gets_the_same_answer_for_a_day() {
        let mut repeated = Repeated::default();
        let mut arrive = |who, asked, hours| repeated.arrive(who, "k", asked, HOUR * hours);
        assert_eq!(arrive(ME, [7; 32], 1), Verdict::New);
        assert_eq!(arrive(ME, [7; 32], 1), Verdict::UnderWay);
        assert_eq!(arrive(ME, [8; 32], 1), Verdict::Another);
        assert_eq!(arrive(OTHER, [8; 32], 1), Verdict::New, "another's key");
        repeated.answered(ME, "k", Some(sent(3)));
        let mut arrive = |asked, hours| repeated.arrive(ME, "k", asked, HOUR * hours);
        assert_eq!(arrive([7; 32], 24), Verdict::Again(sent(3)));
        assert_eq!(arrive([8; 32], 24), Verdict::Another);
        assert_eq!(arrive([8; 32], 25), Verdict::New, "a day later");
    }

    #[test]
    fn what_failed_may_be_tried_again() {
        let mut repeated = Repeated::default();
        assert_eq!(repeated.arrive(ME, "k", [7; 32], HOUR), Verdict::New);
        repeated.answered(ME, "k", None);
        assert_eq!(repeated.arrive(ME, "k", [7; 32], HOUR), Verdict::New);
    }

    #[test]
    fn number_and_bytes_are_bounded_and_the_oldest_goes_first() {
        let mut repeated = Repeated::default();
        for number in 0..2_000_u32 {
            let (key, now) = (number.to_string(), Duration::from_secs(u64::from(number)));
            assert_eq!(repeated.arrive(ME, &key, [7; 32], now), Verdict::New);
            repeated.answered(ME, &key, Some(sent(1)));
            assert!(repeated.entries.len() <= KEPT_MAX);
        }
        let now = Duration::from_secs(2_000);
        assert_eq!(repeated.arrive(ME, "0", [7; 32], now), Verdict::New);
        assert_eq!(
            repeated.arrive(ME, "1999", [7; 32], now),
            Verdict::Again(sent(1))
        );
        repeated.answered(ME, "0", Some(sent(KEPT_BYTES_MAX)));
        assert_eq!(repeated.entries.len(), 1, "all others gave way to it");
    }
}
