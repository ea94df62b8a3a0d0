//! A LUN with checksums over a disk that lies: what it holds is damaged in its file, below the
//! daemon.

use crate::gone::qemu_io;
use crate::journal;
use crate::place::{Daemon, Place, text_of};
use crate::small_file_system::{SmallFileSystem, is_root};
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::FileExt;

/// Without checksums, and with them.
const PLAIN: &str = "size = \"16MiB\"\nphysical_block_size = 4096";
const CHECKED: &str = "size = \"16MiB\"\nphysical_block_size = 4096\nintegrity = true";

/// Bytes that one checksum covers.
pub(crate) const BLOCK: u64 = 4096;

/// The first block that the bench writes, after its own mark.
pub(crate) const FIRST: u64 = 256;

pub(crate) fn with_journal(name: &str) -> Place {
    journal::with_journal(name, CHECKED)
}

/// The only file of the pool whose name ends so.
fn file(place: &Place, ending: &str) -> std::fs::File {
    let mut names = std::fs::read_dir(place.path("data/pool")).unwrap();
    let path = names.find_map(|entry| {
        let path = entry.unwrap().path();
        path.to_str().unwrap().ends_with(ending).then_some(path)
    });
    let mut how = std::fs::OpenOptions::new();
    how.read(true).write(true).open(path.unwrap()).unwrap()
}

fn block(file: &std::fs::File, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(BLOCK).unwrap()];
    file.read_exact_at(&mut bytes, number * BLOCK).unwrap();
    bytes
}

fn put(file: &std::fs::File, number: u64, bytes: &[u8]) {
    file.write_all_at(bytes, number * BLOCK).unwrap();
}

/// Runs a load on the LUN that must end with `code`.
pub(crate) fn load(place: &Place, code: i32, words: &str) -> String {
    let portal = place.json("target show t1")["portals"][0].clone();
    let url = format!(
        "iscsi://{}/iqn.2026-11.io.causeway:t1/0",
        portal.as_str().unwrap()
    );
    let words = format!("bench {words} {url}");
    let words: Vec<&str> = words.split(' ').collect();
    text_of(&place.run_with("", &words, ""), code, "bench")
}

/// Writes every block, and ends with all of it in the LUN's file.
pub(crate) fn written(place: &Place, seed: u32) {
    let daemon = place.start();
    if seed == 0 {
        place.run(0, "apply -f objects.toml");
    }
    load(
        place,
        0,
        &format!("--fill -Zr -z{seed} -b64K -s -w100 -d1 -W0 --destroy"),
    );
    daemon.stop();
}

pub(crate) fn scrubbed(place: &Place) -> Value {
    place.run(0, "scrub start vm01");
    // Each question is a process of its own, which takes some milliseconds.
    for _ in 0..10_000 {
        let facts = place.json("scrub status vm01");
        if facts["state"] != "running" {
            assert_eq!(facts["state"], "finished", "{facts}");
            return facts;
        }
    }
    panic!("it never ends")
}

/// First blocks and lengths, of 512 bytes, of what a document calls bad.
pub(crate) fn places(document: &Value) -> Vec<(u64, u64)> {
    let places = document["places"].as_array().into_iter().flatten();
    let number = |place: &Value, key: &str| place[key].as_u64().unwrap();
    places
        .map(|place| {
            assert_eq!(place["damage"], "mismatch");
            (number(place, "lba"), number(place, "blocks"))
        })
        .collect()
}

/// What `status` says of the LUN.
pub(crate) fn problems(place: &Place) -> Vec<String> {
    let status = place.json("status");
    let all = status["problems"].as_array().unwrap().iter();
    let said = all.map(|problem| problem.as_str().unwrap().to_owned());
    said.filter(|problem| problem.contains("vm01")).collect()
}

pub(crate) fn stops_well(daemon: Daemon) -> String {
    let log = daemon.stop();
    assert!(!log.contains("panic"), "{log}");
    log
}

