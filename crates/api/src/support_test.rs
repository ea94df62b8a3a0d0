//! A support bundle of a daemon that has secrets wherever one may be.

use crate::login_test::{NEW, first_password, make};
use crate::test::{Daemon, TOKEN};
use controller::test_support::lab;
use flate2::read::GzDecoder;
use hyper::Request;
use serde_json::{Value, json};
use std::io::Read;
use support::ASKED;

/// All files of a bundle as one text, in the archive as it is.
pub(crate) fn unpacked(daemon: &Daemon) -> (String, usize) {
    let request = Request::get("/api/v1/support/bundle").header("host", "localhost");
    let (head, bytes) = daemon.bytes(false, request.body(String::new()).unwrap());
    assert_eq!(head.status, 200);
    assert_eq!(head.headers["content-type"], "application/gzip");
    let name = head.headers["content-disposition"].to_str().unwrap();
    assert!(name.contains("filename=\"causeway-support-2"), "{name}");
    let mut all = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut all).unwrap();
    (String::from_utf8_lossy(&all).into_owned(), bytes.len())
}

/// Puts secrets where a daemon takes them.
fn full_of_secrets(daemon: &Daemon) -> Vec<String> {
    let (chap, mutual) = ("chap-s3cret-of-esx", "mutual-s3cret-of-san");
    let mut objects = json!(lab());
    objects["host"][0]["chap"] = json!({
        "user": "esx", "secret": { "value": chap },
        "mutual_user": "san", "mutual_secret": { "value": mutual },
    });
    assert_eq!(daemon.send("POST", "/api/v1/apply", &objects).0, 200);
    let (url, hook) = ("http://127.0.0.1:1/services/s3cret-path", "s3cret-of-hook");
    let receivers = [
        json!({ "name": "r", "webhook": { "url": url, "token": hook } }),
        json!({ "name": "m", "mail": {
            "server": "mail.example", "user": "u", "password": "s3cret-of-mail", "from": "a@b.example", "to": ["c@d.example"],
        } }),
    ];
    for receiver in receivers {
        let (status, answer) = daemon.send("POST", "/api/v1/alerts/receivers", &receiver);
        assert_eq!(status, 200, "{answer}");
    }
    // It does not arrive, which is said with the address.
    let null = json!(null);
    daemon.send("POST", "/api/v1/alerts/receivers/r/test", &null);
    let (_, token) = daemon.send(
        "POST",
        "/api/v1/tokens",
        &json!({ "name": "t", "role": "viewer" }),
    );
    make(daemon, "eve", "admin");
    let wrong = json!({ "user": "eve", "password": "s3cret-mistyped" });
    daemon.send("POST", "/api/v1/login", &wrong);
    // One that somebody wrote where a name belongs.
    let named = json!({ "name": "chap-s3cret-of-esx", "size": "1G" });
    daemon.send("POST", "/api/v1/luns", &named);
    let token = token["token"].as_str().unwrap();
    let mut known = vec![first_password(daemon)];
    let rest = [
        chap,
        mutual,
        "s3cret-path",
        hook,
        "s3cret-of-mail",
        token,
        TOKEN,
        NEW,
        "s3cret-mistyped",
    ];
    known.extend(rest.map(str::to_owned));
    known
}

#[test]
fn no_secret_of_the_daemon_is_in_a_bundle() {
    let daemon = Daemon::start("bundle");
    let secrets = full_of_secrets(&daemon);
    let (all, packed) = unpacked(&daemon);
    for secret in &secrets {
        assert!(!all.contains(secret.as_str()), "{secret} is in it");
    }
    // Nor in its name: hashes of passwords, cookies and keys.
    for word in ["$argon2", "PRIVATE KEY", "causeway-session="] {
        assert!(!all.contains(word), "{word} is in it");
    }
    for asked in ASKED {
        assert!(
            all.contains(&format!("/{}\0", asked.file)),
            "{}",
            asked.file
        );
    }
    assert!(!all.contains("NOT THERE"), "{all}");
    for said in [
        "\"user\": \"esx\"",
        "iqn.1998-01.com.example:h",
        "causeway_lun_",
        "INFO serving",
        "==> /proc/meminfo",
        "node_started",
        "host_single_path",
    ] {
        assert!(all.contains(said), "{said} is not in it");
    }
    assert!(packed < 1 << 20, "{packed} bytes");
}

/// Lists that say who may come in, and answers that say nothing of how the node is.
const NOT_ASKED: [&str; 13] = [
    "/",
    "/healthz",
    "/readyz",
    "/api/v1/",
    "/api/v1/explorer.js",
    "/api/v1/explorer.css",
    "/api/v1/openapi.json",
    "/api/v1/users",
    "/api/v1/tokens",
    "/api/v1/me",
    "/api/v1/me/sessions",
    "/api/v1/events",
    "/api/v1/support/bundle",
];

#[test]
fn what_can_be_asked_without_a_name_is_asked_or_left_out_for_a_reason() {
    let document: &Value = &crate::routes::DOCUMENT;
    let asked = |path: &str| {
        let mut all = ASKED.iter().map(|it| it.path.split('?').next());
        all.any(|it| it == Some(path))
    };
    // The same in another form.
    let others = [
        "/api/v1/audit/export",
        "/api/v1/history/latency",
        "/api/v1/bench",
        "/api/v1/bench/compare",
        "/api/v1/lab/beds",
    ];
    for (path, methods) in document["paths"].as_object().unwrap() {
        if methods["get"].is_null() || path.contains('{') {
            continue;
        }
        let is_left_out = NOT_ASKED.contains(&path.as_str()) || others.contains(&path.as_str());
        assert_ne!(asked(path), is_left_out, "{path}");
    }
    for it in ASKED {
        let path = it.path.split('?').next().unwrap();
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
}
