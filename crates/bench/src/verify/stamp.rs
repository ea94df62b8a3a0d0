//! 512 bytes that explain themselves.
//!
//! | bytes | what |
//! |---|---|
//! | 0-7 | `CWBENCH1` |
//! | 8-15 | the run: its epoch |
//! | 16-23 | number of the write in the run, from 1 on |
//! | 24-31 | number of these 512 bytes on the target |
//! | 32-39 | the thread that wrote |
//! | 40-511 | words that depend on all of the above, each on its place too |
//!
//! All numbers are little-endian. Which path carried a write is not in it: paths are chosen below,
//! after the bytes are made.

use crate::random::mix;

/// Bytes of a stamp.
pub(crate) const SECTOR: usize = 512;

const MAGIC: u64 = u64::from_le_bytes(*b"CWBENCH1");
const HEAD: usize = 5;
const WORDS: usize = SECTOR / 8;

/// What a stamp says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The run that wrote it.
    pub run: u64,
    /// Which write of the run.
    pub write: u64,
    /// Where it was written for, in 512 bytes.
    pub sector: u64,
    /// Which thread wrote.
    pub thread: u64,
}

impl Stamp {
    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..HEAD].copy_from_slice(&[MAGIC, self.run, self.write, self.sector, self.thread]);
        let seed = mix(self.run ^ mix(self.write ^ mix(self.sector ^ mix(self.thread))));
        // Each word is computed by itself, so that the processor does several at once.
        for (word, place) in words[HEAD..].iter_mut().zip(1_u64..) {
            *word = seed.wrapping_add(place.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
        words
    }

    /// Writes it.
    ///
    /// # Panics
    /// If `into` does not have 512 bytes.
    pub(crate) fn write_to(&self, into: &mut [u8]) {
        assert_eq!(into.len(), SECTOR, "a stamp fills 512 bytes");
        for (piece, word) in into.chunks_exact_mut(8).zip(self.words()) {
            piece.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads one; `Err` with what its head says where the rest does not fit, `None` where it is no
    /// stamp at all.
    ///
    /// # Errors
    /// See above.
    #[must_use]
    pub(crate) fn read(bytes: &[u8]) -> Option<Result<Self, Self>> {
        let word = |at: usize| {
            let piece = bytes.get(at * 8..at * 8 + 8)?;
            Some(u64::from_le_bytes(piece.try_into().ok()?))
        };
        if word(0)? != MAGIC || bytes.len() != SECTOR {
            return None;
        }
        let stamp = Self {
            run: word(1)?,
            write: word(2)?,
            sector: word(3)?,
            thread: word(4)?,
        };
        let whole = stamp
            .words()
            .iter()
            .enumerate()
            .all(|(at, expected)| word(at) == Some(*expected));
        Some(if whole { Ok(stamp) } else { Err(stamp) })
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_stamp_shows_what_it_was_and_a_mixture_of_two_is_reported_at_any_place() {
        let one = Stamp {
            run: 7,
            write: 8,
            sector: 9,
            thread: 3,
        };
        let other = Stamp { write: 6, ..one };
        let (mut a, mut b) = ([0; SECTOR], [0; SECTOR]);
        one.write_to(&mut a);
        other.write_to(&mut b);
        assert_eq!(Stamp::read(&a), Some(Ok(one)));
        for cut in (8..SECTOR).step_by(8) {
            let mut torn = a;
            torn[cut..].copy_from_slice(&b[cut..]);
            // The words before the write's number are the same in both.
            let expected = if cut <= 16 {
                Some(Ok(other))
            } else {
                Some(Err(one))
            };
            assert_eq!(Stamp::read(&torn), expected, "{cut}");
        }
        assert_eq!(Stamp::read(&[0; SECTOR]), None);
        assert_eq!(Stamp::read(&a[..500]), None);
    }
}
