//! When a pool is likely to be full, by what was recorded of it over days.
//!
//! **Contract.** A straight line is laid through what was used. There is a date only where the line
//! rises for certain: by what lies beside it, and by how long that stays on one side. A pool that
//! filled up in one leap, or goes up and down, has none.

use crate::size::rounded;
use crate::time::{civil, rfc3339};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::WallClock;

const DAY: u64 = 86_400;
const SECOND: u64 = 1_000_000_000;

/// With less that is recorded nothing is said.
const KNOWN_MIN: u64 = DAY;

/// A date that is farther away is none.
const AWAY_MAX: f64 = 365.0;

/// How a pool fills.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// Less than a day is recorded.
    #[default]
    TooLittle,
    /// Neither more nor less for certain.
    Steady,
    /// Less is used than before.
    Shrinks,
    /// More is used than before.
    Fills,
}

/// When a pool is likely to be full.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ForecastFacts {
    /// How it fills.
    pub trend: Trend,
    /// All of it in a sentence.
    pub text: String,
    /// Over how many seconds that is known, 30 days at most.
    pub known_seconds: u64,
    /// So many bytes more a day; fewer where it is below 0. Absent where nothing is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_day: Option<i64>,
    /// When it is full at this rate (RFC 3339), where it fills up within a year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_at: Option<String>,
    /// The date before which it is not full, with 95 % confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<String>,
    /// The date by which it is full, with the same confidence; absent beyond a year.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
}

/// What was used at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Seconds since 1970.
    pub at: u64,
    /// Bytes.
    pub used: f64,
}

/// A straight line.
struct Line {
    /// Bytes a day.
    rate: f64,
    /// By how much the rate may be wrong, with 95 % confidence.
    error: f64,
}

impl ForecastFacts {
    /// From samples of which each stands for `step` seconds, oldest first, and of what is free now.
    #[must_use]
    pub fn of(samples: &[Sample], step: u64, free: u64, now: WallClock) -> Self {
        let ends = samples.first().zip(samples.last());
        let known = ends.map_or(0, |(first, last)| last.at.saturating_sub(first.at) + step);
        let line = line(samples).filter(|_| known >= KNOWN_MIN);
        let mut out = Self {
            known_seconds: known,
            ..Self::default()
        };
        let Some(line) = line else {
            out.text = format!(
                "too little history for a forecast: {}, and a day is needed",
                span(known)
            );
            return out;
        };
        if line.rate.abs() <= line.error {
            out.trend = Trend::Steady;
            out.text = format!("does not fill up: no trend in {}", span(known));
            return out;
        }
        out.bytes_per_day = Some(whole(line.rate));
        let each = rounded(whole(line.rate.abs()).unsigned_abs());
        if line.rate < 0.0 {
            out.trend = Trend::Shrinks;
            out.text = format!("does not fill up: {each} less a day over {}", span(known));
            return out;
        }
        out.trend = Trend::Fills;
        let date = |rate: f64| date_in(free, rate, now);
        let [full, earliest, latest] =
            [line.rate, line.rate + line.error, line.rate - line.error].map(date);
        out.text = text(now, (full, earliest, latest), &each, known);
        out.full_at = full.map(rfc3339);
        out.earliest = earliest.filter(|_| full.is_some()).map(rfc3339);
        out.latest = latest.filter(|_| full.is_some()).map(rfc3339);
        out
    }
}

type Dates = (Option<WallClock>, Option<WallClock>, Option<WallClock>);

fn text(now: WallClock, (full, earliest, latest): Dates, each: &str, known: u64) -> String {
    let rate = format!("{each} more a day over {}", span(known));
    let Some(full) = full else {
        return format!("not full within a year at this rate, {rate}");
    };
    let [full, earliest] = [Some(full), earliest].map(|at| at.map(|at| day(at, now)));
    let full = full.unwrap_or_default();
    let between = match (earliest, latest.map(|at| day(at, now))) {
        (Some(earliest), Some(latest)) if earliest == latest => String::new(),
        (Some(earliest), Some(latest)) => format!(", between {earliest} and {latest}"),
        (Some(earliest), None) => format!(", {earliest} at the earliest"),
        (None, _) => String::new(),
    };
    format!("full on about {full} at this rate{between}: {rate}")
}

