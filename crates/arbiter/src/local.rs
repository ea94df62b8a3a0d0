//! The arbiter of one node: a file.

use crate::question::{Answer, Arbiter, Changes, Key, Question, Record, Swap, SwapAll, Together};
use crate::trouble::{Trouble, TroubleKind};
use env::durable::{read_file, replace_file, settle_dir};
use env::{Access, CoreHandle, Create, File, LocalFuture, OpenHow, detach};
use manifest::document;
use replica::Revision;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tokio::sync::Mutex;

/// The kind of the document.
const KIND: &str = "records";

/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The records are in this file of their directory, and who has them open holds the other one.
const RECORDS: &str = "records.json";
const LOCK: &str = "records.lock";

/// For one node without a cluster, and for tests: a file that is replaced whole. Asking, it is
/// slower the more records there are: 5,000 of them are 2 MB.
pub struct LocalArbiter {
    core: CoreHandle,
    shared: Rc<Shared>,
    _lock: Rc<dyn File>,
}

struct Shared {
    file: PathBuf,
    /// `None`: it may differ from the file, which is to be read anew.
    held: Mutex<Option<Held>>,
    /// The file is at least so far, or it is not the newest one.
    known: Cell<u64>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Held {
    revision: u64,
    records: BTreeMap<String, Line>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Line {
    revision: u64,
    /// Base64.
    value: String,
}

impl LocalArbiter {
    /// The arbiter whose file is in this directory, which must exist.
    ///
    /// # Errors
    /// Another process has it open, or the directory cannot be written.
    pub async fn open(core: &CoreHandle, dir: &Path) -> Result<Self, Trouble> {
        let how = OpenHow {
            access: Access::ReadWrite,
            create: Create::IfAbsent,
            direct: false,
            lock: true,
        };
        let lock = dir.join(LOCK);
        let lock = core.files().open(&lock, how).await.map_err(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                let next = "one daemon has the records of a node: stop the other one";
                trouble(&lock, &"another process has it open", next)
            } else {
                trouble(&lock, &error, "check the disk of state_dir")
            }
        })?;
        Ok(Self {
            core: Rc::clone(core),
            shared: Rc::new(Shared {
                file: dir.join(RECORDS),
                held: Mutex::new(None),
                known: Cell::new(0),
            }),
            _lock: lock,
        })
    }

    /// Works on the records one after the other, and to the end, whether anybody waits or not.
    fn work<T: Unpin + 'static>(
        &self,
        work: impl AsyncFnOnce(&CoreHandle, Rc<Shared>) -> T + 'static,
    ) -> LocalFuture<T> {
        let (core, shared) = (Rc::clone(&self.core), Rc::clone(&self.shared));
        Box::pin(detach(&self.core, async move { work(&core, shared).await }))
    }
}

impl Arbiter for LocalArbiter {
    fn ask(&self, questions: Vec<Question>) -> LocalFuture<Vec<Answer>> {
        self.work(async move |core, shared| {
            let answers = |held: &mut Held| questions.iter().map(|it| held.answer(it)).collect();
            match shared.changes(core, answers).await {
                Ok(answers) => answers,
                Err(trouble) => {
                    let unknown = |_| Answer::Unknown(trouble.clone());
                    questions.iter().map(unknown).collect()
                }
            }
        })
    }

    fn swap_all(&self, swaps: SwapAll) -> LocalFuture<Together> {
        self.work(async move |core, shared| {
            let changed = shared.changes(core, |held| held.swap_all(&swaps)).await;
            changed.unwrap_or_else(Together::Unknown)
        })
    }

    fn knows(&self, revision: Revision) {
        let known = self.shared.known.get();
        self.shared.known.set(known.max(revision.0));
    }

    fn changes(&self, below: &Key, since: Revision) -> LocalFuture<Result<Changes, Trouble>> {
        let below = below.clone();
        self.work(async move |core, shared| {
            let mut slot = shared.held.lock().await;
            let held = shared.known(core, &mut slot).await?;
            let mut records = Vec::new();
            for name in held.records.keys() {
                let key = Key::new(name).ok_or_else(|| damaged(&shared.file))?;
                let record = held.get(&key).ok_or_else(|| damaged(&shared.file))?;
                if key.is_below(&below) && record.0 > since {
                    records.push((key, record));
                }
            }
            let until = Revision(held.revision);
            Ok(Changes { records, until })
        })
    }
}

