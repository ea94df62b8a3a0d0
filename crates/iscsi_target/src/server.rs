//! The front as its owner sees it: publish what is exported, ask what goes on.

use crate::ended::EndedSince;
use crate::export::Export;
use crate::hardware::Hardware;
use crate::listening::PortalStatus;
use crate::load::CoreLoad;
use crate::refusals::Refusals;
use crate::session::{self, SessionInfo, SessionNumber, SessionStages};
use crate::shared::Shared;
use env::{CoreHandle, CoreId, call_all};
use std::rc::Rc;
use std::sync::Arc;

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
        let shared = Arc::new(Shared::new(export, core.core_count()));
        let portals = crate::portal::run(Rc::clone(core), Arc::clone(&shared));
        core.spawn(Box::pin(portals));
        let balance = crate::balance::run(Rc::clone(core), Arc::clone(&shared));
        core.spawn(Box::pin(balance));
        Self { shared }
    }

    /// The export in force.
    #[must_use]
    pub fn export(&self) -> Arc<Export> {
        self.shared.export()
    }

    /// The name of an initiator that nobody else knows: where a target is, its login is refused
    /// with 0202h whatever was granted to whom, and no login of it is counted or listed.
    #[must_use]
    pub fn probe_name(&self, core: &CoreHandle) -> String {
        self.shared.probe_name(core).to_owned()
    }

    /// Says what the machine's network ports are, for initiators that ask; the last word counts.
    pub fn set_hardware(&self, hardware: Hardware) {
        self.shared.set_hardware(hardware);
    }

    /// Connections there are, logged in or not.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.loads().connections()
    }

    /// Replaces the export. When this returns, every session works with it: units that were taken
    /// away are closed, and those whose units changed have been notified. A session that lost its
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
        self.shared.portal_status()
    }

    /// Logins that were refused lately, newest first.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        self.shared.refusals()
    }

    /// Sessions that ended, from a place on. Asked for after [`Server::sessions`] it has all that
    /// are missing there.
    #[must_use]
    pub fn ended(&self, place: u64) -> EndedSince {
        self.shared.ended().since(place)
    }

    /// Every session on every core, by number.
    pub async fn sessions(&self, core: &CoreHandle) -> Vec<SessionInfo> {
        let _going = self.shared.keep_going().await;
        let per_core = call_all(core, session::list).await;
        let mut all: Vec<SessionInfo> = per_core.into_iter().flatten().collect();
        all.sort_by_key(|session| session.number);
        all
    }

    /// How long the stages of commands took since this was asked last, of each session that had
    /// some. One asks, again and again.
    pub async fn session_stages(&self, core: &CoreHandle) -> Vec<SessionStages> {
        let _going = self.shared.keep_going().await;
        let per_core = call_all(core, session::stages).await;
        per_core.into_iter().flatten().collect()
    }

    /// What every core does, by number.
    pub async fn cores(&self, core: &CoreHandle) -> Vec<CoreLoad> {
        let busy = call_all(core, |core| {
            let busy = (core.id(), core.busy());
            Box::pin(async move { busy })
        })
        .await;
        let loads = self.shared.loads().all();
        let reported = busy.into_iter().map(|(core, busy)| {
            let load = loads.get(usize::from(core.0)).copied();
            let (load, connections) = load.unwrap_or_default();
            CoreLoad {
                core,
                busy,
                load,
                connections,
            }
        });
        reported.collect()
    }

    /// Sessions that have gone from one core to another, and those that did not come to rest in
    /// time.
    #[must_use]
    pub fn moves(&self) -> (u64, u64) {
        self.shared.moves().read()
    }

    /// PDUs whose header, and whose data, did not match its digest, since the start.
    #[must_use]
    pub fn digest_errors(&self) -> (u64, u64) {
        self.shared.digest_errors().read()
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
