//! The beds of a node, and the children that they are.

use crate::job::{Job, Of};
use crate::outside::now;
use children::Child;
use controller::{Ending, Handle, StateFiles};
use lab::{Rate, topologies};
use manifest::code::Code;
use manifest::problem::Problem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use trials::line::{BedLine, LINE_BYTES_MAX, LinkOrder, read, write};
use trials::{BedRecord, BedState, BedView, LabView, TopologyView, WantedBed};

/// Beds that are known.
const KNOWN_MAX: usize = 20;

/// Its file says that a bed was built and not removed yet.
const MARK: &str = "lab-bed";

/// How long it takes to remove a bed.
const REMOVAL: Duration = Duration::from_secs(20);

/// How long a link may take to be another one.
const LINK_TIME: Duration = Duration::from_secs(10);

/// The rate that links are shown with before somebody has chosen.
const RATE: Rate = Rate::megabits(250);

/// The most that a link of a bed carries.
const RATE_BITS_MAX: u64 = 10_000_000_000;

/// What a bed is asked for.
enum Order {
    Link(LinkOrder, oneshot::Sender<Result<(), Problem>>),
    End,
}

/// The bed that stands.
struct Current {
    id: u64,
    orders: mpsc::UnboundedSender<Order>,
}

#[derive(Default)]
struct Inner {
    last: u64,
    records: Vec<BedRecord>,
    current: Option<Current>,
}

/// A child, and both ends of what it is asked for.
type Enlisted = (
    Child,
    mpsc::UnboundedSender<Order>,
    mpsc::UnboundedReceiver<Order>,
);

/// The beds of a node.
pub struct Beds {
    inner: Mutex<Inner>,
    files: StateFiles,
    handle: Handle,
    program: PathBuf,
    may: May,
    stopping: watch::Sender<bool>,
    standing: watch::Sender<bool>,
}

fn not_there(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no lab bed {id}"))
        .hint("`causeway api GET lab/beds` lists those of this daemon's life")
}

/// Whether this process may have a bed.
///
/// # Errors
/// Why not, with the next step.
pub fn can_have_one() -> Result<(), Problem> {
    lab::can_have_one().map_err(|error| Problem::new(Code::LabNotHere, error.what).hint(error.next))
}

/// What says whether there may be beds.
type May = fn() -> Result<(), Problem>;

/// What there is to build.
fn views(rate: Rate) -> Vec<TopologyView> {
    topologies(rate).iter().map(lab::Known::view).collect()
}

fn rate(text: &str) -> Option<Rate> {
    let rate: Rate = text.parse().ok()?;
    (rate.bits() <= RATE_BITS_MAX).then_some(rate)
}

