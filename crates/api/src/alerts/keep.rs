//! The alerts of a node with their files.

use super::secrets;
use crate::outside::{now, random};
use crate::records::Records;
use crate::tls::Certificate;
use alerts::{
    Board, Document, Ending, Finding, Learned, Moment, Object, Outbox, Receiver, Severity, Watch,
};
use controller::StateFiles;
use manifest::code::Code;
use manifest::config::{AlertCommand, Config};
use manifest::problem::Problem;
use manifest::view::AlertCounts;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use units::Now;

/// Alerts and what administrators did about them, in the state directory.
pub(super) const FILE: &str = "alerts.json";

/// What was learned of LUNs.
pub(super) const LEARNED_FILE: &str = "alerts-learned.json";

/// Who is sent alerts, with secrets.
pub(crate) const RECEIVERS_FILE: &str = "alert-receivers.json";

/// A receiver and what it is to be sent.
pub(super) struct Kept {
    pub(super) receiver: Receiver,
    pub(super) outbox: Outbox,
    /// Distinguishes it from others of its name, before and after.
    pub(super) serial: u64,
}

impl Kept {
    /// Stands for what was asked for of it, secrets included, and for nothing that was counted.
    pub(super) fn tag(&self, run: u64) -> String {
        format!("{run:x}-{}", self.serial)
    }
}

/// All that is known of alerts.
pub(super) struct Inner {
    pub(super) board: Board,
    pub(super) watch: Watch,
    /// Where to go on with the sessions that ended.
    pub(super) ended_next: u64,
    pub(super) receivers: BTreeMap<String, Kept>,
    /// What was wrong with files at the start, or since.
    pub(super) records: Vec<Finding>,
    /// The board, or what was sent, is not as it is stored.
    pub(super) is_dirty: bool,
    /// When each file was stored last.
    pub(super) stored: Now,
    pub(super) learned: Now,
    pub(super) serials: u64,
    /// Distinguishes serials of this run of the daemon from those of others.
    pub(super) run: u64,
}

/// The alerts of a node.
pub(crate) struct Alerting {
    inner: Mutex<Inner>,
    pub(super) files: StateFiles,
    pub(super) node: String,
    /// The settings, with the live ones as they are by now.
    live: watch::Receiver<Arc<Config>>,
    certificate: Option<Arc<Certificate>>,
    pub(super) records: Records,
    /// Held by whoever writes files.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// Files that a newer version wrote, by name.
    foreign: Vec<&'static str>,
}

/// The moment, for alerts.
pub(super) fn moment() -> Moment {
    let accounts::Moment { steady, wall } = now();
    Moment { steady, wall }
}

/// What a file says, or why it cannot be used.
struct Loaded<T> {
    value: T,
    is_foreign: bool,
    finding: Option<Finding>,
}

