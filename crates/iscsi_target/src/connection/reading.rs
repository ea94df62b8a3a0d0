//! A peer that does not read what is sent to it.
//!
//! **Contract.** Whoever lets replies wait has a time, which what it takes prolongs by as much as
//! [`LEAST_BYTES_PER_SECOND`] allow, up to the whole time again. So a peer that takes nothing is
//! ended after it, and one that takes a byte now and then is not kept longer for that: replies that
//! wait are memory of all.

use std::time::Duration;
use units::Now;

/// What a peer must take in a second where more waits for it: less than the slowest line that
/// anybody puts a disk behind.
const LEAST_BYTES_PER_SECOND: u64 = 32 << 10;

/// Whoever reads the clock so much too late was stopped itself, with its whole process.
const STOPPED: Duration = Duration::from_secs(1);

/// What one peer has of its time.
#[derive(Default)]
pub(super) struct Reading {
    due: Option<Now>,
}

impl Reading {
    /// The socket takes nothing more for now; `time`: how long a peer may take nothing.
    pub(super) fn waits(&mut self, now: Now, time: Duration) {
        self.due.get_or_insert(now.after(time));
    }

    /// The socket took so many bytes.
    pub(super) fn took(&mut self, bytes: usize, now: Now, time: Duration) {
        let nanos = (bytes as u64).saturating_mul(1_000_000_000) / LEAST_BYTES_PER_SECOND;
        let longer = |due: Now| due.after(Duration::from_nanos(nanos)).min(now.after(time));
        self.due = self.due.map(longer);
    }

    /// Nothing waits any more.
    pub(super) fn took_all(&mut self) {
        self.due = None;
    }

    /// When its time is over.
    pub(super) fn due(&self) -> Option<Now> {
        self.due
    }

    /// Its time is over. It begins anew where we were stopped: what the peer took meanwhile was not
    /// seen.
    pub(super) fn is_over(&mut self, now: Now, time: Duration) -> bool {
        let Some(due) = self.due.filter(|due| *due <= now) else {
            return false;
        };
        let stopped = now.since(due) > STOPPED;
        if stopped {
            self.due = Some(now.after(time));
        }
        !stopped
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const TIME: Duration = Duration::from_secs(25);

    fn at(millis: u64) -> Now {
        Now(millis * 1_000_000)
    }

    #[test]
    fn who_takes_nothing_has_its_time_and_who_takes_all_has_it_again() {
        let mut reading = Reading::default();
        assert_eq!(reading.due(), None);
        reading.waits(at(0), TIME);
        reading.waits(at(20_000), TIME);
        assert!(!reading.is_over(at(24_999), TIME));
        assert!(reading.is_over(at(25_000), TIME));
        reading.took_all();
        assert!(!reading.is_over(at(25_000), TIME));
        reading.waits(at(30_000), TIME);
        assert_eq!(reading.due(), Some(at(55_000)));
    }

    #[test]
    fn a_byte_now_and_then_is_worth_a_byte() {
        let mut reading = Reading::default();
        reading.waits(at(0), TIME);
        for second in 1..25 {
            reading.took(1, at(second * 1000), TIME);
        }
        assert!(reading.is_over(at(25_010), TIME));
    }

    #[test]
    fn who_reads_slowly_but_reads_is_kept_and_cannot_save_time_up() {
        let mut reading = Reading::default();
        reading.waits(at(0), TIME);
        for second in 1..1000 {
            assert!(!reading.is_over(at(second * 1000), TIME));
            reading.took(32 << 10, at(second * 1000), TIME);
        }
        // A gigabyte at once gives no more than the whole time.
        reading.took(1 << 30, at(1_000_000), TIME);
        assert_eq!(reading.due(), Some(at(1_025_000)));
        assert!(reading.is_over(at(1_025_001), TIME));
    }

    #[test]
    fn who_was_stopped_itself_gives_the_peer_its_time_anew() {
        let mut reading = Reading::default();
        reading.waits(at(0), TIME);
        assert!(!reading.is_over(at(60_000), TIME));
        assert_eq!(reading.due(), Some(at(85_000)));
        assert!(reading.is_over(at(85_001), TIME));
    }
}
