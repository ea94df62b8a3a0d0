//! `config` and `restart`.

use super::refusals::{OfRestarts, OfSettings};
use crate::addresses::addresses;
use crate::answer::{Answer, WithTag};
use crate::auth::Gate;
use crate::describe::Paths;
use crate::edit::ask;
use crate::etag::tag_of;
use crate::parts::Wanted;
use crate::plain_change::{PlainChange, SeenChange};
use crate::records::Records;
use axum::extract::{Extension, State};
use controller::{Handle, StateFiles};
use manifest::code::Code;
use manifest::config::{
    Config, ConfigOutcome, ConfigPatch, ConfigView, OwnSettings, RestartView, SETTINGS_FILE,
    SettingChange, live_keys,
};
use manifest::problem::Problem;
use settings::{Here, Now, check, now, with};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::spawn_blocking;
use units::text::counted;

/// So many LUNs of a pool are named.
const NAMED_MAX: usize = 20;

/// What the daemon was started with, and how it is changed.
pub(crate) struct Settings {
    /// What is in force.
    live: watch::Sender<Arc<Config>>,
    files: StateFiles,
    pub(super) records: Records,
    /// Changes come one after the other. What is said to wait for a restart.
    pub(super) turn: Mutex<Vec<SettingChange>>,
    /// Why the files were refused when they were read last.
    pub(super) refused: std::sync::Mutex<Option<String>>,
    /// Notified when the daemon is to end and to begin anew.
    restart: Arc<Notify>,
}

impl Settings {
    pub(crate) fn new(
        live: watch::Sender<Arc<Config>>,
        files: StateFiles,
        restart: Arc<Notify>,
        records: Records,
    ) -> Self {
        Self {
            live,
            files,
            records,
            turn: Mutex::default(),
            refused: std::sync::Mutex::default(),
            restart,
        }
    }

    pub(super) fn running(&self) -> Arc<Config> {
        Arc::clone(&self.live.borrow())
    }

    /// What a start would read now. A disk that hangs holds up nobody else.
    pub(super) async fn now(&self) -> Result<Now, Problem> {
        let file = self.running().file.clone();
        let read = spawn_blocking(move || now(&file)).await;
        read.unwrap_or_else(|error| Err(Problem::new(Code::Internal, error.to_string())))
    }

    /// Why nothing may be changed.
    fn fixed(&self) -> Option<String> {
        let running = self.running();
        running.api_settings.fixed_settings.then(|| {
            let file = running.file.display();
            format!("{file} says change_settings = false below [api]")
        })
    }
}

pub(super) type The = Extension<Arc<Settings>>;

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/config",
            "the settings of `node.toml`, and what the file says by now: `config show`, `config diff`",
            config,
        )
        .patch(
            "/api/v1/config",
            "changes settings of the node, adds or removes a pool: `config set`, `config add-pool`, `config remove-pool`",
            change,
        )
        .post(
            "/api/v1/restart",
            "ends the daemon in order and begins it anew: `config restart`",
            restart,
        )
}

/// Stands for all that a change starts from.
fn tag(now: &Now) -> String {
    tag_of(&(&now.text, &now.own))
}

async fn config(State(handle): State<Handle>, Extension(settings): The) -> WithTag<ConfigView> {
    let sessions = ask!(handle, |controller| controller.sessions().await.len());
    let running = settings.running();
    let now = settings.now().await;
    let tag = now.as_ref().ok().map(tag);
    let (changes, overtaken, mistakes) = match now {
        Ok(now) => (
            running.changes_to(&now.config),
            now.config.overtaken(),
            Vec::new(),
        ),
        Err(problem) => {
            let lines = problem.detail.split("\n  ").map(str::to_owned);
            (Vec::new(), Vec::new(), lines.collect())
        }
    };
    WithTag(sessions.map(|sessions| {
        let view = ConfigView {
            file: running.file.display().to_string(),
            settings: running.settings(),
            changes,
            mistakes,
            sessions: count(sessions),
            own_file: settings.files.path(SETTINGS_FILE).display().to_string(),
            fixed: settings.fixed(),
            overtaken,
        };
        Ok((tag, view))
    }))
}

