//! Pools that are directories: whether what lies at the path is the pool, or only the place where
//! its file system belongs.
//!
//! **Contract.** A pool whose LUNs are known is never begun anew: where nothing of it lies at its
//! path, it is *missing*, its LUNs are offline, nothing is made in it and nothing of it is purged,
//! and it comes back by itself when it is there again.

use crate::backend::disk::DiskLeaf;
use crate::backend::door::{
    Backend, KeepsJournal, Leaf, Pool, PoolIdentity, Promised, Stored, Work, done,
};
use crate::inner::Inner;
use crate::lun::failed::failed;
use crate::lun::geometry::{block_size, exponent, provisioning};
use crate::lun::sidecar::{CHECKSUMS, RECORD, ending};
use crate::pool::late;
use crate::pool::orphan_record::{NoRecord, is_naa, orphan_of};
use crate::pool::questions;
use crate::pool::space::{self, Probed};
use ::sidecar::{Sidecar, SidecarKind};
use backends::{FileSpec, Progress};
use env::durable::{self, read_file, replace_file};
use env::file::is_there;
use env::{CoreHandle, Files};
use manifest::code::Code;
use manifest::config;
use manifest::facts::PoolFacts;
use manifest::objects::{Lun, Objects};
use manifest::orphan::{LunRecord, Orphan, RECORD_BYTES_MAX};
use manifest::problem::Problem;
use state::pool_file::{FILE, PoolFile};
use state::remembered;
use state::saved::{self, SavedText};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use units::ByteCount;
use volume::{Fences, OpenError, OpenErrorKind};

/// How many LUNs a message names.
const NAMED_MAX: usize = 3;

/// What a file system may take of a file besides its data, which is no reason to give back any.
const METADATA_BYTES_MAX: u64 = 1 << 20;

/// A pool that is a directory: a file for each LUN.
pub(crate) struct Directory {
    node: Weak<Inner>,
    pool: config::Pool,
    path: PathBuf,
    /// Where it stands in node.toml, for messages.
    index: usize,
    /// Why it is missing, where it is.
    missing: RefCell<Option<OpenError>>,
    /// What is known of its room.
    room: Rc<RefCell<Probed>>,
}

/// Why a pool does not begin.
enum NotBegun {
    /// It is missing; the node starts without it.
    Missing(OpenError),
    /// It cannot be made.
    Impossible(Problem),
}

/// Opens one at the start: inspects it before anything of it is used, and makes it where it is new.
/// One that does not answer is missing, and holds up nothing else.
pub(crate) fn open<'a>(
    node: &'a Rc<Inner>,
    (index, pool): (usize, &'a config::Pool),
    path: &'a Path,
    objects: &'a Rc<Objects>,
) -> Work<'a, Result<Rc<dyn Pool>, Problem>> {
    let this = Rc::new(Directory {
        node: Rc::downgrade(node),
        pool: pool.clone(),
        path: path.to_owned(),
        index,
        missing: RefCell::default(),
        room: Rc::default(),
    });
    Box::pin(async move {
        let (beginning, objects) = (Rc::clone(&this), Rc::clone(objects));
        let begin = async move { beginning.begin(&objects).await };
        let begun = node.ask(format!("{}: begin", pool.name), begin).await;
        match begun.unwrap_or_else(|| Err(NotBegun::Missing(this.silent()))) {
            Ok(()) => {}
            Err(NotBegun::Missing(why)) => {
                tracing::error!(pool = pool.name, code = %Code::PoolMissing, "{why}: its LUNs are offline");
                this.set_missing(Some(why));
            }
            Err(NotBegun::Impossible(problem)) => return Err(problem),
        }
        Ok(this as Rc<dyn Pool>)
    })
}

/// LUNs that a pool holds, in service or removed.
fn luns_in<'a>(objects: &'a Objects, pool: &'a str) -> Vec<(&'a String, &'a Lun)> {
    let all = objects.luns.iter().chain(&objects.removed);
    all.filter(|(_, lun)| lun.backing.pool() == Some(pool))
        .collect()
}

