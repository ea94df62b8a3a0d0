//! The runs of a node with their files: an index, and a record for each run.

use crate::outside::{now, random};
use crate::plan::{Plan, plan};
use controller::{Handle, StateFiles};
use manifest::code::Code;
use manifest::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use trials::{
    BenchView, Document, KEPT_BYTES_MAX, KEPT_MAX, Limits, RunDetail, RunRecord, RunState, RunView,
    Spec, Stored, to_forget,
};

/// Which runs there are, in the state directory.
const INDEX: &str = "bench.json";

/// What is done with the one that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// It goes on.
    Run,
    /// Somebody ends it.
    Cancel,
    /// The daemon ends.
    Stop,
}

/// The run that goes on.
pub(crate) struct Current {
    pub(crate) record: RunRecord,
    pub(crate) wish: watch::Sender<Wish>,
}

/// A run that is kept.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
struct Kept {
    view: RunView,
    bytes: u64,
}

/// The index as its file has it.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, Debug)]
struct Index {
    schema: u32,
    /// What its guests are called by: no other node's are.
    own: String,
    /// The number that the next run gets.
    next: u64,
    runs: BTreeMap<u64, Kept>,
}

#[derive(Default)]
pub(crate) struct Inner {
    index: Index,
    pub(crate) current: Option<Current>,
}

/// The runs of a node.
pub struct Bench {
    inner: Mutex<Inner>,
    pub(crate) files: StateFiles,
    pub(crate) handle: Handle,
    pub(crate) program: PathBuf,
    /// Held by whoever starts or forgets.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// A newer version wrote the index: nothing is stored.
    foreign: Option<String>,
    /// The daemon ends.
    stopping: watch::Sender<bool>,
    /// How many runs work.
    working: watch::Sender<u32>,
}

/// The file of a run.
fn record_file(id: u64) -> String {
    format!("bench-run-{id}.json")
}

fn read_index(bytes: &[u8]) -> Result<Index, String> {
    let index: Index = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if index.schema != 1 {
        return Err(format!("it is of version {}", index.schema));
    }
    Ok(index)
}

