//! What was promised of pools and memory, and what there is.

use super::Text;
use manifest::facts::PoolFacts;
use manifest::view::MemoryView;

pub(super) fn room(out: &mut Text, pools: &[PoolFacts], memory: &MemoryView) {
    let help = "Bytes that the pool's LUNs were given, removed ones included";
    out.family("causeway_pool_provisioned_bytes", "gauge", help);
    for pool in pools {
        let labels = [("pool", pool.name.as_str())];
        out.series(
            "causeway_pool_provisioned_bytes",
            &labels,
            pool.provisioned_bytes,
        );
    }
    let help = "Bytes that the pool's LUNs may still take and that it does not have";
    out.family("causeway_pool_overcommitted_bytes", "gauge", help);
    for pool in pools {
        let labels = [("pool", pool.name.as_str())];
        out.series(
            "causeway_pool_overcommitted_bytes",
            &labels,
            pool.overcommitted_bytes,
        );
    }
    let help = "Seconds until the pool is full at the rate of the last hour; absent where it does not fill up";
    out.family("causeway_pool_full_in_seconds", "gauge", help);
    for pool in pools {
        if let Some(seconds) = pool.full_in_seconds {
            let labels = [("pool", pool.name.as_str())];
            out.series("causeway_pool_full_in_seconds", &labels, seconds);
        }
    }
    let help = "Memory that LUNs and read caches may take";
    out.family("causeway_memory_provisioned_bytes", "gauge", help);
    for (use_, bytes) in [
        ("luns", memory.lun_bytes),
        ("read_caches", memory.read_cache_bytes),
    ] {
        out.series("causeway_memory_provisioned_bytes", &[("use", use_)], bytes);
    }
    if let Some(total) = memory.total_bytes {
        let help = "Memory that the daemon may use";
        out.family("causeway_memory_size_bytes", "gauge", help);
        out.series("causeway_memory_size_bytes", &[], total);
    }
}
