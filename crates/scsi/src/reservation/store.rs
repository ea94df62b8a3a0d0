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
/// Of what nodes keep for each other: all of it, whatever outlives a power loss.
const MAGIC_WHOLE: [u8; 4] = *b"CWPW";
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
        sealed(kept.write(MAGIC))
    }

    /// All of it, for another node that goes on with it: also without APTPL, and with a reservation
    /// of SPC-2.
    #[must_use]
    pub fn to_whole(&self) -> Vec<u8> {
        let mut out = self.write(MAGIC_WHOLE);
        out.push(u8::from(self.spc2.is_some()));
        if let Some(holder) = &self.spc2 {
            write_nexus(holder, &mut out);
        }
        sealed(out)
    }

    /// Everything but the checksum, and what only one of the forms has.
    fn write(&self, magic: [u8; 4]) -> Vec<u8> {
        let mut out = Vec::from(magic);
        out.extend(VERSION.to_le_bytes());
        out.push(u8::from(self.persistent));
        let kind = self.held.as_ref().map_or(0, |held| held.kind.code());
        out.push(kind);
        out.extend(self.generation.to_le_bytes());
        let count = u32::try_from(self.registrations.len()).unwrap_or(u32::MAX);
        out.extend(count.to_le_bytes());
        let holder = self.held.as_ref().and_then(|held| held.holder.as_ref());
        for (nexus, key) in &self.registrations {
            out.extend(key.to_le_bytes());
            out.extend(nexus.target_port.to_le_bytes());
            out.extend(nexus.initiator.isid);
            out.push(u8::from(holder == Some(nexus)));
            write_name(&nexus.initiator.name, &mut out);
        }
        out
    }

    /// Reads the stored form, exactly as it was written. A node that starts calls
    /// [`Reservations::power_on`] next.
    ///
    /// # Errors
    /// [`StoreError`]; nothing of a record that is not wholly sound is used.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let read = Self::read(bytes, MAGIC)?;
        let is_kept = read.persistent || read == Self::new();
        Some(read)
            .filter(|_| is_kept)
            .ok_or(StoreError::Inconsistent)
    }

    /// Reads the form for other nodes, exactly as it was written.
    ///
    /// # Errors
    /// As [`Reservations::from_bytes`].
    pub fn from_whole(bytes: &[u8]) -> Result<Self, StoreError> {
        Self::read(bytes, MAGIC_WHOLE)
    }

    fn read(bytes: &[u8], magic: [u8; 4]) -> Result<Self, StoreError> {
        let (body, sum) = bytes
            .split_last_chunk::<4>()
            .ok_or(StoreError::NotReservations)?;
        let mut reader = Reader::new(body);
        if reader.array() != Some(magic) {
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
        parse_body(&mut reader, magic == MAGIC_WHOLE)
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
        keys && held && (self.spc2.is_none() || self.registrations.is_empty())
    }
}

fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    body.extend(checksum(&body).to_le_bytes());
    body
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    // Names have at most 223 bytes.
    let name = name.as_bytes();
    let name = name.get(..255).unwrap_or(name);
    out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    out.extend(name);
}

fn write_nexus(nexus: &Nexus, out: &mut Vec<u8>) {
    out.extend(nexus.target_port.to_le_bytes());
    out.extend(nexus.initiator.isid);
    write_name(&nexus.initiator.name, out);
}

fn read_name(reader: &mut Reader<'_>) -> Option<String> {
    let [len] = reader.array()?;
    let name = core::str::from_utf8(reader.take(usize::from(len))?).ok()?;
    Some(String::from(name))
}

fn read_spc2(reader: &mut Reader<'_>) -> Option<Option<Nexus>> {
    let [has] = reader.array()?;
    if has == 0 {
        return Some(None);
    }
    let target_port = reader.array().map(u16::from_le_bytes)?;
    let isid = reader.array()?;
    let name = read_name(reader)?;
    let initiator = InitiatorPort { name, isid };
    (has == 1).then_some(Some(Nexus {
        initiator,
        target_port,
    }))
}

fn parse_body(reader: &mut Reader<'_>, is_whole: bool) -> Option<Reservations> {
    let [flags, kind] = reader.array()?;
    let generation = reader.array().map(u32::from_le_bytes)?;
    let count = reader.array().map(u32::from_le_bytes)?;
    let mut registrations: BTreeMap<Nexus, u64> = BTreeMap::new();
    let mut holder = None;
    for _ in 0..count {
        let key = reader.array().map(u64::from_le_bytes)?;
        let target_port = reader.array().map(u16::from_le_bytes)?;
        let isid = reader.array()?;
        let [holds] = reader.array()?;
        let name = read_name(reader)?;
        let initiator = InitiatorPort { name, isid };
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
    let spc2 = if is_whole { read_spc2(reader)? } else { None };
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
        spc2,
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
