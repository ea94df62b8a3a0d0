//! Digests of blocks, by which two copies find out what differs without sending it.
//!
//! ```text
//!   owner --digest of each part of 64 KiB--> copy: which of them are not alike?
//!   owner <--of those, a digest of each piece of 4 KiB-- copy
//! ```
//!
//! A digest is one that nobody can make two of: a host chooses the data, and what is taken for
//! equal stays as it is for ever.

use formats::{Reader, Writer};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use units::{Lba, LbaRange};

/// Bytes of a piece: what differs is found as exactly as that.
pub(crate) const PIECE_BYTES: usize = 4096;

/// Bytes of a part: what is asked about.
pub(crate) const PART_BYTES: u64 = 64 << 10;

/// Parts in one question.
pub(crate) const PARTS_MAX: usize = 64;

static ZEROES: [u8; PIECE_BYTES] = [0; PIECE_BYTES];
static OF_ZEROES: LazyLock<Digest> = LazyLock::new(|| Digest::of(&ZEROES));

/// The first 16 bytes of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digest([u8; 16]);

impl Digest {
    fn of(bytes: &[u8]) -> Self {
        Self::first(Sha256::digest(bytes).into())
    }

    fn first(all: [u8; 32]) -> Self {
        let mut first = [0; 16];
        first.copy_from_slice(&all[..16]);
        Self(first)
    }

    /// That of a part, by those of its pieces.
    pub(crate) fn of_pieces(pieces: &[Self]) -> Self {
        let mut all = Sha256::new();
        pieces.iter().for_each(|it| all.update(it.0));
        Self::first(all.finalize().into())
    }
}

/// Makes digests of the pieces of blocks that come one after the other.
#[derive(Default)]
pub(crate) struct Summing {
    begun: Sha256,
    bytes: usize,
    pieces: Vec<Digest>,
}

impl Summing {
    /// These come next.
    pub(crate) fn data(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.bytes));
            self.begun.update(now);
            self.bytes += now.len();
            bytes = rest;
            if self.bytes == PIECE_BYTES {
                self.ends();
            }
        }
    }

    /// So many zeroes come next.
    pub(crate) fn zeroes(&mut self, mut bytes: u64) {
        while bytes > 0 {
            let room = (PIECE_BYTES - self.bytes) as u64;
            let now = usize::try_from(bytes.min(room)).expect("it fits into a piece");
            if now == PIECE_BYTES {
                self.pieces.push(*OF_ZEROES);
            } else {
                self.data(&ZEROES[..now]);
            }
            bytes -= now as u64;
        }
    }

    fn ends(&mut self) {
        let digest = self.begun.finalize_reset();
        self.pieces.push(Digest::first(digest.into()));
        self.bytes = 0;
    }

    /// Of what came so far; the last piece may be a short one.
    pub(crate) fn pieces(mut self) -> Vec<Digest> {
        if self.bytes > 0 {
            self.ends();
        }
        self.pieces
    }
}

/// The parts that blocks lie in.
pub(crate) fn parts(range: LbaRange, block_bytes: u64) -> Vec<LbaRange> {
    let part = PART_BYTES / block_bytes;
    let (mut parts, mut at) = (Vec::new(), range.start().0);
    while at < range.end().0 {
        let end = ((at / part + 1) * part).min(range.end().0);
        parts.extend(LbaRange::between(Lba(at), Lba(end)));
        at = end;
    }
    parts
}

/// The blocks of a part of which both have other pieces; all, where it is not known.
pub(crate) fn differing(
    part: LbaRange,
    block_bytes: u64,
    (own, others): (&[Digest], &[Digest]),
) -> Vec<LbaRange> {
    if own.len() != others.len() {
        return vec![part];
    }
    let piece = PIECE_BYTES as u64 / block_bytes;
    let mut found: Vec<LbaRange> = Vec::new();
    for (at, _) in (0..).zip(own).filter(|(at, it)| others[*at] != **it) {
        let start = part.start().0 + at as u64 * piece;
        let end = (start + piece).min(part.end().0);
        let from = match found.last() {
            Some(last) if last.end().0 == start => found.pop().map_or(start, |it| it.start().0),
            Some(_) | None => start,
        };
        found.extend(LbaRange::between(Lba(from), Lba(end)));
    }
    found
}

/// A part, and its digest.
pub(crate) type Asked = (LbaRange, Digest);

/// What the copy has otherwise: digests of the pieces of each part, by its first block.
pub(crate) type Answered = BTreeMap<u64, Vec<Digest>>;

pub(crate) fn write_asked(parts: &[Asked]) -> Vec<u8> {
    let mut to = Writer::with_capacity(parts.len() * 32);
    for (part, digest) in parts {
        to.u64(part.start().0).u64(part.end().0).bytes(&digest.0);
    }
    to.into_bytes()
}

/// Reads a question about a LUN of so many blocks; `None`: it is none.
pub(crate) fn read_asked(bytes: &[u8], blocks: u64, block_bytes: u64) -> Option<Vec<Asked>> {
    let mut fields = Reader::new(bytes);
    let mut parts = Vec::new();
    while !fields.is_empty() {
        let (start, end) = (fields.u64()?, fields.u64()?);
        let digest = Digest(fields.bytes()?);
        let is_one = start < end && end <= blocks && end - start <= PART_BYTES / block_bytes;
        if !is_one || parts.len() == PARTS_MAX {
            return None;
        }
        parts.push((LbaRange::between(Lba(start), Lba(end))?, digest));
    }
    Some(parts)
}

