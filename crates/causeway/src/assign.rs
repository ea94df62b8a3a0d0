//! `KEY=VALUE` arguments.

use control::code::Code;
use control::name::did_you_mean;
use control::problem::Problem;

/// Splits the arguments and refuses keys that are not `known`.
pub(crate) fn assignments<'a>(
    values: &'a [String],
    known: &[&str],
) -> Result<Vec<(&'a str, &'a str)>, Problem> {
    let mut out = Vec::new();
    for text in values {
        let Some((key, value)) = text.split_once('=') else {
            return Err(usage(format!("\"{text}\" is not KEY=VALUE")));
        };
        if !known.contains(&key) {
            let guess = did_you_mean(key, known.iter().copied());
            let known = known.join(", ");
            return Err(usage(format!(
                "unknown key \"{key}\"{guess} (known here: {known})"
            )));
        }
        out.push((key, value));
    }
    Ok(out)
}

/// A mistake in the arguments.
pub(crate) fn usage(detail: impl Into<String>) -> Problem {
    Problem::new(Code::BadRequest, detail).hint("see --help")
}

/// `true` or `false`.
pub(crate) fn boolean(key: &str, value: &str) -> Result<bool, Problem> {
    value
        .parse()
        .map_err(|_| usage(format!("{key}={value}: write true or false")))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_with_the_probable_one() {
        let values = vec!["szie=1G".to_owned()];
        let problem = assignments(&values, &["size", "name"]).unwrap_err();
        assert!(
            problem.detail.contains("did you mean \"size\"?"),
            "{problem}"
        );
        assert_eq!(problem.exit() as u8, 2);
        assert!(assignments(&["size".to_owned()], &["size"]).is_err());
        let values = vec!["iqn=a=b".to_owned()];
        assert_eq!(assignments(&values, &["iqn"]).unwrap(), [("iqn", "a=b")]);
    }
}
