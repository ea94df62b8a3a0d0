//! Pools that are directories: whether what lies at the path is the pool, or only the place where
//! its file system belongs.
//!
//! **Contract.** A pool whose LUNs are known is never begun anew: where nothing of it lies at its
//! path, it is *missing*, its LUNs are offline, nothing is made in it and nothing of it is purged,
//! and it comes back by itself when it is there again.

use crate::data_plane::Inner;
use crate::journal::opening::PoolJournal;
use crate::lun::unit::file_of;
use crate::pool::asks;
use crate::pool::pool_file::{FILE, PoolFile};
use crate::pool::remembered;
use crate::pool::unsaved;
use env::durable;
use env::file::is_there;
use manifest::code::Code;
use manifest::config::{Place, Pool};
use manifest::objects::{Backing, Lun, Objects};
use manifest::plan::LunChanges;
use manifest::problem::Problem;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::rc::Rc;
use volume::OpenError;

/// How many LUNs a message names.
const NAMED_MAX: usize = 3;

/// The pools that are missing, with the reason.
#[derive(Default)]
pub(crate) struct Directories(RefCell<BTreeMap<String, OpenError>>);

impl Directories {
    /// Why a pool is missing, where it is.
    pub(crate) fn missing(&self, pool: &str) -> Option<OpenError> {
        self.0.borrow().get(pool).cloned()
    }

    /// `true`: that is news.
    fn set(&self, pool: &str, why: Option<OpenError>) -> bool {
        let mut all = self.0.borrow_mut();
        match why {
            Some(why) => all.insert(pool.to_owned(), why).is_none(),
            None => all.remove(pool).is_some(),
        }
    }
}

/// LUNs that a pool holds, in service or removed.
fn luns_in<'a>(objects: &'a Objects, pool: &'a str) -> Vec<(&'a String, &'a Lun)> {
    let all = objects.luns.iter().chain(&objects.removed);
    all.filter(|(_, lun)| matches!(&lun.backing, Backing::Pool(name) if name == pool))
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

impl Inner {
    /// Looks at all pools that are directories before anything of them is used; those that are new
    /// are made.
    pub(crate) async fn look_at_directories(&self, objects: &Objects) -> Result<(), Problem> {
        for (index, pool) in self.config.pools.iter().enumerate() {
            let Place::Path(path) = &pool.place else {
                continue;
            };
            if let Err(why) = self.is_the_pool(pool, path, objects).await {
                tracing::error!(pool = pool.name, code = %Code::PoolMissing, "{why}: its LUNs are offline");
                self.directories.set(&pool.name, Some(why));
                continue;
            }
            let made = durable::make_dir(&*self.core.files(), path).await;
            made.map_err(|error| {
                let place = self.config.place(&format!("pool[{index}].path"));
                let detail = format!("{place}: {}: {error}", path.display());
                Problem::new(Code::ConfigEnvironment, detail).hint(
                    "a pool is a directory that this user may write; a block device is named in the LUN: \
                     backend = { block = \"/dev/...\" }",
                )
            })?;
            self.mark(pool, path).await;
        }
        Ok(())
    }

