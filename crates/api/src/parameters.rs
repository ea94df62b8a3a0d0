//! Parameters behind a path that are no switches: names, numbers, times, conditions.

use events::Filter;
use manifest::code::Code;
use manifest::name::did_you_mean;
use manifest::problem::Problem;
use manifest::time::{parse, rfc3339};
use percent_encoding::percent_decode_str;
use units::WallClock;

const SECOND: u64 = 1_000_000_000;

/// The text of a parameter, as its client meant it.
pub(crate) fn decode(text: &str) -> Result<String, Problem> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8();
    let decoded = decoded.map_err(|_| wrong(format!("{text}: no UTF-8 text")))?;
    Ok(decoded.into_owned())
}

pub(crate) fn wrong(detail: String) -> Problem {
    Problem::new(Code::BadRequest, detail)
}

/// The parameters of a request, in their order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Only `known` ones are allowed.
    ///
    /// # Errors
    /// One is not known, or is no text.
    pub(crate) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let pairs = query.unwrap_or_default().split('&');
        let mut all = Vec::new();
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
            if !known.contains(&name) {
                let guess = did_you_mean(name, known.iter().copied());
                return Err(wrong(format!("unknown parameter \"{name}\"{guess}")));
            }
            all.push((name.to_owned(), decode(value)?));
        }
        Ok(Self(all))
    }

    /// The last of this name.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// All of this name.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let name = name.to_owned();
        let same = self.0.iter().filter(move |(known, _)| *known == name);
        same.map(|(_, value)| value.as_str())
    }

    /// What stands in all of this name, separated by commas.
    pub(crate) fn words<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let words = self.all(name).flat_map(|value| value.split(','));
        words.map(str::trim).filter(|word| !word.is_empty())
    }

    /// Between these bounds.
    pub(crate) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some(text) = self.one(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(wrong(format!("{name}={text}: write {least} to {most}"))),
        }
    }

    /// `without`: what it is where nobody says.
    pub(crate) fn switch(&self, name: &str, without: bool) -> Result<bool, Problem> {
        match self.one(name) {
            None => Ok(without),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => Err(wrong(format!("{name}={other}: write true or false"))),
        }
    }

    /// In any form that people write; `now`: what spans count from.
    pub(crate) fn time(&self, name: &str, now: WallClock) -> Result<Option<WallClock>, Problem> {
        let Some(text) = self.one(name) else {
            return Ok(None);
        };
        let known = time(text, now).ok_or_else(|| {
            wrong(format!(
                "{name}={text}: write a time such as {}, or how long ago it was, such as -2h, -3d",
                rfc3339(now)
            ))
        });
        known.map(Some)
    }

    /// Conditions on these columns.
    pub(crate) fn filters(&self, columns: &[&'static str]) -> Result<Vec<Filter>, Problem> {
        let filter = |text: &str| {
            let (column, is) = text.split_once(':').ok_or_else(|| {
                wrong(format!(
                    "filter={text}: write filter=COLUMN:VALUE, or COLUMN:BEGINNING*"
                ))
            })?;
            let known = columns.iter().find(|known| **known == column);
            let column = known.ok_or_else(|| {
                let guess = did_you_mean(column, columns.iter().copied());
                let all = columns.join(", ");
                wrong(format!(
                    "filter={text}: no column \"{column}\"{guess}; there are {all}"
                ))
            })?;
            let is = is.to_owned();
            Ok(Filter { column, is })
        };
        self.all("filter").map(filter).collect()
    }
}

/// RFC 3339 in any form; seconds since 1970; or so long ago, such as `-2h`.
fn time(text: &str, now: WallClock) -> Option<WallClock> {
    if let Some(ago) = text.strip_prefix('-') {
        let unit = ago.chars().last()?;
        let number: u64 = ago.strip_suffix(unit)?.parse().ok()?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            'y' => 365 * 86_400,
            _ => return None,
        };
        let ago = number.checked_mul(seconds)?.checked_mul(SECOND)?;
        return Some(WallClock(now.0.saturating_sub(ago)));
    }
    if let Ok(seconds) = text.parse::<u64>() {
        return seconds.checked_mul(SECOND).map(WallClock);
    }
    // A plus that nobody encoded is a blank by now: `10:00:00 02:00`.
    let meant = match text.rsplit_once(' ') {
        Some((time, offset)) if time.contains(':') => format!("{time}+{offset}"),
        Some(_) | None => text.to_owned(),
    };
    parse(&meant)
}

#[cfg(test)]
mod test {
    use super::*;

    const NOW: WallClock = WallClock(1_800_000_000 * SECOND);

    #[test]
    fn a_time_may_be_written_in_the_ways_that_people_write_it() {
        let seconds = |text| time(text, NOW).map(|at| at.0 / SECOND);
        for (text, wanted) in [
            ("1800000000", 1_800_000_000),
            ("2027-01-15T08:00:00.000Z", 1_800_000_000),
            ("2027-01-15T08:00:00Z", 1_800_000_000),
            ("2027-01-15 08:00:00Z", 1_800_000_000),
            ("2027-01-15T10:00:00+02:00", 1_800_000_000),
            ("2027-01-15T10:00:00 02:00", 1_800_000_000),
            ("2027-01-15T03:00:00.5-05:00", 1_800_000_000),
            ("-30s", 1_799_999_970),
            ("-2h", 1_799_992_800),
            ("-1d", 1_799_913_600),
            ("-90y", 0),
        ] {
            assert_eq!(seconds(text), Some(wanted), "{text}");
        }
        for text in [
            "",
            "-",
            "-h",
            "-5x",
            "yesterday",
            "2027-01-15",
            "-1.5h",
            "99999999999999",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        let read = |query| Parameters::read(Some(query), &["limit", "filter", "from"]);
        let refused = read("limti=5").unwrap_err();
        assert!(
            refused.detail.contains("did you mean \"limit\""),
            "{refused}"
        );
        let all = read("limit=5&filter=name:a%20b&filter=code:x*&from=never").unwrap();
        assert_eq!(all.number("limit", 1, 10), Ok(Some(5)));
        assert!(all.number("limit", 6, 10).is_err());
        let filters = all.filters(&["name", "code"]).unwrap();
        assert_eq!((filters.len(), filters[0].is.as_str()), (2, "a b"));
        let refused = all.filters(&["names"]).unwrap_err();
        assert!(refused.detail.contains("there are names"), "{refused}");
        assert!(all.time("from", NOW).is_err());
    }
}
