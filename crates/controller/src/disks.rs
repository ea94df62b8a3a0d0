//! The disks of the machine, as whoever watches them reports it.

use super::Controller;
use env::LocalFuture;
use manifest::code::Code;
use manifest::config::Place;
use manifest::disks::{DiskAlert, DiskReport, DiskSeverity, DiskView, SmartState};
use manifest::facts::{PoolDisk, PoolFacts};
use manifest::objects::{BackendSpec, Backing, Lun};
use manifest::problem::Problem;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Has a disk forgotten that is not there any more; whether it was.
pub type Forget = Box<dyn Fn(String) -> LocalFuture<bool>>;

/// What is known of disks, and who knows more.
#[derive(Default)]
pub(crate) struct Disks {
    report: Arc<DiskReport>,
    forget: Option<Rc<Forget>>,
}

fn user_of_pool(pool: &str) -> String {
    format!("pool {pool}")
}

fn user_of_journal(pool: &str) -> String {
    format!("journal of pool {pool}")
}

/// Of a pool of members, by its path.
fn user_of_member(path: &str, pool: &str) -> String {
    format!("member {path} of pool {pool}")
}

impl Controller {
    /// How disks and bays are, as they were reported last.
    #[must_use]
    pub fn disks(&self) -> Arc<DiskReport> {
        Arc::clone(&self.disks.borrow().report)
    }

    /// Disks and bays are so from now on.
    pub fn set_disks(&self, report: DiskReport) {
        self.disks.borrow_mut().report = Arc::new(report);
    }

    /// Who has disks forgotten.
    pub fn set_forget_disk(&self, forget: Forget) {
        self.disks.borrow_mut().forget = Some(Rc::new(forget));
    }

    /// One disk, by any of its names.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn disk(&self, name: &str) -> Result<DiskView, Problem> {
        let report = self.disks();
        let found = report.disk(name).cloned();
        found.ok_or_else(|| Problem::not_found("disk", name))
    }

    /// What speaks against disks and bays, the worst first.
    #[must_use]
    pub fn disk_findings(&self) -> Vec<DiskAlert> {
        self.disks().findings()
    }

    /// Forgets a disk that is not there any more.
    ///
    /// # Errors
    /// There is none of this name, or it is there.
    pub async fn forget_disk(&self, name: &str, dry_run: bool) -> Result<(), Problem> {
        let disk = self.disk(name)?;
        if disk.smart != SmartState::Missing {
            let detail = format!("disk {} is there", disk.called());
            return Err(Problem::new(Code::InUse, detail)
                .hint("only a disk that was taken out is forgotten; take it out first"));
        }
        if dry_run {
            return Ok(());
        }
        let forget = self.disks.borrow().forget.clone();
        let done = match forget {
            Some(forget) => forget(disk.id.clone()).await,
            None => false,
        };
        if done {
            tracing::info!(disk = disk.id, "disk forgotten by request");
            return Ok(());
        }
        Err(Problem::not_found("disk", name))
    }

    /// What lies where on this machine: what people call it, and its path.
    #[must_use]
    pub fn places(&self) -> Vec<(String, PathBuf)> {
        let mut all = vec![("state".to_owned(), self.config.state_dir.clone())];
        for pool in &self.config.pools {
            let paths = pool.place.paths();
            let of_pool = paths.iter();
            let of_pool = of_pool.map(|path| (user_of_pool(&pool.name), path.clone()));
            let journal = pool.journal.iter();
            let of_journal = journal.map(|path| (user_of_journal(&pool.name), path.clone()));
            all.extend(of_pool.chain(of_journal));
            if matches!(pool.place, Place::Members { .. }) {
                let member =
                    |path: &PathBuf| user_of_member(&path.display().to_string(), &pool.name);
                all.extend(paths.iter().map(|path| (member(path), path.clone())));
            }
        }
        let objects = self.objects();
        let block = |(name, lun): (&String, &Lun)| match &lun.backing {
            Backing::Own(BackendSpec::Block(path) | BackendSpec::Vhdx(path)) => {
                Some((format!("LUN {name}"), path.clone()))
            }
            Backing::Own(BackendSpec::Memory) | Backing::Pool(_) => None,
        };
        all.extend(objects.luns.iter().filter_map(block));
        all
    }

    /// The disks that a pool and its journal lie on.
    pub(crate) fn disks_of(&self, pool: &str) -> Vec<PoolDisk> {
        let report = self.disks();
        let (own, journal) = (user_of_pool(pool), user_of_journal(pool));
        let is_journal = |disk: &DiskView| !disk.used_by.contains(&own);
        let lies =
            |disk: &&DiskView| disk.used_by.contains(&own) || disk.used_by.contains(&journal);
        let disks = report.disks.iter().filter(lies);
        let view = |disk: &DiskView| PoolDisk {
            id: disk.id.clone(),
            called: disk.called(),
            health: disk.health,
            is_journal: is_journal(disk),
        };
        disks.map(view).collect()
    }

    /// The disks that each member of a pool lies on.
    pub(crate) fn find_members(&self, pool: &mut PoolFacts) {
        if pool.members.is_empty() {
            return;
        }
        let report = self.disks();
        for member in &mut pool.members {
            let user = user_of_member(&member.path, &pool.name);
            member.disks = report.below(&user).map(|disk| disk.id.clone()).collect();
        }
    }

    /// What of disks and bays needs attention, and what is worth knowing.
    pub(crate) fn of_disks(&self) -> (Vec<String>, Vec<String>) {
        let findings = self.disk_findings();
        let (notes, problems): (Vec<&DiskAlert>, Vec<&DiskAlert>) = findings
            .iter()
            .partition(|it| it.severity == DiskSeverity::Info);
        let words = |all: Vec<&DiskAlert>| all.into_iter().map(DiskAlert::sentence).collect();
        let notes: Vec<String> = words(notes);
        let unread = self.disks();
        let all = notes.into_iter().chain(unread.notes.iter().cloned());
        (words(problems), all.collect())
    }
}
