//! The page and what it needs, over real sockets.

use crate::accept::Times;
use crate::test::Daemon;
use controller::test_support::lab;
use hyper::{Request, StatusCode};
use serde_json::json;

#[test]
fn browsers_get_the_page_and_programs_get_problems() {
    let daemon = Daemon::start_with(
        "page",
        |config| config.api_settings.token_for_reads = true,
        Times::default(),
    );
    // Built or not, what answers is the page: without a token, and never with figures.
    for path in ["/", "/luns/a%2Fb", "/nothing-like-it"] {
        let (status, body) = daemon.get(path);
        let text = body.as_str().unwrap_or_default().to_owned();
        let page = status == StatusCode::OK && text.starts_with("<!doctype html>");
        let not_built = status == StatusCode::SERVICE_UNAVAILABLE && text.contains("make build");
        assert!(page || not_built, "{path}: {status} {text}");
    }
    for path in [
        "/api/v1/luns",
        "/api/v1/nothing",
        "/api/nothing",
        "/metrics",
    ] {
        let (status, problem) = daemon.get(path);
        let found = (status, &problem["code"]);
        assert_eq!(
            found,
            (StatusCode::UNAUTHORIZED, &json!("CWY5002")),
            "{path}"
        );
    }
    let post = Request::post("/luns").header("host", "localhost");
    let (status, problem) = daemon.ask(true, post.body(String::new()).unwrap());
    let found = (status, &problem["code"]);
    assert_eq!(found, (StatusCode::UNAUTHORIZED, &json!("CWY5002")));
    // The page takes no changes, whoever asks.
    let (status, problem) = daemon.send("POST", "/luns", &json!(null));
    let found = (status, &problem["code"]);
    assert_eq!(found, (StatusCode::NOT_FOUND, &json!("CWY5004")));
}

#[test]
fn each_host_of_a_lun_is_given_what_it_pastes() {
    let daemon = Daemon::start("connect");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let (status, views) = daemon.get("/api/v1/luns/l/connect");
    assert_eq!(status, StatusCode::OK, "{views}");
    assert_eq!(
        (&views[0]["host"], &views[0]["target"]),
        (&json!("h"), &json!("t"))
    );
    assert_eq!(views.as_array().map(Vec::len), Some(1));
    let (status, _) = daemon.get("/api/v1/luns/nobody/connect");
    assert_eq!(status, StatusCode::NOT_FOUND);
}
