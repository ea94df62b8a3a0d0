//! A pool that goes as a whole, and comes back.

use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use manifest::code::Code;
use manifest::config;
use std::rc::Rc;
use volume::OpenError;

impl Inner {
    /// Takes the LUNs of a pool offline that is gone. The turn is the caller's.
    pub(crate) async fn lose_pool(&self, pool: &config::Pool, why: &OpenError) {
        tracing::error!(pool = pool.name, code = %Code::PoolMissing, "{why}: its LUNs go offline");
        for lun in self.luns_of(&pool.name) {
            self.rest_scrub(&lun.naa).await;
            let unit = self.unit(&lun.naa);
            if let Some(unit) = unit.filter(|unit| unit.offline().is_none()) {
                let suspended = unit.suspend_without_base(&self.core, &lun, why).await;
                self.units
                    .borrow_mut()
                    .insert(lun.naa.clone(), Rc::new(suspended));
            }
        }
    }

    /// Brings the LUNs of a pool online that is there again. The turn is the caller's.
    pub(crate) async fn return_pool(self: &Rc<Self>, pool: &config::Pool) {
        self.find_orphans().await;
        tracing::info!(pool = pool.name, "the pool is back, and its LUNs with it");
        self.returned.notify_one();
        let journal = self.journals.of(&pool.name);
        if let PoolJournal::Missing(_) = &journal {
            if let Err(error) = self.bring_back(pool).await {
                self.journals.lose(&pool.name, error, None);
            }
            return;
        }
        for lun in self.luns_of(&pool.name) {
            self.renew(&lun, &journal).await;
        }
    }
}
