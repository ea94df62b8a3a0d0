//! The API over real sockets, with an engine that only remembers.

use super::*;
use crate::accept::Times;
use controller::test_support::{FakeEngine, Hold, config, disk_report, lab, session};
use controller::{Controller, Handle};
use http_body_util::BodyExt;
use hyper::http::response::Parts;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use manifest::config::{ApiAddress, Config};
use manifest::secret::Secret;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// What the daemon's file says, near enough.
fn node_toml(dir: &std::path::Path) -> String {
    format!(
        "[node]\nname = \"n\" # of a test\nstate_dir = \"{}/state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
         listen = [ {{ ip = \"127.0.0.1\" }} ]\n[[pool]]\nname = \"default\"\npath = \"pool\"\n\
         [api]\nlisten = [\"unix:api.sock\"]\n",
        dir.display()
    )
}

/// A daemon's control side in this process, over real files, and its addresses.
pub(crate) struct Daemon {
    pub(crate) addresses: Vec<String>,
    pub(crate) dir: PathBuf,
    pub(crate) hold: Arc<Hold>,
    server: Server,
    _sampler: Sampler,
    pub(crate) records: Records,
    runtime: Option<env::real::Runtime>,
    /// The last of all: while the others end they still write there.
    _removed: Removed,
}

/// A directory that goes when this does.
struct Removed(PathBuf);

impl Daemon {
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, |_| {}, Times::default())
    }

    pub(crate) fn start_with(name: &str, adjust: fn(&mut Config), times: Times) -> Self {
        let dir = std::env::temp_dir().join(format!("causeway-api-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let cores = env::real::RuntimeConfig {
            cores: env::real::Cores::List(vec![0]),
            driver: env::real::Driver::Poll,
            ..env::real::RuntimeConfig::default()
        };
        let runtime = env::real::Runtime::start(&cores).unwrap();
        let mut wanted = config();
        wanted.state_dir = dir.join("state");
        wanted.api = vec![
            ApiAddress::Unix(dir.join("api.sock")),
            ApiAddress::Tcp("127.0.0.1:0".parse().unwrap()),
        ];
        wanted.file = dir.join("node.toml");
        std::fs::write(&wanted.file, node_toml(&dir)).unwrap();
        adjust(&mut wanted);
        let config = wanted.clone();
        let (handle, hold) = runtime.run(env::CoreId(0), move |core| {
            Box::pin(async move {
                let engine = Rc::new(FakeEngine::default());
                let shared = Rc::<FakeEngine>::clone(&engine);
                let controller = Controller::start(Rc::clone(&core), config, shared)
                    .await
                    .unwrap();
                engine.sessions.borrow_mut().push(session(4));
                controller.set_disks(disk_report());
                controller.set_forget_disk(Box::new(|_| Box::pin(std::future::ready(true))));
                let (handle, serve) = Handle::new(controller);
                core.spawn(serve);
                (handle, Arc::clone(&engine.hold))
            })
        });
        let bound = bind(&wanted.api).unwrap();
        let addresses = bound.addresses.clone();
        let records = Records::start(&wanted.state_dir, &wanted.node_name, wanted.history).unwrap();
        let sampler = Sampler::start(records.clone(), handle.clone()).unwrap();
        let token = Secret::new(TOKEN.into());
        let log: LogTail = Arc::new(|| format!("INFO a token: Bearer {TOKEN}\nINFO serving\n"));
        let commit = "0123456789ab-dirty";
        let with = (times, Program { commit, log });
        let server =
            Server::start_with(bound, handle, token, &wanted, records.clone(), with).unwrap();
        Self {
            addresses,
            _removed: Removed(dir.clone()),
            dir,
            hold,
            server,
            _sampler: sampler,
            records,
            runtime: Some(runtime),
        }
    }

    /// The cores end, and the API goes on for a moment.
    pub(crate) fn end_node(&mut self) {
        drop(self.runtime.take());
    }

    pub(crate) fn reload(&self) {
        self.server.reload();
    }

    pub(crate) fn ask(&self, tcp: bool, request: Request<String>) -> (StatusCode, Value) {
        let (head, text) = self.exchange(tcp, request);
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        (head.status, body)
    }

    /// The ETag of a document.
    pub(crate) fn tag_of(&self, path: &str) -> String {
        let request = Request::get(path).header("host", "localhost");
        let (head, _) = self.exchange(false, request.body(String::new()).unwrap());
        head.headers["etag"].to_str().unwrap().to_owned()
    }

    /// A change that is meant for one version.
    pub(crate) fn change_if(
        &self,
        method: &str,
        path: &str,
        tag: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "localhost").header("if-match", tag);
        self.ask(false, request.body(body.to_string()).unwrap())
    }

    /// The answer with its headers.
    pub(crate) fn exchange(&self, tcp: bool, request: Request<String>) -> (Parts, String) {
        let (head, body) = self.bytes(tcp, request);
        (head, String::from_utf8_lossy(&body).into_owned())
    }

    /// The same, whatever its body is.
    pub(crate) fn bytes(&self, tcp: bool, request: Request<String>) -> (Parts, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let address = self.addresses[usize::from(tcp)].clone();
        runtime.block_on(async move {
            let response = if let Some(path) = address.strip_prefix("unix:") {
                exchange(
                    tokio::net::UnixStream::connect(path).await.unwrap(),
                    request,
                )
                .await
            } else {
                let at = address.strip_prefix("http://").unwrap();
                exchange(tokio::net::TcpStream::connect(at).await.unwrap(), request).await
            };
            let (head, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            (head, body.to_vec())
        })
    }

    pub(crate) fn get(&self, path: &str) -> (StatusCode, Value) {
        self.ask(
            true,
            Request::get(path)
                .header("host", "localhost")
                .body(String::new())
                .unwrap(),
        )
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost");
        self.ask(false, request.body(body.to_string()).unwrap())
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn exchange<S>(stream: S, request: Request<String>) -> hyper::Response<hyper::body::Incoming>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await.unwrap()
}

#[test]
fn objects_are_made_shown_changed_and_removed() {
    let daemon = Daemon::start("objects");
    let (status, outcome) = daemon.send("POST", "/api/v1/apply", &json!(lab()));
    assert_eq!(
        (status, &outcome["changed"]),
        (StatusCode::OK, &json!(true)),
        "{outcome}"
    );
    let (_, luns) = daemon.get("/api/v1/luns");
    assert_eq!(luns[0]["name"], "l");
    assert_eq!(luns[0]["size"], 1_u64 << 30);
    assert_eq!(luns[0]["state"], "online");
    let (status, _) = daemon.send(
        "POST",
        "/api/v1/luns",
        &json!({ "name": "m", "size": "2G" }),
    );
    assert_eq!(status, StatusCode::OK);
    let (status, problem) = daemon.send(
        "POST",
        "/api/v1/luns",
        &json!({ "name": "m", "size": "2G" }),
    );
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::CONFLICT, &json!("CWY3002"))
    );
    let (status, _) = daemon.send("POST", "/api/v1/luns/m/resize", &json!({ "size": "3G" }));
    assert_eq!(status, StatusCode::OK);
    let (status, _) = daemon.send("POST", "/api/v1/luns/m/rename", &json!({ "to": "n" }));
    assert_eq!(status, StatusCode::OK);
    let (_, lun) = daemon.get("/api/v1/luns/n");
    assert_eq!(lun["size"], 3_u64 << 30);
    let (status, _) = daemon.send("DELETE", "/api/v1/luns/n", &json!(null));
    assert_eq!(status, StatusCode::OK);
    let (_, removed) = daemon.get("/api/v1/luns?removed=true");
    assert_eq!(
        (&removed[0]["name"], &removed[0]["state"]),
        (&json!("n"), &json!("removed"))
    );
    let (status, _) = daemon.send("POST", "/api/v1/luns/n/purge?force=true", &json!(null));
    assert_eq!(status, StatusCode::OK);
    let (status, problem) = daemon.get("/api/v1/luns/n");
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::NOT_FOUND, &json!("CWY3001"))
    );
    let (_, exported) = daemon.get("/api/v1/export");
    let (_, outcome) = daemon.send("POST", "/api/v1/apply?prune=true", &exported);
    assert_eq!(outcome["changed"], false, "{outcome}");
}

