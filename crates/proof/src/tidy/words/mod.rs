//! Words that the glossary has retired: `ARCHITECTURE.md` lists them with the words to use.

mod pieces;
mod table;

use super::Finding;
use super::tree::{File, Tree};
use pieces::Piece;
use std::collections::BTreeMap;
use table::{Form, PAGE, SECTION, Table, Term};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let (table, complaints) = table::read(tree);
    let unreadable = complaints.into_iter().map(|complaint| Finding {
        subject: "table".to_owned(),
        count: 1,
        complaint,
    });
    let mut findings: Vec<Finding> = unreadable.collect();
    findings.extend(table.exceptions.iter().filter_map(|it| missing(tree, it)));
    let index = Index::of(&table);
    for file in tree.files.iter().filter(|it| is_written(&it.path)) {
        for (term, line) in index.of_path(&file.path) {
            findings.push(finding(
                term,
                &format!("{}:{line}: the file's name", file.path),
            ));
        }
        let kept = kept_lines(file, &table);
        let pieces = if file.path.ends_with(".rs") {
            pieces::of_rust(&file.text)
        } else {
            pieces::of_text(&file.text)
        };
        for (term, line) in index.found(&file.path, &pieces) {
            if !kept.get(line).is_some_and(|it| *it) {
                findings.push(finding(term, &format!("{}:{line}: the text", file.path)));
            }
        }
    }
    findings
}

fn finding(term: &Term, place: &str) -> Finding {
    let name = term.name();
    let complaint = format!(
        "{place} has `{name}`, which is retired: say {} ({PAGE}, {SECTION})",
        term.instead
    );
    Finding {
        subject: name,
        count: 1,
        complaint,
    }
}

/// A complaint of a section that keeps old words, and is not there.
fn missing(tree: &Tree, (page, section): &(String, String)) -> Option<Finding> {
    let mut lines = tree.text(page).unwrap_or_default().lines();
    let is_there = lines.any(|line| table::heading(line).is_some_and(|(_, it)| it == section));
    (!is_there).then(|| Finding {
        subject: "table".to_owned(),
        count: 1,
        complaint: format!("{PAGE}: {page} has no section `{section}`: take the row out"),
    })
}

/// What people of the project write: no records of other programs, and nothing that cargo writes.
fn is_written(path: &str) -> bool {
    let is_record = path.contains("/traces/") || path.ends_with(".lock");
    let is_own = path == super::allow::PATH || path == "LICENSE";
    !is_record && !is_own
}

/// For each line, from number 0 on, whether it is in a section that keeps old words.
fn kept_lines(file: &File, table: &Table) -> Vec<bool> {
    let sections: Vec<&str> = table
        .exceptions
        .iter()
        .filter(|(page, _)| *page == file.path)
        .map(|(_, section)| section.as_str())
        .collect();
    if sections.is_empty() {
        return Vec::new();
    }
    let mut kept = vec![false];
    let mut inside: Option<usize> = None;
    for line in file.text.lines() {
        if let Some((level, text)) = table::heading(line) {
            let is_over = inside.is_some_and(|it| level <= it);
            inside = inside.filter(|_| !is_over);
            if sections.contains(&text) {
                inside = Some(level);
            }
        }
        kept.push(inside.is_some());
    }
    kept
}

/// All phrases by their first word.
struct Index<'a> {
    phrases: BTreeMap<&'a str, Vec<(&'a [String], &'a Term)>>,
}

impl<'a> Index<'a> {
    fn of(table: &'a Table) -> Self {
        let mut phrases: BTreeMap<&str, Vec<(&[String], &Term)>> = BTreeMap::new();
        for term in &table.terms {
            for phrase in &term.phrases {
                let first = phrase.first().map_or("", String::as_str);
                phrases.entry(first).or_default().push((phrase, term));
            }
        }
        Self { phrases }
    }

    fn of_path(&self, path: &str) -> Vec<(&'a Term, usize)> {
        let found = self.found(path, &pieces::of_path(path));
        // What stands in the name of a folder is found in each file of it, and reported once.
        found.into_iter().take(1).collect()
    }

