//! Secrets do not get into what is kept.

use serde_json::Value;

/// A member whose name has one of these in it is a secret.
const NAMES: [&str; 8] = [
    "secret",
    "password",
    "passphrase",
    "token",
    "authorization",
    "cookie",
    "private_key",
    "csrf",
];

/// The same without the values of secret members, at any depth: instead of each stands that it was
/// removed. That something was set stays known.
#[must_use]
pub fn without_secrets(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let value = if is_secret(&name) && !value.is_null() {
                    Value::from("(removed)")
                } else {
                    without_secrets(value)
                };
                (name, value)
            });
            Value::Object(members.collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(without_secrets).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    // Whoever knows the address of a webhook may post there.
    let is_address = name == "url" || name.ends_with("_url");
    is_address || NAMES.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::fields;
    use manifest::objects::{ChapSpec, SecretSpec};
    use manifest::secret::Secret;
    use serde_json::json;

    /// Words of a text that name fields.
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
    }

    #[test]
    fn every_secret_field_that_a_file_or_an_object_may_have_is_removed_at_any_depth() {
        let (node, objects) = (fields::node_fields(), fields::object_fields());
        let all = node.iter().chain(&objects);
        let named: Vec<&str> = all
            .flat_map(|field| words(field.key).chain(words(field.values)))
            .filter(|word| word.contains("secret") || word.contains("password"))
            .collect();
        assert!(named.contains(&"secret_file") && named.contains(&"mutual_secret_file"));
        let of_requests = ["secret", "mutual_secret"];
        for name in named.into_iter().chain(of_requests) {
            let document =
                json!([{ "host": [{ "name": "esx01", "chap": { name: "correct horse" } }] }]);
            let kept = without_secrets(document).to_string();
            assert!(
                !kept.contains("correct horse") && kept.contains("esx01"),
                "{name}: {kept}"
            );
        }
    }

    #[test]
    fn a_host_with_secrets_as_a_client_sends_it_keeps_none() {
        let value = |text: &str| SecretSpec::Value(Secret::new(text.as_bytes().to_vec()));
        let chap = ChapSpec {
            user: "esx01".to_owned(),
            secret: value("correct horse"),
            mutual_user: Some("node".to_owned()),
            mutual_secret: Some(value("battery staple")),
        };
        let sent = serde_json::to_value(&chap).unwrap();
        assert!(
            sent.to_string().contains("correct horse"),
            "this is what a request has"
        );
        let kept = without_secrets(sent).to_string();
        assert!(
            !kept.contains("correct") && !kept.contains("battery"),
            "{kept}"
        );
    }

    #[test]
    fn what_requests_say_of_secrets_is_removed() {
        let request = json!({
            "name": "esx01",
            "chap": {
                "user": "esx01", "secret": "correct horse", "mutual_user": "node",
                "mutual_secret": "battery staple", "Mutual-Secret": ["battery staple"],
            },
            "webhook": { "url": "https://tr0ub4dor" },
            "password": "tr0ub4dor", "new_password": { "value": "tr0ub4dor" }, "api_token": "tr0ub4dor",
            "grants": [{ "lun": "vm01" }],
        });
        let kept = without_secrets(request);
        let text = kept.to_string();
        for secret in ["correct horse", "battery staple", "tr0ub4dor"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(kept["chap"]["user"], "esx01");
        assert_eq!(kept["chap"]["mutual_user"], "node");
        assert_eq!(kept["grants"][0]["lun"], "vm01");
        assert_eq!(
            kept["chap"]["secret"], "(removed)",
            "that it was set stays known"
        );
        assert_eq!(
            without_secrets(json!({ "secret": null }))["secret"],
            Value::Null
        );
    }
}
