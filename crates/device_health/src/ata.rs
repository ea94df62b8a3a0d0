//! What ATA disks say: attributes by number or name, device statistics, self-tests.

use crate::fields::{at, number, percent, text};
use manifest::disks::DiskFacts;
use serde_json::Value;

/// A count above this is several figures that a maker packed into one.
const COUNT_MAX: u64 = u32::MAX as u64;

/// The most names of attributes that are kept.
const NAMES_MAX: usize = 16;

/// How an attribute says what is left.
#[derive(Clone, Copy)]
enum Left {
    /// By its normalized value.
    Value,
    /// By its raw value where that can be a percentage, else by the normalized one.
    Raw,
    /// By its raw value, which counts what is used.
    Used,
}

/// Names of smartctl's database for what is left of the writes that a disk was made for, the most
/// trustworthy first. The same numbers mean other things in other disks, so numbers do not count.
const LIFE: [(&str, Left); 7] = [
    ("Media_Wearout_Indicator", Left::Value),
    ("Percent_Lifetime_Remain", Left::Value),
    ("SSD_Life_Left", Left::Raw),
    ("Remaining_Lifetime_Perc", Left::Raw),
    ("Percent_Life_Remaining", Left::Value),
    ("Perc_Rated_Life_Used", Left::Used),
    ("Wear_Leveling_Count", Left::Value),
];

/// The same for spare blocks.
const SPARE: [&str; 2] = ["Available_Reservd_Space", "Perc_Avail_Resrvd_Space"];

fn attributes(document: &Value) -> &[Value] {
    let table = at(document, "/ata_smart_attributes/table").and_then(Value::as_array);
    table.map(Vec::as_slice).unwrap_or_default()
}

fn called<'a>(all: &'a [Value], name: &str) -> Option<&'a Value> {
    all.iter().find(|it| it["name"].as_str() == Some(name))
}

fn raw(all: &[Value], id: u64) -> Option<u64> {
    let found = all.iter().find(|it| it["id"].as_u64() == Some(id))?;
    number(found, "/raw/value").filter(|count| *count <= COUNT_MAX)
}

/// A statistic of the device (ACS-4), by its name.
fn statistic(document: &Value, name: &str) -> Option<u64> {
    let pages = at(document, "/ata_device_statistics/pages")?.as_array()?;
    let rows = pages.iter().filter_map(|page| page["table"].as_array());
    let found = rows.flatten().find(|row| {
        let is_valid = row.pointer("/flags/valid").and_then(Value::as_bool);
        row["name"].as_str() == Some(name) && is_valid != Some(false)
    })?;
    number(found, "/value")
}

fn wear(document: &Value, all: &[Value]) -> Option<u64> {
    let standard = statistic(document, "Percentage Used Endurance Indicator");
    let standard = standard.or_else(|| percent(document, "/endurance_used/current_percent"));
    standard.filter(|used| *used <= 255).or_else(|| {
        LIFE.iter().find_map(|(name, left)| {
            let found = called(all, name)?;
            let value = percent(found, "/value").filter(|value| *value <= 100);
            let raw = number(found, "/raw/value").filter(|raw| (1..=100).contains(raw));
            match left {
                Left::Value => value.map(|value| 100 - value),
                Left::Raw => raw.or(value).map(|left| 100 - left),
                Left::Used => number(found, "/raw/value").filter(|used| *used <= 255),
            }
        })
    })
}

fn names(all: &[Value], when: &str) -> Vec<String> {
    let failed = all
        .iter()
        .filter(|it| it["when_failed"].as_str() == Some(when));
    failed
        .filter_map(|it| text(it, "/name"))
        .take(NAMES_MAX)
        .collect()
}

/// The last self-test that has an outcome, with whether it passed.
fn self_test(document: &Value) -> Option<(String, Option<bool>)> {
    let logs = [
        "/ata_smart_self_test_log/extended/table/0",
        "/ata_smart_self_test_log/standard/table/0",
    ];
    let last = logs.iter().find_map(|log| at(document, log))?;
    let words = text(last, "/status/string")?;
    let kind = text(last, "/type/string");
    let passed = at(last, "/status/passed").and_then(Value::as_bool);
    let words = kind.map_or_else(|| words.clone(), |kind| format!("{kind}: {words}"));
    Some((words, passed))
}

/// Adds what an ATA disk says.
pub(crate) fn read(document: &Value, facts: &mut DiskFacts) {
    let all = attributes(document);
    facts.reallocated_sectors = raw(all, 5);
    facts.uncorrected_errors = raw(all, 187);
    facts.pending_sectors = raw(all, 197);
    facts.offline_uncorrectable_sectors = raw(all, 198);
    facts.crc_errors = raw(all, 199);
    facts.wear_percent = wear(document, all);
    let spare = SPARE.iter().find_map(|name| called(all, name));
    facts.spare_percent = spare
        .and_then(|it| percent(it, "/value"))
        .filter(|left| *left <= 100);
    facts.spare_threshold_percent = spare
        .and_then(|it| percent(it, "/thresh"))
        .filter(|least| (1..=100).contains(least));
    facts.failing_attributes = names(all, "now");
    facts.failed_before = names(all, "past");
    let logs = [
        "/ata_smart_error_log/extended/count",
        "/ata_smart_error_log/summary/count",
    ];
    facts.logged_errors = logs.iter().find_map(|log| number(document, log));
    if let Some((words, passed)) = self_test(document) {
        facts.self_test = Some(words);
        facts.self_test_passed = passed;
    }
}
