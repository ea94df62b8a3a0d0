use super::*;
use serde_json::json;

const FILE: &str = r#"schema = 1
[node]
name = "san-a"      # a remark
state_dir = "data"
[[portal_group]]
name = "default"
tag = 1
listen = [
  { ip = "127.0.0.1", port = 3260 }, # the first
  { iface = "eth1" },
]
[[pool]]
name = "slow"
path = "/b"
[api]
listen = ["unix:api.sock"]
[log]
format = "text"
"#;

fn patch(value: &serde_json::Value) -> ConfigPatch {
    serde_json::from_value(value.clone()).unwrap()
}

fn changed(own: &OwnSettings, text: &str, value: &serde_json::Value) -> OwnSettings {
    own.patched(text, &patch(value)).unwrap()
}

fn parsed(text: &str, own: &OwnSettings) -> Result<Config, Vec<String>> {
    let parsed = parse_with(
        Path::new("node.toml"),
        text,
        Path::new("settings.json"),
        own,
    );
    parsed.map_err(|all| all.iter().map(ToString::to_string).collect())
}

fn all_four() -> OwnSettings {
    let value = json!({
        "node_name": "san-b",
        "portals": { "listen": ["192.0.2.1", "[2001:db8::1]:3261", "eth2", "eth3:3262"] },
        "add_pool": { "name": "fast", "path": "/srv/fa\"st", "journal": "/srv/j", "journal_size": "4GiB" },
        "scrub_every_days": 30,
    });
    changed(&OwnSettings::default(), FILE, &value)
}

#[test]
fn changes_stand_in_place_of_what_the_file_says_and_all_else_stays_on_its_line() {
    let own = all_four();
    let own = OwnSettings::read(&own.bytes()).unwrap();
    let config = parsed(FILE, &own).unwrap();
    let shown = config.portal_groups[0].listen.iter();
    let shown: Vec<String> = shown.map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "192.0.2.1:3260",
            "[2001:db8::1]:3261",
            "eth2:3260",
            "eth3:3262"
        ]
    );
    assert_eq!(
        (&*config.node_name, config.portal_groups[0].tag),
        ("san-b", 1)
    );
    assert_eq!(config.scrub_every_days, Some(30));
    let pool = &config.pools[1];
    assert_eq!(pool.place.paths(), [Path::new("/srv/fa\"st")]);
    assert_eq!(pool.journal_size.bytes(), 4 << 30);
    let settings = config.settings();
    let one = |key: &str| {
        let it = settings.iter().find(|it| it.key == key).unwrap();
        (it.line, it.changed_here)
    };
    for key in [
        "node.name",
        "portal_group[0].listen",
        "pool[1].path",
        "scrub.every_days",
    ] {
        assert_eq!(one(key), (None, true), "{key}");
    }
    for (key, line) in [("pool[0].path", 14), ("api.listen", 16), ("log.format", 18)] {
        assert_eq!(one(key), (Some(line), false), "{key}");
    }
    assert_eq!(config.place("pool[1].path"), "settings.json: pool[1].path");
    assert_eq!(config.place("pool[0].path"), "node.toml:14: pool[0].path");
}

#[test]
fn whoever_writes_last_decides() {
    let own = all_four();
    let later = FILE.replace("san-a", "san-c").replace(
        "[log]",
        "[[pool]]\nname = \"fast\"\npath = \"/c\"\n[scrub]\nevery_days = 7\n[log]",
    );
    let config = parsed(&later, &own).unwrap();
    assert_eq!(
        (&*config.node_name, config.scrub_every_days),
        ("san-c", Some(7))
    );
    assert_eq!(
        (config.pools.len(), config.portal_groups[0].listen.len()),
        (2, 4)
    );
    assert_eq!(config.pools[1].place.paths(), [Path::new("/c")]);
    assert_eq!(
        config.overtaken(),
        ["node.name", "pool fast", "scrub.every_days"]
    );
    // The next change drops what was overtaken, and counts again.
    let own = changed(&own, &later, &json!({ "node_name": "san-d" }));
    let config = parsed(&later, &own).unwrap();
    assert_eq!((&*config.node_name, config.overtaken()), ("san-d", vec![]));
    assert_eq!(config.portal_groups[0].listen.len(), 4);
}

