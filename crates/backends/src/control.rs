//! The control side: making, opening, resizing, measuring and removing what volumes live in.

use crate::Progress;
use crate::disk::{DiskVolume, FileSpec, Provisioning, how, open_error, shape_of};
use env::file::length;
use env::{CoreHandle, Create, Durable, File, FileDone, FileKind, FileOp, OpenHow};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use units::{BlockCount, BlockSize, Buf, ByteCount};
use volume::{Epoch, Fences, OpenError, OpenErrorKind, Volume};

/// Bytes of zeroes in one write, where space cannot be taken otherwise.
const ZERO_CHUNK_BYTES: u64 = 1 << 20;

/// Space that is taken at once: whoever watches sees it go on, and can stop it.
const SPACE_CHUNK_BYTES: u64 = 1 << 30;

/// The smallest sector that there is.
const SECTOR_BYTES_MIN: u32 = 512;

/// Space of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Its length.
    pub len: ByteCount,
    /// What of it is allocated.
    pub allocated: ByteCount,
}

/// Makes a file of `size` zero bytes that survives a power cut. On an error nothing is left.
///
/// # Errors
/// `AlreadyExists`, `StorageFull` and whatever else the file system says.
pub async fn create_file(
    core: &CoreHandle,
    path: &Path,
    size: ByteCount,
    provisioning: Provisioning,
) -> io::Result<()> {
    create_file_watched(core, path, size, provisioning, &Progress::default()).await
}

/// The same, for whoever watches how far it is.
///
/// # Errors
/// As [`create_file`]; and `Interrupted` where it was stopped.
pub async fn create_file_watched(
    core: &CoreHandle,
    path: &Path,
    size: ByteCount,
    provisioning: Provisioning,
    progress: &Progress,
) -> io::Result<()> {
    let made = OpenHow {
        create: Create::New,
        ..how(false)
    };
    let file = core.files().open(path, made).await?;
    let filled = async {
        file.submit(FileOp::SetLen { len: size.0 }).await?;
        if provisioning == Provisioning::Thick {
            take_space(&file, 0..size.0, progress).await?;
        }
        file.submit(FileOp::Sync).await?;
        core.files().sync_dir(directory_of(path)).await
    };
    let result = filled.await;
    if result.is_err() {
        // The first error is the one to report; what could not be removed is an unused file.
        drop(core.files().remove(path).await);
    }
    result
}

/// Removes a volume's file for ever.
///
/// # Errors
/// What the file system says.
pub async fn remove(core: &CoreHandle, path: &Path) -> io::Result<()> {
    core.files().remove(path).await?;
    core.files().sync_dir(directory_of(path)).await
}

/// Gives back space that a file has behind its end, where no data is; what is read stays.
///
/// # Errors
/// What the file system says.
pub async fn give_back_behind_end(core: &CoreHandle, path: &Path) -> Result<(), OpenError> {
    let given = async {
        let file = core.files().open(path, how(false)).await?;
        let len = length(&file).await?;
        file.submit(FileOp::SetLen { len }).await
    };
    let given = given.await;
    given.map(drop).map_err(|error| open_error(path, &error))
}

/// How much space a volume's file has taken.
///
/// # Errors
/// What the file system says.
pub async fn usage(core: &CoreHandle, path: &Path) -> io::Result<Usage> {
    let file = core.files().open(path, OpenHow::READ).await?;
    let len = length(&file).await?;
    let (mut at, mut allocated) = (0, 0);
    while at < len {
        let op = FileOp::Extents {
            offset: at,
            len: len - at,
        };
        let FileDone::Extents(found) = file.submit(op).await? else {
            unreachable!("extents answer extents")
        };
        for extent in found {
            allocated += if extent.allocated { extent.len } else { 0 };
            at = extent.offset + extent.len;
        }
    }
    Ok(Usage {
        len: ByteCount(len),
        allocated: ByteCount(allocated),
    })
}

