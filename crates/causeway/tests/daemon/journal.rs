//! A pool with a journal: what is served with it, and never without it.

use crate::gone::{begin_writes, qemu_io};
use crate::mode_sense::CachingPage;
use crate::place::{Place, text_of};
use std::os::unix::fs::FileExt;

/// A LUN of these lines, for all hosts.
pub(crate) fn objects(lun: &str) -> String {
    format!(
        r#"
[[lun]]
name = "vm01"
{lun}
[[target]]
name = "t1"
iqn = "iqn.2026-11.io.causeway:t1"
[[host]]
name = "all"
iqn = ["*"]
[[grant]]
host = "all"
lun = "vm01"
target = "t1"
lun_id = 0
"#
    )
}

/// A pool with a journal, and such a LUN to be applied.
pub(crate) fn with_journal(name: &str, lun: &str) -> Place {
    let place = Place::new(name);
    let good = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let journal = "journal = \"data/journal\"\njournal_size = \"64MiB\"\npath = ";
    place.write("node.toml", &good.replace("path = ", journal));
    place.write("objects.toml", &objects(lun));
    place
}

/// spec: SPC-4 5.14 "Unit attention condition": MODE PARAMETERS CHANGED.
pub(crate) const MODE_PARAMETERS_CHANGED: [u8; 2] = [0x2a, 0x01];

/// What most tests have.
pub(crate) const LUN: &str = "size = \"64MiB\"";

pub(crate) fn state(place: &Place) -> (String, String) {
    let lun = place.json("lun show vm01");
    let text = |key: &str| lun[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("reason"))
}

pub(crate) fn served(place: &Place) -> String {
    let portal = place.json("target show t1")["portals"][0].clone();
    portal.as_str().unwrap().to_owned()
}

