//! What an administrator may ask of a pool's journal: to open it anew, and to give it up.

use crate::inner::Inner;
use crate::journal::journals;
use crate::journal::opening;
use crate::journal::pool_journal::PoolJournal;
use crate::lun::layers::journal_id;
use manifest::code::Code;
use manifest::config::Pool;
use manifest::journal::{JournalLoss, JournalOp, JournalOutcome, JournalRequest, JournalState};
use manifest::problem::Problem;
use std::rc::Rc;
use units::text::counted;
use volume::{OpenError, OpenErrorKind};
use write_back::survey;

fn unusable(error: &OpenError) -> Problem {
    Problem::new(Code::JournalUnusable, error.cause.clone()).hint(error.next_step.clone())
}

impl Inner {
    /// Does what is asked.
    pub(crate) async fn journal(
        self: &Rc<Self>,
        name: &str,
        request: &JournalRequest,
    ) -> Result<JournalOutcome, Problem> {
        let pool = self.config.pools.iter().find(|pool| pool.name == name);
        let pool = pool.ok_or_else(|| Problem::not_found("pool", name))?;
        let _turn = self.turn.lock().await;
        let facts = journals::journals(self).await.remove(name);
        let state = facts.as_ref().map(|facts| facts.state);
        let Some(state) = state else {
            return Err(Problem::new(
                Code::NotFound,
                format!("pool {name} has no journal"),
            ));
        };
        let mut outcome = JournalOutcome {
            pool: name.to_owned(),
            changed: false,
            losses: Vec::new(),
            unknown: None,
            journal: None,
        };
        match (request.operation, state) {
            (JournalOp::Reopen, JournalState::Open) => {}
            (JournalOp::Reopen, JournalState::Failed | JournalState::Missing) => {
                if !request.dry_run {
                    self.reopen(pool).await.map_err(|error| unusable(&error))?;
                    outcome.changed = true;
                }
            }
            (JournalOp::Discard, JournalState::Open) => {
                let detail = format!("the journal of pool {name} is open and takes writes");
                return Err(Problem::new(Code::JournalServes, detail));
            }
            (JournalOp::Discard, JournalState::Failed | JournalState::Missing) => {
                (outcome.losses, outcome.unknown) = self.losses(pool).await;
                if !request.dry_run {
                    self.give_up(pool, request, &outcome).await?;
                    outcome.changed = true;
                }
            }
        }
        outcome.journal = journals::journals(self).await.remove(name);
        Ok(outcome)
    }

    /// Closes what has failed and opens what is there.
    pub(crate) async fn reopen(self: &Rc<Self>, pool: &Pool) -> Result<(), OpenError> {
        if let PoolJournal::Open(_) = self.journals.of(&pool.name) {
            let why = OpenError {
                kind: OpenErrorKind::Other,
                cause: "its journal is being opened anew".to_owned(),
                next_step: "wait a moment".to_owned(),
            };
            self.take_away(pool, why, None).await;
        }
        let opened = self.bring_back(pool).await;
        if let Err(error) = &opened {
            self.journals.lose(&pool.name, error.clone(), None);
        }
        opened
    }

    /// What each LUN of the pool loses at the most, and why not all of that is known.
    async fn losses(&self, pool: &Pool) -> (Vec<JournalLoss>, Option<String>) {
        let inspected = match &pool.journal {
            Some(path) => survey(&self.core, path).await,
            None => Err(OpenError {
                kind: OpenErrorKind::Refused,
                cause: "node.toml does not name it".to_owned(),
                next_step: String::new(),
            }),
        };
        let nobody_knows = |name: String| JournalLoss {
            lun: name,
            changes: None,
            bytes: None,
        };
        let held = match inspected {
            Ok((_, survey)) => survey,
            // Nobody can read it any more, and this process knows that nothing in it was needed.
            Err(_) if self.journals.was_destaged(&pool.name) => return (Vec::new(), None),
            Err(error) => {
                let luns = self.luns_of(&pool.name);
                let names = luns.iter().map(|lun| self.lun_of(journal_id(lun)));
                return (names.map(nobody_knows).collect(), Some(error.cause));
            }
        };
        let unread = held.rings.iter().find_map(|ring| ring.stop.clone());
        let losses = held.volumes.iter().map(|(volume, held)| JournalLoss {
            lun: self.lun_of(*volume),
            changes: Some(held.changes + held.damaged),
            bytes: Some(held.bytes),
        });
        (losses.collect(), unread)
    }

    async fn give_up(
        self: &Rc<Self>,
        pool: &Pool,
        request: &JournalRequest,
        outcome: &JournalOutcome,
    ) -> Result<(), Problem> {
        if request.confirm.as_deref() != Some(pool.name.as_str()) {
            let (name, luns) = (&pool.name, outcome.losses.len());
            let detail = match luns {
                0 => format!("the journal of pool {name} holds nothing that is not destaged"),
                luns => format!(
                    "the journal of pool {name} holds, or may hold, writes of {}",
                    counted(luns as u64, "LUN")
                ),
            };
            return Err(Problem::new(Code::WouldLoseWrites, detail));
        }
        let why = OpenError {
            kind: OpenErrorKind::Other,
            cause: "its journal is being given up".to_owned(),
            next_step: "wait a moment".to_owned(),
        };
        self.take_away(pool, why, None).await;
        let made = async {
            self.end_old_journal(pool).await?;
            opening::discard(self, pool).await?;
            self.bring_back(pool).await
        };
        let made = made.await;
        if let Err(error) = &made {
            self.journals.lose(&pool.name, error.clone(), None);
        }
        made.map_err(|error| unusable(&error))?;
        for loss in &outcome.losses {
            tracing::warn!(
                pool = pool.name,
                lun = loss.lun,
                changes = loss.changes,
                bytes = loss.bytes,
                "what the journal held of it was given up as asked"
            );
        }
        Ok(())
    }
}
