//! Changes of the node's settings over real sockets.

use crate::accept::Times;
use crate::audit::test::last;
use crate::test::Daemon;
use manifest::config::SETTINGS_FILE;
use serde_json::{Value, json};
use std::sync::atomic::Ordering::SeqCst;

const CONFIG: &str = "/api/v1/config";

fn shown(daemon: &Daemon) -> Value {
    daemon.send("GET", CONFIG, &json!(null)).1
}

fn file(daemon: &Daemon) -> Option<Vec<u8>> {
    std::fs::read(daemon.dir.join("state").join(SETTINGS_FILE)).ok()
}

#[test]
fn a_change_is_kept_apart_from_the_file_and_entered_and_a_dry_run_is_neither() {
    let daemon = Daemon::start("settings");
    let node_toml = std::fs::read(daemon.dir.join("node.toml")).unwrap();
    let wanted = json!({ "node_name": "san-b", "portals": { "listen": ["127.0.0.1:3261", "lo"] } });
    let (status, plan) = daemon.send("PATCH", &format!("{CONFIG}?dry_run=true"), &wanted);
    assert_eq!(
        (status.as_u16(), &plan["dry_run"]),
        (200, &json!(true)),
        "{plan}"
    );
    assert_eq!(file(&daemon), None, "only asked");
    let (status, done) = daemon.send("PATCH", CONFIG, &wanted);
    assert_eq!(
        (status.as_u16(), &done["changes"]),
        (200, &plan["changes"]),
        "{done}"
    );
    assert!(file(&daemon).is_some());
    assert_eq!(
        std::fs::read(daemon.dir.join("node.toml")).unwrap(),
        node_toml
    );
    let entry = last(&daemon);
    assert_eq!(entry.before["node.name"], "\"n\"", "{entry:?}");
    assert_eq!(entry.after["node.name"], "\"san-b\"", "{entry:?}");
    assert_eq!(entry.object.unwrap().name, "settings");
    let changes = shown(&daemon)["changes"].clone();
    let name = changes
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["key"] == "node.name");
    assert_eq!(
        name.unwrap()["in_file"],
        "\"san-b\"",
        "it waits for a restart"
    );
    // The former ones are there, once.
    daemon.send("PATCH", CONFIG, &json!({ "node_name": "san-c" }));
    let before = daemon
        .dir
        .join("state")
        .join(format!("{SETTINGS_FILE}.before"));
    let before = std::fs::read_to_string(before).unwrap();
    assert!(
        before.contains("san-b") && !before.contains("san-c"),
        "{before}"
    );
}

#[test]
fn a_change_that_was_meant_for_other_settings_is_refused() {
    let daemon = Daemon::start("settings_412");
    let tag = daemon.tag_of(CONFIG);
    let days = |days: u32| json!({ "scrub_every_days": days });
    let first = daemon.change_if("PATCH", CONFIG, &tag, &days(7));
    assert_eq!(first.0.as_u16(), 200, "{}", first.1);
    let kept = file(&daemon);
    let second = daemon.change_if("PATCH", CONFIG, &tag, &days(8));
    assert_eq!(second.0.as_u16(), 412, "{}", second.1);
    // So is one that was meant for another node.toml.
    let tag = daemon.tag_of(CONFIG);
    let path = daemon.dir.join("node.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"n\"", "\"m\"")).unwrap();
    let third = daemon.change_if("PATCH", CONFIG, &tag, &days(8));
    assert_eq!(third.0.as_u16(), 412, "{}", third.1);
    assert_eq!(file(&daemon), kept);
}

#[test]
fn what_the_administrator_has_fixed_is_not_changed() {
    let fixed = |config: &mut manifest::config::Config| config.api_settings.fixed_settings = true;
    let daemon = Daemon::start_with("settings_fixed", fixed, Times::default());
    let (status, problem) = daemon.send("PATCH", CONFIG, &json!({ "node_name": "b" }));
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (403, &json!("CWY5036")),
        "{problem}"
    );
    assert_eq!(file(&daemon), None);
    let why = shown(&daemon)["fixed"].clone();
    assert!(
        why.as_str().unwrap().contains("change_settings = false"),
        "{why}"
    );
}

