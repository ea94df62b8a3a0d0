//! The stored state of a node: its identity and its objects, one file per generation.
//!
//! ```text
//!   state_dir/lock                      held while a daemon runs
//!   state_dir/objects-0000000007.json   newest generation: everything but secrets
//!   state_dir/objects-0000000006.json   the one before; 20 are kept
//!   state_dir/secrets-0000000004.json   CHAP secrets as of generation 4, in force until replaced
//!   state_dir/spare-1 to -8             room for changes that make room, on a full disk
//! ```
//!
//! **Contract.** [`Store::save`] answers only when the new generation survives a power cut; until
//! then the old one does. A set that failed to load is never saved over: the store then refuses to
//! save, and says which file is damaged and what to do.
//!
//! **Invariants.** I1: a secrets file is written before the objects file of its generation, so the
//! secrets of generation g are those of the greatest number not over g. I2: numbers only grow.
//!
//! **Failure model.** A write that fails leaves the old generation in force; where it cannot be
//! made certain that the new one is gone, the store refuses further saves until a restart finds
//! out.

use crate::spare;
use env::{Access, CoreHandle, Create, File, Files, OpenHow, durable};
use manifest::code::Code;
use manifest::document::{self, Document, Secrets};
use manifest::objects::Objects;
use manifest::problem::Problem;
use manifest::secret::Secret;
use manifest::view::Kept;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::WallClock;

/// So many can be brought back; older ones are removed when one is stored.
pub const GENERATIONS_KEPT: usize = 20;

/// The largest state file that is read, in bytes: ten times what 10,000 LUNs with a grant each
/// need.
const FILE_BYTES_MAX: u64 = 64 << 20;

const OBJECTS: &str = "objects";
const SECRETS: &str = "secrets";

/// The state directory of a running daemon.
pub struct Store {
    files: Rc<dyn Files>,
    dir: PathBuf,
    _lock: Rc<dyn File>,
    node_id: String,
    generation: u64,
    /// The last number that was tried, which may be above the generation in force.
    tried: u64,
    secrets: Secrets,
    /// Why nothing may be saved.
    refusing: Option<Problem>,
    /// Bytes of the newest objects.
    objects_bytes: usize,
}

/// Reads again the objects that were stored last, and their secrets: what is wrong with them, in a
/// sentence. `None`: nothing.
pub async fn check(files: &dyn Files, dir: &Path) -> Option<String> {
    let entries = files.list(dir).await;
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return Some(format!("{}: {error}", dir.display())),
    };
    for kind in [OBJECTS, SECRETS] {
        let names = entries.iter().map(|entry| entry.name.as_path());
        let Some(newest) = numbers(names, kind).last().copied() else {
            continue;
        };
        let path = path_of(dir, kind, newest);
        let text = match durable::read_file(files, &path, FILE_BYTES_MAX).await {
            Ok(text) => Secret::new(text),
            // A newer one has taken its place.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Some(format!("{}: {error}", path.display())),
        };
        if let Err(why) = document::read(kind, text.reveal()) {
            return Some(format!("{}: {why}", path.display()));
        }
    }
    None
}

fn path_of(dir: &Path, kind: &str, number: u64) -> PathBuf {
    dir.join(format!("{kind}-{number:010}.json"))
}

/// A store, and what it held.
pub struct Opened {
    /// Stores the generations from now on; no other process has the directory.
    pub store: Store,
    /// The objects; none where the newest generation is damaged.
    pub objects: Objects,
}

