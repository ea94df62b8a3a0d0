//! What people and scripts meet first: mistakes, monitoring, completions, and a host without a
//! grant.

use crate::place::{Place, text_of};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// Standard error of a command that must end with `code`.
fn complaint(place: &Place, code: i32, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let output = place.run_with(&place.api(), &words, "");
    text_of(&output, code, line);
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn every_error_is_a_document_where_a_document_is_asked_for() {
    let place = Place::new("json-errors");
    place.write("objects.toml", "schema = 1\n[[lun]]\nname = 1\n");
    for (code, line, error) in [
        (2, "lun create -o json", "CWY5009"),
        (2, "lun create a --size 1X --output=json", "CWY5009"),
        (2, "-o json", "CWY5009"),
        (2, "nonsense -o json", "CWY5009"),
        (2, "lun nonsense -ojson", "CWY5009"),
        (7, "lun ls -o json", "CWY5001"),
        (2, "serve --config none.toml -o json", "CWY1005"),
        (2, "apply -f objects.toml -o json", "CWY1003"),
        (3, "explain CWY9999 -o json", "CWY3001"),
        (2, "attach nonsense:// --export nbd:x -o json", "CWY7005"),
        (2, "path plan nonsense -o json", "CWY5009"),
        (2, "bench -Rjson -q", "CWY7001"),
        (2, "bench -R json -q", "CWY7001"),
        (2, "-o json bench -b4K", "CWY7001"),
    ] {
        let text = complaint(&place, code, line);
        let document: Value =
            serde_json::from_str(&text).unwrap_or_else(|why| panic!("{line}: {why}: {text}"));
        assert_eq!(document["code"], error, "{line}: {text}");
        for key in ["detail", "hint", "cause", "title"] {
            assert!(
                document[key].as_str().is_some_and(|text| !text.is_empty()),
                "{line}: {key}"
            );
        }
    }
    // People get the code, what is wrong, and a usage line that names only what is required.
    let text = complaint(&place, 2, "lun create");
    assert!(
        text.starts_with("error[CWY5009]: the following required arguments"),
        "{text}"
    );
    assert!(
        text.contains("\nUsage: causeway lun create [OPTIONS] --size <SIZE> <NAME>\n"),
        "{text}"
    );
}

#[test]
fn help_explanations_and_scrubs_need_no_name() {
    let place = Place::new("no-name");
    let help = place.run(0, "help lun resize");
    assert!(help.contains("Usage: causeway lun resize"), "{help}");
    assert!(
        place
            .run(0, "help bench")
            .contains("Measure a volume with diskspd's options")
    );
    place.run(2, "help nonsense");
    let all = place.run(0, "explain");
    assert!(all.contains("CWY2003") && all.contains("CWY5009"), "{all}");
    assert!(place.json("explain").as_array().unwrap().len() > 40);
    let daemon = place.start();
    place.run(0, "lun create a --size 8M");
    place.run(0, "lun create b --size 512MB");
    place.run(0, "scrub start a");
    let scrubs = place.json("scrub status");
    assert_eq!(
        (&scrubs[0]["lun"], &scrubs[1]["lun"]),
        (&"a".into(), &"b".into())
    );
    assert!(
        scrubs[0]["scrub"]["total_bytes"].is_u64() && scrubs[1]["scrub"].is_null(),
        "{scrubs}"
    );
    assert!(place.run(0, "scrub status").contains("b    never"));
    // As it was written, and as a table shows it.
    assert!(place.run(0, "export").contains("size = \"512MB\""));
    assert!(place.run(0, "lun ls").contains("488.2 MiB"));
    daemon.stop();
}

#[test]
fn a_monitoring_system_reads_one_line_and_an_exit_code() {
    let place = Place::new("check");
    let line = place.run(2, "status --check");
    assert!(line.starts_with("CAUSEWAY CRITICAL - unix:"), "{line}");
    assert_eq!(line.lines().count(), 1);
    let daemon = place.start();
    place.run(0, "lun create a --size 8M");
    let output = place.run_with(&place.api(), &["status", "--check", "-o", "json"], "");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Where the disk of these tests is nearly full, that is reported.
    let full = document["message"].as_str().unwrap().contains("free space");
    let code = i32::from(full);
    assert_eq!(output.status.code(), Some(code), "{document}");
    assert_eq!(document["exit"], code);
    // Its file is gone: the only LUN is offline after a restart.
    daemon.stop();
    let pool = place.path("data/pool");
    for file in std::fs::read_dir(&pool).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|end| end != "toml") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let daemon = place.start();
    let line = place.run(2, "status --check");
    assert!(
        line.starts_with("CAUSEWAY CRITICAL - every LUN is offline | luns=1 luns_offline=1"),
        "{line}"
    );
    daemon.stop();
}

