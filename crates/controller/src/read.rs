//! What the controller reports: status, objects with their running state, metrics.

use super::Controller;
use manifest::code::Code;
use manifest::facts::{
    HealthSeverity, LunCondition, LunFacts, LunState, OpFacts, PoolFacts, PortalFacts, SessionFacts,
};
use manifest::journal::{JournalFacts, JournalOutcome, JournalRequest, LunJournal};
use manifest::not_safe::{LostWith, NotSafe, not_safe};
use manifest::objects::{
    GrantKey, Lun, Objects, Risk, SECTION_GRANT, SECTION_HOST, SECTION_LUN, SECTION_TARGET, Target,
};
use manifest::plan::{HostHit, SessionBrief, hosts_hit, leads_back};
use manifest::problem::Problem;
use manifest::redundancy::Redundancy;
use manifest::scrub::{ScrubFacts, ScrubOp};
use manifest::time::rfc3339;
use manifest::view::{
    AlertCounts, ChapView, Counts, GrantView, Health, HostView, LunView, MemoryView, StatusView,
    TargetView,
};
use std::collections::{BTreeMap, BTreeSet};

impl Controller {
    /// What is worth knowing of addresses, objects, pools and disks.
    fn all_notes(
        &self,
        objects: &Objects,
        pools: &[PoolFacts],
        memory: &MemoryView,
        not_safe: &[NotSafe],
    ) -> Vec<String> {
        let (_, of_disks) = self.of_disks();
        let own = notes(objects, pools, memory, not_safe);
        [self.config.open_api(), own, of_disks].concat()
    }

    /// What is wrong with the state directory, with changes, or with the machine's disks.
    fn own_problems(&self) -> Vec<String> {
        let mut problems = Vec::from_iter(self.no_spares());
        let others = [self.older(), self.has_been_cut_off()];
        problems.extend(others.into_iter().flatten().map(|it| it.to_string()));
        problems.extend(self.of_disks().0);
        problems
    }

    /// Addresses at which the API does not listen, and why.
    fn api_away(&self) -> Vec<String> {
        let away = self.api.borrow().away();
        let away = away.iter().map(|(address, why)| {
            format!("the API does not listen at {address}: {why}; it is tried again every second")
        });
        away.collect()
    }

    /// How the node is.
    pub async fn status(&self) -> StatusView {
        let objects = self.objects();
        let conditions = self.engine.conditions();
        let portals = self.engine.portals().await;
        let pools = self.pools().await;
        let memory = self.memory(&objects).await;
        let not_safe = not_safe(&objects);
        let sessions = self.engine.sessions().await.len();
        let mut problems: Vec<String> =
            self.damage().map(ToString::to_string).into_iter().collect();
        let mut offline = 0;
        for (name, lun) in &objects.luns {
            if let Some(LunState::Offline(reason)) = conditions.get(&lun.naa).map(|it| &it.state) {
                offline += 1;
                problems.push(format!("LUN {name} is offline: {reason}"));
            }
        }
        problems.extend(damaged(&objects, &conditions));
        problems.extend(of_portals(&portals));
        problems.extend(self.unserved().into_iter().map(|it| it.cause));
        problems.extend(self.api_away());
        problems.extend(self.circles(&objects, &portals));
        problems.extend(self.seen_larger(&objects));
        problems.extend(super::orphans::problem(&self.engine.orphans(false).await));
        problems.extend(self.own_problems());
        problems.extend(of_pools(&pools));
        problems.extend(self.engine.notices());
        let health = match (&self.damage(), problems.is_empty()) {
            (Some(_), _) => Health::Damaged,
            (None, false) => Health::Degraded,
            (None, true) => Health::Ok,
        };
        let targets = |is: &dyn Fn(&Target) -> bool| {
            objects.targets.values().filter(|target| is(target)).count()
        };
        StatusView {
            health,
            problems,
            node: self.config.node_name.clone(),
            node_id: self.node_id.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: rfc3339(self.started),
            generation: self.generation(),
            portals,
            nics: self.engine.nics().await,
            api: self.api.borrow().addresses(),
            notes: self.all_notes(&objects, &pools, &memory, &not_safe),
            not_safe,
            memory,
            pools,
            counts: Counts {
                luns: objects.luns.len(),
                luns_offline: offline,
                luns_removed: objects.removed.len(),
                targets: objects.targets.len(),
                targets_in_maintenance: targets(&|target| target.maintenance),
                targets_redirected: targets(&|target| target.redirect.is_some()),
                hosts: objects.hosts.len(),
                grants: objects.grants.len(),
                sessions,
            },
            // Whoever asks the rules knows.
            alerts: AlertCounts::default(),
        }
    }

