//! What keeps the LUN's acknowledged writes: the pool's journal, or the backing volume, or nothing.
//!
//! In a pool with a journal all modes stand over the journal, so that a change of mode leaves
//! nothing behind.

use super::door::{KeepsSidecar, Layer, LayerKind, Opening, Over, put};
use super::handles::Handles;
use crate::backend::door::{Work, done};
use crate::backend::pools::Ground;
use crate::journal::pool_journal::PoolJournal;
use crate::lun::failed::of_pool;
use crate::lun::sidecar;
use ::sidecar::{Sidecar, SidecarKind};
use env::CoreHandle;
use layers::WriteThrough;
use manifest::objects::{CacheMode, Lun, Storage};
use manifest::problem::Problem;
use std::rc::Rc;
use std::sync::Arc;
use volume::{OpenError, Volume};
use write_back::{Journal, Mode, VolumeId, WriteBack};

pub(crate) const KIND: LayerKind = LayerKind {
    name: "WriteThrough or WriteBack",
    fields: &["cache"],
    make: Some(|_, lun, handles| {
        Some(Box::new(Cache {
            through: WriteThrough::new(is_stable(&lun.storage)),
            handles: Rc::clone(handles),
        }))
    }),
    sidecar: Some(&History),
};

/// The history of a LUN's changes, which the journal keeps for it.
struct History;

struct Cache {
    /// Where there is no journal.
    through: WriteThrough,
    handles: Rc<Handles>,
}

impl Cache {
    /// Has the pool's journal keep the writes of the LUN, which lies in `base`, and the history of
    /// its changes.
    async fn stand_on(
        &self,
        journal: &Arc<Journal>,
        base: Arc<dyn Volume>,
        ground: Ground<'_>,
        lun: &Lun,
    ) -> Arc<dyn Volume> {
        let history = history(ground, lun, journal).await;
        let (journal, fences) = (Arc::clone(journal), self.handles.parts.fences.clone());
        let (id, mode) = (journal_id(lun), mode(lun.storage.cache_mode()));
        let volume = match history {
            Some(it) => WriteBack::with_history(journal, id, base, (fences, mode), it),
            None => WriteBack::new(journal, id, base, fences, mode),
        };
        if self.handles.checksums().is_some() {
            volume.log_first();
        }
        self.handles.set_journaled(&volume);
        volume
    }
}

impl Layer for Cache {
    fn over<'a>(&'a self, below: Arc<dyn Volume>, opening: &'a Opening<'a>) -> Over<'a> {
        match opening.journal {
            PoolJournal::Open(journal) => Box::pin(async move {
                let volume = self.stand_on(journal, below, opening.ground, opening.lun);
                Ok::<_, OpenError>(volume.await)
            }),
            PoolJournal::None | PoolJournal::Missing(_) => put(&self.through, below),
        }
    }

    fn set(&self, storage: &Storage) -> bool {
        match self.handles.journaled() {
            None => {
                let differs = is_stable(storage) != self.through.is_on();
                self.through.set(is_stable(storage));
                differs
            }
            Some(volume) => {
                let mode = mode(storage.cache_mode());
                let differs = mode != volume.mode();
                volume.set_mode(mode);
                differs
            }
        }
    }

    fn destage<'a>(&'a self, core: &'a CoreHandle) -> Work<'a, ()> {
        match self.handles.journaled() {
            Some(volume) => Box::pin(volume.destage(core)),
            None => done(()),
        }
    }

    fn release<'a>(&'a self, core: &'a CoreHandle) -> Work<'a, ()> {
        match self.handles.journaled() {
            Some(volume) => Box::pin(volume.release(core)),
            None => done(()),
        }
    }

    fn leave<'a>(&'a self, core: &'a CoreHandle) -> Work<'a, ()> {
        match self.handles.journaled() {
            Some(volume) => Box::pin(volume.leave(core)),
            None => done(()),
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

fn is_stable(storage: &Storage) -> bool {
    storage.cache_mode() != CacheMode::Volatile
}

/// What the journal knows the LUN by: its own number, which no other has.
pub(crate) fn journal_id(lun: &Lun) -> VolumeId {
    let number = u128::from_str_radix(&lun.naa, 16);
    let low = number.unwrap_or_default() & u128::from(u64::MAX);
    VolumeId(u64::try_from(low).expect("64 bits"))
}

/// Bytes that the history of a LUN may come to take in this journal.
fn history_bytes(lun: &Lun, journal: &Journal) -> u64 {
    write_back::history_bytes(journal.rings(), lun.size.bytes())
}

/// Where the history of a LUN stands; `None` where it has none.
async fn history(ground: Ground<'_>, lun: &Lun, journal: &Journal) -> Option<Sidecar> {
    let bytes = history_bytes(lun, journal);
    sidecar::stand(ground, (lun, SidecarKind::Changes), bytes, true).await
}

impl KeepsSidecar for History {
    fn grow<'a>(
        &'a self,
        _: &'a CoreHandle,
        ground: Ground<'a>,
        lun: &'a Lun,
        journal: &'a PoolJournal,
    ) -> Work<'a, Result<(), Problem>> {
        let PoolJournal::Open(journal) = journal else {
            return done(Ok(()));
        };
        let bytes = history_bytes(lun, journal);
        Box::pin(async move {
            let grown = sidecar::grow(ground, (lun, SidecarKind::Changes), bytes).await;
            grown.map_err(|error| of_pool(&error))
        })
    }
}
