//! Changes of volumes that are written together, and become stable together.
//!
//! ```text
//!   header: numbers, records, what the batch before changed | data of the records,
//!         each at a multiple of 512 bytes
//! ```
//!
//! The header repeats what the batch before it changed. So when a header is damaged, the next one
//! says whose blocks are lost; and it says which batches were stable when it was made, so that a
//! torn end, which nobody was answered, is not taken for damage, nor damage for a torn end.

use crate::layout::{BLOCK, BatchPosition, JournalId, VERSION, VERSION_OF_COPIES, VERSIONS};
use formats::{Damage, Reader, Writer, open_one_of, seal};
use std::ops::Range;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

/// Bytes of data in a batch at most.
pub const DATA_BYTES_MAX: usize = 1 << 20;

/// Records of a batch at most.
pub const RECORDS_MAX: usize = 128;

/// Blocks of a batch at most, with its header.
pub const BATCH_BLOCKS_MAX: u64 =
    (header_blocks(RECORDS_MAX, RECORDS_MAX) + DATA_BYTES_MAX / BLOCK) as u64;

/// Data begins at multiples of so many bytes.
pub const DATA_ALIGNMENT: usize = 512;

const MAGIC: &[u8; 8] = b"CWJBATCH";
const FIXED: usize = 96;
const CHANGE: usize = 32;
const RECORD: usize = CHANGE + 8;

/// A volume's number, the same as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct VolumeId(pub u64);

/// The place of a change among the changes of a volume in one shard: they are numbered without a
/// gap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Sequence(pub u64);

/// What was done to the blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// They have the data of the record.
    Write,
    /// They are zeroes, and keep their room.
    Zeroes,
    /// They are zeroes, and give their room back.
    Deallocate,
    /// They are zeroes, and their room stays reserved.
    Anchor,
    /// They were written around the log, in the backing volume: what the log has of them is older.
    WriteAround,
    /// What was written to them was damaged in the log, and is gone.
    Lost,
    /// The volume is no more, whatever the log has of it. The range says nothing.
    Gone,
    /// No change: what comes after it comes after this cut, whose number the range begins with.
    Cut,
    /// They were changed, and nothing more has to be known: what the log has of them elsewhere
    /// holds.
    Touched,
    /// No change: what comes after it was ordered by the owner of this epoch, whose number the
    /// range begins with. What the log has of the volume from before with this number or a higher
    /// one, and was never committed, is void. One that is committed at once is of this node alone
    /// and takes no number: the log goes on with this one, in an epoch that it knows; or, where the
    /// range has a block, [begins anew](Change::begins_anew) with it.
    Epoch,
    /// The same at another place: it makes nothing void that is not void where it began.
    RelocatedEpoch,
}

