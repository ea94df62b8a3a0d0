//! What the command line prints: tables for people, documents for programs; and `KEY=VALUE`
//! arguments.
//!
//! ```text
//!   lib          the forms, and where answers go
//!     assign     KEY=VALUE arguments
//!     table      columns, and what of them is shown
//!     names      only the names of what a document has
//!     yaml       a document as YAML
//!     watch      an answer again and again
//! ```

pub mod assign;
mod names;
mod signals;
mod table;
mod watch;
mod yaml;

pub use signals::wait_for_end;
pub use table::{Columns, Table, properties, table};
pub use watch::{Every, again};

use clap::ValueEnum;
use manifest::problem::Problem;
use manifest::size::Size;
use serde::Serialize;
use serde_json::Value;
use std::cell::Cell;
use std::io::Write as _;
use watch::Rounds;

/// Forms of output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Format {
    /// A table; not for programs
    Table,
    /// A table with more columns, where there are some
    Wide,
    /// The API's document
    Json,
    /// The same as YAML
    Yaml,
    /// Only names, one a line
    Name,
}

/// Where answers go, in the form that was asked for.
pub struct Output {
    format: Format,
    /// Columns by name, in place of those that a table has by itself.
    columns: Vec<String>,
    has_head: bool,
    rounds: Option<Rounds>,
    /// Nobody reads any more.
    is_left: Cell<bool>,
}

/// Writes to standard output. A reader that has gone away is no error: `causeway lun ls | head`.
pub fn print(text: &str) {
    let _ = write(text);
}

fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

impl Output {
    /// Answers in this form.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            format,
            columns: Vec::new(),
            has_head: true,
            rounds: None,
            is_left: Cell::new(false),
        }
    }

    /// Of tables only these columns, in this order; none: those that each has by itself.
    #[must_use]
    pub fn columns(self, columns: Vec<String>) -> Self {
        Self { columns, ..self }
    }

    /// Tables with or without the names of their columns.
    #[must_use]
    pub fn head(self, has_head: bool) -> Self {
        Self { has_head, ..self }
    }

    /// Answers that come again and again; `title` stands above each in a terminal.
    #[must_use]
    pub fn rounds(self, title: String) -> Self {
        let rounds = Some(Rounds::new(title));
        Self { rounds, ..self }
    }

    /// A program reads it.
    #[must_use]
    pub fn is_document(&self) -> bool {
        match self.format {
            Format::Table | Format::Wide => false,
            Format::Json | Format::Yaml | Format::Name => true,
        }
    }

    /// The document, or what `people` makes of it.
    pub fn show<T: Serialize>(&self, document: &T, people: impl FnOnce(&T) -> String) {
        let text = match self.format {
            Format::Table | Format::Wide => people(document),
            Format::Json | Format::Yaml | Format::Name => self.document(document),
        };
        self.put(&text);
    }

    /// The documents of a list, or the table that `people` makes of them.
    pub fn list<T: Serialize>(&self, documents: &T, people: impl FnOnce(&T) -> Table) {
        self.show(documents, |documents| {
            let is_wide = self.format == Format::Wide;
            people(documents).shown(is_wide, &self.columns, self.has_head)
        });
    }

    /// One of the documents that come one after the other without an end: a line where the form has
    /// such.
    #[must_use]
    pub fn line<T: Serialize>(&self, document: &T, people: impl FnOnce(&T) -> String) -> String {
        match self.format {
            Format::Table | Format::Wide => people(document),
            Format::Json => {
                let text = serde_json::to_string(document);
                format!("{}\n", text.expect("documents are made of plain data"))
            }
            Format::Yaml => format!("---\n{}", self.document(document)),
            Format::Name => self.document(document),
        }
    }

    fn document<T: Serialize>(&self, document: &T) -> String {
        match self.format {
            Format::Yaml => yaml::text(&value(document)),
            Format::Name => names::of(&value(document)),
            // In the order of its members.
            Format::Json | Format::Table | Format::Wide => {
                let text = serde_json::to_string_pretty(document);
                format!("{}\n", text.expect("documents are made of plain data"))
            }
        }
    }

    fn put(&self, text: &str) {
        let written = match &self.rounds {
            None => write(text),
            Some(rounds) => write(&rounds.placed(text, self.format == Format::Yaml)),
        };
        self.is_left.set(written.is_err());
    }

    /// Reports what went wrong, on standard error.
    pub fn problem(&self, problem: &Problem) {
        // In a terminal it takes the place of an answer.
        let rounds = self.rounds.as_ref();
        if let Some(rounds) = rounds.filter(|rounds| rounds.is_under_way()) {
            print(&rounds.placed("", false));
        }
        match self.format {
            Format::Table | Format::Wide | Format::Name => eprintln!("{problem}"),
            Format::Json | Format::Yaml => eprint!("{}", self.document(problem)),
        }
    }
}

fn value<T: Serialize>(document: &T) -> Value {
    serde_json::to_value(document).expect("documents are made of plain data")
}

/// Bytes as people read them.
#[must_use]
pub fn rounded(bytes: u64) -> String {
    manifest::size::rounded(bytes)
}

/// Commands in flight, with their bytes.
#[must_use]
pub fn in_flight(commands: u64, bytes: u64) -> String {
    format!("{commands} ({})", rounded(bytes))
}

/// A limit.
#[must_use]
pub fn most(limit: Option<Size>) -> String {
    limit.map_or_else(|| "no limit".to_owned(), Size::rounded)
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_of_a_stream_is_a_line_or_begins_with_a_mark() {
        let line = |format| Output::new(format).line(&json!({"id": 7}), |_| "seven\n".to_owned());
        assert_eq!(line(Format::Table), "seven\n");
        assert_eq!(line(Format::Json), "{\"id\":7}\n");
        assert_eq!(line(Format::Yaml), "---\nid: 7\n");
        assert_eq!(line(Format::Name), "7\n");
    }
}