#[test]
fn a_part_that_is_changed_leaves_what_others_change_in_that_moment() {
    let daemon = Daemon::start("meanwhile");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    daemon.send("DELETE", "/api/v1/sessions/4?force=true", &json!(null));
    let force = |what: &str| format!("/api/v1/{what}?force=true");
    let changes = [
        (
            "luns/l",
            json!({ "size": "3G" }),
            json!({ "shares": 200 }),
            "size",
            json!(3_u64 << 30),
        ),
        (
            "luns/l",
            json!({ "limit": { "iops": 5 } }),
            json!({ "limit": { "bytes_per_second": 4096 } }),
            "limit",
            json!({ "iops": 5, "bytes_per_second": 4096 }),
        ),
        (
            "targets/t",
            json!({ "maintenance": true }),
            json!({ "maintenance_grace_seconds": 7 }),
            "maintenance",
            json!(true),
        ),
        (
            "hosts/h",
            json!({ "iqn": ["iqn.1998-01.com.example:i"] }),
            json!({ "bytes_in_flight_max": 65536 }),
            "iqn",
            json!(["iqn.1998-01.com.example:i"]),
        ),
        (
            "grants/h:t:l",
            json!({ "read_only": true }),
            json!({ "lun_id": 9 }),
            "read_only",
            json!(true),
        ),
    ];
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing shows that the second one waits; were it late, the test would prove less and pass"
    )]
    let arrive = || std::thread::sleep(std::time::Duration::from_millis(200));
    for (object, first, second, key, stays) in changes {
        daemon.hold.on.store(true, SeqCst);
        let send = |body: Value| daemon.send("PATCH", &force(object), &body);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| send(first));
            while !daemon.hold.holds.load(SeqCst) {
                std::thread::yield_now();
            }
            // It is asked for while the other one is on its way, and carried out after it.
            let second = scope.spawn(|| send(second));
            arrive();
            daemon.hold.on.store(false, SeqCst);
            for asked in [first, second] {
                let (status, outcome) = asked.join().unwrap();
                assert_eq!(status, StatusCode::OK, "{object}: {outcome}");
                assert_eq!(outcome["changed"], true, "{object}: {outcome}");
            }
        });
        let (_, shown) = daemon.get(&format!("/api/v1/{object}"));
        assert_eq!(shown[key], stays, "{object}: {shown}");
    }
}

