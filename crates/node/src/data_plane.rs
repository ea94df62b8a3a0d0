//! The real engine: LUNs as logical units over volumes, exported by the iSCSI front.
//!
//! ```text
//!   controller --prepare/adopt--> Node --> units   (a LUN: leaf, layers, logical unit)
//!                                   |----> export  (what the front shows to whom)
//!                                   '----> iscsi_target::Server
//! ```
//!
//! **Invariants.** I1: every LUN in service has a unit, online or not. I2: a new export is
//! published after the units that it names are up and before those that it no longer names go down.

use crate::backend::kinds;
use crate::backend::pools::Pools;
use crate::hardware;
use crate::inner::Inner;
use crate::journal::all;
use crate::journal::pool_journal::PoolJournal;
use crate::journal::{journals, monitor, opening};
use crate::lun::failed::of_pool;
use crate::lun::sizes;
use crate::lun::stalled;
use crate::lun::unit::{self, Unit};
use crate::lun::units::Units;
use crate::lun::{
    changing, export, facts, layers, pulse, reopening, resizing, stalls, unserved, works,
};
use crate::mirrors::Mirrors;
use crate::pool::facts as pool_facts;
use crate::pool::intents;
use crate::pool::intents::Finishing;
use crate::pool::late;
use crate::pool::orphans_seen;
use crate::pool::questions;
use crate::pool::usage_known;
use crate::pool::{unsaved, usage};
use crate::scrub::schedule;
use crate::scrub::scrubs;
use engine::{DrainedLun, Engine, MirrorAsked, MirrorView, SharedChange};
use env::{CoreHandle, LocalFuture, in_time};
use iscsi_target::{Server, SessionNumber};
use manifest::code::Code;
use manifest::config::{Config, Listen};
use manifest::facts::{
    CoreFacts, DigestFacts, LoginFacts, LunCondition, LunFacts, MoveFacts, NodeNic, PoolFacts,
    PortalFacts, RefusalFacts, SessionFacts,
};
use manifest::journal::{JournalFacts, JournalOutcome, JournalRequest};
use manifest::objects::{Lun, Objects, SECTION_LUN};
use manifest::orphan::{LunRecord, Orphan};
use manifest::plan::LunChanges;
use manifest::problem::{Fault, Problem};
use manifest::pulse::{Asked, Ended, Pulse};
use manifest::scrub::{ScrubFacts, ScrubOp};
use manifest::served::Unserved;
use manifest::size::Size;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Mutex;
use volume::OpenError;

/// How long the start waits for the portals to listen.
const LISTEN_TIME_MAX: Duration = Duration::from_secs(2);

/// How long sessions have to end by themselves when the daemon stops.
const LOGOUT_GRACE: Duration = Duration::from_secs(3);

/// How long a change of LUNs that is under way may take when the daemon stops. One that hangs ends
/// with the process, as in a crash.
const TURN_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a flush may take when the daemon stops.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(60);

/// The engine of a daemon. Cloning shares it.
#[derive(Clone)]
pub struct Node(pub(crate) Rc<Inner>);

impl Node {
    /// The engine on core 0; `notices` returns what the runtime has to say.
    #[must_use]
    pub fn new(core: CoreHandle, config: Config, notices: Box<dyn Fn() -> Vec<String>>) -> Self {
        Self(Rc::new(Inner {
            core,
            live: RefCell::new(Rc::new(config.clone())),
            config,
            notices,
            server: RefCell::default(),
            units: Units::default(),
            retired: RefCell::default(),
            objects: RefCell::default(),
            next_unit: Cell::new(0),
            nics: RefCell::default(),
            exports: Cell::new(0),
            usage: usage_known::Usage::default(),
            scrubs: scrubs::Scrubs::default(),
            orphans: orphans_seen::Orphans::default(),
            stalls: stalled::Stalls::default(),
            pools: RefCell::new(Rc::new(kinds::no_pools())),
            journals: all::Journals::default(),
            mirrors: OnceCell::new(),
            intent_log: intents::IntentLog::default(),
            unsaved: late::Unsaved::default(),
            stored: RefCell::default(),
            finishing: Cell::default(),
            changing: changing::Changing::default(),
            resizing: sizes::Resizing::default(),
            works: works::Works::default(),
            asks: questions::Asks::default(),
            shrunk: RefCell::default(),
            returned: Rc::default(),
            turn: Mutex::new(()),
        }))
    }

