//! Records of a LUN in one ring, as a frame has them: the changes that a batch of the owner's log
//! holds, with the checksums that it has there.

use crate::limits::{Cost, DATA_BYTES_MAX, RECORDS_MAX};
use crate::refusal::Breach;
use crate::rules::holds;
use formats::{Reader, Writer};
use journal::{Change, Commit, DataChecksums, Kind, Sequence, VolumeId};
use replica::Epoch;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

/// Bytes of the body before the records.
const FIXED: usize = 48;
/// Bytes of a record in the body.
const EACH: usize = 20;
/// Bytes of data of a change are a multiple of this.
const SECTOR: usize = 512;

/// Whose records they are, and in which stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The LUN.
    pub volume: VolumeId,
    /// The epoch of the owner that sends them.
    pub epoch: Epoch,
    /// The epoch in which they got their numbers: an older one where they were there before.
    pub of: Epoch,
    /// In which ring of the log they are.
    pub ring: u8,
    /// Everything below is committed, as far as the owner knew when they were sent.
    pub commit: Sequence,
}

/// Why changes cannot be sent as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsendable {
    /// There are none, more than [`RECORDS_MAX`], or more data than [`DATA_BYTES_MAX`].
    Size,
    /// One is of another LUN, or its number is not the one after that of the one before.
    Numbers,
    /// Other copies have no use for such a change: it says something about this log alone.
    Kind(Kind),
    /// Its data is not as long as its blocks.
    Data,
}

/// Changes with consecutive numbers, with their data and its checksums.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Records {
    origin: Origin,
    changes: Vec<(Change, Buf)>,
    checksums: DataChecksums,
}

impl Records {
    /// Changes as the owner's log has them: 1 to [`RECORDS_MAX`], with [`DATA_BYTES_MAX`] bytes at
    /// most. When they are committed, their own [`Commit`] does not say.
    ///
    /// What was written around the log here, and has its data with it, is a write for the others.
    ///
    /// # Errors
    /// Why they cannot be sent.
    pub fn new(origin: Origin, changes: Vec<(Change, Buf)>) -> Result<Self, Unsendable> {
        let checksums = DataChecksums::of(&changes);
        Self::with_checksums(origin, changes, checksums)
    }

    /// The same with checksums that are known, as a batch of the journal has them: nothing is
    /// computed.
    ///
    /// # Errors
    /// Why they cannot be sent.
    pub fn with_checksums(
        origin: Origin,
        changes: Vec<(Change, Buf)>,
        checksums: DataChecksums,
    ) -> Result<Self, Unsendable> {
        let changes = changes.into_iter().map(sendable);
        let changes = changes.collect::<Result<Vec<(Change, Buf)>, Unsendable>>()?;
        let bytes: usize = changes.iter().map(|(_, data)| data.len()).sum();
        let count = changes.len();
        if count == 0 || count > RECORDS_MAX || bytes > DATA_BYTES_MAX {
            return Err(Unsendable::Size);
        }
        if checksums.records.len() != count {
            return Err(Unsendable::Data);
        }
        let first = changes.first().map_or(0, |(change, _)| change.sequence.0);
        if first.checked_add(RECORDS_MAX as u64).is_none() {
            return Err(Unsendable::Numbers);
        }
        let consecutive = (first..).zip(&changes).all(|(number, (change, _))| {
            change.sequence == Sequence(number) && change.volume == origin.volume
        });
        if !consecutive {
            return Err(Unsendable::Numbers);
        }
        Ok(Self {
            origin,
            changes,
            checksums,
        })
    }

