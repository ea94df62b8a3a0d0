//! The layers of a LUN over its blocks.

use crate::journal::opening::PoolJournal;
use crate::lun::checksums::{self, Checksums};
use crate::lun::unit::Ground;
use ::sidecar::Sidecar;
use env::CoreHandle;
use layers::limit::{Deferred, Rates};
use layers::{Limit, ReadCache, Share, Shares, WriteThrough};
use manifest::facts::{LimitFacts, ReadCacheFacts};
use manifest::objects::{self, Backing, CacheMode, Lun, Storage};
use manifest::size::Size;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use units::BlockSize;
use volume::{Fences, OpenError, Volume, over};
use write_back::{Journal, Mode, VolumeId, WriteBack};

/// Handles on the layers.
pub(crate) struct Layers {
    limit: Limit,
    read_cache: ReadCache,
    /// Its part of its pool, where it is in one.
    share: Option<Share>,
    cache: Cache,
    checksums: RefCell<Option<Checksums>>,
}

/// What the LUNs of each pool have in common, by the pool's name.
#[derive(Default)]
struct PoolShares(RefCell<BTreeMap<String, Shares>>);

fn share_of(core: &CoreHandle, lun: &Lun) -> Option<Share> {
    let Backing::Pool(pool) = &lun.backing else {
        return None;
    };
    let all = core.locals().get::<PoolShares>();
    let mut all = all.0.borrow_mut();
    let shares = all.entry(pool.clone()).or_insert_with(Shares::new);
    Some(shares.join(lun.storage.shares))
}

/// What keeps acknowledged writes.
enum Cache {
    /// Each by itself at home, or none.
    Through(WriteThrough),
    /// The pool's journal.
    Journal(Arc<WriteBack>),
}

impl Layers {
    /// Layers as the stored LUN says.
    pub(crate) async fn new(core: &CoreHandle, lun: &Lun) -> Self {
        let block_size = BlockSize::from_bytes(u64::from(lun.block_size));
        let block_size = block_size.expect("stored LUNs have 512 or 4096");
        let limit = Limit::new();
        limit.set(core, rates(&lun.storage.limit)).await;
        Self {
            limit,
            read_cache: ReadCache::new(cache_bytes(&lun.storage), block_size),
            share: share_of(core, lun),
            cache: Cache::Through(WriteThrough::new(is_stable(&lun.storage))),
            checksums: RefCell::default(),
        }
    }

    /// The LUN's blocks at home, checked where it has checksums; `journal`: what keeps its writes.
    ///
    /// # Errors
    /// The checksums cannot be used.
    pub(crate) async fn check(
        &mut self,
        core: &CoreHandle,
        ground: Ground<'_>,
        (name, lun): (&str, &Lun),
        home: Arc<dyn Volume>,
        journal: &PoolJournal,
    ) -> Result<Arc<dyn Volume>, OpenError> {
        if !lun.storage.integrity {
            // What an earlier switch left: nobody follows with it what is written from now on.
            checksums::retire(core, ground, lun).await?;
            return Ok(home);
        }
        let PoolJournal::Open(journal) = journal else {
            return Err(OpenError {
                cause: "its checksums need the pool's journal, and there is none".to_owned(),
                next_step: "name the journal in node.toml again".to_owned(),
            });
        };
        let doubts = || journal.unverified_blocks(journal_id(lun));
        let checksums = Checksums::open(core, ground, (name, lun), home, doubts).await?;
        let checked = checksums.volume();
        self.set_checksums(Some(checksums));
        Ok(checked)
    }

    /// Keeps the checksums that other layers of the LUN have.
    pub(crate) fn keep_checksums(&mut self, other: &Self) {
        self.set_checksums(other.checksums());
    }

    /// Its checksums, where it has some.
    pub(crate) fn checksums(&self) -> Option<Checksums> {
        self.checksums.borrow().clone()
    }

    /// It has these from now on, or none.
    pub(crate) fn set_checksums(&self, checksums: Option<Checksums>) {
        *self.checksums.borrow_mut() = checksums;
    }

    /// Has the pool's journal keep the writes of the LUN, which lies in `home`, and the history of
    /// its changes in a file.
    pub(crate) fn stand_on(
        &mut self,
        journal: &Arc<Journal>,
        lun: &Lun,
        (home, history): (&Arc<dyn Volume>, Option<Sidecar>),
        fences: &Fences,
    ) {
        let (journal, home) = (Arc::clone(journal), Arc::clone(home));
        let (id, mode) = (journal_id(lun), mode(lun.storage.cache_mode()));
        let volume = match history {
            Some(it) => WriteBack::with_history(journal, id, home, (fences.clone(), mode), it),
            None => WriteBack::new(journal, id, home, fences.clone(), mode),
        };
        if self.checksums.borrow().is_some() {
            volume.log_first();
        }
        volume.offer_to(self.read_cache.clone());
        self.cache = Cache::Journal(volume);
    }

