//! Pools of several members in the daemon: made, written by a foreign client (qemu-io), with
//! members that go, come back, are old copies or of another kind.

use crate::gone::{must_hold, qemu_io, until, write};
use crate::journal::{load, objects, served, state};
use crate::place::Place;
use crate::small_file_system::{SmallFileSystem, is_root};
use std::path::{Path, PathBuf};
use std::process::Command;

const LUN: &str = "size = \"60MiB\"";

/// A pool of these members, with more keys.
fn pool_of(name: &str, members: &[&str], keys: &str) -> Place {
    let place = Place::new(name);
    let good = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let named: Vec<String> = members.iter().map(|it| format!("\"{it}\"")).collect();
    let named = format!("members = [{}]\n{keys}", named.join(", "));
    let pool = good.replace("path = \"data/pool\"", &named);
    assert_ne!(pool, good);
    place.write("node.toml", &pool);
    place.write("objects.toml", &objects(LUN));
    place
}

fn blank(path: &Path, mib: u64) {
    let file = std::fs::File::create(path).unwrap();
    file.set_len(mib << 20).unwrap();
}

/// Three files of 50 MiB: the first LUN lies on two of them, the second one on the second.
fn span(name: &str, keys: &str) -> Place {
    let keys = format!("layout = \"span\"\n{keys}");
    let place = pool_of(name, &["m0", "m1", "m2"], &keys);
    for member in ["m0", "m1", "m2"] {
        blank(&place.path(member), 50);
    }
    place
}

fn written(portal: &str, pieces: std::ops::Range<u64>) {
    let output = qemu_io(portal, &write(pieces.clone()));
    let good = output.matches("wrote 65536/65536").count() as u64;
    assert_eq!(good, pieces.end - pieces.start, "{output}");
}

fn lun_state(place: &Place, lun: &str) -> (String, String) {
    let lun = place.json(&format!("lun show {lun}"));
    let text = |key: &str| lun[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("reason"))
}

/// Which LUNs each member has a part of, and how much of it.
fn where_they_lie(place: &Place, pool: &serde_json::Value) {
    for (lun, on) in [("vm01", vec![0, 1]), ("vm02", vec![1])] {
        let shown = place.json(&format!("lun show {lun}"));
        assert_eq!(shown["members"], serde_json::json!(on), "{lun}");
    }
    let members = pool["members"].as_array().unwrap();
    let mut taken = members.iter().map(|it| it["taken_bytes"].as_u64().unwrap());
    assert_eq!(taken.clone().sum::<u64>(), 80 << 20);
    assert_eq!(taken.next_back(), Some(0));
    let page = place.run(0, "pool show default");
    let lines = page.lines().map(str::trim_end);
    let ends: Vec<&str> = lines.skip_while(|it| !it.starts_with("MEMBER")).collect();
    assert!(ends[1].ends_with("present  vm01"), "{page}");
    assert!(ends[2].ends_with("present  vm01, vm02"), "{page}");
    assert!(ends[3].ends_with("present"), "{page}");
    let page = place.run(0, "lun show vm01");
    assert!(
        page.contains("0, 1 of its pool: it is lost with any of them"),
        "{page}"
    );
}

#[test]
fn a_span_is_made_served_and_found_again_and_checked_without_a_daemon() {
    let place = span("span", "");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    place.run(0, "lun create vm02 --size 20M");
    let portal = served(&place);
    written(&portal, 0..960);
    let pool = place.json("pool show default");
    assert_eq!(pool["layout"], "span");
    assert_eq!(pool["members"].as_array().unwrap().len(), 3);
    assert_eq!(pool["used"], 80 << 20);
    assert_eq!(place.json("lun show vm01")["allocated"], 60 << 20);
    where_they_lie(&place, &pool);
    must_hold(&portal, 0..960);
    daemon.stop();
    let output = place.run(0, "pool check m0 m1 m2");
    assert!(output.contains("complete"), "{output}");
    assert_eq!(output.matches("can be served").count(), 2, "{output}");
    // One that is away has a name where the daemon's state is at hand.
    let output = place.run(1, "pool check m0 m2 --state nowhere");
    assert!(output.contains("absent; its last event is"), "{output}");
    assert!(!output.contains("m1"), "{output}");
    let output = place.run(1, "pool check m0 m2 --state data");
    let away = output
        .lines()
        .find(|line| line.contains("absent; its last event is"));
    assert!(away.unwrap().contains(" m1 "), "{output}");
    // In another order: a member knows its own place.
    let named = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let turned = named.replace("\"m0\", \"m1\", \"m2\"", "\"m2\", \"m0\", \"m1\"");
    place.write("node.toml", &turned);
    let daemon = place.start();
    must_hold(&served(&place), 0..960);
    daemon.kill();
    let daemon = place.start();
    must_hold(&served(&place), 0..960);
    daemon.stop();
    // Made as a span, it is none of stripes.
    place.write("node.toml", &named.replace("\"span\"", "\"stripe\""));
    let daemon = place.start();
    let (now, reason) = state(&place);
    assert_eq!(now, "offline");
    assert!(
        reason.contains("is a span, and node.toml says stripe"),
        "{reason}"
    );
    daemon.stop();
}

