//! Where the system is read, and how a fact is.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest fact.
const FACT_MAX: u64 = 4096;

/// Where the system shows itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    /// sysfs: `/sys`.
    pub sys: PathBuf,
    /// procfs: `/proc`.
    pub proc: PathBuf,
    /// The nodes of devices: `/dev`.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
            dev: "/dev".into(),
        }
    }
}

/// The bytes of a fact; none where there is none.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(file) = fs::File::open(path) {
        // What was read before an error is worth nothing.
        if file.take(FACT_MAX).read_to_end(&mut out).is_err() {
            out.clear();
        }
    }
    out
}

/// A fact as one line of text; empty where there is none.
pub(crate) fn text(path: &Path) -> String {
    let text = String::from_utf8_lossy(&bytes(path)).into_owned();
    let line = text.replace(|c: char| c.is_control(), " ");
    line.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// The names in a directory, in order; none where there is none.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
