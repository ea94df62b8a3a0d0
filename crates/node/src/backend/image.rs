//! VHDX images: a file, on a disk or a share, that is one LUN's.
//!
//! **Failure model.** An image that cannot be reached any more takes its LUN offline, and is opened
//! anew as soon as that can be done: its log is replayed. Where another program has opened it for
//! writing meanwhile, which its identifier of writers says, it stays offline until the daemon is
//! started again.

use super::disk::{OPEN_TIME_MAX, silent};
use super::door::{Backend, Leaf, Work, done};
use crate::lun::failed::of_pool;
use crate::lun::geometry::{block_size, exponent};
use backends::Progress;
use backends::image::{ImageSpec, ImageVolume, Own, open_image};
use env::{CoreHandle, OpenHow, in_time};
use logical_unit::LogicalUnit;
use manifest::code::Code;
use manifest::objects::Lun;
use manifest::problem::Problem;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use volume::{Fences, OpenError, OpenErrorKind, Volume};

/// How long an image may take to be closed.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(10);

/// Images that this process could not close, with the identifiers that it may have given them, of
/// each try to open them since too.
#[derive(Default)]
struct Unclosed(RefCell<BTreeMap<PathBuf, Own>>);

/// An image that a LUN has, or is about to have.
struct Taken {
    path: PathBuf,
    identity: (u64, u64),
}

/// The images of all LUNs. Within a process no lock keeps two of them apart.
#[derive(Default)]
struct AllTaken(RefCell<Vec<Weak<Taken>>>);

/// The kind `vhdx`: an image that is one LUN's.
pub(crate) struct InImage(pub(crate) PathBuf);

impl InImage {
    /// The identifiers of an opening, which count as ours from now on, whatever becomes of it.
    fn own(&self, core: &CoreHandle) -> Own {
        let unclosed = core.locals().get::<Unclosed>();
        let mut unclosed = unclosed.0.borrow_mut();
        let Some(known) = unclosed.get_mut(&self.0) else {
            return Own::new(core);
        };
        let next = known.after_unclosed();
        std::mem::replace(known, next)
    }

    /// Refuses an image that another LUN has by another name: a link, hard or symbolic, or a path
    /// by another way.
    async fn taken(&self, core: &CoreHandle) -> Result<Option<Rc<Taken>>, OpenError> {
        let Ok(file) = core.files().open(&self.0, OpenHow::READ).await else {
            // Opening the image says why.
            return Ok(None);
        };
        let Some(identity) = file.facts().identity else {
            return Ok(None);
        };
        let all = core.locals().get::<AllTaken>();
        let mut all = all.0.borrow_mut();
        all.retain(|it| it.strong_count() > 0);
        let is_same = |it: &Rc<Taken>| it.identity == identity && it.path != self.0;
        if let Some(other) = all.iter().filter_map(Weak::upgrade).find(is_same) {
            return Err(OpenError {
                kind: OpenErrorKind::InUse,
                cause: format!(
                    "{} is another name of {}, which another LUN has",
                    self.0.display(),
                    other.path.display()
                ),
                next_step: "give each LUN an image of its own".to_owned(),
            });
        }
        let taken = Rc::new(Taken {
            path: self.0.clone(),
            identity,
        });
        all.push(Rc::downgrade(&taken));
        Ok(Some(taken))
    }

    async fn opened(
        &self,
        core: &CoreHandle,
        lun: &Lun,
        fences: Fences,
    ) -> Result<ImageLeaf, OpenError> {
        let spec = ImageSpec {
            path: self.0.clone(),
            block_size: block_size(lun),
            physical_block_exponent: exponent(lun),
            own: self.own(core),
        };
        let opening = async {
            // Before its log is replayed, which another LUN may write.
            let taken = self.taken(core).await?;
            let volume = open_image(core, spec, fences).await?;
            Ok::<_, OpenError>(ImageLeaf {
                volume,
                _taken: taken,
            })
        };
        let opened = in_time(core, OPEN_TIME_MAX, opening).await;
        let leaf = opened.unwrap_or_else(|| Err(silent(&self.0)))?;
        let has = leaf.volume.shape().byte_count().0;
        if has < lun.size.bytes() {
            return Err(too_small(&self.0, has, lun.size.bytes()));
        }
        Ok(leaf)
    }
}

fn too_small(path: &Path, has: u64, wanted: u64) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Damaged,
        cause: format!(
            "the disk in {} has {has} bytes, fewer than the {wanted} of the LUN",
            path.display()
        ),
        next_step: "name the image that the LUN was made on, or give the LUN the image's size"
            .to_owned(),
    }
}

/// An image, open for a LUN.
struct ImageLeaf {
    volume: Arc<ImageVolume>,
    _taken: Option<Rc<Taken>>,
}

impl Leaf for ImageLeaf {
    fn volume(&self) -> Arc<dyn Volume> {
        Arc::<ImageVolume>::clone(&self.volume)
    }

    fn grow<'a>(
        &'a self,
        core: &'a CoreHandle,
        _: u64,
        bytes: u64,
        _: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            let grown = self.volume.grow(core, bytes).await;
            grown.map_err(|error| of_pool(&error))
        })
    }

    fn shrink<'a>(
        &'a self,
        core: &'a CoreHandle,
        was: u64,
        bytes: u64,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(self.volume.cut(core, was, bytes))
    }

    fn own_bytes(&self) -> Option<u64> {
        Some(self.volume.shape().byte_count().0)
    }

    fn allocated(&self) -> Option<u64> {
        Some(self.volume.file_bytes())
    }

    fn sector_bytes(&self) -> Option<u32> {
        Some(self.volume.sector_bytes())
    }

    fn is_broken(&self) -> bool {
        self.volume.lost().is_some()
    }

    fn lost(&self) -> Option<OpenError> {
        self.volume.lost()
    }

    fn close<'a>(&'a self, core: &'a CoreHandle) -> Work<'a, ()> {
        Box::pin(async move {
            let path = self.volume.path().to_owned();
            let own = self.volume.unclosed();
            let closed = in_time(core, CLOSE_TIME_MAX, self.volume.close(core)).await;
            let unclosed = core.locals().get::<Unclosed>();
            let mut unclosed = unclosed.0.borrow_mut();
            if matches!(closed, Some(Ok(()))) {
                unclosed.remove(&path);
            } else if let Some(own) = own {
                unclosed.entry(path).or_insert(own);
            }
        })
    }
}

impl Backend for InImage {
    fn create<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        _: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            // Opened now, so that a mistake in the path is reported before anything is stored.
            let opened = self.opened(core, lun, LogicalUnit::fences_for()).await;
            opened.map(|_| ()).map_err(|error| {
                let problem = Problem::new(Code::ImageUnusable, error.cause);
                if error.kind != OpenErrorKind::Missing {
                    return problem.hint(error.next_step);
                }
                problem.hint(format!(
                    "name an image that is there, or make it first: causeway image create {} --size {}",
                    self.0.display(),
                    lun.size
                ))
            })
        })
    }

    fn open<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        fences: Fences,
    ) -> Work<'a, Result<Rc<dyn Leaf>, OpenError>> {
        Box::pin(async move {
            let leaf = self.opened(core, lun, fences).await?;
            Ok(Rc::new(leaf) as Rc<dyn Leaf>)
        })
    }

    /// The image stays as it is.
    fn destroy<'a>(&'a self, _: &'a CoreHandle, _: &'a Lun) -> Work<'a, Result<(), Problem>> {
        done(Ok(()))
    }

    fn file(&self, _: &Lun) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}
