//! Where things lie in a journal, and the two blocks of each ring that say where its log begins.
//!
//! ```text
//!   block 0, 1        the superblock, twice
//!   for each ring:    checkpoint, checkpoint, blocks of the log ...
//! ```
//!
//! The format is described in `docs/formats/journal.md`.

use formats::{CopiesState, Damage, Writer, open, seal};
use std::ops::RangeInclusive;

/// Bytes of a block: everything in a journal begins at a multiple of it.
pub const BLOCK: usize = 4096;

/// The version that superblocks, checkpoints and pages of histories have. Batches and headers of
/// histories say what they need: 1, or 2 where volumes have several copies.
pub const VERSION: u16 = 1;

/// The version of what volumes with several copies need.
pub(crate) const VERSION_OF_COPIES: u16 = 2;

/// Versions that are read.
pub(crate) const VERSIONS: RangeInclusive<u16> = VERSION..=VERSION_OF_COPIES;

/// Blocks of a ring at least: a few of the largest batches.
pub const RING_BLOCKS_MIN: u64 = 1024;

/// Rings of a journal at most.
pub const RINGS_MAX: u32 = 256;

const SUPERBLOCK_MAGIC: &[u8; 8] = b"CWJOURNL";
const CHECKPOINT_MAGIC: &[u8; 8] = b"CWJCHECK";
const SUPERBLOCKS: u64 = 2;
const CHECKPOINTS: u64 = 2;

/// A journal's own number, made at random with it: what another journal left on the device is not
/// ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalId(pub [u8; 16]);

/// How a device is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// How many rings there are: each is written by one core.
    pub rings: u32,
    /// Blocks of each ring's log.
    pub ring_blocks: u64,
}

impl Layout {
    /// Divides a device of `bytes`; `None` where it is too small for so many rings.
    #[must_use]
    pub fn of_device(bytes: u64, rings: u32) -> Option<Self> {
        if !(1..=RINGS_MAX).contains(&rings) {
            return None;
        }
        let blocks = (bytes / BLOCK as u64).checked_sub(SUPERBLOCKS)?;
        let ring_blocks = (blocks / u64::from(rings)).checked_sub(CHECKPOINTS)?;
        (ring_blocks >= RING_BLOCKS_MIN).then_some(Self { rings, ring_blocks })
    }

    /// Bytes of the smallest device for so many rings.
    #[must_use]
    pub const fn bytes_min(rings: u32) -> u64 {
        (SUPERBLOCKS + rings as u64 * (CHECKPOINTS + RING_BLOCKS_MIN)) * BLOCK as u64
    }

    /// The first byte of a ring's checkpoint in `slot`, 0 or 1.
    #[must_use]
    pub fn checkpoint_at(&self, ring: u32, slot: u8) -> u64 {
        let before = u64::from(ring) * (CHECKPOINTS + self.ring_blocks);
        (SUPERBLOCKS + before + u64::from(slot)) * BLOCK as u64
    }

    /// The first byte of a ring's log.
    #[must_use]
    pub fn ring_at(&self, ring: u32) -> u64 {
        self.checkpoint_at(ring, 0) + CHECKPOINTS * BLOCK as u64
    }
}

/// What is said of the whole journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Its number.
    pub journal: JournalId,
    /// The pool that it belongs to.
    pub pool: [u8; 16],
    /// How it is divided.
    pub layout: Layout,
    /// Neighbouring bytes of a volume that belong to one ring: a power of two, 4096 at least.
    pub shard_bytes: u64,
}

/// A block of these fields.
fn sealed(fields: Writer) -> Vec<u8> {
    let mut block = fields.padded(BLOCK);
    seal(&mut block);
    block
}

impl Superblock {
    /// The block that says it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut fields = Writer::with_capacity(BLOCK);
        fields
            .bytes(SUPERBLOCK_MAGIC)
            .u32(0)
            .u16(VERSION)
            .u16(0)
            .bytes(&self.journal.0)
            .bytes(&self.pool)
            .u32(self.layout.rings)
            .u64(self.layout.ring_blocks)
            .u64(self.shard_bytes);
        sealed(fields)
    }

    /// What both of its copies say, the first two blocks of a device of `bytes`.
    ///
    /// # Errors
    /// That one of them has another version: its program may have written more that is not known
    /// here. Else what is wrong with the first one, where neither can be read.
    pub fn of_copies(copies: [&[u8]; 2], bytes: u64) -> Result<Self, Damage> {
        let [first, second] = copies.map(|block| Self::read(block, bytes));
        match (first, second) {
            (Err(version @ Damage::Version { .. }), _)
            | (_, Err(version @ Damage::Version { .. })) => Err(version),
            (Ok(found), _) | (Err(_), Ok(found)) => Ok(found),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// How both of its copies are. They are written together.
    #[must_use]
    pub fn copies_state(copies: [&[u8]; 2], bytes: u64) -> CopiesState {
        CopiesState::of(copies, 0, |block| Self::read(block, bytes).map(|_| 1))
    }

    /// Reads it from a device of `bytes`, of which `block` is one of the first two blocks.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(block: &[u8], bytes: u64) -> Result<Self, Damage> {
        let mut fields = open(block, SUPERBLOCK_MAGIC, VERSION)?;
        let read = (|| {
            fields.u16()?;
            let journal = JournalId(fields.bytes()?);
            let pool = fields.bytes()?;
            let (rings, ring_blocks) = (fields.u32()?, fields.u64()?);
            let layout = Layout { rings, ring_blocks };
            let shard_bytes = fields.u64()?;
            Some(Self {
                journal,
                pool,
                layout,
                shard_bytes,
            })
        })();
        let found = read.ok_or(Damage::Foreign)?;
        let whole = Layout::of_device(bytes, found.layout.rings);
        if whole.is_none_or(|whole| whole.ring_blocks < found.layout.ring_blocks) {
            return Err(Damage::Contradiction(
                "the device is smaller than the journal",
            ));
        }
        if found.layout.ring_blocks < RING_BLOCKS_MIN {
            return Err(Damage::Contradiction("its rings are too small"));
        }
        if !found.shard_bytes.is_power_of_two() || found.shard_bytes < BLOCK as u64 {
            return Err(Damage::Contradiction("its shards have no size"));
        }
        Ok(found)
    }
}

