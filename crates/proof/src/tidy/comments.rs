//! Comments that fit beside other text on a screen: rustfmt leaves them as long as they are.

use super::Finding;
use super::tree::Tree;

/// Columns that no line of a comment may pass; the same as the width of the code.
const COLUMNS_MAX: usize = 100;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (at, columns) in long_lines(&file.text) {
            findings.push(Finding {
                subject: "lines".to_owned(),
                count: 1,
                complaint: format!(
                    "{}:{at}: the comment has {columns} columns, {COLUMNS_MAX} at most: break the line",
                    file.path
                ),
            });
        }
    }
    findings
}

/// Number and columns of each line that is a comment and too long. One word is as long as it is.
fn long_lines(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let comments = text.lines().enumerate().filter(|(_, line)| {
        let comment = line.trim_start().strip_prefix("//");
        let words = comment.map(|it| it.trim_start_matches(['/', '!']).split_whitespace());
        words.is_some_and(|words| words.count() > 1)
    });
    comments
        .map(|(at, line)| (at + 1, line.chars().count()))
        .filter(|(_, columns)| *columns > COLUMNS_MAX)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_long_comment_is_found_whatever_its_marks() {
        for marks in ["//", "    ///", "//!"] {
            let fits = format!("{marks} a {}", "é".repeat(COLUMNS_MAX - marks.len() - 3));
            let source = format!("{fits}\n{fits}é\n");
            let tree = Tree::of(&[("crates/x/src/lib.rs", &source)]);
            let findings = check(&tree);
            assert_eq!(findings.len(), 1, "{marks}");
            let place = "crates/x/src/lib.rs:2: the comment has 101 columns";
            assert!(findings[0].complaint.starts_with(place), "{findings:?}");
        }
    }

    #[test]
    fn code_documents_and_one_long_word_are_no_comment_to_break() {
        let long = "x".repeat(2 * COLUMNS_MAX);
        let source = format!("let x = \"{long} {long}\"; // why\n// https://{long}\n");
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", &source),
            ("docs/x.md", &format!("// {long} {long}\n")),
        ]);
        assert_eq!(check(&tree), []);
    }
}
