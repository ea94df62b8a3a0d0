//! What documents must say, and how long a source file may be.

use super::{Complaint, crates, files, has_extension, toml};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Lines that no source file may pass.
const LINES_MAX: usize = 900;
/// Columns that no line of a document may pass.
const COLUMNS_MAX: usize = 120;

/// Checks the documents and sources of the workspace at `root`.
///
/// # Errors
/// Where a file cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<Complaint>> {
    let mut complaints = lengths(root)?;
    complaints.extend(reasons(root)?);
    complaints.extend(map(root)?);
    complaints.extend(navigation(root)?);
    for document in documents(root)? {
        let text = fs::read_to_string(&document)?;
        let name = document.strip_prefix(root).unwrap_or(&document);
        complaints.extend(links(root, name, &text));
        complaints.extend(columns(name, &text));
    }
    complaints.extend(tests(root)?);
    complaints.extend(unproved(root)?);
    Ok(complaints)
}

fn lengths(root: &Path) -> io::Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    for path in files(&root.join("crates"), &|path| has_extension(path, "rs"))? {
        let lines = fs::read_to_string(&path)?.lines().count();
        if lines > LINES_MAX {
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            complaints.push(format!("{name} has {lines} lines, {LINES_MAX} at most"));
        }
    }
    Ok(complaints)
}

/// Every third-party crate in use has its reason.
fn reasons(root: &Path) -> io::Result<Vec<Complaint>> {
    let reasons = fs::read_to_string(root.join("docs/dependencies.md"))?;
    let manifests = crates(root)?;
    let ours: BTreeSet<&String> = manifests.iter().map(|(name, _)| name).collect();
    let used = manifests
        .iter()
        .flat_map(|(_, manifest)| toml::dependencies(manifest));
    let used: BTreeSet<String> = used.filter(|name| !ours.contains(name)).collect();
    let without = used
        .iter()
        .filter(|name| !reasons.contains(&format!("`{name}`")));
    Ok(without
        .map(|name| format!("docs/dependencies.md gives no reason for `{name}`"))
        .collect())
}

/// `ARCHITECTURE.md` names every crate.
fn map(root: &Path) -> io::Result<Vec<Complaint>> {
    let path = root.join("ARCHITECTURE.md");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path)?;
    let manifests = crates(root)?;
    let missing = manifests
        .iter()
        .filter(|(name, _)| !text.contains(&format!("crates/{name}")));
    Ok(missing
        .map(|(name, _)| format!("ARCHITECTURE.md does not name crates/{name}"))
        .collect())
}

/// `mkdocs.yml` leads to every document in `docs`.
fn navigation(root: &Path) -> io::Result<Vec<Complaint>> {
    let (folder, path) = (root.join("docs"), root.join("mkdocs.yml"));
    if !folder.exists() || !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path)?;
    let known: BTreeSet<&str> = text.split_whitespace().collect();
    let documents = files(&folder, &|path| has_extension(path, "md"))?;
    let names = documents.iter().filter_map(|path| {
        let name = path.strip_prefix(&folder).ok()?;
        name.to_str()
    });
    Ok(without_place(names, &known))
}

/// Of `names`, documents below `docs`, those that are none of the words of the navigation.
fn without_place<'a>(
    names: impl Iterator<Item = &'a str>,
    known: &BTreeSet<&str>,
) -> Vec<Complaint> {
    names
        .filter(|name| !known.contains(name))
        .map(|name| format!("docs/{name} is not in the navigation of mkdocs.yml"))
        .collect()
}

/// All documents: those at the top, in `docs` and in `crates`.
fn documents(root: &Path) -> io::Result<Vec<PathBuf>> {
    let is_document = |path: &Path| has_extension(path, "md");
    let mut documents: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if is_document(&path) {
            documents.push(path);
        }
    }
    for directory in ["docs", "crates"] {
        let directory = root.join(directory);
        if directory.exists() {
            documents.extend(files(&directory, &is_document)?);
        }
    }
    documents.sort();
    Ok(documents)
}

/// Links between the project's own files lead somewhere. `name`: the document below the root.
fn links(root: &Path, name: &Path, text: &str) -> Vec<Complaint> {
    let folder = root.join(name.parent().unwrap_or(Path::new("")));
    targets(text)
        .into_iter()
        .filter(|link| !folder.join(link).exists())
        .map(|link| format!("{} links to {link}, which is not there", name.display()))
        .collect()
}

