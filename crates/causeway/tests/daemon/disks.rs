//! Disks and bays of a machine of files, with a smartctl that is a script.

use crate::place::Place;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

const WELL: &str = r#"{"smartctl":{"version":[7,3],"exit_status":0},"device":{"protocol":"SCSI"},"smart_status":{"passed":true},"scsi_grown_defect_list":0,"temperature":{"current":31},"rotation_rate":7200}"#;

const FAILING: &str = r#"{"smartctl":{"version":[7,3],"exit_status":8},"device":{"protocol":"SCSI"},"smart_status":{"passed":false},"scsi_grown_defect_list":3,"temperature":{"current":44}}"#;

/// Writes a fact of the machine.
fn fact(place: &Place, path: &str, text: &str) {
    let path = place.path("machine").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn disk(place: &Place, name: &str, slot: u64) {
    let at = format!("sys/devices/pci0/host0/0:0:{slot}:0/block/{name}");
    for (path, text) in [
        ("size", "4194304"),
        ("device/vendor", "SEAGATE"),
        ("device/model", "ST12000NM0008"),
        ("device/serial", &format!("ZC1{slot:05}")),
        ("device/wwid", &format!("naa.5000c500a1b2c3{slot:02x}")),
        ("device/state", "running"),
    ] {
        fact(place, &format!("{at}/{path}"), text);
    }
    let block = place.path("machine/sys/block");
    fs::create_dir_all(&block).unwrap();
    symlink(place.path("machine").join(&at), block.join(name)).unwrap();
    let bay = format!("sys/class/enclosure/0:0:9:0/{slot}");
    fact(place, &format!("{bay}/device/block/{name}/size"), "4194304");
}

fn machine(name: &str, smartctl: &str) -> Place {
    let place = Place::new(name);
    let config = fs::read_to_string(place.path("node.toml")).unwrap();
    let config = config.replace("every_minutes = 0", "smartctl = \"smartctl\"");
    place.write(
        "node.toml",
        &format!("{config}[testing]\nmachine = \"machine\"\n"),
    );
    fact(
        &place,
        "sys/class/enclosure/0:0:9:0/id",
        "0x500304801f1e2a3f",
    );
    for slot in 0..3 {
        let bay = format!("sys/class/enclosure/0:0:9:0/{slot}");
        fact(&place, &format!("{bay}/status"), "OK");
        fact(&place, &format!("{bay}/type"), "array device");
        fact(&place, &format!("{bay}/slot"), &slot.to_string());
    }
    disk(&place, "sda", 0);
    disk(&place, "sdb", 1);
    place.write("smartctl", &format!("#!/bin/sh\n{smartctl}\n"));
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path("smartctl"), mode).unwrap();
    place
}

