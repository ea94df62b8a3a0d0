//! The command line against the daemon, both as processes, as a script would use them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod adoption;
mod adoption_unverified;
mod alerts;
mod api;
mod away;
mod config;
mod confirm;
mod disks;
mod gone;
mod image_files;
mod images;
mod integrity;
mod interface;
mod jobs;
mod journal;
mod live;
mod log;
mod login;
mod members;
mod mode_sense;
mod output;
mod paths;
mod place;
mod pool;
mod records;
mod repair;
mod room;
mod scrub;
mod session_times;
mod shares;
#[path = "../../../proof/tests/common/small_file_system.rs"]
mod small_file_system;
mod support;
mod task_aborted;
mod top;
mod trials;
mod upgrade;
mod usage;

use place::{Daemon, Place, text_of};
use std::path::Path;

const OBJECTS: &str = r#"
[[lun]]
name = "vm01"
size = "16MiB"
[[lun]]
name = "mem"
size = "16MiB"
backend = "memory"
[[target]]
name = "t1"
[[host]]
name = "esx01"
iqn = ["iqn.1998-01.com.vmware:esx01"]
chap = { user = "esx01", secret_file = "esx01.secret", mutual_user = "san", mutual_secret_file = "san.secret" }
[[grant]]
host = "esx01"
lun = "vm01"
target = "t1"
lun_id = 0
"#;

fn with_objects(name: &str) -> (Place, Daemon) {
    let place = Place::new(name);
    place.write("esx01.secret", "very-secret-one\n");
    place.write("san.secret", "very-secret-two\n");
    place.write("objects.toml", OBJECTS);
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    (place, daemon)
}

#[test]
fn exit_codes_are_the_promised_ones() {
    let place = Place::new("codes");
    place.run(7, "status");
    place.run(2, "lun create");
    place.run(2, "nonsense");
    let daemon = place.start();
    place.run(0, "status");
    for noun in ["lun", "target", "host", "grant", "session"] {
        place.run(0, &format!("{noun} ls"));
        let list = place.json(&format!("{noun} ls"));
        assert_eq!(list, serde_json::json!([]));
    }
    place.run(3, "lun show none");
    place.run(3, "session drop 99");
    place.run(3, "lun delete none");
    place.run(0, "lun delete none --if-exists");
    place.run(0, "lun create a --size 1M");
    let again = place.run(4, "lun create a --size 1M");
    assert!(
        again.contains("error[CWY3002]: there is a lun \"a\" already"),
        "{again}"
    );
    assert!(again.contains("more: causeway explain CWY3002"), "{again}");
    place.run(0, "lun create a --size 1M --if-not-exists");
    place.run(2, "lun create b --size 1000");
    place.run(2, "lun set a szie=1");
    place.run(5, "lun set a block_size=4096");
    place.run(0, "lun set a size=2M name=c");
    place.run(4, "lun purge c");
    place.run(0, "lun delete c");
    place.run(4, "lun create c --size 1M");
    place.run(0, "lun restore c");
    assert_eq!(place.json("lun show c")["size"], 2 << 20);
    place.run(0, "lun delete c");
    place.run(0, "lun purge c --yes");
    place.run(3, "lun purge c");
    place.run(0, "lun purge c --if-exists");
    daemon.stop();
    place.run(7, "status");
}