/// No line of a document is longer than a screen is wide.
fn columns(name: &Path, text: &str) -> Vec<Complaint> {
    let lines = text.lines().zip(1..);
    lines
        .map(|(line, number)| (line.chars().count(), number))
        .filter(|(columns, _)| *columns > COLUMNS_MAX)
        .map(|(columns, number)| {
            let name = name.display();
            format!("{name}:{number} has {columns} columns, {COLUMNS_MAX} at most")
        })
        .collect()
}

/// Tests that a document in `docs` names are there.
fn tests(root: &Path) -> io::Result<Vec<Complaint>> {
    let folder = root.join("docs");
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut known = BTreeSet::new();
    for path in files(&root.join("crates"), &|path| has_extension(path, "rs"))? {
        known.extend(tests_of(&fs::read_to_string(&path)?));
    }
    let of_page = root.join("web/tests");
    if of_page.exists() {
        let is_test = |path: &Path| path.to_string_lossy().ends_with(".test.ts");
        for path in files(&of_page, &is_test)? {
            known.extend(tests_of_page(&fs::read_to_string(&path)?));
        }
    }
    let mut complaints = Vec::new();
    for path in files(&folder, &|path| has_extension(path, "md"))? {
        let named = tests_named(&fs::read_to_string(&path)?);
        let missing = named
            .iter()
            .filter(|name| !known.iter().any(|known| is_named(known, name)));
        let path = path.strip_prefix(root).unwrap_or(&path).display();
        complaints.extend(
            missing.map(|name| format!("{path} names the test `{name}`, which is not there")),
        );
    }
    Ok(complaints)
}

/// Answers to complaints that no test proves.
fn unproved(root: &Path) -> io::Result<Vec<Complaint>> {
    let path = "docs/operate/complaints.md";
    if !root.join(path).exists() {
        return Ok(Vec::new());
    }
    let numbers = without_test(&fs::read_to_string(root.join(path))?);
    let complaint = |number| format!("{path} names no test of its answer to complaint {number}");
    Ok(numbers.into_iter().map(complaint).collect())
}

/// The numbers of complaints that have an answer, which no row with a test names.
fn without_test(text: &str) -> Vec<String> {
    let (mut answered, mut proved) = (Vec::new(), BTreeSet::new());
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            [number, _, answer, _]
                if number.parse::<u8>().is_ok() && !answer.starts_with("Not yet") =>
            {
                answered.push(number.to_owned());
            }
            [numbers, test] if test.starts_with('`') => {
                proved.extend(numbers.split(',').map(|it| it.trim().to_owned()));
            }
            _ => {}
        }
    }
    answered.retain(|number| !proved.contains(number));
    answered
}

/// The names of the tests in a source file.
fn tests_of(source: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut is_next = false;
    for line in source.lines() {
        is_next |= line.trim() == "#[test]";
        let name = line.trim_start().strip_prefix("fn ");
        if let Some(name) = name.filter(|_| is_next) {
            is_next = false;
            out.extend(name.split('(').next().map(str::to_owned));
        }
    }
    out
}

/// What is before the name of a test of the page, so that it reads as one.
const OF_PAGE: &str = "page: ";

/// The names of the tests in a source file of the page: what stands in quotes behind `it(`.
fn tests_of_page(source: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in source.lines() {
        let Some(call) = line.trim_start().strip_prefix("it(") else {
            continue;
        };
        let mut rest = call.chars();
        let Some(quote) = rest.next().filter(|it| "'\"".contains(*it)) else {
            continue;
        };
        let (mut name, mut is_escaped) = (OF_PAGE.to_owned(), false);
        for it in rest {
            match it {
                '\\' if !is_escaped => is_escaped = true,
                it if it == quote && !is_escaped => break,
                it => {
                    is_escaped = false;
                    name.push(it);
                }
            }
        }
        out.push(name);
    }
    out
}

