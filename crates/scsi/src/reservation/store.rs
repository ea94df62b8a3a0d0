//! Reservations as they are kept through power loss: versioned and checksummed.
//!
//! The layout is in `docs/formats/reservations.md`; integers are little-endian.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{Held, InitiatorPort, Nexus, ReservationType, Reservations};
use crate::bytes::{Reader, is_set};

const MAGIC: [u8; 4] = *b"CWPR";
const VERSION: u16 = 1;

/// Why stored reservations cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// These are not stored reservations.
    NotReservations,
    /// Written by a version that we do not know.
    UnknownVersion(u16),
    /// The checksum is wrong.
    Damaged,
    /// The checksum is right, but the content breaks an invariant.
    Inconsistent,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReservations => write!(f, "not a record of reservations"),
            Self::UnknownVersion(version) => {
                write!(
                    f,
                    "record of reservations has version {version}, known is {VERSION}"
                )
            }
            Self::Damaged => write!(f, "record of reservations is damaged (checksum)"),
            Self::Inconsistent => write!(f, "record of reservations contradicts itself"),
        }
    }
}

impl core::error::Error for StoreError {}

/// CRC-32C (Castagnoli), bit by bit: records are small and rare.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| {
        let carry = if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        (crc >> 1) ^ carry
    };
    let feed = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(u32::MAX, feed)
}

impl Reservations {
    /// The stored form. Without APTPL it holds nobody, because nothing may survive.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let nothing = Self::new();
        let kept = if self.persistent { self } else { &nothing };
        let mut out = Vec::from(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.push(u8::from(kept.persistent));
        let kind = kept.held.as_ref().map_or(0, |held| held.kind.code());
        out.push(kind);
        out.extend(kept.generation.to_le_bytes());
        let count = u32::try_from(kept.registrations.len()).unwrap_or(u32::MAX);
        out.extend(count.to_le_bytes());
        let holder = kept.held.as_ref().and_then(|held| held.holder.as_ref());
        for (nexus, key) in &kept.registrations {
            out.extend(key.to_le_bytes());
            out.extend(nexus.target_port.to_le_bytes());
            out.extend(nexus.initiator.isid);
            out.push(u8::from(holder == Some(nexus)));
            // Names have at most 223 bytes.
            let name = nexus.initiator.name.as_bytes();
            let name = name.get(..255).unwrap_or(name);
            out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
            out.extend(name);
        }
        out.extend(checksum(&out).to_le_bytes());
        out
    }

    /// Reads the stored form, exactly as it was written. A node that starts calls
    /// [`Reservations::power_on`] next; one that takes over does not.
    ///
    /// # Errors
    /// [`StoreError`]; nothing of a record that is not wholly sound is used.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let (body, sum) = bytes
            .split_last_chunk::<4>()
            .ok_or(StoreError::NotReservations)?;
        let mut reader = Reader::new(body);
        if reader.array() != Some(MAGIC) {
            return Err(StoreError::NotReservations);
        }
        if checksum(body) != u32::from_le_bytes(*sum) {
            return Err(StoreError::Damaged);
        }
        let version = reader.array().map(u16::from_le_bytes);
        match version {
            Some(VERSION) => {}
            Some(version) => return Err(StoreError::UnknownVersion(version)),
            None => return Err(StoreError::Inconsistent),
        }
        parse_body(&mut reader)
            .filter(Self::is_consistent)
            .ok_or(StoreError::Inconsistent)
    }

    fn is_consistent(&self) -> bool {
        let keys = self.registrations.values().all(|key| *key != 0);
        let held = match &self.held {
            None => true,
            Some(held) => {
                held.kind.all_registrants() == held.holder.is_none()
                    && !self.registrations.is_empty()
            }
        };
        keys && held && (self.persistent || *self == Self::new())
    }
}

fn parse_body(reader: &mut Reader<'_>) -> Option<Reservations> {
    let [flags, kind] = reader.array()?;
    let generation = reader.array().map(u32::from_le_bytes)?;
    let count = reader.array().map(u32::from_le_bytes)?;
    let mut registrations: BTreeMap<Nexus, u64> = BTreeMap::new();
    let mut holder = None;
    for _ in 0..count {
        let key = reader.array().map(u64::from_le_bytes)?;
        let target_port = reader.array().map(u16::from_le_bytes)?;
        let isid = reader.array()?;
        let [holds, len] = reader.array()?;
        let name = core::str::from_utf8(reader.take(usize::from(len))?).ok()?;
        let initiator = InitiatorPort {
            name: String::from(name),
            isid,
        };
        let nexus = Nexus {
            initiator,
            target_port,
        };
        if holds > 1 || (holds == 1 && holder.replace(nexus.clone()).is_some()) {
            return None;
        }
        // Ascending, as they are written: one state has one form.
        let ascends = registrations
            .last_key_value()
            .is_none_or(|(last, _)| *last < nexus);
        if !ascends {
            return None;
        }
        registrations.insert(nexus, key);
    }
    if !reader.rest().is_empty() || flags > 1 {
        return None;
    }
    let held = match kind {
        0 if holder.is_some() => return None,
        0 => None,
        kind => Some(Held {
            kind: ReservationType::from_code(kind)?,
            holder,
        }),
    };
    Some(Reservations {
        generation,
        persistent: is_set(flags, 0),
        registrations,
        held,
        spc2: None,
    })
}

#[cfg(test)]
mod test {
    use super::checksum;

    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
    }
}
