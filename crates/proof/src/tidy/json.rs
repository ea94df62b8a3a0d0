//! As much JSON as `cargo metadata` answers with.

use std::iter::Peekable;
use std::str::Chars;

/// A value. Numbers and booleans are not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Json {
    Other,
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value of a key of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(pairs) => pairs
                .iter()
                .find(|(it, _)| it == key)
                .map(|(_, value)| value),
            Self::Other | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// The items of a list; none of anything else.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            Self::Other | Self::Text(_) | Self::Object(_) => &[],
        }
    }

    /// The text of a string.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other | Self::List(_) | Self::Object(_) => None,
        }
    }
}

/// Reads one value; `None` where it is not JSON.
pub(super) fn parse(text: &str) -> Option<Json> {
    value(&mut text.chars().peekable())
}

type Input<'a> = Peekable<Chars<'a>>;

fn skip_space(input: &mut Input<'_>) {
    while input.next_if(|it| it.is_whitespace()).is_some() {}
}

fn value(input: &mut Input<'_>) -> Option<Json> {
    skip_space(input);
    match input.peek()? {
        '{' => {
            let mut pairs = Vec::new();
            series(input, '}', |input| {
                let key = string(input)?;
                skip_space(input);
                input.next_if_eq(&':')?;
                pairs.push((key, value(input)?));
                Some(())
            })?;
            Some(Json::Object(pairs))
        }
        '[' => {
            let mut items = Vec::new();
            series(input, ']', |input| {
                items.push(value(input)?);
                Some(())
            })?;
            Some(Json::List(items))
        }
        '"' => string(input).map(Json::Text),
        _ => {
            while input.next_if(|it| !",]} \n".contains(*it)).is_some() {}
            Some(Json::Other)
        }
    }
}

/// Reads what stands between brackets, with commas between.
fn series(
    input: &mut Input<'_>,
    end: char,
    mut one: impl FnMut(&mut Input<'_>) -> Option<()>,
) -> Option<()> {
    input.next()?;
    loop {
        skip_space(input);
        if input.next_if_eq(&end).is_some() {
            return Some(());
        }
        one(input)?;
        skip_space(input);
        input.next_if_eq(&',');
    }
}

fn string(input: &mut Input<'_>) -> Option<String> {
    input.next_if_eq(&'"')?;
    let mut out = String::new();
    loop {
        match input.next()? {
            '"' => return Some(out),
            '\\' => match input.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'u' => {
                    let digits: String = input.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).ok()?;
                    out.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn nested_values_are_found() {
        let json = parse(r#"{ "a": [1, null, {"b": "x\"\u0041\n"}], "c": {} }"#).unwrap();
        let list = json.get("a").unwrap().items();
        assert_eq!(list.len(), 3);
        assert_eq!(list[2].get("b").and_then(Json::text), Some("x\"A\n"));
        assert_eq!(parse("{\"a\": \"no end"), None);
    }
}
