//! `causeway alert`: what really happens to a daemon fires, is sent, and ends by itself.

use crate::journal::{LUN, with_journal};
use crate::login::{login_by, served};
use crate::place::Place;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Each question is a process, and the rules are asked each five seconds: a minute and more.
const QUESTIONS_MAX: u32 = 4_000;

/// Rules wait for no time, so that the test need not.
fn at_once(place: &Place, rules: &[&str]) {
    for rule in rules {
        place.run(0, &format!("alert rule set {rule} --hold 0 --clear 0"));
    }
}

/// The alert of a rule that is so, when there is one.
fn until(place: &Place, rule: &str, is: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..QUESTIONS_MAX {
        last = place.json("alert ls --resolved");
        let all = last.as_array().unwrap();
        if let Some(alert) = all.iter().find(|it| it["rule"] == rule && is(it)) {
            return alert.clone();
        }
    }
    panic!("{rule} never becomes so: {last:#}");
}

fn fires(place: &Place, rule: &str) -> Value {
    until(place, rule, |alert| alert["state"] == "firing")
}

fn is_over(place: &Place, rule: &str) -> Value {
    until(place, rule, |alert| alert["state"] == "resolved")
}

fn take(mut stream: TcpStream) -> Option<Value> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .ok()?;
    let body = loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        let whole = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let head = head.to_lowercase();
            let length = head.split("content-length: ").nth(1)?;
            let length: usize = length.split("\r\n").next()?.parse().ok()?;
            (body.len() >= length).then(|| body.to_owned())
        });
        if let Some(body) = whole {
            break body;
        }
        match stream.read(&mut part).ok()? {
            0 => return None,
            some => all.extend_from_slice(&part[..some]),
        }
    };
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(answer).ok()?;
    serde_json::from_str(&body).ok()
}

/// A receiver of webhooks.
struct Hook {
    address: String,
    messages: Receiver<Value>,
    /// What it was sent and has been taken already.
    taken: Vec<Value>,
}

impl Hook {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, messages) = channel();
        let serve = move || {
            for stream in listener.incoming().flatten() {
                if let Some(message) = take(stream)
                    && sender.send(message).is_err()
                {
                    return;
                }
            }
        };
        std::thread::Builder::new().spawn(serve).unwrap();
        Self {
            address,
            messages,
            taken: Vec::new(),
        }
    }

    /// What was sent about the alert of this number for this reason.
    fn sent(&mut self, id: &Value, reason: &str) -> Value {
        loop {
            let alerts = self
                .taken
                .iter()
                .flat_map(|it| it["alerts"].as_array().unwrap());
            let mut of = alerts.filter(|it| it["id"] == *id && it["reason"] == reason);
            if let Some(alert) = of.next() {
                return alert.clone();
            }
            let message = self.messages.recv_timeout(Duration::from_secs(60));
            self.taken
                .push(message.unwrap_or_else(|_| panic!("{reason} of {id} is sent")));
        }
    }
}

fn steps(alert: &Value) -> Vec<&str> {
    let steps = alert["steps"].as_array().unwrap().iter();
    steps.map(|step| step["what"].as_str().unwrap()).collect()
}

