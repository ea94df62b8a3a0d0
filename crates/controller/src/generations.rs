//! The kept generations of the objects: shown, gone back to, and compared with what pools saw.

use super::{Asked, Controller, How};
use manifest::code::Code;
use manifest::objects::{Lun, ObjectSet, Objects, export};
use manifest::orphan::LunRecord;
use manifest::plan::{Action, CONFIRM_MANY, Class, Edit, Section, Verb};
use manifest::problem::Problem;
use manifest::size::rounded;
use manifest::view::{Kept, Outcome};
use std::rc::Weak;

/// The state directory is older than what a pool has seen of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Older {
    /// The newest generation that a pool has seen.
    pub(super) newest: u64,
    /// The name of that pool, for the message.
    pub(super) pool: String,
}

impl Older {
    pub(super) fn problem(&self, generation: u64) -> Problem {
        let (newest, pool) = (self.newest, &self.pool);
        Problem::new(
            Code::StateOlder,
            format!(
                "state_dir has generation {generation} of the objects, and pool {pool} has seen generation {newest}: it was restored from an older \
                 copy, and what was changed since is not known here"
            ),
        )
    }
}

impl Controller {
    /// The generations that are kept, newest first.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub async fn generations(&self) -> Result<Vec<Kept>, Problem> {
        self.store.lock().await.kept().await
    }

    /// The objects of a kept generation, in the form of an export, which has no secrets.
    ///
    /// # Errors
    /// It is not kept, or cannot be read.
    pub async fn objects_of(&self, generation: u64) -> Result<ObjectSet, Problem> {
        let then = self.store.lock().await.objects_of(generation).await?;
        Ok(export(&then))
    }

    /// Goes back to the objects of a kept generation, without losing data.
    ///
    /// # Errors
    /// It is not kept, cannot be read, or what the change says.
    pub async fn roll_back(
        &self,
        generation: u64,
        how: How,
        asked: Asked,
    ) -> Result<Outcome, Problem> {
        // Once more when it is this change's turn; here so that the reason is the right one.
        self.expect(asked.expected.as_ref())?;
        let then = self.store.lock().await.objects_of(generation).await?;
        let edit = Edit::RollBack(Box::new(then));
        self.edit_if(&edit, how, asked).await
    }

    /// Whether the pools have seen newer objects than these; if not, they record these.
    pub(super) async fn compare_with_pools(&self) {
        let generation = self.generation.get();
        match self.engine.newest_saved(&self.node_id).await {
            Some((newest, pool)) if newest > generation => {
                let older = Older { newest, pool };
                let problem = older.problem(generation);
                tracing::error!(code = %problem.code, "{}", problem.detail);
                *self.older.borrow_mut() = Some(older);
                self.engine.is_older().await;
            }
            Some(_) | None => self.engine.saved(&self.node_id, generation).await,
        }
    }

    /// Compares again whenever a pool comes back that was away.
    pub(super) async fn follow_pools(this: Weak<Self>) {
        loop {
            let Some(returned) = this.upgrade().map(|it| it.engine.pool_returned()) else {
                return;
            };
            returned.await;
            let Some(this) = this.upgrade() else { return };
            // No change is under way meanwhile.
            let _store = this.store.lock().await;
            if !this.stopping.get() {
                this.compare_with_pools().await;
            }
        }
    }

    /// Why changes wait for somebody to say that older objects are meant.
    pub(super) fn older(&self) -> Option<Problem> {
        let older = self.older.borrow();
        Some(older.as_ref()?.problem(self.generation.get()))
    }

    /// LUNs that are served smaller than their pools have seen them, for `status`.
    pub(super) fn seen_larger(&self, objects: &Objects) -> Vec<String> {
        let seen = self.engine.seen_larger();
        let reported = |(name, lun): (&String, &Lun)| {
            let seen = seen.get(&lun.naa)?;
            Some(format!(
                "LUN {name} has {}, and {} has seen it with {}: what is beyond is not served and stays; causeway lun resize {name} --size {seen} gives it back",
                lun.size.reported(),
                lun.backing,
                seen.reported()
            ))
        };
        objects.luns.iter().filter_map(reported).collect()
    }

    /// The objects that are in force are meant, although the pools have seen newer ones: they
    /// become the newest.
    ///
    /// # Errors
    /// It is refused unless it is forced, because what is newer is given up; or they cannot be
    /// stored.
    pub async fn accept(&self, how: How, asked: Asked) -> Result<Outcome, Problem> {
        let mut store = self.store.lock().await;
        self.expect(asked.expected.as_ref())?;
        let mut outcome = Outcome {
            generation: self.generation.get(),
            ..Outcome::default()
        };
        let Some(older) = self.older.borrow().clone() else {
            return Ok(outcome);
        };
        self.report_given_up(&older, &mut outcome).await;
        let refusal = refusal(&older, &outcome);
        if how.dry_run {
            outcome.refusal = Some(refusal.to_string());
            return Ok(outcome);
        }
        if !how.force {
            return Err(refusal);
        }
        store.skip_to(older.newest);
        let saved = store
            .save(&self.objects(), self.core.wall_clock(), false)
            .await?;
        self.generation.set(saved);
        *self.older.borrow_mut() = None;
        self.engine.saved(&self.node_id, saved).await;
        tracing::warn!(
            generation = saved,
            "the older objects of state_dir are the newest from now on, as asked for"
        );
        for action in &outcome.actions {
            tracing::warn!(generation = saved, "{action}");
        }
        (outcome.changed, outcome.generation) = (true, saved);
        Ok(outcome)
    }

    /// What is known of the newer objects: what the pools say of each LUN, and LUNs that only they
    /// know.
    async fn report_given_up(&self, older: &Older, outcome: &mut Outcome) {
        let objects = self.objects();
        let records = self.engine.records().await;
        let served = objects.luns.iter().map(|it| (it, false));
        let removed = objects.removed.iter().map(|it| (it, true));
        for ((name, lun), is_removed) in served.chain(removed) {
            let record = records.get(&lun.naa);
            let detail = record.and_then(|record| since(name, lun, is_removed, record));
            outcome.actions.extend(detail.map(|detail| Action {
                verb: Verb::Change,
                section: Section::Lun,
                name: name.clone(),
                detail,
                class: Class::Live,
                hits: Vec::new(),
                loses_data: record.is_some_and(|record| record.lun.size > lun.size),
                risks_data: false,
            }));
        }
        for orphan in self.engine.orphans(true).await {
            let (name, size) = (orphan.shown(), rounded(orphan.size_bytes));
            outcome.notices.push(format!(
                "LUN {name} of {size} in pool {} is not among these objects: it stays there, and `causeway lun adopt {name}` takes it into service",
                orphan.pool
            ));
        }
        let (first, newest) = (self.generation.get() + 1, older.newest);
        outcome.notices.push(format!(
            "what generations {first} to {newest} said of targets, hosts, grants and secrets is not known here and is given up: hosts may \
             see again what was taken from them"
        ));
    }
}

