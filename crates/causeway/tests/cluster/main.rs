//! Two daemons, a real etcd, and the command line: a cluster is made, joined, shown and left.
//! Says that it is skipped where etcd is not installed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    dead_code,
    reason = "the place is shared with the daemon's other tests"
)]

mod copies;
mod drain;
mod etcd;
mod forward;
mod initiator;
mod mirror;
#[path = "../daemon/place.rs"]
mod place;
mod reservations;
mod resync;

use etcd::Etcd;
use place::{Daemon, Place, text_of};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use test_ports::free_port;

/// A node that can be of a cluster, in a place of this test.
fn node(test: &str, name: &str, etcd: &Etcd) -> Place {
    let place = Place::new(&format!("cluster-{test}-{name}"));
    let known = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let file = |name: &str| etcd.file(name).display().to_string();
    let section = format!(
        "[cluster]\netcd = [\"{}\"]\netcd_ca = \"{}\"\netcd_certificate = \"{}\"\netcd_key = \"{}\"\n\
         listen = [\"127.0.0.1:{}\"]\n",
        etcd.url(),
        file("ca.pem"),
        file("node.pem"),
        file("node.key"),
        free_port()
    );
    let named = known.replace("name = \"n\"", &format!("name = \"{name}\""));
    let journal = "path = \"data/pool\"\njournal = \"data/journal\"\njournal_size = \"16MiB\"";
    let named = named.replace("path = \"data/pool\"", journal);
    place.write("node.toml", &format!("{named}{section}"));
    place
}

/// `causeway cluster ...`, which must end with `code`.
fn cluster(place: &Place, code: i32, words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    cluster_with(place, code, &words, "")
}

fn cluster_with(place: &Place, code: i32, words: &[&str], input: &str) -> String {
    let all = [&["cluster"], words, &["-c", "node.toml"]].concat();
    text_of(&place.run_with("", &all, input), code, &words.join(" "))
}

fn status(place: &Place) -> Value {
    serde_json::from_str(&cluster(place, 0, "status -o json")).unwrap()
}

/// Names of nodes, and whether each answers.
fn seen(place: &Place) -> Vec<(String, bool)> {
    let view = status(place);
    let nodes = view["nodes"].as_array().unwrap().iter();
    nodes
        .map(|it| {
            (
                it["name"].as_str().unwrap().to_owned(),
                it["answers"] == true,
            )
        })
        .collect()
}

fn both(a: bool, b: bool) -> Vec<(String, bool)> {
    vec![("san-a".to_owned(), a), ("san-b".to_owned(), b)]
}

/// Keys and secrets that stand in a node's files of state.
fn secrets(place: &Place) -> Vec<String> {
    let text = std::fs::read_to_string(place.path("data/cluster.json")).unwrap();
    let (_, body) = text.split_once('\n').unwrap();
    let member: Value = serde_json::from_str(body).unwrap();
    let line = |key: &str| {
        let pem = member[key].as_str().unwrap();
        pem.lines().nth(1).unwrap().to_owned()
    };
    vec![line("authority_key"), line("key")]
}

fn bundle(place: &Place) -> String {
    place.run(0, "support bundle --to bundle.tar.gz");
    let unpacked = Command::new("tar")
        .args(["xzOf", place.path("bundle.tar.gz").to_str().unwrap()])
        .output()
        .unwrap();
    String::from_utf8_lossy(&unpacked.stdout).into_owned()
}