#[test]
fn what_disturbs_a_session_is_a_conflict_that_names_it() {
    let daemon = Daemon::start("refused");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let (status, problem) = daemon.send("DELETE", "/api/v1/luns/l", &json!(null));
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::CONFLICT, &json!("CWY3004"))
    );
    // What went over it in the last second is said behind that, once a second was counted.
    let hit = problem["hits"][0].as_str().expect("a session is hit");
    let session = "session 4: host h (iqn.1998-01.com.example:h) on target t";
    assert_eq!(hit.trim_end_matches(", idle now"), session);
    let (status, outcome) = daemon.send("DELETE", "/api/v1/luns/l?dry_run=true", &json!(null));
    assert_eq!(
        (status, &outcome["changed"]),
        (StatusCode::OK, &json!(false))
    );
    let (status, _) = daemon.send("DELETE", "/api/v1/sessions/4?force=true", &json!(null));
    assert_eq!(status, StatusCode::OK);
    let (status, _) = daemon.send("DELETE", "/api/v1/luns/l", &json!(null));
    assert_eq!(status, StatusCode::OK);
    let (status, _) = daemon.send("DELETE", "/api/v1/sessions/4?force=true", &json!(null));
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[test]
fn a_hosts_last_path_is_taken_only_where_that_is_meant() {
    let daemon = Daemon::start("last_path");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let path = "/api/v1/sessions/4";
    let (status, problem) = daemon.send("DELETE", path, &json!(null));
    assert_eq!(
        (status, &problem["code"], &problem["confirm"]),
        (StatusCode::CONFLICT, &json!("CWY3004"), &json!("h")),
        "{problem}"
    );
    assert_eq!(problem["hits"][1], "LUN l: its last path to it");
    let (_, plan) = daemon.send("DELETE", &format!("{path}?dry_run=true"), &json!(null));
    let why = plan["refusal"].as_str().unwrap();
    assert!(why.contains("the last path of host h"), "{why}");
    assert_eq!(daemon.get(path).0, StatusCode::OK, "it is still there");
    let (status, done) = daemon.send("DELETE", &format!("{path}?force=true"), &json!(null));
    assert_eq!(
        (status, &done["changed"]),
        (StatusCode::OK, &json!(true)),
        "{done}"
    );
    assert_eq!(daemon.get(path).0, StatusCode::NOT_FOUND);
}