#[test]
fn a_change_to_what_the_file_says_is_none() {
    let own = changed(
        &all_four(),
        FILE,
        &json!({ "node_name": "san-a", "scrub_every_days": 0, "portals": { "listen": ["127.0.0.1:3260", "eth1"] } }),
    );
    let config = parsed(FILE, &own).unwrap();
    assert_eq!(
        (&*config.node_name, config.scrub_every_days),
        ("san-a", None)
    );
    // An interface without a port is written as one with it: the same portals, said otherwise.
    assert_eq!(config.portal_groups[0].listen.len(), 2);
    assert!(
        !config
            .settings()
            .iter()
            .any(|it| it.key == "node.name" && it.changed_here)
    );
}

#[test]
fn what_is_no_change_of_these_four_is_refused() {
    for wrong in [
        json!({ "alert_command": { "name": "x", "argv": ["/bin/sh"] } }),
        json!({ "api": { "listen": ["0.0.0.0:80"] } }),
        json!({ "api_listen": ["0.0.0.0:80"] }),
        json!({ "state_dir": "/tmp" }),
        json!({ "add_pool": { "name": "x", "path": "/x", "argv": ["/bin/sh"] } }),
        json!({ "portals": { "listen": ["eth1"], "tag": 2 } }),
    ] {
        let read = serde_json::from_value::<ConfigPatch>(wrong.clone());
        assert!(read.is_err(), "{wrong}");
    }
    for (wrong, field) in [
        (json!({ "portals": { "listen": [] } }), "portals.listen"),
        (
            json!({ "portals": { "listen": ["eth1", "192.0.2.300"] } }),
            "portals.listen[1]",
        ),
        (
            json!({ "portals": { "listen": ["eth1 }, { ip"] } }),
            "portals.listen[0]",
        ),
        (
            json!({ "portals": { "group": "b", "listen": ["eth1"] } }),
            "portals.group",
        ),
        (
            json!({ "add_pool": { "name": "x", "path": "x" } }),
            "add_pool.path",
        ),
        (
            json!({ "add_pool": { "name": "x", "path": "/x\n[api]" } }),
            "add_pool.path",
        ),
        (
            json!({ "add_pool": { "name": "x", "path": "/x", "journal": "j" } }),
            "add_pool.journal",
        ),
        (
            json!({ "add_pool": { "name": "slow", "path": "/x" } }),
            "add_pool.name",
        ),
    ] {
        let faults = OwnSettings::default()
            .patched(FILE, &patch(&wrong))
            .unwrap_err();
        assert_eq!(faults[0].field, field, "{wrong}: {faults:?}");
    }
}

#[test]
fn texts_that_try_to_be_more_toml_stay_texts() {
    let evil = "x\"\n[[alert_command]]\nname = \"e\"\nargv = [\"/bin/sh\"]\n#";
    for value in [
        json!({ "node_name": evil }),
        json!({ "add_pool": { "name": evil, "path": "/x" } }),
        json!({ "add_pool": { "name": "x", "path": "/x", "journal": "/j", "journal_size": evil } }),
        json!({ "add_pool": { "name": "x", "path": "/x'''\"\"\"" } }),
    ] {
        let own = changed(&OwnSettings::default(), FILE, &value);
        if let Ok(config) = parsed(FILE, &own) {
            assert_eq!(config.alert_commands, [], "{value}");
            assert_eq!(config.pools[1].place.paths(), [Path::new("/x'''\"\"\"")]);
        }
    }
}

