//! Monitors the pools' journals while the node serves.
//!
//! ```text
//!   open --its file or device is gone--> LUNs offline, all that can be is destaged --> missing
//!   open --a write failed--> failed (reads go on) --gone, or somebody asks--> missing
//!   open --no space for a write--> failed (reads go on)
//!         --gone, there is space, or somebody asks--> missing
//!   missing --it appears, was never made, or somebody asks--> opened, checked, LUNs online
//!         --> open
//! ```
//!
//! **Contract.** What is known to be stable in a journal must be there when it is opened again
//! (`journal_record.rs`): else it stays missing, whatever it says itself. Nothing is given up
//! unless somebody asks for that by the pool's name.

use crate::inner::Inner;
use crate::journal::all::all_destaged;
use crate::journal::news::News;
use crate::journal::opening;
use crate::journal::pool_journal::PoolJournal;
use env::CoreHandle;
use env::file::is_there;
use futures_util::future::{Either, select};
use manifest::config::Pool;
use manifest::objects::Lun;
use std::path::Path;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use volume::{OpenError, OpenErrorKind};
use write_back::{Journal, VolumeId};

/// How often it checks them.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// How long what a journal holds may be destaged before its LUNs do without.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(60);

/// How long what is under way in a journal is waited for before it is opened anew.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// A journal that is there and cannot be opened is tried again after so long, or so many times as
/// long as the try took.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_TIMES: u32 = 20;

/// Monitors one pool for as long as the node does: one whose disks hang holds up no other.
pub(crate) async fn keep(core: CoreHandle, node: Weak<Inner>, name: String) {
    loop {
        // At once after a start: damage that was found then is reported before anybody reads it.
        if let Some(node) = node.upgrade() {
            for (volume, news) in node.journals.sample(&core, &name).await {
                log(&node, &name, volume, &news);
            }
        }
        core.sleep_until(core.now().after(PROBE_INTERVAL)).await;
        let Some(node) = node.upgrade() else { return };
        let mut pools = node.config.pools.iter();
        let Some(pool) = pools.find(|pool| pool.name == name) else {
            return;
        };
        let opened = node.pools().get(&name).cloned();
        if let Some(opened) = opened {
            opened.watch().await;
        }
        let Some(path) = &pool.journal else { continue };
        match node.journals.of(&pool.name) {
            PoolJournal::None => {}
            PoolJournal::Open(journal) => inspect_open(&node, pool, &journal).await,
            PoolJournal::Missing(_) => find_missing(&node, pool, path).await,
        }
    }
}

/// Logs what is new of a LUN in a journal.
fn log(node: &Inner, pool: &str, volume: VolumeId, news: &News) {
    let lun = node.lun_of(volume);
    match news {
        News::DestageError(why) => tracing::error!(
            pool,
            lun,
            "what the journal holds of it cannot be destaged, and stays there: {why}"
        ),
        News::Destages => tracing::info!(
            pool,
            lun,
            "what the journal holds of it can be destaged again"
        ),
        News::Lost { sectors, first } => {
            let all = node.lost_blocks(volume, &(*first..first + sectors));
            tracing::error!(
                pool,
                lun,
                "{} acknowledged blocks of it are damaged in the journal, the first at {}: reads of them fail until they \
                 are written again",
                all.blocks,
                all.lba
            );
        }
        News::Mended => tracing::info!(
            pool,
            lun,
            "all of its blocks that were damaged in the journal have been written again"
        ),
    }
}

/// A journal whose file was removed, or whose device was pulled, takes nothing more: what it
/// acknowledged would be lost with the program.
async fn inspect_open(node: &Rc<Inner>, pool: &Pool, journal: &Arc<Journal>) {
    if journal.is_in_place(&node.core).await {
        node.follow(&pool.name, journal).await;
        find_space(node, pool, journal).await;
        return;
    }
    let _turn = node.turn.lock().await;
    if !is_open_still(node, pool, journal) {
        return;
    }
    let (name, path) = (pool.name.as_str(), journal.path().display());
    tracing::error!(
        pool = name,
        "the journal {path} is gone from its place: its LUNs go offline, and what it holds is destaged"
    );
    let why = OpenError {
        kind: OpenErrorKind::Missing,
        cause: format!("the journal {path} is gone from its place"),
        next_step: "bring it back: its LUNs then go online by themselves; or give it up: causeway journal discard"
            .to_owned(),
    };
    node.take_away(pool, why, Some(DRAIN_TIME_MAX)).await;
}

fn is_open_still(node: &Inner, pool: &Pool, journal: &Arc<Journal>) -> bool {
    matches!(node.journals.of(&pool.name), PoolJournal::Open(now) if Arc::ptr_eq(&now, journal))
}

