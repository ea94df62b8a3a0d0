//! SQLite files for what a node records of itself.
//!
//! **Failure model.** A process that is killed loses what was not committed. A power cut loses
//! nothing that was committed with [`Synchronous::Full`], and with [`Synchronous::Normal`] the last
//! writes, never the file. A damaged file is set aside under a name with the time. A file of a
//! newer program is left alone.

pub mod failed;
pub mod file;

pub use failed::Failed;
pub use rusqlite;

use rusqlite::Connection;
use std::path::PathBuf;

/// What a program knows of a kind of file.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// What is in it, for messages: `history`.
    pub what: &'static str,
    /// SQLite's application identifier: a file with another one is not ours.
    pub application_id: i32,
    /// What leads from each version to the next: the version of a file is how many of these it has
    /// seen. Steps that were released are never changed.
    pub steps: &'static [&'static str],
    /// Removes a bounded amount of what matters least; `false` where nothing is left to remove.
    pub shrink: fn(&Connection) -> rusqlite::Result<bool>,
}

/// When a write is stable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Synchronous {
    /// After a checkpoint: a power cut may lose the last writes.
    Normal,
    /// When it is answered.
    Full,
}

/// Where a file is and how it is kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file; SQLite has `-wal` beside it.
    pub path: PathBuf,
    /// When a write is stable.
    pub synchronous: Synchronous,
    /// The most bytes that the file's contents take; beyond, [`Schema::shrink`] is called.
    pub bytes_max: u64,
}
