//! Which test proves which clause of a standard: `docs/conformance/clauses.md`, made from the
//! sources.
//!
//! A comment `// spec: SBC-3 5.28 "UNMAP command"` right above a test says what the test proves.
//! Anywhere else it says which clause that code follows, and then some test must prove it.

use super::{Complaint, files, has_extension};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// The page, below the root.
const PAGE: &str = "docs/conformance/clauses.md";

const STANDARDS: [&str; 7] = [
    "RFC 7143", "SAM-5", "SPC-2", "SPC-3", "SPC-4", "SBC-3", "SBC-4",
];

/// A line of a page may be so long.
const LINE_MAX: usize = 120;

/// A clause: which standard, and its number there by parts (a letter for an appendix).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Clause {
    standard: usize,
    parts: Vec<u32>,
    number: String,
}

/// What is known of a clause.
#[derive(Default, Debug)]
struct Known {
    title: String,
    tests: BTreeSet<String>,
    code: BTreeSet<String>,
}

type Clauses = BTreeMap<Clause, Known>;

/// Complains of clauses that no test proves, and of a page that the sources do not make.
///
/// # Errors
/// Where a file cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<Complaint>> {
    let clauses = collect(root)?;
    let unproven = clauses.iter().filter(|(_, known)| known.tests.is_empty());
    let mut complaints: Vec<Complaint> = unproven
        .map(|(clause, known)| {
            let code: Vec<&str> = known.code.iter().map(String::as_str).collect();
            let standard = STANDARDS[clause.standard];
            let number = &clause.number;
            let code = code.join(", ");
            format!("{standard} {number}, which {code} follows, is proved by no test: put `// spec:` above one")
        })
        .collect();
    if fs::read_to_string(root.join(PAGE)).unwrap_or_default() != page(&clauses) {
        complaints.push(format!(
            "{PAGE} is not what the sources say: run tidy with the word `write`"
        ));
    }
    Ok(complaints)
}

/// Writes the page.
///
/// # Errors
/// Where that fails.
pub fn write(root: &Path) -> io::Result<()> {
    fs::write(root.join(PAGE), page(&collect(root)?))
}

fn collect(root: &Path) -> io::Result<Clauses> {
    let mut clauses = Clauses::new();
    for path in files(&root.join("crates"), &|path| has_extension(path, "rs"))? {
        let name = path.strip_prefix(root.join("crates")).unwrap_or(&path);
        let name = name.to_string_lossy();
        add(&mut clauses, &name, &fs::read_to_string(&path)?);
    }
    Ok(clauses)
}

/// Adds what a source file says. `name`: its path below `crates`.
fn add(clauses: &mut Clauses, name: &str, source: &str) {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let begins = comment(line).is_some_and(|text| text.starts_with("spec: "));
        if !begins {
            at += 1;
            continue;
        }
        let block: Vec<&str> = lines
            .iter()
            .skip(at)
            .map_while(|line| comment(line))
            .collect();
        at += block.len();
        let test = test_below(lines.get(at..).unwrap_or_default());
        for (clause, title) in citations(&block.join(" ")) {
            let known = clauses.entry(clause).or_default();
            if known.title.is_empty() {
                known.title = title;
            }
            if let Some(test) = test {
                let owner = name.split('/').next().unwrap_or_default();
                known.tests.insert(format!("{owner}: `{test}`"));
            } else {
                known.code.insert(format!("crates/{name}"));
            }
        }
    }
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim_start())
}

/// The test whose attributes these lines begin with.
fn test_below<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut is_test = false;
    for line in lines {
        if let Some(rest) = line.strip_prefix("fn ") {
            return rest.split('(').next().filter(|_| is_test);
        }
        is_test |= *line == "#[test]";
        if !line.starts_with('#') && comment(line).is_none() {
            return None;
        }
    }
    None
}

/// Clauses with their titles in a text such as `SPC-4 5.13.7 "Registering", 5.13.5 "Preserving"`.
fn citations(text: &str) -> Vec<(Clause, String)> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        let next = STANDARDS
            .iter()
            .enumerate()
            .filter_map(|(standard, name)| Some((rest.find(name)?, standard, name.len())));
        let Some((at, standard, len)) = next.min() else {
            return out;
        };
        rest = rest.get(at + len..).unwrap_or_default();
        while let Some((clause, title, after)) = one(standard, rest) {
            out.push((clause, title));
            rest = after;
            match after.strip_prefix(", ") {
                Some(more) if one(standard, more).is_some() => rest = more,
                Some(_) | None => break,
            }
        }
    }
}