#[test]
fn a_daemon_that_could_not_start_again_does_not_stop() {
    let daemon = Daemon::start("settings_restart");
    let path = daemon.dir.join("node.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("tag = 1", "tag = 0")).unwrap();
    let (status, problem) = daemon.send("POST", "/api/v1/restart", &json!(null));
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (409, &json!("CWY5037")),
        "{problem}"
    );
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("node.toml:6: portal_group[0].tag"),
        "{detail}"
    );
    // A change says what is wrong, too, and is none.
    let (status, problem) = daemon.send("PATCH", CONFIG, &json!({ "node_name": "b" }));
    assert_eq!((status.as_u16(), file(&daemon)), (400, None), "{problem}");
    std::fs::write(&path, text).unwrap();
    let (status, begun) = daemon.send("POST", "/api/v1/restart", &json!(null));
    assert_eq!(status.as_u16(), 200, "{begun}");
    assert_eq!(last(&daemon).path, "/api/v1/restart");
}

#[test]
fn settings_a_text_that_is_more_toml_names_no_program() {
    let daemon = Daemon::start("settings_toml");
    let dir = daemon.dir.display();
    let more = "16MiB\"\n[[alert_command]]\nname = \"e\"\nargv = [\"/bin/sh\"]\n#";
    let (path, journal) = (format!("{dir}/new"), format!("{dir}/j"));
    let pool = json!({ "name": "x", "path": path, "journal": journal, "journal_size": more });
    let (status, problem) = daemon.send("PATCH", CONFIG, &json!({ "add_pool": pool }));
    assert_eq!((status.as_u16(), file(&daemon)), (400, None), "{problem}");
    let shown = shown(&daemon).to_string();
    assert!(!shown.contains("/bin/sh"), "{shown}");
}

/// When the change of a key comes into force.
fn when<'a>(changes: &'a Value, key: &str) -> &'a str {
    let all = changes.as_array().unwrap();
    let found = all.iter().find(|it| it["key"] == key);
    found.map_or("it is none", |it| it["takes_effect"].as_str().unwrap())
}

/// The keys of each event that says what waits for a restart, the oldest first.
fn waiting(daemon: &Daemon) -> Vec<String> {
    let log = "/api/v1/events/log?filter=code:config_waits&sort=time";
    let (_, all) = daemon.send("GET", log, &json!(null));
    let all = all.as_array().unwrap().iter();
    all.map(|it| {
        assert_eq!(
            (&it["severity"], &it["object"]["kind"]),
            (&json!("info"), &json!("node"))
        );
        let keys = it["fields"]["settings"].as_str().unwrap();
        let said = it["message"].as_str().unwrap();
        let words = format!("settings are stored and wait for a restart: {keys}");
        assert_eq!(said, words);
        // Of this daemon it always waits: it was not started with the file's.
        let keys = keys.split(", ").filter(|key| *key != "node.state_dir");
        keys.collect::<Vec<&str>>().join(", ")
    })
    .collect()
}