impl Store {
    /// Opens the state directory, and makes it with generation 1 where there is none.
    ///
    /// A damaged newest generation is not an error here: see [`Store::damage`].
    ///
    /// # Errors
    /// The directory cannot be used, or another daemon uses it.
    pub async fn open(core: &CoreHandle, dir: &Path) -> Result<Opened, Problem> {
        let files = core.files();
        let failed = |error: &io::Error| {
            let detail = format!("{}: {error}", dir.display());
            Problem::new(Code::ConfigEnvironment, detail)
        };
        let made = env::durable::make_dir(&*files, dir).await;
        made.map_err(|error| failed(&error))?;
        let lock = lock(&*files, dir).await?;
        // What is found will be published, so a power cut may not take it back.
        let settled = env::durable::settle_dir(&*files, dir).await;
        settled.map_err(|error| failed(&error))?;
        let names = files.list(dir).await;
        let names = names.map_err(|error| failed(&error))?;
        let found = numbers(names.iter().map(|entry| entry.name.as_path()), OBJECTS);
        let mut store = Self {
            files,
            dir: dir.to_owned(),
            _lock: lock,
            node_id: String::new(),
            generation: 0,
            tried: 0,
            secrets: Secrets::default(),
            refusing: None,
            objects_bytes: 0,
        };
        let Some(newest) = found.last().copied() else {
            store.node_id = new_node_id(core);
            let objects = Objects::default();
            store.save(&objects, core.wall_clock(), false).await?;
            return Ok(Opened { store, objects });
        };
        store.generation = newest;
        store.tried = newest;
        let secrets = numbers(names.iter().map(|entry| entry.name.as_path()), SECRETS);
        let objects = match store.load(newest, &secrets).await {
            Ok(objects) => objects,
            Err(problem) => {
                store.refusing = Some(problem);
                Objects::default()
            }
        };
        Ok(Opened { store, objects })
    }

    /// The node's identity: random, made once.
    #[must_use]
    pub fn node_id(&self) -> &str {
        &self.node_id
    }

    /// The generation in force.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Why nothing can be saved, where that is so.
    #[must_use]
    pub fn damage(&self) -> Option<&Problem> {
        self.refusing.as_ref()
    }

    /// Numbers go on after this one.
    pub fn skip_to(&mut self, number: u64) {
        self.tried = self.tried.max(number);
    }

