//! The file in a pool's directory that says which pool it is and whether it has a journal;
//! `docs/formats/state.md` describes it.

use env::{CoreHandle, durable};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use volume::{OpenError, OpenErrorKind};

/// Its name.
pub const FILE: &str = "pool.toml";

/// No file of a pool is longer.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The version of the file.
const SCHEMA: u32 = 1;

/// What a pool's file says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct PoolFile {
    schema: u32,
    /// The pool's number, 32 hexadecimal digits.
    id: String,
    /// It has a journal, which may hold what is nowhere else. Always there: a file that was cut off
    /// says nothing of it.
    pub journal: bool,
}

impl PoolFile {
    /// Of a new pool, which has no journal yet.
    #[must_use]
    pub fn of(number: [u8; 16]) -> Self {
        Self {
            schema: SCHEMA,
            id: format!("{:032x}", u128::from_be_bytes(number)),
            journal: false,
        }
    }

    /// Makes the one of a new pool at `path`, with a number of its own.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn make(core: &CoreHandle, path: &Path) -> Result<Self, OpenError> {
        let mut number = [0; 16];
        core.fill_random(&mut number);
        let file = Self::of(number);
        file.write(core, path).await?;
        Ok(file)
    }

    /// Reads the one at `path`; `None`: there is none.
    ///
    /// # Errors
    /// It cannot be read, or is not what it should be.
    pub async fn read(core: &CoreHandle, path: &Path) -> Result<Option<Self>, OpenError> {
        let broken = |kind: OpenErrorKind, what: String| OpenError {
            kind,
            cause: format!("{}: {what}", path.display()),
            next_step: "restore it: it says which pool this is and whether it has a journal"
                .to_owned(),
        };
        let bytes = match durable::read_file(&*core.files(), path, FILE_BYTES_MAX).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(broken(OpenErrorKind::of_io(&error), error.to_string())),
        };
        let text = String::from_utf8(bytes)
            .map_err(|error| broken(OpenErrorKind::Damaged, error.to_string()))?;
        let file: Self = toml::from_str(&text)
            .map_err(|error| broken(OpenErrorKind::Damaged, error.to_string()))?;
        if file.schema != SCHEMA {
            let schema = file.schema;
            return Err(broken(
                OpenErrorKind::Damaged,
                format!("it has schema {schema}, and this program reads schema {SCHEMA}"),
            ));
        }
        Ok(Some(file))
    }

    /// Writes it in place of what is at `path`.
    ///
    /// # Errors
    /// What the system says; the one before is still there.
    ///
    /// # Panics
    /// Never: it is a table of plain values.
    pub async fn write(&self, core: &CoreHandle, path: &Path) -> Result<(), OpenError> {
        let text = toml::to_string(self).expect("a table of plain values");
        let written = durable::replace_file(&*core.files(), path, text.as_bytes()).await;
        written.map_err(|error| OpenError {
            kind: OpenErrorKind::of_io(&error),
            cause: format!("{} cannot be written: {error}", path.display()),
            next_step: "check the disk, its free space and its permissions".to_owned(),
        })
    }

    /// The pool's number.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&self, path: &Path) -> Result<[u8; 16], OpenError> {
        let number = u128::from_str_radix(&self.id, 16).map_err(|error| OpenError {
            kind: OpenErrorKind::Damaged,
            cause: format!("{}: id: {error}", path.display()),
            next_step: "restore it: it says which pool this is".to_owned(),
        })?;
        Ok(number.to_be_bytes())
    }
}
