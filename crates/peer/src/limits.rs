//! How much of anything there may be.

/// The highest version of the protocol that this program speaks, and so far the only one.
pub const VERSION: u16 = 1;

/// Bytes of the first frame of each side. Nothing else is received before it was accepted.
pub const FIRST_BYTES: usize = 128;

/// Bytes before the body of every other frame.
pub const HEADER_BYTES: usize = 24;

/// Bytes of a body at most. What may be ignored may have as many.
pub const BODY_BYTES_MAX: usize = 64 << 10;

/// Bytes of data in a frame at most: what a batch of the journal holds.
pub const DATA_BYTES_MAX: usize = journal::DATA_BYTES_MAX;

/// Records of a frame at most: what a batch of the journal holds.
pub const RECORDS_MAX: usize = journal::RECORDS_MAX;

/// Positions of a frame at most.
pub const POSITIONS_MAX: usize = 2048;

/// Nothing more is put behind so many bytes that wait to be sent, so that a peer that does not
/// receive costs no more memory than them and a frame.
pub const SEND_AHEAD_BYTES: usize = 2 << 20;

/// Bytes and records, of which a sender may have so many under way that the receiver has not let
/// go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cost {
    /// Bytes of data.
    pub bytes: u64,
    /// How many changes, whether they have data or not.
    pub records: u64,
}

impl Cost {
    /// What the largest frame costs: a smaller window would let it wait for ever.
    pub const FRAME_MAX: Self = Self {
        bytes: DATA_BYTES_MAX as u64,
        records: RECORDS_MAX as u64,
    };

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            records: self.records.saturating_add(other.records),
        }
    }

    /// What is left without the other; nothing where that is more.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            records: self.records.saturating_sub(other.records),
        }
    }

    /// Neither bytes nor records are more than the other's.
    #[must_use]
    pub const fn is_within(self, other: Self) -> bool {
        self.bytes <= other.bytes && self.records <= other.records
    }

    /// There is none of it.
    #[must_use]
    pub const fn is_nothing(self) -> bool {
        self.bytes == 0 && self.records == 0
    }
}