#[test]
fn a_member_that_goes_takes_only_its_luns_along_and_they_come_back_with_it() {
    let place = span("member-goes", "");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    place.run(0, "lun create vm02 --size 20M");
    let portal = served(&place);
    written(&portal, 0..960);
    std::fs::rename(place.path("m0"), place.path("aside")).unwrap();
    let reason = until(&place, "offline");
    assert!(reason.contains("lacks member 0"), "{reason}");
    assert!(reason.contains("m0, last event"), "{reason}");
    assert_eq!(lun_state(&place, "vm02").0, "online");
    let problems = place.json("status")["problems"].to_string();
    assert!(problems.contains("it lacks member 0"), "{problems}");
    let output = place.run(1, "lun create vm03 --size 1M");
    assert!(output.contains("not whole"), "{output}");
    std::fs::rename(place.path("aside"), place.path("m0")).unwrap();
    until(&place, "online");
    must_hold(&portal, 0..960);
    place.run(0, "lun create vm03 --size 1M");
    // Away at the start, it is missed by name as well, and comes back without a restart.
    daemon.stop();
    std::fs::rename(place.path("m0"), place.path("aside")).unwrap();
    let daemon = place.start();
    let (now, reason) = state(&place);
    assert_eq!(now, "offline");
    assert!(reason.contains("m0, last event"), "{reason}");
    assert_eq!(lun_state(&place, "vm02").0, "online");
    std::fs::rename(place.path("aside"), place.path("m0")).unwrap();
    until(&place, "online");
    must_hold(&served(&place), 0..960);
    daemon.stop();
}

#[test]
fn an_old_copy_of_a_member_is_refused_and_the_right_one_is_taken() {
    let place = span("member-stale", "");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    daemon.stop();
    std::fs::copy(place.path("m1"), place.path("copy")).unwrap();
    let daemon = place.start();
    written(&served(&place), 0..960);
    daemon.stop();
    std::fs::rename(place.path("m1"), place.path("right")).unwrap();
    std::fs::rename(place.path("copy"), place.path("m1")).unwrap();
    let output = place.run(1, "pool check m0 m1 m2");
    assert!(output.contains("stale"), "{output}");
    let daemon = place.start();
    let (now, reason) = state(&place);
    assert_eq!(now, "offline");
    assert!(reason.contains("stale: it has event"), "{reason}");
    std::fs::rename(place.path("right"), place.path("m1")).unwrap();
    until(&place, "online");
    must_hold(&served(&place), 0..960);
    daemon.stop();
}

#[test]
fn what_is_no_blank_file_is_made_no_member_and_what_is_missing_is_not_done_without() {
    let place = span("member-foreign", "");
    std::fs::write(place.path("m1"), vec![7; 4 << 20]).unwrap();
    let daemon = place.start();
    let output = place.run(1, "lun create a --size 1M");
    assert!(
        output.contains("no member of pool default is there"),
        "{output}"
    );
    let problems = place.json("status")["problems"].to_string();
    assert!(problems.contains("m0 is blank"), "{problems}");
    daemon.stop();
    assert_eq!(std::fs::read(place.path("m1")).unwrap(), vec![7; 4 << 20]);
    assert!(
        std::fs::read(place.path("m0"))
            .unwrap()
            .iter()
            .all(|&it| it == 0)
    );
}

