//! What the command line prints: tables for people, documents for programs.
//!
//! ```text
//!   lib          the forms, and where answers go
//!     names      only the names of what a document has
//!     yaml       a document as YAML
//! ```

mod names;
mod yaml;

use clap::ValueEnum;
use manifest::problem::Problem;
use manifest::size::Size;
use serde::Serialize;
use serde_json::Value;
use std::io::Write as _;

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
}

/// Writes to standard output. A reader that has gone away is no error: `causeway lun ls | head`.
pub fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

impl Output {
    /// Answers in this form.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format }
    }

    /// A program reads it.
    #[must_use]
    pub fn is_document(&self) -> bool {
        match self.format {
            Format::Table | Format::Wide => false,
            Format::Json | Format::Yaml | Format::Name => true,
        }
    }

    /// All columns are wanted.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.format == Format::Wide
    }

    /// The document, or what `people` makes of it.
    pub fn show<T: Serialize>(&self, document: &T, people: impl FnOnce(&T) -> String) {
        print(&match self.format {
            Format::Table | Format::Wide => people(document),
            Format::Json | Format::Yaml | Format::Name => self.document(document),
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

    /// Reports what went wrong, on standard error.
    pub fn problem(&self, problem: &Problem) {
        match self.format {
            Format::Table | Format::Wide | Format::Name => eprintln!("{problem}"),
            Format::Json | Format::Yaml => eprint!("{}", self.document(problem)),
        }
    }
}

fn value<T: Serialize>(document: &T) -> Value {
    serde_json::to_value(document).expect("documents are made of plain data")
}

/// Columns, each as wide as its widest cell; numbers are the caller's to format.
#[must_use]
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        let mut out = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
            out.push_str(cell);
            out.push_str(&" ".repeat(width - cell.chars().count() + 2));
        }
        format!("{}\n", out.trim_end())
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut out = line(&head);
    for row in rows {
        out.push_str(&line(row));
    }
    out
}

/// Lines of `name  value`.
#[must_use]
pub fn properties(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, value) in pairs {
        let mut lines = value.lines();
        let first = lines.next().unwrap_or("-");
        out.push_str(format!("{name:<width$}  {first}").trim_end());
        out.push('\n');
        for line in lines {
            out.push_str(&format!("{:<width$}  {line}\n", ""));
        }
    }
    out
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

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks() {
        let rows = vec![
            vec!["vm01".to_owned(), "1 GiB".to_owned(), String::new()],
            vec!["b".to_owned(), "12.5 TiB".to_owned(), "x".to_owned()],
        ];
        assert_eq!(
            table(&["NAME", "SIZE", "GRANTS"], &rows),
            "NAME  SIZE      GRANTS\nvm01  1 GiB\nb     12.5 TiB  x\n"
        );
        assert_eq!(
            properties(&[("a", "1\n2".to_owned()), ("long", String::new())]),
            "a     1\n      2\nlong  -\n"
        );
    }
}