/// A batch's number and where it begins. Numbers rise by one; positions count blocks for ever, so
/// that the block in the ring is the position modulo its size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BatchPosition {
    /// The batch's number, from 1.
    pub number: u64,
    /// Its first block.
    pub position: u64,
}

impl BatchPosition {
    /// Where a new ring begins.
    pub const FIRST: Self = Self {
        number: 1,
        position: 0,
    };
}

/// Where a ring's log begins, written whenever room in it is to be used again, and when it is
/// opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Rises by one with each; slot 0 has the even ones.
    pub count: u64,
    /// Which opening of the ring wrote it.
    pub epoch: u64,
    /// The first batch of this opening. What lies there or after it of earlier openings was given
    /// up as torn.
    pub begun: BatchPosition,
    /// The oldest batch that is still needed.
    pub tail: BatchPosition,
}

impl Checkpoint {
    /// Of a ring that has never been opened.
    pub const FIRST: Self = Self {
        count: 0,
        epoch: 0,
        begun: BatchPosition::FIRST,
        tail: BatchPosition::FIRST,
    };

    /// The slot that it is written to.
    #[must_use]
    pub const fn slot(&self) -> u8 {
        if self.count.is_multiple_of(2) { 0 } else { 1 }
    }

    /// The block that says it.
    #[must_use]
    pub fn write(&self, journal: JournalId, ring: u32) -> Vec<u8> {
        let mut fields = Writer::with_capacity(BLOCK);
        fields
            .bytes(CHECKPOINT_MAGIC)
            .u32(0)
            .u16(VERSION)
            .u16(0)
            .bytes(&journal.0)
            .u32(ring)
            .u64(self.count)
            .u64(self.epoch)
            .u64(self.begun.number)
            .u64(self.begun.position)
            .u64(self.tail.number)
            .u64(self.tail.position);
        sealed(fields)
    }

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it; also that it is another journal's, or another ring's.
    pub fn read(block: &[u8], journal: JournalId, ring: u32) -> Result<Self, Damage> {
        let mut fields = open(block, CHECKPOINT_MAGIC, VERSION)?;
        let read = (|| {
            fields.u16()?;
            let ours = JournalId(fields.bytes()?) == journal && fields.u32()? == ring;
            let (count, epoch) = (fields.u64()?, fields.u64()?);
            let mut place = || {
                let (number, position) = (fields.u64()?, fields.u64()?);
                Some(BatchPosition { number, position })
            };
            let (begun, tail) = (place()?, place()?);
            Some((
                ours,
                Self {
                    count,
                    epoch,
                    begun,
                    tail,
                },
            ))
        })();
        match read {
            Some((true, found)) if found.tail.number == 0 || found.begun.number == 0 => {
                Err(Damage::Contradiction("batches are numbered from one"))
            }
            Some((true, found)) => Ok(found),
            Some((false, _)) | None => Err(Damage::Foreign),
        }
    }

    /// How both slots are.
    #[must_use]
    pub fn copies_state(slots: [&[u8]; 2], journal: JournalId, ring: u32) -> CopiesState {
        let read = |block| Self::read(block, journal, ring).map(|it| it.count);
        CopiesState::of(slots, Self::FIRST.count, read)
    }

    /// The newer one of both slots.
    ///
    /// # Errors
    /// That one of them has another version: its program may have gone on from there. Else what is
    /// wrong with the first slot, where neither can be read.
    pub fn newest(slots: [&[u8]; 2], journal: JournalId, ring: u32) -> Result<Self, Damage> {
        let [first, second] = slots.map(|block| Self::read(block, journal, ring));
        match (first, second) {
            (Err(version @ Damage::Version { .. }), _)
            | (_, Err(version @ Damage::Version { .. })) => Err(version),
            (Ok(first), Ok(second)) if second.count > first.count => Ok(second),
            (Ok(first), _) => Ok(first),
            (Err(_), Ok(second)) => Ok(second),
            (Err(error), Err(_)) => Err(error),
        }
    }
}
