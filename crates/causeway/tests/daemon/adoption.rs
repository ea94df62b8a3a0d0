//! State directories that were lost, moved or restored: LUNs that no object names are adopted,
//! older objects are noticed, and kept ones are gone back to.

use crate::gone::{must_hold, qemu_io, write};
use crate::journal::{LUN, served, with_journal};
use crate::place::Place;
use serde_json::{Value, json};
use std::path::Path;

/// All of the state directory is lost, and the pool is not.
fn lose_state(place: &Place) {
    for entry in std::fs::read_dir(place.path("data")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if ["pool", "journal"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
    }
}

/// The pool stands elsewhere than the state.
pub(super) fn outside(place: &Place) {
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write("node.toml", &config.replace("data/pool", "pool"));
}

fn copy(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status();
    assert!(done.unwrap().success());
}

/// What must be the same of a LUN.
fn identity(lun: &Value) -> Vec<Value> {
    let keys = [
        "name",
        "naa",
        "serial",
        "size",
        "block_size",
        "physical_block_size",
        "thin",
        "cache",
        "integrity",
        "limit",
        "state",
    ];
    keys.iter().map(|key| lun[*key].clone()).collect()
}

/// The file of an orphan that had this name.
fn file_of(orphans: &Value, name: &str) -> String {
    let mut all = orphans.as_array().unwrap().iter();
    let found = all.find(|it| it["name"] == name).unwrap();
    found["file"].as_str().unwrap().to_owned()
}

#[test]
fn luns_of_a_lost_state_directory_are_reported_and_adopted_with_everything_that_they_were() {
    let place = Place::new("adopt");
    outside(&place);
    let daemon = place.start();
    place.run(
        0,
        "lun create a --size 3M --block-size 4096 --limit-iops 500",
    );
    place.run(
        0,
        "lun create b --size 16M --physical-block-size 4096 --cache write-through",
    );
    place.run(0, "lun create c --size 1M");
    place.run(0, "lun rename b d");
    place.run(0, "lun resize a --size 5M");
    place.run(0, "lun delete c");
    let before: Vec<Value> = ["a", "d"]
        .iter()
        .map(|it| place.json(&format!("lun show {it}")))
        .collect();
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    let daemon = place.start();
    let status = place.json("status");
    assert_eq!(status["health"], "degraded");
    let reported = status["problems"].to_string();
    assert!(
        reported.contains("no object names") && reported.contains("lun adopt --all"),
        "{reported}"
    );
    let orphans = place.json("lun ls --orphans");
    assert_eq!(orphans.as_array().unwrap().len(), 3, "{orphans}");
    let table = place.run(0, "lun ls --orphans");
    assert!(
        table.contains("was deleted") && table.contains("can be adopted"),
        "{table}"
    );
    place.run(3, "lun adopt nothing");
    place.run(2, "lun adopt");
    // A name that another one has meanwhile stays that one's.
    place.run(0, "lun create a --size 1M");
    let output = place.run(0, "lun adopt a");
    assert!(output.contains("adopt lun a-2: 5 MiB"), "{output}");
    place.run(0, "lun delete a");
    place.run(0, "lun purge a --yes");
    place.run(0, "lun rename a-2 a");
    let of_d = file_of(&orphans, "d");
    place.run(0, &format!("lun adopt {of_d} --pool default"));
    let output = place.run(0, "lun adopt --all");
    assert!(output.contains("LUN c had been deleted"), "{output}");
    for lun in &before {
        let name = lun["name"].as_str().unwrap();
        let now = place.json(&format!("lun show {name}"));
        assert_eq!(identity(&now), identity(lun), "{name}");
    }
    assert_eq!(place.json("lun ls --orphans"), json!([]));
    assert!(
        !place.json("status")["problems"]
            .to_string()
            .contains("no object names")
    );
    let again = place.run(0, "lun adopt --all");
    assert!(again.contains("nothing to change"), "{again}");
    place.run(3, "lun adopt a");
    daemon.stop();
    // They are this node's now.
    let daemon = place.start();
    assert_eq!(place.json("lun ls").as_array().unwrap().len(), 3);
    daemon.stop();
}

#[test]
fn one_of_which_nothing_is_known_but_its_file_is_adopted_when_its_blocks_are_named() {
    let place = Place::new("adopt-bare");
    outside(&place);
    let daemon = place.start();
    place.run(0, "lun create a --size 3M");
    place.run(0, "lun create b --size 3M");
    let naa = |name: &str| {
        let lun = place.json(&format!("lun show {name}"));
        lun["naa"].as_str().unwrap().to_owned()
    };
    let (a, b) = (naa("a"), naa("b"));
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    std::fs::remove_file(place.path(&format!("pool/{a}.record"))).unwrap();
    let damaged = place.path(&format!("pool/{b}.record"));
    let mut text = std::fs::read(&damaged).unwrap();
    *text.last_mut().unwrap() ^= 1;
    std::fs::write(&damaged, text).unwrap();
    let daemon = place.start();
    let output = place.run(2, &format!("lun adopt {a}"));
    assert!(output.contains("--block-size"), "{output}");
    let table = place.run(0, "lun ls --orphans");
    assert!(table.contains("the checksum does not match"), "{table}");
    let output = place.run(0, "lun adopt --all");
    assert!(
        output.contains("nothing to change") && output.contains("is left"),
        "{output}"
    );
    place.run(0, &format!("lun adopt {a} --name a --block-size 4096"));
    place.run(
        0,
        &format!("lun adopt {b}.lun --block-size 512 --physical-block-size 4096"),
    );
    let lun = place.json("lun show a");
    assert_eq!((&lun["naa"], &lun["size"]), (&json!(a), &json!(3 << 20)));
    assert_eq!(lun["block_size"], 4096);
    let named = format!("adopted-{}", &b[24..]);
    assert_eq!(place.json(&format!("lun show {named}"))["state"], "online");
    daemon.stop();
}

#[test]
fn an_older_copy_of_the_state_directory_is_noticed_and_nothing_is_changed_on_top_of_it() {
    let place = Place::new("older");
    outside(&place);
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    daemon.stop();
    copy(&place.path("data"), &place.path("copy"));
    let daemon = place.start();
    place.run(0, "share create b --size 1M --for iqn.2020-01.a:b");
    place.run(0, "lun delete a");
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    std::fs::rename(place.path("copy"), place.path("data")).unwrap();
    for _ in 0..2 {
        let daemon = place.start();
        let status = place.json("status");
        assert_eq!(status["health"], "degraded");
        let reported = status["problems"].to_string();
        assert!(
            reported.contains("CWY4012") && reported.contains("no object names: b"),
            "{reported}"
        );
        for change in ["lun create c --size 1M", "lun adopt --all", "lun delete a"] {
            let output = place.run(5, change);
            assert!(output.contains("error[CWY4012]"), "{change}: {output}");
        }
        assert!(daemon.stop().contains("CWY4012"));
    }
    let daemon = place.start();
    // Nothing newer is given up before it was said what that is, and was meant.
    let output = place.run(0, "state accept --dry-run");
    for wanted in [
        "change lun a: it was deleted since: it is in service",
        "note: LUN b of 1 MiB in pool default is not among these objects",
        "note: what generations 3 to 4 said of targets, hosts, grants and secrets is not known here",
        "without --yes it would be refused",
        "(dry run: nothing was changed)",
    ] {
        assert!(output.contains(wanted), "{wanted}: {output}");
    }
    let refused = place.run_with(&place.api(), &["state", "accept", "-o", "json"], "");
    let problem: serde_json::Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(problem["code"], "CWY3008", "{problem}");
    assert_eq!(problem["losses"].as_array().unwrap().len(), 3, "{problem}");
    assert!(
        place.json("status")["problems"]
            .to_string()
            .contains("CWY4012")
    );
    place.run(0, "state accept --yes");
    assert!(
        !place.json("status")["problems"]
            .to_string()
            .contains("CWY4012")
    );
    place.run(0, "state accept --yes");
    place.run(0, "lun adopt --all");
    assert_eq!(place.json("lun show b")["state"], "online");
    daemon.stop();
    let daemon = place.start();
    assert!(
        !place.json("status")["problems"]
            .to_string()
            .contains("CWY4012")
    );
    daemon.stop();
}

#[test]
fn a_kept_generation_comes_back_without_losing_data() {
    let place = Place::new("rollback");
    let daemon = place.start();
    place.run(0, "share create a --size 1M --for iqn.2020-01.a:a");
    place.run(0, "lun create gone --size 1M");
    let then = place.json("status")["generation"].as_u64().unwrap();
    let wanted = place.run(0, "export");
    place.run(0, "lun resize a --size 2M");
    place.run(0, "lun rename a z");
    place.run(0, "grant delete a z");
    place.run(0, "lun create new --size 1M");
    place.run(0, "lun delete gone");
    place.run(0, "lun purge gone --yes");
    let kept = place.json("state ls");
    let numbers: Vec<u64> = kept
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["generation"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] > pair[1]) && numbers.contains(&then),
        "{kept}"
    );
    assert_eq!(kept[0]["in_force"], true);
    for verb in ["show", "rollback"] {
        place.run(3, &format!("state {verb} 9999"));
    }
    assert_eq!(place.run(0, &format!("state show {then}")), wanted);
    let in_force = place.json("status")["generation"].as_u64().unwrap();
    let newest = place.run(0, &format!("state show {in_force}"));
    assert_eq!(newest, place.run(0, "export"));
    assert_ne!(newest, wanted);
    let plan = place.run(0, &format!("state rollback {then} --dry-run"));
    assert!(plan.contains("LUN gone does not come back"), "{plan}");
    let output = place.run(0, &format!("state rollback {then}"));
    for line in [
        "remove lun new: its data stays",
        "create grant a:a:a: number 0",
        "note: LUN a keeps its size of 2 MiB: it had 1 MiB then",
        "note: LUN new was not there then",
    ] {
        assert!(output.contains(line), "{line}\n{output}");
    }
    assert!(!output.contains("create lun"), "{output}");
    assert_eq!(place.json("lun show new")["state"], "removed");
    let now = place.run(0, "export");
    let expected = wanted.replace("size = \"1MiB\"", "size = \"2MiB\"");
    let cut = expected.find("[[lun]]\nname = \"gone\"").unwrap();
    let rest = expected[cut + 5..]
        .find("\n[[")
        .map(|at| cut + 5 + at + 1)
        .unwrap();
    let expected = format!("{}{}", &expected[..cut], &expected[rest..]);
    assert_eq!(now, expected);
    daemon.stop();
}

