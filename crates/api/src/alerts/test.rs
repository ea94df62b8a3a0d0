//! Alerts of a daemon, from the rules to a receiver, over real files and sockets.

use crate::accept::Times;
use crate::support_test::unpacked;
use crate::test::{Daemon, TOKEN};
use controller::test_support::lab;
use hyper::Request;
use manifest::config::Config;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn times() -> Times {
    Times {
        alerts: Duration::from_millis(20),
        ..Times::default()
    }
}

/// A daemon; its machine has a disk that would be an alert.
fn start(name: &str) -> Daemon {
    let daemon = Daemon::start_with(name, |_| {}, times());
    let rule = "/api/v1/alerts/rules/device_health";
    let off = json!({ "enabled": false });
    assert_eq!(daemon.send("PUT", rule, &off).0, 200);
    let of_disks = "/api/v1/alerts?filter=rule:device_health";
    until(&daemon, of_disks, |all| *all == json!([]));
    daemon
}

/// Where a daemon of this name keeps its state.
fn state_dir(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("causeway-api-{name}-{}/state", std::process::id()))
}

/// Asks until the answer is as it is to be.
fn until(daemon: &Daemon, path: &str, is: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..500 {
        last = daemon.send("GET", path, &json!(null)).1;
        if is(&last) {
            return last;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("{path}: {last}");
}

/// Has the host `h` of the tests fire: it has one session.
fn fire(daemon: &Daemon) -> Value {
    let at_once = json!({ "hold_seconds": 0, "clear_seconds": 0 });
    let rule = "/api/v1/alerts/rules/host_single_path";
    assert_eq!(daemon.send("PUT", rule, &at_once).0, 200);
    assert_eq!(daemon.send("POST", "/api/v1/apply", &json!(lab())).0, 200);
    let all = until(daemon, "/api/v1/alerts", |all| all[0].is_object());
    all[0].clone()
}

/// An HTTP server that takes what it is sent; its address, and the requests.
fn server() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}/hook/s3cret", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::Builder::new()
        .spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut all, mut byte) = (Vec::new(), [0; 1]);
                let mut body = 0;
                while stream.read(&mut byte).unwrap_or(0) == 1 {
                    all.push(byte[0]);
                    if body == 0 && all.ends_with(b"\r\n\r\n") {
                        let head = String::from_utf8_lossy(&all).to_lowercase();
                        let length = head.split("content-length: ").nth(1).unwrap();
                        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
                        body = all.len() + length;
                    }
                    if body > 0 && all.len() >= body {
                        break;
                    }
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
                if sender.send(String::from_utf8(all).unwrap()).is_err() {
                    return;
                }
            }
        })
        .unwrap();
    (at, requests)
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one life of an alert, and what is sent of it"
)]
fn an_alert_fires_is_sent_acknowledged_and_resolved_by_itself() {
    let daemon = start("alerts-life");
    let (url, requests) = server();
    let receiver =
        json!({ "name": "ops", "group_seconds": 0, "webhook": { "url": url, "token": "t0ken" } });
    let (status, made) = daemon.send("POST", "/api/v1/alerts/receivers", &receiver);
    assert_eq!(status, 200, "{made}");
    assert_eq!(
        daemon
            .send("POST", "/api/v1/alerts/receivers/ops/test", &json!(null))
            .0,
        200
    );
    let wait = || requests.recv_timeout(Duration::from_secs(20)).unwrap();
    let request = wait();
    assert!(
        request
            .to_lowercase()
            .contains("authorization: bearer t0ken")
    );
    assert_eq!(body(&request)["test"], true);
    let alert = fire(&daemon);
    assert_eq!(
        alert["cause"],
        "host h has one path to target t: from 10.0.0.9 to portal 127.0.0.1:3260"
    );
    assert_eq!(
        (&alert["state"], &alert["severity"]),
        (&json!("firing"), &json!("warning"))
    );
    let message = body(&wait());
    assert_eq!(
        (&message["node"], &message["fired"]),
        (&json!("n"), &json!(1))
    );
    assert_eq!(message["alerts"][0]["id"], alert["id"]);
    let (_, status) = daemon.send("GET", "/api/v1/status", &json!(null));
    assert_eq!(status["alerts"]["warning"], 1);
    let path = format!("/api/v1/alerts/{}/acknowledge", alert["id"]);
    let (_, shown) = daemon.send("POST", &path, &json!({ "note": "cable ordered" }));
    assert_eq!(shown["acknowledged"]["note"], "cable ordered");
    let metrics = daemon.send("GET", "/metrics", &json!(null)).1;
    let metrics = metrics.as_str().unwrap();
    for line in [
        "causeway_alerts{severity=\"warning\",state=\"acknowledged\"} 1",
        "causeway_alerts_of_rule{rule=\"host_single_path\"} 1",
        "causeway_alert_deliveries_total{receiver=\"ops\",result=\"failed\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
    // Another path of its own does not come; a host that is deleted has no paths to lose.
    daemon.send("DELETE", "/api/v1/sessions/4", &json!(null));
    assert_eq!(
        daemon
            .send("DELETE", "/api/v1/hosts/h?force=true", &json!(null))
            .0,
        200
    );
    let message = body(&wait());
    assert_eq!(
        (&message["resolved"], &message["fired"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(
        daemon.send("GET", "/api/v1/alerts", &json!(null)).1,
        json!([])
    );
    let over = daemon
        .send("GET", "/api/v1/alerts?resolved=true", &json!(null))
        .1;
    let steps = over[0]["steps"].as_array().unwrap().iter();
    let steps: Vec<&str> = steps.map(|step| step["what"].as_str().unwrap()).collect();
    assert_eq!(steps, ["fired", "acknowledged", "resolved"]);
    let events = daemon.send("GET", "/api/v1/events/log", &json!(null)).1;
    let events = events.as_array().unwrap().iter();
    let of_alerts = events.filter(|it| it["fields"]["alert"] == alert["id"]);
    let mut codes: Vec<&str> = of_alerts.map(|it| it["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        ["alert_acknowledged", "alert_fired", "alert_resolved"]
    );
    let shown = daemon
        .send("GET", "/api/v1/alerts/receivers/ops", &json!(null))
        .1;
    assert_eq!(
        (&shown["delivered"], &shown["failed"]),
        (&json!(2), &json!(0)),
        "{shown}"
    );
}

#[test]
fn what_was_done_about_alerts_and_who_is_sent_them_outlives_the_daemon() {
    let name = "alerts-before";
    let daemon = start(name);
    let receiver = json!({ "name": "ops", "webhook": { "url": "http://127.0.0.1:1/s3cret", "token": "s3cret" } });
    daemon.send("POST", "/api/v1/alerts/receivers", &receiver);
    let alert = fire(&daemon);
    let path = format!("/api/v1/alerts/{}/acknowledge", alert["id"]);
    daemon.send("POST", &path, &json!({ "note": "mine" }));
    daemon.send(
        "POST",
        "/api/v1/alerts/silences",
        &json!({ "hours": 2, "object": "x*" }),
    );
    let after = state_dir("alerts-after");
    std::fs::create_dir_all(&after).unwrap();
    for file in ["alerts.json", "alert-receivers.json"] {
        let path = state_dir(name).join(file);
        std::fs::copy(&path, after.join(file)).unwrap();
    }
    let mode = std::fs::metadata(state_dir(name).join("alert-receivers.json")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    assert!(crate::SECRET_FILES.contains(&"alert-receivers.json"));
    let stored = std::fs::read_to_string(after.join("alerts.json")).unwrap();
    assert!(!stored.contains("s3cret"), "no secret in the other file");
    drop(daemon);
    // Its rule says so at once: the host is not there.
    let daemon = start("alerts-after");
    let over = until(&daemon, "/api/v1/alerts?resolved=true", |all| {
        all[0]["state"] == "resolved"
    });
    assert_eq!(
        (&over[0]["id"], &over[0]["acknowledged"]["note"]),
        (&alert["id"], &json!("mine"))
    );
    let (bundle, _) = unpacked(&daemon);
    assert!(bundle.contains("\"note\": \"mine\""), "what is over, too");
    let silences = daemon
        .send("GET", "/api/v1/alerts/silences", &json!(null))
        .1;
    assert_eq!(silences[0]["object"], "x*");
    let receivers = daemon
        .send("GET", "/api/v1/alerts/receivers", &json!(null))
        .1;
    assert_eq!(receivers[0]["webhook"]["has_token"], true);
    assert_eq!(receivers[0]["webhook"]["at"], "http://127.0.0.1:1");
}

#[test]
fn no_answer_and_no_log_has_a_secret_of_a_receiver() {
    let daemon = start("alerts-secrets");
    let hook = json!({ "name": "a", "webhook": { "url": "http://127.0.0.1:1/s3cret?k=s3cret", "token": "s3cret" } });
    let mail = json!({
        "name": "b",
        "mail": { "server": "127.0.0.1", "port": 1, "user": "u", "password": "s3cret", "from": "a@b", "to": ["c@d"] },
    });
    let mut answers = Vec::new();
    let mut ask = |method: &str, path: &str, body: &Value| {
        let (status, answer) = daemon.send(method, path, body);
        answers.push(answer.to_string());
        status.as_u16()
    };
    let all = "/api/v1/alerts/receivers";
    assert_eq!(
        (ask("POST", all, &hook), ask("POST", all, &mail)),
        (200, 200)
    );
    for name in ["a", "b"] {
        let one = format!("{all}/{name}");
        assert_eq!(ask("GET", &one, &json!(null)), 200);
        assert_eq!(ask("POST", &format!("{one}/test"), &json!(null)), 502);
    }
    for bad in [
        json!({ "name": "c", "webhook": { "url": "s3cret", "token": "s3cret" } }),
        json!({ "name": "c", "webhook": { "url": 5, "token": ["s3cret"] } }),
        json!({ "name": "c", "s3cret": "s3cret" }),
        json!("s3cret"),
    ] {
        assert!([400, 422].contains(&ask("POST", all, &bad)));
        assert!([400, 422].contains(&ask("PATCH", &format!("{all}/a"), &bad)));
    }
    assert_eq!(
        ask(
            "PATCH",
            &format!("{all}/a"),
            &json!({ "webhook": { "token": "s3cret2" } })
        ),
        200
    );
    ask("GET", all, &json!(null));
    ask("GET", "/api/v1/export", &json!(null));
    ask("GET", "/metrics", &json!(null));
    for answer in answers {
        assert!(!answer.contains("s3cret"), "{answer}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_kept_and_says_so_by_an_alert() {
    let name = "alerts-damaged";
    std::fs::create_dir_all(state_dir(name)).unwrap();
    std::fs::write(state_dir(name).join("alerts.json"), "{ damaged").unwrap();
    let newer = "{\"schema\":2,\"receivers\":[],\"more\":1}";
    std::fs::write(state_dir(name).join("alert-receivers.json"), newer).unwrap();
    let daemon = start(name);
    let all = until(&daemon, "/api/v1/alerts", |all| all[1].is_object());
    let all = all.as_array().unwrap();
    assert!(all.iter().all(|alert| alert["rule"] == "records_damaged"));
    let of = |file: &str| all.iter().find(|alert| alert["object"] == file).unwrap();
    assert!(
        of("alerts.json")["next_step"]
            .as_str()
            .unwrap()
            .ends_with("alerts.json.aside")
    );
    let aside = std::fs::read(state_dir(name).join("alerts.json.aside")).unwrap();
    assert_eq!(aside, b"{ damaged");
    assert!(
        of("alert-receivers.json")["cause"]
            .as_str()
            .unwrap()
            .contains("of version 2")
    );
    let hook = json!({ "name": "a", "webhook": { "url": "http://127.0.0.1:1/" } });
    let (status, problem) = daemon.send("POST", "/api/v1/alerts/receivers", &hook);
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (507, &json!("CWY4002")),
        "{problem}"
    );
    let kept = std::fs::read_to_string(state_dir(name).join("alert-receivers.json")).unwrap();
    assert_eq!(kept, newer);
}

#[test]
fn what_is_known_of_disks_is_an_alert_of_the_disk() {
    let daemon = Daemon::start_with("alerts-disks", |_| {}, times());
    let all = until(&daemon, "/api/v1/alerts", |all| all[0].is_object());
    let report = daemon.send("GET", "/api/v1/disks", &json!(null)).1;
    assert_eq!(all[0]["rule"], "device_health");
    assert!(
        report
            .to_string()
            .contains(all[0]["object"].as_str().unwrap()),
        "{all}"
    );
}

#[test]
fn a_command_is_one_of_node_toml_or_none() {
    let commands = |config: &mut Config| {
        config.alert_commands = vec![manifest::config::AlertCommand {
            name: "ok".to_owned(),
            argv: vec!["/bin/true".to_owned()],
            time_max: Duration::from_secs(5),
        }];
    };
    let daemon = Daemon::start_with("alerts-command", commands, times());
    let path = "/api/v1/alerts/receivers";
    let to = |name: &str| json!({ "name": name, "command": { "name": name } });
    let (status, problem) = daemon.send("POST", path, &to("sh"));
    assert_eq!(status.as_u16(), 422);
    assert!(
        problem["detail"].as_str().unwrap().ends_with("it has ok"),
        "{problem}"
    );
    assert_eq!(daemon.send("POST", path, &to("ok")).0, 200);
    assert_eq!(
        daemon
            .send("POST", &format!("{path}/ok/test"), &json!(null))
            .0,
        200
    );
    let with_argv = json!({ "name": "x", "command": { "name": "ok", "argv": ["/bin/sh"] } });
    assert_eq!(daemon.send("POST", path, &with_argv).0, 400);
}

#[test]
fn receivers_are_for_admins_and_the_rest_for_those_who_read_or_operate() {
    let daemon = start("alerts-roles");
    let token = |role: &str| {
        let wanted = json!({ "name": role, "role": role });
        let (_, made) = daemon.send("POST", "/api/v1/tokens", &wanted);
        made["token"].as_str().unwrap().to_owned()
    };
    let ask = |token: &str, method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"));
        daemon
            .ask(true, request.body("{}".to_owned()).unwrap())
            .0
            .as_u16()
    };
    let (viewer, operator) = (token("viewer"), token("operator"));
    let rule = "/api/v1/alerts/rules/lun_slow";
    for (token, method, path, expected) in [
        (&*viewer, "GET", "/api/v1/alerts", 200),
        (&viewer, "GET", rule, 200),
        (&viewer, "PUT", rule, 403),
        (&viewer, "GET", "/api/v1/alerts/receivers", 403),
        (&operator, "PUT", rule, 200),
        (&operator, "POST", "/api/v1/alerts/999/acknowledge", 404),
        (&operator, "GET", "/api/v1/alerts/receivers", 403),
        (&operator, "POST", "/api/v1/alerts/receivers", 403),
        (&operator, "POST", "/api/v1/alerts/receivers/x/test", 403),
        (TOKEN, "GET", "/api/v1/alerts/receivers", 200),
    ] {
        assert_eq!(ask(token, method, path), expected, "{method} {path}");
    }
    let nobody = Request::get("/api/v1/alerts").header("host", "localhost");
    let (status, _) = daemon.ask(true, nobody.body(String::new()).unwrap());
    assert_eq!(status.as_u16(), 401, "no new read is free");
}

#[test]
fn of_two_who_change_one_receiver_or_rule_the_second_is_refused() {
    let daemon = start("alerts-seen");
    let made = json!({ "name": "ops", "webhook": { "url": "https://a.example/secret-one" } });
    let all = "/api/v1/alerts/receivers";
    assert_eq!(daemon.send("POST", all, &made).0, 200);
    let path = "/api/v1/alerts/receivers/ops";
    let seen = daemon.tag_of(path);
    // Of a change of what is secret nothing is shown, and it is one all the same.
    let other = json!({ "webhook": { "url": "https://a.example/secret-two" } });
    assert_eq!(daemon.change_if("PATCH", path, &seen, &other).0, 200);
    for (method, body) in [
        ("PATCH", json!({ "enabled": false })),
        ("DELETE", json!(null)),
    ] {
        let (status, problem) = daemon.change_if(method, path, &seen, &body);
        let refused = (status.as_u16(), &problem["code"]);
        assert_eq!(refused, (412, &json!("CWY5010")), "{method}");
    }
    assert_eq!(daemon.send("GET", path, &json!(null)).1["enabled"], true);
    let seen = daemon.tag_of(path);
    assert_eq!(daemon.change_if("DELETE", path, &seen, &json!(null)).0, 200);

    let path = "/api/v1/alerts/rules/host_single_path";
    let seen = daemon.tag_of(path);
    fire(&daemon);
    // `fire` has changed it first; that it fires since is no change.
    let tag = daemon.tag_of(path);
    let (status, _) = daemon.change_if("PUT", path, &seen, &json!({ "enabled": false }));
    assert_eq!(status, 412);
    let (_, rule) = daemon.send("GET", path, &json!(null));
    assert_eq!(
        (&rule["enabled"], &rule["firing"]),
        (&json!(true), &json!(1))
    );
    let again = json!({ "hold_seconds": 0 });
    assert_eq!(daemon.change_if("PUT", path, &tag, &again).0, 200);
}
