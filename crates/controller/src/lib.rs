//! The one place that changes objects: plan, prepare, store, adopt.
//!
//! ```text
//!   api --handle--> controller --Engine--> node
//!                       |
//!                     state
//! ```
//!
//! It knows the data plane by its [`Engine`] only, and nothing of HTTP.
//!
//! It lives on core 0. The API's thread reaches it through a [`Handle`], which posts jobs; a job
//! whose client has gone away still runs to its end.
//!
//! **Invariants.** I1: changes run one after the other. I2: what is published is what is stored,
//! except between the store's answer and `adopt`'s. I3: with damaged state nothing is exported or
//! changed.
//!
//! **Failure model.** Where a change is cut off by a fault of ours (a panic in its task), no
//! further change is taken until a restart, which reads the stored objects; what is exported goes
//! on.

use activity::CHANGED_MAX;
use engine::{Engine, shared_changes};
use env::{CoreHandle, LocalFuture, call_all, in_time};
use manifest::code::Code;
use manifest::config::{Config, Listen, Pool};
use manifest::facts::{PortalFacts, SessionFacts};
use manifest::forecast::ForecastFacts;
use manifest::job::JobView;
use manifest::objects::{Lun, ObjectSet, Objects, export};
use manifest::plan::{Edit, LunChanges, SessionBrief, Surroundings, lun_changes, plan};
use manifest::problem::Problem;
use manifest::served::Unserved;
use manifest::tag::Expected;
use manifest::view::Outcome;
use state::Store;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};
use units::WallClock;

/// How long a change that is under way may take when the daemon stops.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(60);

/// How a change is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct How {
    /// Do it although sessions are disturbed or data is lost.
    pub force: bool,
    /// Only report what would be done.
    pub dry_run: bool,
}

/// Who asks for a change, and what they know.
pub struct Asked {
    /// What there has to be: else it is another change than they meant.
    pub expected: Option<Expected>,
    /// A user, a token, or the node itself.
    pub by: String,
    /// Has the first job of the change as soon as it has begun, where it takes long.
    pub begun: Option<oneshot::Sender<JobView>>,
    /// Has the objects that the change made other ones, as they were before it and are after it:
    /// no other change comes between.
    pub changed: Option<oneshot::Sender<[ObjectSet; 2]>>,
}

impl Asked {
    /// Whatever there is, and until its end.
    #[must_use]
    pub fn by(by: &str) -> Self {
        Self {
            expected: None,
            by: by.to_owned(),
            begun: None,
            changed: None,
        }
    }
}

/// The controller of a node.
pub struct Controller {
    pub(crate) core: CoreHandle,
    pub(crate) engine: Rc<dyn Engine>,
    pub(crate) config: Config,
    /// The same with the live settings as they are by now.
    live: RefCell<Rc<Config>>,
    pub(crate) started: WallClock,
    pub(crate) node_id: String,
    pub(crate) api: RefCell<Reached>,
    pub(crate) disks: RefCell<disks::Disks>,
    pub(crate) forecasts: RefCell<BTreeMap<String, ForecastFacts>>,
    /// What goes over sessions.
    pub(crate) traffic: RefCell<traffic::Traffic>,
    store: Mutex<Store>,
    objects: RefCell<Rc<Objects>>,
    generation: Cell<u64>,
    /// What the last generations changed, for whoever asks for a moment next.
    pub(crate) changed: RefCell<BTreeMap<u64, ChangedObjects>>,
    damage: Option<Problem>,
    stopping: Cell<bool>,
    /// A change was begun and is not at its end. While `store` is free this means that it never
    /// will be: it was cut off by a fault of ours, and nobody knows how far it came.
    half_done: Cell<bool>,
    /// The pools have seen newer objects than these, and nobody has said that these are meant.
    older: RefCell<Option<generations::Older>>,
    /// Why the state directory lacks the room that it keeps for changes that make room.
    no_spares: RefCell<Option<String>>,
    /// Who is let in beside the objects.
    guests: RefCell<Vec<Guest>>,
    /// What the objects name and hosts do not find, as it was seen last.
    unserved: RefCell<Vec<Unserved>>,
    /// What tags of objects are made with, from the first one on.
    tag_key: OnceCell<[u8; 32]>,
    /// Pools that go with the next start.
    going: pools_going::Going,
    /// Sessions that are about to end by request: they are nobody's path any more.
    leaving: Mutex<BTreeSet<u64>>,
    pub(crate) registry: jobs::Registry,
}

