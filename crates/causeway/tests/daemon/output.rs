//! What commands print, in each form; and the nouns `node`, `portal` and `pool`.

use crate::login::{login, served};
use crate::place::{CAUSEWAY, Place};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

#[test]
fn what_cannot_be_printed_is_refused_without_asking_anybody() {
    // No daemon runs: whoever asks it ends with 7.
    let place = Place::new("output_refused");
    let said = place.run(2, "lun ls --columns nme");
    assert!(said.contains("did you mean \"name\"?"), "{said}");
    assert!(
        said.contains("there are name,state,size,allocated,"),
        "{said}"
    );
    place.run(2, "lun show a --columns name");
    place.run(2, "lun ls -o yaml --columns name");
    place.run(2, "status -o name");
    place.run(2, "lun delete a --watch");
    place.run(2, "lun ls --watch=0");
    place.run(7, "lun ls --columns name --watch");
}

#[test]
fn a_list_has_the_form_the_columns_and_the_head_that_are_asked_for() {
    let place = Place::new("output_forms");
    let daemon = place.start();
    served(&place);
    place.run(0, "lun create spare --size 1M");
    let lines = |command: &str| -> Vec<String> {
        let text = place.run(0, command);
        let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(plain).collect()
    };
    assert_eq!(lines("lun ls -o name"), ["spare", "vm01"]);
    assert_eq!(
        lines("lun ls --columns size,NAME"),
        ["SIZE NAME", "1 MiB spare", "16 MiB vm01"]
    );
    assert_eq!(
        lines("lun ls --columns name --no-headers"),
        ["spare", "vm01"]
    );
    assert_eq!(lines("grant ls -o name"), ["esx01:t1:vm01"]);
    assert_eq!(
        lines("grant ls --no-headers"),
        ["esx01 t1 vm01 0 read-write"]
    );
    let naa = place.json("lun show vm01")["naa"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(place.run(0, "lun ls -o wide").contains(&naa));
    assert!(!place.run(0, "lun ls").contains(&naa));
    // As YAML it is the document that JSON has.
    let yaml = place.run(0, "lun show spare -o yaml");
    assert!(
        yaml.contains("\nname: spare\n") && yaml.contains("\nsize: 1048576\n"),
        "{yaml}"
    );
    assert_eq!(lines("lun create third --size 1M -o name"), ["third"]);
    assert_eq!(lines("lun delete third -o name"), ["third"]);
    let error = place.run(3, "lun show none -o yaml");
    assert!(error.contains("\ncode: CWY"), "{error}");
    daemon.stop();
}

/// A command that goes on, and the lines that it prints.
fn watch(place: &Place, arguments: &str) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = Command::new(CAUSEWAY)
        .args(arguments.split(' '))
        .env("CAUSEWAY_API", place.api())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines.map(Result::unwrap))
}

#[test]
fn a_list_that_is_watched_follows_what_happens_until_it_is_interrupted() {
    let place = Place::new("output_watch");
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    let (mut child, mut lines) = watch(&place, "lun ls --columns name --watch=0.1");
    assert_eq!(lines.next().as_deref(), Some("NAME"));
    assert_eq!(lines.next().as_deref(), Some("a"));
    place.run(0, "lun create b --size 1M");
    assert!(
        lines.any(|line| line == "b"),
        "it is shown in a later round"
    );
    // A daemon that is away is reported, and does not end it.
    daemon.stop();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let error = errors.next().unwrap().unwrap();
    assert!(error.contains("error[CWY"), "{error}");
    let daemon = place.start();
    assert!(lines.any(|line| line == "b"), "it goes on");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // Nobody reads any more.
    let (mut child, lines) = watch(&place, "lun ls -o name --watch=0.1");
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    daemon.stop();
}