/// The codes of events about an alert, the first first.
fn events(place: &Place, id: &Value) -> Vec<String> {
    let all = place.json("event ls");
    let all = all.as_array().unwrap().iter();
    let of = all.filter(|event| event["fields"]["alert"] == *id);
    let mut codes: Vec<(u64, String)> = of
        .map(|event| {
            (
                event["id"].as_u64().unwrap(),
                event["code"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    codes.sort();
    codes.into_iter().map(|(_, code)| code).collect()
}

#[test]
fn a_journal_that_is_away_is_an_alert_from_its_message_to_its_end_across_a_restart() {
    let place = with_journal("alerts-life", LUN);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    at_once(&place, &["journal_offline", "lun_offline"]);
    let mut hook = Hook::new();
    place.write("hook.secret", &hook.address);
    place.run(
        0,
        "alert receiver create ops --url-file hook.secret --group-seconds 0",
    );
    place.run(0, "alert receiver test ops");
    let test = hook.messages.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!((&test["test"], &test["node"]), (&true.into(), &"n".into()));
    daemon.stop();
    let (journal, aside) = (place.path("data/journal"), place.path("aside"));
    std::fs::rename(&journal, &aside).unwrap();
    let daemon = place.start();
    let alert = fires(&place, "journal_offline");
    let id = &alert["id"];
    assert_eq!(
        (&alert["severity"], &alert["object"]),
        (&"critical".into(), &"default".into())
    );
    let message = hook.sent(id, "fired");
    assert_eq!(message["cause"], alert["cause"]);
    let offline = fires(&place, "lun_offline");
    hook.sent(&offline["id"], "fired");
    place.run(0, &format!("alert ack {id} --note sent-for"));
    place.run(0, &format!("alert silence {} --hours 1", offline["id"]));
    daemon.stop();
    let daemon = place.start();
    let kept = until(&place, "journal_offline", |alert| {
        alert["state"] == "acknowledged"
    });
    assert_eq!(
        (&kept["id"], &kept["acknowledged"]["note"]),
        (id, &"sent-for".into())
    );
    let silenced = until(&place, "lun_offline", |alert| alert["state"] == "silenced");
    assert_eq!(silenced["id"], offline["id"]);
    std::fs::rename(&aside, &journal).unwrap();
    let over = is_over(&place, "journal_offline");
    assert_eq!(
        (&over["id"], steps(&over)),
        (id, vec!["fired", "acknowledged", "resolved"])
    );
    hook.sent(id, "resolved");
    assert_eq!(is_over(&place, "lun_offline")["id"], offline["id"]);
    assert_eq!(
        events(&place, id),
        ["alert_fired", "alert_acknowledged", "alert_resolved"]
    );
    let page = place.run(0, &format!("alert show {id}"));
    assert!(
        page.contains("sent-for") && page.contains("resolved"),
        "{page}"
    );
    daemon.stop();
}

/// Nothing here answers pings: this takes less time than they have.
fn of_sessions(place: &Place, portal: &str, other: &str) {
    let session = login_by(portal, 1);
    let single = fires(place, "host_single_path");
    assert_eq!(
        (&single["object"], &single["kind"]),
        (&"esx01".into(), &"host".into())
    );
    let next_step = single["next_step"].as_str().unwrap();
    assert!(next_step.contains(other), "{single}");
    let second = login_by(other, 2);
    is_over(place, "host_single_path");
    // It ends, is seen as ended, and comes back.
    drop(second);
    fires(place, "host_single_path");
    let second = login_by(other, 2);
    let flaps = fires(place, "path_flapping");
    assert!(
        flaps["cause"].as_str().unwrap().contains("esx01"),
        "{flaps}"
    );
    // All at once, and without a word: nobody says why.
    drop((session, second));
    let away = fires(place, "host_away");
    let cause = away["cause"].as_str().unwrap();
    assert!(
        cause.starts_with("host esx01 has lost all its paths"),
        "{away}"
    );
    let session = login_by(portal, 1);
    is_over(place, "host_away");
    drop(session);
}

/// What can be made to happen here, and undone: each fires, and is over by itself.
#[test]
fn what_really_happens_fires_and_ends_by_itself() {
    let place = Place::new("alerts-real");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let one = "listen = [ { ip = \"127.0.0.1\", port = 0 }";
    let two = format!(
        "{one}, {{ ip = \"127.0.0.2\", port = 0 }}, {{ ip = \"127.0.0.1\", port = {port} }}"
    );
    let api = "\"127.0.0.1:0\"]";
    let https = "\"127.0.0.1:0\", \"https://127.0.0.1:0\"]";
    place.write("node.toml", &config.replace(one, &two).replace(api, https));
    place.start().stop();
    // Damaged while nobody reads it; a new one is begun.
    std::fs::write(place.path("data/history.db"), "no database").unwrap();
    let daemon = place.start();
    let rules = [
        "portal_offline",
        "host_single_path",
        "pool_overcommitted",
        "pool_offline",
        "lun_offline",
        "path_flapping",
        "host_away",
    ];
    at_once(&place, &rules);
    place.run(0, "alert rule set certificate_ending days=36500");
    place.run(
        0,
        "alert rule set path_flapping returns=1 clear_returns=1 minutes=1",
    );
    let portal = served(&place);
    let portals = place.json("target show t1")["portals"].clone();
    let other = portals
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap());
    let other = other
        .into_iter()
        .find(|it| it.starts_with("127.0.0.2:"))
        .unwrap();
    of_sessions(&place, &portal, other);
    place.run(0, "lun create huge --size 4T");
    for rule in [
        "portal_offline",
        "certificate_ending",
        "pool_overcommitted",
        "records_damaged",
    ] {
        fires(&place, rule);
    }
    drop(taken);
    place.run(0, "alert rule set certificate_ending days=21");
    place.run(0, "lun resize huge --size 1M --yes");
    for rule in ["portal_offline", "certificate_ending", "pool_overcommitted"] {
        is_over(&place, rule);
    }
    std::fs::rename(place.path("data/pool"), place.path("data/away")).unwrap();
    fires(&place, "pool_offline");
    fires(&place, "lun_offline");
    std::fs::rename(place.path("data/away"), place.path("data/pool")).unwrap();
    is_over(&place, "pool_offline");
    is_over(&place, "lun_offline");
    daemon.stop();
}
