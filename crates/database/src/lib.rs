//! SQLite files for what a node records of itself: its history, its events, its audit log.
//!
//! **Contract.** One thread owns the connection; callers send it [closures](Database::write) and
//! wait for their answers. Whatever becomes of the file, the program goes on: what cannot be
//! written is dropped and counted, and the log says so once. Writes that wait together share a
//! transaction, and are answered when it is committed. The file is held exclusively.
//!
//! **Failure model.** A process that is killed loses what it was not answered. A power cut loses
//! nothing that was answered with [`Synchronous::Full`], and with [`Synchronous::Normal`] the last
//! writes, never the file. A damaged file is set aside under a name with the time, and a new one
//! begun. A file of a newer program is left alone, and nothing is kept.

mod failed;
mod file;
mod health;
mod owner;
mod work;

pub use failed::Failed;
pub use health::Health;
pub use rusqlite;
pub use work::Answer;

use health::Shared;
use rusqlite::Connection;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use work::{Job, Reading, Writing};

/// How many closures wait for the thread. What comes while so many wait is dropped and counted:
/// behind a disk that hangs, memory does not grow.
const WAITING_MAX: usize = 4096;

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

impl Settings {
    /// The most bytes that the file itself takes: a quarter more, for what is written before
    /// something else is removed. What does not fit is not written. Its log is not counted.
    #[must_use]
    pub const fn file_bytes_max(bytes_max: u64) -> u64 {
        bytes_max / 4 * 5
    }

    /// What the contents may take of a file that is to have no more bytes than these.
    #[must_use]
    pub const fn contents_of(file_bytes: u64) -> u64 {
        file_bytes / 5 * 4
    }
}

/// A file and the thread that owns it. Clones share it.
#[derive(Clone)]
pub struct Database(Arc<Inner>);

struct Inner {
    jobs: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
}

impl Database {
    /// Starts the thread, which opens the file, or begins one. What hinders it shows in
    /// [`Database::health`], in the log and in answers.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start(settings: Settings, schema: Schema) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name(schema.what.to_owned())
            .spawn(move || owner::run(settings, schema, &waiting, of_thread))?;
        Ok(Self(Arc::new(Inner {
            jobs: Mutex::new(Some(jobs)),
            thread: Mutex::new(Some(thread)),
            shared,
        })))
    }

    /// Changes something; it is done whether or not the answer is waited for. An error of `work`
    /// undoes what it did, and nothing else.
    pub fn write<T, F>(&self, work: F) -> Answer<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (writing, answer) = Writing::new(work);
        self.send(Job::Write(Box::new(writing)));
        answer
    }

    /// Reads what all writes before it have left.
    pub fn read<T, F>(&self, work: F) -> Answer<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reading, answer) = Reading::new(work);
        self.send(Job::Read(Box::new(reading)));
        answer
    }

    /// The contents take so many bytes at most from now on; what is there comes to that bound.
    pub fn bound(&self, bytes_max: u64) {
        self.0.shared.set_bound(bytes_max);
        let jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*jobs {
            // Where much waits, whatever comes first takes it.
            let _ = sender.try_send(Job::Bound);
        }
    }

    /// For `status`: how many writes were dropped, and whether the file was set aside.
    #[must_use]
    pub fn health(&self) -> Health {
        self.0.shared.health()
    }

    /// Takes no more work, does what waits, and closes the file.
    pub fn close(&self) {
        self.0.close();
    }

    fn send(&self, job: Job) {
        let jobs = self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = &*jobs else {
            return job.refuse(Failed::Closed);
        };
        match sender.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => {
                self.0.shared.overrun(job.is_write());
                job.refuse(Failed::Busy);
            }
            Err(TrySendError::Disconnected(job)) => job.refuse(Failed::Closed),
        }
    }
}

impl Inner {
    fn close(&self) {
        // The thread ends when the last sender is gone.
        let jobs = self
            .jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(jobs);
        let thread = self.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}
