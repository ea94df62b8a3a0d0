//! Cutting the byte stream into PDUs: what comes next, how long it is, and whether its digest is
//! right.
//!
//! ```text
//!   header 48 (+4 digest) --AHS?--> rest of header --> data segment --> pad + digest --> ...
//! ```
//!
//! Where payload goes is the connection's business; this machine only counts it.
//!
//! Spec: RFC 7143 11.2 "PDU Template, Header, and Opcodes".

use crate::bhs::{self, BHS_BYTES, Bhs};
use crate::digest::{self, DIGEST_BYTES};
use crate::transmit::pad_bytes;
use crate::violation::{Violation, ViolationKind};

/// What the driver must hand in next. All byte counts are exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// This many contiguous bytes for `receive_header`; they are consumed. A header with additional
    /// segments is asked for in two parts. Never 0.
    Header {
        /// Bytes, at most 1024.
        bytes: usize,
    },
    /// This many bytes of payload, in any number of pieces: into `data_chunk`, then `data_filled`.
    /// Never 0.
    Data {
        /// Bytes that are left of the data segment.
        bytes: usize,
    },
    /// This many contiguous bytes for `receive_trailer`: padding and data digest. Never 0.
    Trailer {
        /// Bytes, at most 7.
        bytes: usize,
    },
    /// Nothing any more: the connection is closing.
    Nothing,
}

/// Where in a PDU the stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PduPart {
    Header,
    /// The additional header segments, and with them the rest of the digest.
    Additional {
        bytes: usize,
    },
    Data {
        left: usize,
    },
    Trailer {
        bytes: usize,
    },
}

/// What became of a piece of header.
pub(crate) enum HeaderProgress {
    /// More of it follows.
    Partial,
    /// It is whole and its digest is right.
    Complete,
}