impl Controller {
    /// Opens the state and starts the engine with it. Damaged state is no error: see
    /// [`Controller::damage`].
    ///
    /// # Errors
    /// The state directory, a pool or a portal cannot be had.
    pub async fn start(
        core: CoreHandle,
        config: Config,
        engine: Rc<dyn Engine>,
    ) -> Result<Rc<Self>, Problem> {
        let opened = Store::open(&core, &config.state_dir).await;
        let opened = opened.map_err(|problem| {
            if problem.code != Code::ConfigEnvironment {
                return problem;
            }
            let detail = format!("{}: {}", config.place("node.state_dir"), problem.detail);
            Problem::new(problem.code, detail).hint(
                "the state directory is made where it is missing; its parent must be a directory that this \
                 user may write",
            )
        })?;
        let objects = Rc::new(opened.objects);
        let damage = opened.store.damage().cloned();
        match &damage {
            None => engine.start(Rc::clone(&objects)).await?,
            Some(problem) => tracing::error!(code = %problem.code, "{problem}"),
        }
        let this = Rc::new(Self {
            started: core.wall_clock(),
            node_id: opened.store.node_id().to_owned(),
            generation: Cell::new(opened.store.generation()),
            changed: RefCell::default(),
            store: Mutex::new(opened.store),
            objects: RefCell::new(objects),
            api: RefCell::default(),
            disks: RefCell::default(),
            forecasts: RefCell::default(),
            traffic: RefCell::default(),
            damage,
            stopping: Cell::new(false),
            half_done: Cell::new(false),
            older: RefCell::default(),
            no_spares: RefCell::default(),
            guests: RefCell::default(),
            unserved: RefCell::default(),
            tag_key: OnceCell::new(),
            going: pools_going::Going::default(),
            leaving: Mutex::default(),
            registry: jobs::Registry::open(&core, &config.state_dir).await,
            core,
            engine,
            live: RefCell::new(Rc::new(config.clone())),
            config,
        });
        if this.damage.is_none() {
            this.compare_with_pools().await;
            let follow = Self::follow_pools(Rc::downgrade(&this));
            this.core.spawn(Box::pin(follow));
            this.keep_spares(&*this.store.lock().await).await;
            let follow = Self::follow_jobs(Rc::downgrade(&this));
            this.core.spawn(Box::pin(follow));
            let keep = Self::follow_spares(Rc::downgrade(&this));
            this.core.spawn(Box::pin(keep));
        }
        Ok(this)
    }

    /// The objects that are in force.
    #[must_use]
    pub fn objects(&self) -> Rc<Objects> {
        Rc::clone(&self.objects.borrow())
    }

    /// The generation that is in force.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Why nothing is exported, where that is so.
    #[must_use]
    pub fn damage(&self) -> Option<&Problem> {
        self.damage.as_ref()
    }

    /// It takes no more changes.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// The core that it lives on, with the files of the state directory.
    #[must_use]
    pub fn core(&self) -> &CoreHandle {
        &self.core
    }

    /// Every core answers.
    pub async fn is_alive(&self) -> bool {
        let answers = call_all(&self.core, |_| Box::pin(std::future::ready(()))).await;
        answers.len() == usize::from(self.core.core_count())
    }

    /// Where the API listens, for `status`.
    pub fn set_api(&self, reached: Reached) {
        *self.api.borrow_mut() = reached;
    }