    /// Where the node listens, and where it is to.
    pub async fn portals(&self) -> Vec<PortalFacts> {
        self.engine.portals().await
    }

    /// Targets whose logins are sent back here.
    fn circles(&self, objects: &Objects, portals: &[PortalFacts]) -> Vec<String> {
        let own = self.own_portals(portals);
        let targets = objects.targets.iter();
        let circle = |(name, target): (&String, &Target)| {
            let (group, _) = leads_back(target.redirect.as_ref()?, &own)?;
            Some(format!(
                "target {name} redirects to portal group {group} of this node, so that nobody can log in: \
                 causeway target set {name} redirect=none"
            ))
        };
        targets.filter_map(circle).collect()
    }

    /// The LUNs; with `removed`, those that were removed and keep their data instead.
    pub async fn luns(&self, removed: bool) -> Vec<LunView> {
        if removed {
            return self.removed(&[]);
        }
        let objects = self.objects();
        let facts = self.engine.luns().await;
        let journals = self.engine.journals().await;
        let luns = objects.luns.iter();
        let view = |(name, lun): (&String, &Lun)| {
            self.lun_in_service(&objects, (name, lun), facts.get(&lun.naa), &journals)
        };
        luns.map(view).collect()
    }

    /// Those of these names; nothing of one that is not there.
    pub async fn luns_named(&self, removed: bool, names: &[String]) -> Vec<LunView> {
        if removed {
            return self.removed(names);
        }
        let objects = self.objects();
        let names: BTreeSet<&String> = names.iter().collect();
        let found = names.iter();
        let found: Vec<_> = found
            .filter_map(|name| objects.luns.get_key_value(*name))
            .collect();
        let only = found.iter().map(|(_, lun)| lun.naa.clone()).collect();
        let facts = self.engine.luns_of(only).await;
        let journals = self.engine.journals().await;
        let view = |lun: (&String, &Lun)| {
            self.lun_in_service(&objects, lun, facts.get(&lun.1.naa), &journals)
        };
        found.into_iter().map(view).collect()
    }

    /// Those that were removed and keep their data, or some of them.
    fn removed(&self, names: &[String]) -> Vec<LunView> {
        let objects = self.objects();
        let luns = objects.removed.iter();
        luns.filter(|(name, _)| names.is_empty() || names.contains(name))
            .map(|(name, lun)| self.removed_lun(&objects, name, lun))
            .collect()
    }

    fn lun_in_service(
        &self,
        objects: &Objects,
        (name, lun): (&String, &Lun),
        facts: Option<&LunFacts>,
        journals: &BTreeMap<String, JournalFacts>,
    ) -> LunView {
        let mut view = lun_view(objects, name, lun, facts);
        view.notices = self.engine.lun_notices(&lun.naa);
        view.members = self.engine.lun_members(lun);
        let journal = view.pool.as_ref().and_then(|pool| journals.get(pool));
        view.journal = journal.map(|it| LunJournal::of(it, name, view.layers.pending_bytes));
        view
    }