/// The receiving half of a connection's framing.
pub(crate) struct Receiver {
    place: PduPart,
    bhs: Bhs,
    /// Additional header segments of this PDU (then digest while it comes in).
    additional: Vec<u8>,
    data_length: usize,
    running: digest::Running,
    header_digest: bool,
    data_digest: bool,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self {
            place: PduPart::Header,
            bhs: [0; BHS_BYTES],
            additional: Vec::new(),
            data_length: 0,
            running: digest::Running::default(),
            header_digest: false,
            data_digest: false,
        }
    }

    /// Digests from the next PDU on.
    pub(crate) fn set_digests(&mut self, header: bool, data: bool) {
        self.header_digest = header;
        self.data_digest = data;
    }

    pub(crate) fn want(&self) -> Want {
        match self.place {
            PduPart::Header if self.header_digest => Want::Header {
                bytes: BHS_BYTES.saturating_add(DIGEST_BYTES),
            },
            PduPart::Header => Want::Header { bytes: BHS_BYTES },
            PduPart::Additional { bytes } => Want::Header { bytes },
            PduPart::Data { left } => Want::Data { bytes: left },
            PduPart::Trailer { bytes } => Want::Trailer { bytes },
        }
    }

    pub(crate) fn bhs(&self) -> &Bhs {
        &self.bhs
    }

    /// The additional header segments, without digest.
    pub(crate) fn additional(&self) -> &[u8] {
        let bytes = bhs::ahs_bytes(&self.bhs);
        self.additional.get(..bytes).unwrap_or_default()
    }

    /// Length of the data segment of this PDU.
    pub(crate) fn data_length(&self) -> usize {
        self.data_length
    }

    /// Bytes of the data segment that have come in.
    pub(crate) fn data_done(&self) -> usize {
        match self.place {
            PduPart::Data { left } => self.data_length.saturating_sub(left),
            PduPart::Header | PduPart::Additional { .. } | PduPart::Trailer { .. } => {
                self.data_length
            }
        }
    }

    /// Takes the bytes that `want` asked for.
    pub(crate) fn header(&mut self, bytes: &[u8]) -> Result<HeaderProgress, Violation> {
        let Want::Header { bytes: wanted } = self.want() else {
            panic!(
                "the driver handed in a header where {:?} was wanted",
                self.want()
            );
        };
        assert_eq!(bytes.len(), wanted, "the driver hands in what was wanted");
        if let PduPart::Additional { .. } = self.place {
            self.additional.extend_from_slice(bytes);
            return self.header_complete();
        }
        let (bhs, digest) = bytes.split_at(BHS_BYTES);
        self.bhs.copy_from_slice(bhs);
        self.additional.clear();
        self.additional.extend_from_slice(digest);
        match bhs::ahs_bytes(&self.bhs) {
            0 => self.header_complete(),
            // With a digest, four bytes of the additional segments have come in its place.
            bytes => {
                self.place = PduPart::Additional { bytes };
                Ok(HeaderProgress::Partial)
            }
        }
    }

    fn header_complete(&mut self) -> Result<HeaderProgress, Violation> {
        if self.header_digest {
            let (segments, digest) = self
                .additional
                .split_at(bhs::ahs_bytes(&self.bhs).min(self.additional.len()));
            let mut running = digest::Running::default();
            running.update(&self.bhs);
            running.update(segments);
            if running.finish() != digest {
                return Err(Violation::new(
                    ViolationKind::HeaderDigest,
                    "7.7 \"Digest Errors\"",
                    "the header does not match its digest",
                ));
            }
        }
        self.data_length = bhs::data_segment_length(&self.bhs) as usize;
        self.running = digest::Running::default();
        self.place = match self.data_length {
            0 => PduPart::Header,
            left => PduPart::Data { left },
        };
        Ok(HeaderProgress::Complete)
    }

    /// Data segments carry digests.
    pub(crate) fn digests_data(&self) -> bool {
        self.data_digest
    }

    /// These bytes of payload belong to the running digest.
    pub(crate) fn digest(&mut self, bytes: &[u8]) {
        self.running.update(bytes);
    }

    /// Lends the running digest out while its bytes are borrowed.
    pub(crate) fn take_digest(&mut self) -> digest::Running {
        core::mem::take(&mut self.running)
    }

    /// Takes it back.
    pub(crate) fn put_digest(&mut self, running: digest::Running) {
        self.running = running;
    }

    /// The next `bytes` bytes of payload have come. True: the PDU is whole.
    pub(crate) fn data(&mut self, bytes: usize) -> bool {
        let PduPart::Data { left } = self.place else {
            panic!("the driver filled data where {:?} was wanted", self.want());
        };
        assert!(bytes <= left, "the driver fills no more than was wanted");
        let left = left.saturating_sub(bytes);
        if left > 0 {
            self.place = PduPart::Data { left };
            return false;
        }
        let digest = if self.data_digest { DIGEST_BYTES } else { 0 };
        match pad_bytes(self.data_length).saturating_add(digest) {
            0 => {
                self.place = PduPart::Header;
                true
            }
            bytes => {
                self.place = PduPart::Trailer { bytes };
                false
            }
        }
    }

    /// Bytes of padding and digest that will follow the data segment, where it has a digest; 0
    /// where it has none.
    pub(crate) fn trailer_ahead(&self) -> usize {
        if self.data_digest {
            pad_bytes(self.data_length).saturating_add(DIGEST_BYTES)
        } else {
            0
        }
    }

    /// The whole data segment matches the digest in its trailer.
    pub(crate) fn matches(&self, payload: &[u8], trailer: &[u8]) -> bool {
        let (pad, digest) = trailer.split_at(pad_bytes(payload.len()).min(trailer.len()));
        let mut running = digest::Running::default();
        running.update(payload);
        running.update(pad);
        running.finish() == digest
    }

    /// The trailer was checked before.
    pub(crate) fn skip_trailer(&mut self) {
        if let PduPart::Trailer { .. } = self.place {
            self.place = PduPart::Header;
        }
    }

    /// Padding and digest. True: the data segment matches its digest, if it has one. The PDU is
    /// whole.
    pub(crate) fn trailer(&mut self, bytes: &[u8]) -> bool {
        let PduPart::Trailer { bytes: wanted } = self.place else {
            panic!(
                "the driver handed in a trailer where {:?} was wanted",
                self.want()
            );
        };
        assert_eq!(bytes.len(), wanted, "the driver hands in what was wanted");
        self.place = PduPart::Header;
        if !self.data_digest {
            return true;
        }
        let (pad, digest) = bytes.split_at(pad_bytes(self.data_length).min(bytes.len()));
        self.running.update(pad);
        self.running.finish() == digest
    }
}
