//! How much a node is sent that was away while hosts wrote here and there.

use crate::mirror::{Pair, until};
use crate::place::text_of;
use serde_json::Value;
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

/// What 99 of 100 operations of a load take at most, in microseconds.
fn p99(pair: &Pair, seconds: u32) -> f64 {
    let portal = pair.places[0].json("portal ls")[0]["address"].clone();
    let url = format!(
        "iscsi://{}/iqn.2026-11.io.causeway:t1/0",
        portal.as_str().unwrap()
    );
    let load = format!("bench -Rjson -b4K -r -o4 -w50 -d{seconds} -W0 --destroy {url}");
    let words: Vec<&str> = load.split(' ').collect();
    let said = text_of(&pair.places[0].run_with("", &words, ""), 0, "bench");
    let result: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(result["errors"], 0, "{result}");
    let of = |side: &str| result[side]["latency_us"]["p99"].as_f64().unwrap();
    of("read").max(of("write"))
}

/// Whoever runs other work here has hosts wait as well: a ratio above this is none of that.
const LONGER_MAX: f64 = 4.0;

#[test]
fn hosts_go_on_while_a_node_is_brought_up_and_it_is_shown_how_far_it_is() {
    let Some(mut pair) = Pair::start("resync-load") else {
        return;
    };
    pair.with_lun();
    pair.places[0].run(0, "lun resize vm01 --size 256M");
    pair.comes_to(1, "replica");
    pair.kill(1);
    pair.comes_to(0, "solo");
    let commands: Vec<String> = (0..256)
        .map(|at| format!("write -P {} {at}M 1M", 1 + at % 250))
        .collect();
    let said = pair.host(0, &commands);
    assert_eq!(said.matches("wrote 1048576/1048576").count(), 256);
    let before = p99(&pair, 3);
    pair.begin(1);
    let mut seen = Value::Null;
    until("it is shown how far it is", || {
        seen = pair.mirror(0)["resyncs"][0].clone();
        seen["node"] == "san-b"
    });
    let all = seen["done_bytes"].as_u64().unwrap() + seen["left_bytes"].as_u64().unwrap();
    assert_eq!(all, 256 << 20, "{seen}");
    let during = p99(&pair, 3);
    let still = pair.mirror(0)["resyncs"][0].clone();
    println!("99 of 100 took {before} us, and {during} us meanwhile: {seen}, {still}");
    assert!(
        during <= before * LONGER_MAX,
        "{before} us, then {during} us"
    );
    pair.comes_to(1, "replica");
    pair.comes_to(0, "owner");
}
