//! The LUN's read cache.

use super::door::{Layer, LayerKind, Opening, Over, put};
use crate::lun::geometry::block_size;
use layers::ReadCache;
use manifest::objects::{LayerFacts, ReadCacheFacts, Storage};
use manifest::size::Size;
use std::sync::Arc;
use volume::{Copies, Volume};

pub(crate) const KIND: LayerKind = LayerKind {
    name: "ReadCache",
    fields: &["read_cache"],
    make: Some(|_, lun, _| {
        let cache = ReadCache::new(bytes(&lun.storage), block_size(lun));
        Some(Box::new(Cached(cache)))
    }),
    ..LayerKind::BLANK
};

fn bytes(storage: &Storage) -> u64 {
    storage.read_cache.map_or(0, Size::bytes)
}

struct Cached(ReadCache);

impl Layer for Cached {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, _: &'a Opening<'a>) -> Over<'a> {
        put(&self.0, below)
    }

    fn copies(&self) -> Option<Box<dyn Copies>> {
        Some(Box::new(self.0.clone()))
    }

    fn set(&self, storage: &Storage) -> bool {
        let bytes = bytes(storage);
        let differs = bytes != self.0.bytes();
        if differs {
            self.0.set(bytes);
        }
        differs
    }

    fn report(&self, facts: &mut LayerFacts) {
        if self.0.bytes() == 0 {
            return;
        }
        let tally = self.0.tally();
        facts.cached = Some(ReadCacheFacts {
            hits: tally.hits,
            misses: tally.misses,
            bytes: tally.bytes,
        });
    }
}
