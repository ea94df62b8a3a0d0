//! The LUN's checksums, between its backing volume and what keeps its writes.

use super::cache::journal_id;
use super::checksums::{self, Checksums};
use super::door::{Base, KeepsSidecar, Layer, LayerKind, Opening, Over, Rest};
use super::handles::Handles;
use crate::backend::door::{Work, done};
use crate::backend::pools::Ground;
use crate::journal::pool_journal::PoolJournal;
use env::CoreHandle;
use layers::integrity::IntegrityLane;
use manifest::objects::{LayerFacts, Lun};
use manifest::problem::Problem;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::BlockCount;
use volume::{OpenError, OpenErrorKind, UnverifiedBlocks, Volume};

/// How long what is under way in the backing volume may take to end, for checksums to come between
/// or to go.
const EXCHANGE_TIME_MAX: Duration = Duration::from_secs(5);

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

    async fn come_between(
        &self,
        core: &CoreHandle,
        ground: Ground<'_>,
        named: (&str, &Lun),
    ) -> Result<(), OpenError> {
        let (Some(bare), Some(journaled)) = (self.0.unchecked(), self.0.journaled()) else {
            return Err(not_journaled());
        };
        // It is new: no block of it is unverified.
        let opened = Checksums::open(
            core,
            ground,
            named,
            Arc::clone(bare),
            UnverifiedBlocks::default,
        );
        let checksums = opened.await?;
        let until = core.now().after(EXCHANGE_TIME_MAX);
        let exchanged = journaled.exchange(core, checksums.volume(), true, until);
        if let Err(error) = exchanged.await {
            checksums.give_up();
            return Err(error);
        }
        self.0.set_checksums(Some(checksums));
        Ok(())
    }

    async fn go(&self, core: &CoreHandle) -> Result<Option<Rest>, OpenError> {
        let Some(checksums) = self.0.checksums() else {
            return Ok(None);
        };
        let (Some(bare), Some(journaled)) = (self.0.unchecked(), self.0.journaled()) else {
            return Err(not_journaled());
        };
        let until = core.now().after(EXCHANGE_TIME_MAX);
        let exchanged = journaled.exchange(core, Arc::clone(bare), false, until);
        exchanged.await?;
        self.0.set_checksums(None);
        Ok(Some(Box::new(move || checksums.give_up())))
    }
}

fn not_journaled() -> OpenError {
    OpenError {
        kind: OpenErrorKind::Refused,
        cause: "checksums need the pool's journal, and it is not in use for this LUN".to_owned(),
        next_step: "causeway pool show shows how the journal is".to_owned(),
    }
}

impl Layer for Checking {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, opening: &'a Opening<'a>) -> Over<'a> {
        Box::pin(self.stand(below, opening))
    }

    fn report(&self, facts: &mut LayerFacts) {
        facts.checksums = self.0.checksums().as_ref().map(Checksums::facts);
    }

    fn rename(&self, name: &str) {
        if let Some(checksums) = self.0.checksums() {
            checksums.rename(name);
        }
    }

    fn reaches(&self, blocks: BlockCount) -> Result<(), OpenError> {
        let checksums = self.0.checksums();
        checksums.map_or(Ok(()), |checksums| checksums.reaches(blocks))
    }

    fn reshape<'a>(&'a self, core: &'a CoreHandle) -> Work<'a, Result<(), OpenError>> {
        match self.0.checksums() {
            Some(checksums) => Box::pin(async move { checksums.reshape(core).await }),
            None => done(Ok(())),
        }
    }

    fn close<'a>(&'a self, core: &'a CoreHandle) -> Work<'a, ()> {
        match self.0.checksums() {
            Some(checksums) => Box::pin(async move { checksums.close(core).await }),
            None => done(()),
        }
    }

    fn base<'a>(
        &'a self,
        core: &'a CoreHandle,
        _: &Arc<dyn Volume>,
    ) -> Option<Work<'a, Result<Base, OpenError>>> {
        let checksums = self.0.checksums()?;
        Some(Box::pin(async move {
            let lane = checksums.lane(core).await?;
            Ok(Base {
                shape: checksums.volume().shape(),
                lane: Rc::<IntegrityLane>::clone(&lane),
                map: Some(lane),
            })
        }))
    }

    fn switch_on<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        named: (&'a str, &'a Lun),
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(self.come_between(core, ground, named))
    }

    fn switch_off<'a>(&'a self, core: &'a CoreHandle) -> Work<'a, Result<Option<Rest>, OpenError>> {
        Box::pin(self.go(core))
    }
}

impl KeepsSidecar for Map {
    fn create<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
    ) -> Work<'a, Result<(), Problem>> {
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
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(checksums::create_later(core, ground, lun))
    }

    fn retire<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(checksums::retire(core, ground, lun))
    }

    fn grow<'a>(
        &'a self,
        core: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
        _: &'a PoolJournal,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(checksums::grow(core, ground, lun))
    }
}
