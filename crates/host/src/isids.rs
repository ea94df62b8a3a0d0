//! ISIDs of this program's paths, kept over restarts, and so who shares sessions.
//!
//! ```text
//!   isid/TARGET.N       isid abcdef                    the N-th program that uses the target now
//!                       10.1.0.2 10.1.0.10:3260        a path's number here is part of its ISID
//!                       lun 5                          units that it has open, or had at its end
//! ```
//!
//! A path that logs in again with its ISID ends what its session before had left, so ISIDs outlive
//! the process (R4 of the rules against stale writes). Two programs never share one: each would end
//! the other's sessions.
//!
//! Volumes of one target that one core of this program opens in the same way are a *family*: they
//! share the ISIDs, and so one session for each path. A unit that a program had open when it was
//! killed goes back to the ISIDs that it had then, where no other program has them: its next login
//! ends what may still be carried out.

use crate::error::HostError;
use crate::store::{SMALL, Store, failed};
use crate::url::Url;
use env::durable::make_dir;
use env::{Access, CoreHandle, Create, Durable, File, FileDone, FileOp, OpenHow};
use iscsi::Isid;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use tokio::sync::Mutex;
use units::{Buf, BufMut};

/// Programs that may use one target at the same time.
const PROGRAMS_MAX: u32 = 256;
/// Numbers of sessions that are none of a path's.
const PROBES: u16 = 0x4000;

/// The families of a core. Locked while one is looked for.
#[derive(Default)]
struct Families(Mutex<Vec<Weak<Family>>>);

/// Volumes that share ISIDs and sessions.
struct Family {
    /// State directory, target, and how it logs in.
    who: String,
    kept: Mutex<Kept>,
    base: [u8; 3],
    /// Units that are open.
    open: RefCell<BTreeSet<u16>>,
    probes: Cell<u16>,
}

/// What the file holds.
struct Kept {
    file: Rc<dyn File>,
    base: [u8; 3],
    paths: Vec<String>,
    luns: BTreeSet<u16>,
}

/// The ISIDs of a volume. Dropping it lets another volume of its unit have them.
pub(crate) struct Isids {
    family: Rc<Family>,
    lun: u16,
}

impl Isids {
    /// ISIDs for a volume that this core opens now; `how` says how it logs in.
    pub(crate) async fn take(
        core: &CoreHandle,
        store: &Store,
        url: &Url,
        how: &str,
    ) -> Result<Self, HostError> {
        let dir = store.isid_dir();
        let who = format!("{} {} {how}", dir.display(), url.iqn);
        let families = core.locals().get::<Families>();
        let mut families = families.0.lock().await;
        families.retain(|it| it.strong_count() > 0);
        let living: Vec<Rc<Family>> = families.iter().filter_map(Weak::upgrade).collect();
        let living: Vec<Rc<Family>> = living
            .into_iter()
            .filter(|it| it.who == who && !it.open.borrow().contains(&url.lun))
            .collect();
        for family in &living {
            if family.kept.lock().await.luns.contains(&url.lun) {
                return family.join(&dir, url.lun).await;
            }
        }
        let search = Search {
            core,
            dir: &dir,
            url,
        };
        let kept = match (search.left_behind().await?, living.first()) {
            (Some(kept), _) => kept,
            (None, Some(family)) => return family.join(&dir, url.lun).await,
            (None, None) => search.free().await?,
        };
        let family = Rc::new(Family {
            who,
            base: kept.base,
            kept: Mutex::new(kept),
            open: RefCell::default(),
            probes: Cell::new(0),
        });
        families.push(Rc::downgrade(&family));
        family.join(&dir, url.lun).await
    }

    /// The ISID of the path between these two, the same as ever.
    pub(crate) async fn of_path(&self, from: IpAddr, portal: SocketAddr) -> io::Result<Isid> {
        let key = format!("{from} {portal}");
        let mut kept = self.family.kept.lock().await;
        let at = match kept.paths.iter().position(|it| *it == key) {
            Some(at) => at,
            None => {
                kept.paths.push(key);
                kept.save().await?;
                kept.paths.len() - 1
            }
        };
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        Ok(Isid::random(self.family.base, at))
    }

    /// An ISID for a session that is none of a path's: those count from the other end.
    pub(crate) fn of_probe(&self) -> Isid {
        let number = self.family.probes.get();
        self.family.probes.set((number + 1) % PROBES);
        Isid::random(self.family.base, u16::MAX - number)
    }

    /// The volume has ended, and nothing of it can be carried out any more.
    pub(crate) async fn ended_well(&self) {
        let mut kept = self.family.kept.lock().await;
        kept.luns.remove(&self.lun);
        // A name that stays only takes the unit back to these ISIDs.
        drop(kept.save().await);
    }
}

