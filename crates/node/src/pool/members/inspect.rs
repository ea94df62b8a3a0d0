//! What stands on the members, read and written.

use env::file::{length, read};
use env::{Access, CoreHandle, Create, Durable, File, FileKind, FileOp, OpenHow};
use machine::disk;
use members::{AREA_BYTES, DATA_OFFSET, Seen, Superblock, find, offset_of};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::Buf;
use volume::{OpenError, OpenErrorKind};

/// What is written and compared is in multiples of this, so that it may go past the page cache.
const PIECE_BYTES: usize = 4096;

/// So many bytes at the end of a member are inspected, too, before it is made one.
const END_BYTES: usize = 1 << 20;

/// What stands at a path, with the open file where it can be read.
pub(crate) struct Inspected {
    pub(crate) path: PathBuf,
    pub(crate) seen: Seen,
    pub(crate) kind: Option<FileKind>,
    /// Nothing was ever written there.
    pub(crate) is_blank: bool,
    file: Option<Rc<dyn File>>,
}

/// The beginning of both superblocks; `None`: nothing is there.
pub(crate) type Print = Option<Vec<u8>>;

const fn how(lock: bool) -> OpenHow {
    OpenHow {
        access: Access::ReadWrite,
        create: Create::No,
        direct: true,
        lock,
    }
}

/// Inspects one path.
pub(crate) async fn inspect(core: &CoreHandle, path: &Path) -> Inspected {
    let inspected = async {
        let file = core.files().open(path, how(true)).await?;
        let bytes = length(&file).await?;
        let even = read(&file, 0, AREA_BYTES).await?;
        let odd = read(&file, AREA_BYTES as u64, AREA_BYTES).await?;
        // Partition tables and others write their name there.
        let end = bytes.saturating_sub(END_BYTES as u64) / PIECE_BYTES as u64 * PIECE_BYTES as u64;
        let last = read(&file, end, END_BYTES).await?;
        Ok::<_, io::Error>((file, bytes, [even, odd, last]))
    };
    let (inspected, serial) = (inspected.await, disk::serial(core, path).await);
    let named = (path.display().to_string(), serial);
    let (file, bytes, all) = match inspected {
        Ok(all) => all,
        Err(error) => {
            return Inspected {
                path: path.to_owned(),
                seen: Seen::missing(named, error.to_string()),
                kind: None,
                is_blank: false,
                file: None,
            };
        }
    };
    let facts = file.facts();
    let [even, odd, _] = &all;
    Inspected {
        path: path.to_owned(),
        seen: Seen::of(named, bytes, facts.device_blocks(), [even, odd]),
        kind: Some(facts.kind),
        is_blank: all.iter().flatten().all(|&byte| byte == 0),
        file: Some(file),
    }
}

/// What is wrong with the superblocks of a member, which nobody writes meanwhile.
pub(crate) async fn damage(inspected: &Inspected) -> Option<String> {
    let file = inspected.file.as_ref()?;
    let both = async {
        let even = read(file, 0, AREA_BYTES).await?;
        Ok::<_, io::Error>((even, read(file, AREA_BYTES as u64, AREA_BYTES).await?))
    };
    let path = inspected.path.display();
    let (even, odd) = match both.await {
        Ok(both) => both,
        Err(error) => {
            return Some(format!(
                "the superblocks of member {path} cannot be read: {error}"
            ));
        }
    };
    match find(&even, &odd) {
        Ok(found) => {
            let why = found.other?;
            Some(format!(
                "one of both superblocks of member {path}: {why}; the next event of its pool writes it anew"
            ))
        }
        Err(why) => Some(format!(
            "the superblocks of member {path}: {why}; without them it is not used after a restart"
        )),
    }
}

/// Why superblocks could not be written.
pub(crate) struct Unwritten {
    pub(crate) why: OpenError,
    /// It can be when there is room.
    pub(crate) is_for_space: bool,
}

impl From<Unwritten> for OpenError {
    fn from(unwritten: Unwritten) -> Self {
        unwritten.why
    }
}

impl Unwritten {
    fn new(inspected: &Inspected, error: &io::Error) -> Self {
        let is_for_space =
            [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
        let next_step = if is_for_space {
            "make room where it lies: the pool is read again by itself then"
        } else {
            "check the device and the kernel's log"
        };
        Self {
            why: OpenError {
                kind: OpenErrorKind::of_io(error),
                cause: format!(
                    "the superblock of {} cannot be written: {error}",
                    inspected.seen.path
                ),
                next_step: next_step.to_owned(),
            },
            is_for_space,
        }
    }
}

/// Takes the space of both superblocks of blank members, as long as they may become: it is there
/// when the table grows.
///
/// # Errors
/// There is none.
pub(crate) async fn take_room(inspected: &[Inspected]) -> Result<(), Unwritten> {
    for inspected in inspected {
        let Some(file) = &inspected.file else {
            continue;
        };
        for area in 0..2 {
            let zeroes = FileOp::Write {
                offset: area * AREA_BYTES as u64,
                data: Buf::zeroes(AREA_BYTES),
                durable: Durable::No,
            };
            let written = file.submit(zeroes).await;
            written.map_err(|error| Unwritten::new(inspected, &error))?;
        }
        let synced = file.submit(FileOp::Sync).await;
        synced.map_err(|error| Unwritten::new(inspected, &error))?;
    }
    Ok(())
}

/// The same for members that were made without. Where it cannot be had, or nobody can say, whoever
/// writes there finds out.
pub(crate) async fn reserve_room(inspected: &[Inspected]) {
    for inspected in inspected {
        let Some(file) = &inspected.file else {
            continue;
        };
        if inspected.kind == Some(FileKind::Regular) && inspected.seen.found.is_ok() {
            let both = FileOp::Allocate {
                offset: 0,
                len: DATA_OFFSET,
            };
            drop(file.submit(both).await);
        }
    }
}

/// Writes superblocks, each stable before this answers.
///
/// # Errors
/// One could not be written: what stands there is the event before, or this one.
pub(crate) async fn write(
    inspected: &[Inspected],
    blocks: &[(usize, Superblock)],
) -> Result<(), Unwritten> {
    for (place, block) in blocks {
        let inspected = inspected.get(*place).expect("a place of what was seen");
        let Some(file) = &inspected.file else {
            continue;
        };
        let failed = |error: io::Error| Unwritten::new(inspected, &error);
        let mut bytes = block.encode().ok_or_else(|| Unwritten {
            why: OpenError {
                kind: OpenErrorKind::NoSpace,
                cause: "the table of the pool is full: too many LUNs, in too many pieces"
                    .to_owned(),
                next_step: "put further LUNs into another pool".to_owned(),
            },
            is_for_space: false,
        })?;
        bytes.resize(bytes.len().next_multiple_of(PIECE_BYTES), 0);
        let op = FileOp::Write {
            offset: offset_of(block.event),
            data: Buf::from(bytes),
            durable: Durable::No,
        };
        file.submit(op).await.map_err(failed)?;
        file.submit(FileOp::Sync).await.map_err(failed)?;
    }
    Ok(())
}

/// A quick inspection, to be compared with an earlier one. What cannot be read is as it was.
pub(crate) async fn print(core: &CoreHandle, path: &Path, before: &Print) -> Print {
    let inspected = async {
        let file = core.files().open(path, how(false)).await?;
        let mut all = read(&file, 0, PIECE_BYTES).await?;
        all.extend(read(&file, AREA_BYTES as u64, PIECE_BYTES).await?);
        Ok::<_, io::Error>(all)
    };
    match inspected.await {
        Ok(all) => Some(all),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => before.clone(),
    }
}
