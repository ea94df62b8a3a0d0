//! The table of retired words as people read it, in `ARCHITECTURE.md`.

use crate::tidy::Complaint;
use crate::tidy::tree::Tree;

/// The page that has the tables.
pub(super) const PAGE: &str = "ARCHITECTURE.md";

/// The heading over them.
pub(super) const SECTION: &str = "Retired words";

/// Where a term is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// In names: of code, files, fields, metrics, and wherever they are quoted.
    Names,
    /// In names of a Rust source of which it is the whole.
    WholeNames,
    /// In the strings of a Rust source: what people read, and what judges of tests say.
    Messages,
    /// Wherever it stands in a Rust source, comments included.
    Sources,
    /// In every text.
    Everywhere,
}

/// A term that is not used any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Term {
    /// Its forms, each of one word or more.
    pub(super) phrases: Vec<Vec<String>>,
    /// Longer phrases that begin with one of them, and are free.
    pub(super) free: Vec<Vec<String>>,
    /// What to say in its place.
    pub(super) instead: String,
    pub(super) form: Form,
    /// Folders or files in whose paths it is refused; none means all.
    pub(super) places: Vec<String>,
}

impl Term {
    /// What it is called in complaints: its first form.
    pub(super) fn name(&self) -> String {
        let first = self.phrases.first();
        first.map(|it| it.join(" ")).unwrap_or_default()
    }
}

/// What the tables say.
#[derive(Default, Debug)]
pub(super) struct Table {
    pub(super) terms: Vec<Term>,
    /// Pages and the sections of them where the old words may stand.
    pub(super) exceptions: Vec<(String, String)>,
}

/// Reads the tables, and complains of rows that cannot be read.
pub(super) fn read(tree: &Tree) -> (Table, Vec<Complaint>) {
    let mut table = Table::default();
    let mut complaints = Vec::new();
    table.exceptions.push((PAGE.to_owned(), SECTION.to_owned()));
    let mut is_inside = false;
    for (at, line) in tree.text(PAGE).unwrap_or_default().lines().enumerate() {
        if let Some((_, heading)) = heading(line) {
            is_inside = heading == SECTION;
        }
        let row = line.strip_prefix('|').and_then(|it| it.strip_suffix('|'));
        let cells: Vec<&str> = row.unwrap_or_default().split('|').map(str::trim).collect();
        let is_head = cells.iter().all(|it| it.trim_matches('-').is_empty())
            || ["Retired", "May stand in"].contains(&cells[0]);
        if !is_inside || is_head {
            continue;
        }
        match cells.as_slice() {
            [page, section] => {
                let page = page.trim_matches('`').to_owned();
                table.exceptions.push((page, (*section).to_owned()));
            }
            [phrases, instead, refused] => match term(phrases, instead, refused) {
                Some(term) => table.terms.push(term),
                None => complaints.push(format!(
                    "{PAGE}:{}: refuse it in `names`, `whole names`, `messages`, `sources` or `everywhere`, \
                     with ` in FOLDER` where it is one meaning of the word",
                    at + 1
                )),
            },
            _ => complaints.push(format!("{PAGE}:{}: the row has too many cells", at + 1)),
        }
    }
    (table, complaints)
}

fn term(phrases: &str, instead: &str, refused: &str) -> Option<Term> {
    let (form, places) = refused.split_once(" in ").unwrap_or((refused, ""));
    let form = match form {
        "names" => Form::Names,
        "whole names" => Form::WholeNames,
        "messages" => Form::Messages,
        "sources" => Form::Sources,
        "everywhere" => Form::Everywhere,
        _ => return None,
    };
    let (mut refused, mut free) = (Vec::new(), Vec::new());
    for phrase in phrases.split(',').map(str::trim) {
        let (list, phrase) = match phrase.strip_prefix("except ") {
            Some(rest) => (&mut free, rest),
            None => (&mut refused, phrase),
        };
        list.push(phrase.split_whitespace().map(str::to_lowercase).collect());
    }
    let places = places.split(',').map(|it| it.trim().trim_matches('`'));
    Some(Term {
        phrases: refused,
        free,
        instead: instead.to_owned(),
        form,
        places: places
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect(),
    })
}

/// The level and text of a heading.
pub(super) fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.len() - line.trim_start_matches('#').len();
    let text = line[level..].strip_prefix(' ')?;
    (level > 0).then_some((level, text.trim()))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn rows_become_terms_and_exceptions() {
        let page = "## Glossary\n| not | this |\n### Retired words\nText.\n\n| Retired | Say | Refused |\n|---|---|---|\n\
            | Go up, goes up, except go up to | rise | everywhere |\n| peg | pin | names in `a`, b_c |\n\n\
            | May stand in | Section |\n|---|---|\n| `docs/x.md` | Renamed |\n## Next\n| a | b | c |\n";
        let (table, complaints) = read(&Tree::of(&[(PAGE, page)]));
        assert_eq!(complaints, Vec::<Complaint>::new());
        assert_eq!(table.terms.len(), 2);
        assert_eq!(table.terms[0].name(), "go up");
        assert_eq!(table.terms[0].phrases.len(), 2);
        assert_eq!(table.terms[0].free, [["go", "up", "to"]]);
        assert_eq!(table.terms[0].form, Form::Everywhere);
        assert_eq!(table.terms[1].places, ["a", "b_c"]);
        let last = table.exceptions.last().unwrap();
        assert_eq!(*last, ("docs/x.md".to_owned(), "Renamed".to_owned()));
    }

    #[test]
    fn a_row_that_cannot_be_read_is_a_complaint_with_its_line() {
        let page = "## Retired words\n| a | b | somewhere |\n| a | b | names | d |\n";
        let (table, complaints) = read(&Tree::of(&[(PAGE, page)]));
        assert_eq!(table.terms, []);
        assert_eq!(complaints.len(), 2);
        assert!(
            complaints[0].starts_with("ARCHITECTURE.md:2:"),
            "{complaints:?}"
        );
    }
}
