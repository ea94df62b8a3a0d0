//! What metrics report of the pools' journals.

use super::family::{Family, Text, seconds};
use manifest::facts::PoolFacts;
use manifest::journal::{JournalFacts, JournalState};

type Value = fn(&JournalFacts) -> String;

pub(super) const STATE: Family<2> = Family::gauge(
    "causeway_journal_state",
    ["pool", "state"],
    "1 under how the pool's journal is: `open`, `failed` (it takes no change until it is reopened, or finds the space \
     again that it lacked), `missing` (its LUNs are offline)",
);

pub(super) const DESTAGE_ERRORS: Family<1> = Family::gauge(
    "causeway_journal_destage_error_luns",
    ["pool"],
    "LUNs whose writes cannot be destaged now",
);

const fn gauge(name: &'static str, help: &'static str) -> Family<1> {
    Family::gauge(name, ["pool"], help)
}

const fn counter(name: &'static str, help: &'static str) -> Family<1> {
    Family::counter(name, ["pool"], help)
}

/// Of journals that are open, failed or not.
pub(super) const FAMILIES: [(Family<1>, Value); 17] = [
    (
        gauge("causeway_journal_size_bytes", "Bytes of the journal's log"),
        |it| it.size_bytes.to_string(),
    ),
    (
        gauge(
            "causeway_journal_used_bytes",
            "Bytes of the journal's log that are in use",
        ),
        |it| it.used_bytes.to_string(),
    ),
    (
        gauge(
            "causeway_journal_pending_bytes",
            "Bytes of LUNs whose newest data is in the journal only",
        ),
        |it| it.pending_bytes.to_string(),
    ),
    (
        gauge(
            "causeway_journal_oldest_seconds",
            "How long the oldest change that is not destaged has waited; 0 where all is",
        ),
        |it| seconds(it.oldest_ms.unwrap_or(0).saturating_mul(1000)),
    ),
    (
        gauge(
            "causeway_journal_index_bytes",
            "Memory of the journal's index",
        ),
        |it| it.index_bytes.to_string(),
    ),
    (
        gauge(
            "causeway_journal_history_bytes",
            "Memory of the histories of the journal's LUNs, which say what changed since a cut",
        ),
        |it| it.history_bytes.to_string(),
    ),
    (
        counter(
            "causeway_journal_batches_total",
            "Batches that were written to it since it was opened",
        ),
        |it| it.batches.to_string(),
    ),
    (
        counter(
            "causeway_journal_changes_total",
            "Changes that were written to it since it was opened",
        ),
        |it| it.changes.to_string(),
    ),
    (
        counter(
            "causeway_journal_written_bytes_total",
            "Bytes that were written to it since it was opened",
        ),
        |it| it.written_bytes.to_string(),
    ),
    (
        counter(
            "causeway_journal_destaged_bytes_total",
            "Bytes that were destaged from the journal; the rate of this is that of destage",
        ),
        |it| it.destaged_bytes.to_string(),
    ),
    (
        counter(
            "causeway_journal_write_around_bytes_total",
            "Bytes of large writes that did not go through it, but to the backing volume at once",
        ),
        |it| it.write_around_bytes.to_string(),
    ),
    (
        gauge(
            "causeway_journal_waiting_changes",
            "Changes that wait for it now; in each ring 2048 may, and 16 MiB of their data, or an eighth of its \
             room where that is less",
        ),
        |it| it.waiting_changes.to_string(),
    ),
    (
        gauge(
            "causeway_journal_waiting_bytes",
            "Bytes of the data of changes that wait for it now",
        ),
        |it| it.waiting_bytes.to_string(),
    ),
    (
        counter(
            "causeway_journal_throttled_total",
            "Changes that came when as many waited as may, and had to wait their turn",
        ),
        |it| it.throttled.to_string(),
    ),
    (
        counter(
            "causeway_journal_misreads_total",
            "Reads of it that did not fit their checksum at first; what of it is damaged for good is in `lost_blocks`",
        ),
        |it| it.misreads.to_string(),
    ),
    (
        gauge(
            "causeway_journal_replay_seconds",
            "How long it took to open it, when what it held was read",
        ),
        |it| seconds(it.replay_ms.saturating_mul(1000)),
    ),
    (
        gauge(
            "causeway_journal_lost_blocks",
            "Acknowledged blocks that are damaged in it, found at a start, by a read or when they were destaged, \
             and not written again since",
        ),
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
    out.family(&STATE);
    for (pool, facts) in &known {
        for state in JournalState::ALL {
            out.series(&STATE, [pool, state.name()], u8::from(state == facts.state));
        }
    }
    out.family(&DESTAGE_ERRORS);
    for (pool, facts) in &known {
        out.series(&DESTAGE_ERRORS, [pool], facts.destage_errors.len());
    }
    for (family, value) in &FAMILIES {
        out.family(family);
        for (pool, facts) in &known {
            if facts.state != JournalState::Missing {
                out.series(family, [pool], value(facts));
            }
        }
    }
}
