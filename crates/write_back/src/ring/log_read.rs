//! A read of what lies in the log, and whether it is what was written there.

use super::driver::Ring;
use super::event::Event;
use super::segment_read::read_segment;
use env::{FileDone, FileFuture, FileOp};
use journal::{Again, BLOCK, SECTOR};
use smallvec::SmallVec;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use units::{BlockSize, Buf, Lba};
use volume::IoError;

/// A part of the log that is read.
pub(super) struct LogRead {
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
    pub(super) fn new(
        ring: &Ring,
        sector: u32,
        bytes: usize,
        (lba, block_size): (Lba, BlockSize),
    ) -> Self {
        let device = &ring.device;
        let asked = device.byte(sector);
        let block = BLOCK as u64;
        let whole = u64::from(device.file.facts().alignment).max(block);
        let offset = asked - asked % whole;
        let end = asked + bytes as u64;
        let small = |bytes: u64| usize::try_from(bytes).expect("a piece is in memory");
        let ahead = small(asked - offset);
        let first = (asked - device.log_at) / block;
        let last = (end - device.log_at).div_ceil(block);
        let machine = ring.machine();
        let checksums = (first..last).map(|at| machine.ring().checksum_of(at));
        Self {
            offset,
            bytes: small(end.next_multiple_of(whole) - offset),
            part: ahead..ahead + bytes,
            first_at: small(first * block + device.log_at - offset),
            checksums: checksums.collect(),
            sectors: sector..sector + count(bytes as u64 / SECTOR),
            lba,
            block_size,
        }
    }

    /// Asks for it.
    pub(super) fn begin(&self, ring: &Ring) -> Result<FileFuture, IoError> {
        let into = ring.core.pool().alloc(self.bytes);
        let into = into.map_err(|units::Exhausted| IoError::Busy)?;
        let offset = self.offset;
        Ok(ring.device.file.submit(FileOp::Read { offset, into }))
    }

    /// What was asked for, if it is what was written. What is not is read once more: a disk may
    /// read right what it read wrong.
    pub(super) async fn end(&self, ring: &Rc<Ring>, answer: FileFuture) -> Result<Buf, IoError> {
        let data = self.data_of(answer.await)?;
        if self.fits(&data) {
            return Ok(data.slice(self.part.clone()));
        }
        ring.counts.borrow_mut().misreads += 1;
        let again = self.begin(ring)?;
        let data = self.data_of(again.await)?;
        if self.fits(&data) {
            return Ok(data.slice(self.part.clone()));
        }
        self.judged(ring).await
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
    async fn judged(&self, ring: &Rc<Ring>) -> Result<Buf, IoError> {
        let unknown = IoError::Integrity { lba: self.lba };
        let batch = {
            let block = u64::from(self.sectors.start) * SECTOR / BLOCK as u64;
            ring.machine().ring().batch_at(block)
        };
        let batch = batch.ok_or(unknown)?;
        let data = read_segment(ring, &batch).await;
        let data = data.map_err(|error| log_error(&error, self.lba))?;
        let Some(Again::Found { place, damaged, .. }) = batch.batches(&data).pop() else {
            return Err(unknown);
        };
        let mut wrong = None;
        for record in &damaged {
            let bytes = record.change.data_bytes().unwrap_or(0) as u64;
            let from = batch.sector_of(place, record);
            let lying = ring.machine().lying(&record.change, from);
            let (lying, by) = (&lying, record.change.sequence);
            ring.apply(Event::RecordLost { lying, by });
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
