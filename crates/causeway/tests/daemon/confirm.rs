//! What loses data asks first, on every way.

use crate::login::{login, served};
use crate::place::{Daemon, Place, text_of};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// A LUN of 16 MiB in service, and one that was deleted and holds its data.
fn place(name: &str) -> (Place, Daemon) {
    let place = Place::new(name);
    let daemon = place.start();
    place.run(0, "lun create vm01 --size 16M");
    place.run(0, "lun create old --size 16M");
    place.run(0, "lun delete old");
    for (name, luns) in [("smaller", "vm01"), ("back", "old")] {
        let text = format!("[[lun]]\nname = \"{luns}\"\nsize = \"8MiB\"\n");
        place.write(&format!("{name}.toml"), &text);
    }
    (place, daemon)
}

/// Everything that loses data: the command, the request (method, path, body), whose data, and
/// whether it is there afterwards.
fn losing() -> Vec<(
    &'static str,
    (&'static str, &'static str, Value),
    &'static str,
)> {
    let smaller = |name: &str| json!({ "lun": [{ "name": name, "size": "8MiB" }] });
    let size = json!({ "size": "8MiB" });
    vec![
        (
            "lun resize vm01 --size 8M",
            ("POST", "luns/vm01/resize", size.clone()),
            "vm01",
        ),
        ("lun set vm01 size=8M", ("PATCH", "luns/vm01", size), "vm01"),
        (
            "apply -f smaller.toml",
            ("POST", "apply", smaller("vm01")),
            "vm01",
        ),
        (
            "apply -f back.toml",
            ("POST", "apply", smaller("old")),
            "old",
        ),
        (
            "lun purge old",
            ("POST", "luns/old/purge", Value::Null),
            "old",
        ),
    ]
}

