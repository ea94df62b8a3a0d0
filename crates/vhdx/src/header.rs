//! File identifier and headers.
//!
//! spec: MS-VHDX 2.2.1 "File Type Identifier", 2.2.2 "Headers"

use crate::checked::{seal, sealed_with};
use crate::error::{Error, Part, contradiction, damaged};
use crate::geometry::MIB;
use crate::guid::Guid;
use formats::{Damage, Reader, Writer};

/// Bytes of the parts of the header section.
pub(crate) const SLOT_BYTES: usize = 64 << 10;
/// Where the two headers are.
pub(crate) const HEADER_PLACES: [u64; 2] = [64 << 10, 128 << 10];
/// Bytes of a header that are covered by its checksum.
pub(crate) const HEADER_BYTES: usize = 4096;
/// The longest log that is read.
pub(crate) const LOG_BYTES_MAX: u64 = 64 * MIB;

const IDENTIFIER: &[u8; 8] = b"vhdxfile";
const SIGNATURE: &[u8; 4] = b"head";

/// The first 64 KiB of a file that `creator` makes.
pub(crate) fn identifier(creator: &str) -> Vec<u8> {
    let mut bytes = Writer::with_capacity(SLOT_BYTES);
    bytes.bytes(IDENTIFIER);
    for unit in creator.encode_utf16().take(255) {
        bytes.u16(unit);
    }
    bytes.padded(SLOT_BYTES)
}

/// Who made the file, if its first bytes are those of a VHDX.
pub(crate) fn creator(bytes: &[u8]) -> Result<String, Error> {
    let rest = bytes.strip_prefix(IDENTIFIER);
    let rest = rest.ok_or(damaged(Part::Identifier, Damage::Foreign))?;
    let units = rest.chunks_exact(2).take(256);
    let units = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    Ok(String::from_utf16_lossy(&units))
}

/// Who changes the file, and where its log is: the one structure that no log changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which of the two is the newer one.
    pub sequence: u64,
    /// New whenever somebody opens the file and begins to change it.
    pub file_write: Guid,
    /// New whenever what the disk holds begins to change: a child's parent is known by it.
    pub data_write: Guid,
    /// Of the entries in the log that are valid; none: the log is empty.
    pub log: Guid,
    /// Whole MiB; 0 in a file without a log.
    pub log_bytes: u32,
    /// Where the log is.
    pub log_place: u64,
}

impl Header {
    /// As it stands in the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Writer::with_capacity(HEADER_BYTES);
        bytes.bytes(SIGNATURE).u32(0).u64(self.sequence);
        for guid in [self.file_write, self.data_write, self.log] {
            bytes.bytes(&guid.0);
        }
        bytes.u16(0).u16(1).u32(self.log_bytes).u64(self.log_place);
        let mut bytes = bytes.padded(HEADER_BYTES);
        seal(&mut bytes);
        bytes
    }

    /// Of the 4 KiB at its place.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut fields = sealed_with(bytes, SIGNATURE)?;
        Self::fields(&mut fields).ok_or(Damage::Foreign)?
    }

    fn fields(fields: &mut Reader<'_>) -> Option<Result<Self, Damage>> {
        let sequence = fields.u64()?;
        let [file_write, data_write, log] =
            [fields.bytes()?, fields.bytes()?, fields.bytes()?].map(Guid);
        let (log_version, version) = (fields.u16()?, fields.u16()?);
        let (log_bytes, log_place) = (fields.u32()?, fields.u64()?);
        if version != 1 {
            return Some(Err(Damage::Version {
                found: version.into(),
                read: 1,
            }));
        }
        if log_version != 0 && !log.is_none() {
            return Some(Err(Damage::Contradiction("a log of another version")));
        }
        Some(Ok(Self {
            sequence,
            file_write,
            data_write,
            log,
            log_bytes,
            log_place,
        }))
    }
}

/// The headers of a file.
#[derive(Clone, Debug)]
pub(crate) struct Headers {
    /// What counts.
    pub(crate) current: Header,
    /// At which place it stands.
    pub(crate) place: usize,
    /// What is wrong with the copies.
    pub(crate) damage: [Option<Damage>; 2],
}

/// Which of the two counts.
pub(crate) fn choose(copies: [&[u8]; 2]) -> Result<Headers, Error> {
    let read = copies.map(Header::decode);
    let damage = [read[0].err(), read[1].err()];
    let (place, current) = match read {
        // Two of the same number: some writers leave that, and then both are the same.
        [Ok(first), Ok(second)] if second.sequence > first.sequence => (1, second),
        [Ok(first), _] => (0, first),
        [Err(_), Ok(second)] => (1, second),
        [Err(Damage::Foreign), Err(other)] | [Err(other), Err(_)] => {
            return Err(damaged(Part::Headers, other));
        }
    };
    let (bytes, at) = (u64::from(current.log_bytes), current.log_place);
    if bytes % MIB != 0 || at % MIB != 0 {
        return Err(contradiction(Part::Log, "it is not of whole MiB"));
    }
    if bytes > LOG_BYTES_MAX {
        return Err(contradiction(Part::Log, "it is longer than 64 MiB"));
    }
    if !(current.log.is_none() && bytes == 0) && (bytes == 0 || at == 0) {
        return Err(contradiction(Part::Log, "it has no place"));
    }
    Ok(Headers {
        current,
        place,
        damage,
    })
}

#[cfg(test)]
mod test {
    use super::*;

    pub(super) fn header(sequence: u64) -> Header {
        Header {
            sequence,
            file_write: Guid([1; 16]),
            data_write: Guid([2; 16]),
            log: Guid::NONE,
            log_bytes: 1 << 20,
            log_place: 1 << 20,
        }
    }

    #[test]
    fn the_newer_header_counts_and_a_damaged_one_does_not() {
        let (old, new) = (header(4), header(5));
        let (a, b) = (old.encode(), new.encode());
        let chosen = |a: &[u8], b: &[u8]| choose([a, b]).map(|it| (it.current.sequence, it.place));
        assert_eq!(chosen(&a, &b), Ok((5, 1)));
        assert_eq!(chosen(&b, &a), Ok((5, 0)));
        assert_eq!(chosen(&b, &b), Ok((5, 0)));
        for bit in 0..80 * 8 {
            let mut hurt = b.clone();
            hurt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(chosen(&a, &hurt), Ok((4, 0)), "bit {bit}");
            assert!(chosen(&hurt, &[0; 4096]).is_err(), "bit {bit}");
        }
        assert!(chosen(&[], &[]).is_err());
    }

    #[test]
    fn what_a_header_says_of_the_log_is_checked() {
        let with = |change: fn(&mut Header)| {
            let mut changed = header(1);
            change(&mut changed);
            let bytes = changed.encode();
            choose([&bytes, &bytes]).map(|_| ())
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert_eq!(with(|it| it.log_bytes = 0), Ok(()));
        assert!(with(|it| it.log_bytes = 4096).is_err());
        assert!(with(|it| it.log_place = 4096).is_err());
        assert!(with(|it| it.log_bytes = 1 << 31).is_err());
        assert!(with(|it| (it.log_bytes, it.log) = (0, Guid([1; 16]))).is_err());
    }
}