#[test]
fn what_the_journal_and_the_checksums_of_a_moved_pool_hold_comes_with_its_luns() {
    let place = with_journal(
        "adopt-journal",
        &format!("{LUN}\nphysical_block_size = 4096\nintegrity = true"),
    );
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let before = place.json("lun show vm01");
    assert_eq!(before["integrity"], true);
    must_write(&served(&place), 0..40);
    daemon.kill();
    lose_state(&place);
    let daemon = place.start();
    let output = place.run(0, "lun adopt --all");
    assert!(!output.contains("note:"), "{output}");
    let now = place.json("lun show vm01");
    assert_eq!(identity(&now), identity(&before));
    // Hosts and targets are not a pool's.
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    must_hold(&portal, 0..40);
    must_write(&portal, 40..50);
    must_hold(&portal, 0..50);
    assert_eq!(place.json("lun show vm01")["checksums"]["mismatches"], 0);
    daemon.stop();
}

fn must_write(portal: &str, pieces: std::ops::Range<u64>) {
    let output = qemu_io(portal, &write(pieces.clone()));
    let written = output.matches("wrote 65536/65536").count() as u64;
    assert_eq!(written, pieces.end - pieces.start, "{output}");
}

#[test]
fn luns_of_members_are_adopted_with_what_stands_on_the_members() {
    let place = Place::new("adopt-members");
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let members = "members = [\"m0\", \"m1\"]\nlayout = \"stripe\"";
    place.write(
        "node.toml",
        &config.replace("path = \"data/pool\"", members),
    );
    for member in ["m0", "m1"] {
        let file = std::fs::File::create(place.path(member)).unwrap();
        file.set_len(64 << 20).unwrap();
    }
    let daemon = place.start();
    place.run(0, "lun create a --size 5M --block-size 4096 --shares 300");
    place.run(0, "lun create b --size 3M");
    place.run(0, "lun rename b c");
    place.run(0, "lun resize c --size 7M");
    let before: Vec<Value> = ["a", "c"]
        .iter()
        .map(|it| place.json(&format!("lun show {it}")))
        .collect();
    daemon.stop();
    let checked = place.run(0, "pool check m0 m1");
    assert_eq!(checked.matches("can be served").count(), 2, "{checked}");
    lose_state(&place);
    let daemon = place.start();
    let reported = place.json("status")["problems"].to_string();
    assert!(
        reported.contains("no object names: a, c") || reported.contains("no object names: c, a"),
        "{reported}"
    );
    place.run(0, "lun adopt --all");
    for lun in &before {
        let now = place.json(&format!("lun show {}", lun["name"].as_str().unwrap()));
        assert_eq!(identity(&now), identity(lun));
    }
    place.run(0, "lun delete a");
    place.run(0, "lun purge a --yes");
    daemon.stop();
    let daemon = place.start();
    assert_eq!(place.json("lun ls --orphans"), json!([]));
    assert_eq!(place.json("lun show c")["state"], "online");
    daemon.stop();
}

