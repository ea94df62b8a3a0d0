//! What lies over a file: pieces by offset that never overlap.

use crate::file::Extent;
use std::collections::BTreeMap;
use units::Buf;

/// Pieces of a file that the system does not have.
#[derive(Default)]
pub(super) struct Overlay(BTreeMap<u64, Piece>);

#[derive(Clone)]
pub(super) enum Piece {
    /// These bytes.
    Bytes(Buf),
    /// So many zeroes that take no space.
    Hole(u64),
    /// So many zeroes that keep their space.
    Zeroes(u64),
}

impl Piece {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(data) => data.len() as u64,
            Self::Hole(len) | Self::Zeroes(len) => *len,
        }
    }

    /// The first `len` bytes, which it has.
    pub(super) fn cut_to(&self, len: u64) -> Self {
        self.part(0, len)
    }

    fn part(&self, from: u64, to: u64) -> Self {
        match self {
            Self::Bytes(data) => {
                let at = |offset| usize::try_from(offset).expect("inside a buffer");
                Self::Bytes(data.slice(at(from)..at(to)))
            }
            Self::Hole(_) => Self::Hole(to - from),
            Self::Zeroes(_) => Self::Zeroes(to - from),
        }
    }
}

impl Overlay {
    /// Puts `piece` over whatever is there.
    pub(super) fn put(&mut self, offset: u64, piece: Piece) {
        if piece.len() > 0 {
            self.clear(offset, piece.len());
            self.0.insert(offset, piece);
        }
    }

    /// Takes away what lies over the range.
    pub(super) fn clear(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let touched: Vec<u64> = self.over(offset, end).map(|(start, _)| start).collect();
        for start in touched {
            let piece = self.0.remove(&start).expect("found just above");
            let piece_end = start + piece.len();
            if start < offset {
                self.0.insert(start, piece.part(0, offset - start));
            }
            if piece_end > end {
                self.0
                    .insert(end, piece.part(end - start, piece_end - start));
            }
        }
    }

    /// The pieces that touch `[from, to)`, in order.
    fn over(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &Piece)> {
        let before = self.0.range(..from).next_back();
        before
            .into_iter()
            .chain(self.0.range(from..to))
            .map(|(&start, piece)| (start, piece))
            .filter(move |(start, piece)| start + piece.len() > from && *start < to)
    }

    /// Calls `fill` with each run of bytes over the range and its offset from the range's start.
    pub(super) fn read(&self, offset: u64, len: u64, mut fill: impl FnMut(u64, &[u8])) {
        const ZEROES: [u8; 4096] = [0; 4096];
        let end = offset + len;
        for (start, piece) in self.over(offset, end) {
            let (from, to) = (start.max(offset), (start + piece.len()).min(end));
            let mut at = from - offset;
            match piece.part(from - start, to - start) {
                Piece::Bytes(data) => {
                    for segment in data.segments() {
                        fill(at, segment);
                        at += segment.len() as u64;
                    }
                }
                Piece::Hole(mut left) | Piece::Zeroes(mut left) => {
                    while left > 0 {
                        let n = left.min(ZEROES.len() as u64);
                        fill(at, &ZEROES[..usize::try_from(n).expect("at most 4096")]);
                        at += n;
                        left -= n;
                    }
                }
            }
        }
    }

    /// The system's `extent` in parts, as what lies over it says.
    pub(super) fn split(&self, extent: Extent, mut part: impl FnMut(Extent)) {
        let end = extent.offset + extent.len;
        let mut at = extent.offset;
        let mut give = |from: u64, to: u64, allocated| {
            if from < to {
                part(Extent {
                    offset: from,
                    len: to - from,
                    allocated,
                });
            }
        };
        for (start, piece) in self.over(extent.offset, end) {
            let (from, to) = (start.max(at), (start + piece.len()).min(end));
            give(at, from, extent.allocated);
            give(from, to, !matches!(piece, Piece::Hole(_)));
            at = to;
        }
        give(at, end, extent.allocated);
    }

    /// The first piece.
    pub(super) fn first(&self) -> Option<(u64, &Piece)> {
        self.0
            .first_key_value()
            .map(|(&offset, piece)| (offset, piece))
    }

    /// Takes away the piece that starts at `offset`.
    pub(super) fn remove(&mut self, offset: u64) {
        self.0.remove(&offset);
    }
}