    /// Takes the live settings of `config`; answers when hosts have them.
    pub async fn configure(&self, config: Config) {
        let config = Rc::new(config);
        *self.live.borrow_mut() = Rc::clone(&config);
        self.engine.configure(config).await;
    }

    /// The wanted set that leads to the objects that are in force.
    ///
    /// # Errors
    /// The state is damaged, so there is no truth to export.
    pub fn export(&self) -> Result<ObjectSet, Problem> {
        match &self.damage {
            Some(problem) => Err(problem.clone()),
            None => Ok(export(&self.objects())),
        }
    }

    /// Makes a change, or reports what it would do.
    ///
    /// # Errors
    /// Nothing was changed, except with [`Code::PartlyDone`].
    pub async fn edit(&self, edit: &Edit, how: How) -> Result<Outcome, Problem> {
        self.edit_if(edit, how, Asked::by("the node")).await
    }

    /// As [`Controller::edit`], where what there is is what whoever asks has seen.
    ///
    /// # Errors
    /// Nothing was changed, except with [`Code::PartlyDone`].
    pub async fn edit_if(
        &self,
        edit: &Edit,
        how: How,
        mut asked: Asked,
    ) -> Result<Outcome, Problem> {
        let mut store = self.store.lock().await;
        if self.stopping.get() {
            return Err(Problem::new(Code::Stopping, "the daemon is stopping"));
        }
        if let Some(problem) = &self.damage {
            return Err(problem.clone());
        }
        if let Some(problem) = self.cut_off() {
            return Err(problem);
        }
        if let Some(problem) = self.older()
            && !how.dry_run
        {
            return Err(problem);
        }
        // No other change comes between this and its own.
        self.expect(asked.expected.as_ref())?;
        let current = self.objects();
        let around = self.surroundings().await;
        let random = &mut |bytes: &mut [u8]| self.core.fill_random(bytes);
        let plan = plan(&current, edit, &around, random)?;
        let refusal = plan.refusal();
        let mut changes = lun_changes(&current, &plan.after);
        if let Edit::Adopt { .. } = edit {
            // Their storage is there.
            changes.restored.append(&mut changes.created);
        }
        let changes = Rc::new(changes);
        // Before anybody is asked whether it is meant.
        let allowed = self.engine.allows(Rc::clone(&changes)).await;
        allowed.map_err(|problem| by_name(problem, &plan.after))?;
        self.going.allows(&current, &plan.after)?;
        self.has_room(&current, &plan.after, &changes).await?;
        let mut notices = plan.notices;
        notices.extend(self.room_notices(&current, &plan.after).await);
        let mut outcome = Outcome {
            changed: false,
            generation: self.generation.get(),
            actions: plan.actions,
            notices,
            refusal: None,
        };
        if how.dry_run {
            outcome.refusal = refusal.map(|problem| problem.to_string());
            return Ok(outcome);
        }
        if let Some(refusal) = refusal
            && !how.force
        {
            return Err(refusal);
        }
        if plan.after == *current {
            return Ok(outcome);
        }
        let after = Rc::new(plan.after);
        self.agree(edit, &current, &after).await?;
        self.going.comes(&current, &after)?;
        self.half_done.set(true);
        let waiting = asked.changed.take();
        let differs = waiting.map(|waiting| (waiting, spec::difference(&current, &after)));
        let changed = (after, changes);
        let begun = self.begin_jobs(&changed.1, &changed.0, asked).await;
        let done = self.carry_out(&mut store, changed, &mut outcome).await;
        self.end_jobs(begun, &done).await;
        self.half_done.set(false);
        self.going.over();
        self.keep_spares(&store).await;
        if let (Some((waiting, differs)), Ok(())) = (differs, &done) {
            // Whoever asked may have gone.
            let _ = waiting.send(differs);
        }
        done.map(|()| outcome)
    }

    /// The nodes of a cluster agree on what they have in common, before anything is done.
    async fn agree(&self, edit: &Edit, before: &Objects, after: &Objects) -> Result<(), Problem> {
        if matches!(edit, Edit::Elsewhere(_)) {
            return Ok(());
        }
        self.engine.agree(shared_changes(before, after)).await
    }

