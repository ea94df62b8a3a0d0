//! The front as its owner sees it: publish what is exported, ask what goes on.

use crate::digest_errors::DigestErrors;
use crate::export::{Export, ExportedTarget};
use crate::hardware::Hardware;
use crate::load::{CoreLoad, Loads};
use crate::login_places::LoginPlaces;
use crate::placement::Moves;
use crate::portal::{ListeningAt, PortalStatus};
use crate::refusals::Refusals;
use crate::session::{self, SessionInfo, SessionNumber};
use env::{CoreHandle, CoreId, call_all};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    login_places: LoginPlaces,
    refusals: Refusals,
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

    fn publish(&self, export: &Arc<Export>) {
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

    pub(crate) fn hardware(&self) -> Arc<Hardware> {
        Arc::clone(&locked(&self.hardware))
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(crate) fn login_places(&self) -> &LoginPlaces {
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

/// The front. Cloning shares it.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Starts the front on the core that calls, which must be core 0.
    #[must_use]
    pub fn start(core: &CoreHandle, export: Export) -> Self {
        assert_eq!(
            core.id(),
            CoreId(0),
            "portals and the session directory live on core 0"
        );
        let shared = Arc::new(Shared {
            export: Mutex::new(Arc::new(export)),
            export_version: AtomicU64::new(0),
            waiting: Mutex::default(),
            removed: Mutex::default(),
            portals: Mutex::default(),
            hardware: Mutex::default(),
            loads: Loads::new(core.core_count()),
            going: Arc::default(),
            moves: Moves::default(),
            digest_errors: DigestErrors::default(),
            login_places: LoginPlaces::default(),
            refusals: Refusals::default(),
        });
        let portals = crate::portal::run(Rc::clone(core), Arc::clone(&shared));
        core.spawn(Box::pin(portals));
        let measure = crate::placement::measure(Rc::clone(core), Arc::clone(&shared));
        core.spawn(Box::pin(measure));
        Self { shared }
    }

    /// The export in force.
    #[must_use]
    pub fn export(&self) -> Arc<Export> {
        self.shared.export()
    }

    /// Says what the machine's network ports are, for initiators that ask; the last word counts.
    pub fn tell_hardware(&self, hardware: Hardware) {
        *locked(&self.shared.hardware) = Arc::new(hardware);
    }

    /// Connections there are, logged in or not.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.loads().connections()
    }

    /// Replaces the export. When this returns, every session works with it: units that were taken
    /// away are closed, and those whose units changed have been told. A session that lost its
    /// target, or all that it was granted, goes on without units; where another target has the name
    /// of its own, it has ended.
    pub async fn publish(&self, core: &CoreHandle, export: Export) {
        let export = Arc::new(export);
        let _going = self.shared.keep_going().await;
        self.shared.publish(&export);
        call_all(core, move |core| {
            session::adopt_export(core, Arc::clone(&export))
        })
        .await;
    }

    /// Every portal, listening or not.
    #[must_use]
    pub fn portals(&self) -> Vec<PortalStatus> {
        locked(&self.shared.portals).status.clone()
    }

    /// Logins that were refused lately, newest first.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.shared.refusals
    }

    /// Every session on every core, by number.
    pub async fn sessions(&self, core: &CoreHandle) -> Vec<SessionInfo> {
        let _going = self.shared.keep_going().await;
        let per_core = call_all(core, session::list).await;
        let mut all: Vec<SessionInfo> = per_core.into_iter().flatten().collect();
        all.sort_by_key(|session| session.number);
        all
    }

    /// What every core does, by number.
    pub async fn cores(&self, core: &CoreHandle) -> Vec<CoreLoad> {
        let busy = call_all(core, |core| {
            let busy = (core.id(), core.busy());
            Box::pin(async move { busy })
        })
        .await;
        let loads = self.shared.loads.all();
        let told = busy.into_iter().map(|(core, busy)| {
            let load = loads.get(usize::from(core.0)).copied();
            let (load, connections) = load.unwrap_or_default();
            CoreLoad {
                core,
                busy,
                load,
                connections,
            }
        });
        told.collect()
    }

    /// Sessions that have gone from one core to another, and those that did not come to rest in
    /// time.
    #[must_use]
    pub fn moves(&self) -> (u64, u64) {
        self.shared.moves.read()
    }

    /// PDUs whose header, and whose data, did not match its digest, since the start.
    #[must_use]
    pub fn digest_errors(&self) -> (u64, u64) {
        self.shared.digest_errors.read()
    }

    /// Asks a session to go to another core, which it does as soon as nothing of it is in progress;
    /// `false` where there is none of this number, or no such core. It is not waited for, and may
    /// be given up.
    pub async fn move_session(&self, core: &CoreHandle, number: SessionNumber, to: CoreId) -> bool {
        if to.0 >= core.core_count() {
            return false;
        }
        let _going = self.shared.keep_going().await;
        let asked = call_all(core, move |core| {
            let asked = session::ask_to_move(core, number, to);
            Box::pin(async move { asked })
        });
        asked.await.contains(&true)
    }

    /// Ends a session; its initiator is free to log in again. `false` where there is none of this
    /// number.
    pub async fn drop_session(&self, core: &CoreHandle, number: SessionNumber) -> bool {
        let _going = self.shared.keep_going().await;
        let dropped = call_all(core, move |core| {
            session::end(core, number, session::EndReason::Dropped)
        })
        .await;
        dropped.contains(&true)
    }

    /// Asks every initiator to log out and, after `grace`, ends what is left. No login is taken any
    /// more.
    pub async fn stop(&self, core: &CoreHandle, grace: std::time::Duration) {
        let _going = self.shared.keep_going().await;
        let export = Export {
            generation: self.export().generation,
            settings: self.export().settings.clone(),
            ..Export::default()
        };
        self.shared.publish(&Arc::new(export));
        call_all(core, move |core| session::end_all(core, grace)).await;
    }
}
