//! Finding the sequence of entries that counts.
//!
//! spec: MS-VHDX 2.3.2 "Log Sequence", 2.3.3 "Log Replay"

use super::write::split;
use super::{
    CONTENT, DATA, DESCRIPTOR_BYTES, ENTRY, HEAD_BYTES, Overlay, SECTOR, ZERO, descriptor_sectors,
};
use crate::error::{Error, Part, contradiction};
use crate::geometry::MIB;
use crate::guid::Guid;
use crate::header::Header;
use formats::{Reader, crc32c_of};
use std::collections::BTreeMap;

/// The longest file: the largest disk with all that belongs to it is well below.
pub(crate) const FILE_BYTES_MAX: u64 = 128 << 40;
/// Before it are identifier and headers, which no log changes.
const TABLES_FROM: u64 = 192 << 10;

/// A whole and valid entry.
#[derive(Clone, Copy)]
struct Found {
    /// Sector where it begins, and how many it has.
    sector: usize,
    sectors: usize,
    sequence: u64,
    tail: usize,
    descriptors: usize,
    flushed: u64,
    last: u64,
}

/// What a log holds.
pub(crate) struct Sequence {
    /// The changes.
    pub(crate) overlay: Overlay,
    /// Bytes that the file has to have already.
    pub(crate) flushed: u64,
    /// Bytes that it has to have afterwards.
    pub(crate) last: u64,
}

fn sector(log: &[u8], number: usize) -> &[u8] {
    let from = number % (log.len() / SECTOR) * SECTOR;
    &log[from..from + SECTOR]
}

fn descriptor(log: &[u8], found: &Found, number: usize) -> [u8; DESCRIPTOR_BYTES] {
    let at = HEAD_BYTES + number * DESCRIPTOR_BYTES;
    let of = sector(log, found.sector + at / SECTOR);
    let from = at % SECTOR;
    std::array::from_fn(|byte| of[from + byte])
}

/// The entry that begins there.
fn entry(log: &[u8], at: usize, guid: Guid) -> Option<Found> {
    let sectors_of_log = log.len() / SECTOR;
    let first = sector(log, at);
    let mut fields = Reader::new(first);
    if fields.bytes()? != *ENTRY {
        return None;
    }
    let (crc, length, tail) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (sequence, descriptors, _) = (fields.u64()?, fields.u32()?, fields.u32()?);
    let its_guid = Guid(fields.bytes()?);
    let (flushed, last) = (fields.u64()?, fields.u64()?);
    let [length, tail, descriptors] =
        [length, tail, descriptors].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
    let fits = its_guid == guid
        && sequence > 0
        && length > 0
        && length % SECTOR == 0
        && tail % SECTOR == 0
        && tail < log.len()
        && length <= log.len()
        && descriptors < log.len() / DESCRIPTOR_BYTES
        && descriptor_sectors(descriptors) <= length / SECTOR;
    let found = Found {
        sector: at,
        sectors: length / SECTOR,
        sequence,
        tail: tail / SECTOR,
        descriptors,
        flushed,
        last,
    };
    if !fits || found.sectors > sectors_of_log || !is_whole(log, &found) {
        return None;
    }
    let rest = (1..found.sectors).map(|number| sector(log, at + number));
    let pieces = [&first[..4], &[0; 4], &first[8..]].into_iter().chain(rest);
    (crc32c_of(pieces) == crc).then_some(found)
}

/// Descriptors and data sectors belong to the entry. That is checked before the checksum is
/// counted, so that overlapping heads do not make it count the same bytes again and again.
fn is_whole(log: &[u8], found: &Found) -> bool {
    let mut data = descriptor_sectors(found.descriptors);
    let [low, high] = split(found.sequence);
    for number in 0..found.descriptors {
        let bytes = descriptor(log, found, number);
        if bytes[24..] != found.sequence.to_le_bytes() {
            return false;
        }
        if bytes.starts_with(DATA) {
            let content = sector(log, found.sector + data);
            data += 1;
            let fits = data <= found.sectors
                && content.starts_with(CONTENT)
                && content[4..8] == high.to_le_bytes()
                && content[SECTOR - 4..] == low.to_le_bytes();
            if !fits {
                return false;
            }
        } else if !bytes.starts_with(ZERO) {
            return false;
        }
    }
    true
}

