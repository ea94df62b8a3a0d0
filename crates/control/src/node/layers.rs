//! The layers of a LUN that are set while it serves.

use crate::engine::{LimitFacts, ReadCacheFacts};
use crate::objects::{self, CacheMode, Lun, Storage};
use crate::size::Size;
use env::CoreHandle;
use layers::limit::Rates;
use layers::{Limit, ReadCache, WriteThrough, over};
use std::sync::Arc;
use std::time::Duration;
use units::BlockSize;
use volume::Volume;

/// Handles on the layers.
pub(super) struct Layers {
    limit: Limit,
    read_cache: ReadCache,
    write_through: WriteThrough,
}

impl Layers {
    /// Layers as the stored LUN says.
    pub(super) async fn new(core: &CoreHandle, lun: &Lun) -> Self {
        let block_size = BlockSize::from_bytes(u64::from(lun.block_size));
        let block_size = block_size.expect("stored LUNs have 512 or 4096");
        let limit = Limit::new();
        limit.set(core, rates(&lun.storage.limit)).await;
        Self {
            limit,
            read_cache: ReadCache::new(cache_bytes(&lun.storage), block_size),
            write_through: WriteThrough::new(is_stable(&lun.storage)),
        }
    }

    /// The layers over `below`.
    pub(super) fn over(&self, below: Arc<dyn Volume>) -> Arc<dyn Volume> {
        let stable = over(self.write_through.clone(), below);
        over(self.limit.clone(), over(self.read_cache.clone(), stable))
    }

    /// Brings the limit into force at once.
    pub(super) async fn set_limit(&self, core: &CoreHandle, storage: &Storage) {
        self.limit.set(core, rates(&storage.limit)).await;
    }

    /// What lanes do that are opened from now on; `true`: they must be opened for it.
    pub(super) fn set(&self, storage: &Storage) -> bool {
        let (stable, bytes) = (is_stable(storage), cache_bytes(storage));
        let mut anew = false;
        if stable != self.write_through.is_on() {
            self.write_through.set(stable);
            anew = true;
        }
        if bytes != self.read_cache.bytes() {
            self.read_cache.set(bytes);
            anew = true;
        }
        anew
    }

    pub(super) fn limited(&self) -> Option<LimitFacts> {
        let deferred = self.limit.deferred();
        let waited = u64::try_from(deferred.waited.as_micros()).unwrap_or(u64::MAX);
        let facts = LimitFacts {
            deferred: deferred.operations,
            waited_us: waited,
            waiting: u64::try_from(deferred.waiting).unwrap_or(u64::MAX),
        };
        (self.limit.is_set() || facts != LimitFacts::default()).then_some(facts)
    }

    pub(super) fn cached(&self) -> Option<ReadCacheFacts> {
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