    /// Who knows the other nodes of the cluster; before the node starts, and once.
    pub fn set_mirrors(&self, mirrors: Rc<dyn Mirrors>) {
        let _once = self.0.mirrors.set(mirrors);
    }
}

impl Inner {
    pub(crate) async fn start(self: &Rc<Self>, objects: Rc<Objects>) -> Result<(), Problem> {
        let pools = kinds::open_pools(self, &objects).await?;
        *self.pools.borrow_mut() = Rc::new(pools);
        opening::open_all(self).await;
        self.read_intent_log().await;
        for (name, lun) in &objects.luns {
            let unit = self.bring_up(name, lun, false).await;
            if let Some(reason) = unit.offline() {
                tracing::error!(lun = name, code = %Code::LunOffline, "LUN is offline: {reason}");
            }
        }
        let export = self.export(&objects);
        *self.objects.borrow_mut() = Rc::clone(&objects);
        self.log_orphans().await;
        *self.server.borrow_mut() = Some(Server::start(&self.core, export));
        self.listening().await;
        Ok(())
    }

    /// Opens a LUN; where that fails the unit is there and offline.
    /// `is_new`: it was made just now.
    pub(crate) async fn bring_up(&self, name: &str, lun: &Lun, is_new: bool) -> Rc<Unit> {
        let number = self.next_unit.get();
        self.next_unit.set(number + 1);
        let kept = self.retired.borrow_mut().remove(&lun.naa);
        let journal = self.journal_of(lun);
        let pools = self.pools();
        let ground = (&self.config, &*pools);
        let named = (number, name, is_new);
        let above = (journal, self.mirrors.get().map(Rc::clone));
        let opened = Unit::open(&self.core, ground, named, lun, kept, above);
        let unit: Rc<Unit> = Rc::new(opened.await);
        self.units
            .borrow_mut()
            .insert(lun.naa.clone(), Rc::clone(&unit));
        unit
    }

    /// As they were opened at the start; empty before it.
    pub(crate) fn pools(&self) -> Rc<Pools> {
        Rc::clone(&self.pools.borrow())
    }

    /// Why a pool is missing, where it is.
    pub(crate) fn missing(&self, pool: &str) -> Option<OpenError> {
        self.pools().get(pool)?.missing()
    }

    /// Makes what a new LUN needs.
    pub(crate) async fn make(&self, lun: &Lun) -> Result<(), Problem> {
        let pools = self.pools();
        let work = self.works.begin(lun, lun.size.bytes());
        let ground = (&self.config, &*pools);
        let made = unit::create(&self.core, ground, lun, work.progress()).await;
        made.map_err(|problem| work.failed(problem))
    }

    /// What a pool holds becomes this LUN.
    async fn adopt_storage(&self, lun: &Lun) -> Result<(), Problem> {
        let pools = self.pools();
        match lun.backing.pool().and_then(|pool| pools.get(pool)) {
            Some(pool) => pool.adopt(&self.core, lun).await,
            None => Ok(()),
        }
    }

    /// Destroys what a LUN has.
    pub(crate) async fn destroy(&self, lun: &Lun) -> Result<(), Problem> {
        if let Some(pool) = lun.backing.pool()
            && let PoolJournal::Open(journal) = self.journals.of(pool)
        {
            // Else what it has of the LUN would have to be destaged for ever.
            let forgotten = journal.forget(&self.core, layers::journal_id(lun)).await;
            forgotten.map_err(|_| {
                let why = format!("the journal of pool {pool} takes nothing");
                Problem::new(Code::BackingFailed, why)
                    .hint("see `causeway pool show`; `causeway journal reopen` opens it anew")
            })?;
        }
        let pools = self.pools();
        unit::destroy(&self.core, (&self.config, &pools), lun).await
    }

