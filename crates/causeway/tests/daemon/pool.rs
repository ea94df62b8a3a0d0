//! `causeway pool check`, on members that are made here.

use crate::integrity::{load, with_journal};
use crate::place::Place;
use members::{Layout, LunId, Member, MemberId, PoolId, Superblock, offset_of};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

fn member(number: u8, last_event: u64) -> Member {
    Member {
        id: MemberId([number; 16]),
        chunks: 8,
        last_event,
        before: last_event - 1,
    }
}

/// Writes what stands on a member of three after so many events.
fn make(place: &Place, number: u8, event: u64) {
    let mut block = Superblock {
        pool: PoolId([0xab; 16]),
        event,
        member: u16::from(number),
        layout: Layout::Span,
        chunk_bytes: 1 << 20,
        physical_block_bytes: 4096,
        has_journal: false,
        members: (0..3).map(|number| member(number, event)).collect(),
        luns: BTreeMap::new(),
        records: BTreeMap::new(),
    };
    block.resize(LunId([1; 16]), 5 << 20).unwrap();
    block.resize(LunId([2; 16]), 6 << 20).unwrap();
    let file = File::create(place.path(&format!("m{number}"))).unwrap();
    file.set_len(10 << 20).unwrap();
    let bytes = block.encode().unwrap();
    file.write_all_at(&bytes, offset_of(event)).unwrap();
}

#[test]
fn a_pool_is_checked_without_a_daemon_and_says_which_member_is_missing_or_old() {
    let place = Place::new("pool-check");
    for number in 0..3 {
        make(&place, number, 7);
    }
    let at = |number: u8| place.path(&format!("m{number}")).display().to_string();
    let check = |code, members: &[u8]| {
        let all: Vec<String> = members.iter().map(|number| at(*number)).collect();
        place.run(code, &format!("pool check {}", all.join(" ")))
    };
    let output = check(0, &[2, 0, 1]);
    assert!(
        output.contains("(span), event 7, 13 MiB of 24 MiB free, complete"),
        "{output}"
    );
    assert_eq!(output.matches(" present").count(), 3, "{output}");
    let output = check(1, &[0, 2]);
    assert!(output.contains("NOT COMPLETE"), "{output}");
    assert!(output.contains("absent; its last event is 7"), "{output}");
    assert!(output.contains("error[CWY4006]"), "{output}");
    // The first LUN lies on member 0 alone, the second on 0 and 1.
    assert_eq!(output.matches("can be served").count(), 1, "{output}");
    assert_eq!(output.matches("lacks a member").count(), 1, "{output}");
    make(&place, 1, 5);
    let output = check(1, &[0, 1, 2]);
    assert!(
        output.contains("stale: it has event 5, and the pool expects 7"),
        "{output}"
    );
    place.write("m1", "something else");
    let output = check(1, &[0, 1, 2]);
    assert!(output.contains("it is no member of a pool"), "{output}");
    let output = check(1, &[1]);
    assert!(output.contains("error[CWY4007]"), "{output}");
}

#[test]
fn of_two_superblocks_of_a_member_a_damaged_one_is_reported_and_a_later_one_is_refused() {
    let place = Place::new("pool-check-copies");
    for number in 0..3 {
        make(&place, number, 7);
    }
    let other = place.path("m1");
    let file = File::options().write(true).open(other).unwrap();
    file.write_all_at(b"CWPOOLMB and nothing more", offset_of(8))
        .unwrap();
    let output = place.run(0, "pool check m0 m1 m2");
    assert!(
        output.contains("present; of its two superblocks one is left"),
        "{output}"
    );
    let mut later = b"CWPOOLMB....\x14\0\0\0\x03\0\0\0".to_vec();
    let sum = crc32c(&later[12..]);
    later[8..12].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&later, offset_of(8)).unwrap();
    let output = place.run(1, "pool check m0 m1 m2");
    assert!(
        output.contains("it has version 3 of the format"),
        "{output}"
    );
    assert!(output.contains("NOT COMPLETE"), "{output}");
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let all = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            let low = crc & 1;
            (crc >> 1) ^ (0x82f6_3b78 * low)
        })
    });
    !all
}

/// A pool with a journal and a LUN with checksums, that a daemon has used.
struct Used {
    place: Place,
    naa: String,
}

impl Used {
    fn new(name: &str) -> Self {
        let place = with_journal(name);
        let daemon = place.start();
        place.run(0, "apply -f objects.toml");
        load(&place, 0, "-b4K -r -w100 -o4 -d1 -W0 --destroy");
        let naa = place.json("lun show vm01")["naa"]
            .as_str()
            .unwrap()
            .to_owned();
        daemon.stop();
        Self { place, naa }
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.place.path(&format!("data/pool/{}.{ending}", self.naa))
    }

    fn check(&self, code: i32) -> String {
        self.place.run(code, "pool check data/pool")
    }

    /// What is reported while these bytes of a file are others; they are as before then.
    fn with(&self, path: &PathBuf, change: impl FnOnce(&mut Vec<u8>), code: i32) -> String {
        let before = std::fs::read(path).unwrap();
        let mut bytes = before.clone();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
        let output = self.check(code);
        std::fs::write(path, before).unwrap();
        output
    }
}

