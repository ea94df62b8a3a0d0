//! What a pool's journal stands on goes away while hosts work: clear words, nothing lost, and all
//! is well when it is back. What hosts have is asked by a foreign client (qemu-io).

use crate::journal::{LUN, load, served, state, with_journal};
use crate::members::Loop;
use crate::place::Place;
use crate::small_file_system::{SmallFileSystem, is_root};
use std::fs::File;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

/// Runs commands of qemu-io on LUN 0, and gives what it says.
pub(crate) fn qemu_io(portal: &str, commands: &[String]) -> String {
    qemu_io_of(portal, 0, commands)
}

/// The same on a LUN with this number.
pub(crate) fn qemu_io_of(portal: &str, lun: u32, commands: &[String]) -> String {
    let mut words = vec!["-f".to_owned(), "raw".to_owned()];
    for command in commands {
        words.extend(["-c".to_owned(), command.clone()]);
    }
    words.push(format!("iscsi://{portal}/iqn.2026-11.io.causeway:t1/{lun}"));
    let output = Command::new("qemu-io").args(&words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text + &String::from_utf8_lossy(&output.stderr)
}

/// Writes a piece of 64 KiB, which goes through the journal.
pub(crate) fn write(pieces: impl Iterator<Item = u64>) -> Vec<String> {
    let write = |piece: u64| format!("write -P {} {} 64k", byte(piece), piece << 16);
    pieces.map(write).collect()
}

/// What such a piece is full of.
pub(crate) fn byte(piece: u64) -> u64 {
    1 + piece % 251
}

/// A client that writes all pieces again and again.
pub(crate) fn begin_writes(portal: &str) -> Child {
    let mut client = Command::new("qemu-io");
    client.args(["-f", "raw"]);
    for command in (0..4).flat_map(|_| write(0..1000)) {
        client.args(["-c", &command]);
    }
    client.arg(format!("iscsi://{portal}/iqn.2026-11.io.causeway:t1/0"));
    client.stdout(Stdio::null()).stderr(Stdio::null());
    client.spawn().unwrap()
}

/// Reads pieces that must be there.
pub(crate) fn must_hold(portal: &str, pieces: impl Iterator<Item = u64>) {
    let read = |piece: u64| format!("read -P {} {} 64k", byte(piece), piece << 16);
    let commands: Vec<String> = pieces.map(read).collect();
    let output = qemu_io(portal, &commands);
    assert!(!output.contains("failed"), "{output}");
    let good = output.matches("read 65536/65536").count();
    assert_eq!(good, commands.len(), "{output}");
}

/// Pieces whose write was acknowledged, from `first` on.
pub(crate) fn acknowledged(output: &str, first: u64) -> Vec<u64> {
    let written = output.matches("wrote 65536/65536").count() as u64;
    (first..first + written).collect()
}

/// Asks until the LUN is in this state.
pub(crate) fn until(place: &Place, wanted: &str) -> String {
    // Each question is a process of its own, which takes some milliseconds.
    for _ in 0..5_000 {
        let (now, reason) = state(place);
        if now == wanted {
            return reason;
        }
    }
    panic!("it is never {wanted}: {:?}", state(place))
}

#[test]
fn a_journal_that_is_moved_away_under_load_is_destaged_and_found_again_without_a_restart() {
    let place = with_journal("journal-moved", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    let mut there = acknowledged(&qemu_io(&portal, &write(0..40)), 0);
    assert_eq!(there.len(), 40);
    let (journal, aside) = (place.path("data/journal"), place.path("aside"));
    std::fs::rename(&journal, &aside).unwrap();
    // Some of these may be acknowledged, before anybody has seen that it is gone; then they must be
    // there.
    there.extend(acknowledged(&qemu_io(&portal, &write(40..80)), 40));
    let reason = until(&place, "offline");
    assert!(reason.contains("is gone from its place"), "{reason}");
    let status = place.json("status");
    let problems = status["problems"].to_string();
    assert!(problems.contains("is gone from its place"), "{problems}");
    let output = qemu_io(&portal, &write(80..81));
    assert!(!output.contains("wrote 65536"), "{output}");
    std::fs::rename(&aside, &journal).unwrap();
    until(&place, "online");
    must_hold(&portal, there.iter().copied());
    load(&place, &portal, "");
    daemon.stop();
    let daemon = place.start();
    assert_eq!(state(&place).0, "online");
    daemon.stop();
}

#[test]
fn a_journal_that_is_removed_after_all_of_it_was_destaged_is_known_to_lose_nothing() {
    let place = with_journal("journal-removed", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    assert_eq!(acknowledged(&qemu_io(&portal, &write(0..20)), 0).len(), 20);
    std::fs::remove_file(place.path("data/journal")).unwrap();
    until(&place, "offline");
    let answer = place.json("journal discard default --dry-run");
    assert_eq!(answer["losses"], serde_json::Value::Null, "{answer}");
    assert_eq!(answer["unknown"], serde_json::Value::Null, "{answer}");
    // It is given up by its name all the same.
    let refused = place.run(5, "journal discard default");
    assert!(
        refused.contains("holds nothing that is not destaged"),
        "{refused}"
    );
    let done = place.run(0, "journal discard default --confirm default");
    assert!(
        done.contains("nothing is lost with the journal of pool default"),
        "{done}"
    );
    until(&place, "online");
    must_hold(&portal, 0..20);
    daemon.stop();
    // Another process knows nothing of what one that it never saw held.
    std::fs::remove_file(place.path("data/journal")).unwrap();
    let daemon = place.start();
    let answer = place.json("journal discard default --dry-run");
    assert!(answer["unknown"].is_string(), "{answer}");
    daemon.stop();
}

#[test]
fn a_journal_on_a_device_survives_a_kill_and_serves_again_when_the_device_that_was_pulled_is_back()
{
    if !is_root() {
        println!("skipped: only root can make loop devices");
        return;
    }
    for sector in ["512", "4096"] {
        let place = with_journal("journal-device", LUN);
        let disk = place.path("disk");
        File::create(&disk).unwrap().set_len(96 << 20).unwrap();
        let device = Loop::over(&disk, sector);
        // As udev names devices: what is pulled has no name any more.
        let name = place.path("data/journal");
        std::fs::create_dir_all(place.path("data")).unwrap();
        symlink(device.path(), &name).unwrap();
        let daemon = place.start();
        place.run(0, "apply -f objects.toml");
        // All of the device, whatever `journal_size` says of files.
        let journal = place.json("pool show default")["journal"].clone();
        assert!(
            journal["size_bytes"].as_u64().unwrap() > 90 << 20,
            "{journal}"
        );
        let output = qemu_io(&served(&place), &write(0..80));
        assert_eq!(acknowledged(&output, 0).len(), 80, "{output}");
        daemon.kill();
        let daemon = place.start();
        let portal = served(&place);
        must_hold(&portal, 0..80);
        std::fs::remove_file(&name).unwrap();
        let reason = until(&place, "offline");
        assert!(reason.contains("is gone from its place"), "{reason}");
        symlink(device.path(), &name).unwrap();
        until(&place, "online");
        must_hold(&portal, 0..80);
        load(&place, &portal, "");
        place.run(0, &format!("pool check {}", name.display()));
        daemon.stop();
    }
}

#[test]
fn an_older_copy_of_a_journal_is_not_taken_for_it() {
    let place = with_journal("journal-copy", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    let journal = place.path("data/journal");
    std::fs::copy(&journal, place.path("copy")).unwrap();
    assert_eq!(acknowledged(&qemu_io(&portal, &write(0..40)), 0).len(), 40);
    std::fs::remove_file(&journal).unwrap();
    until(&place, "offline");
    std::fs::rename(place.path("copy"), &journal).unwrap();
    let output = place.run(1, "journal reopen default");
    assert!(output.contains("CWY4008"), "{output}");
    assert!(output.contains("is an older copy"), "{output}");
    assert_eq!(state(&place).0, "offline");
    daemon.stop();
}

#[test]
fn an_older_copy_is_not_taken_after_a_restart_either_whether_that_was_in_order_or_not() {
    let place = with_journal("journal-copies", LUN);
    let (journal, copy, right) = (
        place.path("data/journal"),
        place.path("copy"),
        place.path("right"),
    );
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    load(&place, &served(&place), "");
    daemon.stop();
    for in_order in [true, false] {
        std::fs::copy(&journal, &copy).unwrap();
        let daemon = place.start();
        let output = qemu_io(&served(&place), &write(0..40));
        assert_eq!(acknowledged(&output, 0).len(), 40, "{output}");
        if in_order {
            daemon.stop();
        } else {
            daemon.kill();
        }
        std::fs::rename(&journal, &right).unwrap();
        std::fs::copy(&copy, &journal).unwrap();
        let before = std::fs::read(&journal).unwrap();
        let daemon = place.start();
        let reason = until(&place, "offline");
        assert!(reason.contains("is an older copy"), "{reason}");
        // However often it is tried: it does not come nearer by that.
        for _ in 0..3 {
            let output = place.run(1, "journal reopen default");
            assert!(output.contains("is an older copy"), "{output}");
            assert!(output.contains("journals/default.json"), "{output}");
        }
        assert!(std::fs::read(&journal).unwrap() == before, "it was changed");
        std::fs::rename(&right, &journal).unwrap();
        until(&place, "online");
        must_hold(&served(&place), 0..40);
        daemon.stop();
    }
    // Whoever put back everything says so.
    std::fs::copy(&copy, &journal).unwrap();
    std::fs::remove_file(place.path("data/journals/default.json")).unwrap();
    let daemon = place.start();
    assert_eq!(state(&place).0, "online");
    daemon.stop();
}

#[test]
fn a_lost_journal_is_given_up_by_its_pools_name_only_and_its_luns_serve_at_once() {
    let place = with_journal("journal-discard", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    load(&place, &served(&place), "");
    place.run(4, "journal discard default --confirm default");
    let output = place.run(0, "journal reopen default");
    assert!(output.contains("nothing to do"), "{output}");
    daemon.kill();
    let journal = place.path("data/journal");
    std::fs::rename(&journal, place.path("aside")).unwrap();
    let daemon = place.start();
    assert_eq!(state(&place).0, "offline");
    let output = place.run(0, "journal discard default --dry-run");
    assert!(output.contains("vm01  unknown  unknown"), "{output}");
    for words in ["", " --confirm other"] {
        let output = place.run(5, &format!("journal discard default{words}"));
        assert!(output.contains("CWY3011"), "{output}");
    }
    assert!(!journal.exists());
    // What can be read of it is reported with its numbers.
    let mut torn = std::fs::read(place.path("aside")).unwrap();
    torn[8192..16384].fill(0);
    std::fs::write(&journal, torn).unwrap();
    let output = place.run(0, "journal discard default --dry-run");
    assert!(output.contains("not all of it is known"), "{output}");
    let output = place.run(0, "journal discard default --confirm default");
    assert!(output.contains("a new one is open"), "{output}");
    assert_eq!(state(&place).0, "online");
    load(&place, &served(&place), "");
    daemon.stop();
}

pub(crate) fn must_run(program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
}

#[test]
fn a_journal_without_space_refuses_changes_keeps_what_it_has_and_serves_when_there_is_some() {
    if !is_root() {
        println!("skipped: only root can mount a file system that is soon full");
        return;
    }
    let place = with_journal("journal-fails", LUN);
    let mounted = place.path("small");
    let _small = SmallFileSystem::mount(&mounted, 40 << 20).unwrap();
    let (disk, filler) = (mounted.join("journal"), mounted.join("filler"));
    let named = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let named = named.replace("\"data/journal\"", "\"small/journal\"");
    place.write("node.toml", &named.replace("\"64MiB\"", "\"32MiB\""));
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    let mut there = acknowledged(&qemu_io(&portal, &write(0..40)), 0);
    assert_eq!(there.len(), 40);
    // There is no room any more for what the journal is to take from its eighth MiB on.
    must_run(
        "fallocate",
        &["-p", "-o", "8M", "-l", "24M", disk.to_str().unwrap()],
    );
    let _ = std::fs::write(&filler, vec![1; 40 << 20]);
    let output = qemu_io(&portal, &write(40..240));
    assert!(output.contains("failed"), "{output}");
    there.extend(acknowledged(&output, 40));
    let facts = place.json("pool show default")["journal"].clone();
    assert_eq!(facts["state"], "failed", "{facts}");
    let why = facts["problem"].as_str().unwrap();
    assert!(why.contains("a write to it failed"), "{why}");
    let problems = place.json("status")["problems"].to_string();
    assert!(problems.contains("make room where it lies"), "{problems}");
    // What was acknowledged can be read, and nothing more is taken.
    must_hold(&portal, there.iter().copied());
    let output = qemu_io(&portal, &write(240..241));
    assert!(!output.contains("wrote 65536"), "{output}");
    std::fs::remove_file(&filler).unwrap();
    let mut facts = serde_json::Value::Null;
    // Each takes some milliseconds.
    for _ in 0..5_000 {
        facts = place.json("pool show default")["journal"].clone();
        if facts["state"] == "open" && state(&place).0 == "online" {
            break;
        }
    }
    assert_eq!(
        (facts["state"].as_str(), &facts["problem"]),
        (Some("open"), &serde_json::Value::Null)
    );
    assert_eq!(state(&place).0, "online");
    must_hold(&portal, there.iter().copied());
    load(&place, &portal, "");
    daemon.stop();
}

#[test]
fn a_full_disk_below_a_journal_is_named_and_what_waits_is_destaged_when_there_is_room() {
    if !is_root() {
        println!("skipped: only root can mount a file system that is soon full");
        return;
    }
    let place = with_journal("journal-full-disk", LUN);
    std::fs::create_dir_all(place.path("data")).unwrap();
    let pool = place.path("data/pool");
    let _small = SmallFileSystem::mount(&pool, 8 << 20).unwrap();
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    // Twice as much as fits; all of it is acknowledged from the journal.
    let there = acknowledged(&qemu_io(&portal, &write(0..256)), 0);
    assert_eq!(there.len(), 256);
    let mut errors = String::new();
    for _ in 0..5_000 {
        errors = place.json("pool show default")["journal"]["destage_errors"].to_string();
        if errors.contains("no space is left") {
            break;
        }
    }
    assert!(errors.contains("no space is left"), "{errors}");
    assert!(errors.contains("vm01"), "{errors}");
    let problems = place.json("status")["problems"].to_string();
    assert!(problems.contains("cannot be destaged"), "{problems}");
    must_hold(&portal, there.iter().copied());
    let larger = format!("remount,size={}", 64 << 20);
    must_run("mount", &["-o", &larger, pool.to_str().unwrap()]);
    let mut facts = serde_json::Value::Null;
    for _ in 0..5_000 {
        facts = place.json("pool show default")["journal"].clone();
        if facts["oldest_ms"].is_null() && facts["destage_errors"].is_null() {
            break;
        }
    }
    assert!(facts["destage_errors"].is_null(), "{facts}");
    assert_eq!(facts["pending_bytes"], 0, "{facts}");
    must_hold(&portal, there.iter().copied());
    daemon.stop();
}

#[test]
fn a_copy_of_a_journal_from_the_same_opening_is_not_taken_once_what_it_lacks_was_written_down() {
    let place = with_journal("journal-same-opening", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    let journal = place.path("data/journal");
    assert_eq!(acknowledged(&qemu_io(&portal, &write(0..10)), 0).len(), 10);
    std::fs::copy(&journal, place.path("copy")).unwrap();
    let record = || std::fs::read(place.path("data/journals/default.json")).unwrap();
    let before = record();
    assert_eq!(
        acknowledged(&qemu_io(&portal, &write(10..40)), 10).len(),
        30
    );
    // Each question is a process of its own, which takes some milliseconds.
    let written = (0..5_000).any(|_| state(&place).0 == "online" && record() != before);
    assert!(
        written,
        "what is stable is written down while it is written"
    );
    daemon.kill();
    std::fs::rename(&journal, place.path("right")).unwrap();
    std::fs::copy(place.path("copy"), &journal).unwrap();
    let daemon = place.start();
    let (now, reason) = state(&place);
    assert_eq!(now, "offline");
    assert!(reason.contains("is an older copy"), "{reason}");
    std::fs::remove_file(&journal).unwrap();
    std::fs::rename(place.path("right"), &journal).unwrap();
    until(&place, "online");
    must_hold(&served(&place), 0..40);
    daemon.stop();
}
