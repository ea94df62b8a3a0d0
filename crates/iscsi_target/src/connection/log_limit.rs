//! A limit for a line of the log that a peer can cause again and again.

use std::time::Duration;
use units::Now;

/// One line in so much time.
const PAUSE: Duration = Duration::from_secs(1);

/// When the line was logged last, and how often it was left out since.
#[derive(Default)]
pub(super) struct LogLimit {
    last: Option<Now>,
    left_out: u64,
}

impl LogLimit {
    /// Whether to log it now, with how often it was left out before; `None`: it is left out.
    pub(super) fn now(&mut self, now: Now) -> Option<u64> {
        if self.last.is_some_and(|last| now.since(last) < PAUSE) {
            self.left_out += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn one_line_a_second_says_how_many_there_were() {
        let at = |millis: u64| Now(millis * 1_000_000);
        let mut limit = LogLimit::default();
        assert_eq!(limit.now(at(5)), Some(0));
        for millis in 6..1000 {
            assert_eq!(limit.now(at(millis)), None);
        }
        assert_eq!(limit.now(at(1005)), Some(994));
        assert_eq!(limit.now(at(2500)), Some(0));
    }
}