/// Until all disks were asked.
fn asked(place: &Place) -> Value {
    for _ in 0..600 {
        let disks = place.json("disk ls");
        let all = disks.as_array().unwrap();
        if !all.is_empty() && all.iter().all(|it| it["smart"] != "waiting") {
            return disks;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    panic!("disks were not asked within a minute");
}

#[test]
fn a_disk_that_fails_is_named_wherever_somebody_asks() {
    let script = format!(
        "case \"$*\" in *sdb) cat <<'END'\n{FAILING}\nEND\nexit 8;; *) cat <<'END'\n{WELL}\nEND\nesac"
    );
    let place = machine("disks", &script);
    // The pool's file system is on some device of this machine, which becomes sdb here.
    let device = fs::metadata(place.path(".")).unwrap();
    let device = std::os::unix::fs::MetadataExt::dev(&device);
    let number = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let numbers = place.path("machine/sys/dev/block");
    fs::create_dir_all(&numbers).unwrap();
    let sdb = place.path("machine/sys/devices/pci0/host0/0:0:1:0/block/sdb");
    symlink(sdb, numbers.join(number)).unwrap();
    let daemon = place.start();
    let disks = asked(&place);
    let health = |index: usize| {
        disks[index]["health"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        (health(0), health(1)),
        ("well".to_owned(), "failing".to_owned())
    );
    assert_eq!(disks[1]["bay"], "1");
    let list = place.run(0, "disk ls");
    assert!(list.contains("FAILING"), "{list}");
    assert!(
        list.contains("disk sdb (ZC100001, bay 1) is failing: its own check says that it fails"),
        "{list}"
    );
    let one = place.run(0, "disk show /dev/sdb");
    assert!(one.contains("next: replace it now"), "{one}");
    assert!(
        one.contains("no forecast yet: 1 sample over 0 days"),
        "{one}"
    );
    place.run(3, "disk show sdc");
    let refused = place.run(5, "disk forget ZC100001");
    assert!(refused.contains("is there"), "{refused}");
    let problems = place.problems();
    assert!(
        problems
            .iter()
            .any(|it| it.contains("disk sdb (ZC100001, bay 1) is failing")),
        "{problems:?}"
    );
    let pool = place.run(0, "pool show default");
    assert!(pool.contains("sdb (ZC100001, bay 1): failing"), "{pool}");
    let metrics = place.metrics();
    for line in [
        "causeway_disk_health{disk=\"ZC100001\",state=\"failing\"} 1",
        "causeway_disk_temperature_celsius{disk=\"ZC100000\"} 31",
        "causeway_bay_state{enclosure=\"500304801f1e2a3f\",bay=\"2\",state=\"empty\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    daemon.stop();
    is_named_by_its_bay_when_it_is_gone(&place);
}

/// After a restart the disk is gone, and its bay holds none that starts.
fn is_named_by_its_bay_when_it_is_gone(place: &Place) {
    fs::remove_file(place.path("machine/sys/block/sdb")).unwrap();
    fs::remove_dir_all(place.path("machine/sys/class/enclosure/0:0:9:0/1/device")).unwrap();
    let _daemon = place.start();
    let disks = asked(place);
    assert_eq!(disks[1]["smart"], "missing");
    let problems = place.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0]
            .starts_with("bay 1 of enclosure 500304801f1e2a3f holds a disk that does not start; ")
            && problems[0].contains(" serial ZC100001 was there on "),
        "{problems:?}"
    );
    let forgotten = place.run(0, "disk forget ZC100001");
    assert!(forgotten.contains("forgot disk ZC100001"), "{forgotten}");
    assert_eq!(place.problems(), Vec::<String>::new());
    place.run(3, "disk show ZC100001");
}

#[test]
fn without_smartctl_or_the_right_to_ask_the_words_say_what_helps() {
    let refuses = r#"{"smartctl":{"exit_status":2,"messages":[{"string":"Smartctl open device: /dev/sda failed: Permission denied","severity":"error"}]}}"#;
    let place = machine(
        "disks-refused",
        &format!("cat <<'END'\n{refuses}\nEND\nexit 2"),
    );
    let daemon = place.start();
    asked(&place);
    let list = place.run(0, "disk ls");
    assert!(list.contains("unknown (not permitted)"), "{list}");
    assert!(
        list.contains("systemctl enable --now causeway-disks.timer"),
        "{list}"
    );
    assert_eq!(
        place.problems(),
        Vec::<String>::new(),
        "the node serves all the same"
    );
    daemon.stop();
    fs::remove_file(place.path("smartctl")).unwrap();
    let _daemon = place.start();
    asked(&place);
    let list = place.run(0, "disk ls");
    assert!(list.contains("apt install smartmontools"), "{list}");
    let status = place.run(0, "status");
    assert!(status.contains("apt install smartmontools"), "{status}");
}

#[test]
fn a_scan_needs_no_daemon_and_leaves_what_was_said() {
    let place = machine("disks-scan", "exit 1");
    let smartctl = place.path("smartctl").display().to_string();
    // Of this machine itself, whatever it has.
    let table = place.run(0, &format!("disk scan --smartctl {smartctl}"));
    assert!(table.starts_with("DISK "), "{table}");
    let to = place.path("said.json").display().to_string();
    place.run(0, &format!("disk scan --smartctl {smartctl} --to {to}"));
    let text = fs::read_to_string(&to).unwrap();
    assert!(text.starts_with("causeway smart 1 sha256 "), "{text}");
    place.run(
        2,
        &format!("disk scan --smartctl {smartctl} --to /nonexistent/x"),
    );
}
