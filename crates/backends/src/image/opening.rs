//! Opening an image and its parents.

use super::drive::{Drive, Failure};
use crate::disk::open_error;
use env::{Access, CoreHandle, Create, File, FileKind, OpenHow};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use vhdx::{Chain, Guids, Image};
use volume::{OpenError, OpenErrorKind};

/// The longest chain.
const FILES_MAX: usize = 256;

/// A file of a chain, and how it is opened on each core.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) how: OpenHow,
}

/// An image with its parents, open on this core.
pub struct Opened {
    /// The images.
    pub chain: Chain,
    /// Their files.
    pub files: Vec<Rc<dyn File>>,
    pub(super) places: Vec<Place>,
}

impl Opened {
    /// Where its files are, the image itself first.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|place| place.path.as_path())
    }
}

/// What may be done with an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Read it, whoever else has it open.
    Read,
    /// Change it: nobody else on this machine, or on a share with locks, may.
    Change,
    /// Change it and its parent.
    Merge,
}

impl Purpose {
    /// The file with this number in a chain is changed.
    const fn changes(self, number: usize) -> bool {
        match self {
            Self::Read => false,
            Self::Change => number == 0,
            Self::Merge => number < 2,
        }
    }

    /// What is done with the file with this number in a chain. Of what is below one that is
    /// changed, nobody may change anything: it would be other data, or none.
    const fn hold(self, number: usize) -> Hold {
        if self.changes(number) {
            return Hold::Write;
        }
        match self {
            Self::Read => Hold::Nothing,
            Self::Change | Self::Merge => Hold::Keep,
        }
    }
}

/// How a file is held while it is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hold {
    /// It is read, whoever changes it.
    Nothing,
    /// It is read, and nobody changes it.
    Keep,
    /// It is changed, and by nobody else.
    Write,
}

fn how_of(direct: bool, hold: Hold) -> OpenHow {
    OpenHow {
        access: if hold == Hold::Write {
            Access::ReadWrite
        } else {
            Access::Read
        },
        create: Create::No,
        direct,
        lock: hold != Hold::Nothing,
    }
}

/// Opens a file past the page cache where its alignment allows that for sectors of `sector` bytes.
pub(super) async fn open_file(
    core: &CoreHandle,
    path: &Path,
    sector: u64,
    hold: Hold,
) -> Result<(Rc<dyn File>, Place), OpenError> {
    let fail = |error| open_error(path, &error);
    let mut how = how_of(true, hold);
    let mut file = core.files().open(path, how).await.map_err(fail)?;
    if u64::from(file.facts().alignment) > sector {
        how.direct = false;
        drop(file);
        file = core.files().open(path, how).await.map_err(fail)?;
    }
    if file.facts().kind != FileKind::Regular {
        return Err(OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!("{} is not a file", path.display()),
            next_step: "name the file of an image".to_owned(),
        });
    }
    let path = path.to_owned();
    Ok((file, Place { path, how }))
}

/// An operator's words for an image that cannot be used.
pub(super) fn refused(path: &Path, failure: &Failure) -> OpenError {
    use vhdx::Error;
    if let Some(error) = &failure.io {
        return open_error(path, error);
    }
    let path = path.display();
    let (kind, next_step) = match &failure.error {
        Error::Truncated { .. }
        | Error::Damaged { .. }
        | Error::LogLost
        | Error::BadBlock { .. } => (
            OpenErrorKind::Damaged,
            format!("run \"causeway image check {path}\"; else restore it from a backup"),
        ),
        Error::ForeignWriter => (
            OpenErrorKind::Fenced,
            format!(
                "make sure that one program alone uses it, check it (causeway image check {path}), then restart the daemon"
            ),
        ),
        Error::Parent(_) => (
            OpenErrorKind::Damaged,
            "bring back the parent as it was when the child was made".to_owned(),
        ),
        Error::Unknown { .. } | Error::Refused(_) => (
            OpenErrorKind::Unsupported,
            "convert it with the program that made it".to_owned(),
        ),
        Error::Io
        | Error::NotDone
        | Error::Broken
        | Error::ReadOnly
        | Error::OutOfRange
        | Error::InUse { .. } => (
            OpenErrorKind::Other,
            "check the disk and the kernel's log".to_owned(),
        ),
    };
    OpenError {
        kind,
        cause: format!("{path}: {}", failure.error),
        next_step,
    }
}

/// Where a child says that its parent is, as this system can find it: each path is tried from the
/// child's directory, the last one by its name alone.
fn parents(child: &Path, locator: &vhdx::Locator) -> Vec<PathBuf> {
    let directory = child.parent().unwrap_or(Path::new("."));
    let mut all: Vec<PathBuf> = Vec::new();
    for path in locator.paths() {
        let ours = path.replace('\\', "/");
        let is_windows = ours.contains(':') || ours.starts_with("//");
        if !is_windows {
            all.push(directory.join(ours.trim_start_matches("./")));
        }
        if let Some(name) = ours.rsplit('/').next() {
            all.push(directory.join(name));
        }
    }
    all.dedup();
    all
}

/// Identifiers that this process gives an image.
#[derive(Clone, Debug)]
pub struct Own {
    /// Those that were given before, and then those of this opening.
    pub writers: Guids,
    /// It was given some and could not be closed: it has one of them, or somebody else has it.
    pub is_unclosed: bool,
}