/// When so much is used at so many bytes a day, where that is within a year.
fn date_in(free: u64, rate: f64, now: WallClock) -> Option<WallClock> {
    let days = float(free) / rate;
    let is_near = rate > 0.0 && days <= AWAY_MAX;
    let seconds = is_near.then(|| whole(days * float(DAY)))?;
    let nanos = u64::try_from(seconds).ok()?.checked_mul(SECOND)?;
    Some(WallClock(now.0.saturating_add(nanos)))
}

/// Such as `14 March`, with the year where it is not this one.
fn day(at: WallClock, now: WallClock) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let date = |at: WallClock| civil(at.0 / SECOND / DAY);
    let ((year, month, day), (this_year, ..)) = (date(at), date(now));
    let month = usize::try_from(month - 1).map_or("", |at| MONTHS[at.min(11)]);
    match year == this_year {
        true => format!("{day} {month}"),
        false => format!("{day} {month} {year}"),
    }
}

fn span(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..3_600 => return "less than an hour".to_owned(),
        3_600..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / DAY, "day"),
    };
    let more = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{more}")
}

/// The line of least squares, where there are enough samples for one.
///
/// What lies beside it is not independent: a pool that is above the line now is so in an hour. So
/// there are counted fewer samples than there are, by how much neighbours are alike.
fn line(samples: &[Sample]) -> Option<Line> {
    let first = samples.first()?;
    let count = float(samples.len() as u64);
    let days: Vec<f64> = samples
        .iter()
        .map(|sample| float(sample.at.saturating_sub(first.at)) / float(DAY))
        .collect();
    let mean_day = days.iter().sum::<f64>() / count;
    let mean_used = samples.iter().map(|sample| sample.used).sum::<f64>() / count;
    let both = || days.iter().zip(samples);
    let squares: f64 = days.iter().map(|day| (day - mean_day).powi(2)).sum();
    let products = both().map(|(day, sample)| (day - mean_day) * (sample.used - mean_used));
    let rate = products.sum::<f64>() / squares;
    let distances: Vec<f64> = both()
        .map(|(day, sample)| sample.used - mean_used - rate * (day - mean_day))
        .collect();
    let all: f64 = distances.iter().map(|it| it * it).sum();
    let pairs = distances.iter().zip(distances.iter().skip(1));
    let neighbours: f64 = pairs.map(|(one, next)| one * next).sum();
    // Rounding alone: they lie on the line.
    let on_the_line = all.sqrt() <= 1e-9 * mean_used.abs().max(1.0);
    let alike = if on_the_line {
        0.0
    } else {
        (neighbours / all).clamp(0.0, 0.999)
    };
    let free = count * (1.0 - alike) / (1.0 + alike) - 2.0;
    if count < 3.0 || !rate.is_finite() {
        return None;
    }
    if on_the_line {
        return Some(Line { rate, error: 0.0 });
    }
    if free < 1.0 {
        return Some(Line {
            rate,
            error: f64::INFINITY,
        });
    }
    let error = student(free) * (all / free / squares).sqrt();
    Some(Line { rate, error })
}

/// Student's t for 95 % on both sides, within 3 % from 2 degrees of freedom on, larger below.
fn student(free: f64) -> f64 {
    1.96 + 2.4 / free + 2.8 / free.powi(2) + 5.6 / free.powi(3)
}

fn float(number: u64) -> f64 {
    let high = u32::try_from(number >> 32).unwrap_or(0);
    let low = u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "what is larger becomes the largest"
)]
fn whole(number: f64) -> i64 {
    number.round() as i64
}

#[cfg(test)]
mod test {
    use super::*;

    const GIB: f64 = 1_073_741_824.0;
    /// 2027-01-15T08:00:00Z.
    const NOW: u64 = 1_800_000_000;
    const HOUR: u64 = 3_600;

    /// Hourly, for so many hours until now.
    fn hourly(hours: u64, used: impl Fn(f64) -> f64) -> Vec<Sample> {
        let sample = |ago: u64| {
            let hour = hours - ago;
            Sample {
                at: NOW - ago * HOUR,
                used: used(float(hour)) * GIB,
            }
        };
        (1..=hours).rev().map(sample).collect()
    }

    fn of(samples: &[Sample], free_gib: u64) -> ForecastFacts {
        ForecastFacts::of(samples, HOUR, free_gib << 30, WallClock(NOW * SECOND))
    }

    /// Between -1 and 1, the same for the same.
    fn noise(hour: f64) -> f64 {
        ((hour * 12.9898).sin() * 43_758.547).fract()
    }