    /// Opens a LUN's storage anew over its pool's journal; where a change of it is under way, after
    /// that.
    pub(crate) async fn renew(self: &Rc<Self>, lun: &Lun, journal: &PoolJournal) {
        let Some(unit) = self.unit(&lun.naa) else {
            return;
        };
        if self.changing.puts_off(&lun.naa) {
            return;
        }
        let pools = self.pools();
        let ground = (&self.config, &*pools);
        let renewed = unit.renew(&self.core, ground, lun, journal.clone()).await;
        match renewed.offline() {
            // It is tried again and again: only what is new is logged.
            Some(again)
                if unit
                    .offline()
                    .is_some_and(|before| before.kind == again.kind) => {}
            None if unit.offline().is_none() => {}
            Some(reason) => tracing::error!(lun = &*renewed.name(), "LUN is offline: {reason}"),
            None => tracing::info!(lun = &*renewed.name(), "LUN is online again"),
        }
        let renewed: Rc<Unit> = Rc::new(renewed);
        self.units.borrow_mut().insert(lun.naa.clone(), renewed);
        self.go_on_scrubbing(&lun.naa).await;
    }

    /// What the LUN's pool has for its writes.
    pub(crate) fn journal_of(&self, lun: &Lun) -> PoolJournal {
        let Some(pool) = lun.backing.pool() else {
            return PoolJournal::None;
        };
        if let Some(why) = self.missing(pool) {
            return PoolJournal::Missing(why);
        }
        self.journals.of(pool)
    }

    /// Waits until every fixed address has been tried. Where none can be had, the front tries again
    /// each second, and a SAN that is up before its network is serves as soon as that is there.
    pub(crate) async fn listening(&self) {
        let settings = self.settings();
        let groups = &settings.portal_groups;
        let is_fixed = |listen: &&Listen| matches!(listen, Listen::Address(_));
        let fixed = groups
            .iter()
            .flat_map(|group| &group.listen)
            .filter(is_fixed)
            .count();
        let until = self.core.now().after(LISTEN_TIME_MAX);
        let portals = loop {
            let portals = self
                .server()
                .map(|server| server.portals())
                .unwrap_or_default();
            let listens = portals.iter().any(|portal| portal.error.is_none());
            if listens || fixed == 0 {
                return;
            }
            if portals.len() >= fixed || self.core.now() > until {
                break portals;
            }
            let soon = self.core.now().after(Duration::from_millis(2));
            self.core.sleep_until(soon).await;
        };
        let Some(portal) = portals.first() else {
            return;
        };
        let group = groups
            .iter()
            .position(|group| group.name == portal.portal_group)
            .unwrap_or_default();
        let place = self.config.place(&format!("portal_group[{group}].listen"));
        let why = portal.error.clone().unwrap_or_default();
        tracing::error!(
            code = %Code::NoPortal,
            "{place}: {}: {why}: no portal listens, and hosts reach nothing; each address is tried again every second",
            portal.address
        );
    }

    pub(crate) fn server(&self) -> Option<Server> {
        self.server.borrow().clone()
    }

    pub(crate) fn unit(&self, naa: &str) -> Option<Rc<Unit>> {
        self.units.borrow().get(naa).cloned()
    }

    pub(crate) fn name_of(&self, lun: &Lun) -> String {
        let objects = self.objects.borrow();
        let known = objects.luns.iter().chain(&objects.removed);
        let found = known.into_iter().find(|(_, known)| known.naa == lun.naa);
        found.map_or_else(|| lun.naa.clone(), |(name, _)| name.clone())
    }

    /// A change makes, opens or destroys nothing in a pool that is missing.
    ///
    /// # Errors
    /// The pool that is.
    async fn are_there(&self, changes: &LunChanges) -> Result<(), Problem> {
        let all = changes.created.iter().chain(&changes.restored);
        let all = all.chain(&changes.resized).chain(&changes.purged);
        let all = all.chain(changes.switched_on.iter().map(|(_, lun)| lun));
        let needed: BTreeSet<&str> = all.filter_map(|lun| lun.backing.pool()).collect();
        let pools = self.pools();
        for pool in needed.iter().filter_map(|pool| pools.get(*pool)) {
            pool.is_ready().await?;
        }
        Ok(())
    }

