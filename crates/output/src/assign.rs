//! `KEY=VALUE` arguments.

use manifest::code::Code;
use manifest::name::did_you_mean;
use manifest::problem::Problem;
use manifest::size::Size;
use std::borrow::Cow;

/// The keys of one kind of object.
pub struct Keys {
    /// Those that can be assigned.
    pub known: Cow<'static, [&'static str]>,
    /// Those that an object has and nobody assigns, each with the reason and what to do instead.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Those that a later version has.
    pub later: &'static [&'static str],
}

/// Splits the arguments and refuses keys that cannot be assigned.
///
/// # Errors
/// What is wrong with one of them.
pub fn assignments<'a>(
    values: &'a [String],
    keys: &Keys,
) -> Result<Vec<(&'a str, &'a str)>, Problem> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for text in values {
        let Some((key, value)) = text.split_once('=') else {
            return Err(usage(format!("\"{text}\" is not KEY=VALUE")));
        };
        if keys.later.contains(&key) {
            let detail = format!("{key}={value}: not in this version yet");
            return Err(Problem::new(Code::ConfigNotYet, detail));
        }
        if let Some((_, why)) = keys.fixed.iter().find(|(fixed, _)| *fixed == key) {
            return Err(usage(format!("{key} cannot be set so")).hint(*why));
        }
        if !keys.known.contains(&key) {
            let guess = did_you_mean(key, keys.known.iter().copied());
            let known = keys.known.join(", ");
            let detail = format!("unknown key \"{key}\"{guess} (known here: {known})");
            return Err(usage(detail));
        }
        if out.iter().any(|(before, _)| *before == key) {
            return Err(usage(format!("{key} is assigned twice")));
        }
        out.push((key, value));
    }
    Ok(out)
}

/// A mistake in the arguments.
#[must_use]
pub fn usage(detail: impl Into<String>) -> Problem {
    Problem::new(Code::BadRequest, detail).hint("see --help")
}

/// `true` or `false`.
///
/// # Errors
/// It is neither.
pub fn boolean(key: &str, value: &str) -> Result<bool, Problem> {
    value
        .parse()
        .map_err(|_| usage(format!("{key}={value}: write true or false")))
}

/// A limit in bytes, or `none`.
///
/// # Errors
/// It is neither.
pub fn limit(value: &str) -> Result<Size, Problem> {
    let none = if value == "none" { "0" } else { value };
    none.parse().map_err(usage)
}

/// A whole number from 0 to `most`.
///
/// # Errors
/// It is none.
pub fn number(key: &str, value: &str, most: u16) -> Result<u16, Problem> {
    let number = value.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| usage(format!("{key}={value}: write a number from 0 to {most}")))
}

#[cfg(test)]
mod test {
    use super::*;

    const KEYS: Keys = Keys {
        known: Cow::Borrowed(&["size", "name", "iqn"]),
        fixed: &[("naa", "it stays")],
        later: &["cache"],
    };

    fn refused(values: &[&str]) -> Problem {
        let values: Vec<String> = values.iter().map(|text| (*text).to_owned()).collect();
        let problem = assignments(&values, &KEYS).unwrap_err();
        assert_eq!(problem.exit() as u8, 2, "{problem}");
        problem
    }

    #[test]
    fn keys_that_cannot_be_assigned_are_refused_with_what_would_help() {
        let detail = refused(&["szie=1G"]).detail.clone();
        assert!(detail.contains("did you mean \"size\"?"), "{detail}");
        assert!(refused(&["size"]).detail.contains("is not KEY=VALUE"));
        assert!(refused(&["size=1", "size=2"]).detail.contains("twice"));
        assert_eq!(refused(&["naa=6"]).hint, "it stays");
        assert_eq!(refused(&["cache=x"]).code, Code::ConfigNotYet);
        let values = vec!["iqn=a=b".to_owned()];
        assert_eq!(assignments(&values, &KEYS).unwrap(), [("iqn", "a=b")]);
    }

    #[test]
    fn numbers_stay_within_their_limit() {
        assert_eq!(number("n", "16383", 16_383).unwrap(), 16_383);
        for wrong in ["16384", "-1", "x", "65536"] {
            assert!(number("n", wrong, 16_383).is_err(), "{wrong}");
        }
    }
}
