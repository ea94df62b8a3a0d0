//! The thread that watches disks and bays, and a single scan of them.

use crate::ask::{Asker, Tool, find_tool};
use crate::report::{Report, Reported};
use crate::roots::Roots;
use crate::{enclosures, places, system};
use device_health::{Answer, Asked, Ledger, Memory, Seen, SeenDisk, read};
use manifest::disks::{DiskReport, SmartState};
use manifest::document::DocumentError;
use rustix::time::{ClockId, clock_gettime};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

/// How often sysfs is read: what it says costs a disk nothing.
const PASS: Duration = Duration::from_secs(60);

/// How long smartctl may take for a disk: one that spins up again takes ten seconds.
const ASK_TIME: Duration = Duration::from_secs(30);

/// What root has read counts for so long at least.
const REPORT_AGE: u64 = 3 * 3600;

/// How it is watched.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the system is read.
    pub roots: Roots,
    /// How often smartctl is run for each disk; zero: never.
    pub every: Duration,
    /// Which smartctl; `None`: the one of the PATH.
    pub smartctl: Option<PathBuf>,
    /// What root has read.
    pub report: PathBuf,
}

/// What the thread needs of the daemon. It is asked on that thread.
pub trait World {
    /// What lies where: what people call it, and its path.
    fn uses(&self) -> impl Future<Output = Vec<(String, PathBuf)>>;

    /// What was remembered; `NotFound` where nothing is.
    fn load(&self) -> impl Future<Output = io::Result<Vec<u8>>>;

    /// A memory that nobody can read is put aside.
    fn put_aside(&self) -> impl Future<Output = io::Result<()>>;

    /// Has it remembered.
    fn store(&self, bytes: Vec<u8>) -> impl Future<Output = io::Result<()>>;

    /// How all is now.
    fn publish(&self, report: DiskReport) -> impl Future<Output = ()>;
}

/// What the thread is asked for.
enum Request {
    Forget(String, oneshot::Sender<bool>),
    Every(Duration),
}

/// The running thread; it ends when this goes.
#[derive(Clone, Debug)]
pub struct Watch(mpsc::UnboundedSender<Request>);

impl Watch {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is none to be had.
    pub fn start<W: World + Send + 'static>(settings: Settings, world: W) -> io::Result<Self> {
        let (sender, requests) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Builder::new().name("disks".to_owned()).spawn(move || {
            runtime.block_on(Watching::new(settings, world).run(requests));
            runtime.shutdown_background();
        })?;
        Ok(Self(sender))
    }

    /// Each disk is asked so often from now on; zero: never.
    pub fn ask_every(&self, every: Duration) {
        // Without the thread nobody asks any.
        let _ = self.0.send(Request::Every(every));
    }

    /// Forgets a disk that is not there any more; `false`: it is, or nobody knows it.
    pub async fn forget(&self, name: &str) -> bool {
        let (answer, answered) = oneshot::channel();
        let request = Request::Forget(name.to_owned(), answer);
        self.0.send(request).is_ok() && answered.await.unwrap_or(false)
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let at = clock_gettime(ClockId::Realtime);
    u64::try_from(at.tv_sec).unwrap_or(0)
}

struct Watching<W> {
    settings: Settings,
    world: W,
    ledger: Ledger,
    asker: Asker,
    /// What is stored; `None`: nothing may be, since another version wrote what is there.
    stored: Option<Memory>,
    /// When smartctl was run last, and for which disks.
    asked: Option<Instant>,
    known: BTreeSet<String>,
    /// The report of root's that was taken last.
    report_at: u64,
    said: BTreeSet<String>,
}

impl<W: World> Watching<W> {
    fn new(settings: Settings, world: W) -> Self {
        Self {
            settings,
            world,
            ledger: Ledger::default(),
            asker: Asker::default(),
            stored: Some(Memory::default()),
            asked: None,
            known: BTreeSet::new(),
            report_at: 0,
            said: BTreeSet::new(),
        }
    }

