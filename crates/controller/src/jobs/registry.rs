//! The jobs of a node, and their file.
//!
//! **Failure model.** What is known of jobs decides nothing: a file that cannot be read is set
//! aside, and one of a newer version stays as it is while nothing is stored.

use super::SCRUB;
use ::jobs::{Document, Jobs};
use env::durable::{read_file, replace_file};
use env::{CoreHandle, Files, in_time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Jobs, in the state directory.
const FILE: &str = "jobs.json";

/// The largest such file.
const BYTES_MAX: u64 = 64 << 20;

/// How long a write may take before the rest goes on without it.
const WRITE_TIME_MAX: Duration = Duration::from_secs(10);

/// Has work of others stop; called once at most.
pub(super) type Stop = Box<dyn FnOnce() + Send>;

/// The jobs of a node, with their file.
pub(crate) struct Registry {
    pub(crate) jobs: RefCell<Jobs>,
    /// LUNs whose storage the change under way makes, by NAA identifier.
    pub(super) change: RefCell<Vec<String>>,
    /// How work of others is stopped, by number.
    pub(super) stops: RefCell<BTreeMap<u64, Stop>>,
    path: PathBuf,
    /// A newer version wrote it.
    is_foreign: bool,
    writing: Cell<bool>,
}

impl Registry {
    /// Reads what is stored.
    pub(crate) async fn open(core: &CoreHandle, state_dir: &Path) -> Self {
        let path = state_dir.join(FILE);
        let (document, is_foreign) = load(&*core.files(), &path).await;
        Self {
            jobs: RefCell::new(Jobs::new(document, &[SCRUB], core.wall_clock())),
            change: RefCell::default(),
            stops: RefCell::default(),
            path,
            is_foreign,
            writing: Cell::new(false),
        }
    }

    /// Stores them, where something began, ended or was written.
    pub(super) async fn store(&self, core: &CoreHandle) {
        if self.is_foreign || self.writing.get() || !self.jobs.borrow_mut().take_unstored() {
            return;
        }
        self.writing.set(true);
        let bytes = self.jobs.borrow().document().write();
        let files = core.files();
        let written = replace_file(&*files, &self.path, &bytes);
        let written = in_time(core, WRITE_TIME_MAX, written).await;
        self.writing.set(false);
        let why = match written {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => "it cannot be written in time".to_owned(),
        };
        tracing::warn!("{}: {why}", self.path.display());
        self.jobs.borrow_mut().not_stored();
    }
}

/// What is stored, and whether a newer version wrote it.
async fn load(files: &dyn Files, path: &Path) -> (Document, bool) {
    let bytes = match read_file(files, path, BYTES_MAX).await {
        Ok(bytes) => bytes,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::error!("{}: {error}", path.display());
            }
            return (Document::default(), false);
        }
    };
    let unread = match Document::read(&bytes) {
        Ok(document) => return (document, false),
        Err(unread) => unread,
    };
    let place = path.display();
    tracing::error!("{place}: {unread}: what it says of jobs is not known");
    if !unread.is_newer {
        let aside = path.with_extension("json.aside");
        if let Err(error) = files.rename(path, &aside).await {
            tracing::error!("{place} cannot be put aside: {error}");
        }
    }
    (Document::default(), unread.is_newer)
}