#[test]
fn over_tcp_reading_is_open_and_changing_takes_the_token() {
    let daemon = Daemon::start("token");
    assert_eq!(daemon.get("/api/v1/status").0, StatusCode::OK);
    let post = |token: Option<&str>| {
        let mut request = Request::post("/api/v1/apply").header("host", "localhost");
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        daemon.ask(true, request.body(json!(lab()).to_string()).unwrap())
    };
    for wrong in [
        None,
        Some("Bearer 123"),
        Some("Basic 123"),
        Some("Bearer "),
        Some(TOKEN),
    ] {
        let (status, problem) = post(wrong);
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNAUTHORIZED, &json!("CWY5002"))
        );
        assert!(
            problem["hint"].as_str().unwrap().contains("api.token"),
            "{problem}"
        );
    }
    assert_eq!(post(Some(&format!("Bearer {TOKEN}"))).0, StatusCode::OK);
}

#[test]
fn where_reading_takes_the_token_only_whether_it_lives_is_reported_without() {
    let daemon = Daemon::start_with(
        "reads",
        |config| config.api_settings.token_for_reads = true,
        Times::default(),
    );
    for path in ["/api/v1/status", "/api/v1/export", "/metrics"] {
        let (status, problem) = daemon.get(path);
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNAUTHORIZED, &json!("CWY5002")),
            "{path}"
        );
        let with = Request::get(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {TOKEN}"));
        let (status, _) = daemon.ask(true, with.body(String::new()).unwrap());
        assert_eq!(status, StatusCode::OK, "{path}");
    }
    assert_eq!(daemon.get("/healthz").0, StatusCode::OK);
    assert_eq!(daemon.get("/readyz").0, StatusCode::OK);
    let unix = daemon.send("GET", "/api/v1/status", &json!(null));
    assert_eq!(
        unix.0,
        StatusCode::OK,
        "the socket's permissions protect it"
    );
}

#[test]
fn wrong_requests_get_problems_that_say_what_is_wrong() {
    let daemon = Daemon::start("wrong");
    let cases = [
        (
            "POST",
            "/api/v1/luns",
            json!({ "name": "x" }),
            "CWY5003",
            "missing field `size`",
        ),
        (
            "POST",
            "/api/v1/luns",
            json!({ "name": "x", "size": "1Q" }),
            "CWY5003",
            "is not a size",
        ),
        (
            "POST",
            "/api/v1/luns",
            json!({ "name": "x", "size": 1000 }),
            "CWY3003",
            "not a whole number of blocks",
        ),
        (
            "POST",
            "/api/v1/apply?prun=true",
            json!({}),
            "CWY5003",
            "did you mean \"prune\"",
        ),
        (
            "POST",
            "/api/v1/nothing",
            json!({}),
            "CWY5004",
            "/api/v1/nothing",
        ),
        ("PUT", "/api/v1/luns", json!({}), "CWY5008", "PUT"),
        (
            "PUT",
            "/api/v1/targets/a",
            json!({ "name": "b" }),
            "CWY5003",
            "the path names",
        ),
    ];
    for (method, path, body, code, text) in cases {
        let (status, problem) = daemon.send(method, path, &body);
        assert!(status.is_client_error(), "{method} {path}: {status}");
        assert_eq!(problem["code"], code, "{problem}");
        assert!(
            problem.to_string().contains(&text.replace('"', "\\\"")),
            "{problem}"
        );
        assert_eq!(problem["status"], status.as_u16());
        assert!(!problem["hint"].as_str().unwrap().is_empty());
        assert_eq!(problem["doc"], format!("/api/v1/#{code}"));
    }
}

