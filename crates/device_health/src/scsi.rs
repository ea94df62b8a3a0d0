//! What SCSI disks say: grown defects, error counters, endurance, self-tests.

use crate::fields::{at, number, percent, text};
use manifest::disks::DiskFacts;
use serde_json::Value;

/// Results of self-tests as SCSI numbers them: 0 is success, 3 to 7 are failures.
const PASSED: u64 = 0;
const FAILED: std::ops::RangeInclusive<u64> = 3..=7;

/// Errors that were not corrected, over reads, writes and verifies.
fn uncorrected(document: &Value) -> Option<u64> {
    let of = |what: &str| {
        let place = format!("/scsi_error_counter_log/{what}/total_uncorrected_errors");
        number(document, &place)
    };
    let all = ["read", "write", "verify"];
    let counts: Vec<u64> = all.iter().filter_map(|what| of(what)).collect();
    let total = counts.iter().fold(0_u64, |all, it| all.saturating_add(*it));
    (!counts.is_empty()).then_some(total)
}

/// Adds what a SCSI disk says.
pub(crate) fn read(document: &Value, facts: &mut DiskFacts) {
    facts.grown_defects = number(document, "/scsi_grown_defect_list");
    facts.uncorrected_errors = uncorrected(document);
    facts.pending_sectors = number(document, "/scsi_pending_defects/count");
    facts.wear_percent = percent(document, "/scsi_percentage_used_endurance_indicator")
        .or_else(|| percent(document, "/endurance_used/current_percent"));
    let Some(last) = at(document, "/scsi_self_test_0") else {
        return;
    };
    let words = text(last, "/result/string");
    let kind = text(last, "/code/string");
    facts.self_test = words
        .as_ref()
        .map(|words| kind.map_or_else(|| words.clone(), |kind| format!("{kind}: {words}")));
    facts.self_test_passed = match number(last, "/result/value") {
        Some(PASSED) => Some(true),
        Some(value) if FAILED.contains(&value) => Some(false),
        Some(_) => None,
        // Older versions have the words alone.
        None => words.and_then(|words| match words.as_str() {
            "Completed" => Some(true),
            words if words.contains("failed") => Some(false),
            _ => None,
        }),
    };
}