/// A pool of these members with a journal, and a LUN with checksums to be applied.
fn members_with_journal(name: &str, layout: &str) -> Place {
    let lun = format!("{LUN}\nphysical_block_size = 4096\nintegrity = true");
    let place = with_journal(name, &lun);
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let members = format!("members = [\"m0\", \"m1\"]\nlayout = \"{layout}\"");
    let of_members = config.replace("path = \"data/pool\"", &members);
    assert_ne!(of_members, config);
    place.write("node.toml", &of_members);
    for member in ["m0", "m1"] {
        let file = std::fs::File::create(place.path(member)).unwrap();
        file.set_len(100 << 20).unwrap();
    }
    place
}

/// The sidecars that `state_dir` has of LUNs of members.
fn left_in_state_dir(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("data/pools/default"));
    let names = entries.into_iter().flatten();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Changes a byte of a piece of 64 KiB where it lies.
fn hurt(place: &Place, piece: u64) {
    let wanted = [u8::try_from(1 + piece % 251).unwrap(); 4096];
    for member in ["m0", "m1"] {
        let path = place.path(member);
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.chunks(4096).position(|it| it == wanted) {
            bytes[at * 4096 + 7] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            return;
        }
    }
    panic!("piece {piece} lies nowhere");
}

#[test]
fn checksums_and_history_of_luns_on_members_stand_there_and_are_adopted() {
    for layout in ["stripe", "span"] {
        let place = members_with_journal(&format!("adopt-checksums-{layout}"), layout);
        let daemon = place.start();
        place.run(0, "apply -f objects.toml");
        let portal = served(&place);
        must_write(&portal, 0..40);
        place.run(0, "lun resize vm01 --size 80MiB");
        must_write(&portal, 1200..1210);
        let before = place.json("lun show vm01");
        assert_eq!(before["checksums"]["unchecked_blocks"], 0, "{before}");
        daemon.stop();
        assert_eq!(left_in_state_dir(&place), [""; 0], "{layout}");
        lose_state(&place);
        let facts = place.json("pool check m0 m1");
        let lun = &facts["luns"][0];
        assert_eq!(
            (&lun["checksums"], &lun["history"]),
            (&json!("good"), &json!("good")),
            "{facts}"
        );
        assert_eq!(facts["luns"].as_array().unwrap().len(), 1, "{facts}");
        hurt(&place, 5);
        let daemon = place.start();
        assert_eq!(place.json("lun ls --orphans")[0]["has_checksums"], true);
        let output = place.run(0, "lun adopt --all");
        assert!(!output.contains("note:"), "{output}");
        let now = place.json("lun show vm01");
        assert_eq!(identity(&now), identity(&before));
        // They are those that it had, not others that were taken of what is there.
        assert_eq!(now["checksums"]["unchecked_blocks"], 0, "{now}");
        place.write(
            "objects.toml",
            &std::fs::read_to_string(place.path("objects.toml"))
                .unwrap()
                .replace("64MiB", "80MiB"),
        );
        place.run(0, "apply -f objects.toml");
        let portal = served(&place);
        must_hold(&portal, (0..40).filter(|it| *it != 5).chain(1200..1210));
        let output = qemu_io(&portal, &["read -P 6 320k 64k".to_owned()]);
        assert!(output.contains("failed"), "{output}");
        must_write(&portal, 5..6);
        must_hold(&portal, 0..40);
        // All of it is given back with its LUN.
        place.run(0, "lun delete vm01 --yes");
        place.run(0, "lun purge vm01 --yes");
        let pool = place.json("pool show default");
        assert_eq!(pool["used"], 0, "{pool}");
        daemon.stop();
    }
}

