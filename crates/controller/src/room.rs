//! Whether what was promised is there: space of pools, memory.

use super::Controller;
use manifest::code::Code;
use manifest::facts::{PoolFacts, PoolState};
use manifest::forecast::ForecastFacts;
use manifest::objects::{Lun, Objects};
use manifest::plan::LunChanges;
use manifest::problem::Problem;
use manifest::size::rounded;
use manifest::time::about;
use manifest::view::MemoryView;
use std::collections::BTreeMap;

/// A forecast that comes sooner needs attention.
const SOON_SECONDS: u64 = 86_400;

/// What of a pool's room needs attention.
pub(super) fn filling(pool: &PoolFacts) -> Option<String> {
    if !pool.members.is_empty() {
        // Nobody is refused what they were given: see `given_away`.
        return None;
    }
    let (name, free) = (&pool.name, rounded(pool.available));
    // As `df` counts: what the file system keeps for root is neither used nor free.
    let usable = pool.used.saturating_add(pool.available);
    let share = pool.available.saturating_mul(100) / usable.max(1);
    // What LUNs may not take they will not take.
    let soon = pool.full_in_seconds.filter(|it| *it < SOON_SECONDS);
    let soon = soon.filter(|_| pool.overcommitted_bytes > 0);
    let forecast = |it| format!("full in about {} at the rate of the last hour", about(it));
    match pool.state {
        PoolState::Full => Some(format!(
            "pool {name} is full ({free} free): hosts are refused blocks that have no room yet; free or add space"
        )),
        PoolState::Low => {
            let forecast = soon.map(|it| format!(", {}", forecast(it)));
            let forecast = forecast.unwrap_or_default();
            Some(format!(
                "pool {name} has only {share} % free space ({free}{forecast})"
            ))
        }
        PoolState::Ok => soon.map(|it| format!("pool {name} is {}", forecast(it))),
        PoolState::Missing | PoolState::Silent | PoolState::Unusable => None,
    }
}

/// That a pool of members has little room left, which its LUNs do not need: they have their whole
/// size.
pub(super) fn given_away(pool: &PoolFacts) -> Option<String> {
    let how = match pool.state {
        PoolState::Full => "full",
        PoolState::Low => "nearly full",
        PoolState::Ok | PoolState::Missing | PoolState::Silent | PoolState::Unusable => {
            return None;
        }
    };
    let (name, free) = (&pool.name, rounded(pool.available));
    (!pool.members.is_empty()).then(|| {
        format!(
            "pool {name} is {how} ({free} free): its LUNs have all that they were given, and no LUN can be made or grow by more than that"
        )
    })
}

/// That its LUNs may take more than it has, where they may.
pub(super) fn overcommitted(pool: &PoolFacts) -> Option<String> {
    let over = pool.overcommitted_bytes;
    (over > 0).then(|| {
        let (provisioned, free) = (rounded(pool.provisioned_bytes), rounded(pool.available));
        let others = match pool.shares_with.as_slice() {
            [] => String::new(),
            [other] => format!(", together with pool {other} on the same file system"),
            others => format!(
                ", together with pools {} on the same file system",
                others.join(", ")
            ),
        };
        format!(
            "pool {}: its LUNs have {provisioned} together, of which {} have no room: {free} are free{others}; writes are refused \
             when they are used up",
            pool.name,
            rounded(over)
        )
    })
}

/// What each pool's LUNs have together.
fn provisioned(objects: &Objects) -> BTreeMap<&str, u64> {
    let mut out = BTreeMap::new();
    for lun in objects.luns.values().chain(objects.removed.values()) {
        if let Some(pool) = lun.backing.pool() {
            let sum: &mut u64 = out.entry(pool).or_default();
            *sum = sum.saturating_add(lun.size.bytes());
        }
    }
    out
}

