//! Where a bundle is put by whoever asked for it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a `Content-Disposition` says that the file is called; nothing of that leads elsewhere.
#[must_use]
pub fn file_named(disposition: &str) -> PathBuf {
    let name = disposition.split('"').nth(1).unwrap_or_default();
    let name = Path::new(name).file_name();
    name.map_or_else(|| PathBuf::from("causeway-support.tar.gz"), PathBuf::from)
}

/// Writes a file that nobody else may read. Nothing is written over.
///
/// # Errors
/// It is there, or cannot be written.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    options.open(path)?.write_all(bytes)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        let of = |name: &str| file_named(&format!("attachment; filename=\"{name}\""));
        assert_eq!(of("a.tar.gz"), Path::new("a.tar.gz"));
        assert_eq!(of("/etc/../a"), Path::new("a"));
        for odd in ["", "..", "/"] {
            assert_eq!(of(odd), Path::new("causeway-support.tar.gz"));
        }
    }
}