    /// Nothing that a change needs is away.
    pub(crate) async fn allows(&self, changes: &LunChanges) -> Result<(), Problem> {
        self.are_there(changes).await?;
        for lun in &changes.resized {
            let unit = self.unit(&lun.naa);
            if let Some(reason) = unit.and_then(|unit| unit.offline()) {
                return Err(keeps_its_size(lun, &reason));
            }
        }
        for lun in changes.created.iter().chain(&changes.restored) {
            self.may_have_copies(lun)?;
        }
        Ok(())
    }

    /// The nodes that a LUN names are there to have a copy.
    fn may_have_copies(&self, lun: &Lun) -> Result<(), Problem> {
        if lun.storage.copies.is_none() {
            return Ok(());
        }
        let allowed = match self.mirrors.get() {
            Some(mirrors) => mirrors.allows(lun),
            None => {
                let detail = "this node is in no cluster, so that no other one can have a copy";
                let next = "write [cluster] into node.toml, restart, and `causeway cluster init` or `join`";
                Err(Problem::new(Code::ClusterNotConfigured, detail).hint(next))
            }
        };
        allowed.map_err(|problem| of_lun(&problem, lun, "copies"))
    }

    pub(crate) async fn prepare(self: &Rc<Self>, changes: &LunChanges) -> Result<(), Problem> {
        let _turn = self.turn.lock().await;
        self.allows(changes).await?;
        self.changing.begin(changes);
        self.begin(changes).await?;
        for lun in &changes.created {
            let made = self.make(lun).await;
            made.map_err(|problem| of_lun(&problem, lun, lun.backing.key()))?;
            let opened = self.open_now(lun, true).await;
            opened.map_err(|problem| of_lun(&problem, lun, lun.backing.key()))?;
        }
        for lun in &changes.restored {
            if !self.is_named(lun) {
                let adopted = self.adopt_storage(lun).await;
                adopted.map_err(|problem| of_lun(&problem, lun, lun.backing.key()))?;
            }
            let opened = self.open_now(lun, false).await;
            opened.map_err(|problem| of_lun(&problem, lun, lun.backing.key()))?;
        }
        for lun in &changes.resized {
            if let Some(unit) = self.unit(&lun.naa) {
                let (pools, journal) = (self.pools(), self.journal_of(lun));
                let ground = (&self.config, &*pools);
                let sidecar = layers::sidecars::grow(&self.core, ground, lun, &journal).await;
                sidecar.map_err(|problem| of_lun(&problem, lun, "size"))?;
                let more = lun.size.bytes().saturating_sub(unit.bytes());
                let work = self.works.begin(lun, more);
                let grown = unit.grow(&self.core, lun.size, work.progress()).await;
                grown.map_err(|problem| of_lun(&work.failed(problem), lun, "size"))?;
            }
        }
        for (switched, lun) in &changes.switched_on {
            let done = self.switch_on(switched, lun).await;
            self.note_offline(lun).await;
            done.map_err(|problem| of_lun(&problem, lun, switched.field))?;
        }
        Ok(())
    }

    pub(crate) async fn open_now(&self, lun: &Lun, is_new: bool) -> Result<(), Problem> {
        let unit = self.bring_up(&self.name_of(lun), lun, is_new).await;
        match unit.offline() {
            None => Ok(()),
            Some(why) => Err(Problem::new(of_pool(&why).code, why.to_string())),
        }
    }

    pub(crate) async fn abandon(self: &Rc<Self>, changes: &LunChanges) {
        let _turn = self.turn.lock().await;
        self.changing.end();
        for (switched, lun) in &changes.switched_on {
            self.switch_off_again(switched, lun).await;
        }
        for lun in changes.created.iter().chain(&changes.restored) {
            self.take_down(lun).await;
        }
        let mut left = Vec::new();
        for lun in &changes.created {
            if let Err(problem) = self.destroy(lun).await {
                tracing::warn!(
                    "what a LUN that was not made takes is given back later: {}",
                    problem.detail
                );
                left.push(lun.clone());
            }
        }
        self.end(changes, left).await;
        self.renew_put_off().await;
    }

