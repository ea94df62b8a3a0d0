//! The daemon with a pool of a real Ceph cluster, and the command line against it. Says that it is
//! skipped where Ceph is not installed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for other processes"
)]
#![expect(
    dead_code,
    reason = "the place is shared with the daemon's other tests"
)]

#[path = "../daemon/place.rs"]
mod place;

use place::{Daemon, Place, text_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// How long the cluster and the daemon may take for what they do by themselves.
const LIMIT: Duration = Duration::from_secs(120);

/// A cluster, gone at the end.
struct Ceph {
    dir: PathBuf,
}

fn script(words: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/ceph");
    Command::new(script).args(words).output().unwrap()
}

impl Ceph {
    /// `None`, and said so, where it is not installed.
    fn start() -> Option<Self> {
        let dir = std::env::temp_dir().join(format!("cw-ceph-{}", std::process::id()));
        let output = script(&["start", dir.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            // What is not installed cannot be tested; whatever else goes wrong is a failure.
            assert!(said.contains("is missing"), "{said}");
            println!("skipped: Ceph is not here: {said}");
            return None;
        }
        Some(Self { dir })
    }

    fn daemon(&self, command: &str, name: &str) {
        let output = script(&[command, self.dir.to_str().unwrap(), name]);
        assert!(output.status.success(), "{output:?}");
    }

    fn conf(&self) -> String {
        self.dir.join("ceph.conf").display().to_string()
    }

    /// Runs `rbd ...` or `ceph ...` to its end.
    fn says(&self, tool: &str, words: &str) -> String {
        let mut command = Command::new("timeout");
        command
            .args(["60", tool, "--conf", &self.conf()])
            .args(words.split(' '));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{tool} {words}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn images(&self) -> Vec<String> {
        let all = self.says("rbd", "ls");
        all.lines().map(str::to_owned).collect()
    }
}

impl Drop for Ceph {
    fn drop(&mut self) {
        script(&["stop", self.dir.to_str().unwrap_or_default()]);
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A node with a pool in a directory and one of the cluster with this configuration.
fn node(name: &str, conf: &str) -> Place {
    let place = Place::new(name);
    place.write(
        "node.toml",
        &format!(
            "schema = 1\n[node]\nname = \"n\"\nstate_dir = \"data\"\n[[portal_group]]\nname = \"default\"\n\
             tag = 1\nlisten = [ {{ ip = \"127.0.0.1\", port = 0 }} ]\n[[pool]]\nname = \"default\"\n\
             path = \"data/pool\"\n[[pool]]\nname = \"ceph\"\nrbd = {{ pool = \"rbd\", conf = \"{conf}\" }}\n\
             [api]\nlisten = [\"unix:data/api.sock\", \"127.0.0.1:0\"]\n[runtime]\ncores = [0]\ndriver = \"poll\"\n"
        ),
    );
    place
}

/// Starts the daemon, with its log in a file.
fn start(place: &Place) -> Daemon {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(place.path("log"));
    place.start_with(log.unwrap().into())
}

/// Waits until that is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Waits until the pool is so.
fn until_pool(place: &Place, what: &str, is_so: impl Fn(&serde_json::Value) -> bool) {
    let begun = Instant::now();
    loop {
        let now = pool(place);
        if is_so(&now) {
            return;
        }
        assert!(
            begun.elapsed() < LIMIT,
            "it never came that the pool {what}: {now}\n{}",
            std::fs::read_to_string(place.path("log")).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn state(place: &Place, lun: &str) -> String {
    let shown = place.json(&format!("lun show {lun}"));
    shown["state"].as_str().unwrap().to_owned()
}

fn naa(place: &Place, lun: &str) -> String {
    let shown = place.json(&format!("lun show {lun}"));
    shown["naa"].as_str().unwrap().to_owned()
}

fn pool(place: &Place) -> serde_json::Value {
    place.json("pool show ceph")
}

/// Writes to a LUN as a host, which leaves the mark of the bench in its first block.
fn write_as_host(place: &Place, lun: &str) {
    place.run(0, "target create t1");
    place.run(0, "host create h --iqn iqn.2026-01.x:h");
    place.run(0, &format!("grant create h {lun}"));
    let portals = place.json("target show t1");
    let at = portals["portals"][0].as_str().unwrap().to_owned();
    let iqn = portals["iqn"].as_str().unwrap().to_owned();
    let url = format!("iscsi://{at}/{iqn}/0");
    let state = place.path("initiator").display().to_string();
    let words = format!(
        "bench -b4K -r -o8 -w50 -d2 -W0 --destroy --initiator-name iqn.2026-01.x:h --initiator-state {state} {url}"
    );
    place.run(0, &words);
}

#[test]
fn a_pool_of_a_cluster_serves_luns_that_are_images() {
    let Some(ceph) = Ceph::start() else { return };
    let place = node("rbd", &ceph.conf());
    let daemon = start(&place);
    luns_are_images(&ceph, &place);
    images_of_others_are_adopted_by_name(&ceph, &place);
    the_cluster_s_health_is_shown(&ceph, &place);
    a_cluster_that_does_not_answer_holds_up_nothing_else(&ceph, &place);
    a_node_that_is_shut_out_serves_again_what_nobody_else_has(&ceph, &place);
    two_nodes_never_serve_one_image(&ceph, &place);
    let daemon = an_image_that_does_not_say_whose_it_is_is_not_served(&ceph, &place, daemon);
    let daemon = what_a_node_forgot_is_adopted_from_the_images(&place, daemon);
    purged_luns_leave_no_image(&ceph, &place);
    drop(daemon);
    a_cluster_that_cannot_be_had_leaves_its_pool_missing_and_serves_the_others();
}

fn luns_are_images(ceph: &Ceph, place: &Place) {
    place.run(0, "lun create vm1 --size 64MiB --pool ceph");
    let image = format!("causeway-{}", naa(place, "vm1"));
    assert_eq!(ceph.images(), [image.as_str()]);
    let metadata = ceph.says("rbd", &format!("image-meta ls {image}"));
    assert!(metadata.contains(&naa(place, "vm1")), "{metadata}");
    let shown = place.json("lun show vm1");
    assert_eq!(
        shown["cache"], "write-through",
        "the cluster has it stable: {shown}"
    );
    write_as_host(place, "vm1");
    let content = place.path("content").display().to_string();
    ceph.says("rbd", &format!("export {image} {content}"));
    let content = std::fs::read(&content).unwrap();
    assert!(
        content.iter().any(|byte| *byte != 0),
        "nothing came to the cluster"
    );
    place.run(0, "lun set vm1 size=128MiB");
    assert!(
        ceph.says("rbd", &format!("info {image}"))
            .contains("size 128 MiB")
    );
    place.run(0, "lun set vm1 size=96MiB --yes");
    assert!(
        ceph.says("rbd", &format!("info {image}"))
            .contains("size 96 MiB")
    );
    let thick = place.run(2, "lun create thick --size 1MiB --pool ceph --thin false");
    assert!(thick.contains("thin images only"), "{thick}");
    assert_eq!(ceph.images().len(), 1);
}

fn images_of_others_are_adopted_by_name(ceph: &Ceph, place: &Place) {
    let text = vec![0x5A; 1 << 20];
    std::fs::write(place.path("disk"), &text).unwrap();
    let disk = place.path("disk").display().to_string();
    ceph.says("rbd", &format!("import {disk} rbd/vm-101-disk-0"));
    ceph.says(
        "rbd",
        "create rbd/shared --size 4M --image-feature layering",
    );
    // A copy has the metadata of the image that it was made of, and comes first by its name.
    let image = format!("causeway-{}", naa(place, "vm1"));
    ceph.says("rbd", &format!("cp {image} a-copy"));
    assert_eq!(place.problems(), [""; 0], "they are nobody's concern");
    assert_eq!(place.json("lun ls --orphans").as_array().unwrap().len(), 3);
    place.run(0, "lun adopt vm-101-disk-0 --block-size 512 --name vm101");
    assert_eq!(state(place, "vm101"), "online");
    let mine = naa(place, "vm101");
    let metadata = ceph.says("rbd", "image-meta ls vm-101-disk-0");
    assert!(metadata.contains(&mine), "{metadata}");
    let content = place.path("adopted").display().to_string();
    ceph.says("rbd", &format!("export vm-101-disk-0 {content}"));
    assert!(
        std::fs::read(&content).unwrap() == text,
        "its contents are as they were"
    );
    let refused = place.run(1, "lun adopt shared --block-size 512");
    assert!(refused.contains("no exclusive lock"), "{refused}");
    assert!(ceph.images().contains(&"shared".to_owned()));
}

/// Its keys are gone, or another image has its name: the LUN is offline, nothing is written there,
/// and it comes back with the right image.
fn an_image_that_does_not_say_whose_it_is_is_not_served(
    ceph: &Ceph,
    place: &Place,
    daemon: Daemon,
) -> Daemon {
    let mine = naa(place, "vm1");
    let image = format!("causeway-{mine}");
    let key = |name: &str| {
        let read = format!("image-meta get {image} causeway.{name}");
        ceph.says("rbd", &read).trim().to_owned()
    };
    let keys = ["naa", "image", "record"].map(|name| (name, key(name)));
    let keys_left = || ceph.says("rbd", &format!("image-meta ls {image}"));
    let refused = || {
        let daemon = start(place);
        let shown = place.json("lun show vm1");
        assert_eq!(shown["state"], "offline", "{shown}");
        let why = shown.to_string();
        assert!(why.contains("does not say that it is LUN"), "{why}");
        assert!(why.contains("rbd image-meta set"), "{why}");
        // A change writes down what all LUNs are.
        place.run(0, "lun create passing --size 1MiB --pool ceph");
        place.run(0, "lun delete passing --yes");
        place.run(0, "lun purge passing --yes");
        assert!(!keys_left().contains("causeway."), "{}", keys_left());
        daemon
    };
    daemon.stop();
    for (name, _) in &keys {
        ceph.says("rbd", &format!("image-meta remove {image} causeway.{name}"));
    }
    let daemon = refused();
    for (name, value) in keys.iter().filter(|(name, _)| *name != "record") {
        let set = format!("image-meta set {image} causeway.{name} {value}");
        ceph.says("rbd", &set);
    }
    until("its keys are back", || state(place, "vm1") == "online");
    daemon.stop();
    ceph.says("rbd", &format!("trash mv {image}"));
    let in_trash = ceph.says("rbd", "trash ls");
    let id = in_trash.split_whitespace().next().unwrap().to_owned();
    ceph.says("rbd", &format!("create {image} --size 96M"));
    refused().stop();
    ceph.says("rbd", &format!("rm {image} --no-progress"));
    ceph.says("rbd", &format!("trash restore {id}"));
    let daemon = start(place);
    assert_eq!(state(place, "vm1"), "online");
    until_pool(place, "is well", |pool| pool["state"] == "ok");
    daemon
}

fn the_cluster_s_health_is_shown(ceph: &Ceph, place: &Place) {
    let severity = || {
        pool(place)["health"]["severity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    until("the cluster is well", || severity() == "ok");
    assert!(
        place
            .metrics()
            .contains("causeway_pool_health{pool=\"ceph\"} 0")
    );
    ceph.says("ceph", "osd set noout");
    until("the warning is shown", || severity() == "warning");
    let status = place.json("status")["notes"].to_string();
    assert!(status.contains("OSDMAP_FLAGS"), "{status}");
    assert!(
        place
            .metrics()
            .contains("causeway_pool_health{pool=\"ceph\"} 1")
    );
    ceph.says("ceph", "osd unset noout");
    ceph.says("ceph", "osd pool set-quota rbd max_bytes 1");
    until("the pool is full", || pool(place)["state"] == "full");
    ceph.says("ceph", "osd pool set-quota rbd max_bytes 0");
    until("it has room again", || {
        pool(place)["state"] == "ok" && severity() == "ok"
    });
}

fn a_node_that_is_shut_out_serves_again_what_nobody_else_has(ceph: &Ceph, place: &Place) {
    let image = format!("causeway-{}", naa(place, "vm1"));
    let client = || {
        let locks = ceph.says("rbd", &format!("lock ls {image}"));
        let line = locks
            .lines()
            .rfind(|line| line.starts_with("client."))
            .map(str::to_owned);
        line.and_then(|line| line.split_whitespace().last().map(str::to_owned))
    };
    let before = client().expect("the daemon has the lock");
    ceph.says("ceph", &format!("osd blocklist add {before}"));
    until("it connects anew", || {
        client().is_some_and(|now| now != before)
    });
    for lun in ["vm1", "vm101"] {
        until("its LUNs are online", || state(place, lun) == "online");
    }
}

fn a_cluster_that_does_not_answer_holds_up_nothing_else(ceph: &Ceph, place: &Place) {
    ceph.daemon("pause", "osd.0");
    until("that is shown", || pool(place)["state"] == "silent");
    let problems = place.problems().join("\n");
    assert!(problems.contains("does not answer"), "{problems}");
    place.run(0, "lun create here --size 1MiB --pool default");
    ceph.daemon("resume", "osd.0");
    until_pool(place, "answers", |pool| pool["state"] == "ok");
}

fn two_nodes_never_serve_one_image(ceph: &Ceph, place: &Place) {
    let other = node("rbd-other", &ceph.conf());
    let daemon = other.start();
    let refused = other.run(1, "lun adopt vm1");
    assert!(refused.contains("lock"), "{refused}");
    assert_eq!(other.json("lun ls"), serde_json::json!([]));
    assert_eq!(state(place, "vm1"), "online");
    drop(daemon);
}

fn what_a_node_forgot_is_adopted_from_the_images(place: &Place, daemon: Daemon) -> Daemon {
    let before = naa(place, "vm1");
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    let daemon = start(place);
    place.run(0, "lun adopt --all");
    assert!(!place.json("lun ls").to_string().contains("a-copy"));
    assert_eq!(naa(place, "vm1"), before);
    assert_eq!(
        (state(place, "vm1"), state(place, "vm101")),
        ("online".to_owned(), "online".to_owned())
    );
    assert_eq!(place.json("lun show vm1")["size"], 96 << 20);
    daemon
}

fn purged_luns_leave_no_image(ceph: &Ceph, place: &Place) {
    for lun in ["vm1", "vm101"] {
        place.run(0, &format!("lun delete {lun} --yes"));
        place.run(0, &format!("lun purge {lun} --yes"));
    }
    assert_eq!(ceph.images(), ["a-copy", "shared"]);
}

fn a_cluster_that_cannot_be_had_leaves_its_pool_missing_and_serves_the_others() {
    let place = node("rbd-nowhere", "nowhere.conf");
    let daemon = place.start();
    let cause = "nowhere.conf is not there or cannot be read";
    until_pool(&place, "is missing", |pool| {
        pool["problem"].to_string().contains(cause)
    });
    assert_eq!(pool(&place)["state"], "missing");
    let words = ["lun", "create", "x", "--size", "1MiB", "--pool", "ceph"];
    let refused = text_of(&place.run_with(&place.api(), &words, ""), 1, "lun create");
    assert!(refused.contains(cause), "{refused}");
    place.run(0, "lun create here --size 1MiB --pool default");
    drop(daemon);
}