#[test]
fn stripes_behind_a_journal_grow_shrink_and_show_nothing_of_who_was_there_before() {
    let keys = "layout = \"stripe\"\njournal = \"data/journal\"\njournal_size = \"64MiB\"\n";
    let place = pool_of("stripe", &["m0", "m1"], keys);
    blank(&place.path("m0"), 100);
    blank(&place.path("m1"), 120);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    assert_eq!(place.json("lun show vm01")["cache"], "write-back");
    assert_eq!(place.json("pool show default")["layout"], "stripe");
    load(&place, &portal, "");
    written(&portal, 0..960);
    place.run(0, "lun resize vm01 --size 90M");
    written(&portal, 960..1440);
    must_hold(&portal, 0..1440);
    let full = place.run(1, "lun resize vm01 --size 900M");
    assert!(full.contains("CWY4005"), "{full}");
    daemon.kill();
    let daemon = place.start();
    let portal = served(&place);
    must_hold(&portal, 0..1440);
    // What another LUN had reads as zeroes.
    place.run(0, "lun delete vm01 --yes");
    place.run(0, "lun purge vm01 --yes");
    place.run(0, "lun create vm01 --size 90M --integrity");
    place.run(0, "grant create all vm01 --target t1 --lun-id 0");
    let output = qemu_io(&portal, &["read -P 0 0 90M".to_owned()]);
    assert!(output.contains("read 94371840/94371840"), "{output}");
    assert!(!output.contains("failed"), "{output}");
    load(&place, &portal, "");
    // A member that is away takes the LUNs along; what the journal has of them waits for it.
    written(&portal, 0..100);
    std::fs::rename(place.path("m1"), place.path("aside")).unwrap();
    until(&place, "offline");
    std::fs::rename(place.path("aside"), place.path("m1")).unwrap();
    until(&place, "online");
    must_hold(&portal, 0..100);
    // A scrub that has just begun, and reads the members' superblocks, holds up neither the end of
    // its LUN nor a stop.
    place.run(0, "scrub start vm01");
    place.run(0, "lun delete vm01 --yes");
    place.run(0, "lun restore vm01");
    place.run(0, "scrub start vm01");
    let log = daemon.stop();
    assert!(!log.contains("not everything ended in time"), "{log}");
}

/// A loop device, gone at the end.
pub(crate) struct Loop(PathBuf);

impl Loop {
    pub(crate) fn over(file: &Path, sector: &str) -> Self {
        let mut setup = Command::new("losetup");
        setup.args(["--find", "--show", "--sector-size", sector]);
        let output = setup.arg(file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(output.status.success(), "{output:?}");
        Self(PathBuf::from(text))
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).output();
    }
}

#[test]
fn devices_are_members_those_of_other_physical_blocks_are_refused_and_stripes_over_several_disks_are_reported()
 {
    if !is_root() {
        println!("skipped: only root can make loop devices");
        return;
    }
    let files = Place::new("member-files");
    for disk in ["d0", "d1", "d2"] {
        blank(&files.path(disk), 50);
    }
    let small = Loop::over(&files.path("d0"), "512");
    let large = Loop::over(&files.path("d1"), "4096");
    let other = Loop::over(&files.path("d2"), "512");
    let mixed = [small.path(), large.path()];
    let place = pool_of("member-mixed", &mixed, "layout = \"span\"\n");
    let daemon = place.start();
    let output = place.run(1, "lun create a --size 1M");
    assert!(output.contains("physical blocks of"), "{output}");
    daemon.stop();
    let alike = [small.path(), other.path()];
    let place = pool_of("member-devices", &alike, "layout = \"stripe\"\n");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    written(&portal, 0..960);
    must_hold(&portal, 0..960);
    let notes = place.json("status")["notes"].to_string();
    assert!(notes.contains("cross 2 failure domains"), "{notes}");
    daemon.stop();
    // One device as a pool's path is a pool of one member.
    let place = Place::new("member-single");
    let named = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let device = format!("path = \"{}\"", large.path());
    place.write("node.toml", &named.replace("path = \"data/pool\"", &device));
    let daemon = place.start();
    place.run(0, "lun create a --size 10M --block-size 4096");
    assert_eq!(place.json("lun show a")["state"], "online");
    daemon.stop();
}

#[test]
fn stripes_over_two_file_systems_are_reported() {
    if !is_root() {
        println!("skipped: only root can mount a file system");
        return;
    }
    let keys = "layout = \"stripe\"\n";
    let place = pool_of("member-domains", &["m0", "small/m1"], keys);
    let small = place.path("small");
    let _mounted = SmallFileSystem::mount(&small, 60 << 20).unwrap();
    blank(&place.path("m0"), 50);
    blank(&small.join("m1"), 50);
    let daemon = place.start();
    let notes = place.json("status")["notes"].to_string();
    assert!(notes.contains("the file system at"), "{notes}");
    daemon.stop();
}

