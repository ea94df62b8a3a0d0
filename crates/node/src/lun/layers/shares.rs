//! The LUN's part of its pool, where LUNs of it compete.

use super::deferred::facts_of;
use super::door::{Layer, LayerKind, Opening, Over, put};
use super::handles::Handles;
use crate::backend::door::{Work, done};
use env::CoreHandle;
use layers::{Share, Shares};
use manifest::objects::{LayerFacts, Lun, Storage, WaitFacts};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use volume::Volume;

pub(crate) const KIND: LayerKind = LayerKind {
    name: "Share",
    fields: &["shares"],
    make: Some(join),
    ..LayerKind::BLANK
};

/// What the LUNs of each pool have in common, by the pool's name.
#[derive(Default)]
struct PoolShares(RefCell<BTreeMap<String, Shares>>);

fn join(core: &CoreHandle, lun: &Lun, _: &Rc<Handles>) -> Option<Box<dyn Layer>> {
    let pool = lun.backing.pool()?;
    let all = core.locals().get::<PoolShares>();
    let mut all = all.0.borrow_mut();
    let shares = all.entry(pool.to_owned()).or_insert_with(Shares::new);
    Some(Box::new(Shared(shares.join(lun.storage.shares))))
}

struct Shared(Share);

impl Layer for Shared {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, _: &'a Opening<'a>) -> Over<'a> {
        put(&self.0, below)
    }

    fn set_now<'a>(&'a self, _: &'a CoreHandle, storage: &'a Storage) -> Work<'a, ()> {
        self.0.set(storage.shares);
        done(())
    }

    fn report(&self, facts: &mut LayerFacts) {
        let shared = facts_of(&self.0.deferred());
        facts.shared = Some(shared).filter(|shared| *shared != WaitFacts::default());
    }

    fn waiting(&self) -> u64 {
        facts_of(&self.0.deferred()).waiting
    }
}