    /// Opens anew what somebody wanted opened while it was changed.
    pub(crate) async fn renew_put_off(self: &Rc<Self>) {
        let objects = Rc::clone(&self.objects.borrow());
        for naa in self.changing.take_put_off() {
            if let Some(lun) = objects.luns.values().find(|lun| lun.naa == naa) {
                self.renew(lun, &self.journal_of(lun)).await;
            }
        }
    }

    pub(crate) async fn take_down(&self, lun: &Lun) {
        self.stop_scrub(&lun.naa).await;
        let unit = self.units.borrow_mut().remove(&lun.naa);
        if let Some(unit) = unit {
            if let Some(kept) = unit.keep_leaf() {
                self.retired.borrow_mut().insert(lun.naa.clone(), kept);
            }
            unit.stop(&self.core).await;
            unit.release(&self.core).await;
            unit.close_sidecars(&self.core).await;
            unit.close_leaf(&self.core).await;
        }
    }

    pub(crate) async fn adopt(
        self: &Rc<Self>,
        objects: Rc<Objects>,
        changes: &LunChanges,
    ) -> Result<(), Problem> {
        let _turn = self.turn.lock().await;
        let before = self.objects.replace(Rc::clone(&objects));
        self.changing.end();
        let mut failed = Vec::new();
        self.note_shrunk(&before, changes);
        for lun in &changes.resized {
            if let Err(error) = self.resize(lun).await {
                failed.push(format!("LUN {}: {error}", self.name_of(lun)));
            }
        }
        for (switched, lun) in &changes.switched_off {
            if let Err(error) = self.switch_off(switched, lun).await {
                let (name, still) = (self.name_of(lun), switched.still);
                failed.push(format!("LUN {name} is {still}, until a restart: {error}"));
            }
        }
        for (name, lun) in &objects.luns {
            if let Some(unit) = self.unit(&lun.naa) {
                unit.rename(name);
                unit.limit(lun.bytes_in_flight_max);
                if let Err(error) = unit.adopt(&self.core, &lun.storage).await {
                    failed.push(format!("LUN {name}: {error}"));
                }
                self.note_offline(lun).await;
            }
        }
        self.renew_put_off().await;
        let export = self.export(&objects);
        let server = self.server();
        if let Some(server) = server {
            server.publish(&self.core, export).await;
        }
        for lun in changes.retired.iter().chain(&changes.purged) {
            self.take_down(lun).await;
        }
        let mut left = Vec::new();
        for lun in &changes.purged {
            if let (Some(_), Some(mirrors)) = (lun.storage.copies, self.mirrors.get()) {
                mirrors.forget(&lun.naa).await;
            }
            self.retired.borrow_mut().remove(&lun.naa);
            self.forget_scrub(lun).await;
            if let Err(problem) = self.destroy(lun).await {
                failed.push(problem.detail.clone());
                left.push(lun.clone());
            }
        }
        self.end(changes, left).await;
        self.write_records(&objects).await;
        self.find_orphans().await;
        if failed.is_empty() {
            return Ok(());
        }
        Err(Problem::new(Code::PartlyDone, failed.join("; ")))
    }

    /// Takes the live settings of `config`. Changes of objects that are under way go on, and
    /// publish with these.
    async fn configure(&self, config: Rc<Config>) {
        self.scrubs.repeat(config.scrub_every_days);
        *self.live.borrow_mut() = config;
        let objects = Rc::clone(&self.objects.borrow());
        let export = self.export(&objects);
        if let Some(server) = self.server() {
            server.publish(&self.core, export).await;
        }
    }

