//! What is in a bundle, and what never is.

use super::*;
use flate2::read::GzDecoder;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};

/// The files of a bundle, as a reader of the format finds them.
fn unpacked(bundle: &[u8]) -> BTreeMap<String, String> {
    let mut all = Vec::new();
    GzDecoder::new(bundle).read_to_end(&mut all).unwrap();
    let (mut files, mut at) = (BTreeMap::new(), 0);
    let word = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.trim_end_matches('\0').to_owned()
    };
    while all[at] != 0 {
        let (name, size) = (word(&all[at..at + 100]), word(&all[at + 124..at + 136]));
        let size = usize::from_str_radix(&size, 8).unwrap();
        let from = at + 512;
        files.insert(name, word(&all[from..from + size]));
        at = from + size.next_multiple_of(512);
    }
    assert_eq!(all.len(), at + 1024);
    files
}

fn secrets() -> Secrets {
    let known = ["a chap \"secret\"", "short", "abc", "tok-0123456789\n"];
    Secrets::new(known.map(str::to_owned))
}

#[test]
fn files_are_there_as_they_are_named() {
    let mut bundle = Bundle::new("san <a>/../x", 1_800_000_000, secrets());
    bundle.document("status.json", "how it is", json!({ "health": "ok" }));
    bundle.text("log.txt", "the log", "one\ntwo");
    bundle.missing("gone.json", "it is away");
    let packed = bundle.finish();
    let files = unpacked(&packed);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let folder = "causeway-support-sanax";
    assert_eq!(
        names,
        ["README.txt", "log.txt", "status.json"].map(|it| format!("{folder}/{it}"))
    );
    let of = |name: &str| &files[&format!("{folder}/{name}")];
    assert_eq!(of("status.json"), "{\n  \"health\": \"ok\"\n}\n");
    assert_eq!(of("log.txt"), "one\ntwo\n");
    for said in ["how it is", "the log", "it is away"] {
        assert!(of("README.txt").contains(said), "{}", of("README.txt"));
    }
    // The system's own tar reads it.
    let tar = Command::new("tar")
        .args(["tzf", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut tar) = tar else {
        return;
    };
    std::io::Write::write_all(&mut tar.stdin.take().unwrap(), &packed).unwrap();
    let read = tar.wait_with_output().unwrap();
    assert!(read.status.success());
    assert_eq!(String::from_utf8(read.stdout).unwrap().lines().count(), 3);
}

#[test]
fn no_secret_is_left_however_it_is_written() {
    let hidden = [
        "hidden-1",
        "hidden-2",
        "hidden-3",
        "hidden-4",
        "hidden-5",
        "hidden-6",
        "hidden-7",
        "hidden-8",
        "hidden-9",
        "hidden 10",
        "hidden-11",
        "hidden-12",
        "hidden-13",
        "a chap",
        "tok-0123456789",
    ];
    let document = json!({
        "chap": { "user": "esx", "secret": "hidden-1", "mutual_password": "hidden-2" },
        "url": "https://hooks.example/hidden-3",
        "hosts": [{ "note": "it is a chap \"secret\", or tok-0123456789" }],
        "tok-0123456789": 1,
        "text": "POST https://u:hidden-4@hooks.example/hidden-5?x=hidden-6 failed",
        "failed": "Authorization: Bearer hidden-7",
        "kept": "vm01 at 10.0.0.1:3260, iscsi://10.0.0.1/iqn.2026-11.io.causeway:vm01/0",
    });
    let text = "login password=hidden-8 of \"x\"\n\
                set password: hidden-9, token=\"hidden 10\" done\n\
                {\"level\":\"INFO\",\"fields\":{\"secret\":\"hidden-1\",\"message\":\"kept-too\"}}\n\
                run --token hidden-11 of user:password=hidden-12 at size=1&token=hidden-13;kept=yes\n\
                header Bearer hidden-7 sent, a chap \"secret\" too\n\
                see http://127.0.0.1:9716/ and http://127.0.0.1/hidden-3";
    let mut bundle = Bundle::new("n", 0, secrets());
    bundle.document("d.json", "a document", document.clone());
    bundle.text("t.txt", "a text", text);
    bundle.missing("m.json", "no answer from https://hooks.example/hidden-3");
    let files = unpacked(&bundle.finish());
    for (name, text) in &files {
        for word in hidden {
            assert!(!text.contains(word), "{name}: {word} in {text}");
        }
    }
    let all: String = files.values().cloned().collect();
    for kept in [
        "iscsi://10.0.0.1/iqn.2026-11.io.causeway:vm01/0",
        "10.0.0.1:3260",
        "hooks.example",
        "\"user\": \"esx\"",
        "kept-too",
        "size=1&token=",
        ";kept=yes",
        "http://127.0.0.1:9716/ ",
    ] {
        assert!(all.contains(kept), "{kept} is not in {all}");
    }
    // Without what takes them out, they are there.
    let plain = format!("{document}{text}");
    assert!(hidden.iter().all(|word| plain.contains(word)));
}

#[test]
fn a_bundle_has_no_more_bytes_than_it_may() {
    let mut bundle = Bundle::new("n", 0, Secrets::default());
    let long: String = (0..500_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    assert!(long.len() > FILE_BYTES_MAX);
    for number in 0..10 {
        bundle.text(&format!("{number}.txt"), "long", &long);
        bundle.document(&format!("{number}.json"), "long", json!([long]));
    }
    let packed = bundle.finish();
    let files = unpacked(&packed);
    let bytes: usize = files.values().map(String::len).sum();
    assert!(bytes <= ALL_BYTES_MAX + 8_192, "{bytes}");
    assert!(files.values().all(|it| it.len() <= FILE_BYTES_MAX));
    let text = &files["causeway-support-n/0.txt"];
    assert!(text.ends_with("line 499999\n"), "the end is what is kept");
    let index = &files["causeway-support-n/README.txt"];
    assert!(index.contains("CUT") && index.contains("the bundle is full"));
}

#[test]
fn the_system_says_something_of_itself() {
    let facts = system_facts();
    assert!(facts.contains("==> /proc/version\nLinux"), "{facts}");
    assert!(!facts.contains("/proc/cmdline"));
}
