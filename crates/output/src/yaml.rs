//! A JSON document as YAML. Nothing is read, so this is all that it takes: a text that any reader
//! might take for something else is quoted as JSON quotes it, which is YAML as well.

use serde_json::Value;

/// What readers of YAML 1.1 or 1.2 take for a truth or for nothing.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];

/// The document, with a line for each value that has no others in it.
pub(super) fn text(document: &Value) -> String {
    let mut out = lines(document).join("\n");
    out.push('\n');
    out
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        value if is_plain(value) => vec![scalar(value)],
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                let name = of_string(name);
                if is_plain(value) {
                    return vec![format!("{name}: {}", scalar(value))];
                }
                let inner = lines(value).into_iter().map(|line| format!("  {line}"));
                std::iter::once(format!("{name}:")).chain(inner).collect()
            };
            members.iter().flat_map(member).collect()
        }
        Value::Array(items) => {
            let item = |item: &Value| {
                let inner = lines(item).into_iter().enumerate();
                let mark = |(at, line): (usize, String)| match at {
                    0 => format!("- {line}"),
                    _ => format!("  {line}"),
                };
                inner.map(mark).collect::<Vec<String>>()
            };
            items.iter().flat_map(item).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            vec![scalar(value)]
        }
    }
}

/// It takes one line.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => of_string(text),
        Value::Number(number) => of_number(&number.to_string()),
        // YAML writes them as JSON does; lists and objects are empty ones.
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// YAML 1.1 takes `1e21` for a text.
fn of_number(text: &str) -> String {
    let Some((digits, exponent)) = text.split_once('e') else {
        return text.to_owned();
    };
    let point = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) {
        ""
    } else {
        "+"
    };
    format!("{digits}{point}e{sign}{exponent}")
}

fn of_string(text: &str) -> String {
    if is_word(text) {
        return text.to_owned();
    }
    let quoted = Value::String(text.to_owned()).to_string();
    let mut out = String::new();
    for it in quoted.chars() {
        // What YAML does not have as it is, and what its lines would end at.
        let is_hidden = it.is_control()
            || matches!(
                it,
                '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            );
        if is_hidden {
            out.push_str(&format!("\\u{:04x}", u32::from(it)));
        } else {
            out.push(it);
        }
    }
    out
}

/// A text that means itself without quotes: it begins with a letter, so it is no number, no time
/// and no mark.
fn is_word(text: &str) -> bool {
    let fits = |it: char| it.is_ascii_alphanumeric() || "_./@%+-()=:, ".contains(it);
    let begins = text.starts_with(|it: char| it.is_ascii_alphabetic() || matches!(it, '/' | '_'));
    begins
        && text.chars().all(fits)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_document_is_written_in_lines() {
        // Members in the order of their names, as serde_json may have them.
        let document = json!([
            {"at": "2026-11-27T10:00:00Z", "grants": ["esx01:t1:vm01"], "limit": {"iops": 5}, "name": "vm01", "none": []},
            {"": [[1, 2], []], "empty": {}, "name": "no", "off": null, "reason": "pool a: full"},
        ]);
        let wanted = "- at: \"2026-11-27T10:00:00Z\"\n  grants:\n    - esx01:t1:vm01\n  limit:\n    iops: 5\n  \
            name: vm01\n  none: []\n- \"\":\n    - - 1\n      - 2\n    - []\n  empty: {}\n  name: \"no\"\n  \
            \"off\": null\n  reason: \"pool a: full\"\n";
        assert_eq!(text(&document), wanted);
        assert_eq!(text(&Value::Null), "null\n");
    }

    fn documents() -> impl Strategy<Value = Value> {
        let texts = prop_oneof![
            any::<String>(),
            "[a-z:#,\\-\\[\\]{}&*!|>'\"%@`? .0-9~\t\n\u{85}\u{2028}\u{feff}]{0,12}",
            "(true|No|null|~|0x1f|1e3|12:30:45|2026-11-27|=|<<|---|\\.inf|0o7)",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            texts.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(texts.clone(), inner, 0..4)
                    .prop_map(|it| it.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn another_reader_reads_the_same_document(document in documents()) {
            let text = text(&document);
            let read = serde_saphyr::from_str::<Value>(&text);
            prop_assert_eq!(read.map_err(|it| it.to_string()), Ok(document), "{}", text);
        }
    }

    #[test]
    fn numbers_with_exponents_are_numbers_to_every_reader() {
        assert_eq!(of_number("1e21"), "1.0e+21");
        assert_eq!(of_number("1.5e-7"), "1.5e-7");
        assert_eq!(of_number("-12"), "-12");
    }
}
