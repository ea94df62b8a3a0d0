//! Opening a file, what is wrong with one, and setting one aside.

use crate::failed::{Failed, Kind, kind};
use crate::{Schema, Settings, Synchronous};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Files up to this size are read whole when they are opened, and larger ones only when the last
/// process did not close them.
const CHECKED_BYTES: u64 = 64 << 20;

/// How many damaged files are kept; older ones are removed.
const ASIDE_MAX: usize = 2;

/// The log beside the file is cut to this size after a checkpoint.
const WAL_BYTES: u64 = 4 << 20;

/// What stands in the way of opening a file.
#[derive(Debug)]
pub(crate) enum Cannot {
    /// It is of a newer program, or cannot be had now.
    Now(Failed),
    /// It is not what was written.
    Damaged(String),
}

impl From<rusqlite::Error> for Cannot {
    fn from(error: rusqlite::Error) -> Self {
        match kind(&error) {
            Kind::Damaged => Self::Damaged(error.to_string()),
            Kind::Failing | Kind::OfTheWork => Self::Now(error.into()),
        }
    }
}

/// Opens the file, brings its schema up to date, or begins it.
pub(crate) fn open(settings: &Settings, schema: &Schema) -> Result<Connection, Cannot> {
    let path = &settings.path;
    create(path);
    let was_open = with_suffix(path, "-wal").exists();
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    // One process has the file, and the index of its log stands in memory: no mapped file that a
    // full disk could take away.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let application_id = of_ours(&connection, schema)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match settings.synchronous {
        Synchronous::Normal => "NORMAL",
        Synchronous::Full => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    let wal_bytes = i64::try_from(WAL_BYTES).unwrap_or(i64::MAX);
    connection.pragma_update(None, "journal_size_limit", wal_bytes)?;
    if was_open || length <= CHECKED_BYTES {
        let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if found != "ok" {
            return Err(Cannot::Damaged(found));
        }
    }
    migrate(&connection, schema, application_id)?;
    Ok(connection)
}

/// Makes the file where it is missing, for its owner alone; its log gets the same mode. Why it
/// cannot be made is what SQLite says when it opens it.
fn create(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    let _ = options.write(true).create_new(true).mode(0o600).open(path);
}

/// Whether the file is one of ours; 0 where it is a new one.
fn of_ours(connection: &Connection, schema: &Schema) -> Result<i32, Cannot> {
    let found: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if found == schema.application_id || found == 0 {
        return Ok(found);
    }
    let why = format!(
        "it is not a file of {} (its mark is {found:#x})",
        schema.what
    );
    Err(Cannot::Now(Failed::File(why)))
}

fn migrate(connection: &Connection, schema: &Schema, mark: i32) -> Result<(), Cannot> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(schema.steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(Cannot::Now(Failed::Newer { found, known }));
    }
    let done = usize::try_from(found).unwrap_or(0);
    if mark == schema.application_id && done == schema.steps.len() {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    for step in schema.steps.iter().skip(done) {
        // A step that does not fit what is there: the file is not what was written.
        transaction.execute_batch(step).map_err(|error| {
            match (kind(&error), error.sqlite_error_code()) {
                (Kind::OfTheWork, Some(ErrorCode::Unknown)) => Cannot::Damaged(error.to_string()),
                _ => error.into(),
            }
        })?;
    }
    transaction.pragma_update(None, "application_id", schema.application_id)?;
    transaction.pragma_update(None, "user_version", known)?;
    Ok(transaction.commit()?)
}

/// Empties the log beside the file, which may be what takes the room.
pub(crate) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Has the file take no more than so many bytes from now on. Where it has more, because there was
/// another bound before, it is written anew: its contents fit.
pub(crate) fn bound(connection: &Connection, bytes: u64) -> rusqlite::Result<()> {
    let ask = |what: &str| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, what, |row| row.get(0))
    };
    let most = i64::try_from(bytes).unwrap_or(i64::MAX) / ask("page_size")?.max(1);
    if ask("page_count")? > most {
        connection.execute_batch("VACUUM")?;
        checkpoint(connection)?;
    }
    // SQLite answers what holds: never less than what the file has.
    let _: i64 = connection.query_row(&format!("PRAGMA max_page_count = {most}"), [], |row| {
        row.get(0)
    })?;
    Ok(())
}

/// Bytes that the contents take.
pub(crate) fn used(connection: &Connection) -> rusqlite::Result<u64> {
    let ask = |what: &str| -> rusqlite::Result<u64> {
        let value: i64 = connection.pragma_query_value(None, what, |row| row.get(0))?;
        Ok(u64::try_from(value).unwrap_or(0))
    };
    let pages = ask("page_count")?.saturating_sub(ask("freelist_count")?);
    Ok(pages * ask("page_size")?)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

/// Gives a damaged file a name with the time, with what belongs to it, and removes older ones.
pub(crate) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = free_name(path);
    std::fs::rename(path, &aside)?;
    // The log belongs to that file: beside a new one it would be taken for its own.
    for suffix in ["-wal", "-shm"] {
        match std::fs::rename(with_suffix(path, suffix), with_suffix(&aside, suffix)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            moved => moved?,
        }
    }
    remove_old(path)?;
    Ok(aside)
}

fn free_name(path: &Path) -> PathBuf {
    let dated = with_suffix(path, &format!(".damaged-{}", now()));
    let later = (1..).map(|number| with_suffix(&dated, &format!(".{number}")));
    let names = std::iter::once(dated.clone()).chain(later);
    let mut free = names.filter(|name| !name.exists());
    free.next().unwrap_or(dated)
}

/// The time, as SQLite knows it.
fn now() -> String {
    let time = Connection::open_in_memory().and_then(|connection| {
        connection.query_row("SELECT strftime('%Y%m%dT%H%M%fZ', 'now')", [], |row| {
            row.get(0)
        })
    });
    time.unwrap_or_else(|_| "unknown".to_owned())
}

fn remove_old(path: &Path) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let prefix = format!("{}.damaged-", name.to_string_lossy());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) && !name.ends_with("-wal") && !name.ends_with("-shm") {
            all.push(name);
        }
    }
    all.sort();
    let surplus = all.len().saturating_sub(ASIDE_MAX);
    for old in all.iter().take(surplus) {
        for suffix in ["", "-wal", "-shm"] {
            // Those that are not there need no removal.
            let _ = std::fs::remove_file(directory.join(format!("{old}{suffix}")));
        }
    }
    Ok(())
}