    /// The terms among `pieces` of the file at `path`, each with its line.
    fn found(&self, path: &str, pieces: &[Piece]) -> Vec<(&'a Term, usize)> {
        let mut out = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let phrases = self.phrases.get(piece.text.as_str());
            for (phrase, term) in phrases.into_iter().flatten() {
                if is_at(term, (pieces, at), phrase, path) && is_in_place(term, path) {
                    out.push((*term, piece.line));
                }
            }
        }
        out
    }
}

/// Whether `phrase` of `term` stands at a place among the pieces, in the form that is refused.
fn is_at(term: &Term, (pieces, at): (&[Piece], usize), phrase: &[String], path: &str) -> bool {
    if !has(pieces, at, phrase) || term.free.iter().any(|it| has(pieces, at, it)) {
        return false;
    }
    let end = at + phrase.len();
    let first = pieces[at].name;
    let is_name = first.is_some() && pieces[at..end].iter().all(|it| it.name == first);
    let is_of_it = |place: Option<usize>| {
        let piece = place.and_then(|it| pieces.get(it));
        piece.is_some_and(|it| it.name == first)
    };
    match term.form {
        Form::Names => is_name,
        Form::WholeNames => {
            // A quotation in a document may be a sentence.
            let is_whole = !is_of_it(at.checked_sub(1)) && !is_of_it(Some(end));
            is_name && is_whole && path.ends_with(".rs")
        }
        Form::Messages => pieces[at].is_message,
        Form::Sources => path.ends_with(".rs"),
        Form::Everywhere => true,
    }
}

/// Whether these words follow one another from there on.
fn has(pieces: &[Piece], at: usize, phrase: &[String]) -> bool {
    let here = pieces.get(at..at + phrase.len()).unwrap_or_default();
    here.len() == phrase.len()
        && here.iter().zip(phrase).all(|(it, word)| it.text == *word)
        && here.iter().skip(1).all(|it| it.follows)
}

fn is_in_place(term: &Term, path: &str) -> bool {
    let mut parts = path.split('/').map(|it| it.split('.').next());
    term.places.is_empty()
        || parts.any(|it| term.places.iter().any(|place| Some(place.as_str()) == it))
}

#[cfg(test)]
mod test {
    use super::*;

    const PAGE_TEXT: &str = "## Glossary\n### Retired words\n| Retired | Say | Refused |\n|---|---|---|\n\
        | haul up, hauls up | lift | everywhere |\n| peg | pin | names |\n| old tale | log | sources |\n\
        | jam | block | names in pool |\n| lane | core | whole names |\n\
        | said, except said so | named | messages |\n\n| May stand in | Section |\n|---|---|\n| docs/x.md | Renamed |\n";

    /// The subjects and lines that are found in a file.
    fn found(path: &str, text: &str) -> Vec<String> {
        let renames = ("docs/x.md", "## Renamed\n");
        let others = [(PAGE, PAGE_TEXT), renames].into_iter();
        let files = others.filter(|it| it.0 != path).chain([(path, text)]);
        let tree = Tree::of(&files.collect::<Vec<_>>());
        let findings = check(&tree).into_iter();
        findings
            .map(|it| {
                let line = it.complaint.split(':').nth(1).unwrap_or_default();
                format!("{} {line}", it.subject)
            })
            .collect()
    }

    #[test]
    fn a_phrase_is_found_in_every_form() {
        let source = "/// It hauls\n/// up.\nfn haul_up() {}\nstruct HaulUp;\nconst X: &str = \"HAUL-UP it\";\n";
        let wanted = ["haul up 1", "haul up 3", "haul up 4", "haul up 5"];
        assert_eq!(found("crates/x/src/lib.rs", source), wanted);
        assert_eq!(
            found("docs/y.md", "We\nhaul up `haul_up`"),
            ["haul up 2", "haul up 2"]
        );
        assert_eq!(found("scripts/y", "# Hauls up"), ["haul up 1"]);
        let other = "/// It hauls. Up! haul(up) hauling up overhaul up";
        assert_eq!(found("crates/x/src/lib.rs", other), Vec::<String>::new());
    }

