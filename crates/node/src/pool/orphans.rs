//! LUNs' storage that no object names, and the record of each LUN, with which it can be taken into
//! service again.
//!
//! **Contract.** The record of a LUN is written after the objects are stored that it follows,
//! and again at a start where it differs: objects are the truth while they are there. Nothing is
//! ever removed because nobody names it.

use crate::backend::door::Stored;
use crate::inner::Inner;
use crate::pool::late;
use manifest::objects::{Lun, Objects};
use manifest::orphan::{LunRecord, Orphan};
use manifest::size::Size;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The LUNs of pools as their records say them.
fn records(objects: &Objects) -> Vec<LunRecord> {
    let served = objects.luns.iter().map(|it| (it, false));
    let removed = objects.removed.iter().map(|it| (it, true));
    served
        .chain(removed)
        .filter(|((_, lun), _)| lun.backing.pool().is_some())
        .map(|((name, lun), removed)| LunRecord {
            name: name.clone(),
            removed,
            lun: lun.clone(),
        })
        .collect()
}

impl Inner {
    /// Writes down in the pools what each LUN is, where that is new.
    pub(crate) async fn write_records(&self, objects: &Objects) {
        let mut wanted = BTreeMap::new();
        let mut by_pool: BTreeMap<String, Vec<(LunRecord, Stored)>> = BTreeMap::new();
        let mut kept = Ok(());
        for record in records(objects) {
            let naa = record.lun.naa.clone();
            let known = self.orphans.written.borrow().get(&naa).cloned();
            let stands = match &known {
                Some(known) => Stored {
                    text: None,
                    record: Some(known.clone()),
                },
                None => match self.stored(&record.lun, true).await {
                    Some(stands) => stands,
                    None => {
                        let what = format!("LUN {}: its pool", record.name);
                        kept = Err(late::silent(what));
                        continue;
                    }
                },
            };
            let record = self.as_large_as_known(record, stands.record.clone());
            if known.as_ref() == Some(&record) {
                wanted.insert(naa, record);
                continue;
            }
            let pool = record.lun.backing.pool().unwrap_or_default().to_owned();
            by_pool.entry(pool).or_default().push((record, stands));
        }
        for (name, records) in by_pool {
            let pools = self.pools();
            // Written when it is back and was compared.
            let there = pools.get(&name).filter(|pool| pool.missing().is_none());
            let Some(pool) = there else {
                continue;
            };
            let all = records.iter().map(|(record, _)| record.clone());
            wanted.extend(all.map(|record| (record.lun.naa.clone(), record)));
            let new = |record: &LunRecord, stands: Stored| {
                (stands.text).is_none_or(|text| text != record.encode())
            };
            let records = records.into_iter();
            let records = records.filter_map(|(it, stands)| new(&it, stands).then_some(it));
            for (naa, why) in pool.write_records(&records.collect::<Vec<_>>()).await {
                wanted.remove(&naa);
                kept = Err(why);
            }
        }
        *self.orphans.written.borrow_mut() = wanted;
        let what = "the records of LUNs cannot be written to their pool, which only matters where state_dir is lost";
        self.unsaved.note(late::Late::Luns, what, kept);
    }

    /// A pool that has seen the LUN larger goes on saying so, where it was not made smaller since:
    /// objects that are older than the pool were accepted, and what is beyond their size stays.
    fn as_large_as_known(&self, mut record: LunRecord, known: Option<LunRecord>) -> LunRecord {
        let naa = &record.lun.naa;
        let shrunk = self.shrunk.borrow().contains(naa);
        let known = known.filter(|it| !shrunk && it.lun.size > record.lun.size);
        // A file that is no longer has been cut, and only its record was not written any more.
        let file = self.unit(naa).and_then(|unit| unit.own_bytes());
        let cut = file.is_some_and(|bytes| bytes <= record.lun.size.bytes());
        let Some(known) = known.filter(|_| !cut) else {
            self.orphans.larger.borrow_mut().remove(naa);
            return record;
        };
        let seen = known.lun.size;
        let reported = self.orphans.larger.borrow_mut().insert(naa.clone(), seen);
        if reported != Some(seen) {
            tracing::warn!(
                lun = record.name,
                "it has {}, and {} has seen it with {}: what is beyond stays there",
                record.lun.size.reported(),
                record.lun.backing,
                seen.reported()
            );
        }
        record.lun.size = seen;
        record
    }