/// Opens a file as a volume: past the page cache where its alignment allows that for blocks of this
/// size.
///
/// # Errors
/// What the operator must mend: the file is missing, too short, in use, or no file.
pub async fn open_file(
    core: &CoreHandle,
    spec: FileSpec,
    fences: Fences,
) -> Result<Arc<DiskVolume>, OpenError> {
    let block = u64::from(spec.block_size.bytes());
    let fail = |error: &io::Error| open_error(&spec.path, error);
    let opened = core.files().open(&spec.path, how(true)).await;
    let mut file = opened.map_err(|error| fail(&error))?;
    if u64::from(file.facts().alignment) > block {
        let opened = core.files().open(&spec.path, how(false)).await;
        file = opened.map_err(|error| fail(&error))?;
    }
    let facts = file.facts();
    if facts.kind != FileKind::Regular {
        return Err(OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!("{} is not a file", spec.path.display()),
            next_step: "name a block device as { block = \"...\" }".to_owned(),
        });
    }
    let len = length(&file).await.map_err(|error| fail(&error))?;
    let blocks = nonzero_blocks(&spec.path, len, spec.block_size)?;
    let exponent = spec.physical_block_exponent;
    let shape = shape_of(&facts, spec.block_size, blocks, exponent, spec.provisioning);
    let how = how(facts.direct);
    Ok(DiskVolume::new(
        spec.path,
        how,
        spec.provisioning,
        fences,
        shape,
        facts.alignment.max(SECTOR_BYTES_MIN),
    ))
}

/// Opens a block device as a volume.
///
/// # Errors
/// What the operator must mend: the device is missing, mounted, in use, or has larger sectors than
/// the blocks asked for.
pub async fn open_block(
    core: &CoreHandle,
    path: &Path,
    block_size: BlockSize,
    fences: Fences,
) -> Result<Arc<DiskVolume>, OpenError> {
    let fail = |error: &io::Error| open_error(path, error);
    let opened = core.files().open(path, how(true)).await;
    let file = opened.map_err(|error| fail(&error))?;
    let facts = file.facts();
    if facts.kind != FileKind::Block {
        return Err(OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!("{} is not a block device", path.display()),
            next_step: "name a device under /dev, or use a pool for files".to_owned(),
        });
    }
    if !block_size.bytes().is_multiple_of(facts.logical_block_bytes) {
        return Err(OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!(
                "{} has sectors of {} bytes, which blocks of {} bytes do not fit",
                path.display(),
                facts.logical_block_bytes,
                block_size.bytes()
            ),
            next_step: "set block_size = 4096 for this LUN".to_owned(),
        });
    }
    let len = length(&file).await.map_err(|error| fail(&error))?;
    let blocks = nonzero_blocks(path, len, block_size)?;
    let larger = facts.physical_block_bytes.max(block_size.bytes()) / block_size.bytes();
    let exponent = u8::try_from(larger.ilog2()).expect("at most 32");
    let shape = shape_of(&facts, block_size, blocks, exponent, Provisioning::Thin);
    let how = how(facts.direct);
    Ok(DiskVolume::new(
        path.to_owned(),
        how,
        Provisioning::Thin,
        fences,
        shape,
        facts.physical_block_bytes,
    ))
}

impl DiskVolume {
    /// Makes the file longer; what is added reads as zeroes. The volume has a new epoch when this
    /// is durable. A device that has grown by itself is only measured.
    ///
    /// # Errors
    /// `StorageFull` (nothing has changed then for a thick file), `InvalidInput` where `size` is
    /// smaller than now, and whatever else the file system says.
    pub async fn grow(&self, core: &CoreHandle, size: ByteCount) -> io::Result<Epoch> {
        self.grow_watched(core, size, &Progress::default()).await
    }

