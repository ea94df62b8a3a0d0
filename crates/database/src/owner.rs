//! The thread that owns the connection.

use crate::failed::{Failed, Kind, kind};
use crate::file::{self, Cannot};
use crate::health::Shared;
use crate::work::{Job, Write};
use crate::{Schema, Settings};
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// How many writes share a transaction.
const BATCH_MAX: usize = 256;

/// How often the bound is worked on after one write, so that what waits has its turn.
const SHRINKS_MAX: usize = 64;

struct Owner {
    settings: Settings,
    schema: Schema,
    shared: Arc<Shared>,
    connection: Option<Connection>,
    /// A newer program has made the file: it is not tried again.
    refused: Option<Failed>,
}

/// Opens the file and does what is sent, until nobody can send any more.
pub(crate) fn run(settings: Settings, schema: Schema, jobs: &Receiver<Job>, shared: Arc<Shared>) {
    let mut owner = Owner {
        settings,
        schema,
        shared,
        connection: None,
        refused: None,
    };
    if let Err(why) = owner.ready() {
        owner.fails(0, &why);
    }
    let mut waiting = VecDeque::new();
    while let Some(job) = waiting.pop_front().or_else(|| jobs.recv().ok()) {
        owner.take_bound();
        match job {
            Job::Bound => {}
            Job::Read(read) => owner.read(read),
            Job::Write(write) => {
                let batch = batch(write, jobs, &mut waiting);
                owner.write(batch);
            }
        }
    }
    owner.close();
}

/// The write and those that wait behind it; what else was taken goes to `waiting`.
fn batch(
    first: Box<dyn Write>,
    jobs: &Receiver<Job>,
    waiting: &mut VecDeque<Job>,
) -> Vec<Box<dyn Write>> {
    let mut batch = vec![first];
    while batch.len() < BATCH_MAX {
        match waiting.pop_front().or_else(|| jobs.try_recv().ok()) {
            Some(Job::Write(write)) => batch.push(write),
            Some(other @ (Job::Read(_) | Job::Bound)) => {
                waiting.push_front(other);
                break;
            }
            None => break,
        }
    }
    batch
}

