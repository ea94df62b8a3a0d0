//! Reading TOML so that every mistake is found at once and named by file, line and key.
//!
//! Serde stops at the first mistake and does not know the line of a value that is well-formed but
//! wrong, so tables are read by hand: each key that is asked for is known, and what is left over at
//! [`Table::finish`] is not.

use crate::code::Code;
use crate::name::did_you_mean;
use crate::size::Size;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is said of a field that a later version will have.
const NOT_YET: &str = "not in this version yet; remove it";

/// A mistake in a file, for the person who wrote it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// The key with its path, such as `portal_group[0].tag`; may be empty.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// The code of the mistake, for `causeway explain`.
    pub code: Code,
    /// Nothing stands there that is wrong: the key is absent, and the line is that of the table
    /// which lacks it.
    pub is_absence: bool,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// A file's text, its name, and the mistakes found so far.
pub struct Source<'a> {
    file: String,
    text: &'a str,
    line_starts: Vec<usize>,
    mistakes: RefCell<Vec<Mistake>>,
}

impl<'a> Source<'a> {
    /// `file` is the name by which messages call it.
    #[must_use]
    pub fn new(file: &str, text: &'a str) -> Self {
        Self {
            file: file.to_owned(),
            text,
            line_starts: text.match_indices('\n').map(|(at, _)| at + 1).collect(),
            mistakes: RefCell::new(Vec::new()),
        }
    }

    /// The top table; `None`, and mistakes, where it is no TOML.
    pub fn parse(&self) -> Option<DeTable<'a>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        let Some(error) = errors.first() else {
            return Some(table.into_inner());
        };
        // What follows the first syntax error is mostly its echo.
        let at = error.span().map_or(0, |span| span.start);
        self.report(Code::ConfigSyntax, at, "", error.message().to_owned());
        None
    }

    /// The line of a place in the text, from 1.
    #[must_use]
    pub fn line(&self, at: usize) -> usize {
        1 + self.line_starts.partition_point(|start| *start <= at)
    }

    /// Notes a mistake in what stands there.
    pub fn report(&self, code: Code, at: usize, key: &str, message: String) {
        self.note(code, at, key, message, false);
    }

    fn note(&self, code: Code, at: usize, key: &str, message: String, is_absence: bool) {
        self.mistakes.borrow_mut().push(Mistake {
            file: self.file.clone(),
            line: self.line(at),
            key: key.to_owned(),
            message,
            code,
            is_absence,
        });
    }

    /// The mistakes, in order of lines.
    #[must_use]
    pub fn into_mistakes(self) -> Vec<Mistake> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort_by_key(|mistake| mistake.line);
        mistakes
    }
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// What stands there, of the type that was asked for.
    pub value: T,
    /// Where it stands: offset in the text.
    pub at: usize,
}

/// A table that is being read.
pub struct Table<'s, 'a> {
    source: &'s Source<'a>,
    table: &'s DeTable<'a>,
    path: String,
    at: usize,
    asked: RefCell<Vec<&'static str>>,
}

impl<'s, 'a> Table<'s, 'a> {
    /// The top of a file.
    #[must_use]
    pub fn top(source: &'s Source<'a>, table: &'s DeTable<'a>) -> Self {
        Self::new(source, table, String::new(), 0)
    }

    fn new(source: &'s Source<'a>, table: &'s DeTable<'a>, path: String, at: usize) -> Self {
        Self {
            source,
            table,
            path,
            at,
            asked: RefCell::default(),
        }
    }

    /// Where the table starts: offset in the text.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The line where the table starts.
    #[must_use]
    pub fn line(&self) -> usize {
        self.source.line(self.at)
    }

    /// The line of a key, or of the table where the key is absent.
    #[must_use]
    pub fn line_of(&self, key: &str) -> usize {
        let at = self.entry(key).map_or(self.at, |(at, _)| at.start);
        self.source.line(at)
    }

    /// The line of a key in a section below this table, or in the section of this place in a list;
    /// where the key is absent the section's line, and `None` where there is no such section.
    #[must_use]
    pub fn line_inside(&self, section: &str, index: Option<usize>, key: &str) -> Option<usize> {
        let (at, value) = self.entry(section)?;
        let (at, table) = match index {
            None => (at.start, value.as_table()?),
            Some(index) => {
                let item = value.as_array()?.get(index)?;
                (item.span().start, item.get_ref().as_table()?)
            }
        };
        let inside = Table::new(self.source, table, String::new(), at);
        Some(inside.line_of(key))
    }

