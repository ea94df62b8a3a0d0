//! Two paths, and what happens to them: no error to an application, and every block as it was
//! written.

use crate::bed::{Bed, HOST, PORTALS};
use crate::load::Load;
use std::time::Duration;

/// What a dead path may cost where a host is set up with the text that `share create` prints.
const DEAD_PATH_MAX: Duration = Duration::from_secs(5);

/// A map, as the host has it.
fn shown(bed: &Bed, map: &str) -> String {
    bed.guest.run(&format!("multipath -ll {map}"))
}

/// Waits until so many paths have failed.
fn wait_for_failed(bed: &Bed, map: &str, count: usize) {
    bed.guest.wait_until(
        &format!("[ $(multipath -ll {map} | grep -c ' failed ') = {count} ]"),
        Duration::from_secs(60),
    );
}

#[test]
fn the_printed_text_makes_one_disk_of_two_paths_and_a_dead_path_costs_five_seconds_at_most() {
    let Some(mut bed) = Bed::make() else { return };
    // Without its line that names the LUN, the text makes no map on Debian: the guest is as strict
    // as Debian is.
    let nameless = |text: &str| {
        let lines = text.lines().filter(|it| !it.starts_with("multipath -"));
        lines.collect::<Vec<_>>().join("\n")
    };
    bed.paste("vm01", "--size 256M", nameless);
    assert_eq!(bed.guest.run("multipath -ll"), "");
    let well = |check| bed.doctor(check).is_none_or(|verdict| verdict == "good");
    let bad = |check| bed.doctor(check).is_none_or(|verdict| verdict == "problem");
    assert!(bad("one-disk"));
    let map = bed.share_again("vm01");
    assert!(well("one-disk") && well("dead-path") && well("later-logins"));
    let paths = shown(&bed, &map);
    assert_eq!(paths.matches("active ready running").count(), 2, "{paths}");
    let disk = format!("/dev/disk/by-id/dm-uuid-mpath-{map}");
    let page = bed.linux_text("vm01");
    assert!(page.contains(&disk), "{page}");
    let disk = bed.guest.run(&format!("readlink -f {disk}"));
    let disk = disk.trim();
    assert!(disk.starts_with("/dev/dm-"), "{disk}");
    let waits = bed.guest.run("cat /sys/class/iscsi_session/*/recovery_tmo");
    assert_eq!(waits, "1\n1\n");
    // Whoever pastes it again breaks nothing.
    let again = bed.guest.try_run(&page);
    assert!(
        again.said.matches("active ready running").count() == 2,
        "{again:?}"
    );

    // Twice, because a session that was made anew must not have forgotten its settings.
    for path in [0, 0] {
        let load = Load::start(&bed.guest, disk, 8, 4);
        load.wait_for_writes(&bed.guest);
        bed.set_black_hole(path, true);
        wait_for_failed(&bed, &map, 1);
        bed.set_black_hole(path, false);
        bed.wait_for_paths(&map, 2);
        let report = load.stop(&bed.guest);
        println!("a black hole at {}: {report:?}", PORTALS[path]);
        assert!(report.longest <= DEAD_PATH_MAX, "{report:?}");
    }

    let mut load = Load::start(&bed.guest, disk, 8, 4);
    load.wait_for_writes(&bed.guest);
    bed.guest.set_link(0, false);
    wait_for_failed(&bed, &map, 1);
    bed.guest.set_link(0, true);
    bed.wait_for_paths(&map, 2);
    assert!(load.is_running(), "the cable");
    bed.kill_daemon();
    bed.start_daemon();
    bed.wait_for_paths(&map, 2);
    let report = load.stop(&bed.guest);
    println!("a cable and a kill: {report:?}");
    bed.assert_is_well();
}

/// The host's two files of secrets, and then what is printed.
fn with_secrets(text: &str) -> String {
    format!(
        "cd /tmp\nprintf 'a-secret of the host\\n' > chap.secret\nprintf 'a-secret of the san\\n' > mutual.secret\n{text}"
    )
}

#[test]
#[ignore = "half a minute: `make linux`"]
fn the_printed_lines_for_chap_make_both_sides_prove_themselves() {
    let Some(mut bed) = Bed::make() else { return };
    bed.place.write("chap.secret", "a-secret of the host\n");
    bed.place.write("mutual.secret", "a-secret of the san\n");
    bed.place.run(
        0,
        &format!(
            "host create guest --iqn {HOST} --chap-user guest --chap-secret-file chap.secret \
             --mutual-user san --mutual-secret-file mutual.secret"
        ),
    );
    let map = bed.share_as("vm01", "--size 64M", with_secrets);
    let sessions = bed.place.json("session ls");
    let sessions = sessions.as_array().expect("a list");
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    for session in sessions {
        let answer = bed.place.json(&format!("session show {}", session["id"]));
        assert_eq!(answer["chap_user"], "guest", "{answer}");
        assert_eq!(answer["mutual_chap"], true, "{answer}");
    }
    let load = Load::start(&bed.guest, &format!("/dev/mapper/{map}"), 8, 4);
    load.wait_for_writes(&bed.guest);
    bed.kill_daemon();
    bed.start_daemon();
    bed.wait_for_paths(&map, 2);
    println!("a kill, and logins with CHAP: {:?}", load.stop(&bed.guest));
    bed.assert_is_well();
}

#[test]
#[ignore = "half a minute: `make linux`"]
fn a_reset_through_one_of_two_paths_costs_two_seconds_at_most() {
    let Some(mut bed) = Bed::make() else { return };
    let map = bed.share("vm01", "--size 64M");
    let paths = shown(&bed, &map);
    let path = paths.split_whitespace().find(|word| {
        let letters = word.strip_prefix("sd").unwrap_or_default();
        !letters.is_empty() && letters.bytes().all(|it| it.is_ascii_lowercase())
    });
    let path = path.expect("a path").to_owned();
    for _ in 0..2 {
        let load = Load::start(&bed.guest, &format!("/dev/mapper/{map}"), 8, 4);
        load.wait_for_writes(&bed.guest);
        bed.guest.run(&format!("sg_reset --device /dev/{path}"));
        let report = load.stop(&bed.guest);
        println!("a reset through one of two paths: {report:?}");
        assert!(report.longest < Duration::from_secs(2), "{report:?}");
    }
    bed.wait_for_paths(&map, 2);
    bed.assert_is_well();
}