/// A journal whose file or device had no space for a write is opened anew when there is some. Until
/// then it stays as it is: what it has can be read.
async fn find_space(node: &Rc<Inner>, pool: &Pool, journal: &Arc<Journal>) {
    let (core, name) = (&node.core, pool.name.as_str());
    let status = journal.status(core).await;
    if !status.iter().any(|ring| ring.full) || !node.journals.is_due(name, core.now()) {
        return;
    }
    let begun = core.now();
    let has_space = journal.has_space_again(core).await;
    let wait = AGAIN.max(core.now().since(begun) * AGAIN_TIMES);
    node.journals.wait_until(name, core.now().after(wait));
    if !has_space {
        return;
    }
    let _turn = node.turn.lock().await;
    if !is_open_still(node, pool, journal) {
        return;
    }
    tracing::info!(
        pool = name,
        "there is space for the journal again: it is opened anew"
    );
    match node.reopen(pool).await {
        // Where the space that there is does not last, its LUNs do not come and go all the time.
        Ok(()) => node.journals.wait_until(name, core.now().after(wait)),
        Err(error) => tracing::error!(pool = name, "its journal cannot be used: {error}"),
    }
}

/// A journal that was away is opened as soon as it is there.
async fn find_missing(node: &Rc<Inner>, pool: &Pool, path: &Path) {
    if !is_there(&*node.core.files(), path).await && opening::was_made(node, pool).await {
        node.journals.saw_away(&pool.name);
        return;
    }
    if !node.journals.is_due(&pool.name, node.core.now()) {
        return;
    }
    let _turn = node.turn.lock().await;
    if !matches!(node.journals.of(&pool.name), PoolJournal::Missing(_)) {
        return;
    }
    let begun = node.core.now();
    let opened = node.bring_back(pool).await;
    let now = node.core.now();
    match opened {
        Ok(()) => tracing::info!(
            pool = pool.name,
            "the journal is back, and its LUNs with it"
        ),
        Err(error) => {
            let wait = AGAIN.max(now.since(begun) * AGAIN_TIMES);
            node.journals.tried(&pool.name, error, now.after(wait));
        }
    }
}

impl Inner {
    /// The LUNs in service that a pool holds.
    pub(crate) fn luns_of(&self, pool: &str) -> Vec<Lun> {
        let objects = self.objects.borrow();
        let luns = objects.luns.values();
        luns.filter(|lun| lun.backing.pool() == Some(pool))
            .cloned()
            .collect()
    }

    /// Takes a pool's LUNs offline and closes its journal; `drain`: after what it holds was
    /// destaged, if that can be done in time.
    pub(crate) async fn take_away(&self, pool: &Pool, why: OpenError, drain: Option<Duration>) {
        for lun in self.luns_of(&pool.name) {
            self.rest_scrub(&lun.naa).await;
            let unit = self.unit(&lun.naa);
            if let Some(unit) = unit.filter(|unit| unit.offline().is_none()) {
                let suspended = Rc::new(unit.suspend(&self.core, &lun, &why).await);
                self.units.borrow_mut().insert(lun.naa.clone(), suspended);
            }
        }
        let PoolJournal::Open(journal) = self.journals.of(&pool.name) else {
            self.journals.lose(&pool.name, why, None);
            return;
        };
        if let Some(time) = drain {
            let draining = Box::pin(journal.drain(&self.core));
            let timer = self.core.sleep_until(self.core.now().after(time));
            if let Either::Right(_) = select(draining, timer).await {
                tracing::warn!(pool = pool.name, "not all of the journal could be destaged");
            }
        }
        self.write_down(&pool.name, &journal).await;
        let destaged = all_destaged(&journal.status(&self.core).await);
        self.journals.lose(&pool.name, why, Some(journal));
        if destaged {
            self.journals.set_destaged(&pool.name);
        }
    }

    /// Opens a pool's journal, and brings its LUNs online.
    ///
    /// # Errors
    /// Why that cannot be done; nothing has changed then.
    pub(crate) async fn bring_back(self: &Rc<Self>, pool: &Pool) -> Result<(), OpenError> {
        self.end_old_journal(pool).await?;
        let opened = opening::open(self, pool).await?;
        if let PoolJournal::Open(journal) = &opened {
            opening::log(pool, journal);
        }
        self.journals.set(&pool.name, opened.clone());
        for lun in self.luns_of(&pool.name) {
            self.renew(&lun, &opened).await;
        }
        Ok(())
    }

    /// Waits until nothing is under way any more in a journal that was closed.
    pub(crate) async fn end_old_journal(&self, pool: &Pool) -> Result<(), OpenError> {
        let Some(old) = self.journals.ending(&pool.name) else {
            return Ok(());
        };
        let until = self.core.now().after(CLOSE_TIME_MAX);
        if old.end(&self.core, until).await {
            self.journals.ended(&pool.name);
            return Ok(());
        }
        Err(OpenError {
            kind: OpenErrorKind::Hung,
            cause: "something is still under way in the journal as it was open before".to_owned(),
            next_step: "look for a disk that does not answer; else restart the daemon".to_owned(),
        })
    }
}