impl Beds {
    /// Without any; what an earlier daemon has left is removed meanwhile.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub async fn open(
        files: StateFiles,
        handle: Handle,
        program: PathBuf,
        may: May,
    ) -> Result<Self, Problem> {
        if files.read(MARK).await?.is_some() {
            files.remove(MARK).await?;
            let program = program.clone();
            tokio::spawn(async move { clean(&program).await });
        }
        Ok(Self {
            inner: Mutex::default(),
            files,
            handle,
            program,
            may,
            stopping: watch::Sender::new(false),
            standing: watch::Sender::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one may be started here, and which.
    #[must_use]
    pub fn overview(&self) -> LabView {
        let refused = (self.may)().err();
        LabView {
            may_start: refused.is_none(),
            reason: refused.as_ref().map(|it| it.detail.clone()),
            next_step: refused.as_ref().map(|it| it.hint.clone()),
            command_line: "sudo causeway lab up".to_owned(),
            bed: self.lock().current.as_ref().map(|it| it.id),
            topologies: views(RATE),
        }
    }

    /// All that are known, the oldest first.
    #[must_use]
    pub fn views(&self) -> Vec<BedView> {
        self.lock().records.iter().map(BedRecord::brief).collect()
    }

    /// One with what is known of it since a second.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn detail(&self, id: &str, since: u64) -> Result<BedView, Problem> {
        let inner = self.lock();
        let record = number(id).and_then(|id| inner.records.iter().find(|it| it.view.id == id));
        record
            .map(|record| record.detail(since))
            .ok_or_else(|| not_there(id))
    }

    /// Builds one.
    ///
    /// # Errors
    /// What is asked for is out of its bounds, this machine cannot have one, or another one stands.
    pub async fn start(
        self: &Arc<Self>,
        wanted: &WantedBed,
        by: &str,
        dry_run: bool,
    ) -> Result<BedView, Problem> {
        let words = wanted.check(&views(RATE), |text| rate(text).is_some())?;
        (self.may)()?;
        self.is_free()?;
        let rate = wanted.rate.as_deref().and_then(rate).unwrap_or(RATE);
        let topology = views(rate).into_iter().find(|it| it.id == wanted.topology);
        let topology = topology.ok_or_else(|| not_there(&wanted.topology))?;
        let at = now();
        let next = self.lock().last + 1;
        let record = BedRecord::new(next, &topology, by, at, &words);
        let view = record.view.clone();
        if dry_run {
            return Ok(view);
        }
        self.files
            .write(MARK, b"a bed of the lab stands\n".to_vec())
            .await?;
        let mut all = vec!["lab".to_owned(), "drive".to_owned()];
        all.extend(words);
        let (child, orders, receiver) = self.enlist(record, &all)?;
        self.standing.send_replace(true);
        tracing::info!(
            bed = next,
            by,
            topology = view.topology,
            "a lab bed is built"
        );
        let of = Of {
            kind: "lab",
            object: &view.topology,
            by,
            seconds: wanted.load.seconds.into(),
            link: format!("/api/v1/lab/beds/{next}"),
        };
        let job = Job::begin(&self.handle, of, move || {
            let _gone = orders.send(Order::End);
        });
        let job = job.await;
        let beds = Arc::clone(self);
        tokio::spawn(async move {
            beds.attend(next, child, receiver, &job).await;
            // What the daemon's end cut off is interrupted by the next start.
            if !*beds.stopping.borrow() {
                job.end(beds.ending(next)).await;
            }
        });
        Ok(view)
    }

    /// Starts the child of a bed that is known from then on.
    fn enlist(&self, record: BedRecord, words: &[String]) -> Result<Enlisted, Problem> {
        let mut inner = self.lock();
        // Somebody else may have been faster.
        is_free(&inner)?;
        let child = Child::start(&self.program, words, LINE_BYTES_MAX).map_err(|error| {
            let detail = format!("the lab cannot be started: {error}");
            Problem::new(Code::LabFailed, detail)
        })?;
        let (orders, receiver) = mpsc::unbounded_channel();
        let id = record.view.id;
        inner.last = id;
        inner.records.push(record);
        let over = inner.records.len().saturating_sub(KNOWN_MAX);
        inner.records.drain(..over);
        let own = orders.clone();
        inner.current = Some(Current { id, orders: own });
        Ok((child, orders, receiver))
    }

    fn is_free(&self) -> Result<(), Problem> {
        if *self.stopping.borrow() {
            return Err(Problem::new(Code::Stopping, "the daemon is stopping"));
        }
        is_free(&self.lock())
    }

    fn with<T>(&self, id: u64, what: impl FnOnce(&mut BedRecord) -> T) -> Option<T> {
        let mut inner = self.lock();
        let record = inner.records.iter_mut().find(|it| it.view.id == id);
        record.map(what)
    }

    /// Stays with a child until it has ended.
    async fn attend(
        &self,
        id: u64,
        mut child: Child,
        mut orders: mpsc::UnboundedReceiver<Order>,
        job: &Job,
    ) {
        let mut waiting: Vec<(LinkOrder, oneshot::Sender<Result<(), Problem>>)> = Vec::new();
        let mut wished = false;
        loop {
            tokio::select! {
                line = child.line() => {
                    let Ok(Some(line)) = line else { break };
                    let Ok(line) = read::<BedLine>(&line) else { continue };
                    answer(&line, &mut waiting);
                    if self.with(id, |record| record.take(line)).unwrap_or(true) {
                        break;
                    }
                    let load = self.with(id, |record| record.view.load.clone());
                    if let Some(load) = load {
                        job.progress(load.elapsed_seconds, load.whole_seconds);
                    }
                }
                order = orders.recv() => match order {
                    Some(Order::Link(order, done)) => {
                        child.say(&write(&order)).await;
                        waiting.push((order, done));
                    }
                    Some(Order::End) | None => {
                        wished = true;
                        break;
                    }
                },
            }
        }
        self.with(id, BedRecord::stopping).unwrap_or_default();
        child.ask_to_end();
        let ended = child.end(REMOVAL).await;
        let said = child.said();
        if !ended {
            clean(&self.program).await;
        }
        let at = now();
        self.with(id, |record| record.end(at, wished, &said));
        self.lock().current = None;
        if let Err(problem) = self.files.remove(MARK).await {
            tracing::warn!("a lab bed that is gone: {problem}");
        }
        self.standing.send_replace(false);
        tracing::info!(bed = id, "a lab bed is gone");
    }

    /// How the job of a bed that is gone ended: one that was torn down was cancelled, but for one
    /// whose load had ended.
    fn ending(&self, id: u64) -> Ending {
        let inner = self.lock();
        let view = inner.records.iter().find(|it| it.view.id == id);
        let Some(BedRecord { view }) = view else {
            return Ending::Finished;
        };
        let is_whole = view.load.elapsed_seconds >= view.load.whole_seconds;
        match &view.problem {
            Some(problem) => Ending::Failed(problem.detail.clone()),
            None if is_whole => Ending::Finished,
            None => Ending::Cancelled,
        }
    }

    /// Makes a link another one, and waits until it is.
    ///
    /// # Errors
    /// There is no such bed or link, the bed does not run, or the system refused.
    pub async fn link(
        &self,
        id: &str,
        order: LinkOrder,
        dry_run: bool,
    ) -> Result<BedView, Problem> {
        let view = self.detail(id, u64::MAX)?;
        if !view.plan.links.iter().any(|it| it.id == order.link) {
            let all: Vec<&str> = view.plan.links.iter().map(|it| it.id.as_str()).collect();
            let detail = format!("bed {id} has no such link; there are {}", all.join(", "));
            return Err(Problem::new(Code::NotFound, detail).hint("name one of these"));
        }
        if view.state != BedState::Running {
            return Err(not_running(id));
        }
        if dry_run {
            return Ok(view);
        }
        let (done, answered) = oneshot::channel();
        {
            let inner = self.lock();
            let current = inner.current.as_ref().filter(|it| it.id == view.id);
            let current = current.ok_or_else(|| not_running(id))?;
            // A child that is gone answers by dropping it.
            let _gone = current.orders.send(Order::Link(order, done));
        }
        match timeout(LINK_TIME, answered).await {
            Ok(Ok(done)) => done?,
            Ok(Err(_)) => return Err(not_running(id)),
            Err(_) => {
                let detail = format!("bed {id} does not answer");
                return Err(Problem::new(Code::LabFailed, detail).hint("tear it down"));
            }
        }
        self.detail(id, u64::MAX)
    }

    /// Tears one down.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn end(&self, id: &str, dry_run: bool) -> Result<BedView, Problem> {
        let view = self.detail(id, u64::MAX)?;
        if view.state.is_over() || dry_run {
            return Ok(view);
        }
        self.with(view.id, BedRecord::stopping).unwrap_or_default();
        if let Some(current) = &self.lock().current {
            let _gone = current.orders.send(Order::End);
        }
        self.detail(id, u64::MAX)
    }

    /// The daemon ends: beds do.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
        if let Some(current) = &self.lock().current {
            let _gone = current.orders.send(Order::End);
        }
    }

    /// Until no bed stands any more.
    pub async fn stopped(&self) {
        let mut standing = self.standing.subscribe();
        // It is there as long as this is.
        let _none = standing.wait_for(|stands| !stands).await;
    }
}