#[test]
fn what_the_checks_of_the_file_refuse_is_refused_and_blamed_on_the_change() {
    for (value, wanted) in [
        (json!({ "node_name": "a b" }), "settings.json: node.name: "),
        (
            json!({ "add_pool": { "name": "x", "path": "/b" } }),
            "settings.json: pool[1].path: ",
        ),
        (
            json!({ "add_pool": { "name": "x", "path": "/x", "journal": "/j", "journal_size": "1K" } }),
            "settings.json: pool[1].journal_size: ",
        ),
        (
            json!({ "scrub_every_days": 4000 }),
            "settings.json: scrub.every_days: ",
        ),
    ] {
        let own = changed(&OwnSettings::default(), FILE, &value);
        let wrong = parsed(FILE, &own).unwrap_err();
        assert!(wrong[0].starts_with(wanted), "{value}: {wrong:?}");
    }
    // A mistake of the file stays the file's.
    let wrong = parsed(&FILE.replace("tag = 1", "tag = 0"), &all_four()).unwrap_err();
    assert!(wrong[0].starts_with("node.toml:7: "), "{wrong:?}");
}

#[test]
fn values_stand_in_place_of_what_the_file_says_wherever_it_is_said() {
    let file = FILE.replace(
        "[log]",
        "[session]\nlogin_seconds = 20\nping_after_seconds = 21\n[log]",
    );
    let wanted = json!({ "values": {
        "history.max_bytes": "2GiB", "session.login_seconds": 5, "session.data_seconds": 6, "log.format": "json",
        "api.token_for_reads": true,
    } });
    let own = changed(&OwnSettings::default(), &file, &wanted);
    let own = OwnSettings::read(&own.bytes()).unwrap();
    let config = parsed(&file, &own).unwrap();
    assert_eq!(config.history.max_bytes, 2 << 30);
    let times = [
        config.session.login,
        config.session.data,
        config.session.ping_after,
    ];
    assert_eq!(times.map(|it| it.as_secs()), [5, 6, 21]);
    assert!(config.api_settings.token_for_reads);
    assert_eq!(config.log, crate::config::LogFormat::Json);
    let settings = config.settings();
    let one = |key: &str| {
        let it = settings.iter().find(|it| it.key == key).unwrap();
        (it.value.clone().unwrap(), it.line, it.changed_here)
    };
    assert_eq!(one("session.login_seconds"), ("5".to_owned(), None, true));
    assert_eq!(
        one("history.max_bytes"),
        ("\"2GiB\"".to_owned(), None, true)
    );
    assert_eq!(
        one("session.ping_after_seconds"),
        ("21".to_owned(), Some(19), false)
    );
    // Null brings back what the file says; so does what the file says.
    let back = json!({ "values": { "history.max_bytes": null, "session.login_seconds": 20 } });
    let own = changed(&own, &file, &back);
    let config = parsed(&file, &own).unwrap();
    assert_eq!(
        (config.history.max_bytes, config.session.login.as_secs()),
        (1 << 30, 20)
    );
    assert_eq!(config.session.data.as_secs(), 6);
    // The file was changed later: it holds.
    let later = file.replace("[session]", "[session]\ndata_seconds = 7");
    let config = parsed(&later, &own).unwrap();
    assert_eq!(
        (config.session.data.as_secs(), config.overtaken()),
        (7, vec!["session.data_seconds".to_owned()])
    );
}

#[test]
fn values_that_are_not_for_the_api_or_that_a_start_refuses_are_refused() {
    for key in [
        "alert_command.argv",
        "api.certificate",
        "node.state_dir",
        "runtime.cores",
        "x\n[api]",
    ] {
        let wanted = json!({ "values": { key: "x" } });
        let faults = OwnSettings::default()
            .patched(FILE, &patch(&wanted))
            .unwrap_err();
        assert_eq!(faults[0].field, format!("values.{key}"));
    }
    let open = json!({ "values": { "api.token_for_reads": false } });
    let own = changed(&OwnSettings::default(), FILE, &open);
    assert_eq!(own, OwnSettings::default(), "it is so already");
    let strict = FILE.replace("[api]", "[api]\ntoken_for_reads = true");
    let faults = OwnSettings::default()
        .patched(&strict, &patch(&open))
        .unwrap_err();
    assert!(faults[0].message.contains("node.toml"), "{faults:?}");
    for (key, value) in [
        (
            "session.login_seconds",
            json!("x\"\n[[alert_command]]\nname = \"e\"\nargv = [\"/bin/sh\"]\n#"),
        ),
        ("session.login_seconds", json!(0)),
        ("history.max_bytes", json!("1KiB")),
        ("log.format", json!(true)),
    ] {
        let own = changed(
            &OwnSettings::default(),
            FILE,
            &json!({ "values": { key: value } }),
        );
        let wrong = parsed(FILE, &own).unwrap_err();
        assert!(
            wrong[0].starts_with(&format!("settings.json: {key}: ")),
            "{wrong:?}"
        );
    }
}

