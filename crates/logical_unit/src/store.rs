//! Where a logical unit keeps what must survive a power loss: reservations and saved mode pages.
//!
//! **Contract.** When [`UnitStore::save`] returns without error, a later [`UnitStore::load`] gives
//! those bytes, also after a power cut and, with a store that several nodes share, on another node.
//! The bytes are keyed by the unit's identity and hold transport identities only, never numbers of
//! one process. An entry that was saved once and is not there any more is an error, as a damaged
//! one is: what stood in it may have shut a host out.

use env::file::is_there;
use env::{CoreHandle, Files, LocalFuture, durable};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// The entry of the unit `key`; `None` where none was ever saved.
    ///
    /// # Errors
    /// What the store says; `NotFound` where one was saved and is gone.
    fn load(
        &self,
        core: &CoreHandle,
        key: &str,
        entry: Entry,
    ) -> LocalFuture<io::Result<Option<Vec<u8>>>>;

    /// Replaces the entry, durably.
    ///
    /// # Errors
    /// `Unsupported` where nothing is ever kept; with any other error the old bytes are kept, or
    /// the new ones.
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

    /// What an administrator can do about an entry of the unit `key` that cannot be used.
    fn next_step(&self, key: &str) -> String {
        let place = self.place();
        format!("check {key}.* in {place}; remove the file only if every host may lose them")
    }
}

/// The store of one unit.
pub type Store = Arc<dyn UnitStore>;

/// Entries as files in a directory. A directory beside it, of the same name with `.kept` after it,
/// has an empty file for each: the record that there is one.
pub struct DirectoryStore {
    directory: PathBuf,
    records: PathBuf,
    /// Records that are known to be there.
    recorded: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl DirectoryStore {
    /// Entries in `directory`, which is made when the first is saved.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        let mut name = directory.file_name().unwrap_or_default().to_owned();
        name.push(".kept");
        Self {
            records: directory.with_file_name(name),
            directory,
            recorded: Arc::default(),
        }
    }

    fn path(&self, key: &str, entry: Entry) -> PathBuf {
        self.directory.join(format!("{key}.{}", entry.file_name()))
    }

    fn record(&self, key: &str, entry: Entry) -> Record {
        Record {
            path: self.records.join(format!("{key}.{}", entry.file_name())),
            recorded: Arc::clone(&self.recorded),
        }
    }
}

/// Says that an entry is there.
struct Record {
    path: PathBuf,
    recorded: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Record {
    fn known(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        let known = self.recorded.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it, durably, where it is not there: once the entry is, because a crash may come
    /// between.
    async fn make(&self, files: &dyn Files) -> io::Result<()> {
        if self.known().contains(&self.path) {
            return Ok(());
        }
        if let Some(directory) = self.path.parent() {
            durable::make_dir(files, directory).await?;
        }
        durable::replace_file(files, &self.path, &[]).await?;
        self.known().insert(self.path.clone());
        Ok(())
    }

    async fn is_there(&self, files: &dyn Files) -> io::Result<bool> {
        match durable::read_file(files, &self.path, ENTRY_BYTES_MAX).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn remove(&self, files: &dyn Files) -> io::Result<()> {
        self.known().remove(&self.path);
        durable::remove_file(files, &self.path).await
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
        let (directory, record) = (self.directory.clone(), self.record(key, entry));
        Box::pin(async move {
            // Hosts will be shown what is read, so a power cut may not take it back.
            let settled = durable::settle_dir(&*files, &directory).await;
            let read = match settled {
                Ok(()) => durable::read_file(&*files, &path, ENTRY_BYTES_MAX).await,
                Err(error) => Err(error),
            };
            match read {
                Ok(bytes) => {
                    if !record.is_there(&*files).await? {
                        // A program that made no records, or a crash. Without room for it the next
                        // start tries again.
                        drop(record.make(&*files).await);
                    }
                    Ok(Some(bytes))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if !record.is_there(&*files).await? {
                        // Somebody may have removed it: the next save makes another.
                        record.known().remove(&record.path);
                        return Ok(None);
                    }
                    let why = format!("{} was there and is gone", path.display());
                    Err(io::Error::new(io::ErrorKind::NotFound, why))
                }
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
        let (directory, record) = (self.directory.clone(), self.record(key, entry));
        Box::pin(async move {
            durable::make_dir(&*files, &directory).await?;
            let is_first =
                !record.known().contains(&record.path) && !is_there(&*files, &path).await;
            let saved = match durable::replace_file(&*files, &path, &bytes).await {
                Ok(()) => record.make(&*files).await,
                error => error,
            };
            if saved.is_err() && is_first {
                // The host gets the answer that it was refused: the next start may not find it in
                // force. In this order, as in `forget`.
                drop(record.remove(&*files).await);
                drop(durable::remove_file(&*files, &path).await);
            }
            saved
        })
    }

    fn forget(&self, core: &CoreHandle, key: &str) -> LocalFuture<io::Result<()>> {
        let files = core.files();
        let entries = [Entry::Reservations, Entry::ModePages]
            .map(|entry| (self.record(key, entry), self.path(key, entry)));
        Box::pin(async move {
            for (record, path) in entries {
                // In this order: what is left by a crash means nothing.
                record.remove(&*files).await?;
                durable::remove_file(&*files, &path).await?;
            }
            Ok(())
        })
    }

    fn place(&self) -> String {
        self.directory.display().to_string()
    }

    fn next_step(&self, key: &str) -> String {
        format!(
            "check {key}.* in {}, and bring the file back where there is a good copy: the LUN then comes online by itself; only if \
             every host may lose them, remove it there and in {}",
            self.directory.display(),
            self.records.display()
        )
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
