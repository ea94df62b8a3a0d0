//! Files and devices: what a LUN has of them, and block devices that are a LUN's alone.

use super::door::{Backend, Leaf, Work, done};
use crate::lun::failed::{backing_failed, failed};
use crate::lun::geometry::block_size;
use backends::{DiskVolume, Progress};
use env::{CoreHandle, in_time};
use logical_unit::LogicalUnit;
use manifest::code::Code;
use manifest::objects::Lun;
use manifest::problem::Problem;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;
use volume::{Fences, OpenError, OpenErrorKind, Volume};

/// How long a file or device may take to be opened, and to be made stable after that: all other
/// changes wait for it. A disk that has to start up answers in time.
pub(crate) const OPEN_TIME_MAX: Duration = Duration::from_secs(30);

/// The kind `block`: a device that is one LUN's.
pub(crate) struct Device(pub(crate) PathBuf);

/// A file or device, open for one LUN.
pub(crate) struct DiskLeaf(Arc<DiskVolume>);

impl DiskLeaf {
    /// What was opened at this path, in time and with all that the LUN has.
    ///
    /// # Errors
    /// It cannot be opened, does not answer, or lacks its end.
    pub(crate) async fn open(
        core: &CoreHandle,
        lun: &Lun,
        path: &Path,
        opening: impl Future<Output = Result<Arc<DiskVolume>, OpenError>>,
    ) -> Result<Rc<dyn Leaf>, OpenError> {
        let opened = in_time(core, OPEN_TIME_MAX, opening).await;
        let volume = opened.unwrap_or_else(|| Err(silent(path)))?;
        let has = volume.shape().byte_count().0;
        if has < lun.size.bytes() {
            let missing = backends::end_is_missing(volume.path(), has, lun.size.bytes());
            return Err(missing);
        }
        Ok(Rc::new(Self(volume)))
    }
}

/// What hangs is no reason for others to wait.
pub(crate) fn silent(path: &Path) -> OpenError {
    let (path, time) = (path.display(), OPEN_TIME_MAX.as_secs());
    OpenError {
        kind: OpenErrorKind::Hung,
        cause: format!("{path} has not answered for {time} s"),
        next_step: "check its disk or file server and the kernel's log; the LUN comes online by itself when it answers"
            .to_owned(),
    }
}

fn not_cut(error: &io::Error) -> OpenError {
    OpenError {
        kind: OpenErrorKind::of_io(error),
        cause: format!("what is too much could not be cut off: {error}"),
        next_step: "check its disk; it is tried again".to_owned(),
    }
}

impl Leaf for DiskLeaf {
    fn volume(&self) -> Arc<dyn Volume> {
        Arc::<DiskVolume>::clone(&self.0)
    }

    fn grow<'a>(
        &'a self,
        core: &'a CoreHandle,
        _: u64,
        bytes: u64,
        progress: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        let (volume, wanted) = (&self.0, ByteCount(bytes));
        Box::pin(async move {
            if wanted <= volume.shape().byte_count() {
                return Ok(());
            }
            let grown = volume.grow_watched(core, wanted, progress).await;
            grown.map_err(|error| failed(&error, volume.path(), "grow"))?;
            let has = volume.shape().byte_count();
            if has >= wanted {
                return Ok(());
            }
            let (path, has) = (volume.path().display(), has.0);
            let detail = format!("{path} has {has} bytes, not {}", wanted.0);
            Err(Problem::new(Code::BackingFailed, detail)
                .hint("make the device larger first: a LUN ends where its device ends"))
        })
    }

    fn shrink<'a>(
        &'a self,
        core: &'a CoreHandle,
        _: u64,
        bytes: u64,
    ) -> Work<'a, Result<(), OpenError>> {
        let (volume, kept) = (&self.0, ByteCount(bytes));
        Box::pin(async move {
            if kept >= volume.shape().byte_count() {
                return Ok(());
            }
            match volume.shrink(core, kept).await {
                // A device keeps its size; the clip hides the rest.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
                done => done.map(|_| ()).map_err(|error| not_cut(&error)),
            }
        })
    }

    fn own_bytes(&self) -> Option<u64> {
        Some(self.0.shape().byte_count().0)
    }

    fn sector_bytes(&self) -> Option<u32> {
        Some(self.0.sector_bytes())
    }

    fn is_broken(&self) -> bool {
        self.0.is_broken()
    }

    fn lacked_space(&self) -> Option<Vec<PathBuf>> {
        lacked_space(std::slice::from_ref(&self.0))
    }
}

/// Of these, those where syncs failed for want of space, where no sync failed otherwise.
pub(crate) fn lacked_space(parts: &[Arc<DiskVolume>]) -> Option<Vec<PathBuf>> {
    let broken = || parts.iter().filter(|part| part.is_broken());
    let is_it = broken().next().is_some() && broken().all(|part| part.lacked_space());
    is_it.then(|| broken().map(|part| part.path().to_owned()).collect())
}

impl Backend for Device {
    fn create<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        _: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            // Opened now, so that a mistake in the path is reported before anything is stored.
            let fences = LogicalUnit::fences_for();
            let opening = backends::open_block(core, &self.0, block_size(lun), fences);
            let opened = in_time(core, OPEN_TIME_MAX, opening).await;
            let opened = opened.unwrap_or_else(|| Err(silent(&self.0)));
            opened.map(|_| ()).map_err(|error| {
                let problem = backing_failed(&error);
                if error.kind != OpenErrorKind::Missing {
                    return problem;
                }
                // Nothing of it was there that could be brought back.
                problem.hint("name a block device that is there; lsblk lists them")
            })
        })
    }

    fn open<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        fences: Fences,
    ) -> Work<'a, Result<Rc<dyn Leaf>, OpenError>> {
        let opening = backends::open_block(core, &self.0, block_size(lun), fences);
        Box::pin(DiskLeaf::open(core, lun, &self.0, opening))
    }

    /// The device stays as it is.
    fn destroy<'a>(&'a self, _: &'a CoreHandle, _: &'a Lun) -> Work<'a, Result<(), Problem>> {
        done(Ok(()))
    }

    fn file(&self, _: &Lun) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}
