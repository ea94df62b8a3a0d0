//! What nodes say to each other of a unit, beside its blocks: state that hosts set, ports, and
//! digests of blocks. All are bytes that this crate does not read, cut into parts that fit into
//! frames.

use crate::limits::{BODY_BYTES_MAX, HEADER_BYTES};
use formats::{Reader, Writer};
use journal::VolumeId;
use replica::Epoch;

/// Bytes of the body before those of the part.
const FIXED: usize = 40;

/// Bytes of one part at most.
const PART_BYTES_MAX: usize = BODY_BYTES_MAX - HEADER_BYTES - FIXED;

/// Bytes of all parts together at most.
pub const UNIT_BYTES_MAX: usize = 1 << 20;

/// What it is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnitSubject {
    /// The sender's own ports, and who may use them.
    Ports,
    /// The state that hosts set, from the owner.
    State,
    /// That state is stable at the sender.
    Stable,
    /// The sender has had this state since before it lost power last.
    Lived,
    /// Digests of the owner's blocks: which of them has the copy otherwise?
    Compare,
    /// Digests of those that the copy has otherwise.
    Compared,
}

impl UnitSubject {
    const ALL: [Self; 6] = [
        Self::Ports,
        Self::State,
        Self::Stable,
        Self::Lived,
        Self::Compare,
        Self::Compared,
    ];

    const fn code(self) -> u8 {
        match self {
            Self::Ports => 1,
            Self::State => 2,
            Self::Stable => 3,
            Self::Lived => 4,
            Self::Compare => 5,
            Self::Compared => 6,
        }
    }
}

/// Something about a unit, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitPart {
    /// What it is about.
    pub subject: UnitSubject,
    /// Of a state: not all nodes have lost power since it was set.
    pub lived: bool,
    /// Of a state, or of digests: the epoch of the owner that says it, or that is answered,
    pub epoch: Epoch,
    /// and how many there were in that epoch; of digests: the number of the question.
    pub version: u64,
    /// Bytes of all parts.
    pub total: u32,
    /// Bytes before this part.
    pub at: u32,
    /// Its own.
    pub bytes: Vec<u8>,
}

impl UnitPart {
    /// The parts of something, in order: one at least.
    #[must_use]
    pub fn cut(whole: &Self) -> Vec<Self> {
        let pieces = whole.bytes.chunks(PART_BYTES_MAX);
        let pieces: Vec<&[u8]> = match whole.bytes.is_empty() {
            true => vec![&[]],
            false => pieces.collect(),
        };
        let mut at = 0_u32;
        let parts = pieces.into_iter().map(|bytes| {
            let part = Self {
                at,
                bytes: bytes.to_vec(),
                ..Self::blank(whole)
            };
            at = at.saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            part
        });
        parts.collect()
    }

    const fn blank(of: &Self) -> Self {
        Self {
            subject: of.subject,
            lived: of.lived,
            epoch: of.epoch,
            version: of.version,
            total: of.total,
            at: 0,
            bytes: Vec::new(),
        }
    }

    /// The next part came: answers whether all are here then. Parts of another thing begin anew.
    ///
    /// # Errors
    /// It does not follow what is here.
    pub fn join(&mut self, next: Self) -> Result<bool, NotNext> {
        let is_same = Self::blank(self) == Self::blank(&next);
        if next.at == 0 {
            *self = next;
        } else if is_same && usize::try_from(next.at) == Ok(self.bytes.len()) {
            self.bytes.extend(next.bytes);
        } else {
            return Err(NotNext);
        }
        Ok(usize::try_from(self.total) == Ok(self.bytes.len()))
    }

    pub(crate) fn write(&self, volume: VolumeId, to: &mut Writer) {
        to.u64(volume.0)
            .u8(self.subject.code())
            .u8(self.lived.into())
            .u16(0)
            .u32(self.total)
            .u64(self.epoch.0)
            .u64(self.version)
            .u32(self.at)
            .u32(0)
            .bytes(&self.bytes);
    }

    pub(crate) fn read(body: &[u8]) -> Option<(VolumeId, Self)> {
        let mut fields = Reader::new(body);
        let volume = VolumeId(fields.u64()?);
        let (code, lived, zero) = (fields.u8()?, fields.u8()?, fields.u16()?);
        let subject = UnitSubject::ALL.into_iter().find(|it| it.code() == code)?;
        let total = fields.u32()?;
        let (epoch, version) = (Epoch(fields.u64()?), fields.u64()?);
        let (at, zeroes) = (fields.u32()?, fields.u32()?);
        let bytes = body.get(FIXED..)?.to_vec();
        let end = usize::try_from(at).ok()?.checked_add(bytes.len())?;
        let total_bytes = usize::try_from(total).ok()?;
        let is_sound = zero == 0
            && zeroes == 0
            && lived <= 1
            && total_bytes <= UNIT_BYTES_MAX
            && end <= total_bytes
            && bytes.is_empty() == (total == 0);
        is_sound.then_some((
            volume,
            Self {
                subject,
                lived: lived == 1,
                epoch,
                version,
                total,
                at,
                bytes,
            },
        ))
    }
}

/// A part does not follow those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotNext;

#[cfg(test)]
mod test {
    use super::*;

    fn whole(bytes: usize) -> UnitPart {
        UnitPart {
            subject: UnitSubject::State,
            lived: true,
            epoch: Epoch(5),
            version: 9,
            total: u32::try_from(bytes).unwrap(),
            at: 0,
            bytes: (0..bytes)
                .map(|it| u8::try_from(it % 251).unwrap())
                .collect(),
        }
    }

    #[test]
    fn what_was_cut_is_whole_again_and_out_of_order_it_is_refused() {
        for bytes in [0, 1, PART_BYTES_MAX, PART_BYTES_MAX + 1, UNIT_BYTES_MAX] {
            let whole = whole(bytes);
            let parts = UnitPart::cut(&whole);
            assert_eq!(parts.len(), bytes.div_ceil(PART_BYTES_MAX).max(1));
            let mut here = UnitPart::blank(&whole);
            let count = parts.len();
            for (at, part) in parts.iter().enumerate() {
                let mut body = Writer::with_capacity(0);
                part.write(VolumeId(3), &mut body);
                let body = body.into_bytes();
                assert!(body.len() + HEADER_BYTES <= BODY_BYTES_MAX);
                let read = UnitPart::read(&body).unwrap();
                assert_eq!(read, (VolumeId(3), part.clone()));
                assert_eq!(here.join(read.1), Ok(at + 1 == count));
            }
            assert_eq!(here, whole);
            if count > 1 {
                let mut other = UnitPart::blank(&whole);
                assert_eq!(other.join(parts[1].clone()), Err(NotNext));
                other.join(parts[0].clone()).unwrap();
                let mut newer = parts[1].clone();
                newer.version += 1;
                assert_eq!(other.join(newer), Err(NotNext));
            }
        }
    }

    #[test]
    fn a_part_that_contradicts_itself_is_none() {
        let mut body = Writer::with_capacity(0);
        whole(4).write(VolumeId(3), &mut body);
        let good = body.into_bytes();
        assert!(UnitPart::read(&good).is_some());
        for (at, byte) in [
            (8, 9),
            (9, 2),
            (10, 1),
            (12, 3),
            (14, 255),
            (32, 1),
            (36, 1),
        ] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(UnitPart::read(&bad), None, "byte {at}");
        }
    }
}