async fn load<T: Default>(
    files: &StateFiles,
    name: &'static str,
    read: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<Loaded<T>, Problem> {
    let good = |value| Loaded {
        value,
        is_foreign: false,
        finding: None,
    };
    let Some(bytes) = files.read(name).await? else {
        return Ok(good(T::default()));
    };
    let why = match read(&bytes) {
        Ok(value) => return Ok(good(value)),
        Err(why) => why,
    };
    let path = files.path(name);
    // A newer program has its reasons; what is damaged is kept for a person to inspect.
    let is_foreign = why.contains("of version");
    let next_step = if is_foreign {
        "start the version of Causeway that wrote it, or move it away and restart".to_owned()
    } else {
        let aside = format!("{name}.aside");
        files.write(&aside, bytes).await?;
        format!(
            "check the disk of state_dir; the damaged file is kept as {}",
            files.path(&aside).display()
        )
    };
    let cause = format!("{}: {why}", path.display());
    tracing::error!("{cause}: {next_step}");
    let finding = Finding {
        object: Object::new("file", name),
        severity: Severity::Warning,
        cause,
        next_step,
    };
    Ok(Loaded {
        value: T::default(),
        is_foreign,
        finding: Some(finding),
    })
}

impl Alerting {
    /// Reads what is stored.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub(crate) async fn open(
        files: StateFiles,
        live: watch::Receiver<Arc<Config>>,
        certificate: Option<Arc<Certificate>>,
        records: Records,
    ) -> Result<Self, Problem> {
        let document = load(&files, FILE, Document::read).await?;
        let learned = load(&files, LEARNED_FILE, Learned::read).await?;
        let receivers = load(&files, RECEIVERS_FILE, secrets::read).await?;
        let all_foreign = [
            (FILE, document.is_foreign),
            (LEARNED_FILE, learned.is_foreign),
            (RECEIVERS_FILE, receivers.is_foreign),
        ];
        let foreign = all_foreign.iter().filter(|(_, is)| *is);
        let found = [document.finding, learned.finding, receivers.finding];
        let mut run = [0; 8];
        random(&mut run);
        let mut inner = Inner {
            board: Board::new(&document.value, now().wall),
            ended_next: 0,
            watch: Watch::new(learned.value),
            receivers: BTreeMap::new(),
            records: found.into_iter().flatten().collect(),
            is_dirty: false,
            stored: now().steady,
            learned: now().steady,
            serials: 0,
            run: u64::from_le_bytes(run),
        };
        for receiver in receivers.value {
            let sent = document.value.sent.get(&receiver.name).cloned();
            inner.add(receiver, Outbox::new(sent.unwrap_or_default()));
        }
        let node = live.borrow().node_name.clone();
        Ok(Self {
            inner: Mutex::new(inner),
            node,
            live,
            writing: tokio::sync::Mutex::default(),
            foreign: foreign.map(|(name, _)| *name).collect(),
            files,
            certificate,
            records,
        })
    }

    /// Programs that may be run with alerts.
    pub(super) fn commands(&self) -> Vec<AlertCommand> {
        self.live.borrow().alert_commands.clone()
    }

    /// How often each LUN is scrubbed by itself.
    pub(super) fn scrub_every_days(&self) -> Option<u32> {
        self.live.borrow().scrub_every_days
    }

    /// All of it, for a moment.
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file of what the node keeps of itself was found to be damaged.
    pub(crate) fn add_record(&self, file: &str, problem: &Problem) {
        let finding = Finding {
            object: Object::new("file", file),
            severity: Severity::Warning,
            cause: problem.detail.clone(),
            next_step: problem.hint.clone(),
        };
        let mut inner = self.lock();
        inner.records.retain(|known| known.object != finding.object);
        inner.records.push(finding);
    }

    /// What is wrong with files of what the node records of itself.
    pub(super) fn of_records(&self) -> Vec<Finding> {
        let problems = self.records.problems().into_iter();
        let finding = |(file, cause): (String, String)| Finding {
            object: Object::new("file", &file),
            severity: Severity::Warning,
            cause,
            next_step:
                "check the disk of state_dir, and that it has room; LUNs are served all the same"
                    .to_owned(),
        };
        problems.map(finding).collect()
    }

    /// How many alerts there are, for `status`.
    pub(crate) fn counts(&self) -> AlertCounts {
        self.lock().board.counts(now().wall)
    }

    /// What has an end.
    pub(super) fn endings(&self) -> Vec<Ending> {
        let certificate = self.certificate.as_ref();
        let ending = certificate.and_then(|it| {
            Some(Ending {
                name: "api".to_owned(),
                place: it.place(),
                at: it.end()?,
                next_step: "put another certificate and its key in the place of these files: they are read again by themselves; \
                            one that the daemon made is made anew by itself 30 days before its end: where it is not, `status` says why"
                    .to_owned(),
            })
        });
        ending.into_iter().collect()
    }

    /// The same by name, and in seconds since 1970.
    pub(crate) fn ends(&self) -> Vec<(String, u64)> {
        let endings = self.endings().into_iter();
        endings
            .map(|it| (it.name, it.at.0 / 1_000_000_000))
            .collect()
    }

    /// A file may be written.
    pub(super) fn may_write(&self, name: &'static str) -> Result<(), Problem> {
        if !self.foreign.contains(&name) {
            return Ok(());
        }
        let path = self.files.path(name);
        let detail = format!(
            "{}: a newer version wrote it, so that nothing is stored",
            path.display()
        );
        Err(Problem::new(Code::StateNotSaved, detail)
            .hint("start that version, or move the file away and restart"))
    }

    /// Makes a change of the board and stores it; or only says whether it can be made.
    pub(super) async fn change<T>(
        &self,
        dry_run: bool,
        edit: impl Fn(&mut Board) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let _one_at_a_time = self.writing.lock().await;
        let (bytes, made) = {
            let inner = self.lock();
            let mut after = inner.board.clone();
            let made = edit(&mut after)?;
            (inner.document_of(&after).write(), made)
        };
        if dry_run {
            return Ok(made);
        }
        self.may_write(FILE)?;
        self.files.write(FILE, bytes).await?;
        let mut inner = self.lock();
        // What the rules found meanwhile is there already, and stored soon.
        inner.is_dirty = true;
        edit(&mut inner.board)
    }
}

impl Inner {
    /// Puts a receiver in the place of the one of its name.
    pub(super) fn add(&mut self, receiver: Receiver, outbox: Outbox) {
        self.serials += 1;
        let kept = Kept {
            outbox,
            serial: self.serials,
            receiver,
        };
        self.receivers.insert(kept.receiver.name.clone(), kept);
    }

    /// What is stored of a board.
    pub(super) fn document_of(&self, board: &Board) -> Document {
        let sent = self.receivers.iter().map(|(name, kept)| {
            let sent = kept.outbox.sent().clone();
            (name.clone(), sent)
        });
        Document {
            sent: sent.collect(),
            ..board.document()
        }
    }
}
