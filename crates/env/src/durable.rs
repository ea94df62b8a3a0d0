//! Small files that are replaced whole, so that a crash leaves the old contents or the new.

use crate::{Access, Create, Durable, FileDone, FileOp, Files, OpenHow};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use units::{Buf, BufMut};

const REPLACE: OpenHow = OpenHow {
    access: Access::ReadWrite,
    create: Create::Truncate,
    direct: false,
    lock: false,
};

/// Reads a whole file.
///
/// # Errors
/// What the file system says; `InvalidData` where it is longer than `limit` bytes.
pub async fn read_file(files: &dyn Files, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = files.open(path, OpenHow::READ).await?;
    let FileDone::Len(len) = file.submit(FileOp::Len).await? else {
        return Err(wrong_answer());
    };
    if len > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{len} bytes, expected at most {limit}"),
        ));
    }
    if len == 0 {
        return Ok(Vec::new());
    }
    let len = usize::try_from(len).map_err(|_| wrong_answer())?;
    let into = BufMut::zeroed(len);
    let FileDone::Read(bytes) = file.submit(FileOp::Read { offset: 0, into }).await? else {
        return Err(wrong_answer());
    };
    Ok(bytes.freeze().to_vec())
}

/// Makes what [`replace_file`] was doing in `dir` when its process ended survive a power cut as it
/// is seen now: a renamed file is seen before its directory is synced. Whoever acts on what was
/// read must ask for this first.
///
/// # Errors
/// What the file system says.
pub async fn settle_dir(files: &dyn Files, dir: &Path) -> io::Result<()> {
    files.sync_dir(dir).await
}

/// Replaces the file `path` by one that holds `bytes`: a temporary file beside it is written,
/// synced, renamed, and the directory synced. When this returns without error the new contents
/// survive a power cut; at any moment before, the old ones or the new ones do.
///
/// # Errors
/// What the file system says; the old contents are then still there, or the new ones.
pub async fn replace_file(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_name(path);
    {
        let file = files.open(&temporary, REPLACE).await?;
        if !bytes.is_empty() {
            let write = FileOp::Write {
                offset: 0,
                data: Buf::copy_of(bytes),
                durable: Durable::No,
            };
            file.submit(write).await?;
        }
        file.submit(FileOp::Sync).await?;
    }
    files.rename(&temporary, path).await?;
    files
        .sync_dir(path.parent().unwrap_or_else(|| Path::new(".")))
        .await
}

/// Makes a directory whose name survives a power cut, as do those of the parents that were made for
/// it.
///
/// # Errors
/// What the file system says.
pub async fn make_dir(files: &dyn Files, dir: &Path) -> io::Result<()> {
    files.create_dir(dir).await?;
    for parent in dir.ancestors().skip(1) {
        let here = Path::new(".");
        let parent = if parent.as_os_str().is_empty() {
            here
        } else {
            parent
        };
        match files.sync_dir(parent).await {
            // A parent that this user may not read was not made by it either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            done => done?,
        }
    }
    Ok(())
}

/// Removes a file for good; fine where it does not exist.
///
/// # Errors
/// What the file system says.
pub async fn remove_file(files: &dyn Files, path: &Path) -> io::Result<()> {
    match files.remove(path).await {
        Ok(()) => {
            files
                .sync_dir(path.parent().unwrap_or_else(|| Path::new(".")))
                .await
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The name that [`replace_file`] writes to before it renames; left behind by a crash, it means
/// nothing.
#[must_use]
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".new");
    path.with_file_name(name)
}

fn wrong_answer() -> io::Error {
    io::Error::other("the file gave an answer of the wrong kind")
}
