//! Printing: tables for people, documents for programs.

use clap::ValueEnum;
use manifest::problem::Problem;
use manifest::size::Size;
use serde::Serialize;
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
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// All columns are wanted.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.format == Format::Wide
    }

    /// The document, or what `people` makes of it.
    pub fn show<T: Serialize>(&self, document: &T, people: impl FnOnce(&T) -> String) {
        match self.format {
            Format::Table | Format::Wide => print(&people(document)),
            Format::Json => {
                let text = serde_json::to_string_pretty(document);
                print(&text.expect("documents are made of plain data"));
                print("\n");
            }
        }
    }

    /// Reports what went wrong, on standard error.
    pub fn problem(&self, problem: &Problem) {
        match self.format {
            Format::Table | Format::Wide => eprintln!("{problem}"),
            Format::Json => {
                let text = serde_json::to_string_pretty(problem);
                eprintln!("{}", text.expect("documents are made of plain data"));
            }
        }
    }
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