    fn removed_lun(&self, objects: &Objects, name: &str, lun: &Lun) -> LunView {
        let mut view = lun_view(objects, name, lun, None);
        view.members = self.engine.lun_members(lun);
        view
    }

    /// One LUN, in service or removed.
    ///
    /// # Errors
    /// There is none of this name.
    pub async fn lun(&self, name: &str) -> Result<LunView, Problem> {
        let objects = self.objects();
        if let Some((name, lun)) = objects.luns.get_key_value(name) {
            let mut facts = self.engine.luns_of(BTreeSet::from([lun.naa.clone()])).await;
            let journals = self.engine.journals().await;
            let facts = facts.remove(&lun.naa);
            let mut view = self.lun_in_service(&objects, (name, lun), facts.as_ref(), &journals);
            // A list leaves them out.
            for (op, counted) in facts.into_iter().flat_map(|facts| facts.ops) {
                if let Some(of) = view.ops.get_mut(&op) {
                    of.sizes = counted.sizes;
                }
            }
            return Ok(view);
        }
        match objects.removed.get_key_value(name) {
            Some((name, lun)) => Ok(self.removed_lun(&objects, name, lun)),
            None => Err(Problem::not_found(SECTION_LUN, name)),
        }
    }

    /// The scrub of a LUN: the one that runs, or the last one; what somebody wishes, first.
    ///
    /// # Errors
    /// There is no such LUN, it is offline, or it was never scrubbed.
    pub async fn scrub(
        &self,
        name: &str,
        operation: Option<(ScrubOp, &str)>,
    ) -> Result<ScrubFacts, Problem> {
        let naa = self.objects().luns.get(name).map(|lun| lun.naa.clone());
        let naa = naa.ok_or_else(|| Problem::not_found(SECTION_LUN, name))?;
        if let Some((operation, by)) = operation {
            return self.scrub_for(&naa, operation, by).await;
        }
        let facts = self.engine.conditions().remove(&naa);
        let facts = facts.and_then(|condition| condition.scrub);
        facts.ok_or_else(|| {
            Problem::new(
                Code::NotFound,
                format!("LUN {name} has never been scrubbed"),
            )
            .hint(format!("causeway scrub start {name}"))
        })
    }

    /// What [`Controller::scrub`] would answer: the scrub that there is, or one that has begun.
    ///
    /// # Errors
    /// There is no such LUN, or it is offline; nothing is there to stop.
    pub async fn scrub_later(&self, name: &str, operation: ScrubOp) -> Result<ScrubFacts, Problem> {
        let lun = self.lun(name).await?;
        if let Some(reason) = &lun.reason {
            let detail = format!("LUN {name} is offline: {reason}");
            return Err(Problem::new(Code::LunOffline, detail));
        }
        let known = self.scrub(name, None).await;
        match operation {
            ScrubOp::Stop => known,
            ScrubOp::Start => {
                let now = rfc3339(self.core.wall_clock());
                Ok(known.unwrap_or_else(|_| ScrubFacts::begun(now, lun.size.bytes())))
            }
        }
    }

    /// The pools, with their journals.
    pub async fn pools(&self) -> Vec<PoolFacts> {
        self.with_journals(self.engine.pools().await).await
    }

    /// The same pools with their journals as they are now.
    pub(crate) async fn with_journals(&self, mut pools: Vec<PoolFacts>) -> Vec<PoolFacts> {
        let mut journals = self.engine.journals().await;
        for pool in &mut pools {
            pool.journal = journals.remove(&pool.name);
            pool.forecast = self.forecasts.borrow().get(&pool.name).cloned();
            pool.disks = self.disks_of(&pool.name);
            self.find_members(pool);
        }
        pools
    }

    /// One pool.
    ///
    /// # Errors
    /// There is none of this name.
    pub async fn pool(&self, name: &str) -> Result<PoolFacts, Problem> {
        let found = self
            .pools()
            .await
            .into_iter()
            .find(|pool| pool.name == name);
        found.ok_or_else(|| Problem::not_found("pool", name))
    }

