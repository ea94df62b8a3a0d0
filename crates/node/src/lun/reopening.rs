//! LUNs that could not be opened are tried again while the node serves.
//!
//! ```text
//!   waiting --due--> asked: does its file or device answer at all? --> [turn] opened
//!         --> online, or due later
//! ```
//!
//! **Contract.** A LUN is offline for as long as it lacks what it needs, and not longer: its file
//! was moved away and is back, its device appears, a disk has room again for what an opening
//! writes. Where its pool or its pool's journal is missing, the monitor of those brings it
//! online (`directory.rs`, `members`, `monitor.rs`). One whose stored reservations or mode pages
//! could not be read has them read again. One of which a sync found no space is opened anew when
//! there is some again: what was not flushed may be lost, so it is NOT READY meanwhile, and hosts
//! get the unit attention of a start; so is one whose image could not be reached for a while, but
//! for an image that another program has taken meanwhile. After a sync that failed for any other
//! reason nobody can see
//! from here when the disk is well, and an administrator has to act.
//!
//! **Failure model.** What hangs (a server of files, a dead device) holds up its own LUN, and
//! neither others nor changes: only what has answered is opened while all changes wait. Questions
//! that hang hold threads, so there are few at once, in all and to one pool: many pools and devices
//! that hang together keep other LUNs that are offline waiting, and nothing else. A LUN that was
//! asked and never answers is asked no more: it comes back with the next start.

use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use crate::lun::unit::{Unit, files_of};
use env::file::{File, FileOp, OpenHow, read};
use env::{Access, CoreHandle, Create, Durable, FileKind, Files};
use manifest::code::Code;
use manifest::objects::{Backing, Lun};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::time::Duration;
use units::{Buf, Now};
use volume::{OpenError, OpenErrorKind};

/// How often it checks.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// A LUN is tried again after so long, or so many times as long as its last opening took.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_TIMES: u32 = 20;

/// How many LUNs are tried side by side, in all and of one pool: half of the threads that wait for
/// names of files, at most.
const SIDE_BY_SIDE_MAX: usize = 8;
const OF_A_POOL_MAX: usize = 2;

/// What is read of a file or device to see that it answers.
const ASKED_BYTES: usize = 4096;

/// The room that must be there in a file's directory, in bytes, before its LUN is opened anew of
/// which a sync found no space.
const ROOM_BYTES: usize = 1 << 20;

/// What is known of LUNs that wait, by NAA identifier.
#[derive(Default)]
struct Tries {
    due: BTreeMap<String, Now>,
    under_way: BTreeMap<String, Backing>,
}

impl Tries {
    /// The first one that may be tried now; it is under way from now on.
    fn begin(&mut self, waiting: &[Lun], now: Now) -> Option<Lun> {
        let is_waiting = |naa: &String| waiting.iter().any(|lun| lun.naa == *naa);
        self.due.retain(|naa, _| is_waiting(naa));
        let mut found = None;
        for lun in waiting {
            let due = *self.due.entry(lun.naa.clone()).or_insert(now.after(AGAIN));
            if found.is_none() && now >= due && self.has_place(lun) {
                found = Some(lun.clone());
            }
        }
        let lun = found?;
        self.under_way.insert(lun.naa.clone(), lun.backing.clone());
        Some(lun)
    }

    fn has_place(&self, lun: &Lun) -> bool {
        let sidecar = self.under_way.values().filter(|it| **it == lun.backing);
        !self.under_way.contains_key(&lun.naa)
            && self.under_way.len() < SIDE_BY_SIDE_MAX
            && sidecar.count() < OF_A_POOL_MAX
    }

    fn end(&mut self, naa: &str, due: Now) {
        self.under_way.remove(naa);
        self.due.insert(naa.to_owned(), due);
    }
}

/// Tries again for as long as the node is there.
pub(crate) async fn keep(core: CoreHandle, node: Weak<Inner>) {
    let tries: Rc<RefCell<Tries>> = Rc::default();
    loop {
        core.sleep_until(core.now().after(PROBE_INTERVAL)).await;
        let Some(now_there) = node.upgrade() else {
            return;
        };
        let waiting = now_there.waiting();
        while let Some(lun) = begin(&core, &tries, &waiting) {
            let (own, node, tries) = (Rc::clone(&core), Weak::clone(&node), Rc::clone(&tries));
            core.spawn(Box::pin(
                async move { work(&own, &node, &tries, lun).await },
            ));
        }
    }
}

