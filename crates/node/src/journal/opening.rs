//! The journals of the pools: made once, opened at the start, and never done without.
//!
//! A pool's directory says in a file of its own which pool it is and whether it has a journal;
//! members say it in their superblocks. So a journal that is missing is known to be missing, and
//! another pool's is not taken for it.

use crate::data_plane::Inner;
use crate::pool::members::{MemberPool, unknown};
use crate::pool::pool_file::{FILE, PoolFile};
use ::write_back::{CreateError, Journal, JournalSpec, SHARD_BYTES, is_journal_of};
use env::{CoreHandle, durable};
use futures_util::future::{Either, select};
use manifest::config::{Place, Pool};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use units::Now;
use volume::OpenError;

/// Bytes of a ring below which another ring helps nobody.
const RING_BYTES_MIN: u64 = 64 << 20;

/// What a pool has for the writes of its LUNs.
#[derive(Clone)]
pub(crate) enum PoolJournal {
    /// No journal: LUNs stand on their files alone.
    None,
    /// It is open.
    Open(Arc<Journal>),
    /// It has one that cannot be used, so that its LUNs cannot be served.
    Missing(OpenError),
}

/// Where it is kept whether a pool has a journal.
enum Home<'a> {
    /// In a file of its directory.
    Directory(&'a Path),
    /// On its members.
    Members(Rc<MemberPool>),
}

impl Home<'_> {
    fn of<'a>(node: &Inner, pool: &'a Pool) -> Result<Home<'a>, OpenError> {
        match &pool.place {
            Place::Path(directory) => Ok(Home::Directory(directory)),
            Place::Members { .. } => {
                let members = node.member_pools().get(&pool.name).cloned();
                members
                    .map(Home::Members)
                    .ok_or_else(|| unknown(&pool.name))
            }
        }
    }

    /// The pool's number, and whether it has a journal; `None`: neither is known yet.
    async fn known(&self, core: &CoreHandle) -> Result<Option<([u8; 16], bool)>, OpenError> {
        match self {
            Self::Members(members) => members.number().map(Some),
            Self::Directory(directory) => {
                let path = directory.join(FILE);
                let Some(file) = PoolFile::read(core, &path).await? else {
                    return Ok(None);
                };
                Ok(Some((file.number(&path)?, file.journal)))
            }
        }
    }

    /// The pool's number, which is made where there is none.
    async fn number(&self, core: &CoreHandle) -> Result<[u8; 16], OpenError> {
        match self {
            Self::Members(members) => Ok(members.number()?.0),
            Self::Directory(directory) => {
                let path = directory.join(FILE);
                let file = match PoolFile::read(core, &path).await? {
                    Some(file) => file,
                    None => new_file(core, &path).await?,
                };
                file.number(&path)
            }
        }
    }

    /// Says whether the pool has a journal, durably.
    async fn set(&self, core: &CoreHandle, has: bool) -> Result<(), OpenError> {
        match self {
            Self::Members(members) => members.set_journal(core, has).await,
            Self::Directory(directory) => {
                let path = directory.join(FILE);
                let mut file = match PoolFile::read(core, &path).await? {
                    Some(file) => file,
                    None => new_file(core, &path).await?,
                };
                file.journal = has;
                file.write(core, &path).await
            }
        }
    }
}

/// Opens the journals of all pools, and makes those that are new.
pub(crate) async fn open_all(node: &Inner) {
    for pool in &node.config.pools {
        let opened = open(node, pool).await;
        let journal = opened.unwrap_or_else(PoolJournal::Missing);
        if let PoolJournal::Missing(error) = &journal {
            tracing::error!(pool = pool.name, "its LUNs are offline: {error}");
        }
        if let PoolJournal::Open(journal) = &journal {
            tell(pool, journal);
        }
        node.journals.set(&pool.name, journal);
    }
}

/// Logs what was found in it. What is damaged in it the keeper tells.
pub(crate) fn tell(pool: &Pool, journal: &Journal) {
    let (pool, path) = (pool.name.as_str(), journal.path().display());
    if journal.replayed() > 0 {
        let batches = journal.replayed();
        tracing::info!(
            pool,
            batches,
            "the journal {path} held writes, which were taken over"
        );
    }
}

/// The pool's journal was made once, or that is not known: one that is not there is to be waited
/// for, and not to be made.
pub(crate) async fn was_made(node: &Inner, pool: &Pool) -> bool {
    let known = match Home::of(node, pool) {
        Ok(home) => home.known(&node.core).await,
        Err(error) => Err(error),
    };
    known.map_or(true, |known| known.is_some_and(|(_, has)| has))
}

