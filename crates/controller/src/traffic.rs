//! How much goes over each session, by what was sampled last: pure.

use manifest::activity::SessionActivity;
use std::collections::BTreeMap;
use std::time::Duration;
use units::Now;

/// What was sampled longer ago says nothing of now.
const FRESH: Duration = Duration::from_secs(3);

/// Bytes of a session so far, and those of the last second.
#[derive(Clone, Copy)]
struct Counted {
    bytes: u64,
    per_second: Option<u64>,
}

/// The sessions, as they were at a moment.
#[derive(Default)]
pub(crate) struct Traffic {
    at: Now,
    sessions: BTreeMap<u64, Counted>,
}

impl Traffic {
    /// The sessions now.
    pub(crate) fn take(&mut self, now: Now, sessions: &[SessionActivity]) {
        let millis = u64::try_from(now.since(self.at).as_millis()).unwrap_or(u64::MAX);
        let counted = sessions.iter().map(|session| {
            let bytes = session.bytes_in.saturating_add(session.bytes_out);
            let before = self.sessions.get(&session.id);
            let per_second = before.filter(|_| millis > 0).map(|before| {
                let moved = u128::from(bytes.saturating_sub(before.bytes)) * 1_000;
                u64::try_from(moved / u128::from(millis)).unwrap_or(u64::MAX)
            });
            (session.id, Counted { bytes, per_second })
        });
        self.sessions = counted.collect();
        self.at = now;
    }

    /// Bytes a second of a session, where they are known.
    pub(crate) fn of(&self, id: u64, now: Now) -> Option<u64> {
        let counted = self.sessions.get(&id)?;
        counted.per_second.filter(|_| now.since(self.at) <= FRESH)
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::test_support::session;

    fn with_bytes(id: u64, bytes_in: u64, bytes_out: u64) -> SessionActivity {
        let mut activity = SessionActivity::of(session(id));
        (activity.bytes_in, activity.bytes_out) = (bytes_in, bytes_out);
        activity
    }

    #[test]
    fn the_rate_of_a_session_is_that_between_the_last_two_samples_while_they_are_fresh() {
        let at = |millis: u64| Now(millis * 1_000_000);
        let mut traffic = Traffic::default();
        traffic.take(at(1_000), &[with_bytes(4, 100, 0)]);
        assert_eq!(traffic.of(4, at(1_000)), None, "one sample is none");
        traffic.take(at(3_000), &[with_bytes(4, 300, 4_000), with_bytes(5, 9, 9)]);
        assert_eq!(traffic.of(4, at(3_500)), Some(2_100));
        assert_eq!(traffic.of(5, at(3_500)), None);
        traffic.take(at(3_500), &[with_bytes(4, 300, 4_000)]);
        assert_eq!(traffic.of(4, at(3_500)), Some(0));
        assert_eq!(traffic.of(4, at(7_000)), None, "too old");
        assert_eq!(traffic.of(5, at(3_500)), None, "it has ended");
    }
}
