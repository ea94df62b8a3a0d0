//! Block contents that explain themselves.
//!
//! A stamped block is made of lines of 64 bytes, and each line says everything, so that a block
//! which is torn at any line says which parts came from which write:
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | `CWST` |
//! | 4-7 | number of the line in the block |
//! | 8-15 | logical block address that it was written for |
//! | 16-19 | writer |
//! | 20-23 | number of lines in the block |
//! | 24-31 | sequence number of the write, counted by the writer |
//! | 32-55 | filling that depends on all of the above |
//! | 56-63 | checksum of bytes 0-55 |
//!
//! All numbers are little-endian.

use std::fmt;
use units::{BlockSize, Buf, Lba};

const LINE: usize = 64;
const MAGIC: [u8; 4] = *b"CWST";

/// Who wrote a block, where to, and which of its writes that was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stamp {
    /// The block that it was written for.
    pub lba: Lba,
    /// Who wrote.
    pub writer: u32,
    /// Which of the writer's writes.
    pub sequence: u64,
}

/// What a block holds, as far as the models care.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// All zeroes: never written, or given up.
    Zero,
    /// What a stamped write left.
    Stamp(Stamp),
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("zero"),
            Self::Stamp(Stamp {
                lba,
                writer,
                sequence,
            }) => write!(f, "w{writer}#{sequence}@{}", lba.0),
        }
    }
}

/// A block that is no value: torn or damaged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Runs of lines: offset in bytes, and the value that they belong to or `None` for damage.
    pub runs: Vec<(usize, Option<Value>)>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block that nobody wrote:")?;
        for (offset, value) in &self.runs {
            match value {
                Some(value) => write!(f, " from byte {offset} {value:?};")?,
                None => write!(f, " from byte {offset} damage;")?,
            }
        }
        Ok(())
    }
}

/// A number that depends on each bit of whole words.
fn mix(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks().0.iter();
    words.fold(0xCBF2_9CE4_8422_2325, |hash, word| {
        (hash ^ u64::from_le_bytes(*word))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
    })
}

fn line(stamp: Stamp, number: u32, lines: u32) -> [u8; LINE] {
    let mut out = [0; LINE];
    out[..4].copy_from_slice(&MAGIC);
    out[4..8].copy_from_slice(&number.to_le_bytes());
    out[8..16].copy_from_slice(&stamp.lba.0.to_le_bytes());
    out[16..20].copy_from_slice(&stamp.writer.to_le_bytes());
    out[20..24].copy_from_slice(&lines.to_le_bytes());
    out[24..32].copy_from_slice(&stamp.sequence.to_le_bytes());
    let mut filling = mix(&out[..32]);
    for word in out[32..56].chunks_mut(8) {
        word.copy_from_slice(&filling.to_le_bytes());
        filling = filling.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
    }
    let sum = mix(&out[..56]);
    out[56..].copy_from_slice(&sum.to_le_bytes());
    out
}

fn lines_of(bytes: usize) -> u32 {
    u32::try_from(bytes / LINE).expect("a block is small")
}

impl Stamp {
    /// The bytes of a block of `bytes` bytes with this stamp.
    #[must_use]
    pub fn block(self, bytes: usize) -> Vec<u8> {
        let lines = lines_of(bytes);
        let mut block = Vec::with_capacity(bytes);
        for number in 0..lines {
            block.extend_from_slice(&line(self, number, lines));
        }
        block
    }
}

impl Value {
    /// The bytes of a block that holds it.
    #[must_use]
    pub fn block(self, block_size: BlockSize) -> Vec<u8> {
        let bytes = block_size.bytes() as usize;
        match self {
            Self::Zero => vec![0; bytes],
            Self::Stamp(stamp) => stamp.block(bytes),
        }
    }

    /// What a block holds.
    ///
    /// # Errors
    /// The explanation, where it holds nothing that was ever written as one.
    pub fn of(block: &[u8]) -> Result<Self, Broken> {
        let lines = lines_of(block.len());
        let mut runs: Vec<(usize, Option<Self>)> = Vec::new();
        for (number, bytes) in (0..lines).zip(block.chunks(LINE)) {
            let value = Self::of_line(bytes, number, lines);
            if runs.last().is_none_or(|(_, last)| *last != value) {
                runs.push((number as usize * LINE, value));
            }
        }
        match runs.as_slice() {
            [(_, Some(value))] => Ok(*value),
            _ => Err(Broken { runs }),
        }
    }

    fn of_line(bytes: &[u8], number: u32, lines: u32) -> Option<Self> {
        if bytes == [0; LINE] {
            return Some(Self::Zero);
        }
        let word = |at: usize| <[u8; 8]>::try_from(bytes.get(at..at + 8)?).ok();
        let half = |at: usize| <[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok();
        let stamp = Stamp {
            lba: Lba(u64::from_le_bytes(word(8)?)),
            writer: u32::from_le_bytes(half(16)?),
            sequence: u64::from_le_bytes(word(24)?),
        };
        (bytes == line(stamp, number, lines)).then_some(Self::Stamp(stamp))
    }

    /// What each block of `bytes` holds.
    ///
    /// # Errors
    /// The place of the first block that is broken, and the explanation.
    pub fn of_all(bytes: &Buf, block_size: BlockSize) -> Result<Vec<Self>, (usize, Broken)> {
        let bytes = bytes.to_vec();
        let blocks = bytes.chunks(block_size.bytes() as usize);
        let values = blocks.enumerate();
        values
            .map(|(place, block)| Self::of(block).map_err(|broken| (place, broken)))
            .collect()
    }

    /// Blocks with these values, one after the other.
    #[must_use]
    pub fn payload(values: &[Self], block_size: BlockSize) -> Buf {
        let blocks: Vec<Vec<u8>> = values.iter().map(|it| it.block(block_size)).collect();
        Buf::copy_of(&blocks.concat())
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn stamp(sequence: u64) -> Stamp {
        Stamp {
            lba: Lba(7),
            writer: 3,
            sequence,
        }
    }

    #[test]
    fn a_block_says_who_wrote_it() {
        for size in [BlockSize::B512, BlockSize::B4096] {
            let value = Value::Stamp(stamp(9));
            assert_eq!(Value::of(&value.block(size)), Ok(value));
            assert_eq!(Value::of(&Value::Zero.block(size)), Ok(Value::Zero));
        }
    }

    #[test]
    fn a_torn_block_says_where_and_between_what() {
        let mut block = stamp(1).block(512);
        block[192..].copy_from_slice(&stamp(2).block(512)[192..]);
        let runs = vec![
            (0, Some(Value::Stamp(stamp(1)))),
            (192, Some(Value::Stamp(stamp(2)))),
        ];
        assert_eq!(Value::of(&block), Err(Broken { runs }));
    }

    #[test]
    fn any_single_damaged_byte_is_found() {
        let block = stamp(5).block(512);
        for at in 0..block.len() {
            let mut damaged = block.clone();
            damaged[at] ^= 0x10;
            assert!(Value::of(&damaged).is_err(), "byte {at}");
        }
    }
}