/// Bytes that LUNs of fixed size take at once of this pool, and the LUN that takes most.
fn taken_at_once<'a>(
    pool: &str,
    before: &Objects,
    changes: &'a LunChanges,
) -> Option<(u64, &'a Lun)> {
    let had = |lun: &Lun| {
        let known = before.luns.values().find(|known| known.naa == lun.naa);
        known.map_or(0, |known| known.size.bytes())
    };
    let grown = changes
        .resized
        .iter()
        .map(|lun| (lun.size.bytes().saturating_sub(had(lun)), lun));
    let made = changes.created.iter().map(|lun| (lun.size.bytes(), lun));
    let all = made
        .chain(grown)
        .filter(|(_, lun)| !lun.thin && lun.backing.pool() == Some(pool));
    let all: Vec<(u64, &Lun)> = all.collect();
    let bytes = all
        .iter()
        .map(|(bytes, _)| *bytes)
        .fold(0, u64::saturating_add);
    let (_, most) = all.into_iter().max_by_key(|(bytes, _)| *bytes)?;
    Some((bytes, most))
}

/// A pool whose file system has less room than LUNs of fixed size would take at once.
fn lacks_room(
    pools: &[PoolFacts],
    (before, after): (&Objects, &Objects),
    changes: &LunChanges,
) -> Result<(), Problem> {
    for pool in pools {
        let is_directory = pool.layout == "directory" && pool.total > 0;
        // What a purge gives back is not known before.
        let gives_back = |lun: &Lun| lun.backing.pool() == Some(pool.name.as_str());
        if !is_directory || changes.purged.iter().any(gives_back) {
            continue;
        }
        let Some((bytes, most)) = taken_at_once(&pool.name, before, changes) else {
            continue;
        };
        if bytes <= pool.available {
            continue;
        }
        let named = after.luns.iter().find(|(_, lun)| lun.naa == most.naa);
        let name = named.map_or(&most.naa, |(name, _)| name);
        let detail = format!(
            "LUN {name} is to have a fixed size: that takes {} at once, and pool {} has {} free",
            rounded(bytes),
            pool.name,
            rounded(pool.available)
        );
        let hint = "make it smaller, or thin (`--thin true`), which takes room as hosts write; or add space to the pool";
        return Err(Problem::new(Code::PoolFull, detail).hint(hint));
    }
    Ok(())
}

impl Controller {
    /// Whether there is room for what a change takes at once.
    ///
    /// # Errors
    /// There is not.
    pub(super) async fn has_room(
        &self,
        before: &Objects,
        after: &Objects,
        changes: &LunChanges,
    ) -> Result<(), Problem> {
        let mut luns = changes.created.iter().chain(&changes.resized);
        if luns.all(|lun| lun.thin) {
            return Ok(());
        }
        let pools = self.engine.pools().await;
        lacks_room(&pools, (before, after), changes)
    }

    /// When pools are likely to be full, by their names, as whoever reads their history reports it.
    pub fn set_forecasts(&self, forecasts: BTreeMap<String, ForecastFacts>) {
        *self.forecasts.borrow_mut() = forecasts;
    }

    /// What memory LUNs and read caches may take.
    pub(super) async fn memory(&self, objects: &Objects) -> MemoryView {
        MemoryView::of(objects, self.engine.memory().await)
    }

    /// What a change promises that is not there.
    pub(super) async fn room_notices(&self, before: &Objects, after: &Objects) -> Vec<String> {
        let mut notices = Vec::new();
        let (was, will) = (provisioned(before), provisioned(after));
        let more = |pool: &str| {
            let was = was.get(pool).copied().unwrap_or(0);
            let will = will.get(pool).copied().unwrap_or(0);
            will.saturating_sub(was)
        };
        if will.keys().any(|pool| more(pool) > 0) {
            let pools = self.engine.pools().await;
            for pool in &pools {
                let (mut pool, more_here) = (pool.clone(), more(&pool.name));
                let whole = pool.members.is_empty() && pool.total > 0;
                if more_here == 0 || !whole {
                    continue;
                }
                // What its LUNs may still take now is what is over, or not known to be anything.
                let over = pool.outstanding_bytes.saturating_add(more_here);
                let others = pools
                    .iter()
                    .filter(|it| pool.shares_with.contains(&it.name))
                    .map(|it| it.outstanding_bytes.saturating_add(more(&it.name)));
                let together = others.fold(over, u64::saturating_add);
                pool.overcommitted_bytes = together.saturating_sub(pool.available).min(over);
                pool.provisioned_bytes = pool.provisioned_bytes.saturating_add(more_here);
                notices.extend(overcommitted(&pool));
            }
        }
        let (was, will) = (MemoryView::of(before, None), MemoryView::of(after, None));
        if will.promised() > was.promised() {
            notices.extend(self.memory(after).await.note());
        }
        notices
    }
}