#[test]
fn a_problem_names_the_members_of_the_body_that_are_wrong() {
    let daemon = Daemon::start("fields");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let cases = [
        ("POST", "luns", json!({ "name": "x" }), "size"),
        ("POST", "luns", json!({ "name": "x", "size": "1Q" }), "size"),
        (
            "POST",
            "luns",
            json!({ "name": "x", "size": "1G", "shares": "many" }),
            "shares",
        ),
        (
            "POST",
            "luns",
            json!({ "name": "x", "size": "1G", "szie": 1 }),
            "szie",
        ),
        ("POST", "luns", json!({ "name": "x", "size": 1000 }), "size"),
        (
            "PATCH",
            "luns/l",
            json!({ "limit": { "iops": 0 } }),
            "limit.iops",
        ),
        ("PATCH", "targets/t", json!({ "iqn": "none" }), "iqn"),
        (
            "POST",
            "apply",
            json!({ "lun": [{ "name": "x", "size": "1G" }, { "name": "y" }] }),
            "lun[1].size",
        ),
        (
            "POST",
            "apply",
            json!({ "lun": [{ "name": "x", "size": 1000 }] }),
            "lun[0].size",
        ),
        ("PUT", "targets/a", json!({ "name": "b" }), "name"),
    ];
    for (method, path, body, field) in cases {
        let (_, problem) = daemon.send(method, &format!("/api/v1/{path}"), &body);
        assert_eq!(
            problem["fields"][0]["field"], field,
            "{path} {body}: {problem}"
        );
        assert!(!problem["fields"][0]["message"].as_str().unwrap().is_empty());
    }
    let (_, refused) = daemon.send("DELETE", "/api/v1/luns/l", &json!(null));
    assert_eq!(refused["fields"], json!(null), "there is no body to blame");
}

#[test]
fn the_page_of_the_interface_is_served_with_a_policy_that_lets_nothing_else_in() {
    let daemon = Daemon::start("page");
    for (path, kind) in [
        ("/api/v1/", "text/html; charset=utf-8"),
        ("/api/v1/explorer.js", "text/javascript; charset=utf-8"),
        ("/api/v1/explorer.css", "text/css; charset=utf-8"),
    ] {
        let request = Request::get(path).header("host", "localhost");
        let (head, text) = daemon.exchange(true, request.body(String::new()).unwrap());
        assert_eq!(head.status, StatusCode::OK, "{path}: {text}");
        assert_eq!(head.headers["content-type"], kind, "{path}");
        let policy = head.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
    }
}

