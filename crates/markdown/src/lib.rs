//! Pages of the reference that are made from what the code knows: Markdown with lines of at most
//! 120 columns.
//!
//! A row of a table that would be longer goes on in rows whose first cell is empty; `make docs`
//! joins them.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// The most columns of a line.
pub const COLUMNS: usize = 120;

/// A table of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkdownTable {
    text: String,
    cells: usize,
}

impl MarkdownTable {
    /// A table with these names of columns.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        let rule = "|---".repeat(head.len());
        Self {
            text: format!("| {} |\n{rule}|\n", head.join(" | ")),
            cells: head.len(),
        }
    }

    /// One more row. Its first cell is never empty, and stays in one piece.
    pub fn row(&mut self, cells: &[&str]) {
        assert_eq!(cells.len(), self.cells, "a cell for each column");
        let budget = COLUMNS.saturating_sub(3 * cells.len() + 1);
        let mut left: Vec<VecDeque<&str>> = cells.iter().map(|cell| words(cell)).collect();
        let mut is_first = true;
        while is_first || left.iter().any(|words| !words.is_empty()) {
            let line = line_of(&mut left, budget, is_first);
            is_first = false;
            self.text.push('|');
            for cell in line {
                let blank = if cell.is_empty() { "" } else { " " };
                // Writing to a String cannot fail.
                let _ = write!(self.text, "{blank}{cell} |");
            }
            self.text.push('\n');
        }
    }

    /// The whole table, with the end of its last line.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

/// The rows of the first table behind `heading` in a page, without its head; each with the words
/// between backticks of its first cell, and all the others.
///
/// # Panics
/// The page has no such heading, or no table behind it.
#[must_use]
pub fn rows(page: &str, heading: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let code = |text: &str| -> Vec<String> {
        let between = text.split('`').skip(1).step_by(2);
        between.map(str::to_owned).collect()
    };
    let (_, behind) = page.split_once(heading).expect("the page has this heading");
    let lines = behind.lines().skip_while(|line| !line.starts_with('|'));
    let table = lines.take_while(|line| line.starts_with('|')).skip(2);
    let mut out: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for line in table {
        let continued = line.strip_prefix("| |").zip(out.last_mut());
        if let Some((more, row)) = continued {
            row.1.extend(code(more));
            continue;
        }
        let cells = line.trim_start_matches('|');
        let (first, others) = cells.split_once(" | ").unwrap_or((cells, ""));
        out.push((code(first), code(others)));
    }
    assert!(!out.is_empty(), "{heading}: no table");
    out
}

/// Takes what of each cell stands in the next line.
fn line_of(left: &mut [VecDeque<&str>], budget: usize, is_first: bool) -> Vec<String> {
    let widths = widths(left, budget, is_first);
    let mut line: Vec<String> = left
        .iter_mut()
        .zip(&widths)
        .map(|(words, width)| take(words, *width))
        .collect();
    if line.iter().all(String::is_empty)
        && let Some((words, cell)) = left
            .iter_mut()
            .zip(&mut line)
            .find(|(words, _)| !words.is_empty())
        && let Some(word) = words.pop_front()
    {
        // A word that is longer than all there is.
        word.clone_into(cell);
    }
    line
}

/// How many columns each cell gets of `budget`: what it needs, or a part where that is too much.
fn widths(left: &[VecDeque<&str>], budget: usize, is_first: bool) -> Vec<usize> {
    let mut widths = vec![0; left.len()];
    let mut free = budget;
    let mut open: Vec<usize> = (0..left.len())
        .filter(|&cell| left.get(cell).is_some_and(|words| !words.is_empty()))
        .collect();
    let need = |cell: usize| left.get(cell).map_or(0, length);
    let mut give = |cell: usize, width: usize| {
        if let Some(slot) = widths.get_mut(cell) {
            *slot = width;
        }
    };
    if is_first {
        open.retain(|&cell| cell != 0);
        give(0, need(0));
        free = free.saturating_sub(need(0));
    }
    while !open.is_empty() {
        let fair = free / open.len();
        let small: Vec<usize> = open
            .iter()
            .copied()
            .filter(|&cell| need(cell) <= fair)
            .collect();
        if small.is_empty() {
            let all: usize = open.iter().map(|&cell| need(cell)).sum();
            for &cell in &open {
                give(cell, (fair + free * need(cell) / all.max(1)) / 2);
            }
            break;
        }
        for &cell in &small {
            give(cell, need(cell));
            free = free.saturating_sub(need(cell));
        }
        open.retain(|cell| !small.contains(cell));
    }
    widths
}