/// Runs a verified load; it reads back what it wrote.
pub(crate) fn load(place: &Place, portal: &str, more: &str) {
    let url = format!("iscsi://{portal}/iqn.2026-11.io.causeway:t1/0");
    let words = format!("bench -b4K -r -w60 -o16 -d1 -W0 --verify --destroy {more}-R json {url}");
    let words: Vec<&str> = words.split(' ').collect();
    let output = text_of(&place.run_with("", &words, ""), 0, "bench");
    let report: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["errors"], 0, "{report}");
    assert_eq!(report["verify"]["bad"], 0, "{report}");
    assert!(report["write"]["ios"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn a_lun_in_a_pool_with_a_journal_is_in_write_back_mode_and_changes_it_while_it_serves() {
    let place = with_journal("journal-modes", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    assert_eq!(place.json("lun show vm01")["cache"], "write-back");
    load(&place, &portal, "");
    let journal = place.json("pool show default")["journal"].clone();
    assert_eq!(journal["state"], "open", "{journal}");
    assert!(journal["changes"].as_u64().unwrap() > 0, "{journal}");
    assert!(journal["written_bytes"].as_u64() > Some(0), "{journal}");
    assert!(journal["size_bytes"].as_u64().unwrap() > 60 << 20);
    assert_eq!(place.json("lun show vm01")["journal"]["state"], "open");
    // 64 MiB are within one page of its history, which is in memory since the first write.
    let bytes = journal["history_bytes"].as_u64().unwrap();
    assert!((4096 - 64..2 * 4096).contains(&bytes), "{journal}");
    let metrics = place.metrics();
    for wanted in [
        "causeway_journal_state{pool=\"default\",state=\"open\"} 1",
        "causeway_journal_state{pool=\"default\",state=\"failed\"} 0",
        "causeway_journal_written_bytes_total{pool=\"default\"} ",
        "causeway_journal_oldest_seconds{pool=\"default\"} ",
        &format!("causeway_journal_history_bytes{{pool=\"default\"}} {bytes}\n"),
        "causeway_journal_throttled_total{pool=\"default\"} ",
        "causeway_journal_misreads_total{pool=\"default\"} 0",
        "causeway_cache_bytes{lun=\"vm01\",state=\"dirty\"} ",
    ] {
        assert!(metrics.contains(wanted), "{wanted}\n{metrics}");
    }
    let of_lun = |line: &&str| line.contains("lun=\"vm01\"") && !line.contains("host=\"");
    let series = metrics.lines().filter(of_lun).count();
    assert!(series <= 64, "{series} series: {metrics}");
    let table = place.run(0, "status");
    assert!(table.contains("JOURNAL"), "{table}");
    let mut host = CachingPage::of(&portal);
    assert!(
        !host.write_cache_enabled(),
        "what is acknowledged is stable"
    );
    let mut was = false;
    for (mode, is_volatile) in [
        ("write-through", false),
        ("volatile --yes", true),
        ("write-back", false),
    ] {
        place.run(0, &format!("lun set vm01 cache={mode}"));
        if is_volatile != was {
            assert_eq!(host.unit_attention(), MODE_PARAMETERS_CHANGED, "{mode}");
        }
        assert_eq!(host.write_cache_enabled(), is_volatile, "{mode}");
        was = is_volatile;
        let metrics = place.metrics();
        let count = format!("\ncauseway_luns_volatile {}\n", u8::from(is_volatile));
        assert!(metrics.contains(&count), "{mode}\n{metrics}");
        load(&place, &portal, "");
    }
    drop(host);
    // The journal holds writes of the last load; killed, the next life finds them.
    daemon.kill();
    let daemon = place.start();
    assert_eq!(state(&place).0, "online");
    load(&place, &served(&place), "");
    daemon.stop();
    // At a clean stop all of it was destaged.
    let daemon = place.start();
    let log = daemon.stop();
    assert!(!log.contains("held writes"), "{log}");
}

#[test]
fn without_its_journal_a_lun_is_offline_and_is_back_with_it() {
    let place = with_journal("journal-missing", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    load(&place, &served(&place), "");
    daemon.kill();
    let (journal, aside) = (place.path("data/journal"), place.path("aside"));
    std::fs::rename(&journal, &aside).unwrap();
    let daemon = place.start();
    let (now, reason) = state(&place);
    assert_eq!(now, "offline");
    assert!(
        reason.contains("may hold writes that were acknowledged"),
        "{reason}"
    );
    let page = place.run(0, "pool show default");
    assert!(page.contains("missing"), "{page}");
    let metrics = place.metrics();
    let missing = "causeway_journal_state{pool=\"default\",state=\"missing\"} 1";
    assert!(metrics.contains(missing), "{metrics}");
    let status = place.json("status");
    let problems = status["problems"].to_string();
    assert!(
        problems.contains("the journal of pool default cannot be used"),
        "{problems}"
    );
    daemon.stop();
    assert!(!journal.exists(), "another one is not made in its place");
    // Named no more, it is missed all the same.
    let named = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let key = "journal = \"data/journal\"\njournal_size = \"64MiB\"\n";
    place.write("node.toml", &named.replace(key, ""));
    let daemon = place.start();
    let (now, reason) = state(&place);
    assert_eq!(now, "offline");
    assert!(reason.contains("node.toml names none"), "{reason}");
    daemon.stop();
    place.write("node.toml", &named);
    std::fs::rename(&aside, &journal).unwrap();
    let daemon = place.start();
    assert_eq!(state(&place).0, "online");
    load(&place, &served(&place), "");
    daemon.stop();
}

#[test]
fn what_somebody_else_wrote_is_not_made_a_journal() {
    let place = with_journal("journal-foreign", LUN);
    std::fs::create_dir_all(place.path("data")).unwrap();
    let precious = vec![7; 128 << 10];
    std::fs::write(place.path("data/journal"), &precious).unwrap();
    let daemon = place.start();
    place.run(1, "apply -f objects.toml");
    let log = daemon.stop();
    assert!(log.contains("would be overwritten"), "{log}");
    assert_eq!(std::fs::read(place.path("data/journal")).unwrap(), precious);
}

#[test]
fn a_journal_is_checked_without_a_daemon_and_what_is_damaged_is_named() {
    let place = with_journal("journal-check", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let naa = place.json("lun show vm01")["naa"].clone();
    let naa = naa.as_str().unwrap().to_owned();
    // Killed amid writes, so that some are in the journal only.
    let mut client = begin_writes(&served(&place));
    let changes = || place.json("pool show default")["journal"]["changes"].as_u64();
    while changes() < Some(100) {}
    daemon.kill();
    client.kill().unwrap();
    client.wait().unwrap();
    let check = |code| place.run(code, "pool check data/journal");
    let printed = check(0);
    assert!(printed.contains("good"), "{printed}");
    let facts = place.json("pool check data/journal");
    assert_eq!(facts["good"], true);
    assert_eq!(facts["rings"].as_array().unwrap().len(), 1);
    let table = place.run(0, "pool check data/pool");
    assert!(table.contains("it has a journal"), "{table}");
    // A byte of some data of the last batches: in the middle of what is in use, or after it.
    let path = place.path("data/journal");
    let bytes = std::fs::read(&path).unwrap();
    let mut damaged = None;
    for batch in (0..bytes.len()).step_by(4096).rev() {
        if bytes[batch..].starts_with(b"CWJBATCH") {
            let mut torn = bytes.clone();
            torn[batch + 4096] ^= 1;
            std::fs::write(&path, torn).unwrap();
            let words = ["pool", "check", "data/journal"];
            let output = place.run_with("", &words, "");
            if output.status.code() == Some(1) {
                damaged = Some(text_of(&output, 1, "pool check"));
                break;
            }
        }
    }
    let reported = damaged.expect("a batch that is needed was damaged");
    assert!(reported.contains("DAMAGED"), "{reported}");
    assert!(reported.contains("error[CWY4008]"), "{reported}");
    assert!(reported.contains(&naa[16..]), "{naa}: {reported}");
    // Both superblocks gone, it is none.
    let mut gone = bytes;
    gone[..8192].fill(0);
    std::fs::write(&path, gone).unwrap();
    let printed = check(1);
    assert!(printed.contains("CWY4007"), "{printed}");
}

/// Changes a byte of the data of every batch that lies in the journal's file.
fn spoil(place: &Place) {
    let path = place.path("data/journal");
    let bytes = std::fs::read(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    for batch in (0..bytes.len() - 8192).step_by(4096) {
        if bytes[batch..].starts_with(b"CWJBATCH") && !bytes[batch + 4096..].starts_with(b"CWJ") {
            let at = batch + 4096;
            file.write_all_at(&[bytes[at] ^ 1], at as u64).unwrap();
        }
    }
    file.sync_all().unwrap();
}

/// Asks until blocks of the LUN are lost in the journal (or no one any more), and gives the first
/// place.
fn until_lost(place: &Place, wanted: bool) -> u64 {
    // Each question is a process of its own, which takes some milliseconds.
    for _ in 0..2_000 {
        let journal = place.json("pool show default")["journal"].clone();
        let first = journal["lost"][0]["lba"].as_u64();
        if first.is_some() == wanted {
            return first.unwrap_or(0);
        }
    }
    panic!("blocks are lost: never {wanted}")
}

#[test]
fn what_is_damaged_in_the_journal_is_reported_through_restarts_until_it_is_written_again() {
    let place = with_journal("journal-damage", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let mut client = begin_writes(&served(&place));
    let changes = || place.json("pool show default")["journal"]["changes"].as_u64();
    while changes() < Some(300) {}
    spoil(&place);
    client.kill().unwrap();
    client.wait().unwrap();
    // It is found when it is destaged, and reported at once.
    until_lost(&place, true);
    daemon.kill();
    // It stays lost, whoever opens the journal, and however often.
    for _ in 0..2 {
        let output = place.run(1, "pool check data/journal");
        assert!(output.contains("CWY4008"), "{output}");
        let daemon = place.start();
        let first = until_lost(&place, true);
        let read = format!("read {} 512", first * 512);
        let output = qemu_io(&served(&place), &[read]);
        assert!(output.contains("read failed"), "{output}");
        let lost = place.json("lun show vm01")["journal"]["lost_blocks"].as_u64();
        assert!(lost > Some(0), "{lost:?}");
        let problems = place.json("status")["problems"].to_string();
        assert!(
            problems.contains("are damaged in the journal"),
            "{problems}"
        );
        let none = "causeway_journal_lost_blocks{pool=\"default\"} 0";
        assert!(!place.metrics().contains(none));
        let log = daemon.stop();
        assert!(log.contains("lun=\"vm01\""), "{log}");
        assert!(log.contains("are damaged in the journal"), "{log}");
    }
    let daemon = place.start();
    qemu_io(&served(&place), &["write 0 64M".to_owned()]);
    until_lost(&place, false);
    let none = "causeway_journal_lost_blocks{pool=\"default\"} 0";
    assert!(place.metrics().contains(none));
    daemon.stop();
    let output = place.run(0, "pool check data/journal");
    assert!(output.contains("good"), "{output}");
    let daemon = place.start();
    load(&place, &served(&place), "");
    let log = daemon.stop();
    assert!(!log.contains("are damaged in the journal"), "{log}");
}