/// When a change that is stable is committed: hosts read it from then on, and it may be destaged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Commit {
    /// With its batch: nobody else has to have it.
    #[default]
    AtOnce,
    /// When all copies of the volume that are in sync have it: [`Log::commit`](crate::Log::commit)
    /// says so.
    Later,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Write,
        Self::Zeroes,
        Self::Deallocate,
        Self::Anchor,
        Self::WriteAround,
        Self::Lost,
        Self::Gone,
        Self::Cut,
        Self::Touched,
        Self::Epoch,
        Self::RelocatedEpoch,
    ];

    const fn code(self) -> u8 {
        match self {
            Self::Write => 1,
            Self::Zeroes => 2,
            Self::Deallocate => 3,
            Self::Anchor => 4,
            Self::WriteAround => 5,
            Self::Lost => 6,
            Self::Gone => 7,
            Self::Cut => 8,
            Self::Touched => 9,
            Self::Epoch => 10,
            Self::RelocatedEpoch => 11,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// A change of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The volume that it changes.
    pub volume: VolumeId,
    /// Which of its changes.
    pub sequence: Sequence,
    /// Of which blocks.
    pub range: LbaRange,
    /// How large a block is.
    pub block_size: BlockSize,
    /// Whether blocks were written, zeroed or given back, or only noted.
    pub kind: Kind,
    /// When it is committed.
    pub commit: Commit,
}

impl Change {
    /// Bytes of data that its record has; `None` where that is more than a batch holds.
    #[must_use]
    pub fn data_bytes(&self) -> Option<usize> {
        if self.kind != Kind::Write {
            return Some(0);
        }
        let bytes = self.range.len().bytes(self.block_size)?;
        let bytes = usize::try_from(bytes.0).ok()?;
        (bytes <= DATA_BYTES_MAX).then_some(bytes)
    }

    /// The sectors of 512 bytes of its blocks.
    #[must_use]
    pub fn sectors(&self) -> Range<u64> {
        let by = u64::from(self.block_size.bytes()) / DATA_ALIGNMENT as u64;
        // What has a number in the place of a range has no sectors, whatever they are.
        let sector = |block: u64| block.saturating_mul(by);
        sector(self.range.start().0)..sector(self.range.end().0)
    }

    /// It takes no number: the log goes on with the one that it has, see [`Kind::Epoch`].
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.kind == Kind::Epoch && self.commit == Commit::AtOnce
    }

    /// It takes no number, and the copy of the volume here is made anew from another one: nothing
    /// that was not committed counts any more, no number before this one is known, and the log goes
    /// on with it, in the epoch that the range begins with.
    #[must_use]
    pub fn begins_anew(&self) -> bool {
        self.goes_on() && !self.range.is_empty()
    }

    /// As its record is when it is relocated before it is committed.
    #[must_use]
    pub fn relocated(self) -> Self {
        if self.kind == Kind::Epoch && holds!(RelocatedEpochHasItsOwnKind) {
            let kind = Kind::RelocatedEpoch;
            return Self { kind, ..self };
        }
        self
    }

    /// As it was made, where this is one that was relocated.
    #[must_use]
    pub fn where_it_began(self) -> Self {
        if self.kind == Kind::RelocatedEpoch {
            let kind = Kind::Epoch;
            return Self { kind, ..self };
        }
        self
    }

    fn write(&self, fields: &mut Writer) {
        let blocks = u32::try_from(self.range.len().0).expect("ranges of changes are checked");
        fields
            .u64(self.volume.0)
            .u64(self.sequence.0)
            .u64(self.range.start().0)
            .u32(blocks)
            .u8(self.kind.code())
            .u8(if self.block_size == BlockSize::B512 {
                9
            } else {
                12
            })
            .u8((self.commit == Commit::Later).into())
            .u8(0);
    }

    /// A batch of version 1 can hold it.
    fn is_of_one_copy(&self) -> bool {
        self.commit == Commit::AtOnce && !matches!(self.kind, Kind::Epoch | Kind::RelocatedEpoch)
    }

    fn read(fields: &mut Reader<'_>, version: u16) -> Option<Self> {
        let (volume, sequence) = (VolumeId(fields.u64()?), Sequence(fields.u64()?));
        let (start, blocks) = (Lba(fields.u64()?), BlockCount(fields.u32()?.into()));
        let (kind, shift) = (Kind::of_code(fields.u8()?)?, fields.u8()?);
        let (later, _) = (fields.u8()?, fields.u8()?);
        let commit = match (version, later) {
            (VERSION, _) | (_, 0) => Commit::AtOnce,
            (_, 1) => Commit::Later,
            _ => return None,
        };
        let range = LbaRange::new(start, blocks)?;
        let found = Self {
            volume,
            sequence,
            range,
            block_size: BlockSize::from_bytes(1_u64.checked_shl(shift.into())?)?,
            kind,
            commit,
        };
        (version != VERSION || found.is_of_one_copy()).then_some(found)
    }
}

/// A change as a batch holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// What was changed.
    pub change: Change,
    /// Where its data begins, in bytes from the batch's first; for [`Kind::Write`] only.
    pub data_at: u32,
    /// CRC-32C of the data.
    pub crc: u32,
}

