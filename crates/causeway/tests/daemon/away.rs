//! What is away when the daemon starts, or goes while it runs: file systems of pools, addresses,
//! locks, room.

use crate::gone::{must_hold, must_run, qemu_io, write};
use crate::journal::{LUN, load, served, with_journal};
use crate::place::{Place, text_of};
use crate::small_file_system::{SmallFileSystem, is_root};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// Each question is a process, so that these are a minute at least.
const QUESTIONS_MAX: u32 = 4000;

/// Asks until the answer is as it should be.
fn until(what: &str, mut is: impl FnMut() -> Result<(), String>) {
    let mut seen = String::new();
    for _ in 0..QUESTIONS_MAX {
        match is() {
            Ok(()) => return,
            Err(answer) => seen = answer,
        }
    }
    panic!("never {what}: {seen}");
}

fn state(place: &Place, name: &str) -> String {
    let lun = place.json(&format!("lun show {name}"));
    lun["state"].as_str().unwrap().to_owned()
}

fn until_state(place: &Place, name: &str, wanted: &str) {
    until(&format!("{name} is {wanted}"), || {
        let is = state(place, name);
        if is == wanted { Ok(()) } else { Err(is) }
    });
}

fn problems(place: &Place) -> String {
    place.json("status")["problems"].to_string()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// The pool's file system is not mounted: what lies at its path is an empty directory, or nothing.
fn unmount(place: &Place, leave: bool) {
    std::fs::rename(place.path("data/pool"), place.path("data/away")).unwrap();
    if leave {
        std::fs::create_dir(place.path("data/pool")).unwrap();
    }
}

fn mount(place: &Place) {
    let _ = std::fs::remove_dir(place.path("data/pool"));
    std::fs::rename(place.path("data/away"), place.path("data/pool")).unwrap();
}

fn is_missing(place: &Place) {
    let pool = place.json("pool show default");
    assert_eq!(pool["state"], "missing", "{pool}");
    let reported = problems(place);
    assert!(
        reported.contains("pool default is missing") && reported.contains("LUN a, b"),
        "{reported}"
    );
    let lun = place.json("lun show a");
    assert!(
        lun["reason"].as_str().unwrap().contains("is missing"),
        "{lun}"
    );
    let made = place.run(1, "lun create c --size 1M");
    assert!(made.contains("error[CWY4011]"), "{made}");
    let purged = place.run(1, "lun purge b --yes");
    assert!(purged.contains("error[CWY4011]"), "{purged}");
    let restored = place.run(1, "lun restore b");
    assert!(restored.contains("error[CWY4011]"), "{restored}");
    assert_eq!(
        names(&place.path("data/pool")),
        [""; 0],
        "nothing was made in its place"
    );
}

fn comes_back(journal: bool) {
    let place = Place::new(&format!("unmounted-{journal}"));
    if journal {
        let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
        let with = "path = \"data/pool\"\njournal = \"data/journal\"\njournal_size = \"16MiB\"";
        place.write("node.toml", &config.replace("path = \"data/pool\"", with));
    }
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    place.run(0, "lun create b --size 1M");
    place.run(0, "lun delete b");
    daemon.stop();
    for leave in [true, false] {
        unmount(&place, leave);
        let daemon = place.start();
        assert_eq!(state(&place, "a"), "offline");
        is_missing(&place);
        mount(&place);
        until_state(&place, "a", "online");
        place.run(0, "lun restore b");
        place.run(0, "lun delete b");
        // While it serves.
        unmount(&place, leave);
        until_state(&place, "a", "offline");
        is_missing(&place);
        mount(&place);
        until_state(&place, "a", "online");
        assert_ne!(place.json("pool show default")["state"], "missing");
        let log = daemon.stop();
        assert_eq!(log.matches("the pool is back").count(), 2, "{log}");
    }
}

#[test]
fn a_pool_whose_file_system_is_not_mounted_is_missing_and_comes_back_by_itself() {
    comes_back(false);
}

#[test]
fn so_does_one_with_a_journal() {
    comes_back(true);
}

#[test]
fn another_pools_directory_is_not_taken_for_the_one_whose_luns_are_known() {
    let place = Place::new("other-pool");
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    daemon.stop();
    unmount(&place, true);
    let text = "schema = 1\nid = \"00000000000000000000000000000007\"\njournal = false\n";
    place.write("data/pool/pool.toml", text);
    let daemon = place.start();
    let reported = problems(&place);
    assert!(reported.contains("holds another pool"), "{reported}");
    place.run(1, "lun create c --size 1M");
    daemon.stop();
}

#[test]
fn a_lun_whose_file_a_change_does_not_find_is_offline_in_status_too_and_comes_back_by_itself() {
    let place = with_journal("change-away", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let portal = served(&place);
    qemu_io(&portal, &write(0..20));
    let naa = place.json("lun show vm01")["naa"]
        .as_str()
        .unwrap()
        .to_owned();
    let (file, aside) = (
        place.path(&format!("data/pool/{naa}.lun")),
        place.path("aside"),
    );
    std::fs::rename(&file, &aside).unwrap();
    must_hold(&portal, 0..20);
    let output = place.run(6, "lun set vm01 read_cache=1M");
    assert!(output.contains("does not exist"), "{output}");
    assert_eq!(state(&place, "vm01"), "offline");
    let reported = problems(&place);
    assert!(reported.contains("LUN vm01 is offline"), "{reported}");
    std::fs::rename(&aside, &file).unwrap();
    until_state(&place, "vm01", "online");
    must_hold(&portal, 0..20);
    load(&place, &portal, "");
    daemon.stop();
}

#[test]
fn a_file_that_has_lost_its_end_says_what_brings_its_lun_back_and_that_does() {
    let place = Place::new("lost-end");
    let daemon = place.start();
    place.run(0, "lun create vm01 --size 64M");
    let naa = place.json("lun show vm01")["naa"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = place.path(&format!("data/pool/{naa}.lun"));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(32 << 20).unwrap();
    // While it serves, and at a start.
    let output = place.run(6, "lun set vm01 read_cache=1M");
    assert!(output.contains("truncate -s 67108864 "), "{output}");
    daemon.stop();
    let daemon = place.start();
    assert_eq!(state(&place, "vm01"), "offline");
    let reason = place.json("lun show vm01")["reason"].to_string();
    let (_, advice) = reason.split_once("of a file: ").unwrap();
    let (advice, _) = advice.split_once(')').unwrap();
    let there = format!("cd {} && {advice}", place.path(".").display());
    must_run("sh", &["-c", &there]);
    until_state(&place, "vm01", "online");
    place.run(0, "lun resize vm01 --size 32M --yes");
    daemon.stop();
}

/// A pipe that nobody writes to takes the thread that opens it to read, as a server of files that
/// is away does.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a stop takes is what is asked"
)]
#[test]
fn a_file_whose_opening_hangs_holds_up_no_other_lun_no_change_and_no_stop() {
    let place = Place::new("hangs");
    let daemon = place.start();
    let files = ["a", "b"].map(|name| {
        place.run(0, &format!("lun create {name} --size 1M"));
        let lun = place.json(&format!("lun show {name}"));
        let naa = lun["naa"].as_str().unwrap();
        place.path(&format!("data/pool/{naa}.lun"))
    });
    daemon.stop();
    let asides = [place.path("aside-a"), place.path("aside-b")];
    for (file, aside) in files.iter().zip(&asides) {
        std::fs::rename(file, aside).unwrap();
    }
    let daemon = place.start();
    must_run("mkfifo", &[&files[0].display().to_string()]);
    std::fs::rename(&asides[1], &files[1]).unwrap();
    until_state(&place, "b", "online");
    place.run(0, "lun create c --size 1M");
    assert_eq!(state(&place, "a"), "offline");
    let begun = Instant::now();
    daemon.stop();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_portal_that_cannot_be_bound_at_the_start_is_tried_until_it_can_be() {
    let place = Place::new("no-portal");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write(
        "node.toml",
        &config.replace("port = 0", &format!("port = {port}")),
    );
    let daemon = place.start();
    let status = place.json("status");
    assert_eq!(status["health"], "degraded");
    let reported = status["problems"].to_string();
    assert!(
        reported.contains("CWY1008") && reported.contains("does not listen"),
        "{reported}"
    );
    // Everything else can be done meanwhile.
    place.run(0, "lun create a --size 1M");
    drop(taken);
    until("the portal listens", || {
        let status = place.json("status");
        let problem = &status["portals"][0]["problem"];
        if problem.is_null() {
            Ok(())
        } else {
            Err(problem.to_string())
        }
    });
    let reported = problems(&place);
    assert!(
        !reported.contains("CWY1008") && !reported.contains("listen"),
        "{reported}"
    );
    let log = daemon.stop();
    let line = format!("node.toml:8: portal_group[0].listen: 127.0.0.1:{port}: ");
    assert!(log.contains(&line) && log.contains("CWY1008"), "{log}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a start takes is what is asked"
)]
#[test]
fn files_that_another_process_has_locked_are_waited_for_side_by_side() {
    const LUNS: u32 = 6;
    let place = Place::new("locked");
    let daemon = place.start();
    for number in 0..LUNS {
        place.run(0, &format!("lun create l{number} --size 1M"));
    }
    daemon.stop();
    let files: Vec<std::fs::File> = names(&place.path("data/pool"))
        .iter()
        .filter(|name| name.ends_with(".lun"))
        .map(|name| std::fs::File::open(place.path("data/pool").join(name)).unwrap())
        .collect();
    assert_eq!(files.len(), 6);
    for file in &files {
        file.lock().unwrap();
    }
    let begun = Instant::now();
    let daemon = place.start();
    // Each alone is waited for 3 s.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}");
    assert_eq!(place.json("status")["counts"]["luns_offline"], LUNS);
    drop(files);
    daemon.stop();
    let daemon = place.start();
    assert_eq!(place.json("status")["counts"]["luns_offline"], 0);
    daemon.stop();
}

/// A pool on a file system of its own.
fn small(name: &str, bytes: u64) -> Option<(Place, SmallFileSystem)> {
    if !is_root() {
        println!("skipped: only root may mount a small file system");
        return None;
    }
    let place = Place::new(name);
    match SmallFileSystem::mount(&place.path("data/pool"), bytes) {
        Ok(mounted) => Some((place, mounted)),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

#[test]
fn a_pool_that_fills_up_is_low_then_full_and_well_again_and_each_is_logged_once() {
    let Some((place, mounted)) = small("filling", 64 << 20) else {
        return;
    };
    let log = place.path("log");
    let daemon = place.start_with(std::fs::File::create(&log).unwrap().into());
    let pool = || place.json("pool show default");
    assert_eq!(pool()["state"], "ok");
    let output = place.run(0, "lun create big --size 1G");
    assert!(output.contains("have no room: 6"), "{output}");
    let shown = pool();
    assert_eq!(shown["provisioned_bytes"], 1 << 30);
    let page = place.run(0, "pool show default");
    let line = page.lines().find(|line| line.starts_with("provisioned"));
    let is_reported = line.is_some_and(|line| line.ends_with(" more than there is room for"));
    assert!(is_reported, "{page}");
    let over = shown["overcommitted_bytes"].as_u64().unwrap();
    assert!((960 << 20..1 << 30).contains(&over), "{shown}");
    assert!(
        place.json("status")["notes"]
            .to_string()
            .contains("have no room")
    );
    let metrics = place.metrics();
    let line = format!(
        "causeway_pool_provisioned_bytes{{pool=\"default\"}} {}",
        1 << 30
    );
    assert!(metrics.contains(&line), "{metrics}");
    for (bytes, wanted, word) in [(61 << 20, "low", "has only"), (64 << 20, "full", "is full")] {
        std::fs::write(place.path("data/pool/filler"), vec![1; 0]).unwrap();
        // Until there is no room, at most.
        let _ = std::fs::write(place.path("data/pool/filler"), vec![1; bytes]);
        assert_eq!(pool()["state"], wanted);
        assert!(problems(&place).contains(word), "{}", problems(&place));
    }
    let text = || std::fs::read_to_string(&log).unwrap();
    until("it is logged", || {
        pool();
        if text().contains("the pool is full") {
            Ok(())
        } else {
            Err(text())
        }
    });
    std::fs::remove_file(place.path("data/pool/filler")).unwrap();
    assert_eq!(pool()["state"], "ok");
    daemon.stop();
    assert_eq!(text().matches("the pool is full").count(), 1, "{}", text());
    assert!(text().contains("WARN"), "{}", text());
    drop(mounted);
}

#[test]
fn what_memory_luns_and_read_caches_may_take_beyond_what_there_is_is_reported_before_they_are_made()
{
    let place = Place::new("memory");
    let daemon = place.start();
    let memory = place.json("status")["memory"].clone();
    assert!(
        memory["total_bytes"].as_u64().unwrap() > 1 << 20,
        "{memory}"
    );
    for beyond in [
        "--size 100T --backend memory",
        "--size 1M --read-cache 100T",
    ] {
        let output = place.run(0, &format!("lun create m {beyond} --dry-run"));
        assert!(output.contains("for want of memory"), "{beyond}: {output}");
    }
    let output = place.run(0, "lun create m --size 1M --backend memory");
    assert!(!output.contains("for want of memory"), "{output}");
    let metrics = place.metrics();
    let line = format!(
        "causeway_memory_provisioned_bytes{{use=\"luns\"}} {}",
        1 << 20
    );
    assert!(metrics.contains(&line), "{metrics}");
    // What was deleted still has its memory.
    place.run(0, "lun delete m");
    assert_eq!(place.json("status")["memory"]["lun_bytes"], 1 << 20);
    daemon.stop();
}

#[test]
fn secrets_that_everybody_may_read_and_an_api_in_plain_text_are_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("open");
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write(
        "node.toml",
        &config.replace(
            "\"127.0.0.1:0\"]",
            "\"0.0.0.0:0\"]\nallow_plain_http = true",
        ),
    );
    let daemon = place.start();
    let notes = place.json("status")["notes"].to_string();
    assert!(notes.contains("in plain text"), "{notes}");
    place.write("a.secret", "very-secret-one\n");
    let all = |mode| std::fs::Permissions::from_mode(mode);
    let make = |name: &str| {
        place.run(0, &format!("host create {name} --iqn iqn.2020-01.a:{name} --chap-user u --chap-secret-file a.secret"))
    };
    std::fs::set_permissions(place.path("a.secret"), all(0o644)).unwrap();
    assert!(make("x").contains("everybody may read it (mode 0644): chmod 600 a.secret"));
    // A host's own, as well: here the other secret, which is too short, ends it before it asks
    // anybody.
    place.write("short.secret", "short\n");
    let words = "attach iscsi://127.0.0.1:1/iqn.2020-01.a:t/0 --export nbd+unix:x.sock --chap u:short.secret --mutual-chap v:a.secret";
    let words: Vec<&str> = words.split(' ').collect();
    let output = text_of(&place.run_with("", &words, ""), 2, "attach");
    assert!(
        output.contains("warning: a.secret holds a secret and everybody may read it"),
        "{output}"
    );
    std::fs::set_permissions(place.path("a.secret"), all(0o640)).unwrap();
    assert!(
        !make("y").contains("warning"),
        "the group is somebody's choice"
    );
    let log = daemon.stop();
    assert!(log.contains("in plain text"), "{log}");
    place.write(
        "node.toml",
        &config.replace("\"127.0.0.1:0\"", "\"https://0.0.0.0:0\""),
    );
    std::fs::set_permissions(place.path("data/api.token"), all(0o644)).unwrap();
    let daemon = place.start();
    let status = place.json("status");
    assert!(
        !status["notes"].to_string().contains("in plain text"),
        "{status}"
    );
    assert!(
        status["problems"].to_string().contains("chmod 600"),
        "{status}"
    );
    daemon.stop();
}

#[test]
fn a_socket_that_may_not_be_opened_says_whose_it_is_and_what_to_do() {
    use std::os::unix::process::CommandExt;
    if !is_root() {
        println!("skipped: only root may become somebody else");
        return;
    }
    let place = Place::new("not-allowed");
    let daemon = place.start();
    let binary = place.path("causeway");
    // By a process of its own: what another test starts meanwhile would keep the file open for
    // writing, and nobody could run it.
    let copied = std::process::Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_causeway"))
        .arg(&binary)
        .status();
    assert!(copied.unwrap().success());
    let output = std::process::Command::new(&binary)
        .arg("status")
        .env("CAUSEWAY_API", place.api())
        .uid(65_534)
        .gid(65_534)
        .output();
    let printed = text_of(&output.unwrap(), 7, "status as nobody");
    assert!(
        printed.contains("user 0's, and this is user 65534"),
        "{printed}"
    );
    assert!(printed.contains("sudo"), "{printed}");
    daemon.stop();
}

#[test]
fn an_address_of_the_api_that_cannot_be_had_is_reported_and_tried_until_it_can_be() {
    let place = Place::new("api-away");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let good = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let away = good.replace("\"127.0.0.1:0\"", &format!("\"{address}\""));
    assert_ne!(away, good);
    place.write("node.toml", &away);
    let daemon = place.start();
    let status = place.json("status");
    assert_eq!(status["health"], "degraded", "{status}");
    let problem = format!("the API does not listen at http://{address}: ");
    assert!(
        status["problems"].to_string().contains(&problem),
        "{status}"
    );
    assert!(!status["api"].to_string().contains(&address.to_string()));
    place.run(1, "status --check");
    drop(taken);
    // Each question is a process of its own, and the address is tried every second.
    let back = (0..2_000).any(|_| place.problems().is_empty());
    assert!(back, "{}", place.json("status"));
    let metrics = std::process::Command::new("curl")
        .args(["-sf", &format!("http://{address}/metrics")])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&metrics.stdout).contains("causeway_"));
    place.is_well();
    let log = daemon.stop();
    let named = address.to_string();
    let lines = log.matches(&named);
    let warned = format!("api.listen: http://{address}: ");
    assert_eq!(log.matches(&warned).count(), 1, "{log}");
    assert_eq!(
        lines.count(),
        2,
        "once that it is away, once that it listens: {log}"
    );
}

/// What the unit of systemd says: nothing that ends the daemon, and no limit of starts, leaves the
/// SAN down for ever.
#[test]
fn the_unit_starts_the_daemon_again_whatever_ended_it_and_as_often_as_it_ends() {
    let unit = include_str!("../../../../dist/causeway.service");
    let lines: Vec<&str> = unit.lines().map(str::trim).collect();
    for line in ["Restart=on-failure", "StartLimitIntervalSec=0"] {
        assert!(lines.contains(&line), "{line}");
    }
    let prevents = |line: &&&str| line.starts_with("RestartPreventExitStatus=");
    assert_eq!(lines.iter().find(prevents), None);
}
