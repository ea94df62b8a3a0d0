//! What must not be read is taken out.

use events::without_secrets;
use serde_json::Value;

/// Stands where something was.
const REMOVED: &str = "(removed)";

/// A shorter one would be found in other words.
const LENGTH_MIN: usize = 6;

/// Words that a secret follows.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// What is in the name of something secret.
const NAMES: [&str; 8] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "authorization",
    "cookie",
    "private_key",
];

/// Secrets that the node knows of.
#[derive(Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Of these texts, as far as they are long enough not to be found in other words.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        let known = known.into_iter().map(|it| it.trim().to_owned());
        let mut known: Vec<String> = known.filter(|it| it.len() >= LENGTH_MIN).collect();
        // One that is in another goes last.
        known.sort_by_key(|it| std::cmp::Reverse(it.len()));
        known.dedup();
        Self(known)
    }

    /// A document without them, and without members whose names say that they are secret.
    pub(crate) fn without(&self, document: Value) -> Value {
        self.cleaned(without_secrets(document))
    }

    fn cleaned(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.line(&text)),
            Value::Array(all) => all.into_iter().map(|it| self.cleaned(it)).collect(),
            Value::Object(members) => {
                let members = members.into_iter();
                let members = members.map(|(name, it)| (self.known(&name), self.cleaned(it)));
                Value::Object(members.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    /// Lines of text without them. A line that is a document is taken for one.
    pub(crate) fn without_text(&self, text: &str) -> String {
        let lines = text.lines().map(|line| {
            let is_document = line.starts_with('{');
            let document = is_document.then(|| serde_json::from_str::<Value>(line));
            match document.and_then(Result::ok) {
                Some(document) => self.without(document).to_string(),
                None => self.line(line),
            }
        });
        let mut out = lines.collect::<Vec<String>>().join("\n");
        out.push('\n');
        out
    }

    fn known(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REMOVED);
            }
        }
        text
    }

    /// One piece of text.
    fn line(&self, text: &str) -> String {
        let text = self.known(text);
        let is_plain = !text.contains("://")
            && !text.contains(['=', ':'])
            && !SCHEMES.iter().any(|it| contains(&text, it));
        if is_plain { text } else { words(&text) }
    }
}

fn contains(text: &str, word: &str) -> bool {
    text.to_ascii_lowercase().contains(word)
}

/// The text word by word, without those that are secret by what stands before them.
fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut follows) = (text, false);
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        out.push_str(&rest[..blank]);
        rest = &rest[blank..];
        let word = &rest[..end_of(rest)];
        rest = &rest[word.len()..];
        if follows && !word.is_empty() {
            out.push_str(REMOVED);
            follows = is_scheme(word);
            continue;
        }
        out.push_str(&without_address(&without_value(word)));
        follows = is_scheme(word) || is_open_name(word);
    }
    out
}

/// Where a word ends: at a blank that no quotes are around.
fn end_of(text: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if letter.is_whitespace() && !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

fn is_scheme(word: &str) -> bool {
    let word = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    SCHEMES.iter().any(|it| word.eq_ignore_ascii_case(it))
}

/// `password:`, `password=` and `--password`, whose value is the next word.
fn is_open_name(word: &str) -> bool {
    let name = word.strip_suffix(['=', ':']);
    let name = name.or_else(|| {
        word.strip_prefix("--")
            .filter(|it| !it.contains(['=', ':']))
    });
    name.is_some_and(is_secret)
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    NAMES.iter().any(|it| name.contains(it))
}

/// `password=x` without its value, also behind others: `a=b&token=x`.
fn without_value(word: &str) -> String {
    const ENDS: [char; 3] = ['&', ';', ','];
    let mut from = 0;
    while let Some(found) = word[from..].find(['=', ':']) {
        let at = from + found;
        let before = word[..at]
            .rfind(|letter: char| !letter.is_ascii_alphanumeric() && !"-_".contains(letter));
        let name = &word[before.map_or(0, |it| it + 1)..at];
        let value = &word[at + 1..];
        if !value.starts_with("//") && !value.is_empty() && is_secret(name) {
            let end = value.find(ENDS).unwrap_or(value.len());
            let rest = without_value(&value[end..]);
            return format!("{}{REMOVED}{rest}", &word[..=at]);
        }
        from = at + 1;
    }
    word.to_owned()
}

/// An address of the web without what stands behind its host, and without who asks there: whoever
/// knows that may post there.
fn without_address(word: &str) -> String {
    let Some(at) = ["http://", "https://"]
        .iter()
        .filter_map(|it| word.find(it).map(|at| at + it.len()))
        .min()
    else {
        return word.to_owned();
    };
    let (before, rest) = word.split_at(at);
    let end = rest.find(['/', '?', '#', '"', '\'', '>', ')', ',']);
    let (host, behind) = rest.split_at(end.unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    match behind.chars().next() {
        Some('/' | '?' | '#') if behind.len() > 1 => format!("{before}{host}/{REMOVED}"),
        _ => format!("{before}{host}{behind}"),
    }
}