/// Opens a pool's journal, and makes it where it is new.
///
/// # Errors
/// Why it cannot be used.
pub(crate) async fn open(node: &Inner, pool: &Pool) -> Result<PoolJournal, OpenError> {
    if let Some(why) = node.directories.missing(&pool.name) {
        return Err(why);
    }
    let (core, home) = (&node.core, Home::of(node, pool)?);
    let known = home.known(core).await?;
    let has = known.is_some_and(|(_, has)| has);
    let Some(journal) = &pool.journal else {
        if !has {
            return Ok(PoolJournal::None);
        }
        return Err(OpenError {
            cause: format!(
                "pool {} has a journal, and node.toml names none: it may hold writes that were acknowledged",
                pool.name
            ),
            next_step: "name the journal in node.toml again".to_owned(),
        });
    };
    let number = home.number(core).await?;
    if !has {
        make(node, pool, journal, number).await?;
        home.set(core, true).await?;
    }
    let accept = node.accept(&pool.name, number).await;
    let opened = Journal::open_if(core, journal, number, accept).await?;
    node.write_down(&pool.name, &opened).await;
    Ok(PoolJournal::Open(opened))
}

/// Gives up what a pool's journal holds, and makes another one where node.toml names one. Nobody
/// has it open.
///
/// # Errors
/// Why that cannot be done.
pub(crate) async fn discard(node: &Inner, pool: &Pool) -> Result<(), OpenError> {
    let (core, home) = (&node.core, Home::of(node, pool)?);
    let known = home.known(core).await?;
    let Some((number, true)) = known else {
        return Err(OpenError {
            cause: format!("pool {} has no journal yet", pool.name),
            next_step: "name one in node.toml, and restart".to_owned(),
        });
    };
    let Some(journal) = &pool.journal else {
        node.forget(&pool.name).await?;
        return home.set(core, false).await;
    };
    // What is not this pool's is not overwritten, whatever was confirmed.
    is_journal_of(core, journal, number).await?;
    // One that finds no space for the new one has none: it is made as soon as there is some.
    home.set(core, false).await?;
    make_anew(node, pool, journal, number).await?;
    home.set(core, true).await
}

/// Makes the journal, unless that was done and only not written down.
async fn make(node: &Inner, pool: &Pool, path: &Path, number: [u8; 16]) -> Result<(), OpenError> {
    if is_journal_of(&node.core, path, number).await? {
        return Ok(());
    }
    make_anew(node, pool, path, number).await
}

async fn make_anew(
    node: &Inner,
    pool: &Pool,
    path: &Path,
    number: [u8; 16],
) -> Result<(), OpenError> {
    let core = &node.core;
    // Before the one that it speaks of is gone.
    node.forget(&pool.name).await?;
    if let Some(parent) = path.parent() {
        let made = durable::make_dir(&*core.files(), parent).await;
        made.map_err(|error| cannot(path, &error))?;
    }
    let bytes = pool.journal_size.bytes();
    let rings = (bytes / RING_BYTES_MIN).clamp(1, u64::from(core.core_count()));
    let spec = JournalSpec {
        path: path.to_owned(),
        bytes,
        rings: u32::try_from(rings).expect("no more than the cores"),
        pool: number,
        shard_bytes: SHARD_BYTES,
    };
    tracing::info!(pool = pool.name, "making the journal {}", path.display());
    Journal::create(core, &spec)
        .await
        .map_err(|error| match error {
            CreateError::System(error) => cannot(path, &error),
            CreateError::TooSmall { .. } => OpenError {
                cause: format!("{}: {error}", path.display()),
                next_step: "name a larger device, or raise journal_size".to_owned(),
            },
        })
}

fn cannot(path: &Path, error: &io::Error) -> OpenError {
    OpenError {
        cause: format!("the journal {} cannot be made: {error}", path.display()),
        next_step: "check the disk, its free space and its permissions".to_owned(),
    }
}

pub(crate) async fn new_file(core: &CoreHandle, path: &Path) -> Result<PoolFile, OpenError> {
    let mut number = [0; 16];
    core.fill_random(&mut number);
    let file = PoolFile::of(number);
    file.write(core, path).await?;
    Ok(file)
}

/// Destages what it holds, if that can be done in time, and ends it. What stays in it is found
/// at the next start.
pub(crate) async fn close(node: &Inner, pool: &str, journal: &Journal, until: Now) {
    let core = &node.core;
    let draining = Box::pin(journal.drain(core));
    let drained = select(draining, core.sleep_until(until)).await;
    if matches!(drained, Either::Right(_)) {
        tracing::warn!(
            pool,
            "not all of the journal could be destaged in time; it is kept"
        );
    }
    node.write_down(pool, journal).await;
    journal.close(core).await;
}
