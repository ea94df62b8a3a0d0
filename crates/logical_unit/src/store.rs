//! Where a logical unit keeps what must survive a power loss: reservations and saved mode pages.
//!
//! **Contract.** When [`UnitStore::save`] returns without error, a later [`UnitStore::load`] gives those
//! bytes, also after a power cut and, with a store that several nodes share, on another node. The bytes are
//! keyed by the unit's identity and hold transport identities only, never numbers of one process.

use env::{CoreHandle, LocalFuture, durable};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The most bytes that one entry may have.
const ENTRY_BYTES_MAX: u64 = 16 << 20;

/// What is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Entry {
    /// Registrations and the reservation (APTPL).
    Reservations,
    /// Saved mode pages.
    ModePages,
}

impl Entry {
    fn file_name(self) -> &'static str {
        match self {
            Self::Reservations => "reservations",
            Self::ModePages => "mode-pages",
        }
    }
}

/// A place for the entries of logical units.
pub trait UnitStore: Send + Sync {
    /// The entry of the unit `key`; `None` where there is none.
    fn load(
        &self,
        core: &CoreHandle,
        key: &str,
        entry: Entry,
    ) -> LocalFuture<io::Result<Option<Vec<u8>>>>;

    /// Replaces the entry, durably.
    ///
    /// # Errors
    /// `Unsupported` where nothing is ever kept; with any other error the old bytes are kept, or the new ones.
    fn save(
        &self,
        core: &CoreHandle,
        key: &str,
        entry: Entry,
        bytes: Vec<u8>,
    ) -> LocalFuture<io::Result<()>>;

    /// Removes everything of the unit `key`, for good.
    fn forget(&self, core: &CoreHandle, key: &str) -> LocalFuture<io::Result<()>>;

    /// Where it is, for people.
    fn place(&self) -> String;
}

/// The store of one unit.
pub type Store = Arc<dyn UnitStore>;

/// Entries as files in a directory.
pub struct DirectoryStore {
    directory: PathBuf,
}

impl DirectoryStore {
    /// Entries in `directory`, which is made when the first is saved.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn path(&self, key: &str, entry: Entry) -> PathBuf {
        self.directory.join(format!("{key}.{}", entry.file_name()))
    }
}

impl UnitStore for DirectoryStore {
    fn load(
        &self,
        core: &CoreHandle,
        key: &str,
        entry: Entry,
    ) -> LocalFuture<io::Result<Option<Vec<u8>>>> {
        let (files, path) = (core.files(), self.path(key, entry));
        let directory = self.directory.clone();
        Box::pin(async move {
            // Hosts will be shown what is read, so a power cut may not take it back.
            let settled = durable::settle_dir(&*files, &directory).await;
            let read = match settled {
                Ok(()) => durable::read_file(&*files, &path, ENTRY_BYTES_MAX).await,
                Err(error) => Err(error),
            };
            match read {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn save(
        &self,
        core: &CoreHandle,
        key: &str,
        entry: Entry,
        bytes: Vec<u8>,
    ) -> LocalFuture<io::Result<()>> {
        let (files, path) = (core.files(), self.path(key, entry));
        let directory = self.directory.clone();
        Box::pin(async move {
            durable::make_dir(&*files, &directory).await?;
            durable::replace_file(&*files, &path, &bytes).await
        })
    }

    fn forget(&self, core: &CoreHandle, key: &str) -> LocalFuture<io::Result<()>> {
        let files = core.files();
        let paths = [Entry::Reservations, Entry::ModePages].map(|entry| self.path(key, entry));
        Box::pin(async move {
            for path in paths {
                durable::remove_file(&*files, &path).await?;
            }
            Ok(())
        })
    }

    fn place(&self) -> String {
        self.directory.display().to_string()
    }
}

/// A store that keeps nothing, for units of volatile memory and for tests.
pub struct NoStore;

impl UnitStore for NoStore {
    fn load(&self, _: &CoreHandle, _: &str, _: Entry) -> LocalFuture<io::Result<Option<Vec<u8>>>> {
        Box::pin(async { Ok(None) })
    }

    fn save(&self, _: &CoreHandle, _: &str, _: Entry, _: Vec<u8>) -> LocalFuture<io::Result<()>> {
        Box::pin(async {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this unit keeps nothing over a restart",
            ))
        })
    }

    fn forget(&self, _: &CoreHandle, _: &str) -> LocalFuture<io::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn place(&self) -> String {
        "nowhere".to_owned()
    }
}
