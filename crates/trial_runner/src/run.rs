//! Starts a run's child, and stays with it to its end.

use crate::CHAP_FILE;
use crate::bench::{Bench, Wish};
use crate::job::{Job, Of};
use crate::outside::{now, random};
use crate::plan::{Plan, url};
use children::Child;
use controller::{Ending, Found, Guest};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use trials::line::{BenchLine, LINE_BYTES_MAX, read};
use trials::{Kind, RunRecord, RunState, RunView, Spec, Started};

/// What a run takes besides its own seconds: opening, operations that do not come back, the result.
const MORE: Duration = Duration::from_secs(120);

/// What writing all of a target, or reading all of it back, may take.
const WHOLE: Duration = Duration::from_secs(3600);

/// How long a child that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same while the daemon ends.
const LITTLE: Duration = Duration::from_secs(2);

impl Bench {
    /// Starts a run of a plan that was confirmed.
    ///
    /// # Errors
    /// Another one goes on, or the child cannot be started.
    pub async fn start(
        self: &Arc<Self>,
        spec: Spec,
        plan: Plan,
        by: &str,
    ) -> Result<RunView, Problem> {
        let _one_at_a_time = self.turn.lock().await;
        self.is_free()?;
        let id = self.next_id();
        let entered = self.enter(&spec, plan.found.as_ref()).await?;
        let started = Started {
            id,
            by: by.to_owned(),
            at: now(),
            command_line: plan.view.command_line,
        };
        let record = RunRecord::new(&spec, started);
        let mut words = vec!["bench".to_owned(), "--driven".to_owned()];
        words.extend(spec.words(&entered.target, &entered.words));
        let child = match Child::start(&self.program, &words, LINE_BYTES_MAX) {
            Ok(child) => child,
            Err(error) => {
                self.leave(&entered).await;
                let detail = format!("the bench cannot be started: {error}");
                return Err(Problem::new(Code::BenchFailed, detail));
            }
        };
        let view = record.view.clone();
        let (sender, wish) = watch::channel(Wish::Run);
        let of = Of {
            kind: "bench",
            object: &view.target,
            by,
            seconds: u64::from(spec.load.seconds) + u64::from(spec.load.warm_up_seconds),
            link: format!("/api/v1/bench/runs/{id}"),
        };
        let cancel = sender.clone();
        let job = Job::begin(&self.handle, of, move || {
            cancel.send_replace(Wish::Cancel);
        });
        let job = job.await;
        self.begin(record, sender).await;
        tracing::info!(
            run = id,
            by,
            target = view.target,
            writes = view.writes,
            "a bench run begins"
        );
        let limit = limit(&spec);
        let bench = Arc::clone(self);
        tokio::spawn(async move {
            let (wish, said) = bench.attend(child, wish, limit, &job).await;
            bench.leave(&entered).await;
            let ended = bench.end(wish, &said).await;
            // What the daemon's end cut off is interrupted by the next start.
            if let Some(view) = ended.filter(|_| wish != Wish::Stop) {
                job.end(ending(&view)).await;
            }
            tracing::info!(run = id, "a bench run has ended");
        });
        Ok(view)
    }

    /// Reads what the child says, until it has ended: what was wished of it, and its last words.
    async fn attend(
        &self,
        mut child: Child,
        mut wish: watch::Receiver<Wish>,
        limit: Duration,
        job: &Job,
    ) -> (Wish, String) {
        let until = Instant::now() + limit;
        let (mut wished, mut is_late) = (Wish::Run, false);
        let mut deadline = until;
        loop {
            let line = tokio::select! {
                line = child.line() => line,
                Ok(()) = wish.changed(), if wished != Wish::Stop => {
                    wished = *wish.borrow_and_update();
                    child.ask_to_end();
                    deadline = Instant::now() + if wished == Wish::Stop { LITTLE } else { PATIENCE };
                    continue;
                }
                () = sleep_until(deadline) => {
                    is_late = true;
                    break;
                }
            };
            match line.map_err(|error| error.to_string()) {
                Ok(Some(line)) => match read::<BenchLine>(&line) {
                    Ok(line) => {
                        if self
                            .lock()
                            .current
                            .as_mut()
                            .is_some_and(|it| it.record.take(line))
                        {
                            break;
                        }
                        if let Some((done, total)) = self.progress() {
                            job.progress(done, total);
                        }
                    }
                    Err(why) => {
                        self.fail(&why);
                        break;
                    }
                },
                Ok(None) => break,
                Err(why) => {
                    self.fail(&why);
                    break;
                }
            }
        }
        child
            .end(if is_late { Duration::ZERO } else { LITTLE })
            .await;
        if is_late && wished == Wish::Run {
            self.fail(&format!(
                "it did not end within {} seconds",
                limit.as_secs()
            ));
        }
        (wished, child.said())
    }