/// The entries that count, from the oldest to the newest.
fn active(log: &[u8], guid: Guid) -> Option<Vec<Found>> {
    let sectors = log.len() / SECTOR;
    let all = (0..sectors).filter_map(|at| entry(log, at, guid).map(|found| (at, found)));
    let all: BTreeMap<usize, Found> = all.collect();
    let next = |found: &Found| {
        let at = (found.sector + found.sectors) % sectors;
        all.get(&at)
            .filter(|other| Some(other.sequence) == found.sequence.checked_add(1))
    };
    // The newest entry of each run, and among those the newest one whose tail is in its run.
    let mut heads: Vec<&Found> = all.values().filter(|found| next(found).is_none()).collect();
    heads.sort_by_key(|found| std::cmp::Reverse(found.sequence));
    heads.into_iter().find_map(|head| {
        let (mut run, mut at) = (Vec::new(), head.tail);
        while let Some(found) = all.get(&at) {
            let follows = run
                .last()
                .is_none_or(|last: &Found| Some(found.sequence) == last.sequence.checked_add(1));
            if !follows || found.sequence > head.sequence {
                return None;
            }
            run.push(*found);
            if found.sector == head.sector {
                return Some(run);
            }
            at = (found.sector + found.sectors) % sectors;
        }
        None
    })
}

/// What the log of a file says that is not in the file.
pub(crate) fn find(log: Vec<u8>, header: &Header) -> Result<Sequence, Error> {
    let entries = active(&log, header.log).ok_or(Error::LogLost)?;
    let newest = entries.last().ok_or(Error::LogLost)?;
    let flushed = entries.iter().map(|it| it.flushed).max().unwrap_or(0);
    let (last, own) = (newest.last.max(flushed), u64::from(header.log_bytes));
    if last > FILE_BYTES_MAX {
        return Err(contradiction(
            Part::Log,
            "it makes the file longer than 128 TiB",
        ));
    }
    // Where the length was not counted in MiB, the file gets whole ones.
    let last = last.next_multiple_of(MIB);
    let mut overlay = Overlay::new(log);
    for found in &entries {
        let mut data = found.sector + descriptor_sectors(found.descriptors);
        for number in 0..found.descriptors {
            let bytes = descriptor(overlay.log(), found, number);
            let mut fields = Reader::new(&bytes[4..]);
            let parts = (fields.bytes::<4>(), fields.bytes::<8>(), fields.u64());
            let (Some(trailing), Some(leading), Some(at)) = parts else {
                return Err(Error::LogLost);
            };
            let is_data = bytes.starts_with(DATA);
            let length = if is_data {
                4096
            } else {
                u64::from_le_bytes(leading)
            };
            let end = at.checked_add(length).filter(|end| *end <= FILE_BYTES_MAX);
            let end = end.ok_or(contradiction(Part::Log, "it writes beyond the file's end"))?;
            let in_log = at < header.log_place + own && header.log_place < end;
            if at % 4096 != 0 || length % 4096 != 0 || at < TABLES_FROM || in_log {
                return Err(contradiction(Part::Log, "it writes where no table is"));
            }
            if is_data {
                let sectors = overlay.log().len() / SECTOR;
                overlay.page(at, data % sectors, leading, trailing);
                data += 1;
            } else if length > 0 {
                overlay.zero(at, end);
            }
        }
    }
    let pages = overlay.pages.keys().next_back().map_or(0, |at| at + 4096);
    let zeroes = overlay.zeroes.last_key_value().map_or(0, |(_, end)| *end);
    if pages.max(zeroes) > last {
        return Err(contradiction(Part::Log, "it writes beyond the file's end"));
    }
    Ok(Sequence {
        overlay,
        flushed,
        last,
    })
}
