//! `causeway image`: files that other programs read, and what they make.

use crate::place::Place;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

fn must(program: &str, words: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
    output.stdout
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A raw disk of 40 MiB with something in it here and there.
fn raw_disk(path: &Path) -> Vec<u8> {
    let mut disk = vec![0; 40 << 20];
    for (number, at) in (1..).zip([0, 4096, 3 << 20, (33 << 20) + 512, (40 << 20) - 512]) {
        disk[at..at + 512].fill(number);
    }
    std::fs::write(path, &disk).unwrap();
    disk
}

#[test]
fn a_disk_goes_from_raw_through_images_and_back_and_is_the_same_for_all() {
    let place = Place::new("image-convert");
    let file = |name: &str| text(&place.path(name));
    let disk = raw_disk(&place.path("a.raw"));
    for (to, more) in [
        ("b.vhdx", "--block-size 1MiB"),
        ("c.vhdx", "--fixed --block-size 8MiB"),
    ] {
        place.run(
            0,
            &format!("image convert {} {} {more}", file("a.raw"), file(to)),
        );
        must("qemu-img", &["check", "-q", &file(to)]);
        must(
            "qemu-img",
            &[
                "compare",
                "-q",
                "-f",
                "raw",
                "-F",
                "vhdx",
                &file("a.raw"),
                &file(to),
            ],
        );
        let unpacked = must("7zz", &["x", "-so", &file(to)]);
        assert!(unpacked == disk, "7-Zip reads {to} otherwise");
        place.run(0, &format!("image check {}", file(to)));
        let info = place.json(&format!("image info {}", file(to)));
        assert_eq!(
            (&info["size_bytes"], &info["has_log"]),
            (&(40 << 20).into(), &false.into())
        );
    }
    let dynamic = std::fs::metadata(place.path("b.vhdx")).unwrap().len();
    assert!(dynamic < 12 << 20, "zeroes take no space: {dynamic}");
    for (from, format) in [("b.vhdx", "raw"), ("c.vhdx", "raw")] {
        let to = file(&format!("{from}.back"));
        place.run(
            0,
            &format!("image convert {} {to} --format {format}", file(from)),
        );
        assert!(std::fs::read(to).unwrap() == disk, "{from}");
    }
    // Older and foreign formats, as QEMU makes them.
    for (format, name) in [("vpc", "old.vhd"), ("qcow2", "x.qcow2")] {
        let force = ["-o", "force_size=on"];
        let more = if format == "vpc" { &force[..] } else { &[] };
        let words = ["convert", "-f", "raw", "-O", format];
        let (from, to) = (file("a.raw"), file(name));
        let all = words.iter().chain(more).copied().chain([&*from, &*to]);
        must("qemu-img", &all.collect::<Vec<&str>>());
        let image = file(&format!("{name}.vhdx"));
        place.run(0, &format!("image convert {to} {image}"));
        must(
            "qemu-img",
            &["compare", "-q", "-f", "raw", "-F", "vhdx", &from, &image],
        );
    }
    let again = place.run(
        4,
        &format!("image convert {} {}", file("a.raw"), file("b.vhdx")),
    );
    assert!(again.contains("is there already"), "{again}");
}

#[test]
fn what_a_guest_wrote_never_says_what_is_read() {
    let place = Place::new("image-said");
    let file = |name: &str| text(&place.path(name));
    std::fs::write(place.path("secret"), vec![7; 1 << 20]).unwrap();
    let backed = ["create", "-q", "-f", "qcow2", "-F", "raw", "-b"];
    let (secret, evil) = (file("secret"), file("evil.raw"));
    let all = backed.iter().copied().chain([&*secret, &*evil, "1M"]);
    must("qemu-img", &all.collect::<Vec<&str>>());
    let options = std::fs::OpenOptions::new().write(true).open(&evil);
    options.unwrap().set_len(4 << 20).unwrap();
    // As a raw disk it is its bytes, whatever is written.
    let disk = std::fs::read(place.path("evil.raw")).unwrap();
    for (to, back) in [("a.vhdx", "a.raw"), ("a.qcow2", "b.raw")] {
        place.run(0, &format!("image convert {evil} {}", file(to)));
        let info = place.json(&format!("image info {evil}"));
        assert_eq!(info["format"], "raw", "{info}");
        place.run(0, &format!("image convert {} {}", file(to), file(back)));
        assert!(std::fs::read(place.path(back)).unwrap() == disk, "{to}");
    }
    let said = format!("image convert {evil} {} --from-format qcow2", file("c.raw"));
    let refused = place.run(1, &said);
    assert!(refused.contains("a backing file"), "{refused}");
    assert!(!place.path("c.raw").exists());
    // A name that says nothing.
    std::fs::rename(&evil, place.path("disk")).unwrap();
    let from = file("disk");
    let unknown = place.run(2, &format!("image convert {from} {}", file("c.raw")));
    assert!(unknown.contains("--from-format"), "{unknown}");
    place.run(
        0,
        &format!("image convert {from} {} --from-format raw", file("c.vhdx")),
    );
    let foreign = place.run(
        1,
        &format!("image convert {from} {} --from-format vhdx", file("d.raw")),
    );
    assert!(foreign.contains("is not read as vhdx"), "{foreign}");
}

#[test]
fn children_are_made_written_merged_and_compacted() {
    let place = Place::new("image-chain");
    let file = |name: &str| text(&place.path(name));
    let disk = raw_disk(&place.path("a.raw"));
    place.run(
        0,
        &format!(
            "image convert {} {} --block-size 1MiB",
            file("a.raw"),
            file("p.vhdx")
        ),
    );
    place.run(
        0,
        &format!(
            "image create {} --parent {}",
            file("c.vhdx"),
            file("p.vhdx")
        ),
    );
    let info = place.json(&format!("image info {}", file("c.vhdx")));
    assert_eq!(info["kind"], "differencing", "{info}");
    assert_eq!(info["parents"][0], file("p.vhdx"), "{info}");
    // A LUN on the child writes to it, and not to the parent.
    let daemon = place.start();
    let create = format!(
        "lun create vm01 --size 40M --backend vhdx:{}",
        file("c.vhdx")
    );
    place.run(0, &create);
    place.run(0, "lun delete vm01");
    place.run(0, "lun purge vm01 --yes");
    daemon.stop();
    place.run(
        0,
        &format!(
            "image convert {} {} --format raw",
            file("c.vhdx"),
            file("c.raw")
        ),
    );
    assert!(std::fs::read(place.path("c.raw")).unwrap() == disk);
    let unpacked = must("7zz", &["x", "-so", &file("c.vhdx")]);
    assert!(unpacked == disk, "7-Zip reads the child otherwise");
    let merged = place.run(0, &format!("image merge {}", file("c.vhdx")));
    assert!(merged.contains("p.vhdx"), "{merged}");
    place.run(0, &format!("image compact {}", file("p.vhdx")));
    place.run(0, &format!("image resize {} --size 1TiB", file("p.vhdx")));
    let info = place.json(&format!("image info {}", file("p.vhdx")));
    assert_eq!(info["size_bytes"], 1_u64 << 40, "{info}");
    must("qemu-img", &["check", "-q", &file("p.vhdx")]);
}

#[test]
fn a_parent_that_was_written_after_its_child_was_made_is_refused() {
    let place = Place::new("image-parent");
    let file = |name: &str| text(&place.path(name));
    place.run(0, &format!("image create {} --size 8M", file("q.vhdx")));
    place.run(
        0,
        &format!(
            "image create {} --parent {}",
            file("d.vhdx"),
            file("q.vhdx")
        ),
    );
    must(
        "qemu-io",
        &["-f", "vhdx", "-c", "write 0 64k", &file("q.vhdx")],
    );
    let refused = place.run(
        1,
        &format!("image convert {} {}", file("d.vhdx"), file("d.raw")),
    );
    assert!(
        refused.contains("the parent was changed after its child was made"),
        "{refused}"
    );
    place.run(1, &format!("image merge {}", file("q.vhdx")));
}

#[test]
fn a_fixed_image_goes_on_where_it_was_and_damage_is_named_and_mended() {
    let place = Place::new("image-fixed");
    let file = |name: &str| text(&place.path(name));
    // What a run left that was stopped in its second step of 1 GiB.
    let part = place.path(&format!("f.vhdx.{}-{}-512.part", 3_u64 << 30, 32 << 20));
    let left = std::fs::File::create(&part).unwrap();
    left.set_len((2 << 30) + (4 << 20)).unwrap();
    place.run(
        0,
        &format!("image create {} --size 3GiB --fixed", file("f.vhdx")),
    );
    assert!(!part.exists(), "it has its name");
    let info = place.json(&format!("image info {}", file("f.vhdx")));
    assert_eq!(info["kind"], "fixed", "{info}");
    must("qemu-img", &["check", "-q", &file("f.vhdx")]);
    place.run(0, &format!("image check {}", file("f.vhdx")));
    // The second region table is damaged: named, mended, and good for all again.
    let image = std::fs::OpenOptions::new()
        .write(true)
        .open(place.path("f.vhdx"))
        .unwrap();
    image.write_all_at(&[7; 64], 256 << 10).unwrap();
    let found = place.run(1, &format!("image check {}", file("f.vhdx")));
    assert!(found.contains("copy 2 of the region tables"), "{found}");
    assert!(found.contains("--repair"), "{found}");
    place.run(0, &format!("image check {} --repair", file("f.vhdx")));
    let well = place.json(&format!("image check {}", file("f.vhdx")));
    assert_eq!(well["verdict"], "well", "{well}");
    // Cut off: what is missing is named, and nothing is made up.
    image.set_len(2 << 20).unwrap();
    let cut = place.run(1, &format!("image check {}", file("f.vhdx")));
    assert!(cut.contains("error[CWY4014]"), "{cut}");
    let none = place.run(1, &format!("image info {}", file("none.vhdx")));
    assert!(none.contains("none.vhdx"), "{none}");
    place.run(2, &format!("image create {} --size 1000", file("odd.vhdx")));
}
