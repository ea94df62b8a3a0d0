//! What a node records of itself: its history, its events and its audit log.
//!
//! **Failure model.** Nothing here stops the daemon. A file that is damaged is set aside and a new
//! one begun, which is an event; one that cannot be written is not written, which `status` says,
//! and events and figures of the last time are in memory all the same.

mod frame;
mod history;
mod latency_map;
mod log;
mod stream;
mod topics;

pub(crate) use frame::Shown;
pub(crate) use stream::Streams;

use crate::describe::Paths;
use crate::outside::now;
use ::history::History;
use database::{Health, Settings, Synchronous};
use events::{Code as EventCode, Events, Happened, Object};
use frame::Frame;
use manifest::code::Code;
use manifest::config::HistorySettings;
use manifest::plan::{Section, Subject};
use manifest::problem::Problem;
use manifest::pulse::Watched;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use topics::Watchers;

/// The file of events and of the audit log, in the state directory.
pub const EVENTS_FILE: &str = "events.db";

/// The file of the history, in the state directory.
pub const HISTORY_FILE: &str = "history.db";

/// The most bytes of events and of the audit log.
const EVENTS_BYTES: u64 = 64 << 20;

/// What a node records of itself. Clones share it.
#[derive(Clone)]
pub struct Records(Arc<Inner>);

struct Inner {
    events: Events,
    history: History,
    dir: PathBuf,
    node: String,
    frames: watch::Sender<Option<Arc<Frame>>>,
    watchers: Watchers,
    /// How many samples were shown.
    samples: AtomicU64,
    /// Nobody waits for anything any more.
    ended: watch::Sender<bool>,
    /// How many that were set aside are reported, of each file.
    reported: Mutex<[usize; 2]>,
}

impl Records {
    /// Opens the files in the state directory, or begins them, and waits until they are read; not
    /// for threads that run tasks. The file of the history has no more bytes than `history` says.
    ///
    /// # Errors
    /// A thread cannot be had.
    pub fn start(state_dir: &Path, node: &str, history: HistorySettings) -> Result<Self, Problem> {
        let failed = |error: std::io::Error| {
            let detail = format!("the threads of what is recorded: {error}");
            Problem::new(Code::ConfigEnvironment, detail)
        };
        let events = Settings {
            path: state_dir.join(EVENTS_FILE),
            // An audit log that a power cut shortens is none.
            synchronous: Synchronous::Full,
            bytes_max: EVENTS_BYTES,
        };
        let history = Settings {
            path: state_dir.join(HISTORY_FILE),
            synchronous: Synchronous::Normal,
            bytes_max: Settings::contents_of(history.max_bytes),
        };
        let records = Self(Arc::new(Inner {
            events: Events::start(events, Arc::new(|| now().wall)).map_err(failed)?,
            history: History::start(history).map_err(failed)?,
            dir: state_dir.to_owned(),
            node: node.to_owned(),
            frames: watch::Sender::new(None),
            watchers: Watchers::default(),
            samples: AtomicU64::new(0),
            ended: watch::Sender::new(false),
            reported: Mutex::default(),
        }));
        records.node_started();
        Ok(records)
    }

