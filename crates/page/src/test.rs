//! The page's answers, of made-up files and of what was built in.

use crate::answer::answer_of;
use crate::file::File;
use crate::{POLICY, Reply, Request};

static SITE: &[File] = &[
    File {
        path: "assets/main-a1b2.js",
        tag: "\"1\"",
        plain: b"plain script",
        br: Some(b"br"),
        gzip: Some(b"gz"),
    },
    File {
        path: "index.html",
        tag: "\"2\"",
        plain: b"<!doctype html>",
        br: None,
        gzip: Some(b"gz page"),
    },
];

fn get(path: &str, accept_encoding: Option<&str>, if_none_match: Option<&str>) -> Reply {
    let request = Request {
        path,
        accept_encoding,
        if_none_match,
    };
    answer_of(SITE, request)
}

fn header(reply: &Reply, name: &str) -> Option<&'static str> {
    let found = reply.headers.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

#[test]
fn every_address_of_the_page_is_its_index() {
    for path in ["/", "/index.html", "/luns", "/luns/a%2Fb", "/hosts/x.y"] {
        let reply = get(path, None, None);
        assert_eq!((reply.status, reply.body), (200, &b"<!doctype html>"[..]));
        assert_eq!(header(&reply, "cache-control"), Some("no-cache"), "{path}");
        assert_eq!(header(&reply, "content-encoding"), None);
    }
}

#[test]
fn a_hashed_file_is_kept_for_ever_and_one_of_another_version_is_not_found() {
    let reply = get("/assets/main-a1b2.js", None, None);
    assert_eq!(
        header(&reply, "cache-control"),
        Some("public, max-age=31536000, immutable")
    );
    assert_eq!(
        header(&reply, "content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert_eq!(get("/assets/main-0000.js", None, None).status, 404);
}

#[test]
fn the_smallest_form_that_the_browser_takes_is_sent() {
    let cases = [
        (Some("gzip, deflate, br"), Some("br"), &b"br"[..]),
        (Some("gzip, br;q=0"), Some("gzip"), b"gz"),
        (Some("GZIP;q=0.5"), Some("gzip"), b"gz"),
        (Some("identity"), None, b"plain script"),
        (Some("gz, brx"), None, b"plain script"),
        (None, None, b"plain script"),
    ];
    for (accepted, encoding, body) in cases {
        let reply = get("/assets/main-a1b2.js", accepted, None);
        assert_eq!(
            (header(&reply, "content-encoding"), reply.body),
            (encoding, body),
            "{accepted:?}"
        );
    }
}

#[test]
fn what_the_browser_has_is_not_sent_again() {
    for given in ["\"2\"", "W/\"2\"", "\"1\", \"2\""] {
        let reply = get("/", Some("gzip"), Some(given));
        assert_eq!((reply.status, reply.body), (304, &b""[..]), "{given}");
        assert_eq!(header(&reply, "content-encoding"), None);
    }
    assert_eq!(get("/", None, Some("\"1\"")).status, 200);
}

#[test]
fn no_path_leads_out_of_the_page() {
    for path in [
        "/../Cargo.toml",
        "/assets/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/assets/..%2fmain-a1b2.js",
        "",
    ] {
        let reply = get(path, None, None);
        let is_index = reply.status == 200 && reply.body == b"<!doctype html>";
        assert!(is_index || reply.status == 404, "{path}: {reply:?}");
    }
}

#[test]
fn every_answer_forbids_what_is_not_of_this_daemon() {
    let not_built = answer_of(
        &[],
        Request {
            path: "/",
            accept_encoding: None,
            if_none_match: None,
        },
    );
    assert_eq!(not_built.status, 503);
    assert!(not_built.body.windows(10).any(|text| text == b"make build"));
    for reply in [
        not_built,
        get("/", None, None),
        get("/assets/x", None, None),
    ] {
        assert_eq!(header(&reply, "content-security-policy"), Some(POLICY));
        assert_eq!(header(&reply, "x-content-type-options"), Some("nosniff"));
    }
    assert!(!POLICY.contains("unsafe") && !POLICY.contains('*'));
}

/// Only where the page was built: what the browser loads first is small.
#[test]
fn the_page_that_was_built_in_names_only_its_own_files() {
    let Some(index) = crate::FILES.iter().find(|file| file.path == "index.html") else {
        println!("skipped: this program was built without the page (scripts/web builds it)");
        return;
    };
    let text = std::str::from_utf8(index.plain).unwrap();
    assert!(
        !text.contains("http:") && !text.contains("https:"),
        "{text}"
    );
    let named = text.split('"').filter(|part| part.starts_with("/assets/"));
    for path in named {
        let found = crate::FILES.iter().any(|file| file.path == &path[1..]);
        assert!(found, "{path} is not there");
    }
}