    pub(crate) async fn stop(&self) {
        self.give_away().await;
        let server = self.server.borrow_mut().take();
        if let Some(server) = server {
            server.stop(&self.core, LOGOUT_GRACE).await;
        }
        let turn = in_time(&self.core, TURN_TIME_MAX, self.turn.lock()).await;
        if turn.is_none() {
            tracing::error!("a change of LUNs hangs, and ends with the daemon");
        }
        self.rest_scrubs().await;
        let units: Vec<Rc<Unit>> = self.units.borrow().values().cloned().collect();
        let until = self.core.now().after(FLUSH_TIME_MAX);
        for unit in &units {
            unit.flush(&self.core, until).await;
            unit.stop(&self.core).await;
        }
        for (pool, journal) in self.journals.take_open() {
            opening::close(self, &pool, &journal, until).await;
        }
        for unit in &units {
            unit.close_sidecars(&self.core).await;
            unit.close_leaf(&self.core).await;
        }
    }
}

/// A future that keeps the engine alive.
fn shared<T: 'static, F: Future<Output = T> + 'static>(
    node: &Node,
    run: impl FnOnce(Rc<Inner>) -> F,
) -> LocalFuture<T> {
    Box::pin(run(Rc::clone(&node.0)))
}

impl Engine for Node {
    fn start(&self, objects: Rc<Objects>) -> LocalFuture<Result<(), Problem>> {
        shared(self, |node| async move {
            node.start(objects).await?;
            node.resume_scrubs().await;
            let follow = hardware::follow(Rc::clone(&node.core), Rc::downgrade(&node));
            node.core.spawn(Box::pin(follow));
            let watch = stalls::watch(Rc::clone(&node.core), Rc::downgrade(&node));
            node.core.spawn(Box::pin(watch));
            node.scrubs.repeat(node.config.scrub_every_days);
            let keep = schedule::keep(Rc::clone(&node.core), Rc::downgrade(&node));
            node.core.spawn(Box::pin(keep));
            let keep = reopening::keep(Rc::clone(&node.core), Rc::downgrade(&node));
            node.core.spawn(Box::pin(keep));
            let keep = resizing::keep(Rc::clone(&node.core), Rc::downgrade(&node));
            node.core.spawn(Box::pin(keep));
            let keep = unsaved::keep(Rc::clone(&node.core), Rc::downgrade(&node));
            node.core.spawn(Box::pin(keep));
            for pool in &node.config.pools {
                let core = Rc::clone(&node.core);
                let keep = monitor::keep(core, Rc::downgrade(&node), pool.name.clone());
                node.core.spawn(Box::pin(keep));
            }
            // Interfaces report their addresses a moment later.
            let later = Rc::clone(&node);
            node.core.spawn(Box::pin(async move {
                let soon = later.core.now().after(LISTEN_TIME_MAX);
                later.core.sleep_until(soon).await;
                for silent in export::silent_interfaces(&later) {
                    tracing::warn!("{silent}");
                }
            }));
            Ok(())
        })
    }

    fn allows(&self, changes: Rc<LunChanges>) -> LocalFuture<Result<(), Problem>> {
        shared(self, |node| async move { node.allows(&changes).await })
    }

    fn prepare(&self, changes: Rc<LunChanges>) -> LocalFuture<Result<(), Problem>> {
        shared(self, |node| async move {
            let prepared = node.prepare(&changes).await;
            if prepared.is_err() {
                node.abandon(&changes).await;
            }
            prepared
        })
    }

    fn abandon(&self, changes: Rc<LunChanges>) -> LocalFuture<()> {
        shared(self, |node| async move { node.abandon(&changes).await })
    }

    fn adopt(
        &self,
        objects: Rc<Objects>,
        changes: Rc<LunChanges>,
    ) -> LocalFuture<Result<(), Problem>> {
        shared(
            self,
            |node| async move { node.adopt(objects, &changes).await },
        )
    }

    fn configure(&self, config: Rc<Config>) -> LocalFuture<()> {
        shared(self, |node| async move { node.configure(config).await })
    }

    fn stop(&self) -> LocalFuture<()> {
        shared(self, |node| async move { node.stop().await })
    }

    fn luns(&self) -> LocalFuture<BTreeMap<String, LunFacts>> {
        shared(self, |node| async move { facts::luns(&node, None).await })
    }

    fn luns_of(&self, only: BTreeSet<String>) -> LocalFuture<BTreeMap<String, LunFacts>> {
        shared(
            self,
            |node| async move { facts::luns(&node, Some(&only)).await },
        )
    }