#[test]
fn apply_export_and_a_restart_keep_everything_and_show_no_secret() {
    let (place, daemon) = with_objects("apply");
    let plan = place.run(0, "apply -f objects.toml --prune");
    assert_eq!(plan, "nothing to change\n");
    let exported = place.run(0, "export");
    assert!(
        exported.contains("secret_file = \"<stored>\""),
        "{exported}"
    );
    let pruned = place.run_with(&place.api(), &["apply", "-f", "-", "--prune"], &exported);
    assert_eq!(text_of(&pruned, 0, "export | apply"), "nothing to change\n");
    let before = place.json("lun show vm01");
    let mut seen = exported;
    for command in [
        "host ls -o json",
        "host show esx01",
        "export -o json",
        "status -o json",
    ] {
        seen.push_str(&place.run(0, command));
    }
    let generation = &place.json("status")["generation"];
    let kept = place.run(0, &format!("state show {generation} -o json"));
    assert!(kept.contains("\"name\": \"esx01\""), "{kept}");
    seen.push_str(&kept);
    seen.push_str(&daemon.stop());
    let daemon = place.start();
    let after = place.json("lun show vm01");
    assert_eq!(
        (&before["naa"], &before["serial"]),
        (&after["naa"], &after["serial"])
    );
    assert_eq!(
        place.run(0, "apply -f objects.toml --prune"),
        "nothing to change\n"
    );
    for entry in std::fs::read_dir(place.path("data")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("objects-") {
            seen.push_str(&std::fs::read_to_string(&path).unwrap());
        }
        if name.starts_with("secrets-") || name == "api.token" {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
    assert!(!seen.contains("very-secret"), "{seen}");
    daemon.stop();
}

#[test]
fn objects_survive_a_kill_and_a_lost_file_leaves_its_lun_in_place() {
    let (place, daemon) = with_objects("kill");
    daemon.kill();
    let daemon = place.start();
    let naa = place.json("lun show vm01")["naa"]
        .as_str()
        .unwrap()
        .to_owned();
    daemon.stop();
    std::fs::remove_file(place.path(&format!("data/pool/{naa}.lun"))).unwrap();
    let daemon = place.start();
    let lun = place.json("lun show vm01");
    assert_eq!(lun["state"], "offline");
    assert!(lun["reason"].as_str().unwrap().contains(&naa), "{lun}");
    let status = place.json("status");
    assert_eq!(status["health"], "degraded");
    assert_eq!(status["counts"]["luns_offline"], 1);
    assert_eq!(place.json("grant ls")[0]["lun_id"], 0);
    place.run(0, "lun delete vm01");
    place.run(0, "lun purge vm01 --yes");
    daemon.stop();
}

#[test]
fn a_configuration_that_cannot_be_used_is_named_by_file_line_and_key() {
    let place = Place::new("config");
    let good = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let serve = |text: &str| {
        place.write("node.toml", text);
        let words = ["serve", "--config", "node.toml"];
        text_of(&place.run_with("", &words, ""), 2, text)
    };
    let wrong = serve(&good.replace("state_dir", "state_dri"));
    assert!(
        wrong.contains("node.toml:4: node.state_dri: unknown key, did you mean \"state_dir\"?"),
        "{wrong}"
    );
    let later = serve(&good.replace("state_dir", "site = \"a\"\nstate_dir"));
    assert!(
        later.contains("node.toml:4: node.site: not in this version yet"),
        "{later}"
    );
    place.write("file", "");
    let pool = serve(&good.replace("data/pool", "file"));
    assert!(pool.contains("node.toml:11: pool[0].path: "), "{pool}");
    let absent = place.run_with("", &["serve", "--config", "none.toml"], "");
    assert!(text_of(&absent, 2, "absent").contains("none.toml"));
    place.write("node.toml", &good);
    place.start().stop();
}

#[test]
fn every_mistake_of_an_objects_file_is_listed_with_its_line() {
    let (place, daemon) = with_objects("mistakes");
    let wrong = OBJECTS
        .replace("16MiB", "1000")
        .replace("lun_id = 0", "lun_id = 16384");
    place.write("wrong.toml", &wrong);
    let output = place.run(2, "apply -f wrong.toml");
    for line in [4, 7, 19] {
        assert!(
            output.contains(&format!("wrong.toml:{line}: ")),
            "{line}: {output}"
        );
    }
    let dangling = OBJECTS
        .replace("lun = \"vm01\"", "lun = \"vm0\"")
        .replace("[[target]]", "[[target]]\nportal_group = \"x\"");
    place.write("dangling.toml", &dangling);
    let output = place.run(2, "apply -f dangling.toml --prune");
    assert!(
        output.contains(
            "dangling.toml:10: target \"t1\", portal_group: node.toml has no portal group \"x\""
        ),
        "{output}"
    );
    assert!(
        output.contains("did you mean \"vm01\"?") || output.contains("there is no lun \"vm0\""),
        "{output}"
    );
    assert_eq!(
        place.run(0, "apply -f objects.toml --prune"),
        "nothing to change\n"
    );
    daemon.stop();
}

#[test]
fn over_tcp_a_change_takes_the_token() {
    let (place, daemon) = with_objects("tcp");
    let status = place.json("status");
    let address = status["api"][1].as_str().unwrap().to_owned();
    let tcp = |code: i32, words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        text_of(
            &place.run_with(&address, &words, ""),
            code,
            &words.join(" "),
        )
    };
    tcp(0, "lun ls");
    tcp(0, "export");
    let refused = tcp(5, "lun create x --size 1M");
    assert!(refused.contains("api.token"), "{refused}");
    tcp(0, "lun create x --size 1M --token-file data/api.token");
    place.run(0, "lun show x");
    daemon.stop();
}

#[test]
fn a_second_daemon_on_the_same_state_is_refused_and_the_first_goes_on() {
    let place = Place::new("second");
    let daemon = place.start();
    let second = place.run_with("", &["serve", "--config", "node.toml"], "");
    let output = text_of(&second, 4, "second");
    assert!(output.contains("error[CWY1007]"), "{output}");
    place.run(0, "status");
    daemon.stop();
}

#[test]
fn a_share_is_one_step_and_prints_how_to_connect() {
    let place = Place::new("share");
    let daemon = place.start();
    let output = place.run(
        0,
        "share create vm01 --size 16M --for iqn.1998-01.com.vmware:esx01",
    );
    for text in [
        "iscsiadm -m node -T iqn.2026-11.io.causeway:vm01 --login",
        "Connect-IscsiTarget",
        "esxcli iscsi",
        "pvesm add iscsi",
        "iscsi://127.0.0.1:",
    ] {
        assert!(output.contains(text), "{text}\n{output}");
    }
    assert_eq!(place.json("host ls")[0]["name"], "esx01");
    let again = place.run(0, "share create vm02 --size 16M --for esx01 --target vm01");
    assert!(again.contains("number 1"), "{again}");
    place.run(4, "share create vm02 --size 16M --for esx01");
    place.run(2, "share create vm03 --size 16M --for nobody");
    place.run(0, "share create open --size 16M --for *");
    assert_eq!(place.json("host show everyone")["iqn"][0], "*");
    place.run(0, "share create open2 --size 16M --for * --target open");
    place.run(0, "lun delete open");
    place.run(0, "lun delete open2");
    place.run(0, "target delete open");
    place.run(0, "grant delete esx01 vm02");
    place.run(0, "target rename vm01 san");
    place.run(0, "host set esx01 iqn=iqn.1998-01.com.vmware:new");
    let grants = place.json("grant ls");
    assert_eq!(
        (&grants[0]["target"], grants.as_array().unwrap().len()),
        (&"san".into(), 1)
    );
    assert_eq!(
        place.json("target ls")[0]["iqn"],
        "iqn.2026-11.io.causeway:vm01"
    );
    daemon.stop();
}

/// Compares with a file in tests/golden; UPDATE_GOLDEN=1 writes it.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == text,
        "{name} differs: review the change, then UPDATE_GOLDEN=1\n{text}"
    );
}

