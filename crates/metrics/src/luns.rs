//! What metrics report of LUNs.

use super::family::{Family, Text, seconds};
use manifest::facts::{LunFacts, LunState, OpFacts};
use manifest::latency::{LATENCY_BOUNDS_US, Latency};
use manifest::objects::Objects;
use std::collections::BTreeMap;

/// LUNs in service, by name.
pub(super) type Luns<'a> = BTreeMap<&'a str, &'a LunFacts>;

/// Nothing where nobody knows.
type Value = fn(&LunFacts) -> Option<u64>;

pub(super) const OF_LUN: [(Family<1>, Value); 5] = [
    (
        Family::gauge("causeway_lun_online", ["lun"], "1 where the LUN serves"),
        |it| Some(u64::from(it.state == LunState::Online)),
    ),
    (
        Family::gauge(
            "causeway_lun_allocated_bytes",
            ["lun"],
            "Bytes that the LUN's storage takes, where that is known",
        ),
        |it| it.allocated,
    ),
    (
        Family::gauge(
            "causeway_lun_inflight",
            ["lun"],
            "Operations that the LUN's storage has",
        ),
        |it| Some(it.in_flight),
    ),
    (
        Family::gauge(
            "causeway_lun_inflight_bytes",
            ["lun"],
            "Bytes that the LUN's commands hold",
        ),
        |it| Some(it.bytes_in_flight),
    ),
    (
        Family::gauge(
            "causeway_lun_stalled_seconds",
            ["lun"],
            "For so long the LUN's storage has answered nothing, with operations under way; absent where it answers",
        ),
        |it| it.stalled.map(|it| it.seconds),
    ),
];

pub(super) const OPS: Family<2> = Family::counter(
    "causeway_lun_ops_total",
    ["lun", "op"],
    "Operations that the LUN's storage was given: `read`, `write`, `write_same`, `unmap`, `caw`, `flush`, `other`",
);

pub(super) const BYTES: Family<2> = Family::counter(
    "causeway_lun_bytes_total",
    ["lun", "op"],
    "Bytes of the LUN's operations, of `read`, `write` and `unmap`",
);

pub(super) const LATENCY: Family<3> = Family::histogram(
    "causeway_lun_latency_seconds",
    ["lun", "op", "stage"],
    "How long `read` and `write` take: `total` is from the first byte of the command until the socket had the answer; \
     `network`, `queue`, `journal` (of writes that a journal answers) and `backend` (of all others) are its stages, of \
     which there are sum and count, and the last bucket alone",
);

pub(super) const STATUSES: Family<3> = Family::counter(
    "causeway_lun_scsi_status_total",
    ["lun", "status", "sense"],
    "Commands that did not end with GOOD",
);

pub(super) const VOLATILE: Family<0> = Family::gauge(
    "causeway_luns_volatile",
    [],
    "LUNs that lose what hosts have not flushed when power fails, chosen or not",
);

pub(super) fn luns(out: &mut Text, luns: &Luns<'_>, objects: &Objects) {
    for (family, value) in &OF_LUN {
        out.family(family);
        for (name, facts) in luns {
            if let Some(value) = value(facts) {
                out.series(family, [name], value);
            }
        }
    }
    let volatile = objects.luns.values().filter(|lun| lun.is_volatile());
    out.single(&VOLATILE, volatile.count());
    out.family(&OPS);
    for (name, op, facts) in ops(luns) {
        out.series(&OPS, [name, op], facts.ops);
    }
    out.family(&BYTES);
    let moves = |op: &str| ["read", "write", "unmap"].contains(&op);
    for (name, op, facts) in ops(luns).filter(|(_, op, _)| moves(op)) {
        out.series(&BYTES, [name, op], facts.bytes);
    }
    out.family(&LATENCY);
    for (name, op, facts) in ops(luns).filter(|(_, op, _)| ["read", "write"].contains(op)) {
        for (stage, took) in facts.latency.named() {
            // A LUN that nobody uses costs a scrape no more than it must.
            if stage == "total" || !took.is_empty() {
                latency(out, [name, op, stage], took, stage == "total");
            }
        }
    }
    out.family(&STATUSES);
    for (name, facts) in luns {
        for (status, count) in &facts.statuses {
            let (status, sense) = status.split_once(' ').unwrap_or((status, ""));
            out.series(&STATUSES, [name, status, sense], count);
        }
    }
}

fn ops<'a>(luns: &'a Luns<'a>) -> impl Iterator<Item = (&'a str, &'a str, &'a OpFacts)> {
    luns.iter().flat_map(|(name, facts)| {
        let ops = facts.ops.iter();
        ops.map(|(op, facts)| (*name, op.as_str(), facts))
    })
}

/// `whole`: with all buckets. A stage has the last one alone, without which it would be no
/// histogram: its mean says where time goes, and its buckets would be half of all series.
fn latency(out: &mut Text, values: [&str; 3], took: &Latency, whole: bool) {
    let labels: Vec<(&str, &str)> = LATENCY.labels.into_iter().zip(values).collect();
    let mut sum = 0;
    let bounds = LATENCY_BOUNDS_US.iter().map(|us| seconds(*us));
    let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
    for (bound, count) in bounds.zip(took.rebinned()) {
        sum += count;
        if !whole && bound != "+Inf" {
            continue;
        }
        let mut labels = labels.clone();
        labels.push(("le", &bound));
        out.line("causeway_lun_latency_seconds_bucket", &labels, sum);
    }
    let took = seconds(took.us_sum);
    out.line("causeway_lun_latency_seconds_sum", &labels, took);
    out.line("causeway_lun_latency_seconds_count", &labels, sum);
}