    /// What lies at the path is this pool, or may become it.
    async fn is_the_pool(
        &self,
        pool: &Pool,
        path: &Path,
        objects: &Objects,
    ) -> Result<(), OpenError> {
        let luns = luns_in(objects, &pool.name);
        if luns.is_empty() {
            return Ok(());
        }
        let found = PoolFile::read(&self.core, &path.join(FILE)).await?;
        let number = match &found {
            Some(file) => Some(file.number(&path.join(FILE))?),
            None => None,
        };
        let known = remembered::number(&self.core, &self.config.state_dir, &pool.name).await;
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
            cause,
            next_step: "mount its file system: the pool and its LUNs come back by themselves (findmnt tells what is mounted)"
                .to_owned(),
        })
    }

    /// A file of one of these is there.
    async fn has_any(&self, luns: &[(&String, &Lun)]) -> bool {
        let files = self.core.files();
        for (_, lun) in luns {
            if let Some(file) = file_of(&self.config, lun)
                && is_there(&*files, &file).await
            {
                return true;
            }
        }
        false
    }

    /// Writes down which pool it is, there and here, so that it is known again.
    pub(crate) async fn mark(&self, pool: &Pool, path: &Path) {
        let marked = async {
            let file = path.join(FILE);
            let known = PoolFile::read(&self.core, &file).await?;
            let known = match known {
                Some(known) => known,
                // With a journal it is for whoever makes or opens that to say so.
                None if pool.journal.is_some() => return Ok(()),
                None => crate::journal::opening::new_file(&self.core, &file).await?,
            };
            let number = known.number(&file)?;
            remembered::write_number(&self.core, &self.config.state_dir, &pool.name, number)
                .await
                .map_err(|error: io::Error| OpenError {
                    cause: format!("it cannot be written down which pool it is: {error}"),
                    next_step: "look at the space and the permissions of state_dir".to_owned(),
                })
        };
        self.unkept.note(
            unsaved::Record::Directory(pool.name.clone()),
            format_args!("pool {}", pool.name),
            marked.await.map_err(|error| error.to_string()),
        );
    }

    /// A change makes, opens or destroys nothing in a pool that is missing.
    ///
    /// # Errors
    /// The pool that is.
    pub(crate) async fn are_there(&self, changes: &LunChanges) -> Result<(), Problem> {
        let all = changes.created.iter().chain(&changes.restored);
        let all = all.chain(&changes.resized).chain(&changes.purged);
        let all = all.chain(&changes.checked);
        let pools: BTreeSet<&str> = all
            .filter_map(|lun| match &lun.backing {
                Backing::Pool(pool) => Some(pool.as_str()),
                Backing::Memory | Backing::Block(_) => None,
            })
            .collect();
        let objects = Rc::clone(&self.objects.borrow());
        for pool in &self.config.pools {
            let (Place::Path(path), true) = (&pool.place, pools.contains(pool.name.as_str()))
            else {
                continue;
            };
            self.answers(pool, path).await?;
            if let Err(why) = self.is_the_pool(pool, path, &objects).await {
                return Err(Problem::new(Code::PoolMissing, why.cause).hint(why.next_step));
            }
        }
        Ok(())
    }

    /// The pool's directory can be asked something.
    async fn answers(&self, pool: &Pool, path: &Path) -> Result<(), Problem> {
        let (files, file) = (self.core.files(), path.join(FILE));
        let asking = async move { is_there(&*files, &file).await };
        let answer = self.ask(format!("{}: is there", pool.name), asking).await;
        answer.map(drop).ok_or_else(|| {
            Problem::new(Code::PoolMissing, asks::silent(&pool.name))
                .hint("look at its disk or file server and the kernel's log; then try again")
        })
    }

    /// Looks whether a pool's directory went or came back: its LUNs go offline, and on again.
    pub(crate) async fn follow_directory(self: &Rc<Self>, pool: &Pool) {
        let Place::Path(path) = &pool.place else {
            return;
        };
        let objects = Rc::clone(&self.objects.borrow());
        let seen = self.is_the_pool(pool, path, &objects).await.err();
        if seen.is_some() == self.directories.missing(&pool.name).is_some() {
            return;
        }
        let _turn = self.turn.lock().await;
        let objects = Rc::clone(&self.objects.borrow());
        match self.is_the_pool(pool, path, &objects).await {
            Err(why) => self.lose_directory(pool, why).await,
            Ok(()) => self.bring_directory_back(pool, path).await,
        }
    }

    async fn lose_directory(&self, pool: &Pool, why: OpenError) {
        if !self.directories.set(&pool.name, Some(why.clone())) {
            return;
        }
        tracing::error!(pool = pool.name, code = %Code::PoolMissing, "{why}: its LUNs go offline");
        for lun in self.luns_of(&pool.name) {
            self.rest_scrub(&lun.naa).await;
            let unit = self.unit(&lun.naa);
            if let Some(unit) = unit.filter(|unit| unit.offline().is_none()) {
                let suspended = unit.suspend_without_home(&self.core, &lun, &why).await;
                self.units
                    .borrow_mut()
                    .insert(lun.naa.clone(), Rc::new(suspended));
            }
        }
    }

    async fn bring_directory_back(self: &Rc<Self>, pool: &Pool, path: &Path) {
        if !self.directories.set(&pool.name, None) {
            return;
        }
        self.mark(pool, path).await;
        self.look_for_orphans().await;
        tracing::info!(pool = pool.name, "the pool is back, and its LUNs with it");
        self.returned.notify_one();
        let journal = self.journals.of(&pool.name);
        if let PoolJournal::Missing(_) = &journal {
            if let Err(error) = self.bring_back(pool).await {
                self.journals.lose(&pool.name, error, None);
            }
            return;
        }
        for lun in self.luns_of(&pool.name) {
            self.renew(&lun, &journal).await;
        }
    }
}