#[test]
fn what_waits_for_a_restart_is_an_event_when_it_is_another_thing_than_before() {
    let daemon = Daemon::start("settings_wait");
    let change = |body: Value| {
        let (status, done) = daemon.send("PATCH", CONFIG, &body);
        assert_eq!(status.as_u16(), 200, "{done}");
        waiting(&daemon)
    };
    let first = vec!["node.name".to_owned()];
    assert_eq!(change(json!({ "node_name": "b" })), first);
    assert_eq!(change(json!({ "node_name": "b" })), first, "the same");
    assert_eq!(change(json!({ "scrub_every_days": 7 })), first, "at once");
    let all = change(json!({ "values": { "log.format": "json" } }));
    assert_eq!(all[1..], ["log.format, node.name"], "all that waits");
    let all = change(json!({ "node_name": "c" }));
    assert_eq!(all[2..], ["log.format, node.name"], "another name");
    // What is taken back waits no more; later it does so again.
    let back = json!({ "node_name": "n", "values": { "log.format": null } });
    assert_eq!(change(back).len(), 3);
    assert_eq!(change(json!({ "node_name": "b" }))[3..], first);
    // As what the file says by now, which somebody has edited.
    let path = daemon.dir.join("node.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}[log]\nformat = \"json\"\n")).unwrap();
    daemon.reload();
    for _ in 0..500 {
        if waiting(&daemon).len() > 4 {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    assert_eq!(waiting(&daemon)[4..], ["log.format, node.name"]);
}

#[test]
fn live_settings_hold_when_the_change_is_answered_and_others_wait() {
    let daemon = Daemon::start("settings_live");
    let reads = || daemon.get("/api/v1/status").0.as_u16();
    assert_eq!(reads(), 200);
    let values =
        json!({ "api.token_for_reads": true, "log.format": "json", "history.max_bytes": "16MiB" });
    let wanted = json!({ "values": values, "scrub_every_days": 7 });
    let (_, plan) = daemon.send("PATCH", &format!("{CONFIG}?dry_run=true"), &wanted);
    let newest = daemon.records.events().newest().map(|it| it.id);
    assert_eq!(reads(), 200, "only asked");
    let (status, done) = daemon.send("PATCH", CONFIG, &wanted);
    assert_eq!(status.as_u16(), 200, "{done}");
    assert_eq!(reads(), 401, "it holds at once");
    for answer in [&plan, &done] {
        let changes = &answer["changes"];
        for key in [
            "api.token_for_reads",
            "scrub.every_days",
            "history.max_bytes",
        ] {
            assert_eq!(when(changes, key), "now", "{answer}");
            assert_eq!(when(&answer["waiting"], key), "it is none", "{answer}");
        }
        assert_eq!(when(changes, "log.format"), "restart", "{answer}");
        assert_eq!(
            when(&answer["waiting"], "log.format"),
            "restart",
            "{answer}"
        );
    }
    let shown = shown(&daemon);
    let settings = shown["settings"].as_array().unwrap();
    let of = |key: &str| settings.iter().find(|it| it["key"] == key).unwrap();
    assert_eq!(of("scrub.every_days")["value"], "7");
    assert_eq!(of("scrub.every_days")["changed_here"], true);
    assert_eq!(of("log.format")["value"], Value::Null, "it waits");
    let waits = waiting(&daemon);
    assert_eq!(waits, ["log.format"], "what waits is an event, too");
    let event = daemon.records.events().newest().unwrap();
    assert_eq!(event.code, "config_applied", "{event:?}");
    assert!(
        newest.is_none_or(|newest| newest < event.id),
        "one of the change"
    );
    let keys = event.fields["settings"].as_str().unwrap();
    assert_eq!(
        keys,
        "api.token_for_reads, history.max_bytes, scrub.every_days"
    );
    // Back to what node.toml says, which is nothing.
    let back = json!({ "values": { "api.token_for_reads": null } });
    let (status, done) = daemon.send("PATCH", CONFIG, &back);
    assert_eq!((status.as_u16(), reads()), (200, 200), "{done}");
}

#[test]
fn a_reload_brings_what_is_live_of_node_toml_into_force_and_a_mistake_changes_nothing() {
    let daemon = Daemon::start("settings_reload");
    let path = daemon.dir.join("node.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let reads = || daemon.get("/api/v1/status").0.as_u16();
    std::fs::write(
        &path,
        text.replace("[api]", "[api]\ntoken_for_reads = true"),
    )
    .unwrap();
    assert_eq!(
        when(&shown(&daemon)["changes"], "api.token_for_reads"),
        "now"
    );
    assert_eq!(reads(), 200, "nobody has said so");
    let reload_until = |wanted: u16| {
        daemon.reload();
        for _ in 0..200 {
            if reads() == wanted {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(25));
        }
        panic!("it is not {wanted} within five seconds");
    };
    reload_until(401);
    assert_eq!(
        when(&shown(&daemon)["changes"], "api.token_for_reads"),
        "it is none"
    );
    // A file that cannot be used is not used in part.
    std::fs::write(&path, text.replace("tag = 1", "tag = 0")).unwrap();
    daemon.reload();
    std::thread::park_timeout(std::time::Duration::from_millis(300));
    assert_eq!(reads(), 401);
    std::fs::write(&path, text).unwrap();
    reload_until(200);
}

const RELOAD: &str = "/api/v1/config/reload";

#[test]
fn a_reload_that_is_refused_says_so_to_who_asked_and_in_status_event_and_metric_until_it_is_not() {
    let daemon = Daemon::start("settings_refused");
    let path = daemon.dir.join("node.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let problems = || {
        let (_, status) = daemon.send("GET", "/api/v1/status", &json!(null));
        (status["health"].clone(), status["problems"].to_string())
    };
    let metric = |value: u8| {
        let (_, text) = daemon.send("GET", "/metrics", &json!(null));
        let line = format!("causeway_config_reload_success {value}\n");
        text.as_str().unwrap().contains(&line)
    };
    let refusals = || {
        let events = daemon.records.events().newest().unwrap();
        (events.code.clone(), events.id)
    };
    assert!(metric(1) && !problems().1.contains("refused"));
    std::fs::write(&path, text.replace("tag = 1", "tag = 0")).unwrap();
    // Only asked: it is refused, and nothing is noted.
    let (status, _) = daemon.send("POST", &format!("{RELOAD}?dry_run=true"), &json!(null));
    assert_eq!((status.as_u16(), metric(1)), (400, true));
    let (status, problem) = daemon.send("POST", RELOAD, &json!(null));
    assert_eq!(status.as_u16(), 400, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("node.toml:6: portal_group[0].tag"),
        "{detail}"
    );
    let (health, said) = problems();
    assert_eq!(health, "degraded");
    assert!(
        said.contains("were refused") && said.contains("portal_group[0].tag"),
        "{said}"
    );
    assert!(metric(0));
    let (code, id) = refusals();
    assert_eq!(code, "settings_refused");
    // The same once more is no other event.
    daemon.send("POST", RELOAD, &json!(null));
    assert_eq!(refusals(), ("settings_refused".into(), id));
    let live = text.replace("[api]", "[scrub]\nevery_days = 9\n[api]");
    std::fs::write(&path, live).unwrap();
    let (status, done) = daemon.send("POST", RELOAD, &json!(null));
    assert_eq!(status.as_u16(), 200, "{done}");
    assert_eq!(when(&done["changes"], "scrub.every_days"), "now", "{done}");
    assert_eq!(when(&done["waiting"], "scrub.every_days"), "it is none");
    assert!(metric(1) && !problems().1.contains("refused"));
}

#[test]
fn a_pool_that_luns_lie_in_is_not_removed_nor_taken_away_by_a_restart() {
    let as_the_file_says = |config: &mut manifest::config::Config| {
        config.pools = settings::read_config(&config.file).unwrap().pools;
    };
    let daemon = Daemon::start_with("settings_remove_pool", as_the_file_says, Times::default());
    let remove = json!({ "remove_pool": "default" });
    let refused = |method: &str, path: &str, body: &Value| {
        let (status, problem) = daemon.send(method, path, body);
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (409, &json!("CWY5038")),
            "{problem}"
        );
        let hits = problem["hits"].as_array().unwrap().clone();
        assert!(
            hits[0].as_str().unwrap().starts_with("LUN l, "),
            "{problem}"
        );
    };
    let dry = format!("{CONFIG}?dry_run=true");
    let (status, plan) = daemon.send("PATCH", &dry, &remove);
    assert_eq!(status.as_u16(), 200, "nothing lies in it: {plan}");
    assert_eq!(when(&plan["changes"], "pool[0].path"), "restart");
    let notice = plan["notices"][0].as_str().unwrap();
    assert!(
        notice.contains("nothing is deleted") && notice.contains("pool"),
        "{plan}"
    );
    let lun = json!({ "name": "l", "size": "1GiB" });
    let (status, made) = daemon.send("POST", "/api/v1/luns", &lun);
    assert!(status.is_success(), "{made}");
    refused("PATCH", &dry, &remove);
    refused("PATCH", CONFIG, &remove);
    assert_eq!(file(&daemon), None);
    // A deleted one can come back.
    daemon.send("DELETE", "/api/v1/luns/l", &json!(null));
    refused("PATCH", CONFIG, &remove);
    daemon.send("POST", "/api/v1/luns/l/purge?force=true", &json!(null));
    let (status, done) = daemon.send("PATCH", CONFIG, &remove);
    assert_eq!(status.as_u16(), 200, "{done}");
    assert_eq!(last(&daemon).after["pool[0].path"], Value::Null);
    // None is made in it any more, and the plan says so.
    for path in ["/api/v1/luns", "/api/v1/luns?dry_run=true"] {
        let (status, problem) = daemon.send("POST", path, &lun);
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (409, &json!("CWY3013")),
            "{problem}"
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("LUN l would lie in pool default"),
            "{detail}"
        );
    }
    let (status, plan) = daemon.send("POST", "/api/v1/restart?dry_run=true", &json!(null));
    assert_eq!(status.as_u16(), 200, "nothing is left behind: {plan}");
    // With the pool back there is nothing against it.
    let add = json!({ "add_pool": { "name": "default", "path": "pool" } });
    let (status, done) = daemon.send("PATCH", CONFIG, &add);
    assert_eq!(status.as_u16(), 200, "{done}");
    let (status, made) = daemon.send("POST", "/api/v1/luns", &lun);
    assert!(status.is_success(), "{made}");
    // Whoever takes it out of the file by hand is not asked, and the restart is refused.
    let path = daemon.dir.join("node.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let without = text.replace("[[pool]]\nname = \"default\"\npath = \"pool\"\n", "");
    std::fs::write(&path, without).unwrap();
    refused("POST", "/api/v1/restart?dry_run=true", &json!(null));
    refused("POST", "/api/v1/restart", &json!(null));
}

