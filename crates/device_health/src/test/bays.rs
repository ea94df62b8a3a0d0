//! The published fault: after a reboot, four of twelve bays are dark.

use super::*;
use crate::{Memory, SeenBay};
use manifest::disks::{BayState, DiskVerdict, SmartState};

const ENCLOSURE: &str = "500304801f1e2a3f";

fn serial(slot: u64) -> String {
    format!("ZC1{slot:05}")
}

fn disk(slot: u64, used_by: &[&str]) -> SeenDisk {
    let mut disk = SeenDisk {
        name: format!("sd{}", char::from(b'a' + u8::try_from(slot).unwrap())),
        state: "running".to_owned(),
        used_by: used_by.iter().map(|it| (*it).to_owned()).collect(),
        ..SeenDisk::default()
    };
    disk.identity.serial = serial(slot);
    disk.identity.model = "ST12000NM0008".to_owned();
    disk.identity.wwn = format!("naa.5000c500a1b2c3{slot:02x}");
    disk
}

fn bay(slot: u64, status: &str, names: &[String]) -> SeenBay {
    SeenBay {
        enclosure: ENCLOSURE.to_owned(),
        slot: slot.to_string(),
        status: status.to_owned(),
        has_device: !names.is_empty(),
        names: names.to_vec(),
        ..SeenBay::default()
    }
}

/// Twelve bays, of which those of `dark` hold nothing that the system sees.
fn twelve(at: u64, dark: &[u64], status: &str) -> Seen {
    let mut seen = Seen {
        at,
        ..Seen::default()
    };
    for slot in 0..12 {
        if dark.contains(&slot) {
            seen.bays.push(bay(slot, status, &[]));
            continue;
        }
        let disk = disk(slot, &["pool default"]);
        seen.bays
            .push(bay(slot, "OK", std::slice::from_ref(&disk.name)));
        seen.disks.push(disk);
    }
    seen
}

fn restarted(ledger: &Ledger) -> Ledger {
    Ledger::new(Memory::read(&ledger.memory().write()).unwrap())
}

#[test]
fn four_of_twelve_bays_that_are_dark_after_a_reboot_are_named_with_what_was_in_them() {
    let mut before = Ledger::default();
    let report = before.observe(&twelve(NOW, &[], ""));
    assert!(report.findings().is_empty(), "{:?}", report.findings());
    assert!(report.bays.iter().all(|bay| bay.state == BayState::Disk));
    let dark = [2, 5, 8, 11];
    for (status, state) in [
        ("not installed", BayState::Dark),
        ("OK", BayState::NoStart),
        ("critical", BayState::NoStart),
    ] {
        let mut after = restarted(&before);
        let report = after.observe(&twelve(NOW + 600, &dark, status));
        let found: Vec<(String, String)> = report
            .findings()
            .into_iter()
            .map(|it| (it.object, it.cause))
            .collect();
        assert_eq!(found.len(), 4, "each once: {found:?}");
        for slot in dark {
            let (_, cause) = found
                .iter()
                .find(|(object, _)| *object == format!("bay {slot}"))
                .unwrap_or_else(|| panic!("bay {slot}: {found:?}"));
            let what = if state == BayState::NoStart {
                "a disk that does not start"
            } else {
                "no disk that the system sees"
            };
            let wanted = format!(
                "bay {slot} of enclosure {ENCLOSURE} holds {what}; ST12000NM0008 serial {} was there on ",
                serial(slot)
            );
            assert!(cause.starts_with(&wanted), "{cause}");
            let view = report.bays.iter().find(|it| it.name == slot.to_string());
            let view = view.unwrap();
            assert_eq!(view.state, state, "{status}");
            assert_eq!(view.held.as_ref().unwrap().serial, serial(slot));
            let finding = view.finding.as_ref().unwrap();
            assert_eq!(finding.verdict, DiskVerdict::Failing, "a pool lies on it");
            assert!(finding.next_step.contains("switch the machine off and on"));
            let gone = report.disk(&serial(slot)).unwrap();
            assert_eq!(gone.smart, SmartState::Missing);
            assert_eq!(gone.used_by, ["pool default"]);
            assert!(gone.findings[0].cause.contains(&format!("bay {slot}")));
        }
        let others = report.bays.iter().filter(|it| it.state == BayState::Disk);
        assert_eq!(others.count(), 8);
        // They come back, and all is well without anybody's word.
        let healed = after.observe(&twelve(NOW + 1200, &[], ""));
        assert!(healed.findings().is_empty(), "{:?}", healed.findings());
    }
}

/// The system has `ZC100002`, and the disk says more: what stands on the label is what counts.
#[test]
fn a_bay_names_a_disk_as_the_disk_names_itself() {
    let mut ledger = Ledger::default();
    ledger.observe(&twelve(NOW, &[], ""));
    let mut asked = twelve(NOW + 60, &[], "");
    let document = changed(
        "scsi-hitachi-sas",
        &[("/serial_number", serde_json::json!("ZC1000020000J925"))],
    );
    let answer = Asked {
        at: NOW + 60,
        answer: read(&document),
    };
    asked.asked.insert("sdc".to_owned(), answer);
    ledger.observe(&asked);
    let report = ledger.observe(&twelve(NOW + 120, &[2], "not installed"));
    let found = report.findings();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].cause.contains("ZC1000020000J925"), "{found:?}");
}