/// The first of them.
fn named(luns: &[(&String, &Lun)]) -> String {
    let first = luns.iter().take(NAMED_MAX).map(|(name, _)| name.as_str());
    let first = first.collect::<Vec<&str>>().join(", ");
    match luns.len().saturating_sub(NAMED_MAX) {
        0 => format!("LUN {first}"),
        more => format!("LUN {first} and {more} more"),
    }
}

impl Directory {
    fn node(&self) -> Rc<Inner> {
        self.node.upgrade().expect("a pool lives in its node")
    }

    /// `true`: that is news.
    fn set_missing(&self, why: Option<OpenError>) -> bool {
        let is_missing = why.is_some();
        self.missing.replace(why).is_some() != is_missing
    }

    fn silent(&self) -> OpenError {
        OpenError {
            kind: OpenErrorKind::Hung,
            cause: format!("{}: {}", questions::silent(&self.pool.name), self.path.display()),
            next_step: "check its disk or file server and the kernel's log: the pool and its LUNs come back by themselves"
                .to_owned(),
        }
    }

    async fn begin(&self, objects: &Objects) -> Result<(), NotBegun> {
        let there = self.is_the_pool(objects).await;
        there.map_err(NotBegun::Missing)?;
        let made = durable::make_dir(&*self.node().core.files(), &self.path).await;
        made.map_err(|error| {
            let index = self.index;
            let place = self.node().config.place(&format!("pool[{index}].path"));
            let detail = format!("{place}: {}: {error}", self.path.display());
            NotBegun::Impossible(Problem::new(Code::ConfigEnvironment, detail).hint(
                "a pool is a directory that this user may write; a block device is named in the LUN: \
                 backend = { block = \"/dev/...\" }",
            ))
        })?;
        self.mark().await;
        Ok(())
    }

    /// What lies at the path is this pool, or may become it.
    async fn is_the_pool(&self, objects: &Objects) -> Result<(), OpenError> {
        let (pool, node) = (&self.pool, self.node());
        let path = &self.path;
        let luns = luns_in(objects, &pool.name);
        if luns.is_empty() {
            return Ok(());
        }
        let found = PoolFile::read(&node.core, &path.join(FILE)).await?;
        let number = match &found {
            Some(file) => Some(file.number(&path.join(FILE))?),
            None => None,
        };
        let known = remembered::number(&node.core, &node.config.state_dir, &pool.name).await;
        if number.is_some() && (known.is_none() || known == number) {
            return Ok(());
        }
        if self.has_any(&luns).await {
            return Ok(());
        }
        let (path, luns) = (path.display(), named(&luns));
        let cause = match number {
            Some(_) => format!(
                "pool {} is missing: {path} holds another pool, and nothing of {luns}",
                pool.name
            ),
            None => format!(
                "pool {} is missing: {path} holds nothing of {luns}, as where a file system is not mounted",
                pool.name
            ),
        };
        Err(OpenError {
            kind: OpenErrorKind::Missing,
            cause,
            next_step: "mount its file system: the pool and its LUNs come back by themselves (findmnt shows what is mounted)"
                .to_owned(),
        })
    }

    /// A file of one of these is there.
    async fn has_any(&self, luns: &[(&String, &Lun)]) -> bool {
        let files = self.node().core.files();
        for (_, lun) in luns {
            if is_there(&*files, &self.file_of(lun)).await {
                return true;
            }
        }
        false
    }

    /// Writes down which pool it is, there and here, so that it is known again.
    async fn mark(&self) {
        let (pool, node) = (&self.pool, self.node());
        let marked = async {
            let file = self.path.join(FILE);
            let known = PoolFile::read(&node.core, &file).await?;
            let known = match known {
                Some(known) => known,
                // With a journal it is for whoever makes or opens that to say so.
                None if pool.journal.is_some() => return Ok(()),
                None => PoolFile::make(&node.core, &file).await?,
            };
            let number = known.number(&file)?;
            remembered::write_number(&node.core, &node.config.state_dir, &pool.name, number)
                .await
                .map_err(|error: io::Error| OpenError {
                    kind: OpenErrorKind::of_io(&error),
                    cause: format!("it cannot be written down which pool it is: {error}"),
                    next_step: "check the space and the permissions of state_dir".to_owned(),
                })
        };
        node.unsaved.note(
            late::Late::Pool(pool.name.clone()),
            format_args!("pool {}", pool.name),
            marked.await,
        );
    }

