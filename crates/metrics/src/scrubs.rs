//! What metrics report of scrubs.

use super::family::{Family, Text};
use super::luns::Luns;
use manifest::scrub::{JournalScrub, ScrubFacts, ScrubState};
use manifest::time::parse;

type Value = fn(&ScrubFacts) -> u64;

const fn gauge(name: &'static str, help: &'static str) -> Family<1> {
    Family::gauge(name, ["lun"], help)
}

/// Of LUNs that were scrubbed once.
pub(super) const FAMILIES: [(Family<1>, Value); 8] = [
    (
        gauge("causeway_scrub_running", "1 while the LUN is scrubbed"),
        |it| u64::from(it.state == ScrubState::Running),
    ),
    (
        gauge(
            "causeway_scrub_done_bytes",
            "Bytes that the scrub, or the last one, has read",
        ),
        |it| it.done_bytes,
    ),
    (
        gauge("causeway_scrub_rate_bytes", "Bytes that it reads a second"),
        |it| it.bytes_per_second,
    ),
    (
        gauge(
            "causeway_scrub_unreadable_blocks",
            "Blocks that the medium could not read",
        ),
        |it| it.unreadable_blocks,
    ),
    (
        gauge(
            "causeway_scrub_mismatched_blocks",
            "Blocks that are not what was written",
        ),
        |it| it.mismatched_blocks,
    ),
    (
        gauge(
            "causeway_scrub_map_pages",
            "Pages of the map of checksums, superblocks included, that were damaged",
        ),
        |it| it.map_pages,
    ),
    (
        gauge(
            "causeway_scrub_journal_damage",
            "Changes, blocks of the LUN, superblocks and checkpoints that were damaged in the journal of the LUN's pool",
        ),
        |it| it.journal.as_ref().map_or(0, JournalScrub::damage),
    ),
    (
        gauge(
            "causeway_scrub_metadata_damage",
            "Parts of other metadata that were damaged: its changed-block map, members' superblocks, stored state and \
             objects; `scrub status` names them",
        ),
        |it| it.metadata.len() as u64,
    ),
];

pub(super) const ERRORS: Family<2> = Family::counter(
    "causeway_scrub_errors_total",
    ["lun", "result"],
    "What scrubs of the LUN have found, this one and those before, each of them anew: blocks, pages of the map, places \
     of the journal and of other metadata; `unrepaired`, because a node alone has no other copy to repair from",
);

/// Of LUNs of which a scrub came to its end.
pub(super) const VERIFIED: Family<1> = gauge(
    "causeway_scrub_last_success_timestamp_seconds",
    "When a scrub that has read all of the LUN ended last, in seconds since 1970; absent: none ever did",
);

pub(super) fn scrubs(out: &mut Text, luns: &Luns<'_>) {
    let known = luns
        .iter()
        .filter_map(|(lun, facts)| Some((*lun, facts.scrub.as_ref()?)));
    let known: Vec<(&str, &ScrubFacts)> = known.collect();
    if known.is_empty() {
        return;
    }
    for (family, value) in &FAMILIES {
        out.family(family);
        for (lun, scrub) in &known {
            out.series(family, [lun], value(scrub));
        }
    }
    out.family(&ERRORS);
    for (lun, scrub) in &known {
        let all = scrub.found_before.saturating_add(scrub.found());
        out.series(&ERRORS, [lun, "unrepaired"], all);
    }
    out.family(&VERIFIED);
    for (lun, scrub) in known {
        if let Some(at) = scrub.last_verified().and_then(parse) {
            out.series(&VERIFIED, [lun], at.0 / 1_000_000_000);
        }
    }
}
