//! The journals of the pools: made once, opened at the start, and never done without.
//!
//! A pool's directory says in a file of its own which pool it is and whether it has a journal;
//! members say it in their superblocks. So a journal that is missing is known to be missing, and
//! another pool's is not taken for it.

use crate::backend::door::{KeepsJournal, Pool, PoolIdentity};
use crate::backend::pools::unknown;
use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use ::write_back::{CreateError, Journal, JournalSpec, SHARD_BYTES, is_journal_of};
use env::durable;
use futures_util::future::{Either, select};
use manifest::config;
use std::io;
use std::path::Path;
use std::rc::Rc;
use units::Now;
use volume::{OpenError, OpenErrorKind};

/// Bytes of a ring below which another ring helps nobody.
const RING_BYTES_MIN: u64 = 64 << 20;

/// The pool behind the door.
fn owner(node: &Inner, pool: &config::Pool) -> Result<Rc<dyn Pool>, OpenError> {
    let found = node.pools().get(&pool.name).cloned();
    found.ok_or_else(|| unknown(&pool.name))
}

/// Where its journal is known, where it may have one.
fn journals(owner: &dyn Pool) -> Result<&dyn KeepsJournal, OpenError> {
    owner.journals().ok_or_else(|| OpenError {
        kind: OpenErrorKind::Unsupported,
        cause: "the pool makes stable whatever it acknowledges, and has no journal".to_owned(),
        next_step: "take journal out of its table in node.toml".to_owned(),
    })
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
            log(pool, journal);
        }
        node.journals.set(&pool.name, journal);
    }
}

/// Logs what was found in it. What is damaged in it the monitor reports.
pub(crate) fn log(pool: &config::Pool, journal: &Journal) {
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
pub(crate) async fn was_made(node: &Inner, pool: &config::Pool) -> bool {
    let known = match owner(node, pool) {
        Ok(owner) => match owner.journals() {
            Some(journals) => journals.identity().await,
            None => Ok(None),
        },
        Err(error) => Err(error),
    };
    known.map_or(true, |known| known.is_some_and(|it| it.has_journal))
}

/// Opens a pool's journal, and makes it where it is new.
///
/// # Errors
/// Why it cannot be used.
pub(crate) async fn open(node: &Inner, pool: &config::Pool) -> Result<PoolJournal, OpenError> {
    let (core, owner) = (&node.core, owner(node, pool)?);
    if let Some(why) = owner.missing() {
        return Err(why);
    }
    if owner.journals().is_none() && pool.journal.is_none() {
        return Ok(PoolJournal::None);
    }
    let owner = journals(&*owner)?;
    let has = owner.identity().await?.is_some_and(|it| it.has_journal);
    let Some(journal) = &pool.journal else {
        if !has {
            return Ok(PoolJournal::None);
        }
        return Err(OpenError {
            kind: OpenErrorKind::Refused,
            cause: format!(
                "pool {} has a journal, and node.toml names none: it may hold writes that were acknowledged",
                pool.name
            ),
            next_step: "name the journal in node.toml again".to_owned(),
        });
    };
    let number = owner.number().await?;
    if !has {
        make(node, pool, journal, number).await?;
        owner.set_journal(true).await?;
    }
    let accept = node.accept(&pool.name, number).await?;
    let opened = Journal::open_if(core, journal, number, accept).await?;
    node.write_down(&pool.name, &opened).await;
    Ok(PoolJournal::Open(opened))
}

/// Gives up what a pool's journal holds, and makes another one where node.toml names one. Nobody
/// has it open.
///
/// # Errors
/// Why that cannot be done.
pub(crate) async fn discard(node: &Inner, pool: &config::Pool) -> Result<(), OpenError> {
    let (core, owner) = (&node.core, owner(node, pool)?);
    let owner = owner.journals();
    let known = match owner {
        Some(owner) => owner.identity().await?.filter(|it| it.has_journal),
        None => None,
    };
    let Some((owner, PoolIdentity { number, .. })) = owner.zip(known) else {
        return Err(OpenError {
            kind: OpenErrorKind::Refused,
            cause: format!("pool {} has no journal yet", pool.name),
            next_step: "name one in node.toml, and restart".to_owned(),
        });
    };
    let Some(journal) = &pool.journal else {
        node.forget(&pool.name).await?;
        return owner.set_journal(false).await;
    };
    // What is not this pool's is not overwritten, whatever was confirmed.
    is_journal_of(core, journal, number).await?;
    // One that finds no space for the new one has none: it is made as soon as there is some.
    owner.set_journal(false).await?;
    make_anew(node, pool, journal, number).await?;
    owner.set_journal(true).await
}

/// Makes the journal, unless that was done and only not written down.
async fn make(
    node: &Inner,
    pool: &config::Pool,
    path: &Path,
    number: [u8; 16],
) -> Result<(), OpenError> {
    if is_journal_of(&node.core, path, number).await? {
        return Ok(());
    }
    make_anew(node, pool, path, number).await
}

async fn make_anew(
    node: &Inner,
    pool: &config::Pool,
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
                kind: OpenErrorKind::Unsupported,
                cause: format!("{}: {error}", path.display()),
                next_step: "name a larger device, or raise journal_size".to_owned(),
            },
        })
}

fn cannot(path: &Path, error: &io::Error) -> OpenError {
    OpenError {
        kind: OpenErrorKind::of_io(error),
        cause: format!("the journal {} cannot be made: {error}", path.display()),
        next_step: "check the disk, its free space and its permissions".to_owned(),
    }
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