#[test]
fn a_pool_is_not_removed_while_a_lun_is_made_in_it() {
    let daemon = Daemon::start("settings_remove_pool_meanwhile");
    let lun = json!({ "name": "l", "size": "1GiB" });
    let remove = json!({ "remove_pool": "default" });
    daemon.hold.on.store(true, SeqCst);
    std::thread::scope(|scope| {
        let made = scope.spawn(|| daemon.send("POST", "/api/v1/luns", &lun));
        while !daemon.hold.holds.load(SeqCst) {
            std::thread::yield_now();
        }
        let (status, problem) = daemon.send("PATCH", CONFIG, &remove);
        daemon.hold.on.store(false, SeqCst);
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (409, &json!("CWY5038")),
            "{problem}"
        );
        let (status, made) = made.join().unwrap();
        assert!(status.is_success(), "{made}");
    });
    assert_eq!(file(&daemon), None);
}

#[test]
fn the_plan_of_a_restart_names_whom_it_hits() {
    let daemon = Daemon::start("settings_hits");
    let (_, plan) = daemon.send("POST", "/api/v1/restart?dry_run=true", &json!(null));
    assert_eq!(plan["sessions"], 1, "{plan}");
    let hit = &plan["hits"][0];
    assert_eq!(
        (&hit["host"], &hit["sessions"][0]["id"]),
        (&json!("h"), &json!(4)),
        "{plan}"
    );
}