    #[test]
    fn a_word_of_names_is_free_in_sentences() {
        let source = "/// A peg.\nfn f(peg: u8, is_peg: Peg) {}\nconst X: &str = \"peg\";\n";
        let wanted = ["peg 2", "peg 2", "peg 2", "peg 3"];
        assert_eq!(found("crates/x/src/lib.rs", source), wanted);
        assert_eq!(
            found("docs/y.md", "A peg, `a_peg_total` of pegs."),
            ["peg 1"]
        );
        assert_eq!(found("crates/x/src/peg.rs", ""), ["peg 1"]);
        assert_eq!(found("docs/a-peg-of.md", ""), ["peg 1"]);
        let files =
            "const A: [&str; 2] = [\"a/peg.json\", \"a.peg\"];\nconst B: &str = \"one peg.\";";
        assert_eq!(found("crates/x/src/lib.rs", files), ["peg 1", "peg 1"]);
    }

    #[test]
    fn a_whole_name_is_free_as_a_part_of_a_longer_one() {
        let source = "fn lane(under_lane: u8) -> Lane { lanes_of(my.lane) }\n// a lane, `lane` and `lane_of`\n";
        let wanted = ["lane 1", "lane 1", "lane 1", "lane 2"];
        assert_eq!(found("crates/x/src/lib.rs", source), wanted);
    }

    #[test]
    fn a_word_of_messages_is_refused_in_strings_alone_and_a_longer_phrase_is_free() {
        let source = "// it was said\nfn said() {}\nconst A: &str = \"Who said it?\";\n\
            const B: &str = \"who said so, and said\nso.\";\nconst C: &str = \"said. So\";\n";
        assert_eq!(found("crates/x/src/lib.rs", source), ["said 3", "said 6"]);
        assert_eq!(found("docs/y.md", "It was said."), Vec::<String>::new());
    }

    /// What was said before "acknowledged", "reported" and "notified" is not said again.
    #[test]
    fn the_projects_own_table_refuses_in_comments_strings_names_and_documents() {
        let page = include_str!("../../../../../ARCHITECTURE.md");
        let refused = |path: &str, text: &str| {
            let renames = ("docs/interface.md", "## Renames before the first release\n");
            let found = check(&Tree::of(&[(PAGE, page), renames, (path, text)]));
            let of_it = found.iter().filter(|it| it.complaint.starts_with(path));
            of_it.count()
        };
        for word in ["old", "ell", "ells", "elling"].map(|end| format!("t{end}")) {
            let comment = format!("/// A host is {word}.\n");
            let string = format!("const A: &str = \"a host is {word}\";\n");
            let name = format!("fn {word}_all() {{}}\n");
            for text in [&comment, &string, &name] {
                assert_eq!(refused("crates/x/src/lib.rs", text), 1, "{text}");
            }
            let apart = format!("// two are {word} apart\n");
            assert_eq!(refused("crates/x/src/lib.rs", &apart), 1, "{word}");
            assert_eq!(refused("docs/y.md", &format!("A host is {word}.\n")), 1);
            assert_eq!(refused("scripts/y", &format!("# a host is {word}\n")), 1);
            let path = format!("crates/x/src/{word}.rs");
            assert_eq!(refused(&path, ""), 1, "{path}");
        }
        let other = "// the storyteller foretells what a retold story intellect\n";
        assert_eq!(refused("crates/x/src/lib.rs", other), 0);
    }

    #[test]
    fn a_section_that_keeps_old_words_has_to_be_there() {
        let tree = Tree::of(&[(PAGE, PAGE_TEXT), ("docs/x.md", "## Other\n")]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .complaint
                .contains("docs/x.md has no section `Renamed`")
        );
    }

    #[test]
    fn a_word_of_sources_and_one_of_some_places_are_free_elsewhere() {
        assert_eq!(
            found("crates/x/src/lib.rs", "// the old tale"),
            ["old tale 1"]
        );
        assert_eq!(found("docs/y.md", "the old tale"), Vec::<String>::new());
        assert_eq!(found("crates/pool/src/lib.rs", "fn jam() {}"), ["jam 1"]);
        assert_eq!(
            found("crates/y/src/lib.rs", "fn jam() {}"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_section_that_lists_renames_keeps_the_old_words() {
        let text = "# Top\n## Renamed\nhaul up\n### More\nhaul up\n## Next\nhaul up\n";
        assert_eq!(found("docs/x.md", text), ["haul up 7"]);
    }
}