    /// Probes whether a pool's directory went or came back: its LUNs go offline, and on again.
    async fn follow(&self) {
        let node = self.node();
        let was_silent = self
            .missing
            .borrow()
            .as_ref()
            .is_some_and(|why| why.kind == OpenErrorKind::Hung);
        if was_silent {
            // It is asked before the turn is taken: nobody else waits for it.
            is_there(&*node.core.files(), &self.path.join(FILE)).await;
        }
        let objects = Rc::clone(&node.objects.borrow());
        let seen = self.is_the_pool(&objects).await.err();
        if seen.is_some() == self.missing.borrow().is_some() {
            return;
        }
        let _turn = node.turn.lock().await;
        let objects = Rc::clone(&node.objects.borrow());
        match self.is_the_pool(&objects).await {
            Err(why) => self.lose(why).await,
            Ok(()) => self.bring_back().await,
        }
    }

    async fn lose(&self, why: OpenError) {
        if self.set_missing(Some(why.clone())) {
            self.node().lose_pool(&self.pool, &why).await;
        }
    }

    async fn bring_back(&self) {
        let (pool, node) = (&self.pool, self.node());
        if !self.set_missing(None) {
            return;
        }
        // One that did not answer at the start was not made then.
        if let Err(error) = durable::make_dir(&*node.core.files(), &self.path).await {
            tracing::error!(pool = pool.name, "{}: {error}", self.path.display());
        }
        self.mark().await;
        node.return_pool(pool).await;
    }

    fn file_of(&self, lun: &Lun) -> PathBuf {
        self.path.join(format!("{}.lun", lun.naa))
    }
}

impl Backend for Directory {
    fn create<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        progress: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            let (path, size) = (self.file_of(lun), ByteCount(lun.size.bytes()));
            let made =
                backends::create_file_watched(core, &path, size, provisioning(lun), progress);
            let made = made.await;
            made.map_err(|error| failed(&error, &path, "make"))
        })
    }

    fn open<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        fences: Fences,
    ) -> Work<'a, Result<Rc<dyn Leaf>, OpenError>> {
        Box::pin(async move {
            let path = self.file_of(lun);
            let spec = FileSpec {
                path: path.clone(),
                block_size: block_size(lun),
                physical_block_exponent: exponent(lun),
                provisioning: provisioning(lun),
            };
            DiskLeaf::open(core, lun, &path, backends::open_file(core, spec, fences)).await
        })
    }

    fn destroy<'a>(&'a self, core: &'a CoreHandle, lun: &'a Lun) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            let path = self.file_of(lun);
            let gone = durable::remove_file(&*core.files(), &path).await;
            gone.map_err(|error| failed(&error, &path, "remove"))
        })
    }

    fn file(&self, lun: &Lun) -> Option<PathBuf> {
        Some(self.file_of(lun))
    }
}

async fn stored_at(files: Rc<dyn Files>, path: PathBuf) -> Stored {
    let text = read_file(&*files, &path, RECORD_BYTES_MAX).await.ok();
    let record = text.as_ref().and_then(|it| LunRecord::decode(it).ok());
    Stored { text, record }
}

async fn write_record(files: Rc<dyn Files>, path: PathBuf, text: Vec<u8>) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        durable::make_dir(&*files, parent).await?;
    }
    replace_file(&*files, &path, &text).await
}

impl Directory {
    fn sidecar_path(&self, lun: &Lun, ending: &str) -> PathBuf {
        self.file_of(lun).with_extension(ending)
    }

    async fn orphan(&self, naa: &str, file: &Path) -> Orphan {
        let files = self.node().core.files();
        let text = read_file(&*files, &file.with_extension(RECORD), RECORD_BYTES_MAX).await;
        let record = match text {
            Ok(text) => LunRecord::decode(&text).map_err(NoRecord::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(NoRecord::Absent("next to its file"))
            }
            Err(error) => Err(NoRecord::System(error)),
        };
        let has_checksums = is_there(&*files, &file.with_extension(CHECKSUMS)).await;
        orphan_of(&self.pool.name, naa, record, has_checksums)
    }