#[test]
fn a_file_that_is_not_utf_8_is_reported_with_its_line() {
    let place = Place::new("latin1");
    let node = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let mut bytes = b"# caf\xe9\n".to_vec();
    bytes.extend(node.as_bytes());
    std::fs::write(place.path("latin1.toml"), bytes).unwrap();
    let text = complaint(&place, 2, "serve --config latin1.toml");
    assert!(
        text.contains("error[CWY1001]: latin1.toml:1: the byte E9h is not UTF-8"),
        "{text}"
    );
    assert!(text.contains("help: save the file as UTF-8"), "{text}");
    std::fs::write(
        place.path("objects.toml"),
        b"schema = 1\n[[lun]]\nname = \"\xe4\"\n",
    )
    .unwrap();
    let text = complaint(&place, 2, "apply -f objects.toml");
    assert!(text.contains("objects.toml:3: the byte E4h"), "{text}");
}

/// What bash offers behind these words.
fn completed(place: &Place, words: &[&str]) -> Vec<String> {
    let program = Path::new(CAUSEWAY).parent().unwrap();
    let line = format!("causeway {}", words.join(" "));
    let script = format!(
        "source <(causeway completions bash); COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; \
         eval \"$(complete -p causeway | sed 's/.*-F \\([^ ]*\\).*/\\1/')\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output: Output = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", path)
        .env("CAUSEWAY_API", place.api())
        .output()
        .unwrap();
    let text = text_of(&output, 0, &script);
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// What another shell offers behind `words`. zsh shows it by `_describe`, which prints it here.
fn completed_by(shell: &str, place: &Place, words: &[&str]) -> Vec<String> {
    let program = Path::new(CAUSEWAY).parent().unwrap();
    let script = match shell {
        "zsh" => format!(
            "compdef() {{ }}; _describe() {{ print -rl -- \"${{(P@)@[-1]}}\" }}; \
             source <(causeway completions zsh); \
             words=(causeway {}); CURRENT=$#words; _clap_dynamic_completer_causeway",
            words.join(" ")
        ),
        _ => format!(
            "causeway completions fish | source; complete --do-complete 'causeway {}'",
            words.join(" ")
        ),
    };
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new(shell)
        .args(if shell == "zsh" {
            &["-f", "-c"][..]
        } else {
            &["--no-config", "-c"]
        })
        .arg(&script)
        .env("PATH", path)
        .env("CAUSEWAY_API", place.api())
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}: scripts/install test"));
    let text = text_of(&output, 0, &script);
    let names = text.lines().map(|line| line.split([':', '\t']).next());
    names.map(|name| name.unwrap().to_owned()).collect()
}

#[test]
fn completions_of_zsh_and_fish_know_the_names_of_objects() {
    let place = Place::new("completions-others");
    let daemon = place.start();
    for name in ["vm01", "vm02", "other"] {
        place.run(0, &format!("lun create {name} --size 8M"));
    }
    for shell in ["zsh", "fish"] {
        let of = |words: &[&str]| completed_by(shell, &place, words);
        assert_eq!(of(&["lun", "show", "vm"]), ["vm01", "vm02"], "{shell}");
        assert_eq!(of(&["share", "sh"]), ["show"], "{shell}");
    }
    daemon.stop();
    assert_eq!(completed_by("fish", &place, &["share", "sh"]), ["show"]);
}