/// What became of a LUN since, as its pool knows it.
fn since(name: &str, lun: &Lun, is_removed: bool, record: &LunRecord) -> Option<String> {
    let is_larger = record.lun.size > lun.size;
    let is_smaller = record.lun.size < lun.size;
    let (here, there) = (lun.size.reported(), record.lun.size.reported());
    let mut reported = Vec::new();
    if is_larger {
        reported.push(format!(
            "it has grown from {here} to {there} since: it has {here}, what is beyond stays in its pool and is not served"
        ));
    } else if is_smaller {
        reported.push(format!(
            "it was cut from {here} to {there} since: it has {here} again, and nobody knows what the end holds"
        ));
    }
    if record.name != *name {
        reported.push(format!("it was called {} since: it is {name}", record.name));
    }
    match (is_removed, record.removed) {
        (false, true) => reported.push("it was deleted since: it is in service".to_owned()),
        (true, false) => reported.push("it was restored since: it is deleted".to_owned()),
        (true, true) | (false, false) => {}
    }
    let same = Lun {
        size: lun.size,
        ..record.lun.clone()
    };
    if same != *lun {
        reported.push("its fields were changed since: they are as they were".to_owned());
    }
    (!reported.is_empty()).then(|| reported.join("; "))
}

/// Nothing newer is given up without a question.
fn refusal(older: &Older, outcome: &Outcome) -> Problem {
    let newest = older.newest;
    let detail = format!("not done: generation {newest} of the objects would be given up");
    let actions = outcome.actions.iter().map(ToString::to_string);
    let losses = actions.chain(outcome.notices.iter().cloned()).collect();
    Problem::new(Code::WouldLoseData, detail).confirm(CONFIRM_MANY, losses)
}
