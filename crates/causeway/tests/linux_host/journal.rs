//! What the pool's journal stands on goes away, and comes back, or is given up: hosts wait, and go
//! on by themselves.

use crate::bed::{Bed, JOURNAL};
use crate::load::Load;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Moves the file aside, or back.
fn move_it(bed: &Bed, away: bool) {
    let (there, aside) = (bed.place.path("data/journal"), bed.place.path("aside"));
    let (from, to) = if away { (there, aside) } else { (aside, there) };
    std::fs::rename(from, to).expect("it can be moved");
}

fn wait_for_state(bed: &Bed, wanted: &str) {
    let until = std::time::Instant::now() + LIMIT;
    loop {
        let lun = bed.place.json("lun show vm01");
        if lun["state"] == wanted {
            return;
        }
        assert!(
            std::time::Instant::now() < until,
            "never {wanted}: {lun}\n{}",
            bed.log()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The host has to do without the LUN for a while, which is what the time is for; then the journal
/// is back.
fn comes_back(bed: &Bed, map: &str) {
    wait_for_state(bed, "offline");
    std::thread::sleep(Duration::from_secs(5));
    move_it(bed, false);
    wait_for_state(bed, "online");
    bed.wait_for_paths(map, 2);
}

#[test]
#[ignore = "a minute: `make linux`"]
fn a_journal_that_is_moved_away_costs_no_error_and_one_that_is_given_up_no_block_that_was_destaged()
{
    let Some(mut bed) = Bed::with(JOURNAL) else {
        return;
    };
    let map = bed.share("vm01", "--size 64M");
    let disk = format!("/dev/mapper/{map}");

    let load = Load::start(&bed.guest, &disk, 8, 4);
    load.wait_for_writes(&bed.guest);
    move_it(&bed, true);
    comes_back(&bed, &map);
    println!(
        "moved away while it serves, and back: {:?}",
        load.stop(&bed.guest)
    );

    let load = Load::start(&bed.guest, &disk, 8, 4);
    load.wait_for_writes(&bed.guest);
    bed.kill_daemon();
    move_it(&bed, true);
    bed.start_daemon();
    comes_back(&bed, &map);
    println!(
        "killed, and moved away before the start: {:?}",
        load.stop(&bed.guest)
    );

    // Nothing writes, and all of it is destaged; then the file is removed, and the journal given up
    // by the pool's name.
    bed.guest.run(&format!(
        "dd if=/dev/urandom of=/tmp/wanted bs=1M count=8 status=none && \
         dd if=/tmp/wanted of={disk} bs=1M oflag=direct conv=fsync status=none"
    ));
    std::fs::remove_file(bed.place.path("data/journal")).expect("it is there");
    wait_for_state(&bed, "offline");
    let answer = bed.place.json("journal discard default --dry-run");
    assert_eq!(answer["losses"], serde_json::Value::Null, "{answer}");
    // It waits until there is a path again.
    let reader = bed.guest.start(&format!(
        "dd if={disk} of=/tmp/found bs=1M count=8 iflag=direct status=none && \
         [ \"$(sha256sum < /tmp/found)\" = \"$(sha256sum < /tmp/wanted)\" ]"
    ));
    bed.place
        .run(0, "journal discard default --confirm default");
    wait_for_state(&bed, "online");
    reader.end();
    bed.wait_for_paths(&map, 2);
    let load = Load::start(&bed.guest, &disk, 8, 4);
    load.wait_for_writes(&bed.guest);
    println!("given up, and made anew: {:?}", load.stop(&bed.guest));
    bed.assert_is_well();
}
