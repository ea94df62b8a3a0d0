//! Weeks that pass: predictions, and where there is none.

use super::*;
use crate::Memory;
use manifest::disks::{DiskVerdict, SmartState};
use serde_json::json;

const SPARE: &str = "/nvme_smart_health_information_log/available_spare";

/// A disk over days, of which `figure` says what it reports on each.
fn after(days: u64, pointer: &str, name: &str, figure: impl Fn(u64) -> u64) -> (Ledger, DiskView) {
    let mut ledger = Ledger::default();
    let mut last = None;
    for day in 0..days {
        let at = NOW - (days - 1 - day) * DAY;
        let bytes = changed(name, &[(pointer, json!(figure(day)))]);
        last = ledger.observe(&seen(at, &bytes)).disks.pop();
    }
    (ledger, last.unwrap())
}

#[test]
fn spare_blocks_that_fall_are_predicted_with_the_reason() {
    // 2 % a week, in steps of whole percents, to 12 % today; its own limit is 10 %.
    let falls = |day: u64| 12 + (76 - day) * 2 / 7;
    let (_, disk) = after(77, SPARE, "nvme-micron-7450", falls);
    let forecast = &disk.forecasts[0];
    assert!(
        forecast
            .text
            .starts_with("spare blocks at 12 % and falling 2 % a week: replace before 2026-12-0"),
        "{}",
        forecast.text
    );
    assert!((-2050..=-1950).contains(&forecast.per_week_thousandths));
    assert_eq!((forecast.samples, forecast.days), (disk_samples(77), 76));
    // One week away: order now.
    assert_eq!(disk.health, DiskVerdict::ReplaceSoon);
    assert_eq!(
        disk.findings[0].cause,
        "spare blocks at 12 % and falling 2 % a week"
    );
    assert!(
        disk.findings[0]
            .next_step
            .starts_with("replace before 2026-12-0")
    );
    assert_eq!(disk.no_forecast, None);
}

/// 31 daily samples, and one for each week before.
fn disk_samples(days: u64) -> usize {
    usize::try_from(31 + (days - 31).div_ceil(7)).unwrap()
}

#[test]
fn a_limit_that_is_far_away_is_said_and_is_no_finding() {
    let falls = |day: u64| 100 - day / 25;
    let (_, disk) = after(100, SPARE, "nvme-micron-7450", falls);
    assert_eq!(disk.health, DiskVerdict::Well, "{:?}", disk.findings);
    let text = &disk.forecasts[0].text;
    // 3 % in 99 days: 0.2 % a week, and 87 % to go: about 8 years.
    assert!(text.contains("replace before 203"), "{text}");
}

#[test]
fn too_few_samples_predict_nothing_and_say_so() {
    let (_, disk) = after(3, SPARE, "nvme-micron-7450", |day| 20 - day);
    assert!(disk.forecasts.is_empty());
    assert_eq!(
        disk.no_forecast.as_deref(),
        Some("no forecast yet: 3 samples over 2 days, and it takes 4 over 14 days")
    );
    let (_, disk) = after(1, SPARE, "nvme-micron-7450", |_| 20);
    assert!(disk.no_forecast.unwrap().contains("1 sample over 0 days"));
    let (_, steady) = after(30, SPARE, "nvme-micron-7450", |_| 90);
    assert_eq!(
        steady.no_forecast.as_deref(),
        Some("no figure changes steadily: 30 samples over 29 days")
    );
}

#[test]
fn sectors_that_become_more_each_week_are_a_reason_to_replace() {
    let pointer = "/ata_smart_attributes/table/4/raw/value";
    let name = "ata-hdd-hgst-hc550";
    let table: Value = serde_json::from_slice(&recorded()[name]).unwrap();
    let table = table["ata_smart_attributes"]["table"].as_array().unwrap();
    let place = table.iter().position(|it| it["id"] == 5).unwrap();
    let pointer = pointer.replace('4', &place.to_string());
    let (_, disk) = after(29, &pointer, name, |day| day / 2);
    assert_eq!(disk.health, DiskVerdict::ReplaceSoon);
    let causes: Vec<&str> = disk.findings.iter().map(|it| it.cause.as_str()).collect();
    assert!(
        causes.contains(&"reallocated sectors at 14 and growing 3.5 a week"),
        "{causes:?}"
    );
    assert!(causes.contains(&"14 reallocated sectors"), "{causes:?}");
}

#[test]
fn damaged_transfers_count_where_they_become_more() {
    let name = "ata-hdd-wd-re4-crc";
    let table: Value = serde_json::from_slice(&recorded()[name]).unwrap();
    let table = table["ata_smart_attributes"]["table"].as_array().unwrap();
    let place = table.iter().position(|it| it["id"] == 199).unwrap();
    let pointer = format!("/ata_smart_attributes/table/{place}/raw/value");
    let (_, disk) = after(10, &pointer, name, |day| 3_000_000 + day);
    assert_eq!(disk.health, DiskVerdict::Watch);
    assert!(disk.findings[0].cause.starts_with("9 more transfers"));
    assert!(disk.findings[0].next_step.contains("cable"));
}

#[test]
fn a_disk_that_sleeps_shows_what_it_said_also_after_a_restart() {
    let (ledger, _) = after(5, SPARE, "nvme-micron-7450", |_| 9);
    let stored = ledger.memory().write();
    let mut restarted = Ledger::new(Memory::read(&stored).unwrap());
    let mut later = seen(NOW + 3600, b"");
    let answer = Answer::not(SmartState::Asleep, "it sleeps, and is not woken");
    later.asked.get_mut("sda").unwrap().answer = answer;
    let disk = restarted.observe(&later).disks.remove(0);
    assert_eq!(disk.smart, SmartState::Asleep);
    assert_eq!(disk.facts.spare_percent, Some(9));
    assert_eq!(disk.health, DiskVerdict::ReplaceSoon);
    assert_eq!(disk.read_at.as_deref(), Some("2026-11-26T00:00:00.000Z"));
}

#[test]
fn a_disk_that_does_not_answer_any_more_is_to_be_watched() {
    let (mut ledger, _) = after(2, SPARE, "nvme-micron-7450", |_| 100);
    let disk = ledger.observe(&seen(NOW + 3600, b"{")).disks.remove(0);
    assert_eq!(disk.smart, SmartState::Failed);
    assert_eq!(disk.health, DiskVerdict::Watch);
    assert!(disk.findings[0].cause.contains("until 2026-11-26"));
    // One that never did is unknown, and no more than that.
    let disk = view(b"{");
    assert_eq!(
        (disk.health, disk.findings.len()),
        (DiskVerdict::Unknown, 0)
    );
}