/// One request over the unix socket, which needs no token: status and document.
fn request(place: &Place, (method, path, body): &(&str, &str, Value), query: &str) -> (u16, Value) {
    let mut stream = UnixStream::connect(place.path("data/api.sock")).unwrap();
    let body = body.to_string();
    let head = format!(
        "{method} /api/v1/{path}{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap())
}

/// Runs a command in a terminal, where somebody types a line; its exit code and what it wrote.
fn typed(place: &Place, command: &str, line: &str) -> (Option<i32>, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    let end = || Stdio::from(slave.try_clone().unwrap());
    let mut child = Command::new(CAUSEWAY)
        .args(command.split(' '))
        .current_dir(place.path("."))
        .env("CAUSEWAY_API", place.api())
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .unwrap();
    let mut master = std::fs::File::from(master);
    // The terminal keeps it until somebody reads.
    master.write_all(format!("{line}\n").as_bytes()).unwrap();
    let code = child.wait().unwrap().code();
    drop(slave);
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    // With its other end gone, what was written is read, and then an error.
    while let Ok(n @ 1..) = master.read(&mut bytes) {
        seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
    (code, seen)
}

fn lun(place: &Place, name: &str) -> (Value, Value) {
    let lun = place.json(&format!("lun show {name}"));
    (lun["size"].clone(), lun["state"].clone())
}

#[test]
fn everything_that_loses_data_asks_by_every_interface_and_does_nothing_before() {
    let (place, daemon) = place("confirm");
    for (command, call, name) in losing() {
        let before = lun(&place, name);
        let output = place.run(5, command);
        assert!(output.contains("error[CWY3008]"), "{command}: {output}");
        assert!(
            output.contains("is lost") || output.contains("is destroyed"),
            "{command}: {output}"
        );
        let (status, problem) = request(&place, &call, "");
        assert_eq!(
            (status, &problem["code"]),
            (409, &json!("CWY3008")),
            "{call:?}"
        );
        assert_eq!(problem["confirm"], name, "{problem}");
        assert!(
            problem["losses"][0].as_str().unwrap().contains(name),
            "{problem}"
        );
        let (code, seen) = typed(&place, command, "no");
        assert_eq!(code, Some(5), "{command}: {seen}");
        assert!(
            seen.contains(&format!("Type \"{name}\" to do it")),
            "{command}: {seen}"
        );
        assert_eq!(lun(&place, name), before, "{command}");
        let plan = place.run(0, &format!("{command} --dry-run"));
        assert!(plan.contains("without --yes it would be refused"), "{plan}");
        assert_eq!(lun(&place, name), before, "{command}");
    }
    daemon.stop();
}

#[test]
fn what_was_confirmed_is_done_by_every_interface() {
    for (index, (command, call, name)) in losing().into_iter().enumerate() {
        for confirmation in ["--yes", "typed", "force"] {
            let (place, daemon) = place(&format!("confirmed-{index}{confirmation}"));
            match confirmation {
                "--yes" => drop(place.run(0, &format!("{command} --yes"))),
                "typed" => {
                    let (code, seen) = typed(&place, command, name);
                    assert_eq!(code, Some(0), "{command}: {seen}");
                }
                _ => {
                    let (status, answer) = request(&place, &call, "?force=true");
                    assert_eq!(status, 200, "{call:?}: {answer}");
                }
            }
            if command.starts_with("lun purge") {
                place.run(3, &format!("lun show {name}"));
            } else {
                assert_eq!(
                    lun(&place, name),
                    (json!(8 << 20), json!("online")),
                    "{command} {confirmation}"
                );
            }
            daemon.stop();
        }
    }
}

#[test]
fn a_lun_that_is_offline_keeps_its_size_by_every_interface() {
    let (place, daemon) = place("offline-size");
    let naa = place.json("lun show vm01")["naa"]
        .as_str()
        .unwrap()
        .to_owned();
    daemon.stop();
    let (file, aside) = (
        place.path(&format!("data/pool/{naa}.lun")),
        place.path("aside"),
    );
    std::fs::rename(&file, &aside).unwrap();
    let daemon = place.start();
    let larger = json!({ "size": "64MiB" });
    let set = json!({ "lun": [{ "name": "vm01", "size": "64MiB" }] });
    place.write(
        "larger.toml",
        "[[lun]]\nname = \"vm01\"\nsize = \"64MiB\"\n",
    );
    place.write(
        "smaller.toml",
        "[[lun]]\nname = \"vm01\"\nsize = \"8MiB\"\n",
    );
    for command in [
        "lun resize vm01 --size 64M",
        "lun resize vm01 --size 8M",
        "lun resize vm01 --size 8M --yes",
        "lun set vm01 size=64M",
        "apply -f larger.toml",
        "apply -f larger.toml --dry-run",
        "apply -f smaller.toml",
    ] {
        let output = place.run(1, command);
        for wanted in [
            "error[CWY4003]",
            "does not exist",
            "bring the LUN online first",
        ] {
            assert!(output.contains(wanted), "{command}: {output}");
        }
    }
    for call in [
        ("POST", "luns/vm01/resize", larger.clone()),
        ("PATCH", "luns/vm01", larger),
        ("POST", "apply", set),
    ] {
        let (status, problem) = request(&place, &call, "");
        let code = &problem["code"];
        assert_eq!((status, code), (503, &json!("CWY4003")), "{call:?}");
    }
    std::fs::rename(&aside, &file).unwrap();
    daemon.stop();
    let daemon = place.start();
    assert_eq!(lun(&place, "vm01").1, "online");
    place.run(0, "lun resize vm01 --size 64M");
    daemon.stop();
}

#[test]
fn a_share_is_listed_deleted_with_its_grants_and_restored_with_them() {
    let place = Place::new("unshare");
    let daemon = place.start();
    place.run(
        0,
        "share create vm01 --size 16M --for iqn.1998-01.com.vmware:esx01",
    );
    place.run(0, "lun create alone --size 1M");
    let shares = place.json("share ls");
    assert_eq!(shares.as_array().unwrap().len(), 1, "{shares}");
    assert_eq!(shares[0]["grants"][0]["name"], "esx01:vm01:vm01");
    let output = place.run(0, "share ls");
    assert!(
        output.contains("vm01") && output.contains("esx01") && !output.contains("alone"),
        "{output}"
    );
    let output = place.run(0, "share delete vm01");
    assert!(output.contains("remove grant esx01:vm01:vm01"), "{output}");
    assert!(
        output.contains("target vm01 has no LUN any more"),
        "{output}"
    );
    assert_eq!(
        (place.json("share ls"), place.json("grant ls")),
        (json!([]), json!([]))
    );
    assert_eq!(
        place.json("lun ls --removed")[0]["grants"],
        json!(["esx01:vm01:vm01"])
    );
    // What waits survives a restart.
    daemon.stop();
    let daemon = place.start();
    let output = place.run(0, "lun restore vm01");
    assert!(
        output.contains("create grant esx01:vm01:vm01: number 0"),
        "{output}"
    );
    assert_eq!(place.json("share ls"), shares);
    place.run(0, "lun delete vm01");
    place.run(0, "grant ls");
    place.run(0, "share create other --size 1M --for esx01 --target vm01");
    let output = place.run(0, "lun restore vm01");
    assert!(
        output.contains(
            "note: grant esx01:vm01:vm01 does not come back: number 0 is LUN other's now"
        ),
        "{output}"
    );
    let missing = place.run_with(&place.api(), &["share", "delete", "none"], "");
    text_of(&missing, 3, "share delete none");
    place.run(0, "share delete none --if-exists");
    daemon.stop();
}

#[test]
fn the_last_path_of_a_host_is_ended_for_whoever_means_it_and_says_whom_that_hits() {
    let place = Place::new("last-path");
    let daemon = place.start();
    let session = login(&served(&place));
    assert_eq!(session.status, 0);
    let shown = place.json("session ls");
    let (id, host) = (&shown[0]["id"], shown[0]["host"].as_str().unwrap());
    let drop = format!("session drop {id}");
    for (code, command) in [(5, drop.clone()), (0, format!("{drop} --dry-run"))] {
        let output = place.run(code, &command);
        assert!(output.contains("its last path to it"), "{output}");
        assert!(output.contains("/s go over it now"), "{output}");
    }
    let refused = place.run(5, &drop);
    assert!(refused.contains("error[CWY3004]"), "{refused}");
    let (code, seen) = typed(&place, &drop, "another");
    assert_eq!(code, Some(5), "{seen}");
    assert_eq!(place.json("session ls")[0]["id"], *id, "it is still there");
    let (code, seen) = typed(&place, &drop, host);
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("it is in use:"), "{seen}");
    assert!(seen.contains(&format!("ended session {id}")), "{seen}");
    place.run(3, &drop);
    daemon.stop();
}