/// The sidecars of the only LUN on the members are brought to `state_dir`, as they were kept there
/// once.
fn bring_to_state_dir(place: &Place) {
    use members::{AREA_BYTES, Seen, SidecarKind, assemble, offset_of};
    use std::os::unix::fs::FileExt;
    let paths = ["m0", "m1"].map(|it| place.path(it));
    let read = |path: &std::path::PathBuf, at: u64, bytes: usize| {
        let mut all = vec![0; bytes];
        let file = std::fs::File::open(path).unwrap();
        file.read_exact_at(&mut all, at).unwrap();
        all
    };
    let seen = paths.each_ref().map(|path| {
        let even = read(path, 0, AREA_BYTES);
        let odd = read(path, AREA_BYTES as u64, AREA_BYTES);
        let named = (path.display().to_string(), None);
        Seen::of(named, 100 << 20, None, [&even, &odd])
    });
    let mut assembly = assemble(&seen).unwrap();
    let mut luns = assembly.table.luns.keys();
    let lun = *luns.find(|it| it.as_sidecar().is_none()).unwrap();
    let directory = place.path("data/pools/default");
    std::fs::create_dir_all(&directory).unwrap();
    let naa = u128::from_be_bytes(lun.0);
    for (what, ending) in [
        (SidecarKind::Checksums, "checksums"),
        (SidecarKind::Changes, "changes"),
    ] {
        let id = lun.sidecar(what).unwrap();
        let mut all = Vec::new();
        for extent in assembly.table.extents(id).unwrap() {
            assert_eq!(extent.members.len(), 1, "a span");
            let path = &paths[usize::from(extent.members[0])];
            all.extend(read(
                path,
                extent.offset,
                usize::try_from(extent.bytes).unwrap(),
            ));
        }
        std::fs::write(directory.join(format!("{naa:032x}.{ending}")), all).unwrap();
        for _ in 0..2 {
            let blocks = assembly.next(|table| table.release(id));
            for (at, block) in &blocks {
                let file = std::fs::OpenOptions::new().write(true).open(&paths[*at]);
                let bytes = block.encode().unwrap();
                file.unwrap()
                    .write_all_at(&bytes, offset_of(block.event))
                    .unwrap();
            }
            assembly = assembly.after(&blocks);
        }
    }
}