    /// Bytes of a LUN's storage that a change of its size leaves alone, although it has fewer.
    pub(crate) fn kept_of(&self, lun: &Lun) -> Size {
        let shrunk = self.shrunk.borrow().contains(&lun.naa);
        let larger = self.orphans.larger.borrow();
        let seen = larger.get(&lun.naa).filter(|_| !shrunk);
        seen.copied().unwrap_or_default()
    }

    /// Which LUNs their pools have seen larger. Nothing is written.
    pub(crate) async fn inspect_sizes(&self) {
        let objects = Rc::clone(&self.objects.borrow());
        for record in records(&objects) {
            let stands = self.stored(&record.lun, false).await;
            self.as_large_as_known(record, stands.and_then(|stands| stands.record));
        }
    }

    /// What stands in the pools of the LUNs that there are.
    pub(crate) async fn known_records(&self) -> BTreeMap<String, LunRecord> {
        let objects = Rc::clone(&self.objects.borrow());
        let mut out = BTreeMap::new();
        for LunRecord { lun, .. } in records(&objects) {
            let stands = self.stored(&lun, false).await;
            let record = stands.and_then(|stands| stands.record);
            out.extend(record.map(|record| (lun.naa, record)));
        }
        out
    }

    /// What is stored of a LUN in its pool; `None`: that does not answer, where `soon` asks for it.
    async fn stored(&self, lun: &Lun, soon: bool) -> Option<Stored> {
        let pools = self.pools();
        match lun.backing.pool().and_then(|pool| pools.get(pool)) {
            Some(pool) => pool.stored(lun, soon).await,
            None => Some(Stored::default()),
        }
    }

    /// The storage that no object names, as it was seen last in this pool.
    pub(crate) fn orphans_of(&self, pool: &str) -> Vec<Orphan> {
        let seen = self.orphans.seen.borrow();
        let of_pool = seen.iter().filter(|orphan| orphan.pool == pool);
        of_pool.cloned().collect()
    }

    /// The storage that no object names, as it was seen last, of pools that are there now.
    pub(crate) fn orphans_seen(&self) -> Vec<Orphan> {
        let seen = self.orphans.seen.borrow();
        let there = |orphan: &&Orphan| self.missing(&orphan.pool).is_none();
        seen.iter().filter(there).cloned().collect()
    }

    /// Looks for storage that no object names.
    pub(crate) async fn find_orphans(&self) -> Vec<Orphan> {
        let objects = Rc::clone(&self.objects.borrow());
        let all = objects.luns.values().chain(objects.removed.values());
        let mut known: BTreeSet<String> = all.map(|lun| lun.naa.clone()).collect();
        // What a crash left of making or purging LUNs is given back.
        known.extend(self.intended_naas());
        let mut found = Vec::new();
        let pools = self.pools();
        for pool in self
            .config
            .pools
            .iter()
            .filter_map(|pool| pools.get(&pool.name))
        {
            found.extend(pool.orphans(&known).await);
        }
        (*self.orphans.seen.borrow_mut()).clone_from(&found);
        found
    }

    /// Logs what was found at the start.
    pub(crate) async fn log_orphans(&self) {
        let all = self.find_orphans().await;
        for orphan in all.iter().filter(|orphan| !orphan.is_foreign) {
            tracing::warn!(
                pool = orphan.pool,
                "no object names LUN {}, {}: it is left as it is; causeway lun adopt takes it into service",
                orphan.shown(),
                manifest::size::rounded(orphan.size_bytes)
            );
        }
    }
}