    /// The generations that are kept, newest first.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub async fn kept(&self) -> Result<Vec<Kept>, Problem> {
        let (objects, _) = self.found().await?;
        let mut out = Vec::new();
        for number in objects.into_iter().rev() {
            let kept = match self.document(number).await {
                Ok(document) => Kept::of(&document, number == self.generation),
                Err(problem) => Kept {
                    generation: number,
                    problem: Some(problem.detail.clone()),
                    ..Kept::default()
                },
            };
            out.push(kept);
        }
        Ok(out)
    }

    /// The objects of a kept generation, with the secrets of then.
    ///
    /// # Errors
    /// It is not kept, or cannot be read.
    pub async fn objects_of(&self, number: u64) -> Result<Objects, Problem> {
        let (objects, secrets) = self.found().await?;
        if !objects.contains(&number) {
            let problem = Problem::not_found("generation", &number.to_string());
            return Err(problem.hint("`causeway state ls` shows those that are kept"));
        }
        let mut objects = self.document(number).await?.objects;
        self.secrets_of(number, &secrets)
            .await?
            .fill(&mut objects)
            .map_err(|host| {
                let why =
                    format!("the secret of host \"{host}\" is missing from the secrets files");
                self.damaged(&self.path(OBJECTS, number), &why)
            })?;
        Ok(objects)
    }

    /// The numbers of the files of objects, and of secrets.
    async fn found(&self) -> Result<(Vec<u64>, Vec<u64>), Problem> {
        let entries = self.files.list(&self.dir).await;
        let entries = entries.map_err(|error| {
            let detail = format!("{}: {error}", self.dir.display());
            Problem::new(Code::ConfigEnvironment, detail)
        })?;
        let of = |kind| numbers(entries.iter().map(|entry| entry.name.as_path()), kind);
        Ok((of(OBJECTS), of(SECRETS)))
    }

    async fn document(&self, number: u64) -> Result<Document, Problem> {
        let path = self.path(OBJECTS, number);
        let text = self.read(&path, OBJECTS).await?;
        serde_json::from_slice(&text).map_err(|error| self.damaged(&path, &error.to_string()))
    }

    /// The secrets that were in force with a generation.
    async fn secrets_of(&self, number: u64, all: &[u64]) -> Result<Secrets, Problem> {
        let Some(of) = all.iter().rev().find(|of| **of <= number) else {
            return Ok(Secrets::default());
        };
        let path = self.path(SECRETS, *of);
        let text = Secret::new(self.read(&path, SECRETS).await?);
        Secrets::from_json(text.reveal()).map_err(|error| self.damaged(&path, &error.to_string()))
    }

    /// Makes `objects` the next generation. When this returns without error they survive a power
    /// cut. Where they `make_room` they need none: see [`spare`].
    ///
    /// # Errors
    /// Nothing was saved, and the generation before is in force.
    pub async fn save(
        &mut self,
        objects: &Objects,
        at: WallClock,
        make_room: bool,
    ) -> Result<u64, Problem> {
        if let Some(problem) = &self.refusing {
            return Err(problem.clone());
        }
        self.tried += 1;
        let number = self.tried;
        let secrets = Secrets::of(objects);
        let document = Document {
            node_id: self.node_id.clone(),
            generation: number,
            written: manifest::time::rfc3339(at),
            objects: objects.clone(),
        };
        match self.write(number, &document, &secrets, make_room).await {
            Ok(bytes) => self.objects_bytes = bytes,
            Err(error) => return Err(self.undo(number, &error).await),
        }
        self.generation = number;
        self.secrets = secrets;
        self.forget_old().await;
        Ok(number)
    }

    /// Writes both files; answers how long the objects' is.
    async fn write(
        &self,
        number: u64,
        document: &Document,
        secrets: &Secrets,
        make_room: bool,
    ) -> io::Result<usize> {
        if *secrets != self.secrets {
            let text = Secret::new(document::write(SECRETS, &secrets.to_json()?));
            let path = self.path(SECRETS, number);
            self.replace(&path, text.reveal(), make_room).await?;
        }
        let text = document::write(OBJECTS, &serde_json::to_vec_pretty(document)?);
        let path = self.path(OBJECTS, number);
        self.replace(&path, &text, make_room).await?;
        Ok(text.len())
    }

    async fn replace(&self, path: &Path, text: &[u8], make_room: bool) -> io::Result<()> {
        spare::replace_file(&*self.files, &self.dir, path, text, make_room).await
    }

    /// Makes the room that changes which make room need, where it is missing.
    ///
    /// # Errors
    /// Why some of it is missing.
    pub async fn keep_spares(&self) -> io::Result<()> {
        if self.refusing.is_some() {
            return Ok(());
        }
        spare::make(&*self.files, &self.dir, self.objects_bytes).await
    }

    /// After a failed write: makes certain that the new generation is not there.
    async fn undo(&mut self, number: u64, why: &io::Error) -> Problem {
        let dir = self.dir.display();
        let problem = Problem::new(Code::StateNotSaved, format!("state_dir {dir}: {why}"));
        for kind in [OBJECTS, SECRETS] {
            let path = self.path(kind, number);
            let temporary = durable::temporary_name(&path);
            let gone = durable::remove_file(&*self.files, &path).await;
            // A temporary file means nothing; it only takes space.
            let _ = self.files.remove(&temporary).await;
            if let Err(error) = gone {
                let detail = format!(
                    "state_dir {dir}: {why}; and then {}: {error}",
                    path.display()
                );
                let not_saved = Problem::new(Code::StateNotSaved, detail)
                    .hint("repair the file system of the state directory, then restart the daemon");
                self.refusing = Some(not_saved.clone());
                return not_saved;
            }
        }
        problem
    }

    async fn load(&mut self, number: u64, secrets: &[u64]) -> Result<Objects, Problem> {
        let path = self.path(OBJECTS, number);
        let document = self.document(number).await?;
        self.objects_bytes = serde_json::to_vec_pretty(&document).map_or(0, |text| text.len());
        self.node_id.clone_from(&document.node_id);
        let mut objects = document.objects;
        self.secrets = self.secrets_of(number, secrets).await?;
        if let Err(host) = self.secrets.fill(&mut objects) {
            let why = format!("the secret of host \"{host}\" is missing from the secrets files");
            return Err(self.damaged(&path, &why));
        }
        // Secrets whose objects never arrived: the power went in between (I1).
        for orphan in secrets.iter().filter(|of| **of > number) {
            let _ = self.files.remove(&self.path(SECRETS, *orphan)).await;
            self.tried = self.tried.max(*orphan);
        }
        Ok(objects)
    }

    async fn read(&self, path: &Path, kind: &str) -> Result<Vec<u8>, Problem> {
        let text = durable::read_file(&*self.files, path, FILE_BYTES_MAX).await;
        let text = text.map_err(|error| self.damaged(path, &error.to_string()))?;
        document::read(kind, &text).map_err(|why| self.damaged(path, &why.to_string()))
    }

    fn damaged(&self, path: &Path, why: &str) -> Problem {
        let (path, dir) = (path.display(), self.dir.display());
        Problem::new(Code::StateDamaged, format!("{path}: {why}")).hint(format!(
            "nothing is exported and nothing will be saved. Keep a copy of {dir}; then, to go back to \
             the generation before, stop the daemon, move {path} elsewhere, and start it again"
        ))
    }

    /// Old generations take space only; failing to remove them is no failure.
    async fn forget_old(&self) {
        let Ok(entries) = self.files.list(&self.dir).await else {
            return;
        };
        let names = || entries.iter().map(|entry| entry.name.as_path());
        let objects = numbers(names(), OBJECTS);
        let keep_from = objects.len().saturating_sub(GENERATIONS_KEPT);
        let (old, kept) = objects.split_at(keep_from);
        for number in old {
            let _ = self.files.remove(&self.path(OBJECTS, *number)).await;
        }
        let Some(oldest) = kept.first() else { return };
        let secrets = numbers(names(), SECRETS);
        let in_force = secrets.iter().rev().find(|of| *of <= oldest);
        for number in secrets.iter().filter(|of| Some(*of) < in_force) {
            let _ = self.files.remove(&self.path(SECRETS, *number)).await;
        }
    }

    fn path(&self, kind: &str, number: u64) -> PathBuf {
        path_of(&self.dir, kind, number)
    }
}

async fn lock(files: &dyn Files, dir: &Path) -> Result<Rc<dyn File>, Problem> {
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::IfAbsent,
        direct: false,
        lock: true,
    };
    let path = dir.join("lock");
    let opened = files.open(&path, how).await;
    opened.map_err(|error| {
        if error.kind() == io::ErrorKind::WouldBlock {
            let detail = format!("{} is locked by another process", path.display());
            return Problem::new(Code::AlreadyRunning, detail);
        }
        let detail = format!("{}: {error}", path.display());
        Problem::new(Code::ConfigEnvironment, detail)
    })
}

/// The numbers of the files of one kind, in order.
fn numbers<'a>(names: impl Iterator<Item = &'a Path>, kind: &str) -> Vec<u64> {
    let number = |name: &Path| {
        let rest = name.to_str()?.strip_prefix(kind)?.strip_prefix('-')?;
        rest.strip_suffix(".json")?.parse().ok()
    };
    let mut found: Vec<u64> = names.filter_map(number).collect();
    found.sort_unstable();
    found
}

fn new_node_id(core: &CoreHandle) -> String {
    let mut bytes = [0_u8; 16];
    core.fill_random(&mut bytes);
    units::hex(&bytes)
}

#[cfg(test)]
mod test;
