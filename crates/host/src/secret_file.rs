//! Files that hold secrets: others should not be able to read them.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reading by others than owner and group: inode(7) `S_IROTH`. The group is somebody's choice.
const OTHERS_READ: u32 = 0o004;

/// What is wrong with the permissions of a file with a secret.
#[must_use]
pub fn readable(file: &Path) -> Option<String> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    (mode & OTHERS_READ != 0).then(|| {
        let (file, mode) = (file.display(), mode & 0o7777);
        format!(
            "{file} holds a secret and everybody may read it (mode {mode:04o}): chmod 600 {file}"
        )
    })
}

/// Reads a file with a secret, and warns on standard error where others may read it as well.
///
/// # Errors
/// What the system says.
pub fn read(file: &Path) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(file)?;
    if let Some(warning) = readable(file) {
        eprintln!("warning: {warning}");
    }
    Ok(bytes)
}

#[cfg(test)]
mod test {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn a_secret_that_everybody_may_read_is_reported() {
        let file = std::env::temp_dir().join(format!("causeway-secret-{}", std::process::id()));
        std::fs::write(&file, "secret").unwrap();
        for (mode, reported) in [
            (0o600, None),
            (0o640, None),
            (0o604, Some("everybody may read it (mode 0604): chmod 600")),
            (0o644, Some("everybody may read it (mode 0644): chmod 600")),
        ] {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let found = readable(&file);
            assert_eq!(found.is_some(), reported.is_some(), "{mode:o}: {found:?}");
            assert!(
                found
                    .unwrap_or_default()
                    .contains(reported.unwrap_or_default())
            );
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(readable(&file), None);
    }
}
