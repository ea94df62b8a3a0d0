//! `causeway config`: what is in force, what the file says by now, whether a start would take it.

use crate::place::Place;

#[test]
fn what_is_in_force_and_what_the_file_says_by_now_are_distinguished() {
    let place = Place::new("config");
    let before = std::fs::read_to_string(place.path("node.toml")).unwrap();
    // Without a daemon only the file can be read.
    let page = place.run(0, "config check -c node.toml");
    assert!(page.contains("node.toml: no mistakes, "), "{page}");
    place.run(7, "config diff");
    let daemon = place.start();
    let shown = place.run(0, "config show");
    let line = shown.lines().find(|line| line.starts_with("pool[0].path"));
    assert_eq!(
        line.map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["pool[0].path", "\"data/pool\"", "line", "11"])
    );
    assert!(!shown.contains("coalesce_us"), "{shown}");
    let all = place.run(0, "config show --all");
    assert!(all.contains("runtime.coalesce_us"), "{all}");
    let diff = place.run(0, "config diff");
    assert!(diff.contains("is in force"), "{diff}");

    place.write(
        "node.toml",
        &before.replace("cores = [0]", "cores = \"auto\""),
    );
    let diff = place.run(0, "config diff");
    let wanted = "runtime.cores: [0] in force, \"auto\" in the file [after a restart]";
    assert!(
        diff.contains(wanted) && diff.contains("no host is logged in"),
        "{diff}"
    );
    let json = place.json("config diff");
    assert_eq!(json["changes"][0]["takes_effect"], "restart");

    // A mistake is named with its line, by the check and by the daemon, which runs on.
    place.write("node.toml", &before.replace("cores = [0]", "colour = 1"));
    for command in ["config check -c node.toml", "config diff"] {
        let output = place.run_with(&place.api(), &command.split(' ').collect::<Vec<_>>(), "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(
            said.contains("node.toml:15: runtime.colour"),
            "{command}: {said}"
        );
    }
    place.run(0, "lun ls");
    drop(daemon);
}

/// When the daemon that answers was started.
fn started(place: &Place) -> Option<String> {
    let output = place.run_with(&place.api(), &["status", "-o", "json"], "");
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    status["started"].as_str().map(str::to_owned)
}

