//! What root has read, for a daemon that may not: a file of documents as smartctl printed them.
//!
//! **Contract.** Whoever reads it takes nothing in it for true: documents go through the same
//! reader as those of the daemon's own children, and one belongs to a disk only where that still
//! has the world-wide name that root saw.

use manifest::document::{self, DocumentError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The kind in the first line of the file.
const KIND: &str = "smart";

/// The longest file: a thousand disks.
const BYTES_MAX: u64 = 64 << 20;

/// Everybody may read it.
const MODE: u32 = 0o644;

/// Documents of disks.
#[derive(Serialize, Deserialize, Default, Debug)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// When they were asked, in seconds since 1970.
    pub at: u64,
    /// One for each.
    pub disks: Vec<Reported>,
}

/// What one disk said.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Reported {
    /// The system's name for it.
    pub name: String,
    /// The world-wide name that the system had for it.
    pub wwn: String,
    /// What smartctl printed.
    pub document: Box<RawValue>,
}

impl Report {
    /// What stands at `path`; `None` where nothing does.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        let wrong = |error: DocumentError| io::Error::new(io::ErrorKind::InvalidData, error);
        document::parse(KIND, &bytes).map(Some).map_err(wrong)
    }

    /// Replaces what stands at `path`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let body = serde_json::to_vec(self)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = path.with_file_name(name);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(MODE)
            .open(&new)?;
        file.write_all(&document::write(KIND, &body))?;
        file.sync_all()?;
        fs::rename(&new, path)
    }
}
