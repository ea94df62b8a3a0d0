//! `config/reload`, which is also what SIGHUP does: the files are read again.
//!
//! **Failure model.** Files that cannot be used change nothing. The one who asked is answered, and
//! `status` and metrics say it until they can be used.

use super::refusals::OfReloads;
use super::routes::{Settings, The, count, going, let_go};
use crate::answer::Answer;
use crate::auth::Gate;
use crate::describe::Paths;
use crate::edit::ask;
use crate::plain_change::PlainChange;
use axum::extract::{Extension, State};
use controller::Handle;
use manifest::code::Code;
use manifest::config::{ConfigOutcome, SettingChange, live_keys};
use manifest::problem::Problem;
use std::sync::{Arc, PoisonError};

pub(super) fn paths(paths: Paths) -> Paths {
    paths.post(
        "/api/v1/config/reload",
        "reads `node.toml` and the certificate again, as SIGHUP does, and says whether they are in force: `config reload`",
        reload,
    )
}

async fn reload(
    State(handle): State<Handle>,
    Extension(settings): The,
    Extension(gate): Extension<Arc<Gate>>,
    change: PlainChange<OfReloads>,
) -> Answer<ConfigOutcome> {
    let run = async {
        let done = settings.reload(&handle, change.dry_run).await?;
        let certificate = gate.certificate.as_ref().filter(|_| !change.dry_run);
        if let Some(certificate) = certificate {
            certificate.refresh(true);
            if let Some(why) = certificate.problem() {
                let detail = format!("https goes on with the certificate that it had: {why}");
                return Err(Problem::new(Code::ConfigEnvironment, detail));
            }
        }
        Ok(done)
    };
    Answer(run.await)
}

impl Settings {
    /// Reads the files again, and brings what is live of them into force; or only says what that
    /// would be.
    pub(crate) async fn reload(
        &self,
        handle: &Handle,
        dry_run: bool,
    ) -> Result<ConfigOutcome, Problem> {
        let mut turn = self.turn.lock().await;
        let done = self.read_again(handle, dry_run, &mut turn).await;
        if !dry_run {
            self.note(done.as_ref().err());
        }
        done
    }

    async fn read_again(
        &self,
        handle: &Handle,
        dry_run: bool,
        said: &mut Vec<SettingChange>,
    ) -> Result<ConfigOutcome, Problem> {
        let now = self.now().await?;
        let running = self.running();
        let changes = running.changes_to(&now.config);
        let live = running.with_live(&now.config, &live_keys(&changes));
        let waiting = live.changes_to(&now.config);
        if !dry_run {
            let_go(handle, going(&running, &now.config), None).await?;
            self.say_waits(said, &waiting);
            self.apply(handle, live).await?;
        }
        let sessions = ask!(handle, |controller| controller.sessions().await.len())?;
        Ok(ConfigOutcome {
            dry_run,
            changes,
            waiting,
            notices: Vec::new(),
            sessions: count(sessions),
        })
    }

    /// Keeps why the files were refused, until they are not.
    pub(super) fn note(&self, problem: Option<&Problem>) {
        if let Some(problem) = problem {
            tracing::error!("the settings stay as they are: {problem}");
        }
        let why = problem.map(|it| it.detail.clone());
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = why.as_ref().filter(|_| *refused != why) {
            self.records.settings_refused(why);
        }
        *refused = why;
    }

    /// Why the files were refused when they were read last, as a sentence for `status`.
    pub(crate) fn refused(&self) -> Option<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let why = refused.as_ref()?;
        Some(format!(
            "the settings that were read again were refused, and those before hold; a restart would fail: {why}"
        ))
    }
}