#[test]
fn help_texts_are_what_was_agreed() {
    let place = Place::new("help");
    let mut all = String::new();
    for command in [
        "",
        "serve",
        "status",
        "lun",
        "lun create",
        "lun set",
        "target",
        "target create",
        "host",
        "host create",
        "grant",
        "grant create",
        "session",
        "share create",
        "attach",
        "apply",
        "export",
        "explain",
    ] {
        let mut words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
        words.push("--help");
        let text = text_of(&place.run_with("", &words, ""), 0, command);
        all.push_str(&format!("$ causeway {}\n{text}\n", words.join(" ")));
    }
    golden("help.txt", &all);
}

#[test]
fn explaining_completing_and_the_manual_need_no_daemon() {
    let place = Place::new("offline");
    golden("explain-CWY2003.txt", &place.run(0, "explain CWY2003"));
    place.run(3, "explain CWY9999");
    let script = place.run(0, "completions bash");
    assert!(
        script.contains("complete -o bashdefault -F _causeway causeway"),
        "{script}"
    );
    for shell in ["zsh", "fish"] {
        let script = place.run(0, &format!("completions {shell}"));
        assert!(script.contains("COMPLETE="), "{script}");
    }
    place.run(0, "man pages");
    let page = std::fs::read_to_string(place.path("pages/causeway-lun-create.1")).unwrap();
    assert!(page.contains("block"), "{page}");
}

#[test]
fn metrics_are_served_within_their_budget_of_series() {
    let (place, daemon) = with_objects("metrics");
    let text = place.metrics();
    let of_lun = text
        .lines()
        .filter(|line| line.contains("lun=\"vm01\""))
        // Those of a path have a budget of their own: twelve for each host and LUN.
        .filter(|line| !line.contains("host=\""))
        .count();
    let of_path = text
        .lines()
        .filter(|line| line.contains("lun=\"vm01\"") && line.contains("host=\"esx01\""))
        .count();
    assert!((1..=12).contains(&of_path), "{of_path} series: {text}");
    assert!((10..=40).contains(&of_lun), "{of_lun} series: {text}");
    assert!(
        text.contains(
            "causeway_lun_latency_seconds_count{lun=\"vm01\",op=\"write\",stage=\"total\"} 0"
        ),
        "{text}"
    );
    daemon.stop();
}

#[test]
fn the_examples_that_are_shipped_can_be_used() {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist");
    let node = std::fs::read_to_string(dist.join("node.toml")).unwrap();
    manifest::config::parse(&dist.join("node.toml"), &node).unwrap();
    let place = Place::new("dist");
    place.write(
        "objects.toml",
        &std::fs::read_to_string(dist.join("objects.toml")).unwrap(),
    );
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    assert_eq!(place.json("lun ls")[0]["physical_block_size"], 4096);
    daemon.stop();
}