    fn remember_changed(&self, outcome: &Outcome) {
        let named = outcome.actions.iter();
        let named = named.map(|it| format!("{} {}", it.section, it.name));
        let mut changed = self.changed.borrow_mut();
        changed.insert(outcome.generation, ChangedObjects::of(named));
        if changed.len() > CHANGED_MAX {
            changed.pop_first();
        }
    }

    /// Prepares, stores and adopts.
    async fn carry_out(
        &self,
        store: &mut Store,
        (after, changes): (Rc<Objects>, Rc<LunChanges>),
        outcome: &mut Outcome,
    ) -> Result<(), Problem> {
        let prepared = self.engine.prepare(Rc::clone(&changes)).await;
        prepared.map_err(|problem| by_name(problem, &after))?;
        let make_room = spares::makes_room(&self.objects(), &changes);
        match store.save(&after, self.core.wall_clock(), make_room).await {
            Ok(generation) => self.generation.set(generation),
            Err(problem) => {
                self.engine.abandon(changes).await;
                return Err(problem);
            }
        }
        *self.objects.borrow_mut() = Rc::clone(&after);
        outcome.changed = true;
        outcome.generation = self.generation.get();
        for action in &outcome.actions {
            tracing::info!(generation = outcome.generation, "{action}");
        }
        self.remember_changed(outcome);
        let with_guests = self.with_guests(&after);
        let adopted = self.engine.adopt(with_guests, Rc::clone(&changes)).await;
        self.engine.saved(&self.node_id, outcome.generation).await;
        outcome.notices.extend(self.notices_of(&changes.created));
        adopted
    }

    /// Why no change is taken, where an earlier one was cut off. Asked while none is under way.
    fn cut_off(&self) -> Option<Problem> {
        self.half_done.get().then(|| {
            let detail = "an earlier change was cut off by a fault inside the daemon, so that no other is taken";
            Problem::new(Code::Internal, detail).hint(
                "restart the daemon: it comes back with the stored objects; and please report what its log says",
            )
        })
    }

    /// As [`Controller::cut_off`]; a change that is under way is none that was cut off.
    pub(crate) fn has_been_cut_off(&self) -> Option<Problem> {
        let _idle = self.store.try_lock().ok()?;
        self.cut_off()
    }

    /// Ends all work: no more changes, then the engine stops.
    pub async fn stop(&self) {
        self.stopping.set(true);
        // A change that has begun is finished first, but for one that hangs: that ends with the
        // process, as in a crash.
        let store = in_time(&self.core, CHANGE_TIME_MAX, self.store.lock()).await;
        if store.is_none() {
            tracing::error!("a change hangs, and ends with the daemon");
        }
        self.engine.stop().await;
    }

    /// What is to be known of these LUNs, reported and logged.
    fn notices_of(&self, luns: &[Lun]) -> Vec<String> {
        let objects = self.objects();
        let mut lines = Vec::new();
        for (name, lun) in &objects.luns {
            if luns.iter().any(|made| made.naa == lun.naa) {
                let notices = self.engine.lun_notices(&lun.naa);
                lines.extend(notices.iter().map(|notice| format!("LUN {name}: {notice}")));
            }
        }
        for notice in &lines {
            tracing::warn!("{notice}");
        }
        lines
    }

    async fn surroundings(&self) -> Surroundings {
        let sessions = self.engine.sessions().await;
        let now = self.core.now();
        let brief = |facts: &SessionFacts| SessionBrief {
            bytes_per_second: self.traffic.borrow().of(facts.id, now),
            ..facts.brief()
        };
        let mut briefs: Vec<SessionBrief> = sessions.iter().map(brief).collect();
        briefs.sort();
        let pools = |which: fn(&&Pool) -> bool| {
            let named = self.config.pools.iter().filter(which);
            named.map(|pool| pool.name.clone()).collect::<Vec<String>>()
        };
        Surroundings {
            pools: pools(|_| true),
            journals: pools(|pool| pool.journal.is_some()),
            stable: pools(|pool| pool.place.is_stable()),
            portal_groups: self
                .config
                .portal_groups
                .iter()
                .map(|group| group.name.clone())
                .collect(),
            portals: self.own_portals(&self.engine.portals().await),
            seen_larger: self.engine.seen_larger(),
            sessions: briefs,
        }
    }