    async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        self.load().await;
        loop {
            // What sysfs says is there at once; disks take their time.
            let mut seen = self.see().await;
            self.observe(&seen).await;
            if self.ask(&mut seen).await {
                self.observe(&seen).await;
            }
            match timeout(PASS, requests.recv()).await {
                Err(_) => {}
                Ok(None) => return,
                Ok(Some(Request::Every(every))) => self.settings.every = every,
                Ok(Some(Request::Forget(name, answer))) => {
                    let done = self.ledger.forget(&name);
                    let seen = self.see().await;
                    self.observe(&seen).await;
                    // Whoever asked may have gone.
                    let _ = answer.send(done);
                }
            }
        }
    }

    async fn load(&mut self) {
        let bytes = match self.world.load().await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                tracing::warn!("what was remembered of disks cannot be read: {error}");
                self.stored = None;
                return;
            }
        };
        match Memory::read(&bytes) {
            Ok(memory) => {
                self.ledger = Ledger::new(memory.clone());
                self.stored = Some(memory);
            }
            Err(why) => self.cannot_read(&why).await,
        }
    }

    async fn cannot_read(&mut self, why: &DocumentError) {
        tracing::warn!("what was remembered of disks cannot be used: {why}");
        if !why.is_damage() {
            self.stored = None;
        } else if let Err(error) = self.world.put_aside().await {
            tracing::warn!("it cannot be put aside: {error}");
            self.stored = None;
        }
    }

    async fn see(&self) -> Seen {
        let uses = self.world.uses().await;
        see(&self.settings.roots, &uses)
    }

    async fn observe(&mut self, seen: &Seen) {
        let report = self.ledger.observe(seen);
        self.log(&report);
        self.world.publish(report).await;
        let memory = self.ledger.memory();
        let Some(stored) = &mut self.stored else {
            return;
        };
        if *stored == *memory {
            return;
        }
        match self.world.store(memory.write()).await {
            Ok(()) => *stored = memory.clone(),
            Err(error) => tracing::warn!("what is known of disks is not stored: {error}"),
        }
    }

    /// Each finding once, when it comes.
    fn log(&mut self, report: &DiskReport) {
        let findings = report.findings();
        let now: BTreeSet<String> = findings
            .iter()
            .map(manifest::disks::DiskAlert::sentence)
            .chain(report.notes.iter().cloned())
            .collect();
        for new in now.difference(&self.said) {
            tracing::warn!("{new}");
        }
        self.said = now;
    }

    /// Has disks asked where it is time, or where they are new; whether any was.
    async fn ask(&mut self, seen: &mut Seen) -> bool {
        let from_root = self.take_report(seen);
        let every = self.settings.every;
        let is_time = self.asked.is_none_or(|at| at.elapsed() >= every);
        let names: BTreeSet<String> = seen.disks.iter().map(|it| it.name.clone()).collect();
        let due = |name: &String| is_time || !self.known.contains(name);
        let own: Vec<&SeenDisk> = seen
            .disks
            .iter()
            .filter(|it| due(&it.name) && !from_root.contains(&it.name))
            .collect();
        let has_new = seen.asked.keys().next().is_some();
        if every.is_zero() || own.is_empty() {
            self.known = names;
            return has_new;
        }
        let tool = find_tool(self.settings.smartctl.as_deref());
        let answers = ask(&mut self.asker, &self.settings.roots, &tool, &own).await;
        seen.at = now();
        for (name, (answer, _)) in answers {
            let at = seen.at;
            seen.asked.insert(name, Asked { at, answer });
        }
        if is_time {
            self.asked = Some(Instant::now());
        }
        self.known = names;
        true
    }

    /// Takes what root has read, where it is new; the disks of which it is not old.
    fn take_report(&mut self, seen: &mut Seen) -> BTreeSet<String> {
        let report = match Report::read(&self.settings.report) {
            Ok(Some(report)) => report,
            Ok(None) => return BTreeSet::new(),
            Err(error) => {
                let path = self.settings.report.display();
                let words = format!("{path} is not used: {error}");
                if self.said.insert(words.clone()) {
                    tracing::warn!("{words}");
                }
                return BTreeSet::new();
            }
        };
        let age = REPORT_AGE.max(self.settings.every.as_secs().saturating_mul(3));
        let is_future = report.at > seen.at.saturating_add(age);
        if report.at.saturating_add(age) < seen.at || is_future {
            return BTreeSet::new();
        }
        let is_new = report.at != self.report_at;
        self.report_at = report.at;
        let mut taken = BTreeSet::new();
        for it in report.disks {
            let same = |disk: &&SeenDisk| disk.name == it.name && disk.identity.wwn == it.wwn;
            if !seen.disks.iter().any(|disk| same(&disk)) {
                continue;
            }
            if is_new {
                let answer = read(it.document.get().as_bytes());
                let at = report.at;
                seen.asked.insert(it.name.clone(), Asked { at, answer });
            }
            taken.insert(it.name);
        }
        taken
    }
}

/// The machine as sysfs has it, with what lies where.
fn see(roots: &Roots, uses: &[(String, PathBuf)]) -> Seen {
    let mut disks = system::disks(roots);
    for (who, path) in uses {
        for name in places::disks_below(roots, path) {
            let found = disks.iter_mut().find(|it| it.name == name);
            if let Some(disk) = found.filter(|it| !it.used_by.contains(who)) {
                disk.used_by.push(who.clone());
            }
        }
    }
    Seen {
        at: now(),
        disks,
        bays: enclosures::bays(roots),
        asked: BTreeMap::new(),
    }
}

type Answers = BTreeMap<String, (Answer, Option<Vec<u8>>)>;

async fn ask(asker: &mut Asker, roots: &Roots, tool: &Tool, disks: &[&SeenDisk]) -> Answers {
    let mut out = Answers::new();
    let mut devices = Vec::new();
    for disk in disks {
        // A paravirtual disk has nothing that could be asked.
        if ["vd", "xvd"].iter().any(|it| disk.name.starts_with(it)) {
            let answer = Answer::not(SmartState::Unsupported, "a virtual disk has no SMART");
            out.insert(disk.name.clone(), (answer, None));
        } else {
            devices.push((disk.name.clone(), roots.dev.join(&disk.name)));
        }
    }
    out.extend(asker.ask(tool, &devices, ASK_TIME).await);
    out
}

/// Reads all disks once: how they are without any memory, and what root may leave for the daemon.
///
/// # Errors
/// There are no means to run a child.
pub fn scan(roots: &Roots, smartctl: Option<&Path>) -> io::Result<(DiskReport, Report)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut seen = see(roots, &[]);
    let tool = find_tool(smartctl);
    let disks: Vec<&SeenDisk> = seen.disks.iter().collect();
    let answers = runtime.block_on(ask(&mut Asker::default(), roots, &tool, &disks));
    runtime.shutdown_background();
    seen.at = now();
    let mut report = Report {
        at: seen.at,
        disks: Vec::new(),
    };
    for (name, (answer, bytes)) in answers {
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        // What is no JSON is an answer only to whoever runs the scan.
        let document = text.and_then(|text| RawValue::from_string(text).ok());
        let disk = seen.disks.iter().find(|it| it.name == name);
        if let (Some(document), Some(disk)) = (document, disk) {
            report.disks.push(Reported {
                name: name.clone(),
                wwn: disk.identity.wwn.clone(),
                document,
            });
        }
        let at = seen.at;
        seen.asked.insert(name, Asked { at, answer });
    }
    Ok((Ledger::default().observe(&seen), report))
}