    #[test]
    fn a_pool_that_fills_evenly_is_full_when_what_is_free_is_used() {
        // 24 GiB a day, and 240 are free: ten days.
        let facts = of(&hourly(48, |hour| 100.0 + hour), 240);
        assert_eq!(facts.trend, Trend::Fills);
        assert_eq!(facts.bytes_per_day, Some(24 << 30));
        assert_eq!(facts.full_at.as_deref(), Some("2027-01-25T08:00:00.000Z"));
        assert_eq!(
            facts.text,
            "full on about 25 January at this rate: 24 GiB more a day over 2 days"
        );
        let later = of(&hourly(48, |hour| 100.0 + hour), 24 * 351);
        let begins = "full on about 1 January 2028 at this rate";
        assert!(later.text.starts_with(begins), "{}", later.text);
    }

    #[test]
    fn less_than_a_day_says_nothing_and_a_day_does() {
        let of_hours = |hours| of(&hourly(hours, |hour| hour), 240);
        let little = of_hours(23);
        assert_eq!((little.trend, little.full_at), (Trend::TooLittle, None));
        assert_eq!(
            little.text,
            "too little history for a forecast: 23 hours, and a day is needed"
        );
        let none = of(&[], 240);
        assert_eq!(none.trend, Trend::TooLittle);
        assert!(none.text.contains("less than an hour"), "{}", none.text);
        assert_eq!(of_hours(24).trend, Trend::Fills);
        // Three samples in a month: a day is known, but nothing of what was between.
        let two = [0, 20].map(|day| Sample {
            at: NOW - 30 * DAY + day * DAY,
            used: float(day),
        });
        assert_eq!(of(&two, 240).trend, Trend::TooLittle);
    }

    #[test]
    fn noise_makes_the_date_less_certain_and_the_true_one_lies_within() {
        let facts = of(&hourly(240, |hour| 100.0 + hour + 20.0 * noise(hour)), 480);
        let [earliest, full, latest] =
            [&facts.earliest, &facts.full_at, &facts.latest].map(|it| it.clone().unwrap());
        assert!(earliest < full && full < latest, "{facts:?}");
        assert!(earliest.as_str() < "2027-02-04" && latest.as_str() > "2027-02-04");
        assert!(
            facts.text.contains("between 3 February and"),
            "{}",
            facts.text
        );
    }

    #[test]
    fn there_is_no_date_without_a_trend() {
        let still = of(&hourly(240, |_| 100.0), 5);
        assert_eq!(
            (still.trend, still.text.as_str()),
            (Trend::Steady, "does not fill up: no trend in 10 days")
        );
        let restless = of(&hourly(240, |hour| 100.0 + 5.0 * noise(hour)), 5);
        assert_eq!((restless.trend, restless.full_at), (Trend::Steady, None));
        // Day and night.
        let daily = of(&hourly(242, |hour| 100.0 + 9.0 * (hour / 3.8197).sin()), 5);
        assert_eq!(daily.trend, Trend::Steady, "{daily:?}");
        let leap = of(
            &hourly(240, |hour| if hour < 120.0 { 100.0 } else { 300.0 }),
            5,
        );
        assert_eq!((leap.trend, leap.full_at), (Trend::Steady, None));
        let emptied = of(&hourly(240, |hour| 900.0 - hour), 5);
        assert_eq!(
            (emptied.trend, emptied.bytes_per_day),
            (Trend::Shrinks, Some(-(24 << 30)))
        );
        assert!(
            emptied.text.contains("24 GiB less a day"),
            "{}",
            emptied.text
        );
    }

    #[test]
    fn what_is_far_away_has_no_date_and_what_is_full_is_full_now() {
        let samples = hourly(48, |hour| 100.0 + hour);
        let far = of(&samples, 24 * 400);
        assert_eq!((far.trend, far.full_at), (Trend::Fills, None));
        assert!(
            far.text.starts_with("not full within a year"),
            "{}",
            far.text
        );
        assert_eq!(
            of(&samples, 0).full_at.as_deref(),
            Some("2027-01-15T08:00:00.000Z")
        );
    }

    #[test]
    fn one_line_in_twenty_of_mere_noise_is_taken_for_a_trend_at_most() {
        let wrong = (0..200).filter(|seed| {
            let shift = float(*seed) * 1_000.0;
            of(&hourly(72, |hour| 100.0 + noise(hour + shift)), 5).trend != Trend::Steady
        });
        assert!(wrong.count() <= 16);
    }
}
