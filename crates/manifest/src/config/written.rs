//! What is written in a text of `node.toml`, by key: pure.

use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value as it stands in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// In TOML, on one line.
    pub value: String,
    /// Where it stands, from 1.
    pub line: usize,
}

/// All keys that are written, with their sections; those of a list of sections are numbered.
pub(super) fn written(
    text: &str,
    line: impl Fn(usize) -> usize,
    top: &DeTable<'_>,
) -> BTreeMap<String, Written> {
    let mut all = BTreeMap::new();
    for (key, value) in top {
        let name: &str = key.get_ref().as_ref();
        if let Some(section) = value.get_ref().as_table() {
            note(&mut all, text, &line, name, section);
        } else if let Some(sections) = sections(value.get_ref()) {
            for (at, section) in sections.enumerate() {
                note(&mut all, text, &line, &format!("{name}[{at}]"), section);
            }
        } else {
            let (value, line) = (render(text, value), line(key.span().start));
            all.insert(name.to_owned(), Written { value, line });
        }
    }
    all
}

/// The sections of a list that has nothing else.
fn sections<'v, 'a>(value: &'v DeValue<'a>) -> Option<impl Iterator<Item = &'v DeTable<'a>>> {
    let items = value.as_array()?;
    let is_list = items.iter().all(|item| item.get_ref().is_table());
    is_list.then(|| items.iter().filter_map(|item| item.get_ref().as_table()))
}

fn note(
    all: &mut BTreeMap<String, Written>,
    text: &str,
    line: &impl Fn(usize) -> usize,
    path: &str,
    section: &DeTable<'_>,
) {
    for (key, value) in section {
        let (value, line) = (render(text, value), line(key.span().start));
        let key: &str = key.get_ref().as_ref();
        all.insert(format!("{path}.{key}"), Written { value, line });
    }
}

/// A value on one line, without what is remarked beside it.
fn render(text: &str, value: &Spanned<DeValue<'_>>) -> String {
    if let Some(items) = value.get_ref().as_array() {
        let items: Vec<String> = items.iter().map(|item| render(text, item)).collect();
        return format!("[{}]", items.join(", "));
    }
    let Some(table) = value.get_ref().as_table() else {
        return text.get(value.span()).unwrap_or_default().to_owned();
    };
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    let pairs = pairs.into_iter().map(|(key, value)| {
        let key: &str = key.get_ref().as_ref();
        format!("{key} = {}", render(text, value))
    });
    format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
}

/// The key without the numbers of sections.
pub(super) fn plain(key: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for letter in key.chars() {
        inside = (inside || letter == '[') && letter != ']';
        if !inside && letter != ']' {
            plain.push(letter);
        }
    }
    plain
}

/// Whether a key is one of the changes.
pub(super) fn is_own(keys: &BTreeSet<String>, key: &str) -> bool {
    let section = key.split_inclusive('.').next().unwrap_or_default();
    keys.contains(key) || keys.contains(section)
}