    /// As many as are needed for changes of any number and size, in order.
    ///
    /// # Errors
    /// Why one of them cannot be sent.
    pub fn several(
        origin: Origin,
        changes: impl IntoIterator<Item = (Change, Buf)>,
    ) -> Result<Vec<Self>, Unsendable> {
        let (mut out, mut part, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
        for (change, data) in changes {
            let more = bytes.saturating_add(data.len());
            if part.len() == RECORDS_MAX || (more > DATA_BYTES_MAX && !part.is_empty()) {
                out.push(Self::new(origin, std::mem::take(&mut part))?);
                bytes = 0;
            }
            bytes = bytes.saturating_add(data.len());
            part.push((change, data));
        }
        if !part.is_empty() {
            out.push(Self::new(origin, part)?);
        }
        Ok(out)
    }

    /// Whose they are, in which stream.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// The number of the first one.
    #[must_use]
    pub fn first(&self) -> Sequence {
        let first = self.changes.first();
        first.map_or(Sequence::default(), |(change, _)| change.sequence)
    }

    /// The number that comes after the last one.
    #[must_use]
    pub fn next(&self) -> Sequence {
        Sequence(self.first().0.saturating_add(self.changes.len() as u64))
    }

    /// What they cost of the receiver's credits.
    #[must_use]
    pub fn cost(&self) -> Cost {
        Cost {
            bytes: self.data_bytes() as u64,
            records: self.changes.len() as u64,
        }
    }

    /// The changes with their data.
    #[must_use]
    pub fn changes(&self) -> &[(Change, Buf)] {
        &self.changes
    }

    /// The checksums of their data, which were found right where they came over a connection: a
    /// batch that holds the same changes needs no others.
    #[must_use]
    pub const fn checksums(&self) -> &DataChecksums {
        &self.checksums
    }

    /// The changes with their data, for the log, and the checksums.
    #[must_use]
    pub fn into_changes(self) -> (Vec<(Change, Buf)>, DataChecksums) {
        (self.changes, self.checksums)
    }

    /// Everything below is committed.
    pub(crate) fn set_commit(&mut self, commit: Sequence) {
        self.origin.commit = commit;
    }

    /// Drops those with lower numbers; `None` where none is left.
    pub(crate) fn without_before(mut self, number: Sequence) -> Option<Self> {
        let before = number.0.saturating_sub(self.first().0);
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        if before == 0 {
            return Some(self);
        }
        if before >= self.changes.len() {
            return None;
        }
        self.changes.drain(..before);
        self.checksums = DataChecksums::of(&self.changes);
        Some(self)
    }

    fn data_bytes(&self) -> usize {
        self.changes.iter().map(|(_, data)| data.len()).sum()
    }

    pub(crate) fn body_bytes(&self) -> usize {
        FIXED.saturating_add(self.changes.len().saturating_mul(EACH))
    }

    /// All data, one after the other, by reference.
    pub(crate) fn data(&self) -> Buf {
        let mut all = Buf::empty();
        for (_, data) in &self.changes {
            all.append(data);
        }
        all
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        let Origin {
            volume,
            epoch,
            of,
            ring,
            commit,
        } = self.origin;
        let count = u16::try_from(self.changes.len()).expect("frames are cut to their limits");
        to.u64(volume.0)
            .u64(epoch.0)
            .u64(of.0)
            .u64(self.first().0)
            .u64(commit.0)
            .u8(ring)
            .u8(0)
            .u16(count)
            .u32(0);
        for ((change, _), crc) in self.changes.iter().zip(&self.checksums.records) {
            let blocks = u32::try_from(change.range.len().0);
            let shift = if change.block_size == BlockSize::B512 {
                9
            } else {
                12
            };
            to.u64(change.range.start().0)
                .u32(blocks.expect("ranges of changes are checked"))
                .u8(code(change.kind).unwrap_or_default())
                .u8(shift)
                .u16(0)
                .u32(*crc);
        }
    }
}

/// The change as others get it.
fn sendable((mut change, data): (Change, Buf)) -> Result<(Change, Buf), Unsendable> {
    change.commit = Commit::Later;
    if change.kind == Kind::WriteAround && !data.is_empty() {
        change.kind = Kind::Write;
    }
    if change.kind == Kind::RelocatedEpoch {
        change.kind = Kind::Epoch;
    }
    if code(change.kind).is_none() {
        return Err(Unsendable::Kind(change.kind));
    }
    let has_length = change.data_bytes() == Some(data.len());
    let has_data = (change.kind == Kind::Write) != data.is_empty();
    let fits = u32::try_from(change.range.len().0).is_ok() && has_sectors(&change);
    (has_length && has_data && fits)
        .then_some((change, data))
        .ok_or(Unsendable::Data)
}

/// Its blocks have addresses in sectors; of a cut and an epoch the range is a number.
fn has_sectors(change: &Change) -> bool {
    let by = match change.block_size {
        BlockSize::B512 => 1,
        BlockSize::B4096 => 8,
    };
    let is_number = matches!(change.kind, Kind::Cut | Kind::Epoch);
    is_number || change.range.end().0.checked_mul(by).is_some()
}

/// The journal's code of a kind of change that others get.
const fn code(kind: Kind) -> Option<u8> {
    Some(match kind {
        Kind::Write => 1,
        Kind::Zeroes => 2,
        Kind::Deallocate => 3,
        Kind::Anchor => 4,
        Kind::Cut => 8,
        Kind::Epoch => 10,
        Kind::WriteAround | Kind::Lost | Kind::Gone | Kind::Touched | Kind::RelocatedEpoch => {
            return None;
        }
    })
}

const fn of_code(code: u8) -> Option<Kind> {
    Some(match code {
        1 => Kind::Write,
        2 => Kind::Zeroes,
        3 => Kind::Deallocate,
        4 => Kind::Anchor,
        8 => Kind::Cut,
        10 => Kind::Epoch,
        _ => return None,
    })
}

/// The body of a frame of records, whose data is still to come.
pub(crate) struct Announced {
    pub(crate) origin: Origin,
    changes: Vec<Change>,
    crcs: Vec<u32>,
}

impl Announced {
    /// Reads a body after which so many bytes of data come.
    pub(crate) fn read(body: &[u8], data_bytes: usize) -> Option<Self> {
        let mut fields = Reader::new(body);
        let volume = VolumeId(fields.u64()?);
        let (epoch, of) = (Epoch(fields.u64()?), Epoch(fields.u64()?));
        let (first, commit) = (fields.u64()?, Sequence(fields.u64()?));
        let (ring, zero) = (fields.u8()?, fields.u8()?);
        let (count, zeroes) = (fields.u16()?, fields.u32()?);
        let is_whole = zero == 0 && zeroes == 0 && usize::from(count) <= RECORDS_MAX;
        if !is_whole || count == 0 || first.checked_add(count.into()).is_none() {
            return None;
        }
        let mut changes = Vec::with_capacity(count.into());
        let mut crcs = Vec::with_capacity(count.into());
        let mut bytes = 0_usize;
        for sequence in (first..).take(count.into()) {
            let (change, crc) = read_record(&mut fields, volume, Sequence(sequence))?;
            bytes = bytes.checked_add(change.data_bytes()?)?;
            changes.push(change);
            crcs.push(crc);
        }
        let origin = Origin {
            volume,
            epoch,
            of,
            ring,
            commit,
        };
        let fits = fields.is_empty() && bytes == data_bytes;
        fits.then_some(Self {
            origin,
            changes,
            crcs,
        })
    }

