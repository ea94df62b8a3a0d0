//! What documents must say, and how long a source file may be.

use super::{Complaint, crates, files, has_extension, toml};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Lines that no source file may pass.
const LINES_MAX: usize = 900;

/// Checks the documents and sources of the workspace at `root`.
///
/// # Errors
/// Where a file cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<Complaint>> {
    let mut complaints = lengths(root)?;
    complaints.extend(reasons(root)?);
    complaints.extend(map(root)?);
    complaints.extend(links(root)?);
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

/// Links between the project's own files lead somewhere.
fn links(root: &Path) -> io::Result<Vec<Complaint>> {
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
    let mut complaints = Vec::new();
    for document in documents {
        let folder = document.parent().unwrap_or(root);
        for link in targets(&fs::read_to_string(&document)?) {
            if !folder.join(&link).exists() {
                let name = document.strip_prefix(root).unwrap_or(&document).display();
                complaints.push(format!("{name} links to {link}, which is not there"));
            }
        }
    }
    Ok(complaints)
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
}
