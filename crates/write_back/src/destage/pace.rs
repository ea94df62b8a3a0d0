//! When to destage: at rest at once, under load as the log fills; and not at all what a copy on
//! another node may still want of it, while that is little.

use std::time::Duration;

/// Below this part of the log, work of hosts goes first. So much is kept for copies elsewhere.
const LOW: f64 = 0.25;

/// From this part of the log on, nothing waits.
const HIGH: f64 = 0.75;

/// How long nobody must have changed anything for the log to be at rest.
pub(crate) const REST: Duration = Duration::from_millis(50);

/// The longest pause between two rounds.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// What is known when the next round may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    /// The part of the log that is in use, 0 to 1.
    pub(crate) fill: f64,
    /// Since the last change came.
    pub(crate) quiet: Duration,
    /// How long the last round took.
    pub(crate) round: Duration,
    /// A copy elsewhere may miss what the log has.
    pub(crate) kept: bool,
}

/// What the destager does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// Destage now.
    Go,
    /// Inspect the log again after this time at the latest, and do not destage before.
    Inspect(Duration),
    /// Destage after this time.
    Pause(Duration),
}

/// The log of a busy journal is between both marks: there the pause between two rounds shrinks from
/// three times as long as a round to none, so that as much is destaged as comes, at whatever fill
/// that takes.
pub(crate) fn pace(pressure: Pressure) -> Pace {
    let Pressure {
        fill,
        quiet,
        round,
        kept,
    } = pressure;
    if fill >= HIGH {
        return Pace::Go;
    }
    if kept && fill < LOW {
        return Pace::Inspect(REST);
    }
    if quiet >= REST {
        return Pace::Go;
    }
    if fill < LOW {
        return Pace::Inspect(REST - quiet);
    }
    let share = (HIGH - fill) / (HIGH - LOW);
    Pace::Pause(round.mul_f64(3.0 * share).min(PAUSE_MAX))
}

#[cfg(test)]
mod test {
    use super::*;

    fn at(fill: f64, quiet_ms: u64) -> Pace {
        pace(Pressure {
            fill,
            quiet: Duration::from_millis(quiet_ms),
            round: Duration::from_millis(10),
            kept: false,
        })
    }

    #[test]
    fn what_a_copy_elsewhere_may_miss_stays_at_rest_until_it_is_much() {
        let kept = |fill: f64, quiet_ms: u64| {
            pace(Pressure {
                fill,
                quiet: Duration::from_millis(quiet_ms),
                round: Duration::from_millis(10),
                kept: true,
            })
        };
        assert_eq!(kept(0.24, 5000), Pace::Inspect(REST));
        assert_eq!(kept(0.24, 0), Pace::Inspect(REST));
        assert_eq!(kept(0.25, 5000), Pace::Go);
        assert_eq!(kept(0.75, 0), Pace::Go);
        // Who waits for a drain has the log count as full.
        assert_eq!(kept(1.0, 5000), Pace::Go);
    }

    #[test]
    fn a_full_log_does_not_wait_and_an_empty_one_lets_hosts_go_first() {
        assert_eq!(at(0.75, 0), Pace::Go);
        assert_eq!(at(1.0, 0), Pace::Go);
        assert_eq!(at(0.1, 20), Pace::Inspect(Duration::from_millis(30)));
        assert_eq!(at(0.1, 50), Pace::Go);
        assert_eq!(at(0.5, 60), Pace::Go);
    }

    #[test]
    fn in_between_pauses_shrink_as_it_fills() {
        let pauses = [0.25, 0.4, 0.5, 0.6, 0.74].map(|fill| match at(fill, 0) {
            Pace::Pause(pause) => pause,
            Pace::Go | Pace::Inspect(_) => panic!("it destages, but not at once"),
        });
        assert!(pauses.windows(2).all(|two| two[0] > two[1]), "{pauses:?}");
        assert_eq!(pauses[0], Duration::from_millis(30));
        assert_eq!(pauses[2], Duration::from_millis(15));
    }
}