#[test]
fn checksums_and_history_that_stood_in_state_dir_are_moved_to_the_members() {
    let place = members_with_journal("adopt-moved", "span");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    must_write(&served(&place), 0..40);
    daemon.stop();
    bring_to_state_dir(&place);
    assert_eq!(left_in_state_dir(&place).len(), 2);
    hurt(&place, 5);
    for round in 0..2 {
        let daemon = place.start();
        let lun = place.json("lun show vm01");
        assert_eq!(lun["state"], "online", "{lun}");
        assert_eq!(lun["checksums"]["unchecked_blocks"], 0, "{lun}");
        assert_eq!(left_in_state_dir(&place), [""; 0], "{round}");
        let portal = served(&place);
        must_hold(&portal, (0..40).filter(|it| *it != 5));
        let output = qemu_io(&portal, &["read -P 6 320k 64k".to_owned()]);
        assert!(output.contains("failed"), "{output}");
        daemon.stop();
        let facts = place.json("pool check m0 m1");
        assert_eq!(facts["luns"][0]["checksums"], "good", "{facts}");
        assert_eq!(facts["luns"][0]["history"], "good", "{facts}");
    }
}

/// The state directory as it was before a LUN of members grew, and while another one was being
/// made: nothing of either is given back, not even where the older objects are accepted.
#[test]
fn older_objects_give_back_nothing_that_a_pool_has_seen_newer() {
    let place = members_with_journal("older-members", "span");
    let daemon = place.start();
    place.run(0, "lun create a --size 8M");
    place.run(0, "share create x --size 1M --for iqn.2020-01.a:x");
    daemon.stop();
    copy(&place.path("data"), &place.path("copy"));
    let daemon = place.start();
    place.run(0, "lun resize a --size 64M");
    place.run(0, "lun create b --size 8M");
    place.run(0, "grant create x a --target x --lun-id 1");
    place.run(0, "grant create x b --target x --lun-id 2");
    let free = || place.json("pool show default")["available"].clone();
    let (naa, taken) = (place.json("lun show b")["naa"].clone(), free());
    let record = place.json("lun show b");
    daemon.stop();
    std::fs::rename(place.path("data"), place.path("newer")).unwrap();
    std::fs::rename(place.path("copy"), place.path("data")).unwrap();
    // The journal goes with the pool.
    copy(&place.path("newer/journal"), &place.path("data/journal"));
    let keys = ["naa", "serial", "block_size", "physical_block_size"];
    let keys = keys.map(|key| (key.to_owned(), record[key].clone()));
    let mut lun: serde_json::Map<_, _> = keys.into_iter().collect();
    lun.insert("size".to_owned(), json!(8 << 20));
    lun.insert("thin".to_owned(), json!(true));
    lun.insert("backing".to_owned(), json!({ "pool": "default" }));
    let begun = json!({ "schema": 1, "luns": [lun] }).to_string();
    place.write("data/intent_log.json", &begun);
    for accept in [false, true] {
        let daemon = place.start();
        let reported = place.json("status")["problems"].to_string();
        assert!(reported.contains("CWY4012"), "{reported}");
        assert_eq!(free(), taken, "something was given back");
        if accept {
            place.run(0, "state accept --yes");
            let reported = place.json("status")["problems"].to_string();
            assert!(reported.contains("no object names: b"), "{reported}");
        }
        daemon.stop();
    }
    for _ in 0..2 {
        let daemon = place.start();
        assert_eq!(free(), taken, "something was given back after all");
        place.run(0, "lun rename a a2");
        place.run(0, "lun rename a2 a");
        daemon.stop();
    }
    let daemon = place.start();
    place.run(0, "lun adopt --all");
    assert_eq!(place.json("lun show b")["naa"], naa);
    let reported = place.json("status")["problems"].to_string();
    let larger = "LUN a has 8 MiB, and pool default has seen it with 64 MiB";
    assert!(reported.contains(larger), "{reported}");
    place.run(0, "lun resize a --size 16M");
    assert_eq!(free(), taken, "growing cut what was beyond");
    place.run(0, "lun resize a --size 64M");
    let reported = place.json("status")["problems"].to_string();
    assert!(!reported.contains("has seen it"), "{reported}");
    daemon.stop();
}