const TWO: &str = r#"
[[pool]]
name = "fast"
path = "/f"
journal = "/j"
"#;

#[test]
fn a_pool_that_is_removed_is_gone_until_the_file_says_something_else_of_it() {
    let file = format!("{FILE}{TWO}");
    let more = json!({ "add_pool": { "name": "more", "path": "/m" }, "remove_pool": "slow" });
    let own = changed(&OwnSettings::default(), &file, &more);
    let own = OwnSettings::read(&own.bytes()).unwrap();
    let config = parsed(&file, &own).unwrap();
    let names: Vec<&str> = config.pools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["fast", "more"]);
    assert_eq!(config.place("pool[0].path"), "node.toml:22: pool[0].path");
    assert_eq!(config.place("pool[1].path"), "settings.json: pool[1].path");
    // The one behind it has not changed.
    let before = crate::config::parse(Path::new("node.toml"), &file).unwrap();
    let changes = before.changes_to(&config).into_iter();
    let changes: Vec<(String, bool)> = changes.map(|it| (it.key, it.in_file.is_some())).collect();
    let wanted = [
        ("pool[0].name", false),
        ("pool[0].path", false),
        ("pool[2].name", true),
        ("pool[2].path", true),
    ];
    assert_eq!(changes, wanted.map(|(key, is)| (key.to_owned(), is)));
    // What was added here goes for good.
    let own = changed(&own, &file, &json!({ "remove_pool": "more" }));
    assert_eq!(parsed(&file, &own).unwrap().pools.len(), 1);
    for name in ["more", "slow", "none"] {
        let faults = own
            .patched(&file, &patch(&json!({ "remove_pool": name })))
            .unwrap_err();
        assert_eq!(faults[0].field, "remove_pool");
        assert!(faults[0].message.ends_with("there is fast"), "{faults:?}");
    }
    let later = file.replace("\"/b\"", "\"/b2\"");
    let config = parsed(&later, &own).unwrap();
    assert_eq!(
        (config.pools.len(), config.overtaken()),
        (2, vec!["pool slow".to_owned()])
    );
    let own = changed(&own, &later, &json!({ "scrub_every_days": 3 }));
    assert!(
        !String::from_utf8(own.bytes())
            .unwrap()
            .contains("removed_pools"),
        "it is forgotten"
    );
}

#[test]
fn a_removed_pool_comes_back_as_it_was_and_another_one_does_not_take_its_name() {
    let file = format!("{FILE}{TWO}");
    let own = changed(
        &OwnSettings::default(),
        &file,
        &json!({ "remove_pool": "fast" }),
    );
    let other = json!({ "add_pool": { "name": "fast", "path": "/other" } });
    let faults = own.patched(&file, &patch(&other)).unwrap_err();
    assert!(faults[0].message.contains("was removed here"), "{faults:?}");
    let same = json!({ "add_pool": { "name": "fast", "path": "/f", "journal": "/j" } });
    assert_eq!(changed(&own, &file, &same), OwnSettings::default());
    let faults = OwnSettings::default()
        .patched(&file, &patch(&same))
        .unwrap_err();
    assert!(faults[0].message.contains("already"), "{faults:?}");
}

#[test]
fn portals_are_read_from_what_is_written_as_people_type_them() {
    let value = "[{ ip = \"127.0.0.1\", port = 3261 }, { iface = \"eth1\" }, { ip = \"::1\" }]";
    let all = portals(value);
    assert_eq!(all, ["127.0.0.1:3261", "eth1:3260", "[::1]:3260"]);
    for typed in &all {
        assert_eq!(portal(typed).as_ref(), Ok(typed));
    }
    assert_eq!(portal("10.0.0.1").unwrap(), "10.0.0.1:3260");
    assert!(portal("10.0").is_err());
    assert!(portals("[").is_empty());
}