#[test]
fn flipped_bits_misdirected_and_lost_writes_are_caught_at_their_block_and_mended_by_writing() {
    let place = with_journal("integrity");
    written(&place, 0);
    let old = block(&file(&place, ".lun"), FIRST + 30);
    written(&place, 1);
    let data = file(&place, ".lun");
    let mut flipped = block(&data, FIRST + 5);
    flipped[1000] ^= 4;
    put(&data, FIRST + 5, &flipped);
    let (one, other) = (block(&data, FIRST + 10), block(&data, FIRST + 20));
    put(&data, FIRST + 10, &other);
    put(&data, FIRST + 20, &one);
    assert_ne!(block(&data, FIRST + 30), old);
    put(&data, FIRST + 30, &old);
    let bad = [5, 10, 20, 30].map(|number| ((FIRST + number) * 8, 8));

    let daemon = place.start();
    let lun = place.json("lun show vm01");
    assert_eq!(
        (&lun["state"], &lun["integrity"]),
        (&Value::from("online"), &Value::from(true))
    );
    assert_eq!(
        lun["checksums"]["bad_blocks"], 0,
        "nobody has read them yet"
    );
    assert_eq!(problems(&place), Vec::<String>::new());
    // All around them can be read; the first of them cannot.
    load(&place, 0, "-b4K -s -B1152K -d1 -W0");
    let output = load(&place, 1, "-b4K -s -o1 -d1 -W0 -B1M:128K");
    assert!(output.contains("medium error at block 2088"), "{output}");
    let found = scrubbed(&place);
    assert_eq!(places(&found), bad);
    assert_eq!(
        (&found["mismatched_blocks"], &found["map_pages"]),
        (&32.into(), &0.into())
    );
    let lun = place.json("lun show vm01");
    assert_eq!(places(&lun["checksums"]), bad);
    assert!(
        place
            .run(0, "lun show vm01")
            .contains("32 blocks are NOT what was written")
    );
    assert_eq!(place.json("status")["health"], "degraded");
    let problem = &problems(&place)[0];
    assert!(
        problem.contains("32 of its blocks are not what was written, the first at 2088"),
        "{problem}"
    );
    let metrics = place.metrics();
    assert!(
        metrics.contains("causeway_integrity_bad_blocks{lun=\"vm01\"} 32"),
        "{metrics}"
    );

    load(&place, 0, "--fill -Zr -z2 -b64K -s -w100 -d1 -W0 --destroy");
    load(&place, 0, "-b4K -s -o1 -d1 -W0 -B1M:128K");
    assert_eq!(places(&place.json("lun show vm01")["checksums"]), []);
    assert_eq!(scrubbed(&place)["mismatched_blocks"], 0);
    assert_eq!(problems(&place), Vec::<String>::new());
    let log = stops_well(daemon);
    for (lba, _) in bad {
        let line = format!("not what was written, from {lba} on");
        assert_eq!(log.matches(&line).count(), 1, "reported once: {log}");
    }
}

/// With physical blocks of 512 bytes, as they are where nothing is said.
const SECTORS: &str = "size = \"16MiB\"\nintegrity = true";

#[test]
fn of_physical_blocks_of_512_bytes_only_the_damaged_one_is_refused_and_mended_by_writing_it() {
    let place = journal::with_journal("integrity-sectors", SECTORS);
    written(&place, 0);
    flip(&place, FIRST + 5);
    let hurt = (FIRST + 5) * 8 + 1;
    let daemon = place.start();
    let at = |sector: u64, count: u64| {
        format!("-b512 -s -o1 -d1 -W0 -B{}:{}", sector * 512, count * 512)
    };
    load(&place, 0, &at(hurt - 1, 1));
    load(&place, 0, &at(hurt + 1, 6));
    for words in [&at(hurt, 1), READS] {
        let output = load(&place, 1, words);
        assert!(output.contains("medium error at block 2089"), "{output}");
    }
    let found = scrubbed(&place);
    assert_eq!(places(&found), [(hurt, 1)]);
    let page = place.run(0, "lun show vm01");
    let wanted = "a checksum for each 512 bytes: 1 block is NOT what was written";
    assert!(page.contains(wanted), "{page}");
    assert_eq!(found["mismatched_blocks"], 1);
    load(&place, 0, &format!("{} -w100 --destroy", at(hurt, 1)));
    assert_eq!(scrubbed(&place)["mismatched_blocks"], 0);
    load(&place, 0, READS);
    daemon.kill();
    let daemon = place.start();
    load(&place, 0, "-b512 -r -w60 -o16 -d1 -W0 --verify --destroy");
    daemon.kill();
    let daemon = place.start();
    shrinks_and_grows(&place);
    let log = stops_well(daemon);
    assert!(!log.contains("not what was written"), "{log}");
}

