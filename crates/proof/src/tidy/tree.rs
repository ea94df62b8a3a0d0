//! The files of the tree that the checks read, each read once.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file: its path from the root, and its text.
#[derive(Debug)]
pub struct File {
    /// From the root, with `/` between folders.
    pub path: String,
    /// The whole of it.
    pub text: String,
}

/// All text that people write, in order of path.
#[derive(Debug)]
pub struct Tree {
    /// In order of path.
    pub(super) files: Vec<File>,
}

/// Folders of the root that hold what people write.
const FOLDERS: [&str; 6] = [".ci", "crates", "dist", "docs", "fuzz", "scripts"];

impl Tree {
    /// Reads the tree at `root`.
    ///
    /// # Errors
    /// Where a file cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(root)? {
            paths.extend(Some(entry?.path()).filter(|it| it.is_file()));
        }
        for folder in FOLDERS.map(|it| root.join(it)) {
            if folder.exists() {
                paths.extend(super::files(&folder, &|path| path.is_file())?);
            }
        }
        let mut files = Vec::new();
        for path in paths {
            // What is no text was not written by hand.
            if let Ok(text) = String::from_utf8(fs::read(&path)?) {
                let path = path.strip_prefix(root).unwrap_or(&path);
                let path = path.to_string_lossy().into_owned();
                files.push(File { path, text });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A tree of these files.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        });
        let mut files: Vec<File> = files.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// The text of the file at a path.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        let at = self.files.binary_search_by(|it| it.path.as_str().cmp(path));
        at.ok().map(|at| self.files[at].text.as_str())
    }

    /// The Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|it| it.path.ends_with(".rs"))
    }

    /// The folders of the crates.
    pub(super) fn crates(&self) -> BTreeSet<&str> {
        let paths = self
            .files
            .iter()
            .filter_map(|it| it.path.strip_prefix("crates/"));
        paths.filter_map(|it| it.split('/').next()).collect()
    }
}