    fn conditions(&self) -> BTreeMap<String, LunCondition> {
        facts::conditions(&self.0)
    }

    fn ended(&self, since: u64) -> Ended {
        pulse::ended(&self.0, since)
    }

    fn pulse(&self, asked: Asked) -> LocalFuture<Pulse> {
        shared(
            self,
            move |node| async move { pulse::pulse(&node, asked).await },
        )
    }

    fn scrub(&self, naa: &str, op: ScrubOp) -> LocalFuture<Result<ScrubFacts, Problem>> {
        let naa = naa.to_owned();
        shared(self, |node| async move { node.scrub(&naa, op).await })
    }

    fn scrubs(&self) -> BTreeMap<String, ScrubFacts> {
        let units = self.0.units.borrow();
        let known = units.keys().filter_map(|naa| {
            let facts = self.0.scrubs.facts(naa)?;
            Some((naa.clone(), facts))
        });
        known.collect()
    }

    fn progress(&self, naa: &str) -> Option<(u64, u64)> {
        self.0.works.progress(naa)
    }

    fn stop_work(&self, naa: &str) -> bool {
        self.0.works.stop(naa)
    }

    fn sessions(&self) -> LocalFuture<Vec<SessionFacts>> {
        shared(self, |node| async move { facts::sessions(&node).await })
    }

    fn drop_session(&self, id: u64) -> LocalFuture<bool> {
        shared(self, |node| async move {
            match node.server() {
                Some(server) => server.drop_session(&node.core, SessionNumber(id)).await,
                None => false,
            }
        })
    }

    fn refusals(&self) -> LocalFuture<Vec<RefusalFacts>> {
        shared(self, |node| async move { facts::refusals(&node) })
    }

    fn portals(&self) -> LocalFuture<Vec<PortalFacts>> {
        shared(self, |node| async move { facts::portals(&node) })
    }

    fn nics(&self) -> LocalFuture<Vec<NodeNic>> {
        shared(self, |node| async move { node.nics.borrow().clone() })
    }

    fn cores(&self) -> LocalFuture<Vec<CoreFacts>> {
        shared(self, |node| async move { facts::cores(&node).await })
    }

    fn digest_errors(&self) -> DigestFacts {
        let counted = self.0.server().map(|server| server.digest_errors());
        let (headers, data) = counted.unwrap_or_default();
        DigestFacts { headers, data }
    }

    fn moves(&self) -> MoveFacts {
        let moves = self.0.server().map(|server| server.moves());
        let (moved, given_up) = moves.unwrap_or_default();
        MoveFacts { moved, given_up }
    }

    fn journals(&self) -> LocalFuture<BTreeMap<String, JournalFacts>> {
        shared(self, |node| async move { journals::journals(&node).await })
    }

    fn journal(
        &self,
        pool: &str,
        request: JournalRequest,
    ) -> LocalFuture<Result<JournalOutcome, Problem>> {
        let pool = pool.to_owned();
        shared(
            self,
            |node| async move { node.journal(&pool, &request).await },
        )
    }

    fn drain(&self, dry_run: bool) -> LocalFuture<Vec<DrainedLun>> {
        shared(self, |node| async move { node.drain(dry_run).await })
    }

    fn mirror(&self, asked: MirrorAsked) -> LocalFuture<Result<MirrorView, Problem>> {
        shared(self, |node| async move { node.mirror(asked).await })
    }

    fn agree(&self, changes: Vec<SharedChange>) -> LocalFuture<Result<(), Problem>> {
        shared(self, |node| async move { node.agree(changes).await })
    }

    fn orphans(&self, fresh: bool) -> LocalFuture<Vec<Orphan>> {
        shared(self, |node| async move {
            if fresh {
                let _turn = node.turn.lock().await;
                return node.find_orphans().await;
            }
            node.orphans_seen()
        })
    }

    fn pool_returned(&self) -> LocalFuture<()> {
        let returned = Rc::clone(&self.0.returned);
        Box::pin(async move { returned.notified().await })
    }