    /// Where what happens is reported.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.0.events
    }

    pub(crate) fn history(&self) -> &History {
        &self.0.history
    }

    /// The file of the history takes so much at most from now on.
    pub(crate) fn bound_history(&self, history: HistorySettings) {
        self.0.history.bound(history.max_bytes);
    }

    /// Settings came into force.
    pub(crate) fn settings_applied(&self, keys: &str) {
        let message = format!("settings came into force: {keys}");
        let applied = self.of_node(EventCode::ConfigApplied, message);
        self.0.events.emit(applied.with("settings", keys));
    }

    /// Settings that were read again cannot be used.
    pub(crate) fn settings_refused(&self, reason: &str) {
        let message = format!("the settings stay as they are: {reason}");
        let refused = self.of_node(EventCode::SettingsRefused, message);
        self.0.events.emit(refused.with("reason", reason));
    }

    /// Settings were stored, and come into force with a restart.
    pub(crate) fn settings_wait(&self, keys: &str) {
        let message = format!("settings are stored and wait for a restart: {keys}");
        let waits = self.of_node(EventCode::ConfigWaits, message);
        self.0.events.emit(waits.with("settings", keys));
    }

    /// What is recorded of an object goes on under its new name.
    pub(crate) fn renamed(&self, subject: &Subject, to: &str) {
        let kind = match subject.section {
            Section::Lun => ::history::Kind::Lun,
            Section::Target => ::history::Kind::Target,
            Section::Host => ::history::Kind::Host,
            Section::Grant => return,
        };
        let name = subject.name.clone();
        self.0.history.rename(&::history::Object { kind, name }, to);
    }

    pub(crate) fn node(&self) -> &str {
        &self.0.node
    }

    /// The frames of what the node does; made only while somebody has one of these.
    fn frames(&self) -> watch::Receiver<Option<Arc<Frame>>> {
        self.0.frames.subscribe()
    }

    /// Changes with each sample and each event: what is known of the node may be another thing now.
    pub(crate) fn moment(&self) -> (u64, u64) {
        let newest = self.0.events.newest().map_or(0, |event| event.id);
        (self.0.samples.load(Ordering::Acquire), newest)
    }

    /// Of which LUNs somebody watches what they do.
    pub(crate) fn watched(&self) -> Watched {
        self.0.watchers.watched()
    }

    fn watchers(&self) -> &Watchers {
        &self.0.watchers
    }

    /// A sample was taken; `shown`: what the node does now, made where anybody watches. Who has
    /// come since the sample was asked for, and is not served by this one, gets the next one.
    pub(crate) fn show(&self, shown: impl FnOnce() -> Shown) {
        // Before anybody sees it: who asks then gets nothing older.
        self.0.samples.fetch_add(1, Ordering::Release);
        let frames = &self.0.frames;
        let frame = (frames.receiver_count() > 0).then(|| {
            let before = frames.borrow().clone();
            Arc::new(Frame::new(shown(), before.as_deref()))
        });
        frames.send_if_modified(|known| {
            let is_new = frame.is_some();
            *known = frame;
            is_new
        });
    }

    /// Ready when streams are to end.
    fn ended(&self) -> watch::Receiver<bool> {
        self.0.ended.subscribe()
    }

    fn of_node(&self, code: EventCode, message: String) -> Happened {
        Happened::new(code, Object::new("node", &self.0.node), message)
    }

    fn node_started(&self) {
        let version = env!("CARGO_PKG_VERSION");
        let message = format!("node {} started (version {version})", self.0.node);
        let started = self.of_node(EventCode::NodeStarted, message);
        let started = started.with("version", version);
        let was = self.0.events.newest();
        let stopping = EventCode::NodeStopping.entry().name;
        let unclean = was.is_some_and(|last| last.code != stopping);
        self.report_set_aside();
        self.0.events.emit(if unclean {
            started.with("unclean", true)
        } else {
            started
        });
    }

    /// The daemon begins to stop: what happens from here on is its own doing.
    pub fn node_stopping(&self) {
        let message = format!("node {} stops", self.0.node);
        let stopping = self.of_node(EventCode::NodeStopping, message);
        self.0.events.emit(stopping);
    }

    fn files(&self) -> [(&'static str, Health); 2] {
        [
            (EVENTS_FILE, self.0.events.health()),
            (HISTORY_FILE, self.0.history.health()),
        ]
    }

    /// What the administrator should know, for `status`.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let what = [
            "events and the audit log are not stored",
            "the history is not stored",
        ];
        let all = self.files().into_iter().zip(what);
        let failing = all.filter_map(|((file, health), what)| {
            let path = self.0.dir.join(file);
            let why = health.failing?;
            Some(format!(
                "{}: {why}; until that ends {what}, and nothing else is affected",
                path.display()
            ))
        });
        failing.collect()
    }

    /// What is wrong with these files: of each its name, and what in a sentence.
    pub(crate) fn problems(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (file, health) in self.files() {
            let path = self.0.dir.join(file);
            all.extend(health.failing.map(|why| {
                let cause = format!("{} cannot be written: {why}", path.display());
                (file.to_owned(), cause)
            }));
            all.extend(health.set_aside.iter().map(|(aside, why)| {
                let name = aside.file_name().unwrap_or_default();
                let cause = format!(
                    "{} was damaged ({why}); it is kept as {}, and a new one is begun",
                    path.display(),
                    aside.display()
                );
                (name.to_string_lossy().into_owned(), cause)
            }));
        }
        all
    }

    /// Files that were set aside since this was asked last are events.
    pub(crate) fn report_set_aside(&self) {
        let reported = &self.0.reported;
        let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
        for ((_, health), known) in self.files().into_iter().zip(&mut *reported) {
            for (file, reason) in health.set_aside.iter().skip(*known) {
                let file = file.display().to_string();
                let message = format!(
                    "what was recorded was damaged and is set aside as {file} ({reason}); a new file is begun"
                );
                let damaged = self.of_node(EventCode::RecordsDamaged, message);
                let damaged = damaged.with("file", file);
                let events = &self.0.events;
                events.emit(damaged.with("reason", reason.as_str()));
            }
            *known = health.set_aside.len();
        }
    }

    /// Ends the streams: their clients come again after the next start and go on there.
    pub fn end_streams(&self) {
        self.0.ended.send_replace(true);
    }

    /// Writes what is not written yet, and closes the files.
    pub fn stop(&self) {
        self.end_streams();
        self.0.history.stop();
        self.0.events.stop();
    }
}

pub(crate) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/events",
            "what happens and what the node does, as a stream (SSE)",
            stream::events_stream,
        )
        .get(
            "/api/v1/events/log",
            "what happened: `event ls`",
            log::event_log,
        )
        .get(
            "/api/v1/history",
            "figures over time: `history`",
            history::history,
        )
        .get(
            "/api/v1/history/latency",
            "how many commands took how long, over time: `history --map`",
            latency_map::latency_map,
        )
        .get(
            "/api/v1/audit",
            "who changed what: `audit ls`",
            log::audit_log,
        )
        .get(
            "/api/v1/audit/export",
            "the whole audit log, a JSON document a line: `audit export`",
            log::export_audit,
        )
}

#[cfg(test)]
mod damage_test;
#[cfg(test)]
mod test;
