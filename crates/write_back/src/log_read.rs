//! A read of what lies in the log, and whether it is what was written there.

use crate::shard::Shard;
use crate::verify::part_read;
use env::{FileDone, FileFuture, FileOp};
use journal::{Again, BLOCK, SECTOR};
use smallvec::SmallVec;
use std::io;
use std::ops::Range;
use units::{BlockSize, Buf, Lba};
use volume::IoError;

/// A part of the log that is read.
pub(crate) struct LogRead {
    /// The first byte on the device, and how many: whole blocks of the device and of the log.
    offset: u64,
    bytes: usize,
    /// Of these bytes: what was asked for.
    part: Range<usize>,
    /// The first block of the log, as a byte of what is read, and the checksums from there on;
    /// `None` where it is not known.
    first_at: usize,
    checksums: SmallVec<[Option<u32>; 4]>,
    /// What was asked for, in sectors of the log.
    sectors: Range<u32>,
    /// What was asked for is these blocks of the volume.
    lba: Lba,
    block_size: BlockSize,
}

impl LogRead {
    /// Of so many bytes from this sector of the log on.
    pub(crate) fn new(
        shard: &Shard,
        sector: u32,
        bytes: usize,
        (lba, block_size): (Lba, BlockSize),
    ) -> Self {
        let asked = shard.device_byte(sector);
        let block = BLOCK as u64;
        let whole = u64::from(shard.file.facts().alignment).max(block);
        let offset = asked - asked % whole;
        let end = asked + bytes as u64;
        let small = |bytes: u64| usize::try_from(bytes).expect("a piece is in memory");
        let ahead = small(asked - offset);
        let first = (asked - shard.log_at) / block;
        let last = (end - shard.log_at).div_ceil(block);
        let state = shard.state.borrow();
        let checksums = (first..last).map(|at| state.log.ring().checksum_of(at));
        Self {
            offset,
            bytes: small(end.next_multiple_of(whole) - offset),
            part: ahead..ahead + bytes,
            first_at: small(first * block + shard.log_at - offset),
            checksums: checksums.collect(),
            sectors: sector..sector + count(bytes as u64 / SECTOR),
            lba,
            block_size,
        }
    }

    /// Asks for it.
    pub(crate) fn begin(&self, shard: &Shard) -> Result<FileFuture, IoError> {
        let into = shard.core.pool().alloc(self.bytes);
        let into = into.map_err(|units::Exhausted| IoError::Busy)?;
        let offset = self.offset;
        Ok(shard.file.submit(FileOp::Read { offset, into }))
    }

    /// What was asked for, if it is what was written. What is not is read once more: a disk may
    /// read right what it read wrong.
    pub(crate) async fn end(&self, shard: &Shard, answer: FileFuture) -> Result<Buf, IoError> {
        let data = self.data_of(answer.await)?;
        if self.fits(&data) {
            return Ok(data.slice(self.part.clone()));
        }
        shard.counts.borrow_mut().misreads += 1;
        let again = self.begin(shard)?;
        let data = self.data_of(again.await)?;
        if self.fits(&data) {
            return Ok(data.slice(self.part.clone()));
        }
        self.judged(shard).await
    }

    fn fits(&self, data: &Buf) -> bool {
        let starts = (self.first_at..).step_by(BLOCK);
        starts.zip(&self.checksums).all(|(at, checksum)| {
            let found = data.slice(at..at + BLOCK);
            checksum.is_none_or(|checksum| journal::block_checksum(&found) == checksum)
        })
    }

    /// A block of the log is not what was written: whether that concerns what was asked for is for
    /// the records to say, of which it may hold several. Those that are damaged are lost from now
    /// on.
    async fn judged(&self, shard: &Shard) -> Result<Buf, IoError> {
        let unknown = IoError::Integrity { lba: self.lba };
        let batch = {
            let state = shard.state.borrow();
            let block = u64::from(self.sectors.start) * SECTOR / BLOCK as u64;
            state.log.ring().batch_at(block)
        };
        let batch = batch.ok_or(unknown)?;
        let data = part_read(shard, &batch).await;
        let data = data.map_err(|error| log_error(&error, self.lba))?;
        let Some(Again::Found { place, damaged, .. }) = batch.batches(&data).pop() else {
            return Err(unknown);
        };
        let mut wrong = None;
        for record in &damaged {
            shard.state.borrow_mut().lose(&batch, place, record);
            let bytes = record.change.data_bytes().unwrap_or(0) as u64;
            let from = batch.sector_of(place, record);
            let to = from + count(bytes.div_ceil(SECTOR));
            let from = from.max(self.sectors.start);
            if from < to.min(self.sectors.end) {
                wrong = Some(wrong.unwrap_or(from).min(from));
            }
        }
        let Some(sector) = wrong else {
            let at = batch.sector_at(self.sectors.start);
            return Ok(data.slice(at..at + self.part.len()));
        };
        let ahead = u64::from(sector - self.sectors.start) * SECTOR;
        let ahead = ahead / u64::from(self.block_size.bytes());
        Err(IoError::Integrity {
            lba: Lba(self.lba.0 + ahead),
        })
    }

    fn data_of(&self, answer: io::Result<FileDone>) -> Result<Buf, IoError> {
        match answer {
            Ok(FileDone::Read(data)) => Ok(data.freeze()),
            Ok(other) => unreachable!("{other:?} is no data"),
            Err(error) => Err(log_error(&error, self.lba)),
        }
    }
}

/// Sectors of a ring's log.
fn count(sectors: u64) -> u32 {
    u32::try_from(sectors).expect("a ring has 2 TiB at most")
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "std's list of kinds grows; what is not named is treated alike"
)]
fn log_error(error: &io::Error, first: Lba) -> IoError {
    match error.kind() {
        io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => IoError::Busy,
        io::ErrorKind::TimedOut => IoError::TimedOut,
        _ => IoError::MediumError { lba: first },
    }
}