#[test]
fn what_is_killed_comes_back_whole_and_a_damaged_map_is_named_by_a_scrub() {
    let place = with_journal("integrity-killed");
    written(&place, 0);
    let daemon = place.start();
    load(&place, 0, "-b4K -r -w60 -o16 -d1 -W0 --verify --destroy");
    daemon.kill();
    let daemon = place.start();
    load(&place, 0, "-b512 -r -w60 -o16 -d1 -W0 --verify --destroy");
    daemon.kill();
    let daemon = place.start();
    place.run(0, "lun set vm01 cache=write-through");
    load(&place, 0, "-b4K -r -w60 -o16 -d1 -W0 --verify --destroy");
    daemon.kill();
    let daemon = place.start();
    let found = scrubbed(&place);
    assert_eq!(found["mismatched_blocks"], 0, "{found}");
    let log = stops_well(daemon);
    assert!(!log.contains("not what was written"), "{log}");

    // Both places of the first page of checksums: its blocks cannot be vouched for any more.
    let map = file(&place, ".checksums");
    for place in [6, 7] {
        let mut page = block(&map, place);
        page[2000] ^= 1;
        put(&map, place, &page);
    }
    let daemon = place.start();
    let found = scrubbed(&place);
    assert_eq!(found["map_pages"], 1, "{found}");
    assert!(found["mismatched_blocks"].as_u64().unwrap() >= 8, "{found}");
    let log = stops_well(daemon);
    assert!(log.contains("the checksums of blocks"), "{log}");
}

#[test]
fn a_lun_with_checksums_grows_shrinks_and_goes_and_needs_a_journal() {
    let place = with_journal("integrity-sizes");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    load(&place, 0, "--fill -Zr -b64K -s -w100 -d1 -W0 --destroy");
    place.run(0, "lun resize vm01 --size 24M");
    load(&place, 0, "--fill -Zr -b64K -s -w100 -d1 -W0 --destroy");
    shrinks_and_grows(&place);
    load(&place, 0, "-b4K -r -w60 -o16 -d1 -W0 --verify --destroy");
    place.run(0, "lun delete vm01 --yes");
    place.run(0, "lun restore vm01");
    assert_eq!(scrubbed(&place)["mismatched_blocks"], 0);
    place.run(0, "lun delete vm01 --yes");
    place.run(0, "lun purge vm01 --yes");
    stops_well(daemon);
    assert_eq!(place.left_of_luns(), [""; 0]);

    let place = Place::new("integrity-bare");
    let daemon = place.start();
    let refused = place.run(2, "lun create a --size 16M --integrity");
    assert!(refused.contains("has no journal"), "{refused}");
    daemon.stop();
}

/// It gets shorter by a part of a block, and longer again.
fn shrinks_and_grows(place: &Place) {
    place.run(0, "lun resize vm01 --size 9999K --yes");
    place.run(0, "lun resize vm01 --size 24M");
    assert_eq!(scrubbed(place)["mismatched_blocks"], 0);
}

/// Blocks of the LUN that have no checksum.
fn unchecked(place: &Place) -> u64 {
    let lun = place.json("lun show vm01");
    lun["checksums"]["unchecked_blocks"].as_u64().unwrap()
}

/// Reads 128 KiB from the bench's first block on.
pub(crate) const READS: &str = "-b4K -s -o1 -d1 -W0 -B1M:128K";

pub(crate) fn flip(place: &Place, number: u64) {
    let data = file(place, ".lun");
    let mut flipped = block(&data, number);
    flipped[1000] ^= 4;
    put(&data, number, &flipped);
}

/// As [`written`], without checksums.
fn written_without(place: &Place) {
    let daemon = place.start();
    place.write("objects.toml", &journal::objects(PLAIN));
    place.run(0, "apply -f objects.toml");
    load(place, 0, "--fill -Zr -z9 -b64K -s -w100 -d1 -W0 --destroy");
    daemon.stop();
}

