//! The node's side of pools of members: opened at the start, probed while it serves.

use super::MemberPool;
use super::inspect::print;
use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use crate::pool::late;
use env::CoreHandle;
use manifest::config;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use units::Now;

/// A pool that cannot be used, although nothing of it has changed, is read again after so long.
const AGAIN: Duration = Duration::from_secs(10);

impl MemberPool {
    /// Keeps what stands on the members now, to be compared later.
    pub(crate) async fn take_prints(&self, core: &CoreHandle) {
        let mut prints = Vec::new();
        for path in &self.paths {
            prints.push(print(core, path, &None).await);
        }
        *self.prints.borrow_mut() = prints;
    }

    /// The members that came, went or were changed by somebody else.
    pub(crate) async fn changed(&self, core: &CoreHandle) -> Vec<PathBuf> {
        let before = self.prints.borrow().clone();
        let mut changed = Vec::new();
        for (path, before) in self.paths.iter().zip(&before) {
            if print(core, path, before).await != *before {
                changed.push(path.clone());
            }
        }
        changed
    }

    /// It could not be used, or written, and is to be read again now.
    fn is_due(&self, now: Now) -> bool {
        let is_well = self.there(|there| there.torn.is_none()).unwrap_or(false);
        if is_well {
            self.again.set(None);
            return false;
        }
        let at = self.again.get().unwrap_or_else(|| {
            let at = now.after(AGAIN);
            self.again.set(Some(at));
            at
        });
        now >= at
    }

    /// A LUN lies on one of these.
    fn uses(&self, lun: members::LunId, paths: &[PathBuf]) -> bool {
        self.all_of(lun).into_iter().any(|id| {
            let Ok(placed) = self.place(id) else {
                return true;
            };
            let mut parts = placed.extents.iter().flat_map(|extent| &extent.members);
            parts.any(|number| {
                let part = placed.parts.get(number);
                part.is_some_and(|(path, _)| paths.contains(path))
            })
        })
    }
}

/// Probes whether members came or went: LUNs that lack one go offline, those that have all again go
/// on.
pub(crate) async fn inspect(node: &Rc<Inner>, pool: &Rc<MemberPool>, config: &config::Pool) {
    let name = config.name.as_str();
    node.unsaved.note(
        late::Late::Pool(name.to_owned()),
        format_args!(
            "pool {name}: what its members are could not be kept in {}",
            pool.memory().display()
        ),
        pool.is_kept(),
    );
    let known = pool.prints.borrow().clone();
    let changed = pool.changed(&node.core).await;
    if changed.is_empty() && !pool.is_due(node.core.now()) {
        return;
    }
    let _turn = node.turn.lock().await;
    if *pool.prints.borrow() != known {
        // A change of the pool itself came between.
        return;
    }
    let (was_whole, before) = (pool.is_whole(), pool.problem());
    pool.again.set(None);
    pool.assemble(&node.core, true).await;
    let now = pool.problem();
    match &now {
        Some(problem) if before != now => {
            tracing::error!(pool = name, "the pool is not whole: {problem}");
        }
        None if before.is_some() => tracing::info!(pool = name, "all members are there again"),
        Some(_) | None => {}
    }
    let became_whole = pool.is_whole() && !was_whole;
    if before != now {
        // What stands on it may be newer than what is known here, or name LUNs that are not.
        node.find_orphans().await;
        node.returned.notify_one();
    }
    node.follow_members(pool, config, &changed, became_whole)
        .await;
}

impl Inner {
    /// Takes LUNs offline that lack a member, and opens anew those that have got one.
    async fn follow_members(
        self: &Rc<Self>,
        pool: &Rc<MemberPool>,
        config: &config::Pool,
        changed: &[PathBuf],
        became_whole: bool,
    ) {
        let (name, mut back) = (config.name.as_str(), Vec::new());
        for lun in self.luns_of(name) {
            let (id, unit) = (super::lun_id(&lun), self.unit(&lun.naa));
            let Some(unit) = unit else { continue };
            match pool.place_with_all(id) {
                Err(why) => {
                    self.rest_scrub(&lun.naa).await;
                    let suspended = unit.suspend_without_base(&self.core, &lun, &why).await;
                    self.units
                        .borrow_mut()
                        .insert(lun.naa.clone(), Rc::new(suspended));
                }
                Ok(_) if unit.offline().is_some() || became_whole || pool.uses(id, changed) => {
                    back.push(lun);
                }
                Ok(_) => {}
            }
        }
        let journal = self.journals.of(name);
        if let PoolJournal::Missing(_) = &journal {
            if let Err(error) = self.bring_back(config).await {
                self.journals.lose(name, error, None);
            }
            return;
        }
        for lun in back {
            self.renew(&lun, &journal).await;
        }
    }
}