#[test]
fn a_bay_that_never_held_anything_is_empty_and_no_finding() {
    let mut ledger = Ledger::default();
    let report = ledger.observe(&twelve(NOW, &[3], "not installed"));
    assert_eq!(report.bays[3].state, BayState::Empty);
    assert!(report.findings().is_empty());
}

#[test]
fn a_device_without_a_block_device_is_a_disk_that_does_not_start() {
    let mut seen = twelve(NOW, &[3], "OK");
    seen.bays[3].has_device = true;
    let report = Ledger::default().observe(&seen);
    assert_eq!(report.bays[3].state, BayState::NoStart);
    assert!(report.findings()[0].cause.contains("does not start"));
}

#[test]
fn a_disk_that_went_to_another_bay_leaves_none_dark() {
    let mut ledger = Ledger::default();
    ledger.observe(&twelve(NOW, &[3], "not installed"));
    let mut moved = twelve(NOW + 60, &[7], "not installed");
    moved.disks.retain(|it| it.name != "sdd");
    moved.disks.push(disk(7, &[]));
    moved.bays[3].names = vec!["sdh".to_owned()];
    let report = ledger.observe(&moved);
    assert_eq!(report.bays[7].state, BayState::Empty);
    assert_eq!(report.bays[3].disk, Some(serial(7)));
    assert!(report.findings().is_empty(), "{:?}", report.findings());
}

#[test]
fn a_disk_that_was_taken_out_on_purpose_is_forgotten_by_a_word() {
    let mut ledger = Ledger::default();
    ledger.observe(&twelve(NOW, &[], ""));
    let without = twelve(NOW + 60, &[4], "not installed");
    assert_eq!(ledger.observe(&without).findings().len(), 1);
    assert!(!ledger.forget("nobody"));
    assert!(ledger.forget(&serial(4)));
    let report = ledger.observe(&without);
    assert!(report.findings().is_empty(), "{:?}", report.findings());
    assert_eq!(report.bays[4].state, BayState::Empty);
    assert!(report.disk(&serial(4)).is_none());
}

#[test]
fn without_enclosures_a_disk_that_is_gone_is_missing_all_the_same() {
    let mut ledger = Ledger::default();
    let mut seen = twelve(NOW, &[], "");
    seen.bays.clear();
    ledger.observe(&seen);
    seen.disks.remove(0);
    let report = ledger.observe(&seen);
    let found = report.findings();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].object, format!("disk {}", serial(0)));
    assert!(found[0].cause.contains("on it: pool default"));
}

#[test]
fn two_enclosures_have_their_names_in_those_of_bays() {
    let mut seen = twelve(NOW, &[], "");
    let mut other = bay(0, "OK", &[]);
    other.enclosure = "5003048000000001".to_owned();
    seen.bays.push(other);
    let report = Ledger::default().observe(&seen);
    assert!(
        report
            .bays
            .iter()
            .any(|it| it.name == format!("{ENCLOSURE}:2"))
    );
    assert!(report.bays.iter().any(|it| it.name == "5003048000000001:0"));
}

#[test]
fn two_paths_to_one_disk_are_one_disk() {
    let mut seen = twelve(NOW, &[], "");
    let mut second = disk(0, &["journal of pool default"]);
    second.name = "sdz".to_owned();
    seen.disks.push(second);
    let report = Ledger::default().observe(&seen);
    assert_eq!(report.disks.len(), 12);
    let disk = report.disk("sdz").unwrap();
    assert_eq!(disk.names, ["sda", "sdz"]);
    assert_eq!(disk.used_by, ["pool default", "journal of pool default"]);
}

#[test]
fn disks_of_one_serial_number_keep_their_own_identifiers() {
    let mut seen = Seen {
        at: NOW,
        ..Seen::default()
    };
    for name in ["sda", "sdb"] {
        let mut disk = SeenDisk {
            name: name.to_owned(),
            ..SeenDisk::default()
        };
        disk.identity.serial = "../0000 0000".to_owned();
        seen.disks.push(disk);
    }
    let report = Ledger::default().observe(&seen);
    let ids: Vec<&str> = report.disks.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["-0000-0000", "-0000-0000-sdb"]);
}

#[test]
fn a_disk_that_the_system_has_taken_out_of_use_fails() {
    let mut seen = twelve(NOW, &[], "");
    seen.disks[1].state = "offline".to_owned();
    let report = Ledger::default().observe(&seen);
    assert_eq!(report.disks[1].health, DiskVerdict::Failing);
    assert!(report.findings()[0].cause.contains("offline"));
}