pub(super) fn count(sessions: usize) -> u64 {
    u64::try_from(sessions).unwrap_or(u64::MAX)
}

async fn change(
    State(handle): State<Handle>,
    Extension(settings): The,
    Extension(gate): Extension<Arc<Gate>>,
    change: SeenChange<OfSettings>,
    Wanted(patch): Wanted<ConfigPatch>,
) -> Answer<ConfigOutcome> {
    if let Some(open) = patch.opens()
        && gate.store.has_first_password()
    {
        let detail = format!("{open}: other machines would reach the node");
        return Answer(Err(Problem::new(Code::FirstPassword, detail)));
    }
    Answer(settings.change(&handle, &change, patch).await)
}

impl Settings {
    async fn change(
        &self,
        handle: &Handle,
        change: &SeenChange<OfSettings>,
        patch: ConfigPatch,
    ) -> Result<ConfigOutcome, Problem> {
        if let Some(why) = self.fixed() {
            return Err(Problem::new(Code::SettingsFixed, why));
        }
        let mut turn = self.turn.lock().await;
        let now = self.now().await?;
        change.seen.check("the node's settings", &tag(&now))?;
        let own = now.own.patched(&now.text, &patch).map_err(|faults| {
            let lines = faults
                .iter()
                .map(|it| format!("{}: {}", it.field, it.message));
            let detail = lines.collect::<Vec<String>>().join("; ");
            Problem::new(Code::ConfigValue, detail).fields(faults)
        })?;
        if let Some(pool) = &patch.remove_pool {
            unused(handle, pool).await?;
        }
        let removed = patch.remove_pool.clone();
        let own_file = self.files.path(SETTINGS_FILE);
        let running = self.running();
        let after = with(&running.file, &now.text, &own_file, &own)?;
        let notices = notices(patch.remove_pool.as_deref(), &now.config);
        let here = here(handle, &running).await?;
        let wanted = after.clone();
        let checked = spawn_blocking(move || check(&patch, &wanted, &here)).await;
        checked.unwrap_or_else(|error| Err(Problem::new(Code::Internal, error.to_string())))?;
        let mut changes = now.config.changes_to(&after);
        for it in &mut changes {
            it.takes_effect = running.effect(&after, &it.key);
        }
        let live = running.with_live(&after, &live_keys(&changes));
        let waiting = live.changes_to(&after);
        if !change.dry_run {
            // No LUN is made there from before the pool's removal is stored.
            let_go(handle, going(&running, &after), removed).await?;
            if own != now.own
                && let Err(problem) = self.store(&now.own, &own).await
            {
                let_go(handle, going(&running, &now.config), None).await?;
                return Err(problem);
            }
            self.say_waits(&mut turn, &waiting);
            // Also what was stored before, and did not come into force then.
            self.apply(handle, live).await?;
            self.note(None);
        }
        let sessions = ask!(handle, |controller| controller.sessions().await.len())?;
        Ok(ConfigOutcome {
            dry_run: change.dry_run,
            changes,
            waiting,
            notices,
            sessions: count(sessions),
        })
    }

    /// Replaces the changed settings, and keeps those of before.
    async fn store(&self, before: &OwnSettings, now: &OwnSettings) -> Result<(), Problem> {
        let kept = format!("{SETTINGS_FILE}.before");
        self.files.write(&kept, before.bytes()).await?;
        self.files.write(SETTINGS_FILE, now.bytes()).await
    }

    /// Reports what waits for a restart, where that is more or another thing than was `said`.
    pub(super) fn say_waits(&self, said: &mut Vec<SettingChange>, waiting: &[SettingChange]) {
        if waiting.iter().any(|it| !said.contains(it)) {
            let keys: Vec<&str> = waiting.iter().map(|it| it.key.as_str()).collect();
            let keys = keys.join(", ");
            tracing::warn!(settings = keys, "settings wait for a restart");
            self.records.settings_wait(&keys);
        }
        *said = waiting.to_vec();
    }

