//! Files that hold secrets: others should not be able to read them.

pub(crate) use host::secret_file::{read, readable};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The secret in a file.
pub(crate) fn secret(file: &Path) -> Result<Secret, Problem> {
    let bytes = read(file);
    bytes.map(Secret::from_file).map_err(|error| {
        let detail = format!("{}: {error}", file.display());
        Problem::new(Code::ConfigUnreadable, detail)
    })
}

/// The daemon's own files with secrets that others may read. A directory that others may not enter
/// protects all in it.
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
            name.starts_with("secrets-")
                || api::SECRET_FILES.contains(&name.as_ref())
                || membership::SECRET_FILES.contains(&name.as_ref())
        })
        .filter_map(|entry| readable(&entry.path()))
        .collect();
    out.sort();
    out
}