impl Own {
    /// How many of them an opening may take, until it is closed.
    const OF_AN_OPENING: u64 = 64;

    /// For an image that is closed, or was never open here.
    #[must_use]
    pub fn new(core: &CoreHandle) -> Self {
        let mut random = [0; 16];
        core.fill_random(&mut random);
        Self {
            writers: Guids::new(random),
            is_unclosed: false,
        }
    }

    /// Those of the opening after this one, which knows all that this one may have written.
    #[must_use]
    pub fn after_unclosed(&self) -> Self {
        let mut writers = self.writers.clone();
        writers.skip(Self::OF_AN_OPENING);
        Self {
            writers,
            is_unclosed: true,
        }
    }
}

/// By which an image is opened.
fn access(core: &CoreHandle, is_change: bool) -> vhdx::Access {
    if !is_change {
        return vhdx::Access::Read;
    }
    vhdx::Access::Write(Own::new(core).writers)
}

/// Refuses an image that has another identifier of writers than this process may have given it.
/// Nothing is written, and no log replayed.
async fn check_unclosed(
    path: &Path,
    files: &[Rc<dyn File>],
    writers: &Guids,
) -> Result<(), OpenError> {
    let seen = Drive::of(files).run(Image::open(vhdx::Access::Read)).await;
    let seen = seen.map_err(|failure| refused(path, &failure))?;
    if writers.has_given(seen.header().file_write) {
        return Ok(());
    }
    let failure = Failure {
        error: vhdx::Error::ForeignWriter,
        io: None,
    };
    Err(refused(path, &failure))
}

/// Opens one image of a chain, without its parents.
///
/// # Errors
/// What the operator must mend.
pub async fn open_alone(
    core: &CoreHandle,
    path: &Path,
    purpose: Purpose,
) -> Result<(Image, Vec<Rc<dyn File>>), OpenError> {
    let is_change = purpose.changes(0);
    let (file, _) = open_file(core, path, 512, purpose.hold(0)).await?;
    let files = vec![file];
    let image = Drive::of(&files)
        .run(Image::open(access(core, is_change)))
        .await;
    let image = image.map_err(|failure| refused(path, &failure))?;
    Ok((image, files))
}

/// Opens an image and its parents. `own`: the identifiers of writers that it is given, which an
/// image that is changed gets at random otherwise.
///
/// # Errors
/// What the operator must mend.
pub async fn open_chain(
    core: &CoreHandle,
    path: &Path,
    (purpose, sector): (Purpose, Option<u64>),
    own: Option<&Own>,
) -> Result<Opened, OpenError> {
    let aligned = sector.unwrap_or(512);
    let (file, place) = open_file(core, path, aligned, purpose.hold(0)).await?;
    let (mut files, mut places) = (vec![file], vec![place]);
    let by = if let Some(own) = own.filter(|_| purpose.changes(0)) {
        if own.is_unclosed {
            check_unclosed(path, &files, &own.writers).await?;
        }
        vhdx::Access::Write(own.writers.clone())
    } else {
        access(core, purpose.changes(0))
    };
    let image = Drive::of(&files).run(Image::open(by)).await;
    let mut images = vec![image.map_err(|failure| refused(path, &failure))?];
    while let Some(locator) = images.last().and_then(|image| image.metadata().locator) {
        let child = places.last().expect("there is one").path.clone();
        let number = images.len();
        if number >= FILES_MAX {
            return Err(OpenError {
                kind: OpenErrorKind::Unsupported,
                cause: format!(
                    "{}: the chain is longer than {FILES_MAX} files",
                    path.display()
                ),
                next_step: "merge some of them".to_owned(),
            });
        }
        let (file, place) =
            open_parent(core, &child, &locator, (aligned, purpose.hold(number))).await?;
        let parent = place.path.clone();
        files.push(file);
        places.push(place);
        let opening = Image::open_as(number, access(core, purpose.changes(number)));
        let image = Drive::of(&files).run(opening).await;
        images.push(image.map_err(|failure| refused(&parent, &failure))?);
    }
    let chain = Chain::new(images).map_err(|error| refused(path, &Failure { error, io: None }))?;
    Ok(Opened {
        chain,
        files,
        places,
    })
}

async fn open_parent(
    core: &CoreHandle,
    child: &Path,
    locator: &vhdx::Locator,
    (sector, hold): (u64, Hold),
) -> Result<(Rc<dyn File>, Place), OpenError> {
    let tried = parents(child, locator);
    for path in &tried {
        match open_file(core, path, sector, hold).await {
            Err(error) if error.kind == OpenErrorKind::Missing => {}
            Err(error) if error.kind == OpenErrorKind::InUse => {
                return Err(OpenError {
                    kind: error.kind,
                    cause: format!("the parent of {}: {}", child.display(), error.cause),
                    next_step: "end what has the parent open, which keeps it from its children"
                        .to_owned(),
                });
            }
            other => return other,
        }
    }
    let names: Vec<String> = tried
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Err(OpenError {
        kind: OpenErrorKind::Missing,
        cause: format!(
            "the parent of {} is not there (tried: {})",
            child.display(),
            names.join(", ")
        ),
        next_step: "bring the parent back to its place".to_owned(),
    })
}