/// A LUN that had grown, below an older copy of the state: it says so for as long as it is so, and
/// no change of its size cuts what is beyond but one that says so.
#[test]
fn a_file_that_older_objects_make_smaller_is_reported_and_never_cut() {
    let place = Place::new("older-larger");
    outside(&place);
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    let naa = place.json("lun show a")["naa"].as_str().unwrap().to_owned();
    daemon.stop();
    copy(&place.path("data"), &place.path("copy"));
    let daemon = place.start();
    place.run(0, "lun resize a --size 64M");
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    std::fs::rename(place.path("copy"), place.path("data")).unwrap();
    let file = place.path(&format!("pool/{naa}.lun"));
    let bytes = || std::fs::metadata(&file).unwrap().len();
    let said = |seen: &str| {
        let reported = place.json("status")["problems"].to_string();
        reported.contains(seen)
    };
    let larger = "LUN a has 1 MiB, and pool default has seen it with 64 MiB";
    let daemon = place.start();
    assert!(said(larger), "{}", place.json("status"));
    let output = place.run(0, "state accept --dry-run");
    assert!(
        output.contains("change lun a: it has grown from 1 MiB to 64 MiB since"),
        "{output}"
    );
    place.run(0, "state accept --yes");
    daemon.stop();
    let daemon = place.start();
    assert!(said(larger), "{}", place.json("status"));
    let output = place.run(0, "lun resize a --size 2M");
    assert!(output.contains("is there again"), "{output}");
    assert_eq!(bytes(), 64 << 20, "it was cut");
    assert!(said("LUN a has 2 MiB, and"), "{}", place.json("status"));
    let output = place.run(5, "lun resize a --size 1M");
    assert!(
        output.contains("what its last 63 MiB hold is lost"),
        "{output}"
    );
    assert_eq!(bytes(), 64 << 20, "it was cut");
    place.run(0, "lun resize a --size 64M");
    assert_eq!(place.problems(), [""; 0]);
    place.run(0, "lun resize a --size 1M --yes");
    assert_eq!((bytes(), said("has seen")), (1 << 20, false));
    daemon.stop();
    let daemon = place.start();
    assert!(!said("has seen"), "{}", place.json("status"));
    daemon.stop();
}

