//! What is to be sent: PDUs in order, as pieces for one vectored send over many of them.
//!
//! ```text
//!   | header (48, +4 digest) | data: the caller's Buf, never copied | pad, digest (0 to 7) | ...
//! ```
//!
//! **Contract.** [`Transmit::pieces`] starts at the first byte that was not reported to
//! [`Transmit::sent`]. A `Buf` is held until its last byte was sent.

use crate::bhs::{self, BHS_BYTES, Bhs};
use crate::digest::{self, DIGEST_BYTES};
use std::collections::VecDeque;
use units::Buf;

/// Outgoing PDUs of one connection.
#[derive(Default)]
pub struct Transmit {
    queue: VecDeque<Outgoing>,
    /// Bytes of the first PDU that are gone already.
    front_sent: usize,
    bytes: usize,
    /// Bytes that are gone, since the beginning.
    position: u64,
    header_digest: bool,
    data_digest: bool,
}

struct Outgoing {
    head: [u8; BHS_BYTES + DIGEST_BYTES],
    head_len: u8,
    tail: [u8; 8],
    tail_len: u8,
    data: Buf,
}

impl Outgoing {
    fn head(&self) -> &[u8] {
        self.head
            .get(..usize::from(self.head_len))
            .unwrap_or_default()
    }

    fn tail(&self) -> &[u8] {
        self.tail
            .get(..usize::from(self.tail_len))
            .unwrap_or_default()
    }

    fn len(&self) -> usize {
        usize::from(self.head_len)
            .saturating_add(self.data.len())
            .saturating_add(usize::from(self.tail_len))
    }
}

impl Transmit {
    /// Nothing is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that wait. A driver that sees this grow past its limit stops receiving: the peer's
    /// window then closes by itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that are gone, since the beginning.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Where the next PDU will stand in the stream of bytes.
    pub(crate) fn end(&self) -> u64 {
        self.position.saturating_add(self.bytes as u64)
    }

    /// PDUs that wait.
    #[must_use]
    pub fn pdu_count(&self) -> usize {
        self.queue.len()
    }

    /// Every contiguous piece that waits, in order; none is empty. Take as many as one vectored
    /// send holds.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut skip = self.front_sent;
        self.queue
            .iter()
            .flat_map(|pdu| {
                core::iter::once(pdu.head())
                    .chain(pdu.data.segments())
                    .chain(core::iter::once(pdu.tail()))
            })
            .filter_map(move |piece| {
                let cut = skip.min(piece.len());
                skip = skip.saturating_sub(cut);
                piece.get(cut..).filter(|rest| !rest.is_empty())
            })
    }

    /// The next `bytes` bytes of [`Transmit::pieces`] have been given to the socket.
    ///
    /// # Panics
    /// If more was sent than was waiting.
    pub fn sent(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes, "more was sent than was waiting");
        self.bytes = self.bytes.saturating_sub(bytes);
        self.position = self.position.saturating_add(bytes as u64);
        self.front_sent = self.front_sent.saturating_add(bytes);
        while let Some(front) = self.queue.front()
            && self.front_sent >= front.len()
        {
            self.front_sent = self.front_sent.saturating_sub(front.len());
            self.queue.pop_front();
        }
    }

    /// Digests of every PDU from the next one on.
    pub(crate) fn set_digests(&mut self, header: bool, data: bool) {
        self.header_digest = header;
        self.data_digest = data;
    }

    /// Adds a PDU; the length of its data segment is written here.
    pub(crate) fn push(&mut self, mut bhs: Bhs, data: Buf) {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        debug_assert!(length < 1 << 24, "callers cut data to the peer's limit");
        bhs::set_data_segment_length(&mut bhs, length);
        let mut head = [0; BHS_BYTES + DIGEST_BYTES];
        let (first, digest) = head.split_at_mut(BHS_BYTES);
        first.copy_from_slice(&bhs);
        let mut head_len = 48u8;
        if self.header_digest {
            digest.copy_from_slice(&digest::crc32c(&bhs));
            head_len = 52;
        }
        let (tail, tail_len) = self.tail_of(&data);
        let pdu = Outgoing {
            head,
            head_len,
            tail,
            tail_len,
            data,
        };
        self.bytes = self.bytes.saturating_add(pdu.len());
        self.queue.push_back(pdu);
    }

    /// Padding and digest after `data`.
    fn tail_of(&self, data: &Buf) -> ([u8; 8], u8) {
        let mut tail = [0; 8];
        if data.is_empty() {
            return (tail, 0);
        }
        let pad = pad_bytes(data.len());
        let mut len = pad;
        if self.data_digest {
            let mut running = digest::Running::default();
            for segment in data.segments() {
                running.update(segment);
            }
            running.update(tail.get(..pad).unwrap_or_default());
            if let Some(place) = tail.get_mut(pad..pad.saturating_add(DIGEST_BYTES)) {
                place.copy_from_slice(&running.finish());
            }
            len = len.saturating_add(DIGEST_BYTES);
        }
        (tail, u8::try_from(len).unwrap_or_default())
    }
}

/// Bytes that fill a data segment of `len` bytes to a multiple of four.
pub(crate) const fn pad_bytes(len: usize) -> usize {
    len.wrapping_neg() & 3
}
