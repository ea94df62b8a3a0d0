//! What `pool check` found, for people.

use output::{rounded, table};
use pool_check::journal::{DamagedView, JournalView};
use pool_check::{LunView, MemberView, PoolView};

/// A pool as lines of a terminal; the same facts as the JSON.
pub(super) fn pool(view: &PoolView) -> String {
    let event = view
        .event
        .map_or_else(String::new, |event| format!(", event {event}"));
    let verdict = match (view.complete, view.good) {
        (true, true) => "complete",
        (true, false) => "DAMAGED",
        (false, _) => "NOT COMPLETE",
    };
    let journal = match view.journal {
        Some(true) => "it has a journal: causeway pool check JOURNAL examines it",
        Some(false) => "it has no journal",
        None => "nobody knows whether it has a journal",
    };
    let mut out = format!(
        "pool {} ({}){event}, {} of {} free, {verdict}\n{journal}\n\n",
        view.pool.as_deref().unwrap_or("without a number"),
        view.layout,
        rounded(view.free.unwrap_or(0)),
        rounded(view.room.unwrap_or(0)),
    );
    let rows: Vec<Vec<String>> = view.members.iter().map(member).collect();
    out.push_str(&table(
        &["MEMBER", "PATH", "SERIAL", "EVENT", "SIZE", "STATE"],
        &rows,
    ));
    let rows: Vec<Vec<String>> = view.luns.iter().map(lun).collect();
    if !rows.is_empty() {
        let head = ["LUN", "SIZE", "STATE", "CHECKSUMS", "HISTORY"];
        out.push_str(&format!("\n{}", table(&head, &rows)));
    }
    out
}

fn member(member: &MemberView) -> Vec<String> {
    let number = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
    vec![
        member
            .member
            .map_or_else(|| "-".to_owned(), |number| number.to_string()),
        member.path.clone(),
        member.serial.clone().unwrap_or_default(),
        number(member.event),
        member.size.map(rounded).unwrap_or_default(),
        member.state.clone(),
    ]
}

fn lun(lun: &LunView) -> Vec<String> {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    vec![
        lun.naa.clone(),
        rounded(lun.bytes),
        lun.state.clone(),
        or_none(&lun.checksums),
        or_none(&lun.history),
    ]
}

/// A journal as lines of a terminal; the same facts as the JSON.
pub(super) fn journal(view: &JournalView) -> String {
    let rings = view.rings.iter().map(|ring| {
        vec![
            ring.ring.to_string(),
            ring.openings.to_string(),
            rounded(ring.used),
            ring.batches.to_string(),
            ring.changes.to_string(),
            ring.checkpoint.clone(),
            ring.state.clone(),
        ]
    });
    let rings: Vec<Vec<String>> = rings.collect();
    let mut out = format!(
        "journal {} of pool {}, {}, rings: {}, {}\nsuperblock: {}\n\n{}",
        view.path,
        view.pool,
        rounded(view.size),
        view.rings.len(),
        if view.good { "good" } else { "DAMAGED" },
        view.superblock,
        table(
            &[
                "RING",
                "OPENINGS",
                "USED",
                "BATCHES",
                "CHANGES",
                "CHECKPOINT",
                "STATE"
            ],
            &rings
        )
    );
    let luns = view.luns.iter().map(|lun| {
        vec![
            lun.lun.clone(),
            lun.changes.to_string(),
            rounded(lun.bytes),
            lun.damaged.to_string(),
        ]
    });
    let luns: Vec<Vec<String>> = luns.collect();
    if !luns.is_empty() {
        let head = ["LUN (NAA)", "CHANGES", "BYTES", "DAMAGED"];
        out.push_str(&format!("\n{}", table(&head, &luns)));
    }
    for (what, all) in [("DAMAGED: LUN", &view.damaged), ("LOST: LUN", &view.lost)] {
        let rows: Vec<Vec<String>> = all.iter().map(damaged).collect();
        if !rows.is_empty() {
            let head = [what, "FIRST BLOCK", "BLOCKS", "BATCH"];
            out.push_str(&format!("\n{}", table(&head, &rows)));
        }
    }
    out
}

fn damaged(damaged: &DamagedView) -> Vec<String> {
    let numbers = [damaged.lba, damaged.blocks, damaged.batch].map(|it| it.to_string());
    let mut row = vec![damaged.lun.clone()];
    row.extend(numbers);
    row
}
