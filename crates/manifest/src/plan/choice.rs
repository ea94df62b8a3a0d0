//! Which pool or portal group is meant.

use crate::name::did_you_mean;

/// The named one, or the one called `default`, or the only one.
pub(super) fn choose(named: Option<&str>, known: &[String], what: &str) -> Result<String, String> {
    let Some(named) = named else {
        return match known {
            [only] => Ok(only.clone()),
            [] => Err(format!("node.toml has no {what}")),
            many if many.iter().any(|name| name == "default") => Ok("default".to_owned()),
            many => Err(format!("say which {what}: {}", many.join(", "))),
        };
    };
    if known.iter().any(|name| name == named) {
        return Ok(named.to_owned());
    }
    let guess = did_you_mean(named, known.iter().map(String::as_str));
    Err(format!("node.toml has no {what} \"{named}\"{guess}"))
}