/// The first byte of a record's data in a ring of `blocks` blocks.
#[must_use]
pub fn data_at(place: BatchPosition, record: &Record, blocks: u64) -> u64 {
    place.position % blocks * BLOCK as u64 + u64::from(record.data_at)
}

/// A batch's header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which batch, and where it lies.
    pub place: BatchPosition,
    /// Which opening of the ring wrote it.
    pub epoch: u64,
    /// This batch and all before it were stable when this header was made.
    pub stable: u64,
    /// This batch and all before it were committed when this header was made; no more than are
    /// stable.
    pub committed: u64,
    /// Blocks of the batch, with this header.
    pub blocks: u32,
    /// What it holds.
    pub records: Vec<Record>,
    /// What the batch before it changed.
    pub before: Vec<Change>,
}

/// How many blocks a header takes that has so many records, and so many changes of before.
pub(crate) const fn header_blocks(records: usize, before: usize) -> usize {
    (FIXED + records * RECORD + before * CHANGE).div_ceil(BLOCK)
}

impl Header {
    /// A header over `changes` with their data, which begins right after it, and the checksums of
    /// it.
    pub(crate) fn over(
        place: BatchPosition,
        (epoch, stable, committed): (u64, u64, u64),
        changes: &[(Change, Buf)],
        crcs: &[u32],
        before: Vec<Change>,
    ) -> Self {
        let mut at = header_blocks(changes.len(), before.len()) * BLOCK;
        let mut records = Vec::with_capacity(changes.len());
        for ((change, data), crc) in changes.iter().zip(crcs) {
            records.push(Record {
                change: *change,
                data_at: u32::try_from(at).expect("a batch is short"),
                crc: *crc,
            });
            at += data.len().next_multiple_of(DATA_ALIGNMENT);
        }
        Self {
            place,
            epoch,
            stable,
            committed,
            blocks: u32::try_from(at.div_ceil(BLOCK)).expect("a batch is short"),
            records,
            before,
        }
    }

    /// The version that can say all of it. A journal without volumes of several copies stays one
    /// that the program before can read.
    fn version(&self) -> u16 {
        let records = self.records.iter().map(|it| &it.change);
        let mut changes = records.chain(&self.before);
        if self.committed == self.stable && changes.all(Change::is_of_one_copy) {
            VERSION
        } else {
            VERSION_OF_COPIES
        }
    }

    /// Its bytes: whole blocks.
    pub(crate) fn write(&self, journal: JournalId, ring: u32) -> Vec<u8> {
        let blocks = header_blocks(self.records.len(), self.before.len());
        let count = |of: usize| u16::try_from(of).expect("a batch has few records");
        let version = self.version();
        // Version 1 has zeroes there: what is stable is committed.
        let committed = if version == VERSION {
            0
        } else {
            self.committed
        };
        let mut fields = Writer::with_capacity(blocks * BLOCK);
        fields
            .bytes(MAGIC)
            .u32(0)
            .u16(version)
            .u16(count(blocks))
            .bytes(&journal.0)
            .u32(ring)
            .u32(self.blocks)
            .u64(self.place.number)
            .u64(self.place.position)
            .u64(self.epoch)
            .u64(self.stable)
            .u16(count(self.records.len()))
            .u16(count(self.before.len()))
            .u64(committed)
            .bytes(&[0; 12]);
        for record in &self.records {
            record.change.write(&mut fields);
            fields.u32(record.data_at).u32(record.crc);
        }
        for change in &self.before {
            change.write(&mut fields);
        }
        let mut bytes = fields.padded(blocks * BLOCK);
        seal(&mut bytes);
        bytes
    }