    /// Brings live settings into force.
    pub(super) async fn apply(&self, handle: &Handle, next: Config) -> Result<(), Problem> {
        let running = self.running();
        let changes = running.changes_to(&next);
        if changes.is_empty() {
            return Ok(());
        }
        let config = next.clone();
        ask!(handle, |controller| controller.configure(config).await)?;
        self.records.bound_history(next.history);
        self.live.send_replace(Arc::new(next));
        let keys: Vec<String> = changes.into_iter().map(|it| it.key).collect();
        let keys = keys.join(", ");
        tracing::info!(settings = keys, "settings came into force");
        self.records.settings_applied(&keys);
        Ok(())
    }
}

/// Refuses to do without a pool that something lies in.
async fn unused(handle: &Handle, pool: &str) -> Result<(), Problem> {
    let name = pool.to_owned();
    let lies = ask!(handle, |controller| controller.lies_in(&name).await)?;
    none_lies(pool, lies)
}

fn none_lies(pool: &str, mut lies: Vec<String>) -> Result<(), Problem> {
    if lies.is_empty() {
        return Ok(());
    }
    let all = counted(count(lies.len()), "LUN");
    let detail = format!("pool {pool} is not removed: it has {all}");
    let more = lies.len().saturating_sub(NAMED_MAX);
    lies.truncate(NAMED_MAX);
    if more > 0 {
        lies.push(format!("and {more} more"));
    }
    Err(Problem::new(Code::PoolUsed, detail).hits(lies))
}

/// The pools that a node does without from its next start on, which reads `next`.
pub(super) fn going(running: &Config, next: &Config) -> BTreeSet<String> {
    let stays = |name: &str| next.pools.iter().any(|it| it.name == name);
    let names = running.pools.iter().map(|it| &it.name);
    names.filter(|name| !stays(name)).cloned().collect()
}

/// From now on no LUN is made in these pools; nothing may lie in the one that is removed.
pub(super) async fn let_go(
    handle: &Handle,
    pools: BTreeSet<String>,
    removed: Option<String>,
) -> Result<(), Problem> {
    let empty = removed.clone();
    let lies = ask!(handle, |controller| controller
        .let_pools_go(pools, empty.as_deref())
        .await)?;
    none_lies(&removed.unwrap_or_default(), lies)
}

/// What is to be known of a pool that goes.
fn notices(removed: Option<&str>, config: &Config) -> Vec<String> {
    let pool = config.pools.iter().find(|it| Some(&*it.name) == removed);
    let Some(pool) = pool else {
        return Vec::new();
    };
    let all = pool.place.paths().iter().chain(&pool.journal);
    let all: Vec<String> = all.map(|path| path.display().to_string()).collect();
    match all.as_slice() {
        [] => Vec::new(),
        all => vec![format!(
            "nothing is deleted: {} stays as it is",
            all.join(", ")
        )],
    }
}

async fn here(handle: &Handle, running: &Config) -> Result<Here, Problem> {
    let portals = ask!(handle, |controller| controller.portals().await)?;
    let listening = portals.iter().filter(|it| it.problem.is_none());
    Ok(Here {
        addresses: addresses(handle).await?,
        listening: listening.filter_map(|it| it.address.parse().ok()).collect(),
        pools: running.pools.clone(),
    })
}

async fn restart(
    State(handle): State<Handle>,
    Extension(settings): The,
    change: PlainChange<OfRestarts>,
) -> Answer<RestartView> {
    let run = async {
        let now = settings.now().await.map_err(|problem| {
            let detail = format!("the daemon could not start again: {}", problem.detail);
            Problem::new(Code::RestartRefused, detail)
        })?;
        let running = settings.running();
        for pool in going(&running, &now.config) {
            // The file was edited.
            unused(&handle, &pool).await?;
        }
        let status = ask!(handle, |controller| controller.status().await)?;
        let hits = ask!(handle, |controller| controller.hosts_hit().await)?;
        if !change.dry_run {
            tracing::info!("a restart was asked for");
            settings.restart.notify_one();
        }
        Ok(RestartView {
            dry_run: change.dry_run,
            started: status.started,
            sessions: count(status.counts.sessions),
            hits,
            waiting: running.changes_to(&now.config),
        })
    };
    Answer(run.await)
}