#[test]
fn checksums_are_switched_on_and_off_while_hosts_write_and_an_old_map_is_never_trusted() {
    let place = with_journal("integrity-switch");
    written_without(&place);
    // Nobody has a checksum of this one yet: it is adopted as it is.
    flip(&place, FIRST + 3);
    let daemon = place.start();
    assert!(place.json("lun show vm01")["checksums"].is_null());
    let output = place.run(0, "lun set vm01 integrity=true");
    assert!(output.contains("has no checksums before"), "{output}");
    assert_eq!(unchecked(&place), 32768);
    let shown = place.run(0, "lun show vm01");
    assert!(
        shown.contains("32768 of 32768 blocks (100 %) have no checksum yet"),
        "{shown}"
    );
    let metrics = place.metrics();
    assert!(
        metrics.contains("causeway_integrity_unchecked_blocks{lun=\"vm01\"} 32768"),
        "{metrics}"
    );
    load(&place, 0, READS);
    let left = unchecked(&place);
    assert!(left < 32768, "what was read has checksums: {left}");
    assert_eq!(scrubbed(&place)["mismatched_blocks"], 0);
    assert_eq!(unchecked(&place), 0, "a scrub leaves nothing unchecked");
    load(&place, 0, "-b4K -r -w60 -o16 -d1 -W0 --verify --destroy");
    stops_well(daemon);

    flip(&place, FIRST + 5);
    let daemon = place.start();
    let output = load(&place, 1, READS);
    assert!(output.contains("medium error at block 2088"), "{output}");
    // Off: what is there is what is read.
    place.run(0, "lun set vm01 integrity=false");
    load(&place, 0, READS);
    assert!(place.json("lun show vm01")["checksums"].is_null());
    load(&place, 0, "--fill -Zr -z5 -b64K -s -w100 -d1 -W0 --destroy");
    // On again, and nothing that was known before is trusted. What the log still had would get its
    // checksums when it is destaged.
    stops_well(daemon);
    let daemon = place.start();
    place.run(0, "lun set vm01 integrity=true");
    assert_eq!(unchecked(&place), 32768);
    load(&place, 0, READS);
    assert_eq!(scrubbed(&place)["mismatched_blocks"], 0);
    stops_well(daemon);
    flip(&place, FIRST + 5);
    let daemon = place.start();
    assert_eq!(unchecked(&place), 0);
    let output = load(&place, 1, READS);
    assert!(output.contains("medium error at block 2088"), "{output}");
    stops_well(daemon);
}

#[test]
fn while_hosts_write_in_every_mode_a_switch_disturbs_none_and_a_kill_leaves_old_or_new() {
    let place = with_journal("integrity-switch-busy");
    place.write("objects.toml", &journal::objects(PLAIN));
    let mut daemon = place.start();
    place.run(0, "apply -f objects.toml");
    load(&place, 0, "--fill -Zr -b64K -s -w100 -d1 -W0 --destroy");
    for (mode, block) in [
        ("write-back", "512"),
        ("write-through", "4K"),
        ("volatile", "4K"),
        ("write-back", "300K"),
    ] {
        place.run(0, &format!("lun set vm01 cache={mode} --yes"));
        let writes = format!("-b{block} -r -w60 -o16 -d2 -W0 --verify --destroy");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| load(&place, 0, &writes));
            while !writer.is_finished() {
                place.run(0, "lun set vm01 integrity=true");
                place.run(0, "lun set vm01 integrity=false");
            }
            writer.join().unwrap();
        });
        place.run(0, "lun set vm01 integrity=true");
        let found = scrubbed(&place);
        assert_eq!(found["mismatched_blocks"], 0, "{mode}: {found}");
        daemon.kill();
        daemon = place.start();
        let found = scrubbed(&place);
        assert_eq!(found["mismatched_blocks"], 0, "{mode}: {found}");
        place.run(0, "lun set vm01 integrity=false");
    }
    stops_well(daemon);
}

#[test]
fn a_map_that_a_crash_left_is_removed_and_one_that_is_lost_can_be_given_up() {
    let place = with_journal("integrity-switch-crash");
    written(&place, 0);
    // As a crash between storing the switch and removing the map leaves it, with a block written
    // since.
    let checksums = std::fs::read_dir(place.path("data/pool")).unwrap();
    let map = checksums.map(|entry| entry.unwrap().path());
    let map = map
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "checksums"));
    let (map, aside) = (map.unwrap(), place.path("aside"));
    std::fs::copy(&map, &aside).unwrap();
    let daemon = place.start();
    place.run(0, "lun set vm01 integrity=false");
    assert!(!map.exists());
    load(&place, 0, "--fill -Zr -z7 -b64K -s -w100 -d1 -W0 --destroy");
    daemon.kill();
    std::fs::copy(&aside, &map).unwrap();
    let daemon = place.start();
    assert!(!map.exists(), "nobody follows it");
    std::fs::copy(&aside, &map).unwrap();
    place.run(0, "lun set vm01 integrity=true");
    load(&place, 0, READS);
    assert_eq!(scrubbed(&place)["mismatched_blocks"], 0);
    stops_well(daemon);

    std::fs::remove_file(&map).unwrap();
    let daemon = place.start();
    let lun = place.json("lun show vm01");
    assert_eq!(lun["state"], "offline");
    let reason = lun["reason"].as_str().unwrap();
    assert!(reason.contains("lun set NAME integrity=false"), "{reason}");
    place.run(0, "lun set vm01 integrity=false");
    assert_eq!(place.json("lun show vm01")["state"], "online");
    load(&place, 0, READS);
    stops_well(daemon);

    let place = Place::new("integrity-switch-bare");
    let daemon = place.start();
    place.run(0, "lun create a --size 16M");
    let refused = place.run(2, "lun set a integrity=true");
    assert!(refused.contains("has no journal"), "{refused}");
    daemon.stop();
}

