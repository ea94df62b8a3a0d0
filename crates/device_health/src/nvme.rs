//! What NVMe disks say: the SMART / health information log, and self-tests.

use crate::fields::{at, number, percent, text};
use manifest::disks::DiskFacts;
use serde_json::Value;

const LOG: &str = "/nvme_smart_health_information_log";

/// Results of self-tests as NVMe numbers them: 0 is success, 1 to 4, 8 and 9 were cut off.
const PASSED: u64 = 0;
const FAILED: std::ops::RangeInclusive<u64> = 5..=7;

/// Adds what an NVMe disk says.
pub(crate) fn read(document: &Value, facts: &mut DiskFacts) {
    let Some(log) = at(document, LOG) else {
        return;
    };
    facts.critical_warning = number(log, "/critical_warning").filter(|bits| *bits <= 255);
    facts.spare_percent = percent(log, "/available_spare").filter(|left| *left <= 100);
    facts.spare_threshold_percent =
        percent(log, "/available_spare_threshold").filter(|least| *least <= 100);
    facts.wear_percent = percent(log, "/percentage_used");
    facts.media_errors = number(log, "/media_errors");
    facts.logged_errors = number(log, "/num_err_log_entries");
    facts.unsafe_shutdowns = number(log, "/unsafe_shutdowns");
    facts.power_on_hours = facts
        .power_on_hours
        .or_else(|| number(log, "/power_on_hours"));
    let last = at(document, "/nvme_self_test_log/table/0");
    if let Some(last) = last {
        let value = number(last, "/self_test_result/value");
        let words = text(last, "/self_test_result/string");
        let kind = text(last, "/self_test_code/string");
        facts.self_test = words
            .map(|words| kind.map_or_else(|| words.clone(), |kind| format!("{kind}: {words}")));
        facts.self_test_passed = match value {
            Some(PASSED) => Some(true),
            Some(value) if FAILED.contains(&value) => Some(false),
            Some(_) | None => None,
        };
    }
}
