//! Wall-clock time as RFC 3339 writes it.

use crate::WallClock;

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

/// The moment that a text names, in any form of RFC 3339: with or without a fraction, in UTC or
/// with an offset from it, with small letters, with a blank between date and time.
#[must_use]
pub fn parse(text: &str) -> Option<WallClock> {
    let (date, rest) = text.split_at_checked("2026-11-21".len())?;
    let (between, rest) = rest.split_at_checked(1)?;
    let (time, rest) = rest.split_at_checked("01:02:03".len())?;
    if !matches!(between, "T" | "t" | " ") {
        return None;
    }
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_day = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day);
    // The last minute of some days has a second more.
    if !is_day || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, offset) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(rest) => {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
            let (digits, offset) = rest.split_at(digits);
            (nanos(digits)?, offset)
        }
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let seconds = seconds.checked_add_signed(-east(offset)?)?;
    let nanos = seconds.checked_mul(1_000_000_000)?;
    Some(WallClock(nanos.checked_add(fraction)?))
}

/// Three numbers of so many digits each.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut out = [0; 3];
    for (number, digits) in out.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *number = digits_of(part)?;
    }
    parts.next().is_none().then_some(out)
}

fn digits_of(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// A fraction of a second; what is finer than a nanosecond counts for nothing.
fn nanos(digits: &str) -> Option<u64> {
    let digits = &digits[..digits.len().min(9)];
    let scale = 10_u64.pow(9 - u32::try_from(digits.len()).ok()?);
    Some(digits_of(digits)? * scale)
}

/// How many seconds the clocks that were read are ahead of UTC.
fn east(offset: &str) -> Option<i64> {
    if matches!(offset, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = offset.split_at_checked(1)?;
    let [hours, minutes, _] = numbers(&format!("{rest}:00"), ':', [2, 2, 2])?;
    let ahead = i64::try_from(hours * 3_600 + minutes * 60).ok()?;
    match sign {
        _ if hours > 23 || minutes > 59 => None,
        "+" => Some(ahead),
        "-" => Some(-ahead),
        _ => None,
    }
}

fn days_of(year: u64, month: u64) -> u64 {
    let next = if month == 12 {
        days(year + 1, 1, 1)
    } else {
        days(year, month + 1, 1)
    };
    next - days(year, month, 1)
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
#[must_use]
pub fn civil(days: u64) -> (u64, u64, u64) {
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
    }

    /// Texts, and the second since 1970 that each names, by GNU date.
    const FORMS: [(&str, u64); 13] = [
        ("2026-01-01T00:00:00Z", 1_767_225_600),
        ("2026-01-01T00:00:00.5Z", 1_767_225_600),
        ("2026-01-01T00:00:00.000000001Z", 1_767_225_600),
        ("2026-01-01t00:00:00z", 1_767_225_600),
        ("2026-01-01 00:00:00Z", 1_767_225_600),
        ("2026-01-01T02:00:00+02:00", 1_767_225_600),
        ("2025-12-31T18:30:00.25-05:30", 1_767_225_600),
        ("2026-01-01T00:00:00-00:00", 1_767_225_600),
        ("2027-01-15T10:00:00.000+02:00", 1_800_000_000),
        ("2028-02-29T12:00:00Z", 1_835_438_400),
        ("2016-12-31T23:59:60Z", 1_483_228_800),
        ("1970-01-01T00:00:00.0000000000001Z", 0),
        ("9999-12-31T23:59:59-23:59", 253_402_387_139),
    ];

    #[test]
    fn a_moment_may_be_written_in_every_form_of_rfc_3339() {
        for (text, wanted) in FORMS {
            let seconds = u128::from(wanted) * 1_000_000_000;
            let read = parse(text);
            let is_kept = seconds < u128::from(u64::MAX);
            assert_eq!(read.is_some(), is_kept, "{text}");
            let read = read.map(|at| at.0 / 1_000_000_000);
            assert_eq!(read, is_kept.then_some(wanted), "{text}");
        }
        let half = parse("2026-01-01T00:00:00.5Z").unwrap();
        assert_eq!(half.0 % 1_000_000_000, 500_000_000);
        for wrong in [
            "",
            "2026-01-01",
            "2026-13-01T00:00:00.000Z",
            "2026-02-29T00:00:00Z",
            "2026-01-32T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00Z",
            "2026-1-1T00:00:00Z",
            "2026-01-01T00:00:00+02",
            "2026-01-01T00:00:00+0200",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00*02:00",
            "2026-01-01T00:00:00Z and more",
            "+026-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "2026-01-01_00:00:00Z",
            "2026-01-01T00:00:0\u{e9}Z",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
