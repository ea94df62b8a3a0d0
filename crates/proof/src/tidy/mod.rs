//! The laws of the source tree that the compiler and clippy do not know. Std only, so that it is
//! quick.
//!
//! 1. Each crate sees only what `floors.toml` allows, and only downwards ([`floors`]).
//! 2. Every package in the build has a licence that the project accepts ([`licences`]).
//! 3. Every third-party crate in use has its reason in `docs/dependencies.md`, links in documents
//!    lead somewhere, tests that a document names are there, no line of a document is over 120
//!    columns, `ARCHITECTURE.md` names every crate, no source file has over 900 lines
//!    ([`documents`]).
//! 4. Every clause of a standard that the code names is proved by a test, and
//!    `docs/conformance/clauses.md` says by which ([`clauses`]).

pub mod clauses;
pub mod documents;
pub mod floors;
mod json;
pub mod licences;
mod toml;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Something that breaks a law, in one line for whoever must mend it.
pub type Complaint = String;

/// Checks everything in the workspace at `root`.
///
/// # Errors
/// Where a file that must be there cannot be read, or cargo does not run.
pub fn check(root: &Path) -> io::Result<Vec<Complaint>> {
    let mut complaints = floors::check(root)?;
    complaints.extend(documents::check(root)?);
    complaints.extend(clauses::check(root)?);
    complaints.extend(licences::check(root)?);
    Ok(complaints)
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
