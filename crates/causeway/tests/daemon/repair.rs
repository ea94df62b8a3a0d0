//! Blocks that are not what was written are made good by the host that writes them again, and what
//! cannot be carried over them is reported.

use crate::gone::qemu_io;
use crate::integrity::{BLOCK, FIRST, READS, flip, load, places, problems, scrubbed, stops_well};
use crate::integrity::{with_journal, written};
use crate::journal::served;
use crate::place::Place;
use serde_json::Value;
use std::time::Duration;

/// Asks until `vm01` is so.
fn until(place: &Place, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    // Each question is a process of its own, which takes some milliseconds.
    for _ in 0..3_000 {
        let lun = place.json("lun show vm01");
        if is_so(&lun) {
            return lun;
        }
    }
    panic!("never {what}: {}", place.run(0, "lun show vm01"))
}

fn bad(lun: &Value) -> u64 {
    lun["checksums"]["bad_blocks"].as_u64().unwrap()
}

fn destage_error(lun: &Value) -> Option<&str> {
    lun["journal"]["destage_error"].as_str()
}

/// Does one thing with the LUN, from a byte on; `true` where that went well.
fn does(portal: &str, what: &str) -> bool {
    let output = qemu_io(portal, &[what.to_owned()]);
    let good = output.contains("wrote ") || output.contains("read ") && !output.contains("failed");
    assert!(good || output.contains("failed"), "{output}");
    good
}

/// The log of what became of block 2104.
fn is_logged_once(log: &str) {
    let times = |text: &str| log.matches(text).count();
    assert!(times("CWY4009") > 0, "{log}");
    let mended = "8 blocks from 2104 on, which were not what was written, were written again";
    assert_eq!(times(mended), 1, "{log}");
    assert_eq!(times("cannot be destaged, and stays there"), 1, "{log}");
}

#[test]
fn a_bad_block_is_good_once_its_4_kib_are_written_whole_and_a_part_of_it_is_held_and_reported_until_then()
 {
    let place = with_journal("repair");
    written(&place, 0);
    flip(&place, FIRST + 5);
    flip(&place, FIRST + 7);
    let daemon = place.start();
    let portal = served(&place);
    load(&place, 1, READS);
    let found = scrubbed(&place);
    assert_eq!(places(&found), [(2088, 8), (2104, 8)]);
    assert!(problems(&place)[0].contains("(CWY4009)"));

    // As a whole: it is good, and nothing of it is left to be reported.
    let (first, second) = ((FIRST + 5) * BLOCK, (FIRST + 7) * BLOCK);
    assert!(does(&portal, &format!("write -P 7 {first} 4096")));
    assert!(does(&portal, &format!("read -P 7 {first} 4096")));
    let lun = until(&place, "mended", |lun| bad(lun) == 8);
    assert_eq!(places(&lun["checksums"]), [(2104, 8)]);

    // A part: the host has what it wrote, the rest is an error at its address, and what to do is
    // reported.
    let part = second + 512;
    assert!(does(&portal, &format!("write -P 9 {part} 512")));
    let lun = until(&place, "held", |lun| destage_error(lun).is_some());
    let why = destage_error(&lun).unwrap();
    assert!(
        why.contains("the 4 KiB around block 2105") && why.contains("write them as a whole"),
        "{why}"
    );
    assert!(
        place
            .run(0, "lun show vm01")
            .contains("write them as a whole")
    );
    let reported = problems(&place).join("\n");
    assert!(reported.contains("cannot be destaged"), "{reported}");
    let metrics = place.metrics();
    assert!(
        metrics.contains("causeway_journal_destage_error_luns{pool=\"default\"} 1"),
        "{metrics}"
    );
    assert!(
        metrics.contains("causeway_integrity_bad_blocks{lun=\"vm01\"} 8"),
        "{metrics}"
    );
    daemon.kill();

    // A kill takes neither the part nor the error away.
    let daemon = place.start();
    let portal = served(&place);
    assert!(does(&portal, &format!("read -P 9 {part} 512")));
    assert!(!does(&portal, &format!("read {second} 512")));
    until(&place, "held again", |lun| destage_error(lun).is_some());
    // The journal's monitor logs once a second what lasts: an error that is over before is not
    // logged, and this one is to be.
    std::thread::park_timeout(Duration::from_millis(1500));
    // The rest of it, in another write: together they are whole.
    assert!(does(&portal, &format!("write -P 3 {second} 512")));
    let rest = second + 1024;
    assert!(does(&portal, &format!("write -P 4 {rest} 3072")));
    until(&place, "mended", |lun| {
        bad(lun) == 0 && destage_error(lun).is_none()
    });
    assert!(does(&portal, &format!("read -P 3 {second} 512")));
    assert!(does(&portal, &format!("read -P 9 {part} 512")));
    assert!(does(&portal, &format!("read -P 4 {rest} 3072")));
    assert_eq!(scrubbed(&place)["mismatched_blocks"], 0);
    assert_eq!(problems(&place), Vec::<String>::new());
    assert!(
        place
            .metrics()
            .contains("causeway_integrity_bad_blocks{lun=\"vm01\"} 0")
    );
    is_logged_once(&stops_well(daemon));
}
