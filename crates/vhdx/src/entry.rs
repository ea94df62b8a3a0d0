//! An entry of the block allocation table.
//!
//! spec: MS-VHDX 2.5.1 "BAT Entry"

/// What a payload block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not in this file: the parent has it, or it is zeroes.
    NotPresent,
    /// What it holds is not defined; it is zeroes here.
    Undefined,
    /// Zeroes.
    Zero,
    /// Given back by whoever uses the disk; zeroes.
    Unmapped,
    /// In this file, as a whole.
    Present,
    /// Some sectors are in this file, the others in the parent.
    Partial,
    /// As draft 0.95 of the format had it: read as [`Self::Unmapped`].
    OldUnmapped,
    /// State 4, which nobody has defined.
    Bad,
}

impl State {
    /// Its content has a place in this file.
    #[must_use]
    pub const fn has_place(self) -> bool {
        matches!(self, Self::Present | Self::Partial)
    }

    const fn bits(self) -> u64 {
        match self {
            Self::NotPresent => 0,
            Self::Undefined => 1,
            Self::Zero => 2,
            Self::Unmapped => 3,
            Self::Bad => 4,
            Self::OldUnmapped => 5,
            Self::Present => 6,
            Self::Partial => 7,
        }
    }
}

/// Where a block or a bitmap is, if anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Whether it is in the file, and whose it is where not.
    pub state: State,
    /// Where it is in the file, in bytes; means something where the state has a place.
    pub place: u64,
}

/// Bits 3 to 19 are zero.
const RESERVED: u64 = 0x000f_fff8;

impl Entry {
    /// Without a place.
    #[must_use]
    pub const fn nowhere(state: State) -> Self {
        Self { state, place: 0 }
    }

    /// In the file.
    #[must_use]
    pub const fn at(state: State, place: u64) -> Self {
        Self { state, place }
    }

    /// Of its 8 bytes. Reserved bits do not count: [`has_reserved`](Self::has_reserved).
    #[must_use]
    pub const fn decode(bits: u64) -> Self {
        let state = match bits & 7 {
            0 => State::NotPresent,
            1 => State::Undefined,
            2 => State::Zero,
            3 => State::Unmapped,
            4 => State::Bad,
            5 => State::OldUnmapped,
            6 => State::Present,
            _ => State::Partial,
        };
        Self {
            state,
            place: bits & !RESERVED & !7,
        }
    }

    /// As 8 bytes.
    #[must_use]
    pub const fn encode(self) -> u64 {
        self.place | self.state.bits()
    }

    /// Bits are set that shall be zero.
    #[must_use]
    pub const fn has_reserved(bits: u64) -> bool {
        bits & RESERVED != 0
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn an_entry_is_its_three_bits_and_the_megabyte() {
        // By hand: state 6, MiB 5.
        let entry = Entry::decode(5 << 20 | 6);
        assert_eq!(entry, Entry::at(State::Present, 5 << 20));
        for bits in 0..8 {
            let entry = Entry::decode(bits | 77 << 20);
            assert_eq!((entry.encode(), entry.place), (bits | 77 << 20, 77 << 20));
        }
        assert!(Entry::has_reserved(8) && Entry::has_reserved(1 << 19));
        assert!(!Entry::has_reserved(1 << 20 | 7));
    }
}