    /// Opens a pool's journal anew, or gives it up.
    ///
    /// # Errors
    /// There is no such pool, or what the engine says.
    pub async fn journal(
        &self,
        pool: &str,
        request: JournalRequest,
    ) -> Result<JournalOutcome, Problem> {
        if !self.config.pools.iter().any(|known| known.name == pool) {
            return Err(Problem::not_found("pool", pool));
        }
        self.engine.journal(pool, request).await
    }

    /// Logins that were refused lately.
    pub async fn refusals(&self) -> Vec<manifest::facts::RefusalFacts> {
        self.engine.refusals().await
    }

    /// By name, with the portals where each is served now.
    pub async fn targets(&self) -> Vec<TargetView> {
        let portals = self.engine.portals().await;
        let sessions = self.engine.sessions().await;
        let objects = self.objects();
        let view = |(name, target): (&String, &Target)| {
            let of_group = |portal: &&PortalFacts| {
                portal.group == target.portal_group && portal.problem.is_none()
            };
            let of_target = |session: &&SessionFacts| session.target.as_ref() == Some(name);
            TargetView {
                name: name.clone(),
                iqn: target.iqn.clone(),
                portal_group: target.portal_group.clone(),
                portals: portals
                    .iter()
                    .filter(of_group)
                    .map(|portal| portal.address.clone())
                    .collect(),
                redirect: target.redirect.clone(),
                maintenance: target.maintenance,
                maintenance_grace_seconds: target.maintenance_grace_seconds,
                sessions: sessions.iter().filter(of_target).count(),
            }
        };
        objects.targets.iter().map(view).collect()
    }

    /// One target.
    ///
    /// # Errors
    /// There is none of this name.
    pub async fn target(&self, name: &str) -> Result<TargetView, Problem> {
        let found = self
            .targets()
            .await
            .into_iter()
            .find(|target| target.name == name);
        found.ok_or_else(|| Problem::not_found(SECTION_TARGET, name))
    }

    /// By name, with the sessions of each; secrets are not in it.
    pub async fn hosts(&self) -> Vec<HostView> {
        let sessions = self.engine.sessions().await;
        let objects = self.objects();
        let mut by_host: BTreeMap<&str, Vec<&SessionFacts>> = BTreeMap::new();
        for session in &sessions {
            by_host.entry(&session.host).or_default().push(session);
        }
        let sessions_of = |name: &str| by_host.get(name).map_or(&[][..], Vec::as_slice);
        let view = |(name, host): (&String, &manifest::objects::Host)| HostView {
            name: name.clone(),
            iqn: host.iqn.clone(),
            chap: host.chap.as_ref().map(|chap| ChapView {
                user: chap.user.clone(),
                mutual_user: chap.mutual.as_ref().map(|mutual| mutual.user.clone()),
            }),
            bytes_in_flight_max: host.bytes_in_flight_max,
            sessions: sessions_of(name).len(),
            redundancy: Redundancy::of(sessions_of(name).iter().copied()),
        };
        objects.hosts.iter().map(view).collect()
    }

    /// One host.
    ///
    /// # Errors
    /// There is none of this name.
    pub async fn host(&self, name: &str) -> Result<HostView, Problem> {
        let found = self
            .hosts()
            .await
            .into_iter()
            .find(|host| host.name == name);
        found.ok_or_else(|| Problem::not_found(SECTION_HOST, name))
    }

    /// By host, target and LUN.
    #[must_use]
    pub fn grants(&self) -> Vec<GrantView> {
        let objects = self.objects();
        let view = |(key, grant): (&GrantKey, &manifest::objects::Grant)| GrantView {
            name: key.to_string(),
            host: key.host.clone(),
            target: key.target.clone(),
            lun: key.lun.clone(),
            lun_id: grant.lun_id,
            read_only: grant.read_only,
        };
        objects.grants.iter().map(view).collect()
    }

