//! What is to be sent: frames in order, as pieces for one vectored send over many of them.
//!
//! ```text
//!   | head: header and body | data: the owner's Bufs, never copied | head | ...
//! ```
//!
//! **Contract.** [`Transmit::pieces`] starts at the first byte that was not reported to
//! [`Transmit::sent`]. A `Buf` is held until its last byte was sent.

use std::collections::VecDeque;
use units::Buf;

/// Outgoing frames of one connection.
#[derive(Default)]
pub struct Transmit {
    queue: VecDeque<Outgoing>,
    /// Bytes of the first frame that are gone already.
    front_sent: usize,
    bytes: usize,
}

struct Outgoing {
    head: Vec<u8>,
    data: Buf,
}

impl Outgoing {
    fn len(&self) -> usize {
        self.head.len().saturating_add(self.data.len())
    }
}

impl Transmit {
    /// Nothing is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that wait.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Every contiguous piece that waits, in order; none is empty. Take as many as one vectored
    /// send holds.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut skip = self.front_sent;
        self.queue
            .iter()
            .flat_map(|frame| core::iter::once(frame.head.as_slice()).chain(frame.data.segments()))
            .filter_map(move |piece| {
                let cut = skip.min(piece.len());
                skip = skip.saturating_sub(cut);
                piece.get(cut..).filter(|rest| !rest.is_empty())
            })
    }

    /// Frames of which nothing was sent yet, in order: the head, and the data by reference. For
    /// links that send from memory which they hold until the other side has it.
    pub fn frames(&self) -> impl Iterator<Item = (&[u8], &Buf)> {
        let begun = usize::from(self.front_sent > 0);
        let whole = self.queue.iter().skip(begun);
        whole.map(|frame| (frame.head.as_slice(), &frame.data))
    }

    /// The next `bytes` bytes of [`Transmit::pieces`] have been given to the link.
    ///
    /// # Panics
    /// If more was sent than was waiting.
    pub fn sent(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes, "more was sent than was waiting");
        self.bytes = self.bytes.saturating_sub(bytes);
        self.front_sent = self.front_sent.saturating_add(bytes);
        while let Some(front) = self.queue.front()
            && self.front_sent >= front.len()
        {
            self.front_sent = self.front_sent.saturating_sub(front.len());
            self.queue.pop_front();
        }
    }

    pub(crate) fn push(&mut self, head: Vec<u8>, data: Buf) {
        let frame = Outgoing { head, data };
        self.bytes = self.bytes.saturating_add(frame.len());
        self.queue.push_back(frame);
    }
}
