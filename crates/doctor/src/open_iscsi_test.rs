//! The kernel's sessions from a fixture tree, and each check on what is well and on what is not.

use super::*;
use crate::open_iscsi::read;
use env::CoreId;
use env::real::{Cores, Driver, Runtime, RuntimeConfig};
use machine::Roots;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// A directory that goes with the test.
struct Tree(PathBuf);

impl Tree {
    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn session(&self, number: u32, times: [u32; 3]) {
        let dir = format!("sys/class/iscsi_session/session{number}");
        let connection = format!("sys/class/iscsi_connection/connection{number}:0");
        self.write(
            &format!("{dir}/targetname"),
            "iqn.2026-11.io.causeway:vm01\n",
        );
        self.write(&format!("{connection}/recv_tmo"), &times[0].to_string());
        self.write(&format!("{connection}/ping_tmo"), &times[1].to_string());
        self.write(&format!("{dir}/recovery_tmo"), &times[2].to_string());
    }

    fn disk(&self, name: &str, session: u32, mapped: bool) {
        let device = format!(
            "sys/devices/platform/host{session}/session{session}/target{session}:0:0/{session}:0:0:0"
        );
        self.write(&format!("{device}/wwid"), "naa.602ca5e0\n");
        self.write(&format!("{device}/vendor"), "CAUSEWAY\n");
        let block = self.0.join("sys/block").join(name);
        fs::create_dir_all(block.join("holders")).unwrap();
        symlink(self.0.join(&device), block.join("device")).unwrap();
        if mapped {
            fs::create_dir_all(block.join("holders/dm-0")).unwrap();
            self.write("sys/block/dm-0/dm/uuid", "mpath-3602ca5e0\n");
            self.write("sys/block/dm-0/dm/name", "mpatha\n");
        }
    }

    fn read(&self) -> OpenIscsi {
        let runtime = Runtime::start(&RuntimeConfig {
            cores: Cores::List(vec![0]),
            driver: Driver::Poll,
            ..RuntimeConfig::default()
        })
        .unwrap();
        let roots = Roots {
            sys: self.0.join("sys"),
            proc: self.0.join("proc"),
            etc: self.0.join("etc"),
        };
        runtime.run(CoreId(0), move |core| {
            Box::pin(async move { read(&core, &roots).await })
        })
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn tree(name: &str) -> Tree {
    let dir = std::env::temp_dir().join(format!("doctor-{name}-{}", std::process::id()));
    let _old = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    Tree(dir)
}

fn found(open_iscsi: OpenIscsi) -> Vec<Finding> {
    all(&Scene {
        open_iscsi: Some(open_iscsi),
        ..Scene::default()
    })
}

fn verdict(findings: &[Finding], check: &str) -> (Verdict, String) {
    let finding = findings.iter().find(|it| it.check == check).unwrap();
    assert!(
        finding.verdict == Verdict::Good || !finding.remedy.is_empty(),
        "{finding:?}"
    );
    (finding.verdict, finding.what.clone())
}

#[test]
fn a_host_set_up_as_printed_is_well() {
    let tree = tree("well");
    for (number, name) in [(1, "sda"), (2, "sdb")] {
        tree.session(number, [1, 2, 1]);
        tree.disk(name, number, true);
    }
    tree.write(
        "etc/iscsi/nodes/iqn.2026-11.io.causeway:vm01/10.0.0.1,3260,1/default",
        "node.name = x\nnode.conn[0].timeo.noop_out_interval = 1\nnode.conn[0].timeo.noop_out_timeout = 2\n",
    );
    tree.write(
        "etc/multipath/conf.d/causeway.conf",
        "devices {\n    device {\n        vendor \"CAUSEWAY\"\n        no_path_retry \"queue\"\n    }\n}\n",
    );
    let findings = found(tree.read());
    for check in ["one-disk", "dead-path", "later-logins", "no-path"] {
        assert_eq!(verdict(&findings, check).0, Verdict::Good, "{findings:?}");
    }
    assert!(verdict(&findings, "dead-path").1.contains("4 s at most"));
}

#[test]
fn the_defaults_of_open_iscsi_are_reported_with_what_they_cost() {
    let tree = tree("defaults");
    tree.session(1, [5, 5, 5]);
    tree.disk("sda", 1, true);
    tree.write(
        "etc/iscsi/iscsid.conf",
        "# a comment\nnode.conn[0].timeo.noop_out_interval = 5\nnode.conn[0].timeo.noop_out_timeout = 5\n",
    );
    let findings = found(tree.read());
    let (slow, what) = verdict(&findings, "dead-path");
    assert_eq!(slow, Verdict::Advice);
    assert!(what.contains("15 s (5 + 5 + 5)"), "{what}");
    let (late, what) = verdict(&findings, "later-logins");
    assert!(
        late == Verdict::Advice && what.contains("iscsid.conf"),
        "{what}"
    );
    assert_eq!(verdict(&findings, "one-disk").0, Verdict::Advice);
}

#[test]
fn two_paths_that_are_not_one_disk_are_a_problem() {
    let tree = tree("apart");
    for (number, name) in [(1, "sda"), (2, "sdb")] {
        tree.session(number, [1, 2, 120]);
        tree.disk(name, number, false);
    }
    let findings = found(tree.read());
    let (apart, what) = verdict(&findings, "one-disk");
    assert!(
        apart == Verdict::Problem && what.contains("sda and sdb"),
        "{what}"
    );
    assert_eq!(verdict(&findings, "dead-path").0, Verdict::Good);
}

#[test]
fn a_disk_without_another_path_must_not_fail_soon_and_silence_must_be_noticed() {
    let tree = tree("hasty");
    tree.session(1, [1, 2, 1]);
    tree.disk("sda", 1, false);
    let (hasty, what) = verdict(&found(tree.read()), "dead-path");
    assert!(hasty == Verdict::Problem && what.contains("1 s"), "{what}");
    tree.session(1, [0, 5, 120]);
    let (never, what) = verdict(&found(tree.read()), "dead-path");
    assert!(
        never == Verdict::Problem && what.contains("never"),
        "{what}"
    );
}

#[test]
fn a_map_whose_commands_fail_without_a_path_is_reported() {
    let tree = tree("no-path");
    tree.session(1, [1, 2, 1]);
    tree.disk("sda", 1, true);
    let reported = |text: &str| {
        tree.write("etc/multipath.conf", text);
        verdict(&found(tree.read()), "no-path").0
    };
    for (text, expected) in [
        ("", Verdict::Advice),
        ("defaults {\n no_path_retry 12\n}\n", Verdict::Advice),
        ("defaults {\n no_path_retry queue # all\n}\n", Verdict::Good),
        (
            "devices {\n device {\n vendor \"OTHER\"\n no_path_retry queue\n }\n}\n",
            Verdict::Advice,
        ),
        (
            "devices {\n device {\n vendor CAUSEWAY\n #no_path_retry queue\n }\n}\n",
            Verdict::Advice,
        ),
    ] {
        assert_eq!(reported(text), expected, "{text}");
    }
}

#[test]
fn a_host_without_open_iscsi_is_reported_nothing() {
    let tree = tree("none");
    assert_eq!(tree.read(), OpenIscsi::default());
    assert_eq!(found(tree.read()), Vec::new());
}