/// Bytes that LUNs have of the pool.
fn used(place: &Place) -> u64 {
    place.json("pool show default")["used"].as_u64().unwrap()
}

#[test]
fn a_new_lun_with_checksums_in_room_that_another_one_had_reads_as_zeroes_and_is_never_taken_for_damaged()
 {
    let place = span(
        "member-reused",
        "journal = \"data/journal\"\njournal_size = \"64MiB\"\n",
    );
    let checked = objects(&format!("{LUN}\nintegrity = true"));
    place.write("objects.toml", &checked);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    written(&served(&place), 0..960);
    daemon.stop();
    for round in 0..2 {
        let daemon = place.start();
        place.run(0, "lun delete vm01 --yes");
        place.run(0, "lun purge vm01 --yes");
        assert_eq!(used(&place), 0);
        place.run(0, "apply -f objects.toml");
        let portal = served(&place);
        let output = qemu_io(&portal, &["read -P 0 0 60M".to_owned()]);
        assert!(
            output.contains("read 62914560/62914560") && !output.contains("failed"),
            "{output}"
        );
        let found = crate::integrity::scrubbed(&place);
        assert_eq!(found["mismatched_blocks"], 0, "{found}");
        written(&portal, 0..960);
        // Given back and got again at its end.
        place.run(0, "lun resize vm01 --size 20M --yes");
        place.run(0, "lun resize vm01 --size 60M");
        let output = qemu_io(&portal, &["read -P 0 20M 40M".to_owned()]);
        assert!(
            output.contains("read 41943040/41943040") && !output.contains("failed"),
            "{output}"
        );
        must_hold(&portal, 0..320);
        if round == 0 {
            daemon.kill();
        } else {
            let log = daemon.stop();
            assert!(!log.contains("not what was written"), "{log}");
        }
    }
}

#[test]
fn what_a_kill_leaves_of_luns_that_are_made_or_purged_is_given_back_at_the_next_start() {
    let place = span("member-leaks", "");
    let mut daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let begun = place.path("data/intent_log.json");
    let mut killed_within = 0;
    for round in 0..12 {
        let other = format!("lun create a{round} --size 20M");
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let words: Vec<&str> = other.split(' ').collect();
                place.run_with(&place.api(), &words, "")
            });
            // At its beginning, and later each time.
            let seen = (0..2_000_000).any(|_| begun.exists() || asked.is_finished());
            assert!(seen, "it was never written down");
            let _later = (0..round * 100).filter(|_| begun.exists()).count();
            daemon.kill();
            drop(asked.join());
        });
        killed_within += u32::from(begun.exists());
        daemon = place.start();
        let luns = place.json("lun ls");
        let sizes = luns.as_array().unwrap().iter();
        let sizes: u64 = sizes.map(|lun| lun["size"].as_u64().unwrap()).sum();
        assert_eq!(used(&place), sizes, "round {round}");
        for lun in luns.as_array().unwrap() {
            let name = lun["name"].as_str().unwrap();
            if name != "vm01" {
                place.run(0, &format!("lun delete {name}"));
                place.run(0, &format!("lun purge {name} --yes"));
            }
        }
        assert_eq!(used(&place), 60 << 20);
    }
    assert!(
        killed_within > 0,
        "no kill came while something was under way"
    );
    // Purged while a member is away: the others cannot give back what they have, until the next
    // start with all of them.
    place.run(0, "lun create vm02 --size 20M");
    place.run(0, "lun delete vm02");
    std::fs::rename(place.path("m2"), place.path("aside")).unwrap();
    let reported = (0..5_000).find_map(|_| {
        let shown = place.json("status")["problems"].to_string();
        shown.contains("m2").then_some(shown)
    });
    assert!(reported.is_some());
    place.run(6, "lun purge vm02 --yes");
    daemon.kill();
    std::fs::rename(place.path("aside"), place.path("m2")).unwrap();
    let daemon = place.start();
    assert_eq!(used(&place), 60 << 20);
    assert!(!begun.exists());
    let log = daemon.stop();
    assert!(log.contains("was given back"), "{log}");
}
