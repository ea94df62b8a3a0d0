//! What waits to be sent: heads and data, in order, out in one vectored send.

use std::collections::VecDeque;
use std::io::IoSlice;
use units::Buf;

/// Pieces of one send; the door takes 1024.
const SLICES_MAX: usize = 512;

enum Piece {
    Bytes(Vec<u8>),
    Data(Buf),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that have gone.
    gone: usize,
    /// Bytes of data that wait.
    data: usize,
}

impl Outbox {
    /// Nothing waits.
    pub(crate) fn is_empty(&mut self) -> bool {
        if matches!(self.pieces.back(), Some(Piece::Bytes(bytes)) if bytes.is_empty()) {
            let _nothing = self.pieces.pop_back();
        }
        self.pieces.is_empty()
    }

    /// Bytes of data that it keeps in memory.
    pub(crate) fn data_bytes(&self) -> usize {
        self.data
    }

    /// The bytes at the end, to write a head to.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        if !matches!(self.pieces.back(), Some(Piece::Bytes(_))) {
            self.pieces.push_back(Piece::Bytes(Vec::with_capacity(256)));
        }
        match self.pieces.back_mut() {
            Some(Piece::Bytes(bytes)) => bytes,
            Some(Piece::Data(_)) | None => unreachable!("pushed just now"),
        }
    }

    pub(crate) fn push(&mut self, data: Buf) {
        if !data.is_empty() {
            self.data += data.len();
            self.pieces.push_back(Piece::Data(data));
        }
    }

    /// What to send next.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(self.pieces.len().min(SLICES_MAX));
        let mut skip = self.gone;
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => add(&mut slices, &mut skip, bytes),
                Piece::Data(data) => {
                    for segment in data.segments() {
                        add(&mut slices, &mut skip, segment);
                    }
                }
            }
            if slices.len() >= SLICES_MAX {
                break;
            }
        }
        slices
    }

    /// So many bytes have gone.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.gone += bytes;
        while let Some(first) = self.pieces.front() {
            let len = match first {
                Piece::Bytes(bytes) => bytes.len(),
                Piece::Data(data) => data.len(),
            };
            if self.gone < len {
                return;
            }
            self.gone -= len;
            if let Some(Piece::Data(data)) = self.pieces.pop_front() {
                self.data -= data.len();
            }
        }
    }
}

fn add<'a>(slices: &mut Vec<IoSlice<'a>>, skip: &mut usize, bytes: &'a [u8]) {
    let cut = (*skip).min(bytes.len());
    *skip -= cut;
    if cut < bytes.len() && slices.len() < SLICES_MAX {
        slices.push(IoSlice::new(&bytes[cut..]));
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn everything_leaves_in_order_however_little_goes_at_a_time() {
        let mut outbox = Outbox::default();
        assert!(outbox.is_empty());
        let mut expected = Vec::new();
        for turn in 0..100_u8 {
            let head = vec![turn; usize::from(turn % 5)];
            outbox.tail().extend_from_slice(&head);
            expected.extend_from_slice(&head);
            let mut data = Buf::copy_of(&vec![turn; 700]);
            data.append(&Buf::copy_of(&vec![!turn; 300]));
            expected.extend_from_slice(&data.to_vec());
            outbox.push(data);
        }
        assert_eq!(outbox.data_bytes(), 100_000);
        let (mut seen, mut step) = (Vec::new(), 1);
        while !outbox.is_empty() {
            let all: Vec<u8> = outbox
                .slices()
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .collect();
            let taken = step.min(all.len());
            seen.extend_from_slice(&all[..taken]);
            outbox.advance(taken);
            step = step % 1777 + 13;
        }
        assert!(seen == expected);
        assert_eq!(outbox.data_bytes(), 0);
    }
}
