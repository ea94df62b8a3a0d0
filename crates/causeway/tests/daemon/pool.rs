//! `causeway pool check`, on members that are made here.

use crate::place::Place;
use members::{Layout, LunId, Member, MemberId, PoolId, Superblock, offset_of};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

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
    let told = check(0, &[2, 0, 1]);
    assert!(
        told.contains("(span), event 7, 13 MiB of 24 MiB free, complete"),
        "{told}"
    );
    assert_eq!(told.matches(" present").count(), 3, "{told}");
    let told = check(1, &[0, 2]);
    assert!(told.contains("NOT COMPLETE"), "{told}");
    assert!(told.contains("absent; its last event is 7"), "{told}");
    assert!(told.contains("error[CWY4006]"), "{told}");
    // The first LUN lies on member 0 alone, the second on 0 and 1.
    assert_eq!(told.matches("can be served").count(), 1, "{told}");
    assert_eq!(told.matches("lacks a member").count(), 1, "{told}");
    make(&place, 1, 5);
    let told = check(1, &[0, 1, 2]);
    assert!(
        told.contains("stale: it has event 5, and the pool expects 7"),
        "{told}"
    );
    place.write("m1", "something else");
    let told = check(1, &[0, 1, 2]);
    assert!(told.contains("it is no member of a pool"), "{told}");
    let told = check(1, &[1]);
    assert!(told.contains("error[CWY4007]"), "{told}");
}
