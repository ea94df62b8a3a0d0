//! How long each operation of the LUN waits.

use super::deferred::facts_of;
use super::door::{Layer, LayerKind, Opening, Over, put};
use crate::backend::door::{Doing, done};
use env::CoreHandle;
use layers::Delay;
use manifest::objects::{LayerFacts, Storage, WaitFacts};
use std::sync::Arc;
use std::time::Duration;
use volume::Volume;

pub(crate) const KIND: LayerKind = LayerKind {
    name: "Delay",
    fields: &["delay_us"],
    make: Some(|_, _, _| Some(Box::new(Delayed(Delay::new())))),
};

struct Delayed(Delay);

impl Layer for Delayed {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, _: &'a Opening<'a>) -> Over<'a> {
        put(&self.0, below)
    }

    fn set_now<'a>(&'a self, _: &'a CoreHandle, storage: &'a Storage) -> Doing<'a, ()> {
        let micros = storage.delay_us.unwrap_or(0);
        self.0.set(Duration::from_micros(u64::from(micros)));
        done(())
    }

    fn report(&self, facts: &mut LayerFacts) {
        let delayed = facts_of(&self.0.deferred());
        let is_known = !self.0.get().is_zero() || delayed != WaitFacts::default();
        facts.delayed = is_known.then_some(delayed);
    }

    fn waiting(&self) -> u64 {
        facts_of(&self.0.deferred()).waiting
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use env::sim::{World, WorldConfig};

    #[test]
    fn a_delay_is_set_and_lifted_live_and_reported_while_there_is_one() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("node");
        let core = node.core(0);
        let test = async move {
            let layer = Delayed(Delay::new());
            let reported = |layer: &Delayed| {
                let mut facts = LayerFacts::default();
                layer.report(&mut facts);
                facts.delayed
            };
            assert_eq!(reported(&layer), None);
            for (wanted, micros, is_reported) in [(Some(500), 500, true), (None, 0, false)] {
                let storage = Storage {
                    delay_us: wanted,
                    ..Storage::default()
                };
                layer.set_now(&core, &storage).await;
                assert_eq!(layer.0.get(), Duration::from_micros(micros));
                let facts = is_reported.then(WaitFacts::default);
                assert_eq!((reported(&layer), layer.waiting()), (facts, 0));
            }
        };
        let minute = Duration::from_secs(60);
        world.block_on(&node, minute, test).unwrap();
    }
}