impl Shared {
    /// What was changed is stable when it is answered.
    async fn changes<T>(
        &self,
        core: &CoreHandle,
        change: impl FnOnce(&mut Held) -> T,
    ) -> Result<T, Trouble> {
        let mut slot = self.held.lock().await;
        let before = self.known(core, &mut slot).await?.clone();
        let mut held = before.clone();
        let answers = change(&mut held);
        if held.revision != before.revision {
            // Until it is stable nobody knows which of the two the file has.
            *slot = None;
            self.store(core, &held).await?;
            *slot = Some(held);
        }
        Ok(answers)
    }

    async fn known<'a>(
        &self,
        core: &CoreHandle,
        slot: &'a mut Option<Held>,
    ) -> Result<&'a Held, Trouble> {
        let held = match slot.take() {
            Some(held) => held,
            None => self.load(core).await?,
        };
        if held.revision < self.known.get() {
            return Err(self.set_back(held.revision));
        }
        Ok(slot.insert(held))
    }

    fn set_back(&self, to: u64) -> Trouble {
        let (file, known) = (self.file.display(), self.known.get());
        Trouble::new(
            TroubleKind::SetBack,
            format!("{file}: its last change was number {to}, and number {known} is known here"),
            "nothing is changed: bring the newest one of this file back",
        )
    }

    async fn load(&self, core: &CoreHandle) -> Result<Held, Trouble> {
        let files = core.files();
        let dir = self.file.parent().unwrap_or_else(|| Path::new("."));
        let failed = |error: io::Error| trouble(&self.file, &error, "check the disk of state_dir");
        settle_dir(&*files, dir).await.map_err(failed)?;
        let text = match read_file(&*files, &self.file, FILE_BYTES_MAX).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Held::new()),
            read => read.map_err(failed)?,
        };
        document::parse(KIND, &text).map_err(|why| {
            let next = "bring the file back from a backup of this node's state, or start the version that wrote it";
            trouble(&self.file, &why, next)
        })
    }

    async fn store(&self, core: &CoreHandle, held: &Held) -> Result<(), Trouble> {
        let failed = |error: &dyn std::fmt::Display| {
            trouble(&self.file, error, "check the disk of state_dir")
        };
        let body = serde_json::to_vec(held).map_err(|error| failed(&error))?;
        let text = document::write(KIND, &body);
        let stored = replace_file(&*core.files(), &self.file, &text).await;
        stored.map_err(|error| failed(&error))
    }
}

impl Held {
    fn new() -> Self {
        Self {
            revision: 1,
            records: BTreeMap::new(),
        }
    }

    fn get(&self, key: &Key) -> Option<Record> {
        let line = self.records.get(key.as_str())?;
        let value = units::base64::decode(&line.value)?;
        Some((Revision(line.revision), value))
    }

    fn answer(&mut self, question: &Question) -> Answer {
        let is = self.get(question.key());
        match question {
            Question::Read(_) => Answer::Is(is),
            Question::Swap(swap) if self.has(swap) => {
                self.revision += 1;
                self.put(swap);
                Answer::Swapped(Revision(self.revision))
            }
            Question::Swap(swap) => swap.met(is),
        }
    }

    fn swap_all(&mut self, all: &SwapAll) -> Together {
        if !all.swaps().iter().all(|it| self.has(it)) {
            return all.met(all.swaps().iter().map(|it| self.get(&it.key)).collect());
        }
        self.revision += 1;
        for swap in all.swaps() {
            self.put(swap);
        }
        Together::Swapped(Revision(self.revision))
    }

    /// With the version that is the newest one.
    fn put(&mut self, swap: &Swap) {
        let line = Line {
            revision: self.revision,
            value: units::base64::encode(swap.to()),
        };
        self.records.insert(swap.key.as_str().to_owned(), line);
    }

    fn has(&self, swap: &Swap) -> bool {
        let line = self.records.get(swap.key.as_str());
        line.map_or(0, |it| it.revision) == swap.expected.0
    }
}

fn trouble(file: &Path, why: &dyn std::fmt::Display, next_step: &str) -> Trouble {
    let cause = format!("{}: {why}", file.display());
    Trouble::new(TroubleKind::File, cause, next_step)
}

fn damaged(file: &Path) -> Trouble {
    let next = "bring the file back from a backup of this node's state";
    trouble(
        file,
        &"a record has a name or bytes that nobody wrote",
        next,
    )
}