    /// How many blocks a header has that begins here, whatever version of the format it has; `None`
    /// where none of this journal does. All versions have the same up to the ring, so that a later
    /// one is distinguished from a torn write.
    #[must_use]
    pub fn blocks_at(block: &[u8], journal: JournalId, ring: u32) -> Option<usize> {
        let mut fields = Reader::new(block);
        let magic = fields.bytes::<8>()?;
        fields.u32()?;
        let (version, blocks) = (fields.u16()?, usize::from(fields.u16()?));
        let ours = JournalId(fields.bytes()?) == journal && fields.u32()? == ring;
        let most = if VERSIONS.contains(&version) {
            header_blocks(RECORDS_MAX, RECORDS_MAX) as u64
        } else {
            BATCH_BLOCKS_MAX
        };
        (ours && magic == *MAGIC && (1..=most).contains(&(blocks as u64))).then_some(blocks)
    }

    /// Reads a whole header.
    ///
    /// # Errors
    /// What is wrong with it; also that it is another journal's, or another ring's.
    pub fn read(bytes: &[u8], journal: JournalId, ring: u32) -> Result<Self, Damage> {
        let own = Self::blocks_at(bytes, journal, ring).ok_or(Damage::Foreign)?;
        let bytes = bytes.get(..own * BLOCK).ok_or(Damage::Foreign)?;
        let (version, fields) = open_one_of(bytes, MAGIC, VERSIONS)?;
        let found = Self::fields(fields, version).filter(|it| it.holds_together(own));
        found.ok_or(Damage::Contradiction("its records are none"))
    }

    /// What stands after its head.
    fn fields(mut fields: Reader<'_>, version: u16) -> Option<Self> {
        fields.u16()?;
        fields.bytes::<16>()?;
        fields.u32()?;
        let blocks = fields.u32()?;
        let place = BatchPosition {
            number: fields.u64()?,
            position: fields.u64()?,
        };
        let (epoch, stable) = (fields.u64()?, fields.u64()?);
        let (records, before) = (fields.u16()?, fields.u16()?);
        let committed = match (fields.u64()?, version) {
            (_, VERSION) => stable,
            (committed, _) => committed,
        };
        fields.bytes::<12>()?;
        let records = (0..records).map(|_| {
            let change = Change::read(&mut fields, version)?;
            let (data_at, crc) = (fields.u32()?, fields.u32()?);
            Some(Record {
                change,
                data_at,
                crc,
            })
        });
        let records = records.collect::<Option<Vec<Record>>>()?;
        let before = (0..before).map(|_| Change::read(&mut fields, version));
        let before = before.collect::<Option<Vec<Change>>>()?;
        Some(Self {
            place,
            epoch,
            stable,
            committed,
            blocks,
            records,
            before,
        })
    }

    /// Its records lie inside of it, and it is no longer than a batch may be.
    fn holds_together(&self, own: usize) -> bool {
        let bytes = u64::from(self.blocks) * BLOCK as u64;
        let inside = self.records.iter().all(|record| {
            let from = u64::from(record.data_at);
            let data = record.change.data_bytes();
            data.is_some_and(|data| from >= (own * BLOCK) as u64 && from + data as u64 <= bytes)
        });
        inside
            && own == header_blocks(self.records.len(), self.before.len())
            && u64::from(self.blocks) >= own as u64
            && u64::from(self.blocks) <= BATCH_BLOCKS_MAX
            && self.committed <= self.stable
            && self.records.len() <= RECORDS_MAX
            && self.before.len() <= RECORDS_MAX
    }

    /// The records whose data is not what their checksums say. `checksum` gives the checksum of
    /// these bytes of the batch, if it has them.
    #[must_use]
    pub(crate) fn damaged(&self, checksum: impl Fn(Range<usize>) -> Option<u32>) -> Vec<Change> {
        let damaged = self.records.iter().filter(|record| {
            let from = record.data_at as usize;
            let data = from..from + record.change.data_bytes().unwrap_or(0);
            record.change.kind == Kind::Write && checksum(data) != Some(record.crc)
        });
        damaged.map(|record| record.change).collect()
    }
}