fn begin(core: &CoreHandle, tries: &RefCell<Tries>, waiting: &[Lun]) -> Option<Lun> {
    tries.borrow_mut().begin(waiting, core.now())
}

/// Tries one, and then each that is due.
async fn work(core: &CoreHandle, node: &Weak<Inner>, tries: &RefCell<Tries>, first: Lun) {
    let mut next = Some(first);
    while let Some(lun) = next {
        let Some(files) = node
            .upgrade()
            .map(|node| files_of((&node.config, &node.pools()), &lun))
        else {
            return;
        };
        let lacked_space = node.upgrade().and_then(|node| node.lacked_space(&lun));
        // Nobody is kept alive by what may never answer.
        let answered = match lacked_space {
            Some(places) => all_have_room(core, &lun.naa, places).await,
            None => all_answer(core, files).await,
        };
        let Some(node) = node.upgrade() else { return };
        let took = match answered {
            Ok(()) => node.open_again(&lun.naa).await,
            Err(error) => {
                let lun = &*node.name_of(&lun);
                tracing::warn!(lun, "it cannot be made stable, and stays as it is: {error}");
                Duration::ZERO
            }
        };
        let wait = AGAIN.max(took * AGAIN_TIMES);
        tries.borrow_mut().end(&lun.naa, core.now().after(wait));
        next = begin(core, tries, &node.waiting());
    }
}

/// Waits until everything that is opened for a LUN answers, if only that it cannot be had: whoever
/// opens it reports why.
///
/// # Errors
/// Its blocks cannot be made stable. The system says so once, and would let the next opening
/// believe that all is well.
async fn all_answer(
    core: &CoreHandle,
    (own, sidecar): (Option<PathBuf>, Vec<PathBuf>),
) -> io::Result<()> {
    let files = core.files();
    for path in sidecar {
        drop(answer(&*files, &path).await);
    }
    let Some(own) = own else { return Ok(()) };
    match answer(&*files, &own).await {
        // The opening does that, too, while others wait: then little is left to be written.
        Some(file) => file.submit(FileOp::Sync).await.map(|_| ()),
        None => Ok(()),
    }
}