/// A thin LUN reserves nothing for its map. Its own blocks get their space here, so that only the
/// map has none.
fn gives_space(place: &Place) {
    let mut names = place.left_of_luns().into_iter();
    let naa = names.find(|name| name.ends_with(".lun"));
    let file = place
        .path("data/pool")
        .join(naa.expect("its file is named after it"));
    let given = std::process::Command::new("fallocate")
        .args(["-l", "16M"])
        .arg(&file)
        .status();
    assert!(given.expect("fallocate of util-linux").success());
}

#[test]
fn checksums_without_space_keep_writes_in_the_journal_and_go_on_by_themselves() {
    if !is_root() {
        println!("skipped: only root can mount a file system that is soon full");
        return;
    }
    let place = journal::with_journal("integrity-unwritable", CHECKED);
    let small = SmallFileSystem::mount(&place.path("data/pool"), 32 << 20).unwrap();
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let full = |is: u8| {
        let wanted = format!("\ncauseway_integrity_map_full{{lun=\"vm01\"}} {is}\n");
        place.metrics().contains(&wanted)
    };
    load(
        &place,
        0,
        "--fill -Zr -b64K -s -w100 -d1 -W0 --destroy -f1M",
    );
    assert!(full(0), "{}", place.metrics());
    gives_space(&place);
    let mut all = std::fs::File::create(place.path("data/pool/full")).unwrap();
    while all.write_all(&[0; 4096]).is_ok() {}
    // Its checksums are on a page that was never written.
    let portal = journal::served(&place);
    let far = ["write -P 7 8M 64k".to_owned()];
    let output = qemu_io(&portal, &far);
    assert!(output.contains("wrote 65536/65536"), "{output}");
    // Acknowledged from the journal; it is being destaged. Each question is a process of its own,
    // which takes some milliseconds.
    let is_full = (0..5000).any(|_| full(1));
    assert!(is_full, "{}", place.metrics());
    let problems = place.json("status")["problems"].to_string();
    assert!(
        problems.contains("there is no space for its checksums") && problems.contains("by itself"),
        "{problems}"
    );
    assert!(
        place
            .run(0, "lun show vm01")
            .contains("no space for its checksums")
    );
    let output = qemu_io(&portal, &["read -P 7 8M 64k".to_owned()]);
    assert!(output.contains("read 65536/65536"), "{output}");
    // The journal takes more, which is read from there.
    let output = qemu_io(&portal, &["write -P 9 12M 64k".to_owned()]);
    assert!(output.contains("wrote 65536/65536"), "{output}");
    let output = qemu_io(&portal, &["read -P 9 12M 64k".to_owned()]);
    assert!(output.contains("read 65536/65536"), "{output}");
    drop(all);
    std::fs::remove_file(place.path("data/pool/full")).unwrap();
    // With room again all is destaged by itself, and what was acknowledged is there, before and
    // after a restart.
    let ended = (0..5000).any(|_| full(0));
    assert!(ended, "{}", place.metrics());
    let output = qemu_io(&journal::served(&place), &["read -P 7 8M 64k".to_owned()]);
    assert!(output.contains("read 65536/65536"), "{output}");
    let log = daemon.stop();
    assert!(!log.contains("CWY4010"), "{log}");
    let daemon = place.start();
    assert!(full(0), "{}", place.metrics());
    let portal = journal::served(&place);
    for read in ["read -P 7 8M 64k", "read -P 9 12M 64k"] {
        let output = qemu_io(&portal, &[read.to_owned()]);
        assert!(output.contains("read 65536/65536"), "{output}");
    }
    stops_well(daemon);
    drop(small);
}
