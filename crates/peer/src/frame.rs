//! What all frames after the first one have in common: a header of 24 bytes, and a body.

use crate::ids::Purpose;
use crate::limits::{BODY_BYTES_MAX, DATA_BYTES_MAX, HEADER_BYTES};
use crate::refusal::Breach;
use crate::rules::holds;
use formats::{Reader, Writer, crc32c};

const MAY_BE_IGNORED: u8 = 1;
/// Bytes that the header's checksum covers.
const COVERED: usize = HEADER_BYTES - 4;

/// What a frame is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Message,
    Records,
    Acks,
    Commits,
    Credits,
    Beacon,
    Answer,
    Bye,
    Unit,
    Forward,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Message,
        Self::Records,
        Self::Acks,
        Self::Commits,
        Self::Credits,
        Self::Beacon,
        Self::Answer,
        Self::Bye,
        Self::Unit,
        Self::Forward,
    ];

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::Records => 2,
            Self::Acks => 3,
            Self::Commits => 4,
            Self::Credits => 5,
            Self::Beacon => 6,
            Self::Answer => 7,
            Self::Bye => 8,
            Self::Unit => 9,
            Self::Forward => 10,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether it belongs on a connection for this.
    pub(crate) const fn belongs_on(self, purpose: Purpose) -> bool {
        match self {
            Self::Message | Self::Unit => matches!(purpose, Purpose::Control),
            Self::Records => matches!(purpose, Purpose::Ring(_)),
            Self::Credits => !matches!(purpose, Purpose::Control),
            Self::Forward => matches!(purpose, Purpose::Forward),
            Self::Acks | Self::Commits | Self::Answer => !matches!(purpose, Purpose::Forward),
            Self::Beacon | Self::Bye => true,
        }
    }
}

/// A frame's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// `None`: one that this version does not know, and that may be ignored.
    pub(crate) kind: Option<Kind>,
    pub(crate) body_bytes: usize,
    pub(crate) data_bytes: usize,
    pub(crate) body_crc: u32,
}

/// Puts the header before a body that has room for it: `frame` begins with 24 bytes of any value.
pub(crate) fn finish(mut frame: Vec<u8>, kind: Kind, data_bytes: usize, sequence: u32) -> Vec<u8> {
    let Some((header, body)) = frame.split_first_chunk_mut::<HEADER_BYTES>() else {
        unreachable!("frames are begun with room for their header");
    };
    let length = |bytes: usize| u32::try_from(bytes).expect("frames are cut to their limits");
    let mut fields = Writer::with_capacity(HEADER_BYTES);
    fields
        .u8(kind.code())
        .u8(0)
        .u16(0)
        .u32(length(body.len()))
        .u32(length(data_bytes))
        .u32(crc32c(body))
        .u32(sequence);
    let bytes = fields.into_bytes();
    let crc = crc32c(&bytes).to_le_bytes();
    let (covered, checksum) = header.split_at_mut(COVERED);
    covered.copy_from_slice(&bytes);
    checksum.copy_from_slice(&crc);
    frame
}

impl Header {
    /// Reads a header that is to be the frame `expected`, on a connection for `purpose`.
    pub(crate) fn read(bytes: &[u8], expected: u32, purpose: Purpose) -> Result<Self, Breach> {
        let covered = bytes.get(..COVERED).unwrap_or_default();
        let mut fields = Reader::new(bytes);
        let read = |fields: &mut Reader<'_>| {
            let (kind, flags, zero) = (fields.u8()?, fields.u8()?, fields.u16()?);
            let (body_bytes, data_bytes) = (fields.u32()?, fields.u32()?);
            let (body_crc, sequence, crc) = (fields.u32()?, fields.u32()?, fields.u32()?);
            let lengths = (to_usize(body_bytes)?, to_usize(data_bytes)?);
            Some((kind, flags, zero, lengths, body_crc, sequence, crc))
        };
        let Some((kind, flags, zero, lengths, body_crc, sequence, crc)) = read(&mut fields) else {
            return Err(Breach::HeaderDamaged);
        };
        if crc != crc32c(covered) && holds!(HeadersAreChecked) {
            return Err(Breach::HeaderDamaged);
        }
        if sequence != expected && holds!(FramesAreInOrder) {
            return Err(Breach::OutOfOrder {
                expected,
                found: sequence,
            });
        }
        let (body_bytes, data_bytes) = lengths;
        let known = Kind::of_code(kind);
        match known {
            None if flags != MAY_BE_IGNORED => return Err(Breach::UnknownKind(kind)),
            Some(_) if flags != 0 => return Err(Breach::Malformed("a flag that it has not")),
            Some(known) if !known.belongs_on(purpose) => return Err(Breach::NotHere(purpose)),
            None | Some(_) => {}
        }
        if zero != 0 {
            return Err(Breach::Malformed("what is to be zero is not"));
        }
        let data_bytes_max = if matches!(known, Some(Kind::Records | Kind::Forward)) {
            DATA_BYTES_MAX
        } else {
            0
        };
        if body_bytes > BODY_BYTES_MAX || data_bytes > data_bytes_max {
            return Err(Breach::TooLong);
        }
        Ok(Self {
            kind: known,
            body_bytes,
            data_bytes,
            body_crc,
        })
    }

    /// The body is the one that the header was written for.
    pub(crate) fn fits(&self, body: &[u8]) -> Result<(), Breach> {
        if crc32c(body) != self.body_crc && holds!(BodiesAreChecked) {
            return Err(Breach::BodyDamaged);
        }
        Ok(())
    }
}

fn to_usize(bytes: u32) -> Option<usize> {
    usize::try_from(bytes).ok()
}

/// A frame whose body is written next: with room for its header.
pub(crate) fn begin(body_bytes: usize) -> Writer {
    let mut frame = Writer::with_capacity(HEADER_BYTES.saturating_add(body_bytes));
    frame.bytes(&[0; HEADER_BYTES]);
    frame
}
