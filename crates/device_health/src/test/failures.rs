//! Failures that nobody recorded: recorded documents with other figures.

use super::*;
use manifest::disks::{DiskVerdict, SmartState};
use serde_json::json;

const NVME: &str = "/nvme_smart_health_information_log";

fn nvme(changes: &[(&str, u64)]) -> DiskView {
    let at = |member: &str| format!("{NVME}/{member}");
    let all: Vec<(String, Value)> = changes
        .iter()
        .map(|(member, value)| (at(member), json!(value)))
        .collect();
    let all: Vec<(&str, Value)> = all
        .iter()
        .map(|(at, value)| (at.as_str(), value.clone()))
        .collect();
    view(&changed("nvme-micron-7450", &all))
}

fn first(disk: &DiskView) -> (DiskVerdict, String, String) {
    let it = disk.findings.first().expect("something is wrong");
    (it.verdict, it.cause.clone(), it.next_step.clone())
}

#[test]
fn each_bit_of_the_critical_warning_has_its_words() {
    use DiskVerdict::{Failing, Watch};
    for (bits, verdict, words) in [
        (1, Failing, "fewer spare blocks"),
        (2, Watch, "temperature is outside"),
        (4, Failing, "unreliable"),
        (8, Failing, "read-only"),
        (16, Failing, "a power cut loses writes"),
        (32, Watch, "persistent memory region"),
    ] {
        let disk = nvme(&[("critical_warning", bits)]);
        let (found, cause, next) = first(&disk);
        assert_eq!(found, verdict, "{bits}: {cause}");
        assert_eq!(disk.health, verdict);
        assert!(cause.contains(words), "{bits}: {cause}");
        assert!(!next.is_empty());
        assert_eq!(disk.findings.len(), 1, "{:?}", disk.findings);
    }
    // A bit that no standard knows yet says nothing.
    assert_eq!(nvme(&[("critical_warning", 64)]).health, DiskVerdict::Well);
}

#[test]
fn limits_are_where_the_page_says() {
    use DiskVerdict::{ReplaceSoon, Watch, Well};
    for (member, value, verdict) in [
        ("percentage_used", 79, Well),
        ("percentage_used", 80, Watch),
        ("percentage_used", 99, Watch),
        ("percentage_used", 100, ReplaceSoon),
        ("percentage_used", 255, ReplaceSoon),
        ("available_spare", 11, Well),
        ("available_spare", 10, ReplaceSoon),
        ("media_errors", 0, Well),
        ("media_errors", 1, Watch),
        ("media_errors", 10, ReplaceSoon),
    ] {
        let disk = nvme(&[(member, value)]);
        assert_eq!(
            disk.health, verdict,
            "{member} {value}: {:?}",
            disk.findings
        );
    }
}

#[test]
fn an_ata_disk_that_says_that_it_fails_does() {
    let name = "ata-hdd-hgst-hc550";
    let disk = view(&changed(name, &[("/smart_status/passed", json!(false))]));
    assert!(first(&disk).1.contains("SMART status"));
    // The exit status says the same where the document was cut short of the status.
    let exit = view(&changed(
        name,
        &[
            ("/smart_status", json!(null)),
            ("/smartctl/exit_status", json!(8)),
        ],
    ));
    assert_eq!(exit.health, DiskVerdict::Failing);
}

#[test]
fn a_self_test_that_failed_is_a_reason_to_replace() {
    let bytes = changed(
        "ata-hdd-hitachi-failing",
        &[
            ("/smart_status/passed", json!(true)),
            ("/smartctl/exit_status", json!(128)),
            ("/ata_smart_attributes/table", json!([])),
            (
                "/ata_smart_self_test_log/standard/table/0/status",
                json!({"value": 112, "string": "Completed: read failure", "passed": false}),
            ),
        ],
    );
    let (verdict, cause, _) = first(&view(&bytes));
    assert_eq!(verdict, DiskVerdict::ReplaceSoon);
    assert!(cause.contains("read failure"), "{cause}");
}

#[test]
fn a_sas_ssd_wears_and_fails_by_its_own_words() {
    let mut document: Value = serde_json::from_slice(&recorded()["scsi-hitachi-sas"]).unwrap();
    document["scsi_percentage_used_endurance_indicator"] = json!(101);
    document["rotation_rate"] = json!(0);
    document["scsi_self_test_0"] = json!({
        "code": {"value": 2, "string": "Background long"},
        "result": {"value": 7, "string": "Completed, segment failed"},
    });
    let disk = view(&serde_json::to_vec(&document).unwrap());
    let causes: Vec<&str> = disk.findings.iter().map(|it| it.cause.as_str()).collect();
    assert_eq!(
        causes,
        [
            "101 % of the writes that it was made for are used",
            "its last self-test failed (Background long: Completed, segment failed)",
        ]
    );
}

#[test]
fn the_standard_figure_for_wear_comes_before_those_of_makers() {
    let mut document: Value = serde_json::from_slice(&recorded()["ata-ssd-intel-s4500"]).unwrap();
    let statistic = json!({
        "number": 7, "name": "Solid State Device Statistics",
        "table": [{"offset": 8, "name": "Percentage Used Endurance Indicator", "size": 1, "value": 47,
            "flags": {"value": 192, "valid": true}}],
    });
    document["ata_device_statistics"] = json!({"pages": [statistic]});
    let facts = reading(&serde_json::to_vec(&document).unwrap()).facts;
    assert_eq!(facts.wear_percent, Some(47));
}

#[test]
fn heat_is_judged_by_the_limits_of_the_disk() {
    let at = |celsius: i64| {
        let changes = [("/temperature/current", json!(celsius))];
        view(&changed("scsi-hitachi-sas", &changes)).health
    };
    // Its own trip point is 85, and it has platters.
    assert_eq!(at(59), DiskVerdict::Well);
    assert_eq!(at(60), DiskVerdict::Watch);
    assert_eq!(at(85), DiskVerdict::ReplaceSoon);
}

#[test]
fn why_nothing_was_read_is_a_word_of_its_own() {
    let said = |exit: u64, message: &str| {
        let document = json!({
            "smartctl": {"version": [7, 3], "exit_status": exit,
                "messages": [{"string": message, "severity": "error"}]},
        });
        match read(&serde_json::to_vec(&document).unwrap()) {
            Answer::Read(_) => panic!("{message}"),
            Answer::Not { state, .. } => state,
        }
    };
    for (exit, message, state) in [
        (3, "", SmartState::Asleep),
        (2, "Device is in STANDBY mode, exit(2)", SmartState::Asleep),
        (2, "Device is in SLEEP mode, exit(2)", SmartState::Asleep),
        (
            2,
            "Smartctl open device: /dev/sda failed: Permission denied",
            SmartState::NotPermitted,
        ),
        (
            2,
            "Read Device Identity failed: Operation not permitted",
            SmartState::NotPermitted,
        ),
        // What smartctl 7.3 says of a virtio disk.
        (
            1,
            "/dev/vda: Unable to detect device type",
            SmartState::Unsupported,
        ),
        (
            1,
            "/dev/sda: Unknown USB bridge [0x152d:0x0578]",
            SmartState::Unsupported,
        ),
        (
            2,
            "Smartctl open device: /dev/sda failed: No such device",
            SmartState::Failed,
        ),
        (0, "", SmartState::Unsupported),
    ] {
        assert_eq!(said(exit, message), state, "{exit} {message}");
    }
}