/// What a Markdown text puts in quotes that reads as the name of a test: a sentence, of which `…`
/// leaves words out, or what begins as the name of a test of the page.
fn tests_named(text: &str) -> BTreeSet<String> {
    let is_of_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "_…".contains(it);
    let mut out = BTreeSet::new();
    for line in text.lines() {
        let quoted = line.split('`').skip(1).step_by(2);
        let of_page = quoted.clone().filter(|it| it.starts_with(OF_PAGE));
        out.extend(of_page.map(str::to_owned));
        let names = quoted.filter(|it| it.chars().all(is_of_name) && it.matches('_').count() >= 4);
        // Metrics and functions of the kernel have as many words.
        let names = names.filter(|it| !it.starts_with("causeway_") && !it.starts_with('_'));
        out.extend(names.map(str::to_owned));
    }
    out
}

/// `name` stands for the test `known`.
fn is_named(known: &str, name: &str) -> bool {
    let mut parts = name.split('…');
    let Some(mut rest) = known.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(at) = rest.find(before) else {
                return false;
            };
            rest = rest.get(at + before.len()..).unwrap_or_default();
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// The files that a Markdown text links to.
fn targets(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let link = rest.split(')').next().unwrap_or_default();
            let file = link.split('#').next().unwrap_or_default();
            if !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:") {
                out.push(file.to_owned());
            }
        }
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn only_links_to_files_count() {
        let text = "a [b](c.md#d) [e](https://f/g) [h](#i) and [j](k/l.rs)\n```\n[m](n)\n```\n";
        assert_eq!(targets(text), ["c.md", "k/l.rs"]);
    }

    #[test]
    fn a_document_without_a_place_in_the_navigation_is_named() {
        let known = BTreeSet::from(["nav:", "-", "A:", "a/b.md", "index.md"]);
        let complaints = without_place(["a/b.md", "b.md", "index.md"].into_iter(), &known);
        assert_eq!(
            complaints,
            ["docs/b.md is not in the navigation of mkdocs.yml"]
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_named_by_its_place() {
        let text = format!("{}\n{}…\n", "a".repeat(120), "b".repeat(120));
        let complaints = columns(Path::new("docs/a.md"), &text);
        assert_eq!(complaints, ["docs/a.md:2 has 121 columns, 120 at most"]);
    }

    #[test]
    fn an_answer_without_a_test_is_found_and_one_that_is_still_to_come_needs_none() {
        let text = "| | Complaint | What | More |\n|---|---|---|---|\n| 1 | a | b | c |\n| | a | d | |\n\
                    | 2 | a | Not yet: b | c |\n| 3 | a | b | c |\n| 4 | a | b | c |\n\n\
                    | Complaint | Test |\n|---|---|\n| 1, 4 | `t` |\n";
        assert_eq!(without_test(text), ["3"]);
    }

    #[test]
    fn a_test_of_the_page_is_named_by_its_sentence() {
        let source = "  it('shows a host\\'s paths, and why', async () => {\n    it(`of ${x}`, f);\n\
                      it(\"is \\\"live\\\"\", { timeout: 1 }, f);\n  // it('is none');\n";
        let known = tests_of_page(source);
        assert_eq!(
            known,
            ["page: shows a host's paths, and why", "page: is \"live\""]
        );
        let text = "| 1 | `page: shows a host's paths, and why` |\n| 2 | `page: shows … why` |\n";
        let named = tests_named(text);
        assert_eq!(named.len(), 2);
        for name in &named {
            assert!(is_named(&known[0], name), "{name}");
            assert!(!is_named(&known[1], name), "{name}");
        }
    }

    #[test]
    fn a_test_that_a_document_names_is_found_by_what_it_says_of_the_name() {
        let text =
            "| `one_two_three_four_five` | `a_b_c_…_d`, `bytes_in_flight_max`, `f(a_b_c_d_e)` |";
        let named: Vec<_> = tests_named(text).into_iter().collect();
        assert_eq!(named, ["a_b_c_…_d", "one_two_three_four_five"]);
        let source = "#[test]\n#[expect(x)]\nfn a_b_c_and_d() {}\n    fn helper() {}\n";
        assert_eq!(tests_of(source), ["a_b_c_and_d"]);
        let known = "a_b_c_and_d";
        for name in ["a_b_c_and_d", "a_b_…", "a_…_and_d", "a_…_c_…", "a_…b…_d"] {
            assert!(is_named(known, name), "{name}");
        }
        for name in ["a_b_c_and", "b_…", "a_…_e", "a_…_d_…_d", "a_b_c_and_d_too"] {
            assert!(!is_named(known, name), "{name}");
        }
    }
}