    fn fail(&self, why: &str) {
        if let Some(current) = &mut self.lock().current {
            let problem = Problem::new(Code::BenchFailed, format!("the bench: {why}"));
            current.record.take(BenchLine::Failed(problem));
        }
    }

    /// Gets at the target of a run.
    async fn enter(&self, spec: &Spec, found: Option<&Found>) -> Result<Entered, Problem> {
        let mut entered = Entered {
            target: spec.kind.target(),
            words: Vec::new(),
            guest: None,
        };
        let own = self.files.path("bench-initiator").display().to_string();
        match (&spec.kind, found) {
            (Kind::Lun(lun), Some(found)) => {
                let guest = guest(lun, &self.own(), found, !spec.destroys());
                entered.target = url(found, &guest.target, 0);
                entered.words = vec![
                    "--initiator-name".to_owned(),
                    guest.initiator.clone(),
                    "--no-discover".to_owned(),
                    "--initiator-state".to_owned(),
                    own,
                ];
                self.say_chap(&mut entered, &guest.user, &guest.secret)
                    .await?;
                entered.guest = Some(guest.target.clone());
                let admitted = self
                    .handle
                    .call(move |controller| Box::pin(async move { controller.admit(guest).await }));
                admitted.await??;
            }
            (Kind::Url(_), _) => {
                entered.words = vec!["--initiator-state".to_owned(), own];
                if let Some((user, secret)) = &spec.chap {
                    self.say_chap(&mut entered, user, secret).await?;
                }
            }
            (Kind::Memory(_) | Kind::Lun(_), _) => {}
        }
        Ok(entered)
    }

    /// A secret goes by a file that only this user may read.
    async fn say_chap(
        &self,
        entered: &mut Entered,
        user: &str,
        secret: &Secret,
    ) -> Result<(), Problem> {
        let bytes = secret.reveal().to_vec();
        self.files.write(CHAP_FILE, bytes).await?;
        let path = self.files.path(CHAP_FILE).display().to_string();
        let chap = ["--chap".to_owned(), format!("{user}:{path}")];
        entered.words.extend(chap);
        Ok(())
    }

    /// Gives up what a run had to get at its target.
    async fn leave(&self, entered: &Entered) {
        if let Some(target) = entered.guest.clone() {
            // Where core 0 is gone there is no guest either.
            let dismissed = self
                .handle
                .call(move |controller| Box::pin(async move { controller.dismiss(&target).await }));
            let _gone = dismissed.await;
        }
        if let Err(problem) = self.files.remove(CHAP_FILE).await {
            tracing::warn!("the secret of a bench run that has ended: {problem}");
        }
    }
}

/// What a run has to get at its target.
struct Entered {
    target: String,
    words: Vec<String>,
    /// The target of its guest.
    guest: Option<String>,
}

fn guest(lun: &str, own: &str, found: &Found, read_only: bool) -> Guest {
    let mut secret = [0; 24];
    random(&mut secret);
    Guest {
        lun: lun.to_owned(),
        initiator: format!("iqn.2026-11.io.causeway:bench-host.{own}"),
        target: format!("iqn.2026-11.io.causeway:bench.{own}"),
        portal_group: found.portal_group.clone(),
        user: "bench".to_owned(),
        secret: Secret::new(units::hex(&secret).into_bytes()),
        read_only,
    }
}

/// When a run that has not ended is ended.
fn limit(spec: &Spec) -> Duration {
    let load = &spec.load;
    let own = u64::from(load.seconds) + u64::from(load.warm_up_seconds);
    let whole = if load.fill || load.verify {
        WHOLE
    } else {
        Duration::ZERO
    };
    Duration::from_secs(own) + MORE + whole
}

/// How its job ended.
fn ending(view: &RunView) -> Ending {
    let why = || view.problem.as_ref().map(|it| it.detail.clone());
    match view.state {
        RunState::Finished => Ending::Finished,
        RunState::Cancelled => Ending::Cancelled,
        RunState::Failed | RunState::Interrupted | RunState::Running => {
            Ending::Failed(why().unwrap_or_default())
        }
    }
}