#[test]
fn a_list_is_whole_without_a_limit_and_in_pages_with_one() {
    let daemon = Daemon::start("lists");
    let lun = |name: &str, size: &str| json!({ "name": name, "size": size });
    let luns = [
        lun("c", "1G"),
        lun("a", "3G"),
        lun("b", "1G"),
        lun("d", "2G"),
    ];
    let (status, made) = daemon.send("POST", "/api/v1/objects", &json!({ "lun": luns }));
    assert_eq!(status, StatusCode::OK, "{made}");
    let page = |path: &str| {
        let request = Request::get(path).header("host", "localhost");
        let (head, text) = daemon.exchange(true, request.body(String::new()).unwrap());
        assert_eq!(head.status, StatusCode::OK, "{path}: {text}");
        let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
        let names = rows.iter().map(|row| row["name"].as_str().unwrap());
        let link = head.headers.get("link").map(|link| {
            let link = link.to_str().unwrap();
            let (url, rest) = link.strip_prefix('<').unwrap().split_once('>').unwrap();
            assert_eq!(rest, "; rel=\"next\"");
            url.to_owned()
        });
        (names.collect::<String>(), link)
    };
    assert_eq!(page("/api/v1/luns"), ("abcd".to_owned(), None));
    let (first, next) = page("/api/v1/luns?sort=-size&filter=state:online&limit=3");
    assert_eq!(first, "adb");
    assert_eq!(page(&next.unwrap()), ("c".to_owned(), None));
    assert_eq!(page("/api/v1/luns?limit=4"), ("abcd".to_owned(), None));
    let (_, rows) = daemon.get("/api/v1/luns?without=ops,serial&sort=-size&limit=1");
    let row = rows[0].as_object().unwrap();
    assert_eq!(
        (rows.as_array().unwrap().len(), &row["name"]),
        (1, &json!("a"))
    );
    assert!(!row.contains_key("ops") && !row.contains_key("serial"));
    assert!(row.contains_key("state") && row.contains_key("grants"));
    let (_, all) = daemon.get("/api/v1/luns");
    let (_, lean) = daemon.get("/api/v1/luns?without=ops");
    let mut all = all.as_array().unwrap().clone();
    for row in &mut all {
        row.as_object_mut().unwrap().remove("ops");
    }
    assert_eq!(lean, json!(all), "as it is, but for these members");
    let (_, named) = daemon.get("/api/v1/luns?without=ops&name=c&name=nobody&name=a");
    assert_eq!(named, json!([all[0], all[2]]), "as it is, but for others");
    for wrong in [
        "luns?without=secret",
        "luns?without=",
        "luns?limit=0",
        "hosts?name=h",
        "luns?sort=secret",
        "hosts?filter=chap:x",
        "luns?lmit=1",
    ] {
        let (status, problem) = daemon.get(&format!("/api/v1/{wrong}"));
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("CWY5003")),
            "{wrong}"
        );
    }
}

#[test]
fn of_two_administrators_who_change_one_object_the_second_is_refused() {
    let daemon = Daemon::start("tags");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    daemon.send("DELETE", "/api/v1/sessions/4?force=true", &json!(null));
    let read = |path: &str| daemon.tag_of(path);
    let change = |method: &str, path: &str, tag: &str, body: &Value| {
        daemon.change_if(method, path, tag, body)
    };
    for (path, first, second) in [
        (
            "/api/v1/luns/l",
            json!({ "shares": 5 }),
            json!({ "size": "2G" }),
        ),
        (
            "/api/v1/targets/t",
            json!({ "maintenance": true }),
            json!({ "maintenance": false }),
        ),
        (
            "/api/v1/hosts/h",
            json!({ "bytes_in_flight_max": "1M" }),
            json!({ "bytes_in_flight_max": "2M" }),
        ),
        (
            "/api/v1/grants/h:t:l",
            json!({ "read_only": true }),
            json!({ "lun_id": 9 }),
        ),
    ] {
        // Both have read the same.
        let seen = read(path);
        let (status, outcome) = change("PATCH", path, &seen, &first);
        assert_eq!(
            (status, &outcome["changed"]),
            (StatusCode::OK, &json!(true)),
            "{path}: {outcome}"
        );
        let (_, before) = daemon.send("GET", path, &json!(null));
        for dry_run in ["", "?dry_run=true"] {
            let (status, problem) = change("PATCH", &format!("{path}{dry_run}"), &seen, &second);
            assert_eq!(
                (status, &problem["code"]),
                (StatusCode::PRECONDITION_FAILED, &json!("CWY5010")),
                "{path}: {problem}"
            );
        }
        assert_eq!(daemon.send("GET", path, &json!(null)).1, before, "{path}");
        // Who reads again may go on.
        let (status, outcome) = change("PATCH", path, &read(path), &second);
        assert_eq!(status, StatusCode::OK, "{path}: {outcome}");
    }
}