impl Bench {
    /// Reads what is kept, and marks what was cut off; `program` is what runs.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub async fn open(
        files: StateFiles,
        handle: Handle,
        program: PathBuf,
    ) -> Result<Self, Problem> {
        let mut foreign = None;
        let mut index = Index {
            schema: 1,
            next: 1,
            ..Index::default()
        };
        if let Some(bytes) = files.read(INDEX).await? {
            match read_index(&bytes) {
                Ok(read) => index = read,
                Err(why) => {
                    let path = files.path(INDEX);
                    tracing::error!(
                        "{}: {why}: results of the bench are not stored",
                        path.display()
                    );
                    foreign = Some(why);
                }
            }
        }
        if index.own.is_empty() {
            let mut bytes = [0; 8];
            random(&mut bytes);
            index.own = units::hex(&bytes);
        }
        files.remove(crate::CHAP_FILE).await?;
        let bench = Self {
            inner: Mutex::new(Inner {
                index,
                current: None,
            }),
            files,
            handle,
            program,
            turn: tokio::sync::Mutex::default(),
            foreign,
            stopping: watch::Sender::new(false),
            working: watch::Sender::new(0),
        };
        bench.find_cut_off().await;
        Ok(bench)
    }

    /// A run that was going on when the daemon ended is one that was interrupted.
    async fn find_cut_off(&self) {
        let running: Vec<u64> = {
            let inner = self.lock();
            let all = inner.index.runs.iter();
            let running = all.filter(|(_, kept)| kept.view.state == RunState::Running);
            running.map(|(id, _)| *id).collect()
        };
        for id in &running {
            // It may have come to its end, and only the index not know.
            let known = self.record(*id).await.map(|record| record.view);
            let mut inner = self.lock();
            let Some(kept) = inner.index.runs.get_mut(id) else {
                continue;
            };
            match known.filter(|view| view.state != RunState::Running) {
                Some(view) => kept.view = view,
                None => interrupt(&mut kept.view),
            }
        }
        if !running.is_empty() {
            self.store_index().await;
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn store_index(&self) {
        if self.foreign.is_some() {
            return;
        }
        let bytes = serde_json::to_vec(&self.lock().index).unwrap_or_default();
        if let Err(problem) = self.files.write(INDEX, bytes).await {
            tracing::warn!("which runs of the bench there are is not stored: {problem}");
        }
    }

    /// The file of a run.
    async fn record(&self, id: u64) -> Option<RunRecord> {
        let bytes = self.files.read(&record_file(id)).await.ok()??;
        match Document::read(&bytes) {
            Ok(document) => Some(document.run),
            Err(why) => {
                let path = self.files.path(&record_file(id));
                tracing::warn!("{}: {why}", path.display());
                None
            }
        }
    }

    /// Begins a run, which nobody else does now; its number comes from [`Bench::next_id`].
    pub(crate) async fn begin(&self, record: RunRecord, wish: watch::Sender<Wish>) {
        {
            let mut inner = self.lock();
            let view = record.view.clone();
            inner.index.next = view.id + 1;
            inner.index.runs.insert(view.id, Kept { view, bytes: 0 });
            inner.current = Some(Current { record, wish });
        }
        self.working.send_modify(|count| *count += 1);
        self.store_index().await;
    }

    /// By what guests of this node are called.
    pub(crate) fn own(&self) -> String {
        self.lock().index.own.clone()
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.lock().index.next.max(1)
    }

    /// How far the current run is.
    pub(crate) fn progress(&self) -> Option<(f64, f64)> {
        let inner = self.lock();
        let view = &inner.current.as_ref()?.record.view;
        Some((view.elapsed_seconds, view.whole_seconds))
    }

    /// The current run is at its end: stores it, and forgets others for its room; how it is then.
    pub(crate) async fn end(&self, wish: Wish, said: &str) -> Option<RunView> {
        // It is shown as ended when it is stored: what is forgotten before would come back.
        let mut ended = self.lock().current.as_ref()?.record.clone();
        ended.end(now(), wish == Wish::Cancel, said);
        if wish == Wish::Stop {
            ended.view.state = RunState::Running;
            ended.interrupt();
        }
        let (id, view) = (ended.view.id, ended.view.clone());
        let bytes = Document::new(ended).write();
        let size = bytes.len() as u64;
        if self.foreign.is_none()
            && let Err(problem) = self.files.write(&record_file(id), bytes).await
        {
            tracing::warn!("a run of the bench is not stored: {problem}");
        }
        let old = {
            let mut inner = self.lock();
            let view = view.clone();
            inner.index.runs.insert(id, Kept { view, bytes: size });
            inner.current = None;
            let all = inner.index.runs.iter();
            let all: Vec<Stored> = all.map(|(id, kept)| stored(*id, kept)).collect();
            to_forget(&all)
        };
        for id in old {
            // What cannot be removed now is not known any more.
            let _kept = self.files.remove(&record_file(id)).await;
            self.lock().index.runs.remove(&id);
        }
        self.store_index().await;
        self.working.send_modify(|count| *count -= 1);
        Some(view)
    }

    /// Forgets a run.
    ///
    /// # Errors
    /// It is not there, or goes on.
    pub async fn forget(&self, id: u64, dry_run: bool) -> Result<(), Problem> {
        let _one_at_a_time = self.turn.lock().await;
        let view = self.view(id)?;
        if view.state == RunState::Running {
            let detail = format!("run {id} goes on");
            return Err(Problem::new(Code::InUse, detail).hint("cancel it first"));
        }
        if dry_run {
            return Ok(());
        }
        self.files.remove(&record_file(id)).await?;
        self.lock().index.runs.remove(&id);
        self.store_index().await;
        Ok(())
    }

    /// All runs, the oldest first.
    #[must_use]
    pub fn views(&self) -> Vec<RunView> {
        let inner = self.lock();
        let current = inner.current.as_ref().map(|it| &it.record.view);
        let all = inner.index.runs.values().map(|kept| match current {
            Some(view) if view.id == kept.view.id => view.clone(),
            _ => kept.view.clone(),
        });
        all.collect()
    }

    /// One run.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn view(&self, id: u64) -> Result<RunView, Problem> {
        let found = self.views().into_iter().find(|view| view.id == id);
        found.ok_or_else(|| not_there(&id.to_string()))
    }

    /// One run with what is known of it since a second.
    ///
    /// # Errors
    /// There is none of this number.
    pub async fn detail(&self, id: u64, since: u64) -> Result<RunDetail, Problem> {
        let view = self.view(id)?;
        if let Some(current) = &self.lock().current
            && current.record.view.id == id
        {
            return Ok(current.record.detail(since));
        }
        Ok(match self.record(id).await {
            Some(record) => RunDetail {
                run: view,
                ..record.detail(since)
            },
            None => RunDetail {
                run: view,
                seconds: Vec::new(),
                result: None,
            },
        })
    }

    /// What a run gave.
    ///
    /// # Errors
    /// It has none.
    pub async fn outcome(&self, id: u64) -> Result<trials::line::Outcome, Problem> {
        let view = self.view(id)?;
        let current = {
            let inner = self.lock();
            let current = inner.current.as_ref();
            current
                .filter(|it| it.record.view.id == id)
                .map(|it| it.record.clone())
        };
        let record = match (view.state, current) {
            (RunState::Running, _) => None,
            (_, Some(current)) => Some(current),
            (_, None) => self.record(id).await,
        };
        record.and_then(|record| record.outcome).ok_or_else(|| {
            let detail = format!("run {id} has no result");
            Problem::new(Code::NotFound, detail)
                .hint("a run has one when it has ended; `GET /api/v1/bench/runs` lists states")
        })
    }

    /// What may be asked, and what is kept.
    #[must_use]
    pub fn overview(&self) -> BenchView {
        let inner = self.lock();
        let all = inner.index.runs.values();
        BenchView {
            running: inner.current.as_ref().map(|it| it.record.view.id),
            kept: inner.index.runs.len() as u64,
            kept_max: KEPT_MAX,
            kept_bytes: all.map(|kept| kept.bytes).sum(),
            kept_bytes_max: KEPT_BYTES_MAX,
            limits: Limits::ALL,
        }
    }

    /// What a run would touch.
    ///
    /// # Errors
    /// There is no such LUN, or it cannot be reached.
    pub async fn plan(&self, spec: &Spec) -> Result<Plan, Problem> {
        plan(&self.handle, spec).await
    }

    /// Refuses while another run goes on, or the daemon ends.
    ///
    /// # Errors
    /// Another one goes on.
    pub fn is_free(&self) -> Result<(), Problem> {
        if *self.stopping.borrow() {
            return Err(Problem::new(Code::Stopping, "the daemon is stopping"));
        }
        let inner = self.lock();
        let Some(current) = &inner.current else {
            return Ok(());
        };
        let id = current.record.view.id;
        let detail = format!("bench run {id} goes on, and there is one at a time");
        let problem = Problem::new(Code::InUse, detail).hint("wait for its end, or cancel it");
        Err(problem.hits(vec![format!("bench run {id}")]))
    }

    /// Has a run end before its time.
    ///
    /// # Errors
    /// It has ended.
    pub fn cancel(&self, id: u64, dry_run: bool) -> Result<RunView, Problem> {
        let view = self.view(id)?;
        let inner = self.lock();
        let current = inner.current.as_ref();
        let Some(current) = current.filter(|it| it.record.view.id == id) else {
            let detail = format!("run {id} has ended");
            return Err(Problem::new(Code::InUse, detail).hint("there is nothing to cancel"));
        };
        if !dry_run {
            current.wish.send_replace(Wish::Cancel);
        }
        Ok(view)
    }

    /// The daemon ends: runs do.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
        if let Some(current) = &self.lock().current {
            current.wish.send_replace(Wish::Stop);
        }
    }

    /// Until no run works any more.
    pub async fn stopped(&self) {
        let mut working = self.working.subscribe();
        // It is there as long as this is.
        let _none = working.wait_for(|count| *count == 0).await;
    }
}

fn interrupt(view: &mut RunView) {
    let mut record = RunRecord {
        view: view.clone(),
        seconds: Vec::new(),
        outcome: None,
    };
    record.interrupt();
    *view = record.view;
}

fn stored(id: u64, kept: &Kept) -> Stored {
    let bytes = kept.bytes;
    Stored { id, bytes }
}

/// There is no run of this number.
#[must_use]
pub fn not_there(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no bench run {id}"))
        .hint("`causeway api GET bench/runs` lists those that are kept")
}