    /// One grant.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn grant(&self, name: &str) -> Result<GrantView, Problem> {
        let found = self.grants().into_iter().find(|grant| grant.name == name);
        found.ok_or_else(|| Problem::not_found(SECTION_GRANT, name))
    }

    /// The sessions, by number.
    pub async fn sessions(&self) -> Vec<SessionFacts> {
        let mut sessions = self.engine.sessions().await;
        sessions.sort_by_key(|session| session.id);
        for session in &mut sessions {
            session.latency = session.latency.summary();
        }
        sessions
    }

    /// What the end of the daemon hits, by host.
    pub async fn hosts_hit(&self) -> Vec<HostHit> {
        hosts_hit(&self.objects(), &self.briefs().await)
    }

    pub(crate) async fn briefs(&self) -> Vec<SessionBrief> {
        let sessions = self.engine.sessions().await;
        sessions.iter().map(SessionFacts::brief).collect()
    }

    /// One session.
    ///
    /// # Errors
    /// There is none of this number.
    pub async fn session(&self, id: u64) -> Result<SessionFacts, Problem> {
        let found = self
            .sessions()
            .await
            .into_iter()
            .find(|session| session.id == id);
        found.ok_or_else(|| Problem::not_found("session", &id.to_string()))
    }
}

/// What the storage below a pool says of itself, where it is that bad.
fn health(pool: &PoolFacts, severity: HealthSeverity) -> Option<String> {
    let health = pool.health.as_ref().filter(|it| it.severity == severity)?;
    Some(format!("pool {}: {health}", pool.name))
}

/// What of the pools needs attention.
fn of_pools(pools: &[PoolFacts]) -> Vec<String> {
    let mut problems = Vec::new();
    for pool in pools {
        if let Some(problem) = &pool.problem {
            problems.push(format!("pool {}: {problem}", pool.name));
        }
        problems.extend(health(pool, HealthSeverity::Error));
        problems.extend(super::room::filling(pool));
        let journal = pool.journal.iter();
        problems.extend(journal.flat_map(|journal| journal.problems(&pool.name)));
    }
    problems
}

fn of_portals(portals: &[PortalFacts]) -> Vec<String> {
    let problems = portals.iter().filter_map(|portal| {
        let problem = portal.problem.as_ref()?;
        let address = &portal.address;
        Some(format!("portal {address} does not listen: {problem}"))
    });
    problems.collect()
}

/// What is no problem, and worth knowing.
fn notes(
    objects: &Objects,
    pools: &[PoolFacts],
    memory: &MemoryView,
    not_safe: &[NotSafe],
) -> Vec<String> {
    let of_pool = |pool: &PoolFacts| {
        let notes = pool.notes.iter();
        let notes = notes.map(|note| format!("pool {}: {note}", pool.name));
        notes
            .chain(health(pool, HealthSeverity::Warning))
            .chain(super::room::overcommitted(pool))
            .chain(super::room::given_away(pool))
            .collect::<Vec<String>>()
    };
    let in_memory = not_safe
        .iter()
        .filter(|it| it.lost_with == LostWith::Daemon);
    let all = risky(objects).into_iter().chain(memory.note());
    let all = all.chain(in_memory.map(|it| it.text.clone()));
    all.chain(pools.iter().flat_map(of_pool)).collect()
}

/// What the last scrubs have found.
fn damaged(objects: &Objects, conditions: &BTreeMap<String, LunCondition>) -> Vec<String> {
    let luns = objects.luns.iter();
    let problems = |(name, lun): (&String, &Lun)| {
        let condition = conditions.get(&lun.naa);
        let checked = condition.and_then(|it| it.checksums.clone());
        let all = found(condition.and_then(|it| it.scrub.as_ref()), checked);
        let copies = condition.and_then(|it| it.copies.clone());
        let all = all.into_iter().chain(copies);
        let named = all.map(|it| format!("LUN {name}: {it}"));
        named.collect::<Vec<String>>()
    };
    luns.flat_map(problems).collect()
}