    /// The LUN's part of the pool's journal, where it has one.
    pub(crate) fn journaled(&self) -> Option<&Arc<WriteBack>> {
        match &self.cache {
            Cache::Through(_) => None,
            Cache::Journal(volume) => Some(volume),
        }
    }

    /// The layers over `below`.
    pub(crate) fn over(&self, below: Arc<dyn Volume>) -> Arc<dyn Volume> {
        let stable = match &self.cache {
            Cache::Through(through) => over(through.clone(), below),
            Cache::Journal(volume) => Arc::<WriteBack>::clone(volume),
        };
        let shared = match &self.share {
            Some(share) => over(share.clone(), stable),
            None => stable,
        };
        over(self.limit.clone(), over(self.read_cache.clone(), shared))
    }

    /// Brings the limit and the shares into force at once.
    pub(crate) async fn set_limit(&self, core: &CoreHandle, storage: &Storage) {
        self.limit.set(core, rates(&storage.limit)).await;
        if let Some(share) = &self.share {
            share.set(storage.shares);
        }
    }

    /// What lanes do that are opened from now on; `true`: they must be opened for it.
    pub(crate) fn set(&self, storage: &Storage) -> bool {
        let bytes = cache_bytes(storage);
        let mut anew = self.cache.set(storage);
        if bytes != self.read_cache.bytes() {
            self.read_cache.set(bytes);
            anew = true;
        }
        anew
    }

    pub(crate) fn limited(&self) -> Option<LimitFacts> {
        let facts = facts_of(&self.limit.deferred());
        (self.limit.is_set() || facts != LimitFacts::default()).then_some(facts)
    }

    pub(crate) fn shared(&self) -> Option<LimitFacts> {
        let facts = facts_of(&self.share.as_ref()?.deferred());
        Some(facts).filter(|facts| *facts != LimitFacts::default())
    }

    pub(crate) fn cached(&self) -> Option<ReadCacheFacts> {
        if self.read_cache.bytes() == 0 {
            return None;
        }
        let tally = self.read_cache.tally();
        Some(ReadCacheFacts {
            hits: tally.hits,
            misses: tally.misses,
            bytes: tally.bytes,
        })
    }
}

fn facts_of(deferred: &Deferred) -> LimitFacts {
    LimitFacts {
        deferred: deferred.operations,
        waited_us: u64::try_from(deferred.waited.as_micros()).unwrap_or(u64::MAX),
        waiting: u64::try_from(deferred.waiting).unwrap_or(u64::MAX),
    }
}

impl Cache {
    /// Switches; `false` where it is so already.
    fn set(&self, storage: &Storage) -> bool {
        match self {
            Self::Through(through) => {
                let differs = is_stable(storage) != through.is_on();
                through.set(is_stable(storage));
                differs
            }
            Self::Journal(volume) => {
                let mode = mode(storage.cache_mode());
                let differs = mode != volume.mode();
                volume.set_mode(mode);
                differs
            }
        }
    }
}

/// How the layer says it.
fn mode(cache: CacheMode) -> Mode {
    match cache {
        CacheMode::WriteThrough => Mode::WriteThrough,
        CacheMode::WriteBack => Mode::WriteBack,
        CacheMode::Volatile => Mode::Volatile,
    }
}

/// What the journal knows the LUN by: its own number, which no other has.
pub(crate) fn journal_id(lun: &Lun) -> VolumeId {
    let number = u128::from_str_radix(&lun.naa, 16);
    let low = number.unwrap_or_default() & u128::from(u64::MAX);
    VolumeId(u64::try_from(low).expect("64 bits"))
}

fn is_stable(storage: &Storage) -> bool {
    storage.cache_mode() != CacheMode::Volatile
}

fn cache_bytes(storage: &Storage) -> u64 {
    storage.read_cache.map_or(0, Size::bytes)
}

fn rates(limit: &objects::Limit) -> Rates {
    Rates {
        iops: limit.iops,
        bytes_per_second: limit.bytes_per_second.map(Size::bytes),
        burst: Duration::from_secs(u64::from(limit.burst_seconds.unwrap_or(0))),
    }
}
