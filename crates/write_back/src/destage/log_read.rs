//! Reads the part of the log that is destaged.

use crate::ring::{Blocked, Ring};
use env::{FileDone, FileOp};
use journal::Segment;
use std::rc::Rc;
use units::{Buf, Reserve};

/// What Linux answers for sectors that a disk cannot read (a critical medium error), and for
/// nothing else.
const ENODATA: i32 = 61;

/// The bytes of a segment of the log.
pub(super) async fn read(ring: &Rc<Ring>, segment: &Segment) -> Result<Buf, Blocked> {
    let mut data = Buf::empty();
    for (at, bytes) in segment.reads() {
        match read_one(ring, at, bytes).await {
            Ok(read) => data.append_owned(read),
            Err(Unread::Medium) => data.append_owned(read_what_can_be(ring, at, bytes).await?),
            Err(Unread::Blocked(blocked)) => return Err(blocked),
        }
    }
    Ok(data)
}

/// Why something of the log was not read.
enum Unread {
    /// The medium has lost it: no path that comes back will bring it.
    Medium,
    Blocked(Blocked),
}

async fn read_one(ring: &Rc<Ring>, at: u64, bytes: usize) -> Result<Buf, Unread> {
    let pool = ring.core.pool().reserve(Reserve::WriteBack);
    let into = pool.alloc(bytes);
    let into = into.map_err(|units::Exhausted| Unread::Blocked(Blocked::Room))?;
    let offset = ring.device.log_at + at;
    let read = ring.device.file.submit(FileOp::Read { offset, into });
    match read.await {
        Ok(FileDone::Read(read)) => Ok(read.freeze()),
        Ok(other) => unreachable!("{other:?} is no data"),
        Err(error) if error.raw_os_error() == Some(ENODATA) => Err(Unread::Medium),
        Err(_) => Err(Unread::Blocked(Blocked::Log)),
    }
}

/// Blocks that the medium has lost are damage: their checksums say so.
async fn read_what_can_be(ring: &Rc<Ring>, at: u64, bytes: usize) -> Result<Buf, Blocked> {
    let mut data = Buf::empty();
    for block in 0..bytes / journal::BLOCK {
        let at = at + (block * journal::BLOCK) as u64;
        match read_one(ring, at, journal::BLOCK).await {
            Ok(read) => data.append_owned(read),
            Err(Unread::Medium) => data.append_owned(Buf::zeroes(journal::BLOCK)),
            Err(Unread::Blocked(blocked)) => return Err(blocked),
        }
    }
    Ok(data)
}
