//! The LUN's checksums, between its backing volume and what keeps its writes.

use super::cache::journal_id;
use super::door::{KeepsSidecar, Layer, LayerKind, Opening, Over};
use super::handles::Handles;
use crate::backend::door::{Doing, done};
use crate::backend::pools::Ground;
use crate::journal::pool_journal::PoolJournal;
use crate::lun::checksums::{self, Checksums};
use env::CoreHandle;
use manifest::objects::{LayerFacts, Lun};
use manifest::problem::Problem;
use std::rc::Rc;
use std::sync::Arc;
use volume::{OpenError, OpenErrorKind, Volume};

pub(crate) const KIND: LayerKind = LayerKind {
    name: "Integrity",
    fields: &["integrity"],
    make: Some(|_, _, handles| Some(Box::new(Checking(Rc::clone(handles))))),
    sidecar: Some(&Map),
};

/// The map of a LUN's checksums.
struct Map;

/// Every LUN has the layer: its checksums come between, and go, while hosts work.
struct Checking(Rc<Handles>);

impl Checking {
    async fn stand(
        &self,
        base: Arc<dyn Volume>,
        opening: &Opening<'_>,
    ) -> Result<Arc<dyn Volume>, OpenError> {
        self.0.set_unchecked(&base);
        let Opening {
            core,
            ground,
            name,
            lun,
            journal,
        } = *opening;
        if !lun.storage.is_checked() {
            // What an earlier switch left: nobody follows with it what is written from now on.
            checksums::retire(core, ground, lun).await?;
            return Ok(base);
        }
        let PoolJournal::Open(journal) = journal else {
            return Err(OpenError {
                kind: OpenErrorKind::Refused,
                cause: "its checksums need the pool's journal, and there is none".to_owned(),
                next_step: "name the journal in node.toml again".to_owned(),
            });
        };
        let unverified = || journal.unverified_blocks(journal_id(lun));
        let checksums = Checksums::open(core, ground, (name, lun), base, unverified).await?;
        let checked = checksums.volume();
        self.0.set_checksums(Some(checksums));
        Ok(checked)
    }
}

impl Layer for Checking {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, opening: &'a Opening<'a>) -> Over<'a> {
        Box::pin(self.stand(below, opening))
    }

    fn report(&self, facts: &mut LayerFacts) {
        facts.checksums = self.0.checksums().as_ref().map(Checksums::facts);
    }
}

impl KeepsSidecar for Map {
    fn create<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
    ) -> Doing<'a, Result<(), Problem>> {
        if lun.backing.pool().is_none() || !lun.storage.is_checked() {
            return done(Ok(()));
        }
        Box::pin(checksums::create(core, ground, lun))
    }

    fn create_later<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
    ) -> Doing<'a, Result<(), Problem>> {
        Box::pin(checksums::create_later(core, ground, lun))
    }

    fn retire<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
    ) -> Doing<'a, Result<(), OpenError>> {
        Box::pin(checksums::retire(core, ground, lun))
    }

    fn grow<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
        _: &'a PoolJournal,
    ) -> Doing<'a, Result<(), Problem>> {
        Box::pin(checksums::grow(core, ground, lun))
    }
}