/// The block at `at`, written by a later version of the program.
fn later(bytes: &mut [u8], at: usize) {
    bytes[at + 12] = 9;
    let sum = crc32c(&bytes[at + 12..at + 4096]);
    bytes[at + 8..at + 12].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_directory_is_checked_with_its_file_and_with_what_its_luns_have_next_to_them() {
    let used = Used::new("pool-check-directory");
    let output = used.check(0);
    for words in ["it has a journal", "complete", "present", "can be served"] {
        assert!(output.contains(words), "{words}: {output}");
    }
    let facts = used.place.json("pool check data/pool");
    assert_eq!(facts["journal"], true);
    assert_eq!(facts["pool"].as_str().unwrap().len(), 32);
    assert_eq!(facts["members"][0]["path"], "data/pool");
    let lun = &facts["luns"][0];
    assert_eq!(lun["naa"], used.naa);
    assert_eq!(
        (&lun["checksums"], &lun["history"]),
        (&"good".into(), &"good".into())
    );
    let (checksums, history) = (used.file("checksums"), used.file("changes"));
    // Of two copies one is enough; of none, or a later one, the daemon makes nothing.
    let output = used.with(&checksums, |bytes| bytes[100] ^= 1, 0);
    assert!(
        output.contains("good, from the copy that is left"),
        "{output}"
    );
    let both = |bytes: &mut Vec<u8>| {
        bytes[100] ^= 1;
        bytes[4196] ^= 1;
    };
    let output = used.with(&checksums, both, 1);
    assert!(output.contains("its checksums cannot be used"), "{output}");
    assert!(output.contains("error[CWY4007]"), "{output}");
    let output = used.with(&checksums, |bytes| later(bytes, 4096), 1);
    assert!(
        output.contains("ANOTHER VERSION: it has version 9"),
        "{output}"
    );
    let output = used.with(&checksums, |bytes| bytes.truncate(0), 1);
    assert!(output.contains("its checksums cannot be used"), "{output}");
    let newest = std::fs::read(&history).unwrap();
    let newest = newest
        .chunks(4096)
        .position(|it| it.starts_with(b"CWJHISTO"));
    let newest = newest.unwrap() * 4096;
    let output = used.with(&history, |bytes| later(bytes, newest), 1);
    assert!(output.contains("its history cannot be used"), "{output}");
    let gone = |bytes: &mut Vec<u8>| {
        for block in bytes
            .chunks_mut(4096)
            .filter(|it| it.starts_with(b"CWJHISTO"))
        {
            block[300] ^= 1;
        }
    };
    let output = used.with(&history, gone, 1);
    assert!(output.contains("everything counts as changed"), "{output}");
    assert!(output.contains("can be served"), "{output}");
    std::fs::rename(used.file("lun"), used.file("away")).unwrap();
    let output = used.check(1);
    assert!(output.contains("its data is missing"), "{output}");
    std::fs::rename(used.file("away"), used.file("lun")).unwrap();
    used.check(0);
}

#[test]
fn a_file_of_a_pool_that_the_daemon_refuses_is_refused_with_the_same_words() {
    let used = Used::new("pool-check-file");
    let path = used.place.path("data/pool/pool.toml");
    let whole = std::fs::read_to_string(&path).unwrap();
    let at = whole.find("journal").unwrap();
    let later = whole.replace("schema = 1", "schema = 2");
    for (text, words) in [
        (&whole[..at], "missing field `journal`"),
        (&later, "it has schema 2, and this program reads schema 1"),
    ] {
        std::fs::write(&path, text).unwrap();
        let output = used.check(1);
        assert!(output.contains(words), "{output}");
        assert!(output.contains("error[CWY4007]"), "{output}");
        assert!(
            output.contains("nobody knows whether it has a journal"),
            "{output}"
        );
        let daemon = used.place.start();
        let lun = used.place.json("lun show vm01");
        let reason = lun["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(words), "{reason}");
        daemon.stop();
    }
    std::fs::write(&path, &whole).unwrap();
    used.check(0);
    // A pool that never had a journal has none of it.
    std::fs::remove_file(&path).unwrap();
    let output = used.check(0);
    assert!(output.contains("it has no journal"), "{output}");
}

#[test]
fn a_later_history_keeps_its_lun_offline_and_is_reported_of_a_journal_that_one_copy_is_damaged() {
    let used = Used::new("pool-check-journal");
    let history = used.file("changes");
    let before = std::fs::read(&history).unwrap();
    let mut bytes = before.clone();
    let at = bytes
        .chunks(4096)
        .position(|it| it.starts_with(b"CWJHISTO"));
    later(&mut bytes, at.unwrap() * 4096);
    std::fs::write(&history, &bytes).unwrap();
    let daemon = used.place.start();
    let lun = used.place.json("lun show vm01");
    assert_eq!(lun["state"], "offline");
    let reason = lun["reason"].as_str().unwrap();
    assert!(reason.contains("it has version 9"), "{reason}");
    daemon.stop();
    assert!(std::fs::read(&history).unwrap() == bytes, "written over");
    std::fs::write(&history, before).unwrap();

    let journal = used.place.path("data/journal");
    let check = |code| used.place.run(code, "pool check data/journal");
    assert!(check(0).contains("superblock: good\n"));
    let file = File::options()
        .read(true)
        .write(true)
        .open(journal)
        .unwrap();
    let flip = |at: u64| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    };
    flip(40);
    let output = check(0);
    assert!(
        output.contains("superblock: good, from the copy that is left: its checksum does not fit"),
        "{output}"
    );
    // A checkpoint of the first ring.
    flip(2 * 4096 + 40);
    let output = check(0);
    assert_eq!(
        output.matches("the copy that is left").count(),
        2,
        "{output}"
    );
    let facts = used.place.json("pool check data/journal");
    assert_eq!(facts["good"], true);
    let checkpoint = facts["rings"][0]["checkpoint"].as_str().unwrap();
    assert!(
        checkpoint.contains("its checksum does not fit"),
        "{checkpoint}"
    );
}