/// The clause that a text begins with, its title if it has one, and what follows.
fn one(standard: usize, text: &str) -> Option<(Clause, String, &str)> {
    let text = text.trim_start();
    let appendix = text.strip_prefix("appendix ");
    let digits = |it: char| it.is_ascii_digit() || it == '.';
    let (number, after) = if let Some(letter) = appendix {
        letter.split_at_checked(1)?
    } else {
        let end = text.find(|it| !digits(it)).unwrap_or(text.len());
        let number = text.get(..end)?.trim_end_matches('.');
        (number, text.get(number.len()..)?)
    };
    let parts: Vec<u32> = if appendix.is_some() {
        vec![1000 + u32::from(number.bytes().next()?)]
    } else {
        number
            .split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?
    };
    let number = if appendix.is_some() {
        format!("appendix {number}")
    } else {
        number.to_owned()
    };
    let clause = Clause {
        standard,
        parts,
        number,
    };
    let quoted = after.strip_prefix(" \"").and_then(|it| it.split_once('"'));
    Some(match quoted {
        Some((title, after)) => (clause, title.to_owned(), after),
        None => (clause, String::new(), after),
    })
}

fn page(clauses: &Clauses) -> String {
    let mut out = String::from(
        "# Clauses and the tests that prove them\n\n\
         Made from the sources by `cargo run -q -p proof --no-default-features --bin tidy write`; `make check` keeps both \
         equal.\nA comment `// spec:` above a test names the clause that it proves. A clause that the code names, and no test, \
         fails\n`make check`. Each test stands with its crate: `cargo test -p CRATE NAME` runs it.\n\n\
         Foreign judges are apart: [iscsi-test-cu](iscsi-test-cu.md) has 230 tests of its own.\n",
    );
    for (standard, name) in STANDARDS.iter().enumerate() {
        let mut of = clauses
            .iter()
            .filter(|(clause, _)| clause.standard == standard)
            .peekable();
        if of.peek().is_none() {
            continue;
        }
        // Writing to a String cannot fail, here and below.
        let _ = write!(
            out,
            "\n## {name}\n\n| Clause | Title | Tests |\n|---|---|---|\n"
        );
        for (clause, known) in of {
            let mut left = format!("| {} | {} |", clause.number, known.title);
            for test in &known.tests {
                let row = format!("{left} {test} |");
                if row.chars().count() > LINE_MAX {
                    let _ = writeln!(out, "{left} |\n| | | {test} |");
                } else {
                    let _ = writeln!(out, "{row}");
                }
                "| | |".clone_into(&mut left);
            }
        }
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn citations_are_read_with_their_titles_and_across_standards() {
        let text = "SPC-4 5.13.7 \"Registering\", 5.13.5 \"Preserving\": so. RFC 7143 appendix C: SBC-3 5.2.";
        let found: Vec<String> = citations(text)
            .into_iter()
            .map(|(clause, title)| {
                format!("{} {} {title}", STANDARDS[clause.standard], clause.number)
            })
            .collect();
        assert_eq!(
            found,
            [
                "SPC-4 5.13.7 Registering",
                "SPC-4 5.13.5 Preserving",
                "RFC 7143 appendix C ",
                "SBC-3 5.2 "
            ]
        );
    }

    #[test]
    fn a_comment_above_a_test_is_its_proof_and_any_other_one_asks_for_one() {
        let mut clauses = Clauses::new();
        let code = "/// spec: SBC-3 5.28 \"UNMAP\n/// command\".\nfn unmap() {}\n// spec: SBC-3 5.4\nfn b() {}\n";
        add(&mut clauses, "scsi/src/a.rs", code);
        let tests =
            "// spec: SBC-3 5.28 \"UNMAP command\".\n#[test]\n#[expect(x)]\nfn it_unmaps() {}\n";
        add(&mut clauses, "scsi/src/test.rs", tests);
        let known: Vec<&Known> = clauses.values().collect();
        assert_eq!(known.len(), 2);
        assert!(known[0].tests.is_empty() && known[0].code.contains("crates/scsi/src/a.rs"));
        assert_eq!(known[1].title, "UNMAP command");
        assert!(known[1].tests.contains("scsi: `it_unmaps`"));
        let page = page(&clauses);
        assert!(page.contains("| 5.28 | UNMAP command | scsi: `it_unmaps` |"));
        assert!(page.lines().all(|line| line.chars().count() <= LINE_MAX));
    }
}
