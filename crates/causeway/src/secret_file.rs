//! Files that hold secrets: others should not be able to read them.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reading by others than owner and group: inode(7) S_IROTH.
const OTHERS_READ: u32 = 0o004;

/// What is wrong with the permissions of a file with a secret.
fn readable(file: &Path) -> Option<String> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    (mode & OTHERS_READ != 0).then(|| {
        let (file, mode) = (file.display(), mode & 0o7777);
        format!(
            "{file} holds a secret and everybody may read it (mode {mode:04o}): chmod 600 {file}"
        )
    })
}

/// Reads a file with a secret, and warns where others may read it as well.
pub(crate) fn read(file: &Path) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(file)?;
    if let Some(warning) = readable(file) {
        eprintln!("warning: {warning}");
    }
    Ok(bytes)
}

/// The daemon's own files with secrets that others may read. A directory that others may not enter protects all in it.
pub(crate) fn readable_in(state_dir: &Path) -> Vec<String> {
    const OTHERS_ENTER: u32 = 0o001;
    let entered =
        std::fs::metadata(state_dir).map(|it| it.permissions().mode() & OTHERS_ENTER != 0);
    if !entered.unwrap_or(false) {
        return Vec::new();
    }
    let files = std::fs::read_dir(state_dir).into_iter().flatten().flatten();
    let mut out: Vec<String> = files
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("secrets-") || name == control::api::TOKEN_FILE
        })
        .filter_map(|entry| readable(&entry.path()))
        .collect();
    out.sort();
    out
}
