//! Whose scrub is due.

use manifest::scrub::ScrubFacts;
use manifest::time::parse;
use std::time::Duration;
use units::WallClock;

/// When a LUN's next scrub begins; `None`: now, because nothing is known of an earlier one.
pub(crate) fn next_of(facts: Option<&ScrubFacts>, every: Duration) -> Option<WallClock> {
    let facts = facts?;
    let last = parse(facts.ended.as_deref().unwrap_or(&facts.started))?;
    let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
    Some(WallClock(last.0.saturating_add(every)))
}

/// The LUN that has waited longest, of those whose time has come.
pub(crate) fn most_due<'a>(
    luns: impl Iterator<Item = (&'a str, Option<&'a ScrubFacts>)>,
    every: Duration,
    now: WallClock,
) -> Option<&'a str> {
    let due = luns.filter_map(|(naa, facts)| {
        let at = next_of(facts, every).map_or(0, |at| at.0);
        (at <= now.0).then_some((at, naa))
    });
    due.min().map(|(_, naa)| naa)
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::scrub::ScrubState;
    use manifest::time::rfc3339;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(days: u64) -> WallClock {
        WallClock(days * 86_400 * 1_000_000_000)
    }

    fn ended(days: u64) -> ScrubFacts {
        ScrubFacts {
            state: ScrubState::Finished,
            ended: Some(rfc3339(at(days))),
            ..ScrubFacts::begun(rfc3339(at(days - 1)), 1)
        }
    }

    #[test]
    fn who_was_never_scrubbed_comes_first_and_nobody_comes_too_soon() {
        let (old, older, fresh) = (ended(100), ended(90), ended(109));
        let luns = [("a", Some(&old)), ("b", Some(&older)), ("c", Some(&fresh))];
        let due = |now| most_due(luns.into_iter(), DAY * 10, at(now));
        assert_eq!(due(99), None);
        assert_eq!(due(100), Some("b"));
        assert_eq!(due(115), Some("b"));
        let never = luns.into_iter().chain([("d", None)]);
        assert_eq!(most_due(never, DAY * 10, at(99)), Some("d"));
        assert_eq!(next_of(Some(&fresh), DAY * 10), Some(at(119)));
    }
}
