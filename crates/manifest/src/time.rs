//! Wall-clock time as RFC 3339 writes it.

use units::WallClock;

/// `2026-11-21T01:02:03.456Z`.
#[must_use]
pub fn rfc3339(at: WallClock) -> String {
    let (seconds, millis) = (at.0 / 1_000_000_000, at.0 / 1_000_000 % 1_000);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// So many seconds in one word and number that people can do something with: `3 hours`, `12
/// minutes`.
#[must_use]
pub fn about(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

/// The moment that [`rfc3339`] wrote so.
#[must_use]
pub fn parse(text: &str) -> Option<WallClock> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (time, millis) = time.split_once('.')?;
    let mut time = time.split(':').map(str::parse::<u64>);
    let (hour, minute, second) = (time.next()?.ok()?, time.next()?.ok()?, time.next()?.ok()?);
    let is_day =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_day || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let millis: u64 = millis.parse().ok().filter(|millis| *millis < 1000)?;
    let nanos = seconds.checked_mul(1_000_000_000)?;
    Some(WallClock(nanos.checked_add(millis * 1_000_000)?))
}

/// Days from 1970-01-01 to a Gregorian date that is not earlier.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Counted from 0000-03-01, so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The Gregorian date of a day counted from 1970-01-01.
pub(crate) fn civil(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn known_moments_are_written_as_the_calendar_has_them() {
        let at = |seconds: u64| rfc3339(WallClock(seconds * 1_000_000_000));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.000Z");
        assert_eq!(at(4_102_444_800), "2100-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(WallClock(1_234_567)), "1970-01-01T00:00:00.001Z");
        for hours in (0..3_000_000).step_by(37) {
            let at = WallClock(hours * 3_600 * 1_000_000_000 + 7_000_000);
            assert_eq!(parse(&rfc3339(at)), Some(at));
        }
        for wrong in ["", "2026-13-01T00:00:00.000Z", "2026-01-01T00:00:00Z"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