#[test]
fn a_tag_of_a_list_or_of_everything_fits_until_something_in_it_changes() {
    let daemon = Daemon::start("tags-of-all");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let read = |path: &str| daemon.tag_of(path);
    let change = |method: &str, path: &str, tag: &str, body: &Value| {
        daemon.change_if(method, path, tag, body)
    };
    let (status, _) = change("DELETE", "/api/v1/luns/none", "*", &json!(null));
    assert_eq!(status, StatusCode::PRECONDITION_FAILED);
    let (status, _) = change("PATCH", "/api/v1/luns/l", "l", &json!({}));
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let all = read("/api/v1/export");
    assert_eq!(read("/api/v1/export"), all);
    let list = read("/api/v1/luns");
    let made = json!({ "name": "m", "size": "1G" });
    // As the tag is where the answer was compressed.
    let weak = format!("W/{list}");
    assert_eq!(
        change("POST", "/api/v1/luns", &weak, &made).0,
        StatusCode::OK
    );
    let made = json!({ "name": "n", "size": "1G" });
    assert_eq!(
        change("POST", "/api/v1/luns", &list, &made).0,
        StatusCode::PRECONDITION_FAILED
    );
    assert_eq!(
        change("POST", "/api/v1/apply", &all, &json!({})).0,
        StatusCode::PRECONDITION_FAILED
    );
}

#[test]
fn a_request_that_is_sent_again_with_its_key_is_answered_again_and_done_once() {
    let daemon = Daemon::start("keys");
    let post = |tcp: bool, key: &str, path: &str, body: &Value| {
        let request = Request::post(path)
            .header("host", "localhost")
            .header("idempotency-key", key);
        let request = request.header("authorization", format!("Bearer {TOKEN}"));
        let (head, text) = daemon.exchange(tcp, request.body(body.to_string()).unwrap());
        let again = head.headers.contains_key("idempotency-replayed");
        (head.status.as_u16(), text, again)
    };
    let lun = |name: &str| json!({ "name": name, "size": "1G" });
    let first = post(false, "k1", "/api/v1/luns", &lun("a"));
    assert_eq!((first.0, first.2), (200, false), "{}", first.1);
    // Through another address as well.
    let second = post(true, "k1", "/api/v1/luns", &lun("a"));
    assert_eq!((second.0, second.1, second.2), (200, first.1, true));
    for (path, body) in [
        ("/api/v1/luns", lun("b")),
        ("/api/v1/luns?dry_run=true", lun("a")),
    ] {
        let (status, text, _) = post(false, "k1", path, &body);
        assert_eq!(status, 422, "{text}");
        assert!(text.contains("CWY5011"), "{text}");
    }
    // A refusal is an answer, too.
    assert_eq!(post(false, "k2", "/api/v1/luns", &lun("a")).0, 409);
    assert!(post(false, "k2", "/api/v1/luns", &lun("a")).2);
    assert_eq!(
        post(false, &"k".repeat(300), "/api/v1/luns", &lun("c")).0,
        400
    );
    let (_, luns) = daemon.get("/api/v1/luns");
    assert_eq!(luns.as_array().unwrap().len(), 1, "{luns}");
}