    /// The keys that the table has.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(|key| key.get_ref().as_ref())
    }

    /// Notes a mistake in the value of `key`.
    pub fn wrong(&self, key: &str, message: impl Into<String>) {
        let at = self.entry(key).map_or(self.at, |(at, _)| at.start);
        let path = self.path_of(key);
        self.source
            .report(Code::ConfigValue, at, &path, message.into());
    }

    /// Notes that a required key is absent.
    pub fn missing(&self, key: &str, example: &str) {
        let message = format!("missing; write for example: {example}");
        let path = self.path_of(key);
        self.source
            .note(Code::ConfigValue, self.at, &path, message, true);
    }

    /// A string; anything else is a mistake that names what was found.
    pub fn text(&self, key: &'static str) -> Option<Placed<String>> {
        let (at, value) = self.ask(key)?;
        if let DeValue::String(text) = value {
            return Some(Placed {
                value: text.to_string(),
                at: at.start,
            });
        }
        self.wrong(
            key,
            format!("expected a text in quotes, found {}", a(value)),
        );
        None
    }

    /// A text that names a value of this type.
    pub fn word<T: FromStr<Err = String>>(&self, key: &'static str) -> Option<T> {
        let text = self.text(key)?;
        let value = text.value.parse();
        value.map_err(|rule| self.wrong(key, rule)).ok()
    }

    /// A text that must be there.
    pub fn required_text(&self, key: &'static str, example: &str) -> Option<Placed<String>> {
        if self.entry(key).is_none() {
            self.asked.borrow_mut().push(key);
            self.missing(key, example);
            return None;
        }
        self.text(key)
    }

    /// A whole number from `least` to `most`.
    pub fn integer(&self, key: &'static str, least: u64, most: u64) -> Option<Placed<u64>> {
        let (at, value) = self.ask(key)?;
        if let Some(number) = whole_number(value) {
            if (least..=most).contains(&number) {
                return Some(Placed {
                    value: number,
                    at: at.start,
                });
            }
            self.wrong(key, format!("{number} is outside {least} to {most}"));
            return None;
        }
        // Negative, or too large for 64 bits.
        let found = value
            .as_integer()
            .map_or_else(|| a(value), |number| number.as_str().to_owned());
        self.wrong(
            key,
            format!("expected a whole number from {least} to {most}, found {found}"),
        );
        None
    }

    /// True or false.
    pub fn boolean(&self, key: &'static str) -> Option<bool> {
        let (_, value) = self.ask(key)?;
        if let DeValue::Boolean(is) = value {
            return Some(*is);
        }
        self.wrong(key, format!("expected true or false, found {}", a(value)));
        None
    }

    /// A size: text such as `"10GiB"`, or a number of bytes.
    pub fn size(&self, key: &'static str) -> Option<Placed<Size>> {
        let (at, value) = self.ask(key)?;
        let size = if let DeValue::String(text) = value {
            text.parse()
        } else {
            whole_number(value)
                .ok_or_else(|| format!("expected a size such as \"10GiB\", found {}", a(value)))
                .and_then(|bytes| {
                    Size::from_bytes(bytes).ok_or_else(|| "over the maximum of 8 PiB".to_owned())
                })
        };
        match size {
            Ok(value) => Some(Placed {
                value,
                at: at.start,
            }),
            Err(message) => {
                self.wrong(key, message);
                None
            }
        }
    }

    /// A list of texts.
    pub fn texts(&self, key: &'static str) -> Option<Vec<Placed<String>>> {
        let (_, value) = self.ask(key)?;
        let Some(array) = value.as_array() else {
            self.wrong(key, format!("expected a list in [ ], found {}", a(value)));
            return None;
        };
        let mut out = Vec::new();
        for item in array.iter() {
            let Some(text) = item.get_ref().as_str() else {
                self.wrong(key, "expected a list of texts in quotes");
                return None;
            };
            out.push(Placed {
                value: text.to_owned(),
                at: item.span().start,
            });
        }
        Some(out)
    }

    /// A value that the caller reads itself.
    pub fn value(&self, key: &'static str) -> Option<&'s DeValue<'a>> {
        self.ask(key).map(|(_, value)| value)
    }

    /// A table inside.
    pub fn table(&self, key: &'static str) -> Option<Table<'s, 'a>> {
        let (at, value) = self.ask(key)?;
        if let DeValue::Table(table) = value {
            return Some(Table::new(self.source, table, self.path_of(key), at.start));
        }
        self.wrong(
            key,
            format!("expected a section [{key}], found {}", a(value)),
        );
        None
    }

    /// A list of tables: `[[key]]` sections, or `[ { .. } ]`.
    pub fn tables(&self, key: &'static str) -> Vec<Table<'s, 'a>> {
        let Some((_, value)) = self.ask(key) else {
            return Vec::new();
        };
        let Some(array) = value.as_array() else {
            let found = a(value);
            self.wrong(key, format!("expected sections [[{key}]], found {found}"));
            return Vec::new();
        };
        let mut out = Vec::new();
        for (index, item) in array.iter().enumerate() {
            if let DeValue::Table(table) = item.get_ref() {
                let path = format!("{}[{index}]", self.path_of(key));
                out.push(Table::new(self.source, table, path, item.span().start));
            } else {
                let found = a(item.get_ref());
                self.wrong(key, format!("expected a table {{ .. }}, found {found}"));
            }
        }
        out
    }

    /// Notes every key that was not asked for; those in `later` are named as not in this version.
    pub fn finish(&self, later: &[&'static str]) {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if self.asked.borrow().contains(&name) {
                continue;
            }
            let (at, path) = (key.span().start, self.path_of(name));
            if later.contains(&name) {
                self.source
                    .report(Code::ConfigNotYet, at, &path, NOT_YET.to_owned());
                continue;
            }
            let asked = self.asked.borrow();
            let guess = did_you_mean(name, asked.iter().copied());
            let known = asked.join(", ");
            let message = format!("unknown key{guess} (known here: {known})");
            self.source
                .report(Code::ConfigUnknownKey, at, &path, message);
        }
    }

    fn ask(&self, key: &'static str) -> Option<(Range<usize>, &'s DeValue<'a>)> {
        self.asked.borrow_mut().push(key);
        self.entry(key)
    }

    fn entry(&self, key: &str) -> Option<(Range<usize>, &'s DeValue<'a>)> {
        let found = |entry: &(&'s Spanned<_>, &'s Spanned<DeValue<'a>>)| -> bool {
            let name: &std::borrow::Cow<'a, str> = entry.0.get_ref();
            name == key
        };
        let (key, value) = self.table.iter().find(found)?;
        Some((key.span(), value.get_ref()))
    }

    fn path_of(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", key) => key.to_owned(),
            (path, "") => path.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }
}

/// The number, where the value is an integer that is not negative and fits 64 bits.
fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn a(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {kind}")
}