    pub(crate) fn records(&self) -> u64 {
        self.changes.len() as u64
    }

    /// The records, once their data is here.
    pub(crate) fn with_data(self, mut data: Buf) -> Result<Records, Breach> {
        let each = |change: Change| {
            let bytes = change.data_bytes().unwrap_or_default();
            (change, data.split_front(bytes))
        };
        let changes: Vec<(Change, Buf)> = self.changes.into_iter().map(each).collect();
        let checksums = DataChecksums::of(&changes);
        let mut pairs = checksums.records.iter().zip(&self.crcs);
        let wrong = pairs.position(|(is, said)| is != said);
        if let Some((change, _)) = wrong.and_then(|at| changes.get(at))
            && holds!(DataIsChecked)
        {
            return Err(Breach::DataDamaged {
                volume: change.volume,
                sequence: change.sequence,
            });
        }
        Ok(Records {
            origin: self.origin,
            changes,
            checksums,
        })
    }
}

fn read_record(
    fields: &mut Reader<'_>,
    volume: VolumeId,
    sequence: Sequence,
) -> Option<(Change, u32)> {
    let (start, blocks) = (Lba(fields.u64()?), BlockCount(fields.u32()?.into()));
    let (kind, shift) = (of_code(fields.u8()?)?, fields.u8()?);
    let (zero, crc) = (fields.u16()?, fields.u32()?);
    let block_size = match shift {
        9 => BlockSize::B512,
        12 => BlockSize::B4096,
        _ => return None,
    };
    let change = Change {
        volume,
        sequence,
        range: LbaRange::new(start, blocks)?,
        block_size,
        kind,
        commit: Commit::Later,
    };
    // The data of a write is there, and no other change has any: of nothing the checksum is zero.
    let bytes = change.data_bytes()?;
    let has_data = (kind == Kind::Write) == (bytes > 0) && bytes.is_multiple_of(SECTOR);
    let is_right = zero == 0 && has_data && has_sectors(&change) && (bytes > 0 || crc == 0);
    is_right.then_some((change, crc))
}