    /// Where the node listens now, and where it is configured to listen always.
    pub(crate) fn own_portals(&self, listening: &[PortalFacts]) -> Vec<(String, SocketAddr)> {
        let now = listening.iter().filter_map(|portal| {
            let address = portal.address.parse().ok()?;
            Some((portal.group.clone(), address))
        });
        let settings = Rc::clone(&self.live.borrow());
        let groups = &settings.portal_groups;
        let always = groups.iter().flat_map(|group| {
            group.listen.iter().filter_map(|listen| match listen {
                Listen::Address(address) => Some((group.name.clone(), *address)),
                Listen::Interface { .. } => None,
            })
        });
        now.chain(always).collect()
    }
}

/// The engine knows LUNs by their NAA identifiers, people by their names.
fn by_name(problem: Problem, objects: &Objects) -> Problem {
    let mut faults = problem.faults.clone();
    for fault in &mut faults {
        let found = objects.luns.iter().find(|(_, lun)| lun.naa == fault.object);
        if let Some((name, _)) = found {
            fault.object.clone_from(name);
        }
    }
    problem.faults(faults)
}

type Job = Box<dyn FnOnce(&Rc<Controller>) + Send>;

/// Hands jobs of other threads to a controller.
#[derive(Clone)]
pub struct Handle(mpsc::UnboundedSender<Job>);

impl Handle {
    /// A handle, and the task that serves it; it runs on the controller's core until the last
    /// handle is gone.
    #[must_use]
    pub fn new(controller: Rc<Controller>) -> (Self, LocalFuture<()>) {
        let (sender, mut jobs) = mpsc::unbounded_channel::<Job>();
        let serve = async move {
            while let Some(job) = jobs.recv().await {
                job(&controller);
            }
        };
        (Self(sender), Box::pin(serve))
    }

    /// Runs `work` on the controller's core and waits for its answer.
    ///
    /// # Errors
    /// The core is gone.
    pub async fn call<T, W>(&self, work: W) -> Result<T, Problem>
    where
        T: Send + 'static,
        W: FnOnce(Rc<Controller>) -> LocalFuture<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |controller| {
            let running = work(Rc::clone(controller));
            controller.core.spawn(Box::pin(async move {
                // The client may have gone; the work is done all the same.
                drop(answer.send(running.await));
            }));
        });
        let stopped = || Problem::new(Code::Stopping, "the daemon has stopped");
        self.0.send(job).map_err(|_| stopped())?;
        answered.await.map_err(|_| {
            if self.0.is_closed() {
                return stopped();
            }
            let detail =
                "the request was cut off by a fault inside the daemon, which its log reports";
            Problem::new(Code::Internal, detail)
        })
    }
}

mod activity;
mod disks;
mod drain;
mod generations;
mod guests;
mod jobs;
mod mirror;
mod orphans;
mod pools_going;
mod reached;
mod read;
mod room;
mod sample;
mod served;
mod session_end;
mod spares;
mod spec;
mod state_files;
mod tags;
#[cfg(any(test, feature = "test_support"))]
pub mod test_support;
mod traffic;

pub use ::jobs::{Change as JobChange, Ending, NewJob, What as JobWhat};
pub use activity::{ChangedObjects, Moment};
pub use disks::Forget;
pub use guests::{Found, GUEST, Guest};
pub use reached::Reached;
pub use sample::Sample;
pub use served::Attempt;
pub use state_files::StateFiles;

#[cfg(test)]
mod test;
