//! Cutting the byte stream into frames: what comes next, how long it is, and where it goes.
//!
//! ```text
//!   first frame 128 --> header 24 --> body --> memory --> data --> header ...
//! ```

use crate::frame::Header;
use crate::limits::{FIRST_BYTES, HEADER_BYTES};
use units::{Buf, BufMut};

/// What the driver must hand in next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// So many bytes, in any number of pieces: into `chunk`, then `filled`; or by `receive`. Never
    /// 0.
    Head {
        /// Bytes that are left of this part of the frame.
        bytes: usize,
    },
    /// Memory of exactly so many bytes, for `give_memory`. Until it is there nothing is received.
    Memory {
        /// Bytes, at most [`DATA_BYTES_MAX`](crate::DATA_BYTES_MAX).
        bytes: usize,
    },
    /// So many bytes of data, in any number of pieces: into `chunk`, then `filled`. Never 0.
    Data {
        /// Bytes that are left of the data.
        bytes: usize,
    },
    /// Nothing any more: the connection is over.
    Nothing,
}

/// What has become whole.
pub(crate) enum Whole {
    First,
    Header,
    Body(Header),
    Data(Buf),
}

enum Part {
    First,
    Header,
    Body(Header),
    Memory { bytes: usize },
    Data { memory: BufMut, done: usize },
}

/// The receiving half of a connection's framing.
pub(crate) struct Receiver {
    part: Part,
    /// The first frame, a header or a body, as long as it will be.
    head: Vec<u8>,
    done: usize,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self {
            part: Part::First,
            head: vec![0; FIRST_BYTES],
            done: 0,
        }
    }

    fn expect(&mut self, part: Part, bytes: usize) {
        self.part = part;
        self.done = 0;
        self.head.clear();
        self.head.resize(bytes, 0);
    }

    /// A frame begins.
    pub(crate) fn begin(&mut self) {
        self.expect(Part::Header, HEADER_BYTES);
    }

    pub(crate) fn expect_body(&mut self, header: Header) {
        self.expect(Part::Body(header), header.body_bytes);
    }

    pub(crate) fn expect_data(&mut self, bytes: usize) {
        self.expect(Part::Memory { bytes }, 0);
    }

    pub(crate) fn want(&self) -> Want {
        match &self.part {
            Part::First | Part::Header | Part::Body(_) => Want::Head {
                bytes: self.head.len().saturating_sub(self.done),
            },
            Part::Memory { bytes } => Want::Memory { bytes: *bytes },
            Part::Data { memory, done } => Want::Data {
                bytes: memory.len().saturating_sub(*done),
            },
        }
    }

    pub(crate) fn chunk(&mut self) -> &mut [u8] {
        match &mut self.part {
            Part::First | Part::Header | Part::Body(_) => {
                self.head.get_mut(self.done..).unwrap_or_default()
            }
            Part::Memory { .. } => &mut [],
            Part::Data { memory, done } => memory.chunk_mut(*done),
        }
    }

    pub(crate) fn filled(&mut self, n: usize) -> Option<Whole> {
        assert!(
            n <= self.chunk().len(),
            "no more is filled than the chunk has"
        );
        if let Part::Data { memory, done } = &mut self.part {
            *done = done.saturating_add(n);
            if *done < memory.len() {
                return None;
            }
            let Part::Data { memory, .. } = std::mem::replace(&mut self.part, Part::Header) else {
                unreachable!("it was data");
            };
            self.begin();
            return Some(Whole::Data(memory.freeze()));
        }
        self.done = self.done.saturating_add(n);
        if self.done < self.head.len() {
            return None;
        }
        match &self.part {
            Part::First => Some(Whole::First),
            Part::Header => Some(Whole::Header),
            Part::Body(header) => Some(Whole::Body(*header)),
            Part::Memory { .. } | Part::Data { .. } => None,
        }
    }

    /// The first frame or the header that is whole.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The body that is whole.
    pub(crate) fn take_head(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.head)
    }

    pub(crate) fn give_memory(&mut self, memory: BufMut) {
        let Part::Memory { bytes } = self.part else {
            panic!("the driver gave memory where {:?} was wanted", self.want());
        };
        assert_eq!(memory.len(), bytes, "the driver gives what was wanted");
        self.part = Part::Data { memory, done: 0 };
    }

    pub(crate) fn drop_memory(&mut self) {
        self.expect(Part::Header, 0);
    }

    /// Bytes of memory that are held for what comes.
    pub(crate) fn held_bytes(&self) -> usize {
        let data = match &self.part {
            Part::Data { memory, .. } => memory.len(),
            Part::First | Part::Header | Part::Body(_) | Part::Memory { .. } => 0,
        };
        self.head.capacity().saturating_add(data)
    }
}