/// What is wrong with a LUN's data; `checked`: what its checksums know.
fn found(scrub: Option<&ScrubFacts>, checked: Option<String>) -> Vec<String> {
    match scrub {
        Some(scrub) => scrub.problems(checked),
        None => checked.into_iter().collect(),
    }
}

/// The LUNs that risk something by how they keep their writes, by default or as somebody wished.
fn risky(objects: &Objects) -> Vec<String> {
    let mut by_risk: BTreeMap<Risk, Vec<&str>> = BTreeMap::new();
    for (name, lun) in &objects.luns {
        for risk in lun.risks() {
            by_risk.entry(risk).or_default().push(name);
        }
    }
    let all = by_risk.iter();
    all.map(|(risk, names)| named(risk, names)).collect()
}

fn named(risk: &Risk, names: &[&str]) -> String {
    const NAMED_MAX: usize = 5;
    let first: Vec<&str> = names.iter().copied().take(NAMED_MAX).collect();
    let more = match names.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let how = if risk.is_chosen {
        "as asked for".to_owned()
    } else {
        format!("by default ({})", risk.by_default)
    };
    format!(
        "{} = \"{}\" {how} in LUN {}{more}: {}",
        risk.field,
        risk.value,
        first.join(", "),
        risk.detail
    )
}

/// Operations as a list of LUNs shows them: the buckets are many, and `top` has them.
fn summaries(ops: &BTreeMap<String, OpFacts>) -> BTreeMap<String, OpFacts> {
    let summary = |(op, facts): (&String, &OpFacts)| {
        let facts = OpFacts {
            latency: facts.latency.summary(),
            sizes: Vec::new(),
            ..*facts
        };
        (op.clone(), facts)
    };
    ops.iter().map(summary).collect()
}

fn lun_view(objects: &Objects, name: &str, lun: &Lun, facts: Option<&LunFacts>) -> LunView {
    let removed = objects.removed.contains_key(name);
    let (state, reason) = match facts {
        Some(facts) => LunView::state_of(&facts.state),
        None if removed => ("removed".to_owned(), None),
        None => (
            "offline".to_owned(),
            Some("the node does not serve it".to_owned()),
        ),
    };
    let (pool, backend) = lun.backing.to_spec();
    LunView {
        name: name.to_owned(),
        state,
        reason,
        size: lun.size,
        block_size: lun.block_size,
        physical_block_size: lun.physical_block_size,
        thin: lun.thin,
        backing: lun.backing.to_string(),
        pool,
        members: Vec::new(),
        backend,
        naa: lun.naa.clone(),
        serial: lun.serial.clone(),
        allocated: facts.and_then(|facts| facts.allocated),
        notices: Vec::new(),
        grants: objects
            .grants_of_lun(name)
            // They come back with it.
            .chain(objects.removed_grants.keys().filter(|key| key.lun == name))
            .map(ToString::to_string)
            .collect(),
        bytes_in_flight_max: lun.bytes_in_flight_max,
        storage: lun.storage.in_force(),
        layers: facts.map(|facts| facts.layers.clone()).unwrap_or_default(),
        journal: None,
        verified: facts
            .and_then(|facts| facts.scrub.as_ref())
            .and_then(|scrub| scrub.verified.clone()),
        in_flight: facts.map_or(0, |facts| facts.in_flight),
        bytes_in_flight: facts.map_or(0, |facts| facts.bytes_in_flight),
        stalled: facts.and_then(|facts| facts.stalled),
        findings: facts
            .map(|facts| found(facts.scrub.as_ref(), facts.bad.clone()))
            .unwrap_or_default(),
        ops: facts.map(|facts| summaries(&facts.ops)).unwrap_or_default(),
    }
}