fn portals(place: &Place) -> Vec<String> {
    let all: Value = place.json("portal ls");
    let all = all.as_array().unwrap().iter();
    all.map(|it| it["address"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn portals_come_and_go_live_and_one_that_is_used_is_asked_about() {
    let place = Place::new("output_portal");
    let text = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write("node.toml", &text.replace("port = 0", "port = 39261"));
    let daemon = place.start();
    let portal = served(&place);
    assert_eq!(portals(&place), [portal.as_str()]);
    let session = login(&portal);
    assert_eq!(session.status, 0);
    let said = place.run(0, "portal create 127.0.0.2:39262 --dry-run");
    assert!(
        said.contains("127.0.0.2") && said.contains("[at once]"),
        "{said}"
    );
    assert_eq!(portals(&place).len(), 1, "only asked");
    let said = place.run(5, "portal delete 127.0.0.1:39261");
    assert!(
        said.contains("is the last portal of portal group default"),
        "{said}"
    );
    place.run(0, "portal add --ip 127.0.0.2 --port 39262");
    place.run(4, "portal add 127.0.0.2:39262");
    let said = place.run(0, "portal add 127.0.0.2:39262 --if-not-exists");
    assert!(said.contains("already"), "{said}");
    assert_eq!(portals(&place), [portal.as_str(), "127.0.0.2:39262"]);
    let shown = place.run(0, "portal show 127.0.0.1:39261");
    assert!(shown.contains("esx01"), "{shown}");
    let said = place.run(5, "portal delete 127.0.0.1:39261");
    assert!(
        said.contains("CWY3004") && said.contains("host esx01: session"),
        "{said}"
    );
    let said = place.run(0, "portal rm 127.0.0.1:39261 --yes");
    assert!(said.contains("hits host esx01"), "{said}");
    assert_eq!(portals(&place), ["127.0.0.2:39262"]);
    assert_eq!(
        place.json("session ls").as_array().unwrap().len(),
        1,
        "it stays"
    );
    place.run(3, "portal delete 127.0.0.1:39261");
    place.run(0, "portal delete 127.0.0.1:39261 --if-exists");
    place.run(3, "portal create 127.0.0.3 --portal-group none");
    place.run(2, "portal create 127.0.0");
    place.run(2, "portal create");
    drop(session);
    daemon.stop();
}

#[test]
fn the_node_and_its_pools_are_nouns_like_all_others() {
    let place = Place::new("output_node");
    let daemon = place.start();
    assert_eq!(place.run(0, "node ls -o name"), "n\n");
    assert_eq!(place.json("node show n")["node"], "n");
    place.run(3, "node show other");
    let said = place.run(0, "node set n scrub.every_days=7 session.login_seconds=9");
    assert!(
        said.contains("scrub.every_days: default before, 7 now [in effect now]"),
        "{said}"
    );
    assert!(
        said.contains("9 now [in effect now, for new connections]"),
        "{said}"
    );
    place.run(2, "node set colour=1");
    place.run(2, "node set n");
    let fast = place.path("fast");
    let create = format!("pool create fast --path {}", fast.display());
    let said = place.run(0, &create);
    assert!(
        said.contains("pool[1].name: not there before, \"fast\" now [after a restart]"),
        "{said}"
    );
    place.run(4, &create);
    let said = place.run(0, &format!("{create} --if-not-exists"));
    assert!(said.contains("it is so already"), "{said}");
    let said = place.run(0, "pool delete fast");
    assert!(said.contains("\"fast\" before, not there now"), "{said}");
    place.run(0, "pool delete fast --if-exists");
    place.run(3, "pool delete fast");
    place.write("pw.secret", "long-enough-word\n");
    let user = "user create vera --role viewer --password-file pw.secret";
    place.run(0, user);
    place.run(4, user);
    let said = place.run(0, &format!("{user} --if-not-exists"));
    assert!(said.contains("vera"), "{said}");
    place.run(0, "user delete vera");
    place.run(0, "user delete vera --if-exists");
    place.run(0, "token create script --role viewer");
    let shown = place.run(0, "token create script --role admin --if-not-exists");
    assert!(shown.contains("viewer"), "it stays what it is: {shown}");
    assert_eq!(place.json("token show script")["role"], "viewer");
    place.run(3, "token show none");
    let share = "share create s --size 1M --for iqn.2026-11.org.example:h";
    place.run(0, share);
    place.run(4, share);
    let said = place.run(0, &format!("{share} --if-not-exists"));
    assert!(said.contains("nothing to change"), "{said}");
    place.run(0, "session drop 99 --if-exists");
    place.run(0, "session delete 99 --if-exists");
    place.run(0, "disk forget none --if-exists");
    for unsilence in ["alert unsilence 99", "alert unsilence --silence 99"] {
        place.run(3, unsilence);
        let said = place.run(0, &format!("{unsilence} --if-exists"));
        assert!(
            said.contains("there is no") && said.contains("99"),
            "{said}"
        );
    }
    place.run(0, "alert silence --all");
    place.run(0, "alert unsilence --silence 1 --if-exists");
    assert_eq!(place.json("alert silences"), json!([]));
    assert_eq!(place.json("journal ls"), json!([]));
    place.run(3, "journal show default");
    daemon.stop();
}