    async fn file_and_journal(&self) -> Result<PoolFile, OpenError> {
        let (node, path) = (self.node(), self.path.join(FILE));
        match PoolFile::read(&node.core, &path).await? {
            Some(file) => Ok(file),
            None => PoolFile::make(&node.core, &path).await,
        }
    }
}

impl Pool for Directory {
    fn journals(&self) -> Option<&dyn KeepsJournal> {
        Some(self)
    }

    fn missing(&self) -> Option<OpenError> {
        self.missing.borrow().clone()
    }

    fn is_ready(&self) -> Work<'_, Result<(), Problem>> {
        Box::pin(async move {
            let node = self.node();
            let objects = Rc::clone(&node.objects.borrow());
            let (files, file) = (node.core.files(), self.path.join(FILE));
            let asking = async move { is_there(&*files, &file).await };
            let answer = node
                .ask(format!("{}: is there", self.pool.name), asking)
                .await;
            if answer.is_none() {
                return Err(
                    Problem::new(Code::PoolMissing, questions::silent(&self.pool.name))
                        .hint("check its disk or file server and the kernel's log; then try again"),
                );
            }
            let there = self.is_the_pool(&objects).await;
            there.map_err(|why| Problem::new(Code::PoolMissing, why.cause).hint(why.next_step))
        })
    }

    fn facts(&self, promised: Promised) -> Work<'_, (PoolFacts, Option<u64>)> {
        Box::pin(async move {
            let node = self.node();
            let missing = self.missing();
            let room = space::room(&node.core, &self.room, &self.path, missing.as_ref()).await;
            let file_system = room.file_system();
            let facts = space::facts(
                (&self.pool.name, &self.path),
                room,
                promised,
                missing.is_some(),
            );
            let full_in = self.room.borrow().full_in(node.core.now(), &facts);
            (space::with_forecast(facts, full_in), file_system)
        })
    }

    /// A file keeps its length: only what is behind its end, where no data is, is given back.
    fn trim<'a>(
        &'a self,
        lun: &'a Lun,
        allocated: Option<u64>,
    ) -> Work<'a, Result<bool, OpenError>> {
        let most = lun.size.bytes().saturating_add(METADATA_BYTES_MAX);
        if lun.thin || allocated.is_none_or(|bytes| bytes <= most) {
            return done(Ok(false));
        }
        Box::pin(async move {
            let (core, path) = (&self.node().core, self.file_of(lun));
            backends::give_back_behind_end(core, &path).await?;
            Ok(true)
        })
    }

    fn usage(&self) -> Work<'_, BTreeMap<String, u64>> {
        Box::pin(async move {
            let files = self.node().core.files();
            // A pool that cannot be listed is reported by the status.
            let entries = files.list(&self.path).await.unwrap_or_default();
            let of_lun = |entry: &env::DirEntry| {
                let naa = entry.name.to_str()?.strip_suffix(".lun")?;
                Some((naa.to_owned(), entry.allocated))
            };
            entries.iter().filter_map(of_lun).collect()
        })
    }

    fn watch(&self) -> Work<'_, ()> {
        Box::pin(async move {
            self.follow().await;
            if self.missing.borrow().is_none() {
                let node = self.node();
                space::watch(&node.core, &self.pool.name, &self.room, &self.path).await;
            }
        })
    }

    fn write_down(&self) -> Work<'_, ()> {
        Box::pin(async move {
            if self.missing.borrow().is_none() {
                self.mark().await;
            } else {
                let record = late::Late::Pool(self.pool.name.clone());
                self.node().unsaved.forget(&record);
            }
        })
    }

    fn stored<'a>(&'a self, lun: &'a Lun, soon: bool) -> Work<'a, Option<Stored>> {
        Box::pin(async move {
            if self.missing.borrow().is_some() {
                return Some(Stored::default());
            }
            let node = self.node();
            let reading = stored_at(node.core.files(), self.sidecar_path(lun, RECORD));
            if soon {
                node.ask(format!("{}: stands", lun.naa), reading).await
            } else {
                Some(reading.await)
            }
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a LunRecord,
        text: Vec<u8>,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let (node, path) = (self.node(), self.sidecar_path(&record.lun, RECORD));
            let writing = write_record(node.core.files(), path, text);
            let written = node.ask(format!("{}: record", record.lun.naa), writing);
            match written.await {
                Some(written) => written.map_err(|error| late::not_taken(&error)),
                None => Err(late::silent("its pool")),
            }
        })
    }

    fn orphans<'a>(&'a self, known: &'a BTreeSet<String>) -> Work<'a, Vec<Orphan>> {
        Box::pin(async move {
            if self.missing.borrow().is_some() {
                return Vec::new();
            }
            let (node, name) = (self.node(), &self.pool.name);
            let (files, path) = (node.core.files(), self.path.clone());
            let listing = async move { files.list(&path).await };
            let Some(entries) = node.ask(format!("{name}: list"), listing).await else {
                // As it was, until it answers.
                return node.orphans_of(name);
            };
            let mut found = Vec::new();
            for entry in entries.unwrap_or_default() {
                let naa = entry
                    .name
                    .to_str()
                    .and_then(|name| name.strip_suffix(".lun"));
                let Some(naa) = naa.filter(|naa| is_naa(naa) && !known.contains(*naa)) else {
                    continue;
                };
                let file = self.path.join(&entry.name);
                let mut orphan = self.orphan(naa, &file).await;
                orphan.size_bytes = entry.len;
                let file = std::path::absolute(&file).unwrap_or(file);
                orphan.file = Some(file.display().to_string());
                found.push(orphan);
            }
            found.sort_by(|one, other| one.naa.cmp(&other.naa));
            found
        })
    }

    fn saved(&self) -> Work<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            if self.missing.borrow().is_some() {
                return None;
            }
            saved::read(&*self.node().core.files(), &self.path).await
        })
    }

    fn write_saved(&self, saved: SavedText) -> Work<'_, Result<(), OpenError>> {
        Box::pin(async move {
            if self.missing.borrow().is_some() {
                return Ok(());
            }
            let (node, name) = (self.node(), &self.pool.name);
            let writing = saved::keep(node.core.files(), self.path.clone(), saved);
            match node.ask(format!("{name}: saved"), writing).await {
                Some(Ok(())) => Ok(()),
                Some(Err(error)) => {
                    let why = late::not_taken(&error);
                    Err(late::of(format_args!("pool {name}"), why))
                }
                None => Err(late::silent(format_args!("pool {name}"))),
            }
        })
    }
}