impl Drop for Isids {
    fn drop(&mut self) {
        self.family.open.borrow_mut().remove(&self.lun);
    }
}

impl Family {
    async fn join(self: &Rc<Self>, dir: &Path, lun: u16) -> Result<Isids, HostError> {
        let mut kept = self.kept.lock().await;
        if kept.luns.insert(lun) {
            kept.save().await.map_err(|error| failed(dir, &error))?;
        }
        self.open.borrow_mut().insert(lun);
        Ok(Isids {
            family: Rc::clone(self),
            lun,
        })
    }
}

/// Looks for a file of a target.
struct Search<'a> {
    core: &'a CoreHandle,
    dir: &'a Path,
    url: &'a Url,
}

impl Search<'_> {
    fn path(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{}.{number}", self.url.iqn))
    }

    /// A file that nobody uses; `None` where somebody does. The error of one that is not there is
    /// `NotFound`.
    async fn open(&self, number: u32, create: Create) -> io::Result<Option<Kept>> {
        let how = OpenHow {
            access: Access::ReadWrite,
            create,
            direct: false,
            lock: true,
        };
        match self.core.files().open(&self.path(number), how).await {
            Ok(file) => Kept::load(self.core, file).await.map(Some),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The ISIDs that a program had which ended without a word, with this unit open.
    async fn left_behind(&self) -> Result<Option<Kept>, HostError> {
        for number in 0..PROGRAMS_MAX {
            match self.open(number, Create::No).await {
                Ok(Some(kept)) if kept.luns.contains(&self.url.lun) => return Ok(Some(kept)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(failed(&self.path(number), &error)),
            }
        }
        Ok(None)
    }

    /// The first file that nobody uses.
    async fn free(&self) -> Result<Kept, HostError> {
        let made = make_dir(&*self.core.files(), self.dir).await;
        made.map_err(|error| failed(self.dir, &error))?;
        for number in 0..PROGRAMS_MAX {
            let opened = self.open(number, Create::IfAbsent).await;
            let opened = opened.map_err(|error| failed(&self.path(number), &error))?;
            if let Some(kept) = opened {
                return Ok(kept);
            }
        }
        Err(HostError::failed(
            format!("{PROGRAMS_MAX} programs use {} already", self.url.iqn),
            "end some of them",
        ))
    }
}

impl Kept {
    async fn load(core: &CoreHandle, file: Rc<dyn File>) -> io::Result<Self> {
        let FileDone::Len(length) = file.submit(FileOp::Len).await? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut text = String::new();
        if length > 0 {
            let into = BufMut::zeroed(usize::try_from(length.min(SMALL)).unwrap_or(0));
            let FileDone::Read(bytes) = file.submit(FileOp::Read { offset: 0, into }).await? else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            text = String::from_utf8_lossy(&bytes.freeze().to_vec()).into_owned();
        }
        let mut lines = text.lines();
        if let Some(base) = lines.next().and_then(base) {
            // Another line is what a crash has left of a longer file.
            let paths = lines.clone().filter(|line| is_path(line));
            let luns = lines.filter_map(|line| line.strip_prefix("lun ")?.parse().ok());
            return Ok(Self {
                paths: paths.map(str::to_owned).collect(),
                luns: luns.collect(),
                file,
                base,
            });
        }
        let mut base = [0; 3];
        core.fill_random(&mut base);
        let kept = Self {
            file,
            base,
            paths: Vec::new(),
            luns: BTreeSet::new(),
        };
        kept.save().await?;
        Ok(kept)
    }

    /// Paths only become more, and stand before the units: a crash in the middle leaves them whole.
    async fn save(&self) -> io::Result<()> {
        let mut text = format!("isid {}\n", units::hex(&self.base));
        for path in &self.paths {
            text.push_str(path);
            text.push('\n');
        }
        for lun in &self.luns {
            text.push_str(&format!("lun {lun}\n"));
        }
        let (data, len) = (Buf::copy_of(text.as_bytes()), text.len() as u64);
        let write = FileOp::Write {
            offset: 0,
            data,
            durable: Durable::No,
        };
        self.file.submit(write).await?;
        self.file.submit(FileOp::SetLen { len }).await?;
        self.file.submit(FileOp::Sync).await?;
        Ok(())
    }
}

/// `10.1.0.2 10.1.0.10:3260`.
fn is_path(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(from, portal)| {
        from.parse::<IpAddr>().is_ok() && portal.parse::<SocketAddr>().is_ok()
    })
}

/// `isid abcdef`.
fn base(line: &str) -> Option<[u8; 3]> {
    let text = line.strip_prefix("isid ")?;
    let number = u32::from_str_radix(text, 16)
        .ok()
        .filter(|_| text.len() == 6)?;
    let [_, a, b, c] = number.to_be_bytes();
    Some([a, b, c])
}