fn length(words: &VecDeque<&str>) -> usize {
    let letters: usize = words.iter().map(|word| word.chars().count()).sum();
    letters + words.len().saturating_sub(1)
}

/// Words from the front that fit into `width`.
fn take(words: &mut VecDeque<&str>, width: usize) -> String {
    let mut out = String::new();
    while let Some(word) = words.front() {
        let blank = usize::from(!out.is_empty());
        if out.chars().count() + blank + word.chars().count() > width {
            break;
        }
        if blank == 1 {
            out.push(' ');
        }
        out.push_str(word);
        words.pop_front();
    }
    out
}

/// The words of a text. What stands between backticks or brackets is one.
fn words(text: &str) -> VecDeque<&str> {
    let mut out = VecDeque::new();
    let (mut begin, mut in_code, mut in_link) = (0, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '`' => in_code = !in_code,
            '[' => in_link = true,
            ']' => in_link = false,
            ' ' | '\n' if !in_code && !in_link => {
                out.extend(text.get(begin..at).filter(|word| !word.is_empty()));
                begin = at + 1;
            }
            _ => {}
        }
    }
    out.extend(text.get(begin..).filter(|word| !word.is_empty()));
    out
}

/// A paragraph, of which every line but the first begins with `indent`; with the end of its last
/// line.
#[must_use]
pub fn paragraph(text: &str, indent: &str) -> String {
    let mut words = words(text);
    let mut out = String::new();
    while !words.is_empty() {
        let begin = if out.is_empty() { "" } else { indent };
        let mut line = take(&mut words, COLUMNS.saturating_sub(begin.len()));
        if line.is_empty() {
            line = words.pop_front().unwrap_or_default().to_owned();
        }
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{begin}{line}");
    }
    out
}

/// `page` with `text` in the place between `<!-- generated: NAME -->` and `<!-- end -->`; `None`
/// where it has no such place.
#[must_use]
pub fn with_block(page: &str, name: &str, text: &str) -> Option<String> {
    let mark = format!("<!-- generated: {name} -->\n");
    let (before, rest) = page.split_once(&mark)?;
    let end = rest.find("<!-- end -->")?;
    let after = rest.get(end..)?;
    Some(format!("{before}{mark}\n{text}\n{after}"))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn no_row_is_too_long_no_word_is_lost_and_the_first_cell_stays_whole() {
        let long = "of a cell that has far more words than a line has room for ".repeat(5);
        let code = "`a code span of several words`";
        let mut table = MarkdownTable::new(&["a", "b", "c"]);
        table.row(&["`first cell`", &format!("{long}{code}"), &long]);
        table.row(&["x", "y", ""]);
        let text = table.into_text();
        assert!(
            text.lines().all(|line| line.chars().count() <= COLUMNS),
            "{text}"
        );
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert!(
            rows.first()
                .is_some_and(|row| row.starts_with("| `first cell` | of a cell"))
        );
        assert!(
            rows.iter()
                .rev()
                .skip(1)
                .rev()
                .skip(1)
                .all(|row| row.starts_with("| |"))
        );
        assert_eq!(rows.last(), Some(&"| x | y | |"));
        let joined: Vec<String> = (0..3)
            .map(|cell| {
                let cells = rows
                    .iter()
                    .take(rows.len() - 1)
                    .filter_map(|row| row.split('|').nth(cell + 1));
                cells
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(
            joined,
            ["`first cell`", &format!("{long}{code}"), long.trim()]
        );
    }

    #[test]
    fn a_paragraph_is_filled_and_a_block_takes_the_place_of_the_one_before() {
        let text = paragraph(&"word ".repeat(60), "  ");
        assert!(text.lines().all(|line| line.len() <= COLUMNS));
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(text.matches("word").count(), 60);
        let page = "a\n<!-- generated: b -->\nold\n<!-- end -->\nc\n";
        let new = with_block(page, "b", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- generated: b -->\n\nnew\n\n<!-- end -->\nc\n");
        assert_eq!(with_block(&new, "b", "new\n"), Some(new.clone()));
        assert_eq!(with_block(page, "x", "new"), None);
    }
}
