//! Room that the state directory keeps for changes that make room.
//!
//! Where objects, pools and journals share a file system, a full disk would refuse to store the
//! very change that frees space. So a few files of written zeroes stand beside the objects. Where
//! there is no room for a new generation of such a change, it is written into one of them, in
//! place, which takes no new blocks, and renamed. Nobody can take the room in between, as hosts
//! that write to the same disk would take what a removed file frees.
//!
//! A file system that copies on write needs new blocks for that, too: there the file is removed and
//! its room used.

use env::{Access, Create, Durable, FileDone, FileOp, Files, OpenHow, durable};
use std::io;
use std::path::{Path, PathBuf};
use units::Buf;

/// What can be stored without room: to remove a LUN takes one, to purge it two.
const FILES: u32 = 8;

/// Bytes of one at least.
const BYTES_MIN: u64 = 32 << 10;

const WRITE: OpenHow = OpenHow {
    access: Access::ReadWrite,
    create: Create::No,
    direct: false,
    lock: false,
};

/// There is no room.
fn is_full(error: &io::Error) -> bool {
    [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind())
}

fn path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("spare-{number}"))
}

/// Bytes of a spare file for objects that take so many.
fn wanted(objects_bytes: usize) -> u64 {
    let twice = (objects_bytes as u64).saturating_mul(2);
    twice.next_multiple_of(BYTES_MIN).max(BYTES_MIN)
}

async fn length(files: &dyn Files, path: &Path) -> io::Result<u64> {
    let file = files.open(path, OpenHow::READ).await?;
    match file.submit(FileOp::Len).await? {
        FileDone::Len(len) => Ok(len),
        other @ (FileDone::Nothing | FileDone::Read(_) | FileDone::Extents(_)) => {
            Err(io::Error::other(format!("{other:?} is no length")))
        }
    }
}

/// Makes the files that are missing or too small, for objects that take so many bytes.
///
/// # Errors
/// There is no room, or what else the file system says. Some may be there.
pub(crate) async fn make(files: &dyn Files, dir: &Path, objects_bytes: usize) -> io::Result<()> {
    let wanted = wanted(objects_bytes);
    for number in 1..=FILES {
        let path = path(dir, number);
        match length(files, &path).await {
            Ok(has) if has >= wanted => continue,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => {}
        }
        let zeroes = vec![0; usize::try_from(wanted).map_err(io::Error::other)?];
        let made = durable::replace_file(files, &path, &zeroes).await;
        if let Err(error) = made {
            // What was begun takes room only.
            drop(files.remove(&durable::temporary_name(&path)).await);
            return Err(error);
        }
    }
    Ok(())
}

/// Replaces the file `to` of the state directory `dir` as [`durable::replace_file`] does; of a
/// change that makes room, where there is none, in the room of a spare file.
///
/// # Errors
/// There is no room, and no spare file left that holds so many bytes; or what else the file system
/// says.
pub async fn replace_file(
    files: &dyn Files,
    dir: &Path,
    to: &Path,
    bytes: &[u8],
    makes_room: bool,
) -> io::Result<()> {
    match durable::replace_file(files, to, bytes).await {
        Err(error) if makes_room && is_full(&error) => {
            // What was begun takes room only.
            drop(files.remove(&durable::temporary_name(to)).await);
            store(files, dir, to, bytes).await
        }
        done => done,
    }
}

/// Stores `bytes` in the room of a spare file.
async fn store(files: &dyn Files, dir: &Path, to: &Path, bytes: &[u8]) -> io::Result<()> {
    for number in 1..=FILES {
        let path = path(dir, number);
        let fits = length(files, &path)
            .await
            .is_ok_and(|has| has >= bytes.len() as u64);
        if !fits {
            continue;
        }
        match rename_over(files, &path, to, bytes).await {
            Err(error) if is_full(&error) => {
                durable::remove_file(files, &path).await?;
                return durable::replace_file(files, to, bytes).await;
            }
            done => return done,
        }
    }
    Err(io::ErrorKind::StorageFull.into())
}

async fn rename_over(files: &dyn Files, spare: &Path, to: &Path, bytes: &[u8]) -> io::Result<()> {
    {
        let file = files.open(spare, WRITE).await?;
        let write = FileOp::Write {
            offset: 0,
            data: Buf::copy_of(bytes),
            durable: Durable::No,
        };
        file.submit(write).await?;
        let len = bytes.len() as u64;
        file.submit(FileOp::SetLen { len }).await?;
        file.submit(FileOp::Sync).await?;
    }
    files.rename(spare, to).await?;
    let dir = to.parent().unwrap_or_else(|| Path::new("."));
    files.sync_dir(dir).await
}