impl KeepsJournal for Directory {
    fn identity(&self) -> Work<'_, Result<Option<PoolIdentity>, OpenError>> {
        Box::pin(async move {
            let path = self.path.join(FILE);
            let Some(file) = PoolFile::read(&self.node().core, &path).await? else {
                return Ok(None);
            };
            Ok(Some(PoolIdentity {
                number: file.number(&path)?,
                has_journal: file.journal,
            }))
        })
    }

    fn number(&self) -> Work<'_, Result<[u8; 16], OpenError>> {
        Box::pin(async move { self.file_and_journal().await?.number(&self.path.join(FILE)) })
    }

    fn set_journal(&self, has: bool) -> Work<'_, Result<(), OpenError>> {
        Box::pin(async move {
            let mut file = self.file_and_journal().await?;
            file.journal = has;
            file.write(&self.node().core, &self.path.join(FILE)).await
        })
    }

    fn sidecar_file(&self, lun: &Lun, ending: &str) -> PathBuf {
        self.sidecar_path(lun, ending)
    }

    fn sidecar<'a>(
        &'a self,
        lun: &'a Lun,
        what: SidecarKind,
        _: u64,
        _: bool,
    ) -> Work<'a, Sidecar> {
        done(Sidecar::File(self.sidecar_path(lun, ending(what))))
    }
}
