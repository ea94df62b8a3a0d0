//! A new image: under another name until it is whole. One whose blocks have their space goes on
//! where an earlier run stopped.
//!
//! ```text
//!   FILE.SIZE-BLOCK-SECTOR.part: [space in steps, each stable before the next] -> tables -> FILE
//! ```

use crate::here::{directory_of, finish, is_new, of_failure, of_io, part_of, unusable};
use crate::progress::Progress;
use backends::image::{Drive, Failure, Purpose, open_chain, plain_sync};
use env::file::length;
use env::{Access, CoreHandle, Create, File, OpenHow};
use manifest::code::Code;
use manifest::problem::Problem;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use vhdx::{Action, Answer, Error, Geometry, Guid, Guids, Kind, Locator, New, Step};

/// What is made.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Option<u64>,
    pub(crate) is_fixed: bool,
    pub(crate) parent: Option<PathBuf>,
    pub(crate) block_bytes: Option<u64>,
    pub(crate) sector_bytes: u64,
}

const CREATOR: &str = concat!("causeway ", env!("CARGO_PKG_VERSION"));

pub(crate) fn guids(core: &CoreHandle) -> Guids {
    let mut random = [0; 16];
    core.fill_random(&mut random);
    Guids::new(random)
}

pub(crate) fn usage(detail: impl Into<String>) -> Problem {
    Problem::new(Code::ConfigValue, detail)
}

/// The whole image at once.
pub(crate) async fn create(core: &CoreHandle, wanted: &Wanted) -> Result<(), Problem> {
    is_new(core, &wanted.path).await?;
    let (new, what) = plan(core, wanted).await?;
    let part = part_of(&wanted.path, &what);
    make(core, &part, new).await?;
    finish(core, &part, &wanted.path).await
}

/// What is to be made, and what the name of its file says of it until it is whole.
async fn plan(core: &CoreHandle, wanted: &Wanted) -> Result<(New, String), Problem> {
    let is_child = wanted.parent.is_some();
    let block = wanted.block_bytes.unwrap_or(New::block_bytes(is_child));
    let (bytes, sector, kind, disk_id) = match &wanted.parent {
        None => {
            let bytes = wanted.bytes.ok_or_else(|| usage("--size is missing"))?;
            let kind = if wanted.is_fixed {
                Kind::Fixed
            } else {
                Kind::Dynamic
            };
            (bytes, wanted.sector_bytes, kind, None)
        }
        Some(parent) => {
            let opened = open_chain(core, parent, (Purpose::Read, None), None).await;
            let opened = opened.map_err(unusable)?;
            let image = opened.chain.image();
            let (geometry, id) = (image.geometry(), image.metadata().disk_id);
            if wanted
                .bytes
                .is_some_and(|bytes| bytes != geometry.disk_bytes)
            {
                return Err(usage(
                    "a child has the size of its parent: leave --size out",
                ));
            }
            let locator = locator(&wanted.path, parent, image.header().data_write)?;
            let kind = Kind::Differencing(locator);
            (geometry.disk_bytes, geometry.sector_bytes, kind, Some(id))
        }
    };
    let geometry = Geometry::new(bytes, block, sector).map_err(|error| usage(error.to_string()))?;
    let what = format!(".{bytes}-{block}-{sector}");
    let new = New {
        geometry,
        physical_bytes: 4096,
        kind,
        disk_id,
        creator: CREATOR.to_owned(),
    };
    Ok((new, what))
}

/// How a child names its parent: from its own directory where both are in one, else as a whole.
fn locator(child: &Path, parent: &Path, linkage: Guid) -> Result<Locator, Problem> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| of_io(path, &error));
    let (child, parent) = (absolute(child)?, absolute(parent)?);
    let relative = match parent.strip_prefix(directory_of(&child)) {
        Ok(below) => format!(".\\{}", below.display().to_string().replace('/', "\\")),
        Err(_) => parent.display().to_string(),
    };
    Ok(Locator {
        linkage,
        relative: Some(relative),
        ..Locator::default()
    })
}

/// Makes the image in this file. What an earlier run has reserved there stays.
pub(crate) async fn make(core: &CoreHandle, part: &Path, new: New) -> Result<(), Problem> {
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::IfAbsent,
        direct: false,
        lock: true,
    };
    let opened = core.files().open(part, how).await;
    let file = opened.map_err(|error| of_io(part, &error))?;
    let there = length(&file).await.map_err(|error| of_io(part, &error))?;
    let is_fixed = new.kind == Kind::Fixed;
    let total = if is_fixed { new.geometry.disk_bytes } else { 0 };
    let files = [file];
    let mut reserving = Reserving {
        drive: Drive::of(&files),
        file: &files[0],
        there: if is_fixed { there } else { 0 },
        progress: Progress::new(core, total),
    };
    if !is_fixed && there > 0 {
        // Nothing of it is worth keeping.
        let cut = files[0].submit(env::FileOp::SetLen { len: 0 }).await;
        cut.map_err(|error| of_io(part, &error))?;
    }
    let made = reserving.run(new, guids(core)).await;
    made.map_err(|failure| of_failure(part, &failure))
}

/// Does what the making of an image asks for, but for what an earlier run has done.
struct Reserving<'a> {
    drive: Drive<'a>,
    file: &'a Rc<dyn File>,
    /// The file's length when this run began: all before its last step is reserved and stable.
    there: u64,
    progress: Progress,
}

impl Reserving<'_> {
    async fn run(&mut self, new: New, guids: Guids) -> Result<(), Failure> {
        let mut making = new.create(guids);
        let mut answer = None;
        loop {
            let request = match making.next(answer.take()) {
                Step::Done(Ok(())) => return Ok(()),
                Step::Done(Err(error)) => return Err(Failure { error, io: None }),
                Step::Ask(request) => request,
            };
            let failed = |io| Failure {
                error: Error::Io,
                io: Some(io),
            };
            answer = Some(match request.action {
                Action::Length if self.there > 0 => Answer::Length(0),
                Action::SetLength(bytes) if bytes <= self.there => Answer::Done,
                Action::Reserve { at, bytes } if at + bytes < self.there => {
                    self.progress.skip(bytes);
                    Answer::Done
                }
                Action::Reserve { bytes, .. } => {
                    let done = self.drive.answer(request).await.map_err(failed)?;
                    // The next step makes the file longer, which says that this one is done.
                    plain_sync(self.file).await.map_err(failed)?;
                    self.progress.add(bytes);
                    done
                }
                Action::Length
                | Action::Read { .. }
                | Action::Write(_)
                | Action::Zero { .. }
                | Action::Copy { .. }
                | Action::Payload(_)
                | Action::SetLength(_)
                | Action::Sync => self.drive.answer(request).await.map_err(failed)?,
            });
        }
    }
}