    fn newest_saved(&self, node_id: &str) -> LocalFuture<Option<(u64, String)>> {
        let node_id = node_id.to_owned();
        shared(
            self,
            |node| async move { node.newest_saved(&node_id).await },
        )
    }

    fn saved(&self, node_id: &str, generation: u64) -> LocalFuture<()> {
        let node_id = node_id.to_owned();
        shared(self, |node| async move {
            let _turn = node.turn.lock().await;
            let objects = Rc::clone(&node.objects.borrow());
            node.write_records(&objects).await;
            *node.stored.borrow_mut() = Some((node_id.clone(), generation));
            node.finish_once(&objects).await;
            node.write_saved(&node_id, generation).await;
        })
    }

    fn is_older(&self) -> LocalFuture<()> {
        shared(self, |node| async move {
            node.finishing.set(Finishing::Not);
            let _turn = node.turn.lock().await;
            node.inspect_sizes().await;
        })
    }

    fn records(&self) -> LocalFuture<BTreeMap<String, LunRecord>> {
        shared(self, |node| async move { node.known_records().await })
    }

    fn seen_larger(&self) -> BTreeMap<String, Size> {
        self.0.orphans.larger()
    }

    fn unserved(&self, objects: &Objects) -> Vec<Unserved> {
        unserved::unserved(&self.0, objects)
    }

    fn probe_name(&self) -> Option<String> {
        let server = self.0.server()?;
        Some(server.probe_name(&self.0.core))
    }

    fn memory(&self) -> LocalFuture<Option<u64>> {
        shared(self, |node| async move {
            machine::memory::total(&node.core).await
        })
    }

    fn pools(&self) -> LocalFuture<Vec<PoolFacts>> {
        shared(self, |node| async move {
            usage::refresh(&node).await;
            pool_facts::pools(&node).await
        })
    }

    fn notices(&self) -> Vec<String> {
        let mut notices = (self.0.notices)();
        notices.extend(stalls::reported(&self.0));
        notices.extend(export::missing_groups(&self.0));
        notices.extend(export::silent_interfaces(&self.0));
        notices.extend(export::no_portal(&self.0));
        notices.extend(self.0.unsaved.reported());
        notices.extend(self.0.intent_log_notice());
        notices
    }

    fn lun_notices(&self, naa: &str) -> Vec<String> {
        let unit = self.0.unit(naa);
        let mut all = unit.map(|unit| unit.notices()).unwrap_or_default();
        all.extend(self.0.resizing.of(naa).map(|why| {
            format!(
                "its last change of size has not ended, and is tried again every ten seconds: {why}"
            )
        }));
        all
    }

    fn lun_members(&self, lun: &Lun) -> Vec<u16> {
        let pools = self.0.pools();
        let pool = lun.backing.pool().and_then(|pool| pools.get(pool));
        pool.map(|pool| pool.members_of(lun)).unwrap_or_default()
    }

    fn logins(&self) -> Vec<LoginFacts> {
        facts::logins(&self.0)
    }
}

/// The problem as that of one LUN, which the engine knows by its NAA identifier only.
fn of_lun(problem: &Problem, lun: &Lun, key: &str) -> Problem {
    let detail = if problem.code == Code::JobCancelled {
        "the change was cancelled; nothing was changed"
    } else {
        "the storage of a LUN cannot be had; nothing was changed"
    };
    Problem::new(problem.code, detail)
        .hint(problem.hint.clone())
        .faults(vec![Fault::new(
            SECTION_LUN,
            &lun.naa,
            key,
            problem.detail.clone(),
        )])
}

/// Nobody can give an offline LUN room, or cut it: with another size it would not fit what it has,
/// and stay offline.
fn keeps_its_size(lun: &Lun, reason: &OpenError) -> Problem {
    let detail = "a LUN that is offline keeps its size; nothing was changed";
    Problem::new(Code::LunOffline, detail)
        .hint("bring the LUN online first, then change its size")
        .faults(vec![Fault::new(
            SECTION_LUN,
            &lun.naa,
            "size",
            format!("the LUN is offline: {reason}"),
        )])
}

#[cfg(test)]
mod records_test;
#[cfg(test)]
pub(crate) mod test;
