//! The laws of the source tree that the compiler and clippy do not know. Std only, so that it is
//! quick.
//!
//! 1. Each crate sees only what `floors.toml` allows, and only downwards ([`floors`]).
//! 2. Every package in the build has a licence that the project accepts ([`licences`]).
//! 3. Every third-party crate in use has its reason in `docs/dependencies.md`, links in documents
//!    lead somewhere, tests that a document names are there, answers to complaints have one, no
//!    line of a document is over 120
//!    columns, `ARCHITECTURE.md` names every crate, no source file has over 900 lines
//!    ([`documents`]).
//! 4. Every clause of a standard that the code names is proved by a test, and
//!    `docs/conformance/clauses.md` says by which ([`clauses`]).
//! 5. No files of a crate import each other in a circle ([`circles`]).
//! 6. No line of a comment has over 100 columns.
//! 7. Metrics and `docs/metrics.md` name the same families.
//! 8. No text has a word that the glossary has retired.
//! 9. No public item has a comment that only repeats its name, or has no word but fillers.
//! 10. Titles of commits have 72 columns at most, and a commit of over 1,000 lines moves or renames
//!     what was there, and says so.
//! 11. No two public types of a crate share a name, and none has one of the prelude's.
//! 12. No crate but this one has over 12,000 product lines.
//!
//! What the tree still has of what the later ones refuse stands in a list that only shrinks
//! ([`allow`]).

pub mod allow;
pub mod circles;
pub mod clauses;
mod comments;
mod commits;
pub mod documents;
pub mod floors;
mod imports;
mod json;
mod lexer;
pub mod licences;
mod metrics;
mod modules;
mod product;
mod repeats;
mod sizes;
mod toml;
pub mod tree;
mod types;
mod words;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tree::Tree;

/// Something that breaks a law, in one line for whoever must mend it.
pub type Complaint = String;

/// What a check found, of which `tidy.allow` may still allow some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What `tidy.allow` names it by.
    pub subject: String,
    /// How much of it there is.
    pub count: usize,
    /// For whoever must mend it.
    pub complaint: Complaint,
}

type Check = fn(&Tree) -> Vec<Finding>;

/// The checks that `tidy.allow` knows.
const CHECKS: [(&str, Check); 7] = [
    ("circles", circles::check),
    ("comments", comments::check),
    ("metrics", metrics::check),
    ("repeats", repeats::check),
    ("sizes", sizes::check),
    ("types", types::check),
    ("words", words::check),
];

/// Checks everything in the workspace at `root`.
///
/// # Errors
/// Where a file that must be there cannot be read, or cargo does not run.
pub fn check(root: &Path) -> io::Result<Vec<Complaint>> {
    let mut complaints = floors::check(root)?;
    complaints.extend(documents::check(root)?);
    complaints.extend(clauses::check(root)?);
    complaints.extend(licences::check(root)?);
    let tree = Tree::read(root)?;
    let (allowed, senseless) = allow::parse(tree.text(allow::PATH).unwrap_or_default());
    complaints.extend(senseless);
    let mut found = found(&tree);
    found.push(("commits", commits::check(root)));
    complaints.extend(allow::judge(&allowed, &found));
    Ok(complaints)
}

/// All that one check finds, whether it is allowed or not; `None` where there is no such check.
pub fn findings(tree: &Tree, name: &str) -> Option<Vec<Finding>> {
    let check = CHECKS.iter().find(|(it, _)| *it == name);
    check.map(|(_, check)| check(tree))
}

/// `tidy.allow` with no more in it than the tree needs.
pub fn lowered(tree: &Tree) -> String {
    allow::lowered(tree.text(allow::PATH).unwrap_or_default(), &found(tree))
}

fn found(tree: &Tree) -> Vec<(&'static str, Vec<Finding>)> {
    let found = CHECKS.iter().map(|(name, check)| (*name, check(tree)));
    found.collect()
}

/// The crates of the workspace: name of the directory, and its manifest.
fn crates(root: &Path) -> io::Result<Vec<(String, toml::Table)>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let directory = entry?.path();
        let manifest = directory.join("Cargo.toml");
        if let (true, Some(name)) = (manifest.exists(), directory.file_name()) {
            let table = toml::parse(&fs::read_to_string(&manifest)?);
            out.push((name.to_string_lossy().into_owned(), table));
        }
    }
    out.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(out)
}

/// All files below `directory` that `wanted` selects, in order of path.
fn files(directory: &Path, wanted: &dyn Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            let hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if path.is_dir() && !hidden {
                left.push(path);
            } else if wanted(&path) {
                out.push(path);
            }
        }
    }
    out.sort();
    Ok(out)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}