#[test]
fn a_document_that_has_not_changed_is_left_out_for_who_has_it() {
    let daemon = Daemon::start("unchanged");
    let get = |path: &str, tag: &str| {
        let request = Request::get(path)
            .header("host", "localhost")
            .header("if-none-match", tag);
        let (head, text) = daemon.exchange(true, request.body(String::new()).unwrap());
        let tag = head.headers["etag"].to_str().unwrap().to_owned();
        (head.status.as_u16(), tag, text)
    };
    for path in [
        "/api/v1/sessions",
        "/api/v1/sessions/4",
        "/api/v1/pools/default",
    ] {
        let (status, tag, _) = get(path, "\"0\"");
        assert_eq!(status, 200, "{path}");
        assert_eq!(get(path, &tag), (304, tag, String::new()), "{path}");
    }
    let (_, tag, _) = get("/api/v1/sessions", "\"0\"");
    daemon.send("DELETE", "/api/v1/sessions/4?force=true", &json!(null));
    assert_eq!(
        get("/api/v1/sessions", &tag).0,
        200,
        "it is another list now"
    );
}

#[test]
fn every_change_can_only_be_asked_about() {
    let daemon = Daemon::start("dry");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let dry = |method: &str, path: &str, body: &Value| {
        daemon.send(method, &format!("/api/v1/{path}?dry_run=true"), body)
    };
    let (status, ending) = dry("DELETE", "sessions/4", &json!(null));
    assert_eq!(
        (status, &ending["changed"], &ending["hits"][1]["name"]),
        (StatusCode::OK, &json!(false), &json!("l")),
        "{ending}"
    );
    assert_eq!(
        daemon.get("/api/v1/sessions/4").0,
        StatusCode::OK,
        "it is still there"
    );
    assert_eq!(
        dry("DELETE", "sessions/5", &json!(null)).0,
        StatusCode::NOT_FOUND
    );
    let (status, scrub) = dry("POST", "luns/l/scrub", &json!({ "operation": "start" }));
    assert_eq!(
        (status, &scrub["state"]),
        (StatusCode::OK, &json!("running")),
        "{scrub}"
    );
    assert_eq!(
        daemon.get("/api/v1/luns/l/scrub").0,
        StatusCode::NOT_FOUND,
        "none runs"
    );
    let (_, document) = daemon.send("GET", "/api/v1/openapi.json", &json!(null));
    // Who somebody is can only be shown.
    let accounts = ["/api/v1/login", "/api/v1/logout", "/api/v1/me/password"];
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let mut names = operation["parameters"].as_array().unwrap().iter();
            let can = names.any(|it| it["name"] == "dry_run");
            let changes = method != "get" && !accounts.contains(&path.as_str());
            assert_eq!(can, changes, "{method} {path}");
        }
    }
}

#[test]
fn the_socket_is_its_owners_and_a_second_daemon_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let daemon = Daemon::start("socket");
    let path = daemon.dir.join("api.sock");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = bind(&[ApiAddress::Unix(path.clone())]).unwrap_err();
    assert!(
        again.detail.contains("another process serves this socket"),
        "{again}"
    );
    // One that nobody serves any more is taken over.
    let stale = daemon.dir.join("stale.sock");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    bind(&[ApiAddress::Unix(stale)]).unwrap();
}

#[test]
fn a_path_that_takes_another_method_says_which_and_one_that_is_not_there_does_not() {
    let daemon = Daemon::start("methods");
    for (method, path, status) in [
        ("PUT", "/api/v1/luns", 405),
        ("POST", "/metrics", 405),
        ("DELETE", "/api/v1/status", 405),
        ("GET", "/api/v1/moons", 404),
    ] {
        let (reported, body) = daemon.send(method, path, &json!({}));
        assert_eq!(reported.as_u16(), status, "{method} {path}: {body}");
    }
}

#[test]
fn health_readiness_and_metrics_answer_without_a_token() {
    let daemon = Daemon::start("health");
    assert_eq!(daemon.get("/healthz"), (StatusCode::OK, json!("ok\n")));
    assert_eq!(daemon.get("/readyz"), (StatusCode::OK, json!("ready\n")));
    let (status, text) = daemon.get("/metrics");
    assert_eq!(status, StatusCode::OK);
    assert!(
        text.as_str()
            .unwrap()
            .contains(",commit=\"0123456789ab-dirty\"} 1\n"),
        "{text}"
    );
}
