//! How fast one thread may go on one target.

use crate::options::{Options, Rate};
use std::time::Duration;
use units::Now;

/// How far behind its rate a thread may fall and still catch up.
const LAG_MAX: Duration = Duration::from_secs(1);

/// Rate, bursts and rests.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Nanoseconds between two operations; 0: no limit.
    gap: u64,
    next: Now,
    burst: u32,
    left: u32,
    think: Duration,
}

impl Pace {
    pub(crate) fn new(options: &Options, start: Now) -> Self {
        let gap = match options.rate {
            None => 0,
            Some(Rate::Iops(iops)) => 1_000_000_000 / iops,
            Some(Rate::BytesPerMillisecond(rate)) => options.block.saturating_mul(1_000_000) / rate,
        };
        let burst = options.burst.unwrap_or(0);
        Self {
            gap,
            next: start,
            burst,
            left: burst,
            think: options.think,
        }
    }

    /// The first operation may begin at `start`.
    pub(crate) fn start(&mut self, start: Now) {
        self.next = start;
    }

    /// There is no limit.
    pub(crate) fn is_free(&self) -> bool {
        self.gap == 0 && self.burst == 0
    }

    /// When the next operation may begin, which is then taken.
    pub(crate) fn take(&mut self, now: Now) -> Now {
        let mut at = self.next;
        if now.since(at) > LAG_MAX {
            at = now;
        }
        self.next = Now(at.0.saturating_add(self.gap));
        if self.burst > 0 {
            self.left -= 1;
            if self.left == 0 {
                self.left = self.burst;
                self.next = self.next.max(now).after(self.think);
            }
        }
        at
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn options(rate: Option<Rate>) -> Options {
        Options {
            rate,
            block: 4096,
            ..Options::default()
        }
    }

    #[test]
    fn a_rate_spaces_operations_and_catches_up_a_little() {
        let mut pace = Pace::new(&options(Some(Rate::Iops(1000))), Now(0));
        let times: Vec<u64> = (0..3).map(|_| pace.take(Now(0)).0).collect();
        assert_eq!(times, [0, 1_000_000, 2_000_000]);
        assert_eq!(pace.take(Now(500_000_000)), Now(3_000_000));
        assert_eq!(pace.take(Now(5_000_000_000)), Now(5_000_000_000));
        let mut bytes = Pace::new(&options(Some(Rate::BytesPerMillisecond(4096))), Now(0));
        assert_eq!(
            (bytes.take(Now(0)), bytes.take(Now(0))),
            (Now(0), Now(1_000_000))
        );
    }

    #[test]
    fn bursts_rest_between_them() {
        let options = Options {
            burst: Some(2),
            think: Duration::from_millis(10),
            ..options(None)
        };
        let mut pace = Pace::new(&options, Now(0));
        assert_eq!(pace.take(Now(5)), Now(0));
        assert_eq!(pace.take(Now(5)), Now(0));
        assert_eq!(pace.take(Now(6)), Now(10_000_005));
        assert!(!pace.is_free() && Pace::new(&Options::default(), Now(0)).is_free());
    }
}