#[test]
fn other_machines_are_let_in_only_when_the_first_password_was_changed() {
    let daemon = Daemon::start("settings_first");
    let to = |at: &str| json!({ "portals": { "listen": [at] } });
    for at in ["192.0.2.2", "[2001:db8::1]:3260", "0.0.0.0", "eth1"] {
        for path in [CONFIG.to_owned(), format!("{CONFIG}?dry_run=true")] {
            let (status, problem) = daemon.send("PATCH", &path, &to(at));
            assert_eq!(
                (status.as_u16(), &problem["code"]),
                (409, &json!("CWY5039")),
                "{at}: {problem}"
            );
        }
    }
    assert_eq!(file(&daemon), None);
    let (status, done) = daemon.send("PATCH", CONFIG, &to("127.0.0.9:3261"));
    assert_eq!(status.as_u16(), 200, "{done}");
    let set = json!({ "password": crate::login_test::NEW });
    let (status, said) = daemon.send("PATCH", "/api/v1/users/admin", &set);
    assert_eq!(status.as_u16(), 200, "{said}");
    // What is refused now is that the address is no address of this machine.
    let (_, problem) = daemon.send("PATCH", CONFIG, &to("192.0.2.2"));
    assert_ne!(problem["code"], "CWY5039", "{problem}");
}
