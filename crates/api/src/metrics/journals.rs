//! What metrics tell of the pools' journals.

use super::family::{Text, seconds};
use manifest::facts::PoolFacts;
use manifest::journal::{JournalFacts, JournalState};

/// A family: name, kind, help, value.
type Family = (&'static str, &'static str, &'static str, Value);

type Value = fn(&JournalFacts) -> String;

/// Of journals that are open, failed or not.
const FAMILIES: [Family; 16] = [
    (
        "causeway_journal_size_bytes",
        "gauge",
        "Bytes of the journal",
        |it| it.size_bytes.to_string(),
    ),
    (
        "causeway_journal_used_bytes",
        "gauge",
        "Bytes of these in use",
        |it| it.used_bytes.to_string(),
    ),
    (
        "causeway_journal_pending_bytes",
        "gauge",
        "Bytes of LUNs whose newest data is in the journal only",
        |it| it.pending_bytes.to_string(),
    ),
    (
        "causeway_journal_oldest_seconds",
        "gauge",
        "Age of the oldest change that is not destaged; 0 where all is",
        |it| seconds(it.oldest_ms.unwrap_or(0).saturating_mul(1000)),
    ),
    (
        "causeway_journal_index_bytes",
        "gauge",
        "Memory of the journal's index",
        |it| it.index_bytes.to_string(),
    ),
    (
        "causeway_journal_history_bytes",
        "gauge",
        "Memory of the histories of its LUNs",
        |it| it.history_bytes.to_string(),
    ),
    (
        "causeway_journal_batches_total",
        "counter",
        "Batches written",
        |it| it.batches.to_string(),
    ),
    (
        "causeway_journal_changes_total",
        "counter",
        "Changes in them",
        |it| it.changes.to_string(),
    ),
    (
        "causeway_journal_written_bytes_total",
        "counter",
        "Bytes written",
        |it| it.written_bytes.to_string(),
    ),
    (
        "causeway_journal_destaged_bytes_total",
        "counter",
        "Bytes destaged from it",
        |it| it.destaged_bytes.to_string(),
    ),
    (
        "causeway_journal_write_around_bytes_total",
        "counter",
        "Bytes of large writes that went to the backing volume at once",
        |it| it.write_around_bytes.to_string(),
    ),
    (
        "causeway_journal_waiting_changes",
        "gauge",
        "Changes that wait for it now",
        |it| it.waiting_changes.to_string(),
    ),
    (
        "causeway_journal_waiting_bytes",
        "gauge",
        "Bytes of the data of changes that wait for it now",
        |it| it.waiting_bytes.to_string(),
    ),
    (
        "causeway_journal_throttled_total",
        "counter",
        "Changes that were throttled, because as many waited as may",
        |it| it.throttled.to_string(),
    ),
    (
        "causeway_journal_misreads_total",
        "counter",
        "Reads of it that did not fit their checksum at first",
        |it| it.misreads.to_string(),
    ),
    (
        "causeway_journal_lost_blocks",
        "gauge",
        "Acknowledged blocks that are damaged in it, and were not written again",
        |it| it.lost_blocks.values().sum::<u64>().to_string(),
    ),
];

pub(super) fn journals(out: &mut Text, pools: &[PoolFacts]) {
    let known = pools
        .iter()
        .filter_map(|pool| Some((pool.name.as_str(), pool.journal.as_ref()?)));
    let known: Vec<(&str, &JournalFacts)> = known.collect();
    if known.is_empty() {
        return;
    }
    let name = "causeway_journal_state";
    out.begin(name, "gauge", "1 under what the pool's journal is");
    for (pool, facts) in &known {
        for state in JournalState::ALL {
            let labels = [("pool", *pool), ("state", state.name())];
            out.line(name, &labels, u8::from(state == facts.state));
        }
    }
    let name = "causeway_journal_destage_error_luns";
    out.begin(name, "gauge", "LUNs whose writes cannot be destaged now");
    for (pool, facts) in &known {
        out.line(name, &[("pool", pool)], facts.destage_errors.len());
    }
    for (name, kind, help, value) in FAMILIES {
        out.begin(name, kind, help);
        for (pool, facts) in &known {
            if facts.state != JournalState::Missing {
                out.line(name, &[("pool", pool)], value(facts));
            }
        }
    }
}
