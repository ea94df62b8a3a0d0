//! Records in the state directory that decide what becomes of data.
//!
//! **Contract.** One that another version wrote, or that the system does not give, is neither done
//! without nor written over: what depends on it is refused. One that is damaged is lost to every
//! version, so it is put aside for a person to inspect, and all goes on without it.

use env::Files;
use env::durable::read_file;
use manifest::document::DocumentError;
use std::io;
use std::path::{Path, PathBuf};
use volume::{OpenError, OpenErrorKind};

/// What hangs on a record, in words for the operator.
pub struct Matters<'a> {
    /// What happens without it.
    pub lost: &'a str,
    /// How one does without it all the same.
    pub give_up: &'a str,
}

/// Where one is kept that is done without.
pub fn aside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".aside");
    PathBuf::from(name)
}

/// Reads one of at most so many bytes; `None`: there is none, or none any more.
///
/// # Errors
/// It is there, and cannot be used now. It stays as it is.
pub async fn read<T>(
    files: &dyn Files,
    (file, most): (&Path, u64),
    parse: impl FnOnce(&[u8]) -> Result<T, DocumentError>,
    matters: Matters<'_>,
) -> Result<Option<T>, OpenError> {
    let (shown, Matters { lost, give_up }) = (file.display(), matters);
    let refused = |kind, why: &dyn std::fmt::Display, first: &str| OpenError {
        kind,
        cause: format!("{shown}: {why}"),
        next_step: format!("{first}; or {give_up}"),
    };
    let text = match read_file(files, file, most).await {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let kind = OpenErrorKind::of_io(&error);
            return Err(refused(kind, &error, "check the disk of state_dir"));
        }
    };
    match parse(&text) {
        Ok(record) => Ok(Some(record)),
        Err(why) if why.is_damage() => {
            let aside = aside(file);
            tracing::error!("{shown}: {why}: {lost}; it is kept as {}", aside.display());
            if let Err(error) = files.rename(file, &aside).await {
                tracing::error!("{shown} cannot be put aside: {error}");
            }
            Ok(None)
        }
        Err(why) => {
            let kind = OpenErrorKind::Unsupported;
            Err(refused(
                kind,
                &why,
                "start the version of Causeway that wrote it",
            ))
        }
    }
}
