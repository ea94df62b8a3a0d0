//! LUNs in VHDX images, written through iSCSI: other programs make the images and read them.

use crate::gone::{acknowledged, must_hold, qemu_io, until, write};
use crate::journal::{load, objects, served, state};
use crate::place::Place;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

fn must(program: &str, words: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
    output.stdout
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A LUN in an image that QEMU made.
fn with_image(name: &str) -> Place {
    let place = Place::new(name);
    let image = place.path("share/vm.vhdx");
    std::fs::create_dir(place.path("share")).unwrap();
    let made = [
        "create",
        "-q",
        "-f",
        "vhdx",
        "-o",
        "block_size=1M",
        text(&image),
        "64M",
    ];
    must("qemu-img", &made);
    let lun = "size = \"64MiB\"\nbackend = { vhdx = \"share/vm.vhdx\" }";
    place.write("objects.toml", &objects(lun));
    place
}

/// Writes until that is noticed, and says why it is offline then.
fn offline_after_writes(place: &Place, portal: &str, pieces: Range<u64>) -> String {
    for _ in 0..1000 {
        drop(qemu_io(portal, &write(pieces.clone())));
        let (now, reason) = state(place);
        if now == "offline" {
            return reason;
        }
    }
    panic!("nobody notices");
}

#[test]
fn what_was_flushed_is_there_after_a_kill_for_us_and_for_other_programs() {
    let place = with_image("image-killed");
    let image = place.path("share/vm.vhdx");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let lun = place.json("lun show vm01");
    assert_eq!(lun["backend"]["vhdx"], text(&image), "{lun}");
    let portal = served(&place);
    load(&place, &portal, "");
    // qemu-io flushes when it closes the disk.
    assert_eq!(
        acknowledged(&qemu_io(&portal, &write(0..200)), 0).len(),
        200
    );
    daemon.kill();
    // QEMU replays the log of a copy, and finds all of it.
    let (copy, raw) = (place.path("copy.vhdx"), place.path("copy.raw"));
    std::fs::copy(&image, &copy).unwrap();
    must("qemu-img", &["check", "-q", "-r", "all", text(&copy)]);
    must(
        "qemu-img",
        &[
            "convert",
            "-f",
            "vhdx",
            "-O",
            "raw",
            text(&copy),
            text(&raw),
        ],
    );
    let daemon = place.start();
    let portal = served(&place);
    must_hold(&portal, 0..200);
    assert_eq!(
        acknowledged(&qemu_io(&portal, &write(200..240)), 200).len(),
        40
    );
    daemon.stop();
    // It is closed: 7-Zip, which replays no log, reads it as QEMU does.
    must(
        "qemu-img",
        &[
            "convert",
            "-f",
            "vhdx",
            "-O",
            "raw",
            text(&image),
            text(&raw),
        ],
    );
    let disk = std::fs::read(&raw).unwrap();
    for (piece, part) in disk.chunks(64 << 10).take(240).enumerate() {
        let byte = u8::try_from(1 + piece % 251).unwrap();
        assert!(part.iter().all(|it| *it == byte), "piece {piece}");
    }
    let unpacked = must("7zz", &["x", "-so", text(&image)]);
    assert!(unpacked == disk, "7-Zip and QEMU differ");
}

#[test]
fn a_share_that_vanishes_takes_its_lun_offline_and_brings_it_back() {
    let place = with_image("image-vanished");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    assert_eq!(acknowledged(&qemu_io(&portal, &write(0..20)), 0).len(), 20);
    let (share, aside) = (place.path("share"), place.path("aside"));
    std::fs::rename(&share, &aside).unwrap();
    let reason = offline_after_writes(&place, &portal, 20..40);
    assert!(reason.contains("vm.vhdx does not exist"), "{reason}");
    let output = qemu_io(&portal, &write(40..41));
    assert!(!output.contains("wrote 65536"), "{output}");
    std::fs::rename(&aside, &share).unwrap();
    until(&place, "online");
    must_hold(&portal, 0..20);
    load(&place, &portal, "");
    daemon.stop();
    must(
        "qemu-img",
        &["check", "-q", text(&place.path("share/vm.vhdx"))],
    );
}

#[test]
fn a_second_writer_stops_the_first_until_a_restart() {
    let place = with_image("image-taken");
    let image = place.path("share/vm.vhdx");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    assert_eq!(acknowledged(&qemu_io(&portal, &write(0..4)), 0).len(), 4);
    // QEMU asks for locks of another kind, and takes it.
    let taken = ["-f", "vhdx", "-c", "write -P 9 32M 64k", text(&image)];
    must("qemu-io", &taken);
    let reason = offline_after_writes(&place, &portal, 4..8);
    assert!(reason.contains("another program has opened"), "{reason}");
    daemon.stop();
    let daemon = place.start();
    assert_eq!(state(&place).0, "online");
    must_hold(&served(&place), 0..4);
    daemon.stop();
}

#[test]
fn an_image_that_cannot_be_used_is_refused_with_the_reason() {
    let place = with_image("image-refused");
    let daemon = place.start();
    let image = place.path("share/vm.vhdx");
    let create = |more: &str| format!("lun create a --backend vhdx:{}{more}", text(&image));
    let larger = place.run(1, &create(" --size 128M"));
    assert!(
        larger.contains("fewer than the 134217728 of the LUN"),
        "{larger}"
    );
    let blocks = place.run(1, &create(" --size 64M --block-size 4096"));
    assert!(blocks.contains("block_size = 512"), "{blocks}");
    let missing = place.run(1, &create(".not --size 64M"));
    assert!(missing.contains("does not exist"), "{missing}");
    place.write("share/text.vhdx", "no image");
    let text_file = format!(
        "lun create a --size 1M --backend vhdx:{}",
        text(&place.path("share/text.vhdx"))
    );
    let foreign = place.run(1, &text_file);
    assert!(foreign.contains("file identifier"), "{foreign}");
    place.run(0, &create(" --size 64M"));
    let again = place.run(2, &create(" --size 64M").replace("create a", "create b"));
    assert!(again.contains("has this device"), "{again}");
    place.run(0, "lun resize a --size 96M");
    daemon.stop();
    let info = must("qemu-img", &["info", "--output=json", text(&image)]);
    let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(info["virtual-size"], 96 << 20, "{info}");
}

#[test]
fn a_lun_that_is_smaller_than_its_image_changes_its_size_and_leaves_the_rest_alone() {
    let place = with_image("image-larger");
    let image = place.path("share/vm.vhdx");
    let behind = "write -P 7 56M 64k";
    must("qemu-io", &["-f", "vhdx", "-c", behind, text(&image)]);
    let daemon = place.start();
    let create = format!("lun create a --size 32MiB --backend vhdx:{}", text(&image));
    place.run(0, &create);
    place.run(0, "lun resize a --size 40MiB");
    daemon.stop();
    let info = must("qemu-img", &["info", "--output=json", text(&image)]);
    let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(info["virtual-size"], 64 << 20, "{info}");
    let read = "read -P 7 56M 64k";
    let found = must("qemu-io", &["-f", "vhdx", "-c", read, text(&image)]);
    let found = String::from_utf8(found).unwrap();
    assert!(!found.contains("verification failed"), "{found}");
}

#[test]
fn the_parent_of_an_image_that_a_lun_has_is_nobodys_to_change() {
    let place = with_image("image-parent");
    let (parent, child) = (place.path("share/vm.vhdx"), place.path("share/child.vhdx"));
    let (parent, child) = (text(&parent), text(&child));
    let daemon = place.start();
    place.run(0, &format!("image create {child} --parent {parent}"));
    place.run(
        0,
        &format!("lun create a --size 64M --backend vhdx:{child}"),
    );
    let refused = place.run(1, &format!("image compact {parent}"));
    assert!(refused.contains("is in use"), "{refused}");
    let of_parent = format!("lun create b --size 64M --backend vhdx:{parent}");
    let refused = place.run(1, &of_parent);
    assert!(refused.contains("is in use"), "{refused}");
    daemon.stop();
    place.run(0, &format!("image compact {parent}"));
}

#[test]
fn an_image_is_one_luns_by_whatever_name() {
    let place = with_image("image-names");
    let image = place.path("share/vm.vhdx");
    let (hard, symbolic) = (place.path("share/hard"), place.path("share/symbolic"));
    std::fs::hard_link(&image, &hard).unwrap();
    std::os::unix::fs::symlink(&image, &symbolic).unwrap();
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let detour = place.path("share/../share/vm.vhdx");
    for name in [&hard, &symbolic, &detour] {
        let create = format!("lun create b --size 64M --backend vhdx:{}", text(name));
        let refused = place.run(1, &create);
        assert!(refused.contains("which another LUN has"), "{refused}");
    }
    daemon.stop();
}
