//! What an administrator changes while hosts are logged in and work, and while parts of the node
//! are away; and what our own initiator says when it cannot get in.

use super::login::{TARGET, login_by, served};
use super::place::Place;
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// `causeway bench` with these words, as an initiator of this place.
fn bench(place: &Place, words: &[&str]) -> Child {
    Command::new(CAUSEWAY)
        .args(["bench", "-b4K", "-t1", "-o4", "-w50", "-r"])
        .args(words)
        .env("CAUSEWAY_INITIATOR_STATE", place.path("istate"))
        .env("CAUSEWAY_INITIATOR_RUN", place.path("irun"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Asks again and again, for half a minute or so.
fn until(is: impl Fn() -> bool) {
    let mut tries = 0..300;
    while !is() {
        assert!(tries.next().is_some(), "it never comes");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

/// Sessions with a target: their numbers.
fn sessions(place: &Place) -> Vec<u64> {
    let all = place.json("session ls");
    let with_target = all.as_array().unwrap().iter();
    let with_target = with_target.filter(|it| it["target"].is_string());
    with_target.map(|it| it["id"].as_u64().unwrap()).collect()
}

/// Everything that is live, changed while a host writes: its sessions are the same ones afterwards,
/// it has seen no error, and what was changed is in force.
#[test]
fn changes_next_to_a_host_at_work_end_no_session_and_are_in_force_at_once() {
    let place = Place::new("live");
    let daemon = place.start();
    place.run(0, "share create vm01 --size 64M --for *");
    let target = place.json("target show vm01");
    let portal = target["portals"][0].as_str().unwrap();
    let url = format!("iscsi://{portal}/{}/0", target["iqn"].as_str().unwrap());
    let work = bench(&place, &["-d6", "--destroy", &url]);
    until(|| !sessions(&place).is_empty());
    let before = sessions(&place);
    for change in [
        "lun create vm02 --size 1M",
        "host create esx02 --iqn iqn.1998-01.com.vmware:esx02",
        "host set esx02 iqn=iqn.1998-01.com.vmware:other",
        "grant create esx02 vm02 --target vm01",
        "lun rename vm01 vm01-new",
        "target rename vm01 vm01-new",
        "host rename esx02 esx03",
        "lun set vm01-new limit.iops=100000",
        "lun resize vm01-new --size 128M",
        "lun delete vm02 --yes",
    ] {
        place.run(0, change);
        assert_eq!(sessions(&place), before, "{change}");
    }
    let output = work.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let iqn = &place.json("host show esx03")["iqn"];
    assert_eq!(iqn[0], "iqn.1998-01.com.vmware:other");
    let lun = place.json("lun show vm01-new");
    assert_eq!(lun["limit"]["iops"], 100_000);
    daemon.stop();
}

/// A host's initiator is renamed while the host is logged in: the new name gets in at once.
#[test]
fn a_renamed_initiator_takes_no_restart_and_gets_in_at_once() {
    let place = Place::new("live-rename");
    let daemon = place.start();
    let portal = served(&place);
    place.run(0, "host set esx01 iqn=iqn.1998-01.com.vmware:new");
    let refused = login_by(&portal, 1);
    assert_ne!(refused.status, 0, "the old name is nobody's");
    place.run(
        0,
        "host set esx01 iqn=iqn.1998-01.com.vmware:new,iqn.1998-01.com.vmware:esx01",
    );
    let session = login_by(&portal, 1);
    assert_eq!(session.status, 0);
    assert_eq!(sessions(&place).len(), 1);
    daemon.stop();
}

#[test]
fn what_does_not_need_what_is_away_can_be_changed_while_a_portal_and_a_pool_are() {
    let place = Place::new("live-away");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let one = "listen = [ { ip = \"127.0.0.1\", port = 0 }";
    let two = format!("{one}, {{ ip = \"127.0.0.1\", port = {port} }}");
    let pools = "path = \"data/pool\"\n[[pool]]\nname = \"other\"\npath = \"data/other\"\n";
    let config = config.replace(one, &two);
    place.write(
        "node.toml",
        &config.replace("path = \"data/pool\"\n", pools),
    );
    let daemon = place.start();
    let portal = served(&place);
    place.run(0, "lun create far --size 1M --pool other");
    std::fs::rename(place.path("data/other"), place.path("data/away")).unwrap();
    until(|| place.json("lun show far")["state"] == "offline");
    let status = place.json("status");
    let down = |it: &&Value| it["problem"].is_string();
    assert_eq!(
        status["portals"]
            .as_array()
            .unwrap()
            .iter()
            .filter(down)
            .count(),
        1
    );
    let session = login_by(&portal, 1);
    assert_eq!(session.status, 0);
    for change in [
        "lun create near --size 1M",
        "grant create esx01 near --target t1",
        "lun resize near --size 2M",
        "lun rename near nearer",
        "host create esx02 --iqn iqn.1998-01.com.vmware:esx02",
        "target create t2",
        "lun rename far farther",
    ] {
        place.run(0, change);
    }
    assert_eq!(sessions(&place).len(), 1, "and nobody was disturbed");
    let refused = place.run_with(
        &place.api(),
        &["lun", "create", "no", "--size", "1M", "--pool", "other"],
        "",
    );
    assert_ne!(refused.status.code(), Some(0), "what needs it is refused");
    std::fs::rename(place.path("data/away"), place.path("data/other")).unwrap();
    until(|| place.json("lun show farther")["state"] == "online");
    daemon.stop();
}

/// Code, exit code and what stands in the message, of `causeway bench` to a URL.
fn fails(place: &Place, secret: &Path, url: &str) -> (String, i32) {
    let chap = format!("u:{}", secret.display());
    let output = bench(place, &["-d1", "--chap", &chap, url]).wait_with_output();
    let output = output.unwrap();
    let text = said(&output);
    let code = text
        .split_once("error[")
        .and_then(|(_, rest)| rest.split_once(']'));
    let (code, _) = code.unwrap_or_else(|| panic!("{url}: {text}"));
    assert!(text.contains("help: "), "{url}: {text}");
    (code.to_owned(), output.status.code().unwrap())
}

#[test]
fn a_wrong_secret_an_unknown_target_a_closed_port_and_an_unknown_host_have_a_code_each() {
    let place = Place::new("live-codes");
    place.write("good.secret", "a-long-enough-secret");
    place.write("bad.secret", "another-long-secret");
    let daemon = place.start();
    let portal = served(&place);
    let user = format!(
        "chap.user=u chap.secret_file={}",
        place.path("good.secret").display()
    );
    place.run(0, &format!("host set esx01 iqn=* {user}"));
    let (good, bad) = (place.path("good.secret"), place.path("bad.secret"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = closed.local_addr().unwrap();
    drop(closed);
    let at = |portal: &str, target: &str| format!("iscsi://{portal}/{target}/0");
    let right = at(&portal, TARGET);
    let wrong_secret = fails(&place, &bad, &right);
    assert_eq!(wrong_secret, ("CWY7009".to_owned(), 1));
    let unknown_target = fails(&place, &good, &at(&portal, "iqn.2026-11.io.causeway:no"));
    assert_eq!(unknown_target, ("CWY7003".to_owned(), 3));
    let closed_port = fails(&place, &good, &at(&nobody.to_string(), TARGET));
    assert_eq!(closed_port, ("CWY7006".to_owned(), 1));
    let unknown_host = fails(&place, &good, &at("no-such-host.invalid:3260", TARGET));
    assert_eq!(unknown_host, ("CWY7005".to_owned(), 2));
    let chap = format!("u:{}", bad.display());
    let words = ["-d1", "--no-discover", "--chap", &chap, &right];
    let output = bench(&place, &words).wait_with_output().unwrap();
    let text = said(&output);
    assert!(text.contains("CWY7009"), "without a discovery, too: {text}");
    let chap = format!("u:{}", good.display());
    let words = ["-d1", "--destroy", "--chap", &chap, &right];
    let output = bench(&place, &words).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    daemon.stop();
}
