//! What `pool show` shows of all pools.

use crate::backend::door::Promised;
use crate::inner::Inner;
use manifest::facts::PoolFacts;

/// Of every pool, in the order of node.toml.
pub(crate) async fn pools(node: &Inner) -> Vec<PoolFacts> {
    let mut out: Vec<PoolFacts> = Vec::new();
    // By its place in `out`.
    let mut file_systems: Vec<(usize, u64)> = Vec::new();
    let pools = node.pools();
    for pool in &node.config.pools {
        let Some(opened) = pools.get(&pool.name) else {
            continue;
        };
        let (facts, file_system) = opened.facts(promised(node, &pool.name)).await;
        file_systems.extend(file_system.map(|it| (out.len(), it)));
        out.push(facts);
    }
    share(&mut out, &file_systems);
    out
}

/// Pools on one file system have its room together: what is free counts once.
fn share(pools: &mut [PoolFacts], file_systems: &[(usize, u64)]) {
    for (own, file_system) in file_systems {
        let same = file_systems.iter().filter(|(_, it)| it == file_system);
        let same: Vec<&PoolFacts> = same.filter_map(|(index, _)| pools.get(*index)).collect();
        let together = same.iter().fold(0_u64, |sum, pool| {
            sum.saturating_add(pool.outstanding_bytes)
        });
        let Some(pool) = pools.get(*own) else {
            continue;
        };
        let others = same.iter().filter(|other| other.name != pool.name);
        let others: Vec<String> = others.map(|other| other.name.clone()).collect();
        let over = together.saturating_sub(pool.available);
        let over = over.min(pool.outstanding_bytes);
        if let Some(pool) = pools.get_mut(*own).filter(|_| !others.is_empty()) {
            pool.shares_with = others;
            pool.overcommitted_bytes = if pool.total > 0 { over } else { 0 };
        }
    }
}

/// What the LUNs of a pool were given.
fn promised(node: &Inner, pool: &str) -> Promised {
    let objects = node.objects.borrow();
    let all = objects.luns.values().chain(objects.removed.values());
    let mut out = Promised::default();
    for lun in all.filter(|lun| lun.backing.pool() == Some(pool)) {
        let size = lun.size.bytes();
        let takes = node.usage.of(&lun.naa).unwrap_or(0);
        out.provisioned = out.provisioned.saturating_add(size);
        out.outstanding = out.outstanding.saturating_add(size.saturating_sub(takes));
    }
    out
}
