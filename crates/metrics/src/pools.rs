//! What metrics report of pools and memory: what there is, and what was promised of it.

use super::family::{Family, Text};
use manifest::facts::PoolFacts;
use manifest::view::MemoryView;

/// Nothing where nobody knows.
type Value = fn(&PoolFacts) -> Option<u64>;

const fn gauge(name: &'static str, help: &'static str) -> Family<1> {
    Family::gauge(name, ["pool"], help)
}

pub(super) const FAMILIES: [(Family<1>, Value); 9] = [
    (
        gauge(
            "causeway_pool_online",
            "1 where the pool answers and can be used",
        ),
        |it| Some(u64::from(it.problem.is_none())),
    ),
    (
        gauge(
            "causeway_pool_health",
            "How the storage below the pool is by its own account: 0 well, 1 a warning, 2 an error; of pools of Ceph images",
        ),
        |it| Some(it.health.as_ref()?.severity as u64),
    ),
    (
        gauge(
            "causeway_pool_size_bytes",
            "All space of the pool, where that is known",
        ),
        |it| Some(it.total).filter(|_| it.total > 0),
    ),
    (
        gauge(
            "causeway_pool_used_bytes",
            "What of the pool's space is used, where that is known",
        ),
        |it| Some(it.used).filter(|_| it.total > 0),
    ),
    (
        gauge(
            "causeway_pool_available_bytes",
            "What can still be written to the pool, where that is known; some file systems keep a part of what is free",
        ),
        |it| Some(it.available).filter(|_| it.total > 0),
    ),
    (
        gauge(
            "causeway_pool_members",
            "How many disks or files the pool is made of; 0 is a directory, or images of a cluster",
        ),
        |it| u64::try_from(it.members.len()).ok(),
    ),
    (
        gauge(
            "causeway_pool_provisioned_bytes",
            "What the pool's LUNs were given, removed ones included",
        ),
        |it| Some(it.provisioned_bytes),
    ),
    (
        gauge(
            "causeway_pool_overcommitted_bytes",
            "What the pool's LUNs may still take and has no room, of pools on one file system together",
        ),
        |it| Some(it.overcommitted_bytes),
    ),
    (
        gauge(
            "causeway_pool_full_in_seconds",
            "Until the pool is full at the rate of the last hour; absent where it does not fill up",
        ),
        |it| it.full_in_seconds,
    ),
];

pub(super) const MEMORY_PROVISIONED: Family<1> = Family::gauge(
    "causeway_memory_provisioned_bytes",
    ["use"],
    "Memory that LUNs (`luns`) and read caches (`read_caches`) may take",
);

pub(super) const MEMORY_SIZE: Family<0> = Family::gauge(
    "causeway_memory_size_bytes",
    [],
    "Memory that the daemon may use: the machine's, or its control group's where that is less",
);

pub(super) fn pools(out: &mut Text, pools: &[PoolFacts]) {
    for (family, value) in &FAMILIES {
        out.family(family);
        for pool in pools {
            if let Some(value) = value(pool) {
                out.series(family, [&pool.name], value);
            }
        }
    }
}

pub(super) fn memory(out: &mut Text, memory: &MemoryView) {
    out.family(&MEMORY_PROVISIONED);
    for (use_, bytes) in [
        ("luns", memory.lun_bytes),
        ("read_caches", memory.read_cache_bytes),
    ] {
        out.series(&MEMORY_PROVISIONED, [use_], bytes);
    }
    if let Some(total) = memory.total_bytes {
        out.single(&MEMORY_SIZE, total);
    }
}
