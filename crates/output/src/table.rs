//! Tables: columns, and which of them are shown.

use manifest::code::Code;
use manifest::name::did_you_mean;
use manifest::problem::Problem;
use std::fmt;

/// The columns that the table of a list has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Columns {
    /// Those that it has by itself.
    pub normal: &'static [&'static str],
    /// Those that it has as well where all are wanted.
    pub wide: &'static [&'static str],
}

impl Columns {
    /// Only such as the table has by itself.
    #[must_use]
    pub const fn new(normal: &'static [&'static str]) -> Self {
        Self { normal, wide: &[] }
    }

    /// And these where all are wanted.
    #[must_use]
    pub const fn wide(self, wide: &'static [&'static str]) -> Self {
        Self { wide, ..self }
    }

    /// All of them, in the order of the cells of a row.
    fn all(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.normal.iter().chain(self.wide).copied()
    }

    /// All of them, as they are typed.
    pub fn typed(&self) -> impl Iterator<Item = String> {
        self.all().map(typed)
    }

    fn place(&self, name: &str) -> Option<usize> {
        let name = typed(name);
        self.all().position(|it| typed(it) == name)
    }

    /// Whether there are columns of these names.
    ///
    /// # Errors
    /// There is none of a name; the message lists those that there are.
    pub fn check(&self, names: &[String]) -> Result<(), Problem> {
        let unknown = names.iter().find(|name| self.place(name).is_none());
        let Some(unknown) = unknown else {
            return Ok(());
        };
        let known: Vec<String> = self.typed().collect();
        let guess = did_you_mean(&typed(unknown), known.iter().map(String::as_str));
        let detail = format!("there is no column \"{}\"{guess}", unknown.escape_debug());
        Err(Problem::new(Code::CommandLine, detail).hint(format!("there are {}", known.join(","))))
    }
}

/// The name of a column as it is typed: `portal_group` for PORTAL GROUP.
fn typed(name: &str) -> String {
    let plain = |it: char| match it {
        ' ' | '-' => '_',
        it => it.to_ascii_lowercase(),
    };
    name.trim().chars().map(plain).collect()
}

/// The table of a list, and what is said around it.
#[derive(Debug)]
pub struct Table {
    columns: Columns,
    rows: Vec<Vec<String>>,
    before: String,
    after: String,
    instead: Option<String>,
}

impl Table {
    /// A row has a cell for each column; where it has fewer, the last ones are empty.
    #[must_use]
    pub fn new(columns: Columns, rows: Vec<Vec<String>>) -> Self {
        Self {
            columns,
            rows,
            before: String::new(),
            after: String::new(),
            instead: None,
        }
    }

    /// With lines above it for people.
    #[must_use]
    pub fn below(self, before: String) -> Self {
        Self { before, ..self }
    }

    /// With lines below it for people.
    #[must_use]
    pub fn above(self, after: String) -> Self {
        Self { after, ..self }
    }

    /// Shown in place of it to whoever chooses nothing.
    #[must_use]
    pub fn instead(self, text: String) -> Self {
        let instead = Some(text);
        Self { instead, ..self }
    }

    /// As text: with all columns, or with some by their names, and with their names above them or
    /// without. Whoever chooses columns or leaves out the head gets the rows and nothing else.
    pub(crate) fn shown(&self, is_wide: bool, names: &[String], has_head: bool) -> String {
        let all: Vec<&str> = self.columns.all().collect();
        let count = if is_wide {
            all.len()
        } else {
            self.columns.normal.len()
        };
        let places: Vec<usize> = if names.is_empty() {
            (0..count).collect()
        } else {
            let place = |name: &String| self.columns.place(name);
            names.iter().filter_map(place).collect()
        };
        let cell = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
        let row = |row: &Vec<String>| places.iter().map(|at| cell(row, *at)).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(row).collect();
        if !has_head {
            return lines(&rows);
        }
        let head: Vec<&str> = places
            .iter()
            .filter_map(|at| all.get(*at).copied())
            .collect();
        let table = table(&head, &rows);
        if !names.is_empty() {
            return table;
        }
        if let Some(text) = self.instead.as_ref().filter(|_| !is_wide) {
            return text.clone();
        }
        format!("{}{table}{}", self.before, self.after)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(false, &[], true))
    }
}

/// Columns, each as wide as its widest cell; numbers are the caller's to format.
#[must_use]
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().cloned()).collect();
    lines(&all)
}

fn lines(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &Vec<String>| {
        let mut out = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
            out.push_str(cell);
            out.push_str(&" ".repeat(width - cell.chars().count() + 2));
        }
        format!("{}\n", out.trim_end())
    };
    rows.iter().map(line).collect()
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

#[cfg(test)]
mod test {
    use super::*;

    fn cells(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks() {
        let rows = vec![
            cells(&["vm01", "1 GiB", ""]),
            cells(&["b", "12.5 TiB", "x"]),
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

    const COLUMNS: Columns = Columns::new(&["NAME", "PORTAL GROUP"]).wide(&["NAA"]);

    #[test]
    fn columns_are_chosen_by_name_and_only_whoever_chooses_none_reads_the_notes() {
        let rows = vec![cells(&["vm01", "a", "6f"]), cells(&["b"])];
        let table = Table::new(COLUMNS, rows)
            .below("file\n".to_owned())
            .above("note\n".to_owned());
        assert_eq!(
            table.to_string(),
            "file\nNAME  PORTAL GROUP\nvm01  a\nb\nnote\n"
        );
        let wide = table.shown(true, &[], true);
        assert!(
            wide.contains("NAME  PORTAL GROUP  NAA\nvm01  a             6f\n"),
            "{wide}"
        );
        assert_eq!(table.shown(false, &[], false), "vm01  a\nb\n");
        let chosen = |names: &[&str], head| table.shown(false, &cells(names), head);
        assert_eq!(
            chosen(&["naa", "NAME"], true),
            "NAA  NAME\n6f   vm01\n     b\n"
        );
        assert_eq!(chosen(&["portal-group"], false), "a\n\n");
    }

    #[test]
    fn an_unknown_column_is_refused_with_those_that_there_are() {
        assert!(COLUMNS.check(&cells(&["Portal_Group", "naa"])).is_ok());
        let refused = COLUMNS.check(&cells(&["name", "portal"])).unwrap_err();
        assert_eq!(refused.exit() as u8, 2);
        assert!(refused.detail.contains("\"portal\""), "{refused}");
        assert_eq!(refused.hint, "there are name,portal_group,naa");
        let guess = COLUMNS.check(&cells(&["nme"])).unwrap_err();
        assert!(guess.detail.contains("did you mean \"name\"?"), "{guess}");
    }
}