/// What nodes keep of their cluster.
fn only_its_user_may_read(places: &[&Place]) {
    for place in places {
        for name in ["cluster.json", "cluster-nodes.json", "cluster-etcd.json"] {
            let mode = std::fs::metadata(place.path(&format!("data/{name}")));
            assert_eq!(mode.unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
        assert!(!place.path("data/cluster-pending.json").exists());
    }
}

#[test]
fn a_cluster_is_made_joined_shown_and_left_by_the_command_line() {
    let Some(etcd) = Etcd::start("whole") else {
        return;
    };
    let (a, b) = (node("whole", "san-a", &etcd), node("whole", "san-b", &etcd));
    let (first, second) = (a.start(), b.start());
    let none = cluster(&a, 4, "status");
    assert!(none.contains("error[CWY8002]"), "{none}");
    let made = cluster(&a, 0, "init home");
    assert!(made.contains("san-a is node 0 of it"), "{made}");
    let token = cluster(&a, 0, "token --minutes 5 --to join.token");
    assert!(token.contains("once, until"), "{token}");
    let file = a.path("join.token");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        !token.contains(text.trim()),
        "a token that is in a file is not shown"
    );
    let joined = cluster(&b, 0, &format!("join {}", file.display()));
    assert!(
        joined.contains("san-b is node 1 of cluster home"),
        "{joined}"
    );
    assert_eq!(seen(&a), both(true, true));
    assert_eq!(seen(&b), both(true, true));
    let shown = cluster(&b, 0, "status");
    for word in ["this node", "answers", "CERTIFICATE ENDS"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    // Once means once, and nobody is in two clusters.
    let again = cluster_with(&b, 4, &["join", "-"], &text);
    assert!(again.contains("error[CWY8003]"), "{again}");
    cluster(&a, 4, "init other");
    only_its_user_may_read(&[&a, &b]);
    // What is secret is nowhere else.
    let mut all = bundle(&a) + &bundle(&b);
    let mut hidden = [secrets(&a), secrets(&b)].concat();
    hidden.push(text.trim().to_owned());
    all.push_str(&etcd.ctl(&["get", "--prefix", ""]).unwrap());
    assert!(all.contains("causeway/nodes/1"), "{all}");
    // Both are the same after a restart, also by a kill.
    all.push_str(&first.stop());
    second.kill();
    let (first, second) = (a.start(), b.start());
    assert_eq!(seen(&a), both(true, true));
    assert_eq!(seen(&b), both(true, true));
    // One that is away is silent, and says so itself when it is back.
    second.kill();
    assert_eq!(seen(&a), both(true, false));
    let view = status(&a);
    assert!(
        view["nodes"][1]["problem"]
            .as_str()
            .unwrap()
            .contains("next step"),
        "{view}"
    );
    let second = b.start();
    assert_eq!(seen(&a), both(true, true));
    let left = cluster(&b, 0, "leave");
    assert!(
        left.contains("node 1 (san-b) has left cluster home"),
        "{left}"
    );
    cluster(&b, 4, "status");
    assert!(!b.path("data/cluster.json").exists());
    assert_eq!(status(&a)["nodes"][1]["standing"], "left");
    for log in [first.stop(), second.stop()] {
        all.push_str(&log);
    }
    for secret in hidden {
        assert!(!all.contains(&secret), "{secret} is where it must not be");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_cause_and_nothing_is_changed() {
    let Some(mut etcd) = Etcd::start("refused") else {
        return;
    };
    let (a, b) = (
        node("refused", "san-a", &etcd),
        node("refused", "san-b", &etcd),
    );
    let (first, second) = (a.start(), b.start());
    cluster(&a, 0, "init home");
    let token = cluster(&a, 0, "token");
    let refused = |code: i32, why: &str, input: &str| {
        let said = cluster_with(&b, code, &["join", "-"], input);
        assert!(said.contains(why), "{said}");
        assert_eq!(status(&a)["nodes"].as_array().unwrap().len(), 1);
    };
    refused(
        5,
        "a part of it is missing",
        &token.trim()[..token.len() - 3],
    );
    refused(5, "is no token", "hunter2");
    // LUNs with one identity on both: a copied pool.
    a.run(0, "lun create vm01 --size 1M");
    let naa = a.json("lun show vm01")["naa"].as_str().unwrap().to_owned();
    let second = {
        second.stop();
        let objects = newest_objects(&a);
        let own = std::fs::read_to_string(b.path("data").join(newest(&b))).unwrap();
        b.write(&format!("data/{}", newest(&b)), &with_luns(&own, &objects));
        b.start()
    };
    refused(5, &naa, &token);
    b.run(0, "lun delete vm01");
    b.run(0, "lun purge vm01 --yes");
    // etcd is away: said, and the token stays good.
    etcd.kill();
    refused_away(&b, &token);
    etcd.up();
    let joined = cluster_with(&b, 0, &["join", "-"], &token);
    assert!(joined.contains("node 1"), "{joined}");
    // Emptied: nothing of it is believed, and both go on with what they know.
    etcd.empty();
    let view = status(&a);
    assert_eq!(view["nodes"].as_array().unwrap().len(), 2, "{view}");
    assert!(!view["problems"].as_array().unwrap().is_empty(), "{view}");
    assert_eq!(view["nodes"][1]["answers"], true, "{view}");
    let said = cluster(&a, 1, "token");
    assert!(said.contains("error[CWY8007]"), "{said}");
    first.stop();
    second.stop();
}

fn refused_away(place: &Place, token: &str) {
    let said = cluster_with(place, 1, &["join", "-"], token);
    assert!(said.contains("error[CWY8007]"), "{said}");
}

/// The name of the newest file of objects.
fn newest(place: &Place) -> String {
    let names = std::fs::read_dir(place.path("data")).unwrap();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|it| it.starts_with("objects-") && it.ends_with(".json"));
    names.max().unwrap()
}

fn newest_objects(place: &Place) -> Value {
    let text = std::fs::read_to_string(place.path("data").join(newest(place))).unwrap();
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
}

/// A document with the LUNs of another one.
fn with_luns(text: &str, other: &Value) -> String {
    let (_, body) = text.split_once('\n').unwrap();
    let mut body: Value = serde_json::from_str(body).unwrap();
    body["objects"]["luns"] = other["objects"]["luns"].clone();
    let body = serde_json::to_vec(&body).unwrap();
    String::from_utf8(manifest::document::write("objects", &body)).unwrap()
}

#[test]
fn an_etcd_that_was_restored_from_an_old_backup_is_not_believed() {
    let Some(mut etcd) = Etcd::start("backup") else {
        return;
    };
    let (a, b) = (
        node("backup", "san-a", &etcd),
        node("backup", "san-b", &etcd),
    );
    let (first, second) = (a.start(), b.start());
    cluster(&a, 0, "init home");
    let token = cluster(&a, 0, "token");
    etcd.back_up();
    cluster_with(&b, 0, &["join", "-"], &token);
    assert_eq!(seen(&a), both(true, true));
    // It knows nothing of the second node now, nor that the token was used.
    etcd.restore();
    for place in [&a, &b] {
        assert_eq!(seen(place), both(true, true), "as it was known");
        let view = status(place);
        let problem = view["problems"][0].as_str().unwrap();
        assert!(problem.contains("restored from an old backup"), "{problem}");
        assert!(problem.contains("next step"), "{problem}");
    }
    for words in [
        "token",
        "leave",
        "leave --dry-run",
        "leave --node san-b --force",
    ] {
        let said = cluster(&a, 1, words);
        assert!(said.contains("error[CWY8007]"), "{words}: {said}");
    }
    // Not by a daemon that has just begun, either.
    first.stop();
    let first = a.start();
    let said = cluster(&a, 1, "token");
    assert!(said.contains("restored from an old backup"), "{said}");
    assert_eq!(seen(&a), both(true, true));
    // Who cannot wait for the newest backup leaves by force, and etcd is asked anew.
    let left = cluster(&b, 0, "leave --force");
    assert!(left.contains("leave --node san-b"), "{left}");
    cluster(&b, 4, "status");
    assert!(!b.path("data/cluster-etcd.json").exists());
    let taken = cluster(&b, 4, "init other");
    assert!(
        taken.contains("a cluster below this prefix already"),
        "{taken}"
    );
    first.stop();
    second.stop();
}

#[test]
fn without_etcd_in_node_toml_it_is_said_that_etcd_is_needed() {
    let place = Place::new("cluster-none");
    let daemon: Daemon = place.start();
    let said = cluster(&place, 2, "init home");
    assert!(said.contains("error[CWY8001]"), "{said}");
    assert!(said.contains("Install etcd"), "{said}");
    daemon.stop();
    let known = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let section = "[cluster]\netcd = [\"https://etcd-a:2379\"]\n";
    place.write("node.toml", &format!("{known}{section}"));
    let serve = place.run_with("", &["serve", "--config", "node.toml"], "");
    let said = text_of(&serve, 2, "serve");
    assert!(said.contains("cluster.etcd"), "{said}");
    place.write(
        "node.toml",
        &format!("{known}[cluster]\netcd = [\"http://127.0.0.1:1\"]\n"),
    );
    let daemon = place.start();
    let said = cluster(&place, 2, "init home");
    assert!(said.contains("cluster.listen"), "{said}");
    daemon.stop();
    let said = cluster(&place, 7, "status");
    assert!(said.contains("cluster.sock"), "{said}");
}
