//! `causeway api`: any path, for scripts.

use crate::place::{CAUSEWAY, Place, text_of};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn any_path_of_the_api_is_asked_from_a_shell() {
    let place = Place::new("api");
    let daemon = place.start();
    // Not what it is: a disk of this machine with little room makes it another one.
    let status = place.json("status");
    assert!(status["health"].is_string(), "{status}");
    assert_eq!(place.json("api get status")["health"], status["health"]);
    assert_eq!(place.run(0, "api GET /healthz"), "ok\n");
    assert_eq!(place.json("api GET openapi.json")["openapi"], "3.1.1");
    place.write("lun.json", "{ \"name\": \"a\", \"size\": \"1G\" }");
    let planned = place.json("api POST luns lun.json --dry-run");
    assert_eq!(planned["changed"], false, "{planned}");
    assert_eq!(place.json("api POST luns lun.json")["changed"], true);
    let words = ["api", "PATCH", "luns/a", "-"];
    let output = place.run_with(&place.api(), &words, "{ \"shares\": 7 }");
    let changed: Value = serde_json::from_str(&text_of(&output, 0, "patch")).unwrap();
    assert_eq!(changed["changed"], true, "{changed}");
    assert_eq!(place.json("api GET /api/v1/luns/a")["shares"], json!(7));
    // Exit codes and errors are those of any command.
    let refused = place.run(3, "api GET luns/none");
    assert!(refused.contains("error[CWY3001]"), "{refused}");
    let refused = place.run(4, "api POST luns lun.json");
    assert!(refused.contains("error[CWY3002]"), "{refused}");
    place.run(2, "api TRACE status");
    place.run(2, "api POST luns none.json");
    daemon.stop();
    place.run(7, "api GET status");
}

#[test]
fn events_are_printed_as_they_come_and_headers_go_in_each_direction() {
    let place = Place::new("api-stream");
    let daemon = place.start();
    let command = |words: &[&str]| {
        let mut command = Command::new(CAUSEWAY);
        command.args(words).env("CAUSEWAY_API", place.api());
        command
    };
    let said = |words: &[&str]| text_of(&command(words).output().unwrap(), 0, "api");
    let shown = said(&["api", "GET", "openapi.json", "-i"]);
    assert!(shown.starts_with("HTTP/1.1 200 OK\n"), "{shown}");
    let tag = shown.lines().find_map(|line| line.strip_prefix("etag: "));
    let known = format!("If-None-Match: {}", tag.unwrap());
    let shown = said(&["api", "GET", "openapi.json", "-i", "-H", &known]);
    assert!(shown.starts_with("HTTP/1.1 304 "), "{shown}");
    let mut child = command(&["api", "GET", "events"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (came, lines) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::Builder::new().spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let is_it = line.contains("streamed");
            came.send(line).unwrap();
            if is_it {
                // Whoever reads goes away: the command ends with the next line.
                return;
            }
        }
    });
    place.write("lun.json", "{ \"name\": \"streamed\", \"size\": \"1M\" }");
    // The first line is there before anything is asked for.
    let first = lines.recv_timeout(Duration::from_secs(20));
    place.run(0, "api POST luns lun.json");
    reader.unwrap().join().unwrap();
    let rest: Vec<String> = lines.iter().collect();
    assert!(first.is_ok(), "nothing came at once: {rest:?}");
    assert!(
        rest.iter().any(|line| line.contains("streamed")),
        "{rest:?}"
    );
    place.run(0, "lun rm streamed --yes");
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}");
    daemon.stop();
}