    /// The same, for whoever watches how far it is.
    ///
    /// # Errors
    /// As [`DiskVolume::grow`]; and `Interrupted` where it was stopped: nothing has changed then.
    pub async fn grow_watched(
        &self,
        core: &CoreHandle,
        size: ByteCount,
        progress: &Progress,
    ) -> io::Result<Epoch> {
        let now = self.shape().byte_count();
        if size < now {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = self.control_file(core).await?;
        if file.facts().kind == FileKind::Regular {
            if self.provisioning == Provisioning::Thick {
                let taken = take_space(&file, now.0..size.0, progress).await;
                if taken.is_err() {
                    // What was taken behind the end is given back; the first error is the one to
                    // report.
                    drop(file.submit(FileOp::SetLen { len: now.0 }).await);
                }
                taken?;
            }
            file.submit(FileOp::SetLen { len: size.0 }).await?;
            self.sync(core, &file).await?;
        }
        self.adopt_length(&file).await
    }

    /// Makes the file shorter. What is cut off is gone; the caller has made sure that nobody uses
    /// it and has stopped admission. The new size is in force before anything is cut.
    ///
    /// # Errors
    /// `InvalidInput` where `size` is 0 or larger than now, `Unsupported` for devices, and whatever
    /// else the file system says.
    pub async fn shrink(&self, core: &CoreHandle, size: ByteCount) -> io::Result<Epoch> {
        let shape = self.shape();
        let blocks = size.blocks_floor(shape.block_size);
        if size > shape.byte_count() || blocks == BlockCount(0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = self.control_file(core).await?;
        if file.facts().kind == FileKind::Block {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let epoch = self.set_block_count(blocks);
        file.submit(FileOp::SetLen { len: size.0 }).await?;
        self.sync(core, &file).await?;
        Ok(epoch)
    }

    /// A sync here covers what hosts wrote as well: where it fails, their next flush may not say
    /// yes.
    async fn sync(&self, core: &CoreHandle, file: &Rc<dyn File>) -> io::Result<()> {
        let begun = self.syncs.begin();
        let result = file.submit(FileOp::Sync).await;
        self.synced(begun, result.map(|_| ()), core).await
    }

    async fn control_file(&self, core: &CoreHandle) -> io::Result<Rc<dyn File>> {
        core.files().open(self.path(), how(false)).await
    }

    async fn adopt_length(&self, file: &Rc<dyn File>) -> io::Result<Epoch> {
        let blocks = ByteCount(length(file).await?).blocks_floor(self.shape().block_size);
        if blocks == BlockCount(0) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.set_block_count(blocks))
    }
}

/// Takes space for a range without changing what is read.
async fn take_space(file: &Rc<dyn File>, range: Range<u64>, progress: &Progress) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        go_on(progress)?;
        let len = SPACE_CHUNK_BYTES.min(range.end - at);
        match file.submit(FileOp::Allocate { offset: at, len }).await {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                return write_zeroes(file, at..range.end, progress).await;
            }
            other => other.map(|_| ())?,
        }
        progress.add(len);
        at += len;
    }
    Ok(())
}

/// Takes space where that cannot be asked for.
async fn write_zeroes(
    file: &Rc<dyn File>,
    range: Range<u64>,
    progress: &Progress,
) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        go_on(progress)?;
        let bytes = ZERO_CHUNK_BYTES.min(range.end - at);
        let op = FileOp::Write {
            offset: at,
            data: Buf::zeroes(usize::try_from(bytes).expect("at most 1 MiB")),
            durable: Durable::No,
        };
        file.submit(op).await?;
        progress.add(bytes);
        at += bytes;
    }
    Ok(())
}

/// Nobody has stopped it.
fn go_on(progress: &Progress) -> io::Result<()> {
    if progress.is_stopped() {
        return Err(io::Error::new(io::ErrorKind::Interrupted, "it was stopped"));
    }
    Ok(())
}

fn nonzero_blocks(path: &Path, len: u64, block_size: BlockSize) -> Result<BlockCount, OpenError> {
    let blocks = ByteCount(len).blocks_floor(block_size);
    if blocks == BlockCount(0) {
        return Err(OpenError {
            kind: OpenErrorKind::Damaged,
            cause: format!("{} has {len} bytes: not one block", path.display()),
            next_step: "restore it from a backup, or delete the LUN and make it anew".to_owned(),
        });
    }
    Ok(blocks)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
