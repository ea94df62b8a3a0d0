//! What all cores have in common.

use crate::digest_errors::DigestErrors;
use crate::ended::Ended;
use crate::export::{Export, ExportedTarget};
use crate::hardware::Hardware;
use crate::listening::{ListeningAt, PortalStatus};
use crate::load::Loads;
use crate::login_places::LoginPlaces;
use crate::moves::Moves;
use crate::refusals::Refusals;
use env::CoreHandle;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock, RwLockReadGuard};

/// What all cores share. Nothing of it is touched per command.
pub(crate) struct Shared {
    export: Mutex<Arc<Export>>,
    export_version: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
    removed: Mutex<Removed>,
    portals: Mutex<Portals>,
    hardware: Mutex<Arc<Hardware>>,
    loads: Loads,
    /// Held by whoever asks all cores about sessions; sessions that move have it to themselves
    /// meanwhile.
    going: Arc<RwLock<()>>,
    moves: Moves,
    digest_errors: DigestErrors,
    login_places: Arc<LoginPlaces>,
    refusals: Refusals,
    /// The initiator by whose name the node tries its own portals.
    probe_name: OnceLock<String>,
    ended: Ended,
}

/// Targets that were exported in this process and are no more, newest last.
#[derive(Default)]
struct Removed(VecDeque<Arc<ExportedTarget>>);

/// How many removed targets are remembered.
const REMOVED_MAX: usize = 256;

impl Removed {
    fn follow(&mut self, old: &Export, new: &Export) {
        self.0.retain(|target| new.target(&target.name).is_none());
        let gone = old.targets.iter();
        let gone = gone.filter(|target| new.target(&target.name).is_none());
        self.0.extend(gone.cloned());
        let surplus = self.0.len().saturating_sub(REMOVED_MAX);
        self.0.drain(..surplus);
    }
}

#[derive(Default)]
struct Portals {
    status: Vec<PortalStatus>,
    listening: Arc<Vec<ListeningAt>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(export: Export, cores: u16) -> Self {
        Self {
            export: Mutex::new(Arc::new(export)),
            export_version: AtomicU64::new(0),
            waiting: Mutex::default(),
            removed: Mutex::default(),
            portals: Mutex::default(),
            hardware: Mutex::default(),
            loads: Loads::new(cores),
            going: Arc::default(),
            moves: Moves::default(),
            digest_errors: DigestErrors::default(),
            login_places: Arc::default(),
            refusals: Refusals::default(),
            probe_name: OnceLock::new(),
            ended: Ended::default(),
        }
    }

    pub(crate) fn export(&self) -> Arc<Export> {
        Arc::clone(&locked(&self.export))
    }

    pub(crate) fn export_version(&self) -> u64 {
        self.export_version.load(Ordering::Acquire)
    }

    /// Ready once an export newer than `seen` was published.
    pub(crate) fn poll_export(&self, cx: &mut Context<'_>, seen: u64) -> Poll<()> {
        let mut waiting = locked(&self.waiting);
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        drop(waiting);
        if self.export_version() == seen {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// A target of this name was exported once, with something granted to `initiator`, and is no
    /// more.
    pub(crate) fn was_removed(&self, target: &str, initiator: &str) -> bool {
        let removed = locked(&self.removed);
        let mut removed = removed.0.iter();
        removed.any(|one| one.name.eq_ignore_ascii_case(target) && one.view(initiator).is_some())
    }

    pub(crate) fn publish(&self, export: &Arc<Export>) {
        let old = std::mem::replace(&mut *locked(&self.export), Arc::clone(export));
        locked(&self.removed).follow(&old, export);
        self.export_version.fetch_add(1, Ordering::AcqRel);
        for waker in std::mem::take(&mut *locked(&self.waiting)) {
            waker.wake();
        }
    }

    pub(crate) fn set_portals(&self, status: Vec<PortalStatus>, listening: Vec<ListeningAt>) {
        *locked(&self.portals) = Portals {
            status,
            listening: Arc::new(listening),
        };
    }

    pub(crate) fn listening(&self) -> Arc<Vec<ListeningAt>> {
        Arc::clone(&locked(&self.portals).listening)
    }

    pub(crate) fn portal_status(&self) -> Vec<PortalStatus> {
        locked(&self.portals).status.clone()
    }

    pub(crate) fn set_hardware(&self, hardware: Hardware) {
        *locked(&self.hardware) = Arc::new(hardware);
    }

    pub(crate) fn hardware(&self) -> Arc<Hardware> {
        Arc::clone(&locked(&self.hardware))
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(crate) fn probe_name(&self, core: &CoreHandle) -> &str {
        self.probe_name.get_or_init(|| {
            let mut random = [0; 16];
            core.fill_random(&mut random);
            let random = u128::from_le_bytes(random);
            format!("iqn.2026-11.io.causeway:probe-{random:032x}")
        })
    }

    /// The node itself tries whether a target is here.
    pub(crate) fn is_probe(&self, initiator: &str) -> bool {
        self.probe_name.get().is_some_and(|name| name == initiator)
    }

    pub(crate) fn ended(&self) -> &Ended {
        &self.ended
    }

    pub(crate) fn login_places(&self) -> &Arc<LoginPlaces> {
        &self.login_places
    }

    /// While it is held, each session is on exactly one core, and the directory knows which.
    pub(crate) async fn keep_going(&self) -> RwLockReadGuard<'_, ()> {
        self.going.read().await
    }

    /// Lets sessions go from core to core; `None` while somebody counts on them being where they
    /// are.
    pub(crate) fn stand_still(&self) -> Option<OwnedRwLockWriteGuard<()>> {
        Arc::clone(&self.going).try_write_owned().ok()
    }

    pub(crate) fn moves(&self) -> &Moves {
        &self.moves
    }

    pub(crate) fn digest_errors(&self) -> &DigestErrors {
        &self.digest_errors
    }

    pub(crate) fn loads(&self) -> &Loads {
        &self.loads
    }
}