/// Waits until there is room in the directory of each of these files. What has its space in a file
/// says nothing: on a server of files, or with a quota, it can be written over while nothing else
/// can.
///
/// # Errors
/// There is none, or it is a device, which has no directory to be filled.
async fn all_have_room(core: &CoreHandle, naa: &str, places: Vec<PathBuf>) -> io::Result<()> {
    let files = core.files();
    for place in places {
        let file = files.open(&place, OpenHow::READ).await?;
        if file.facts().kind == FileKind::Block {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let probe = place.with_file_name(format!("{naa}.room"));
        let how = OpenHow {
            access: Access::ReadWrite,
            create: Create::Truncate,
            ..OpenHow::READ
        };
        let written = async {
            let file = files.open(&probe, how).await?;
            // Zeroes might be stored as nothing.
            let mut bytes = vec![0; ROOM_BYTES];
            core.fill_random(&mut bytes);
            let data = Buf::from(bytes);
            let write = FileOp::Write {
                offset: 0,
                data,
                durable: Durable::No,
            };
            file.submit(write).await?;
            file.submit(FileOp::Sync).await
        };
        let written = written.await;
        drop(files.remove(&probe).await);
        written?;
    }
    Ok(())
}

/// What can be read at this path, once it has answered.
async fn answer(files: &dyn Files, path: &Path) -> Option<Rc<dyn File>> {
    let how = OpenHow {
        direct: true,
        ..OpenHow::READ
    };
    let file = files.open(path, how).await.ok()?;
    read(&file, 0, ASKED_BYTES).await.ok()?;
    Some(file)
}

impl Inner {
    /// A change that opens a LUN's storage anew takes it from hosts where that fails. From then on
    /// it is offline as any other: it says so, lets go of what it has open, and is tried again.
    pub(crate) async fn note_offline(&self, lun: &Lun) {
        let Some(unit) = self.unit(&lun.naa) else {
            return;
        };
        let Some(why) = unit.went_offline(&self.core) else {
            return;
        };
        tracing::error!(lun = &*unit.name(), code = %Code::LunOffline, "LUN is offline: {why}");
        self.rest_scrub(&lun.naa).await;
        let suspended = unit.suspend_without_base(&self.core, lun, &why).await;
        let mut units = self.units.borrow_mut();
        units.insert(lun.naa.clone(), Rc::new(suspended));
    }

    /// Where a LUN that serves needs room before it is opened anew.
    fn lacked_space(&self, lun: &Lun) -> Option<Vec<PathBuf>> {
        let unit = self.unit(&lun.naa)?;
        unit.lacked_space().filter(|_| unit.offline().is_none())
    }

    /// Opens a LUN anew of which a sync found no space, now that there is some, or whose image was
    /// lost. It is taken from
    /// hosts first: what its old opening answers may be in a cache only, and what was under way
    /// there has ended when the new one begins.
    async fn open_anew(self: &Rc<Self>, lun: &Lun, why: &OpenError) {
        let Some(unit) = self.unit(&lun.naa) else {
            return;
        };
        if self.changing.puts_off(&lun.naa) {
            return;
        }
        self.rest_scrub(&lun.naa).await;
        let suspended = unit.suspend_without_base(&self.core, lun, why).await;
        let suspended = Rc::new(suspended);
        let now: Rc<Unit> = Rc::clone(&suspended);
        self.units.borrow_mut().insert(lun.naa.clone(), now);
        suspended.establish_power_on(&self.core).await;
        self.renew(lun, &self.journal_of(lun)).await;
    }

    /// LUNs that are offline for a reason of their own.
    fn waiting(&self) -> Vec<Lun> {
        let objects = Rc::clone(&self.objects.borrow());
        let waits = |lun: &&Lun| {
            let unit = self.unit(&lun.naa);
            let waits = |unit: Rc<Unit>| {
                let why = unit.offline().or_else(|| unit.lost());
                let is_fenced = |why: &OpenError| why.kind == OpenErrorKind::Fenced;
                unit.lacked_space().is_some() || why.is_some_and(|why| !is_fenced(&why))
            };
            unit.is_some_and(waits) && self.has_ground(lun)
        };
        objects.luns.values().filter(waits).cloned().collect()
    }

    /// What a LUN stands on is there: its pool, and that pool's journal.
    fn has_ground(&self, lun: &Lun) -> bool {
        let Some(name) = lun.backing.pool() else {
            return true;
        };
        let pools = self.pools();
        let stands = pools.get(name).is_some_and(|pool| pool.missing().is_none());
        stands && !matches!(self.journals.of(name), PoolJournal::Missing(_))
    }

    /// Tries one, and returns how long that took, without what it waited for its turn.
    async fn open_again(self: &Rc<Self>, naa: &str) -> Duration {
        let _turn = self.turn.lock().await;
        let begun = self.core.now();
        if self.server().is_none() {
            // It stops, or has stopped: nothing is opened that nobody would close.
            return Duration::ZERO;
        }
        let Some(lun) = self.waiting().into_iter().find(|lun| lun.naa == naa) else {
            return Duration::ZERO;
        };
        let serving = self.unit(&lun.naa).filter(|unit| unit.offline().is_none());
        let lost = serving.and_then(|unit| unit.lost());
        if let Some(why) = lost {
            tracing::error!(lun = &*self.name_of(&lun), code = %Code::LunOffline, "LUN is offline: {why}");
            self.open_anew(&lun, &why).await;
        } else if self.lacked_space(&lun).is_some() {
            let why = OpenError {
                kind: OpenErrorKind::Other,
                cause: "a sync found no space, and it is opened anew".to_owned(),
                next_step: "wait a moment".to_owned(),
            };
            self.open_anew(&lun, &why).await;
        } else if !self.is_reported(&lun).await {
            self.renew(&lun, &self.journal_of(&lun)).await;
        }
        self.core.now().since(begun)
    }
    /// What is stored of its state still cannot be read, and it says so: its storage need not be
    /// opened.
    async fn is_reported(&self, lun: &Lun) -> bool {
        let Some(unit) = self.unit(&lun.naa) else {
            return true;
        };
        let why = unit.still_unreadable(&self.core).await;
        let reported = unit.offline();
        why.is_some_and(|why| reported.is_some_and(|reported| reported.kind == why.kind))
    }
}
