//! The LUN's limit of operations and bytes a second.

use super::deferred::facts_of;
use super::door::{Layer, LayerKind, Opening, Over, put};
use crate::backend::door::Work;
use env::CoreHandle;
use layers::Limit;
use layers::limit::Rates;
use manifest::objects::{self, LayerFacts, Storage, WaitFacts};
use manifest::size::Size;
use std::sync::Arc;
use std::time::Duration;
use volume::Volume;

pub(crate) const KIND: LayerKind = LayerKind {
    name: "Limit",
    fields: &["limit"],
    make: Some(|_, _, _| Some(Box::new(Limited(Limit::new())))),
    ..LayerKind::BLANK
};

struct Limited(Limit);

impl Layer for Limited {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, _: &'a Opening<'a>) -> Over<'a> {
        put(&self.0, below)
    }

    fn set_now<'a>(&'a self, core: &'a CoreHandle, storage: &'a Storage) -> Work<'a, ()> {
        Box::pin(self.0.set(core, rates(&storage.limit.unwrap_or_default())))
    }

    fn report(&self, facts: &mut LayerFacts) {
        let limited = facts_of(&self.0.deferred());
        let is_known = self.0.is_set() || limited != WaitFacts::default();
        facts.limited = is_known.then_some(limited);
    }

    fn waiting(&self) -> u64 {
        facts_of(&self.0.deferred()).waiting
    }
}

fn rates(limit: &objects::Limit) -> Rates {
    Rates {
        iops: limit.iops,
        bytes_per_second: limit.bytes_per_second.map(Size::bytes),
        burst: Duration::from_secs(u64::from(limit.burst_seconds.unwrap_or(0))),
    }
}
