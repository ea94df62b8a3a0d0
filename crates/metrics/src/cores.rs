//! What metrics report of cores.

use super::family::{Family, Text, seconds};
use manifest::facts::CoreFacts;

type Value = fn(&CoreFacts) -> String;

pub(super) const FAMILIES: [(Family<1>, Value); 5] = [
    (
        Family::counter(
            "causeway_core_busy_seconds_total",
            ["core"],
            "Processor time that the core has worked; its rate is the busy share",
        ),
        |it| seconds(it.busy_us),
    ),
    (
        Family::gauge(
            "causeway_core_load_ratio",
            ["core"],
            "How busy it is now, from 0 to 1",
        ),
        |it| format!("{}.{:03}", it.load_permille / 1000, it.load_permille % 1000),
    ),
    (
        Family::gauge(
            "causeway_core_connections",
            ["core"],
            "Connections that it serves",
        ),
        |it| it.connections.to_string(),
    ),
    (
        Family::gauge(
            "causeway_core_registered_files",
            ["core"],
            "Files that it has registered with io_uring",
        ),
        |it| it.registered_files.to_string(),
    ),
    (
        Family::gauge(
            "causeway_core_registered_bytes",
            ["core"],
            "Bytes of payload memory that it has registered with io_uring",
        ),
        |it| it.registered_bytes.to_string(),
    ),
];

pub(super) const DISK_ENGINE: Family<2> = Family::gauge(
    "causeway_core_disk_engine",
    ["core", "engine"],
    "1 under what drives its disks: `io_uring`, or `threads` where that is refused; `status` then says so",
);

pub(super) fn cores(out: &mut Text, cores: &[CoreFacts]) {
    let named = cores.iter().map(|core| (core.core.to_string(), core));
    let named: Vec<(String, &CoreFacts)> = named.collect();
    for (family, value) in &FAMILIES {
        out.family(family);
        for (number, core) in &named {
            out.series(family, [number], value(core));
        }
    }
    out.family(&DISK_ENGINE);
    for (number, core) in &named {
        out.series(&DISK_ENGINE, [number, &core.disk_engine], 1);
    }
}