fn restart(place: &Place) {
    let before = started(place).unwrap();
    place.run(0, "config restart");
    for _ in 0..600 {
        if started(place).is_some_and(|now| now != before) {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
    panic!("it did not begin anew within half a minute");
}

#[test]
fn settings_are_changed_by_the_command_line_and_hold_after_a_restart_of_the_same_process() {
    let place = Place::new("config_set");
    let daemon = place.start();
    place.run(0, "lun create kept --size 1M");
    let said = place.run(
        0,
        "config set --name san-b --portals 127.0.0.2:0,lo:0 --scrub-every 30 --dry-run",
    );
    assert!(
        said.contains("node.name: \"n\" before, \"san-b\" now [after a restart]"),
        "{said}"
    );
    assert!(
        place.run(0, "config diff").contains("is in force"),
        "only asked"
    );
    place.run(
        0,
        "config set --name san-b --portals 127.0.0.2:0 --scrub-every 30",
    );
    let fast = place.path("fast");
    let path = fast.display();
    place.run(
        0,
        &format!(
            "config add-pool fast --path {path} --journal {path}.journal --journal-size 16MiB"
        ),
    );
    assert!(!fast.exists(), "a start makes it");
    place.run(2, &format!("config add-pool again --path {path}/no/such"));
    place.run(2, "config set");
    let diff = place.run(0, "config diff");
    assert!(
        diff.contains("pool[1].name: not there in force, \"fast\" in the file"),
        "{diff}"
    );
    restart(&place);
    let status = place.json("status");
    assert_eq!(status["node"], "san-b");
    let portal = status["portals"][0]["address"].as_str().unwrap();
    assert!(portal.starts_with("127.0.0.2:"), "{status}");
    place.run(0, "lun create quick --size 1M --pool fast");
    assert_eq!(place.json("lun show kept")["state"], "online");
    let shown = place.run(0, "config show");
    assert!(shown.contains("by config set"), "{shown}");
    let diff = place.run(0, "config diff");
    assert!(diff.contains("is in force"), "{diff}");
    // Without a daemon the file is read with them, as a start reads it.
    let said = place.run(0, "config check -c node.toml");
    assert!(said.contains("node.toml: no mistakes"), "{said}");
    let log = daemon.stop();
    assert!(log.contains("a restart was asked for"), "{log}");
}

#[test]
fn a_later_change_of_the_file_counts_and_damage_of_the_settings_is_named() {
    let place = Place::new("config_last");
    let daemon = place.start();
    place.run(0, "config set --name san-b");
    let text = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write(
        "node.toml",
        &text.replace("name = \"n\"", "name = \"san-c\""),
    );
    restart(&place);
    assert_eq!(place.json("status")["node"], "san-c");
    place.run(0, "config set --name san-d");
    restart(&place);
    assert_eq!(place.json("status")["node"], "san-d");
    // Where the file is all that holds, earlier changes do not.
    place.write(
        "node.toml",
        &text.replace("[api]", "[api]\nchange_settings = false"),
    );
    restart(&place);
    assert_eq!(place.json("status")["node"], "n");
    let said = place.run(5, "config set --name san-e");
    assert!(said.contains("CWY5036"), "{said}");
    place.write("data/settings.json", "{");
    let said = place.run(2, "config check -c node.toml");
    assert!(
        said.contains("settings.json") && said.contains(".before"),
        "{said}"
    );
    let said = place.run(5, "config restart");
    assert!(said.contains("CWY5037"), "{said}");
    drop(daemon);
}

#[test]
fn live_settings_hold_at_once_and_portals_move() {
    let place = Place::new("config_live");
    let daemon = place.start();
    let started = started(&place).unwrap();
    let before = place.json("status")["portals"][0]["address"].clone();
    let set =
        "config set --portals 127.0.0.2:0 --scrub-every 7 session.data_seconds=9 log.format=json";
    let said = place.run(0, &format!("{set} --dry-run"));
    assert!(
        said.contains("session.data_seconds: default before, 9 now [at once]"),
        "{said}"
    );
    let said = place.run(0, set);
    for line in [
        "scrub.every_days: default before, 7 now [in effect now]",
        "log.format: default before, \"json\" now [after a restart]",
        "config restart",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let moved = || {
        let status = place.json("status");
        let portals = status["portals"].as_array().unwrap().clone();
        portals.len() == 1
            && portals[0]["address"]
                .as_str()
                .unwrap()
                .starts_with("127.0.0.2:")
    };
    let mut left = 100;
    while !moved() {
        left -= 1;
        assert!(
            left > 0,
            "the portal is still at {before}: {}",
            place.json("status")
        );
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
    assert_eq!(
        self::started(&place),
        Some(started),
        "it is the same daemon"
    );
    let diff = place.run(0, "config diff");
    assert!(
        diff.contains("log.format") && !diff.contains("scrub"),
        "{diff}"
    );
    let said = place.run(2, "config set node.state_dir=/tmp");
    assert!(said.contains("history.max_bytes"), "{said}");
    place.run(2, "config set history.max_bytes");
    let events = place.run(0, "event ls");
    assert!(events.contains("settings came into force"), "{events}");
    // What somebody wrote into the file is said to wait for a reload.
    let text = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write(
        "node.toml",
        &format!("{text}\n[history]\nmax_bytes = \"32MiB\"\n"),
    );
    place.run(0, "config set log.format=");
    let diff = place.run(0, "config diff");
    assert!(
        diff.contains("[after a reload]") && diff.contains("config reload"),
        "{diff}"
    );
    drop(daemon);
}

#[test]
fn a_pool_is_removed_when_nothing_lies_in_it_and_what_is_in_its_place_stays() {
    let place = Place::new("config_remove_pool");
    let daemon = place.start();
    let fast = place.path("fast");
    let add = format!("config add-pool fast --path {}", fast.display());
    place.run(0, &add);
    restart(&place);
    place.run(0, "lun create quick --size 1M --pool fast");
    let said = place.run(5, "config remove-pool fast");
    assert!(
        said.contains("CWY5038")
            && said.contains("it has 1 LUN")
            && said.contains("LUN quick, 1MiB: no host"),
        "{said}"
    );
    place.run(0, "lun delete quick");
    let said = place.run(5, "config remove-pool fast --dry-run");
    assert!(said.contains("lun purge quick"), "{said}");
    place.run(0, "lun purge quick --yes");
    let said = place.run(0, "config remove-pool fast");
    let path = format!("nothing is deleted: {} stays", fast.display());
    assert!(
        said.contains("pool[1].name: \"fast\" before, not there now [after a restart]"),
        "{said}"
    );
    assert!(said.contains(&path), "{said}");
    let said = place.run(2, "config remove-pool fast");
    assert!(
        said.contains("there is no pool \"fast\"; there is default"),
        "{said}"
    );
    // It is served until then, and taken back with the words that made it.
    assert!(place.run(0, "pool ls").contains("fast"));
    place.run(0, &add);
    assert!(place.run(0, "config diff").contains("is in force"));
    place.run(0, "config remove-pool fast");
    let said = place.run(0, "config restart --dry-run");
    assert!(
        said.contains("would restart") && said.contains("no host is logged in"),
        "{said}"
    );
    restart(&place);
    assert!(!place.run(0, "pool ls").contains("fast"));
    assert!(fast.join("pool.toml").exists());
    drop(daemon);
}