impl Owner {
    /// The connection, opened now where it was not.
    fn ready(&mut self) -> Result<&Connection, Failed> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        if self.connection.is_none() {
            self.connection = Some(self.open()?);
        }
        self.connection.as_ref().ok_or(Failed::Closed)
    }

    fn open(&mut self) -> Result<Connection, Failed> {
        let opened = match file::open(&self.settings, &self.schema) {
            Err(Cannot::Damaged(why)) => {
                self.set_aside(&why)?;
                file::open(&self.settings, &self.schema)
            }
            opened => opened,
        };
        match opened {
            Ok(connection) => {
                self.fit(&connection);
                let bytes = file::used(&connection).unwrap_or(0);
                self.shared.change().bytes = bytes;
                Ok(connection)
            }
            Err(Cannot::Now(why)) => {
                if let Failed::Newer { .. } = why {
                    self.refused = Some(why.clone());
                }
                Err(why)
            }
            Err(Cannot::Damaged(why)) => Err(Failed::File(why)),
        }
    }

    /// Comes to another bound, where there is one.
    fn take_bound(&mut self) {
        let Some(most) = self.shared.bound() else {
            return;
        };
        self.settings.bytes_max = most;
        if let Some(connection) = &self.connection {
            self.fit(connection);
            let bytes = file::used(connection).unwrap_or(0);
            self.shared.change().bytes = bytes;
        }
    }

    /// A file that may have had more room before comes to its bound.
    fn fit(&self, connection: &Connection) {
        let (most, shrink) = (self.settings.bytes_max, self.schema.shrink);
        let fit = || {
            let mut bytes = file::used(connection)?;
            loop {
                let left = bounded(connection, most, shrink)?;
                if left <= most || left >= bytes {
                    break;
                }
                bytes = left;
            }
            file::bound(connection, Settings::file_bytes_max(most))
        };
        if let Err(error) = fit() {
            let path = self.settings.path.display();
            tracing::warn!("{path}: it does not come to its bound: {error}");
        }
    }

    /// What is there goes under another name, and the next use begins a new file.
    fn set_aside(&mut self, why: &str) -> Result<(), Failed> {
        self.connection = None;
        let path = &self.settings.path;
        let aside = file::set_aside(path).map_err(|error| {
            Failed::File(format!(
                "it is damaged ({why}) and cannot be set aside: {error}"
            ))
        })?;
        tracing::error!(
            "{}: damaged ({why}): set aside as {}, and a new file is begun",
            path.display(),
            aside.display()
        );
        let mut health = self.shared.change();
        health.set_aside.push((aside, why.to_owned()));
        Ok(())
    }

    fn fails(&self, writes: usize, why: &Failed) {
        if self.shared.fails(writes, &why.to_string()) {
            let (path, what) = (self.settings.path.display(), self.schema.what);
            tracing::error!("{path}: {why}; until that ends, {what} is not kept");
        }
    }

    fn works(&self, bytes: u64) {
        if let Some(dropped) = self.shared.works(bytes) {
            let path = self.settings.path.display();
            tracing::info!("{path}: written again; {dropped} writes were dropped");
        }
    }

    fn read(&mut self, read: Box<dyn crate::work::Read>) {
        let error = match self.ready() {
            Ok(connection) => read.run(connection).err(),
            Err(why) => return read.refuse(why),
        };
        if let Some(error) = error.filter(|error| kind(error) == Kind::Damaged) {
            self.is_damaged(&error);
        }
    }

    fn is_damaged(&mut self, error: &rusqlite::Error) {
        if let Err(why) = self.set_aside(&error.to_string()) {
            self.fails(0, &why);
        }
    }

    fn write(&mut self, mut batch: Vec<Box<dyn Write>>) {
        let count = batch.len();
        let done = match self.ready() {
            Ok(connection) => together(connection, &mut batch),
            Err(why) => {
                self.fails(count, &why);
                return batch
                    .into_iter()
                    .for_each(|write| write.answer(Some(why.clone())));
            }
        };
        match done {
            Ok(each) => {
                let failed = each.iter().filter(|failed| failed.is_some()).count();
                self.shared.change().dropped += u64::try_from(failed).unwrap_or(u64::MAX);
                // Before anybody hears of it: who was answered finds the bound kept.
                self.keep_bound();
                for (write, failed) in batch.into_iter().zip(each) {
                    write.answer(failed);
                }
            }
            Err(error) => {
                match kind(&error) {
                    Kind::Damaged => self.is_damaged(&error),
                    Kind::Failing | Kind::OfTheWork => self.make_room(),
                }
                let why = Failed::from(error);
                self.fails(count, &why);
                for write in batch {
                    write.answer(Some(why.clone()));
                }
            }
        }
    }

    /// What comes next may find room where the log beside the file was.
    fn make_room(&self) {
        if let Some(connection) = &self.connection
            && let Err(error) = file::checkpoint(connection)
        {
            tracing::debug!("{}: {error}", self.settings.path.display());
        }
    }

    /// Removes what matters least until the contents fit, with some room for what comes.
    fn keep_bound(&mut self) {
        let (most, shrink) = (self.settings.bytes_max, self.schema.shrink);
        let Some(connection) = &self.connection else {
            return;
        };
        let bytes = bounded(connection, most, shrink);
        match bytes {
            Ok(bytes) => self.works(bytes),
            Err(error) => self.fails(0, &Failed::from(error)),
        }
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take()
            && let Err((_, error)) = connection.close()
        {
            tracing::warn!("{}: {error}", self.settings.path.display());
        }
    }
}

fn bounded(
    connection: &Connection,
    most: u64,
    shrink: fn(&Connection) -> rusqlite::Result<bool>,
) -> rusqlite::Result<u64> {
    let mut bytes = file::used(connection)?;
    if bytes <= most {
        return Ok(bytes);
    }
    let wanted = most - most / 16;
    for _ in 0..SHRINKS_MAX {
        let transaction = connection.unchecked_transaction()?;
        let removed = shrink(&transaction)?;
        transaction.commit()?;
        bytes = file::used(connection)?;
        if !removed || bytes <= wanted {
            break;
        }
    }
    Ok(bytes)
}

/// Runs all in one transaction: what became of each. An error of one undoes that one alone, unless
/// it is of the file.
fn together(
    connection: &Connection,
    batch: &mut [Box<dyn Write>],
) -> rusqlite::Result<Vec<Option<Failed>>> {
    let transaction = connection.unchecked_transaction()?;
    let mut each = Vec::with_capacity(batch.len());
    for write in batch {
        transaction.execute_batch("SAVEPOINT one")?;
        each.push(match write.run(&transaction) {
            Ok(()) => None,
            Err(error) if kind(&error) == Kind::OfTheWork => {
                transaction.execute_batch("ROLLBACK TO one")?;
                Some(Failed::from(error))
            }
            Err(error) => return Err(error),
        });
        transaction.execute_batch("RELEASE one")?;
    }
    transaction.commit()?;
    Ok(each)
}
