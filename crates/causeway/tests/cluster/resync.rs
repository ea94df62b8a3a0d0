//! How much a node is sent that was away while hosts wrote here and there.

use crate::mirror::Pair;
use std::collections::BTreeSet;

/// Blocks of 4 KiB of the LUN.
const BLOCKS: u64 = 16_384;

/// Twice as much as the log keeps for a node that is away.
const WRITES: u64 = 2_000;

/// Somewhere in the LUN, each time the same.
fn places() -> Vec<u64> {
    let mut last = 7_u64;
    let next = |_| {
        last = last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (last >> 33) % BLOCKS
    };
    (0..WRITES).map(next).collect()
}

/// What the owner says of a number in its log's last line about what it has sent.
fn number(log: &str, name: &str) -> u64 {
    let mut lines = log.lines().rev();
    let line = lines.find(|it| it.contains("all that differed was sent"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    let (_, after) = line.split_once(name).unwrap();
    let digits: String = after
        .chars()
        .skip_while(|it| !it.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

#[test]
fn a_node_that_was_away_is_sent_little_more_than_what_changed() {
    let Some(mut pair) = Pair::start("resync") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(0, "owner");
    pair.comes_to(1, "replica");
    pair.writes(0, 1);
    pair.kill(1);
    pair.comes_to(0, "solo");
    let places = places();
    for some in places.chunks(500) {
        let write = |at: &u64| format!("write -P {} {}k 4k", 2 + at % 250, at * 4);
        let commands: Vec<String> = some.iter().map(write).collect();
        let said = pair.host(0, &commands);
        assert_eq!(said.matches("wrote 4096/4096").count(), some.len());
    }
    pair.begin(1);
    pair.comes_to(1, "replica");
    pair.comes_to(0, "owner");
    let log = pair.stop(0);
    let changed = places.iter().collect::<BTreeSet<_>>().len() as u64 * 4096;
    let (bytes, digests) = (number(&log, "bytes="), number(&log, "digests="));
    println!("{changed} bytes changed; {bytes} bytes, and {digests} of digests, went there");
    assert!(bytes >= changed, "{bytes} of {changed}");
    assert!((bytes + digests) * 10 <= changed * 13, "{bytes}, {digests}");
    // It has all of it.
    pair.comes_to(1, "solo");
    for some in places.chunks(500) {
        let read = |at: &u64| format!("read -P {} {}k 4k", 2 + at % 250, at * 4);
        let commands: Vec<String> = some.iter().map(read).collect();
        let said = pair.host(1, &commands);
        assert!(!said.contains("failed"), "{said}");
        assert_eq!(said.matches("read 4096/4096").count(), some.len());
    }
}