#[test]
fn completions_know_the_names_of_objects_and_do_without_a_daemon() {
    let place = Place::new("completions");
    super::adoption::outside(&place);
    let daemon = place.start();
    place.run(0, "share create vm01 --size 8M --for *");
    place.run(0, "lun create vm02 --size 8M");
    place.run(0, "lun create other --size 8M");
    assert_eq!(completed(&place, &["lun", "show", "vm"]), ["vm01", "vm02"]);
    assert_eq!(completed(&place, &["scrub", "start", "o"]), ["other"]);
    assert_eq!(
        completed(&place, &["grant", "show", "every"]),
        ["everyone:vm01:vm01"]
    );
    assert_eq!(
        completed(&place, &["lun", "set", "vm01", "cache=w"]),
        ["write-back", "write-through"],
        "bash replaces what stands behind the last = only"
    );
    assert_eq!(
        completed(&place, &["grant", "show", "everyone:v"]),
        ["vm01:vm01"]
    );
    assert_eq!(
        completed(&place, &["lun", "show", ""]),
        ["other", "vm01", "vm02"]
    );
    assert_eq!(completed(&place, &["share", "sh"]), ["show"]);
    let of = |line: &str, typed: &str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.push(typed);
        completed(&place, &words)
    };
    assert_eq!(of("grant create", ""), ["everyone"]);
    assert_eq!(of("grant create everyone", "vm"), ["vm01", "vm02"]);
    assert_eq!(of("grant create --lun-id 5 everyone", "o"), ["other"]);
    assert_eq!(of("grant delete everyone", "vm"), ["vm01", "vm02"]);
    assert_eq!(of("grant delete", ""), ["everyone", "everyone:vm01:vm01"]);
    for verb in ["show", "rollback"] {
        assert_eq!(of(&format!("state {verb}"), ""), ["4", "3", "2", "1"]);
    }
    assert_eq!(of("target create t --portal-group", ""), ["default"]);
    assert_eq!(of("target set t", "portal_group=d"), ["default"]);
    for make in ["lun create n --size 1M", "share create n --size 1M --for h"] {
        let of = |option: &str, typed| of(&format!("{make} {option}"), typed);
        assert_eq!(of("--cache", "w"), ["write-back", "write-through"]);
        assert_eq!(of("--task-aborted-status", "o"), ["on", "off"]);
        assert_eq!(of("--block-size", ""), ["512", "4096"]);
    }
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    let daemon = place.start();
    let mut orphans = of("lun adopt", "vm");
    orphans.sort();
    assert_eq!(orphans, ["vm01", "vm02"]);
    daemon.stop();
    assert_eq!(completed(&place, &["lun", "show", "vm"]), [""]);
    assert_eq!(completed(&place, &["explain", "CWY2003"]), ["CWY2003"]);
}

/// A host's side, with a name that it keeps in this place.
fn host(place: &Place, code: i32, words: &[&str]) -> (String, String) {
    let output = Command::new(CAUSEWAY)
        .args(words)
        .env("CAUSEWAY_INITIATOR_STATE", place.path("istate"))
        .env("CAUSEWAY_INITIATOR_RUN", place.path("run"))
        .output()
        .unwrap();
    text_of(&output, code, &words.join(" "));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn a_host_without_a_grant_is_shown_who_it_is_and_what_to_run_on_the_target() {
    let place = Place::new("ungranted");
    let daemon = place.start();
    place.run(
        0,
        "share create vm01 --size 8M --for iqn.2026-11.com.example:other",
    );
    let portal = place.json("target show vm01")["portals"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let one = format!("iscsi://{portal}/iqn.2026-11.io.causeway:vm01/0");
    let export = format!("nbd+unix:{}", place.path("x.sock").display());
    let (_, err) = host(&place, 3, &["attach", &one, "--export", &export]);
    let command = err.split("on the target run (Causeway): ").nth(1).unwrap();
    let command = command.split(" (where").next().unwrap().to_owned();
    let name = command.split(' ').nth(3).unwrap().to_owned();
    assert!(name.starts_with("iqn.2026-11.io.causeway:host-"), "{err}");
    assert!(err.contains(&format!("this host is {name};")), "{err}");
    // The discovery was accepted and reported nothing: the target says so.
    let refused = place.json("session ls --refused");
    assert_eq!(refused[0]["initiator"], name.as_str(), "{refused}");
    assert_eq!(refused[0]["code"], "CWY2003", "{refused}");
    assert!(
        refused[0]["reason"]
            .as_str()
            .unwrap()
            .contains("discovery reported no target"),
        "{refused}"
    );
    // With portals of its own it is refused at the login, and a plan on which nobody gets in is a
    // failure.
    let (plan, err) = host(&place, 1, &["path", "plan", "--no-discover", &one]);
    assert!(
        plan.contains("active") && err.contains(&command),
        "{plan}{err}"
    );
    let (plan, _) = host(
        &place,
        1,
        &["path", "plan", "--no-discover", &one, "-o", "json"],
    );
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["login"]["works"], false, "{plan:#}");
    // The command that was named is the one that helps.
    let command = command.strip_prefix("causeway ").unwrap();
    assert!(place.run(0, command).contains("create grant"), "{command}");
    assert_eq!(place.json("host ls").as_array().unwrap().len(), 2);
    let (plan, _) = host(
        &place,
        0,
        &["path", "plan", "--no-discover", &one, "-o", "json"],
    );
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["login"]["works"], true, "{plan:#}");
    host(&place, 0, &["path", "plan", &one]);
    daemon.stop();
}