/// As where the daemon was killed when the file was cut and the record not written yet.
#[test]
fn a_file_that_was_cut_is_not_said_to_have_been_larger_by_a_record_of_before() {
    let place = Place::new("cut-before-record");
    outside(&place);
    let daemon = place.start();
    place.run(0, "lun create a --size 64M");
    let naa = place.json("lun show a")["naa"].as_str().unwrap().to_owned();
    let record = place.path(&format!("pool/{naa}.record"));
    let before = std::fs::read(&record).unwrap();
    place.run(0, "lun resize a --size 1M --yes");
    daemon.stop();
    std::fs::write(&record, before).unwrap();
    let daemon = place.start();
    assert_eq!(place.problems(), [""; 0]);
    place.run(0, "lun resize a --size 2M");
    place.run(0, "lun resize a --size 1M --yes");
    let bytes = std::fs::metadata(record.with_extension("lun"))
        .unwrap()
        .len();
    assert_eq!(bytes, 1 << 20);
    daemon.stop();
}

#[test]
fn a_pool_that_comes_back_with_newer_objects_than_there_are_is_compared_then() {
    let place = Place::new("older-back");
    outside(&place);
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    daemon.stop();
    copy(&place.path("data"), &place.path("copy"));
    let daemon = place.start();
    for name in ["b", "c", "d", "e"] {
        place.run(0, &format!("lun create {name} --size 1M"));
    }
    place.run(0, "lun rename a z");
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    std::fs::rename(place.path("copy"), place.path("data")).unwrap();
    std::fs::rename(place.path("pool"), place.path("away")).unwrap();
    std::fs::create_dir(place.path("pool")).unwrap();
    let daemon = place.start();
    let problems = || place.json("status")["problems"].to_string();
    assert!(!problems().contains("CWY4012"), "{}", problems());
    // A change meanwhile, of which the pool is not notified.
    place.run(0, "host create h --iqn iqn.2020-01.a:h");
    std::fs::remove_dir_all(place.path("pool")).unwrap();
    std::fs::rename(place.path("away"), place.path("pool")).unwrap();
    // Each question is a process of its own, and the pool is probed every second.
    let reported = (0..2_000).any(|_| problems().contains("CWY4012"));
    assert!(reported, "{}", problems());
    assert!(problems().contains("no object names"), "{}", problems());
    let refused = place.run(5, "lun create f --size 1M");
    assert!(refused.contains("error[CWY4012]"), "{refused}");
    let naa = place.json("lun show a")["naa"].as_str().unwrap().to_owned();
    let record = std::fs::read_to_string(place.path(&format!("pool/{naa}.record"))).unwrap();
    assert!(record.contains("\"z\""), "what is newer stays: {record}");
    place.run(0, "state accept --yes");
    place.run(0, "lun adopt --all");
    assert_eq!(place.json("lun ls").as_array().unwrap().len(), 5);
    let log = daemon.stop();
    assert!(log.contains("CWY4012"), "{log}");
    let daemon = place.start();
    assert!(!problems().contains("CWY4012"), "{}", problems());
    daemon.stop();
}