pub(crate) fn write_answered(answered: &Answered) -> Vec<u8> {
    let mut to = Writer::with_capacity(answered.len() * 272);
    for (start, pieces) in answered {
        let count = u32::try_from(pieces.len()).expect("a part has few pieces");
        to.u64(*start).u32(count).u32(0);
        pieces.iter().for_each(|it| {
            to.bytes(&it.0);
        });
    }
    to.into_bytes()
}

/// Reads an answer; `None`: it is none.
pub(crate) fn read_answered(bytes: &[u8]) -> Option<Answered> {
    let mut fields = Reader::new(bytes);
    let mut answered = Answered::new();
    while !fields.is_empty() {
        let (start, count, zero) = (fields.u64()?, fields.u32()?, fields.u32()?);
        let pieces = (0..count).map(|_| fields.bytes().map(Digest));
        let pieces = pieces.collect::<Option<Vec<Digest>>>()?;
        if zero != 0 || answered.insert(start, pieces).is_some() {
            return None;
        }
    }
    Some(answered)
}

#[cfg(test)]
mod test {
    use super::*;

    fn range(start: u64, end: u64) -> LbaRange {
        LbaRange::between(Lba(start), Lba(end)).unwrap()
    }

    fn of(bytes: &[u8]) -> Vec<Digest> {
        let mut summing = Summing::default();
        summing.data(bytes);
        summing.pieces()
    }

    #[test]
    fn a_digest_is_half_of_a_sha_256() {
        // FIPS 180-2, "abc".
        let abc = [
            0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae,
            0x22, 0x23,
        ];
        assert_eq!(of(b"abc"), [Digest(abc)]);
    }

    #[test]
    fn digests_are_the_same_however_the_blocks_come() {
        let mut bytes: Vec<u8> = (0..3 * PIECE_BYTES + 512)
            .map(|it| (it / 7).to_le_bytes()[0])
            .collect();
        bytes[1000..7000].fill(0);
        bytes[PIECE_BYTES..2 * PIECE_BYTES].fill(0);
        let whole = of(&bytes);
        assert_eq!(whole.len(), 4);
        assert_eq!(whole[1], *OF_ZEROES);
        let mut summing = Summing::default();
        summing.data(&bytes[..1000]);
        summing.zeroes(6000);
        summing.zeroes((2 * PIECE_BYTES - 7000) as u64);
        for it in bytes[2 * PIECE_BYTES..].chunks(512) {
            summing.data(it);
        }
        assert_eq!(summing.pieces(), whole);
        let mut summing = Summing::default();
        summing.zeroes(3 * PIECE_BYTES as u64 + 1);
        assert_eq!(summing.pieces(), of(&vec![0; 3 * PIECE_BYTES + 1]));
    }

    #[test]
    fn what_differs_is_found_piece_by_piece_and_nothing_else_is() {
        let mut bytes = vec![7; 16 * PIECE_BYTES];
        let own = of(&bytes);
        for at in [0, 4096, 8191, 5 * 4096 + 1, 65_535] {
            bytes[at] ^= 1;
        }
        let other = of(&bytes);
        assert_ne!(Digest::of_pieces(&own), Digest::of_pieces(&other));
        let found = differing(range(160, 176), 4096, (&own, &other));
        assert_eq!(found, [range(160, 162), range(165, 166), range(175, 176)]);
        let found = differing(range(128, 256), 512, (&own, &other));
        assert_eq!(found, [range(128, 144), range(168, 176), range(248, 256)]);
        let found = differing(range(160, 176), 4096, (&own, &own));
        assert_eq!(found, []);
        let found = differing(range(160, 176), 4096, (&own, &[]));
        assert_eq!(found, [range(160, 176)], "it could not be read there");
    }

    #[test]
    fn parts_are_counted_from_the_beginning_of_the_lun() {
        let found = parts(range(10, 37), 4096);
        assert_eq!(found, [range(10, 16), range(16, 32), range(32, 37)]);
        assert_eq!(parts(range(128, 256), 512), [range(128, 256)]);
        assert_eq!(parts(range(3, 3), 512), []);
    }

    #[test]
    fn questions_and_answers_are_read_as_they_were_and_nothing_else_is_believed() {
        let asked: Vec<Asked> = (0..PARTS_MAX as u64)
            .map(|it| {
                (
                    range(it * 16, it * 16 + 16),
                    Digest([it.to_le_bytes()[0]; 16]),
                )
            })
            .collect();
        let bytes = write_asked(&asked);
        assert_eq!(read_asked(&bytes, 1024, 4096), Some(asked.clone()));
        assert_eq!(read_asked(&bytes, 1023, 4096), None, "beyond the end");
        assert_eq!(read_asked(&bytes[1..], 1024, 4096), None);
        assert_eq!(read_asked(&bytes, 1024, 8192), None, "longer than a part");
        let more = [&bytes[..], &bytes[..32]].concat();
        assert_eq!(read_asked(&more, 1024, 4096), None);
        let mut empty = bytes;
        empty[8] = 0;
        assert_eq!(read_asked(&empty, 1024, 4096), None, "no blocks");

        let answered = Answered::from([
            (0, Vec::new()),
            (64, vec![Digest([1; 16]), Digest([2; 16])]),
            (u64::MAX, vec![Digest([3; 16])]),
        ]);
        let bytes = write_answered(&answered);
        assert_eq!(read_answered(&bytes), Some(answered));
        assert_eq!(read_answered(&bytes[..bytes.len() - 1]), None);
        assert_eq!(read_answered(&[&bytes[..], &bytes[..16]].concat()), None);
        assert_eq!(read_answered(&[]), Some(Answered::new()));
    }
}