fn number(id: &str) -> Option<u64> {
    id.parse().ok()
}

fn not_running(id: &str) -> Problem {
    let detail = format!("bed {id} does not run");
    Problem::new(Code::InUse, detail).hint("links are cut while the load runs over them")
}

fn is_free(inner: &Inner) -> Result<(), Problem> {
    let Some(current) = &inner.current else {
        return Ok(());
    };
    let id = current.id;
    let detail = format!("lab bed {id} stands, and there is one at a time");
    let problem = Problem::new(Code::InUse, detail).hint("tear it down first");
    Err(problem.hits(vec![format!("lab bed {id}")]))
}

/// Whoever waits for what a line says gets it; orders are obeyed one by one.
fn answer(line: &BedLine, waiting: &mut Vec<(LinkOrder, oneshot::Sender<Result<(), Problem>>)>) {
    let result = match line {
        BedLine::Link(_) => Ok(()),
        BedLine::Refused(problem) => Err(problem.clone()),
        BedLine::Built(_) | BedLine::Second(_) | BedLine::LoadEnded(_) | BedLine::Failed(_) => {
            return;
        }
    };
    if !waiting.is_empty() {
        let (_, done) = waiting.remove(0);
        // Whoever asked may have gone.
        let _gone = done.send(result);
    }
}

/// Removes what a bed has left that did not remove itself.
async fn clean(program: &Path) {
    let words = ["lab".to_owned(), "clean".to_owned()];
    match Child::start(program, &words, LINE_BYTES_MAX) {
        Ok(mut child) => {
            if !child.end(REMOVAL).await {
                tracing::warn!("what a lab bed has left is not removed: {}", child.said());
            }
        }
        Err(error) => tracing::warn!("what a lab bed has left is not removed: {error}"),
    }
}
