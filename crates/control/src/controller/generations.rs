//! The generations of the objects that are kept: told, gone back to, and held against what the pools have seen.

use super::{Controller, How};
use crate::code::Code;
use crate::plan::Edit;
use crate::problem::Problem;
use crate::state::Kept;
use crate::view::Outcome;
use std::rc::Weak;

/// The state directory is older than what a pool has seen of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Older {
    /// The newest generation that a pool has seen.
    pub(super) newest: u64,
    /// The pool.
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

    /// Goes back to the objects of a kept generation, without losing data.
    ///
    /// # Errors
    /// It is not kept, cannot be read, or what the change says.
    pub async fn roll_back(&self, generation: u64, how: How) -> Result<Outcome, Problem> {
        let then = self.store.lock().await.objects_of(generation).await?;
        self.edit(&Edit::RollBack(Box::new(then)), how).await
    }

    /// Whether the pools have seen newer objects than these; if not, they are told of these.
    pub(super) async fn compare_with_pools(&self) {
        let newest = self.engine.newest_saved(&self.node_id).await;
        let generation = self.generation.get();
        match newest {
            Some((newest, pool)) if newest > generation => {
                let older = Older { newest, pool };
                let problem = older.problem(generation);
                tracing::error!(code = %problem.code, "{}", problem.detail);
                self.engine.is_older();
                *self.older.borrow_mut() = Some(older);
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
        let older = older.as_ref();
        older.map(|older| older.problem(self.generation.get()))
    }

    /// The objects that are in force are meant, although the pools have seen newer ones: they become the newest.
    ///
    /// # Errors
    /// They cannot be stored.
    pub async fn accept(&self) -> Result<Outcome, Problem> {
        let mut store = self.store.lock().await;
        let older = self.older.borrow().clone();
        let mut outcome = Outcome {
            changed: older.is_some(),
            generation: self.generation.get(),
            actions: Vec::new(),
            notices: Vec::new(),
            refusal: None,
        };
        let Some(older) = older else {
            return Ok(outcome);
        };
        store.skip_to(older.newest);
        let saved = store.save(&self.objects(), self.core.wall_clock()).await?;
        self.generation.set(saved);
        *self.older.borrow_mut() = None;
        self.engine.saved(&self.node_id, saved).await;
        tracing::warn!(
            generation = saved,
            "the older objects of state_dir are the newest from now on, as asked for"
        );
        outcome.generation = saved;
        Ok(outcome)
    }
}
