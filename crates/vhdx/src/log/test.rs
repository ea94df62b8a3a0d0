//! Logs as others leave them.

use super::{LogEntry, SECTOR, find, pages_of_an_entry};
use crate::error::Error;
use crate::guid::Guid;
use crate::header::Header;

const MIB: usize = 1 << 20;
const GUID: Guid = Guid([5; 16]);
/// Where the table is that the entries change.
const TABLE: u64 = 3 << 20;

fn header() -> Header {
    Header {
        sequence: 1,
        file_write: Guid([1; 16]),
        data_write: Guid([2; 16]),
        log: GUID,
        log_bytes: 1 << 20,
        log_place: 1 << 20,
    }
}

fn page(byte: u8) -> Vec<u8> {
    vec![byte; SECTOR]
}

/// A ring, and who writes to it as another implementation does: with a tail of its own.
struct Ring {
    bytes: Vec<u8>,
    next: usize,
}

impl Ring {
    fn add(&mut self, sequence: u64, tail: usize, pages: &[(u64, Vec<u8>)]) -> usize {
        let entry = LogEntry {
            log: GUID,
            sequence,
            place: u32::try_from(tail).unwrap(),
            flushed: 4 << 20,
            last: 5 << 20,
            pages,
        };
        let at = self.next;
        for byte in entry.encode() {
            self.bytes[self.next] = byte;
            self.next = (self.next + 1) % self.bytes.len();
        }
        at
    }

    fn new(next: usize) -> Self {
        Self {
            bytes: vec![0; MIB],
            next,
        }
    }

    fn page(&self, at: u64) -> Result<Option<u8>, Error> {
        let sequence = find(self.bytes.clone(), &header())?;
        let page = sequence.overlay.get(at);
        Ok(page.map(|page| {
            assert!(page.iter().all(|byte| *byte == page[0]));
            page[0]
        }))
    }
}

#[test]
fn the_newest_whole_sequence_counts_wherever_it_is_in_the_ring() {
    for start in (0..MIB).step_by(SECTOR) {
        let mut ring = Ring::new(start);
        let tail = ring.add(7, start, &[(TABLE, page(1)), (TABLE + 4096, page(2))]);
        ring.add(8, tail, &[(TABLE, page(3))]);
        let torn = ring.add(9, tail, &[(TABLE, page(4)), (TABLE + 8192, page(5))]);
        assert_eq!(ring.page(TABLE), Ok(Some(4)));
        assert_eq!(ring.page(TABLE + 4096), Ok(Some(2)), "from the tail on");
        assert_eq!(ring.page(TABLE + 12288), Ok(None));
        for sector in 0..3 {
            let mut hurt = Ring::new(0);
            hurt.bytes.clone_from(&ring.bytes);
            hurt.bytes[(torn + sector * SECTOR) % MIB + 100] ^= 1;
            assert_eq!(
                hurt.page(TABLE),
                Ok(Some(3)),
                "the torn entry does not count"
            );
        }
        let first = (tail + 64) % MIB;
        ring.bytes[first] ^= 1;
        assert_eq!(ring.page(TABLE), Err(Error::LogLost), "the tail is gone");
    }
}

#[test]
fn an_older_round_of_the_ring_and_another_log_do_not_count() {
    let mut ring = Ring::new(0);
    for sequence in 1..1000 {
        let at = ring.next;
        ring.add(sequence, at, &[(TABLE, page(sequence as u8 | 1))]);
        assert_eq!(ring.page(TABLE), Ok(Some(sequence as u8 | 1)), "{sequence}");
    }
    let mut other = header();
    other.log = Guid([6; 16]);
    assert!(find(ring.bytes, &other).is_err());
    assert!(
        find(vec![0; MIB], &header()).is_err(),
        "a log that should have entries"
    );
}

#[test]
fn zeroes_and_pages_count_in_their_order() {
    let mut ring = Ring::new(0);
    ring.add(
        1,
        0,
        &[
            (TABLE, page(9)),
            (TABLE + 4096, page(9)),
            (TABLE + 8192, page(9)),
        ],
    );
    ring.add(2, 0, &[(TABLE, page(0)), (TABLE + 4096, page(0))]);
    ring.add(3, 0, &[(TABLE + 4096, page(8))]);
    let found: Vec<_> = (0..4)
        .map(|n| ring.page(TABLE + n * 4096).unwrap())
        .collect();
    assert_eq!(found, [Some(0), Some(8), Some(9), None]);
    let sequence = find(ring.bytes, &header()).unwrap();
    assert_eq!(
        sequence.overlay.zeroes().collect::<Vec<_>>(),
        [(TABLE, 8192)]
    );
    assert_eq!((sequence.flushed, sequence.last), (4 << 20, 5 << 20));
}

#[test]
fn a_log_that_writes_where_no_table_is_is_refused() {
    for at in [
        0,
        64 << 10,
        128 << 10,
        1 << 20,
        (2 << 20) - 4096,
        5 << 20,
        1 << 60,
    ] {
        let mut ring = Ring::new(0);
        ring.add(1, 0, &[(at, page(1))]);
        assert!(
            ring.page(at).is_err_and(|error| error != Error::LogLost),
            "{at}"
        );
    }
    for at in [192 << 10, 256 << 10, 2 << 20] {
        let mut ring = Ring::new(0);
        ring.add(1, 0, &[(at, page(1))]);
        assert_eq!(ring.page(at), Ok(Some(1)), "{at}");
    }
}

#[test]
fn two_of_the_largest_entries_have_room_in_a_log() {
    for mib in [1, 2, 8, 64_u64] {
        let pages = pages_of_an_entry(mib << 20);
        let pages: Vec<(u64, Vec<u8>)> = (0..pages).map(|_| (TABLE, page(1))).collect();
        let entry = LogEntry {
            log: GUID,
            sequence: 1 << 40 | 3,
            place: 0,
            flushed: 4 << 20,
            last: 4 << 20,
            pages: &pages,
        };
        let bytes = entry.encode().len() as u64;
        assert!(
            2 * bytes <= mib << 20 && pages.len() >= 120,
            "{mib} {}",
            pages.len()
        );
    }
}
